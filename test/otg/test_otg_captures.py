# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Files of captures: what is kept where they become too large, slices, and the octets of both formats."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scapy.utils import PcapNgReader, PcapReader

from liteprobe.host.otg.captures import HEAD, PortFile
from liteprobe.host.otg.config import PortCapture

SIZE = HEAD.size + 68  # Octets on disk of a frame of 64 octets and its FCS.


@dataclass
class Frames:
    """Stands for records: frames of 64 octets, numbered from one on."""

    first: int
    count: int

    def __len__(self) -> int:
        return self.count

    @property
    def stamp(self) -> Any:
        return 10**9 + np.arange(self.first, self.first + self.count, dtype=np.uint64)

    @property
    def heads(self) -> dict[str, Any]:
        return {"length": np.full(self.count, 64)}

    def octets(self, number: int) -> bytes:
        return (self.first + number).to_bytes(64)


def numbers(file: PortFile, *part: Any) -> list[int]:
    """Return the numbers of the frames that a file has."""
    content = b"".join(file.pieces(*part))
    reader = PcapReader if file.asked.format == "pcap" else PcapNgReader
    found = [bytes(one) for one in reader(io.BytesIO(content))]
    return [int.from_bytes(one[:64]) for one in found]


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_a_capture_that_is_too_large_keeps_the_newest_frames(tmp_path: Path, form: str) -> None:
    file = PortFile(tmp_path, PortCapture("p", form), 20 * SIZE)
    for first in range(0, 100, 7):
        file.write(Frames(first, 7))  # type: ignore[arg-type]
    file.close()
    found = numbers(file)
    assert found == list(range(found[0], 105)) and 10 < len(found) <= 20
    assert (file.frames, file.dropped) == (len(found), 105 - len(found))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 20 * SIZE


def test_one_that_overwrites_nothing_keeps_the_first_frames(tmp_path: Path) -> None:
    file = PortFile(tmp_path, PortCapture("p", overwrites=False), 20 * SIZE)
    file.write(Frames(0, 33))  # type: ignore[arg-type]
    file.close()
    assert (numbers(file), file.dropped) == (list(range(20)), 13)
    assert (numbers(file, 5, 3), numbers(file, 18, 9), numbers(file, 30, 1)) == ([5, 6, 7], [18, 19], [])


def test_frames_after_its_end_are_not_of_it(tmp_path: Path) -> None:
    file = PortFile(tmp_path, PortCapture("a/../b"), 1 << 20)
    file.write(Frames(0, 5))  # type: ignore[arg-type]
    file.ends_ns = 10**9 + 6
    file.write(Frames(5, 5))  # type: ignore[arg-type]
    file.close()
    file.write(Frames(10, 5))  # type: ignore[arg-type]
    assert numbers(file) == list(range(7))
    assert {path.parent for path in tmp_path.rglob("*")} == {tmp_path}
