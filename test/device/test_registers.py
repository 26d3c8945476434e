# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Registers by name: words, signs, neighbours in a burst, typos, and maps of another build."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from liteprobe.cores.formats import map_hash
from liteprobe.host.base.errors import MapError, ProbeError, UsageError
from liteprobe.host.device.link.base import Words
from liteprobe.host.device.registers import Registers, candidates, load_map, open_registers
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.trains import ModelProbe


class NotingLink(FakeLink):
    """Notes what is written, and may keep nothing of it."""

    def __init__(self, model: ModelProbe, folder: Path, keeps: bool = True) -> None:
        super().__init__(model, folder)
        self.written: list[tuple[int, list[int]]] = []
        self.keeps = keeps

    def write(self, address: int, words: Sequence[int]) -> Words:
        self.written.append((address, list(words)))
        return super().write(address, words) if self.keeps else self.read(address, len(words))


@pytest.fixture
def link(tmp_path: Path) -> NotingLink:
    return NotingLink(ModelProbe(), tmp_path)


def registers_of(link: NotingLink) -> Registers:
    return Registers(link, link.model.map, "csr.json")


@pytest.mark.parametrize(
    ("name", "bits", "value"),
    [
        ("port0_tx_sent", 0xFFFFFFFF, 2**32 - 1),
        ("port0_rx_all_octets", 0x0123456789ABCDEF, 0x0123456789ABCDEF),
        ("timebase_adjust", 2**64 - 8, -8),
        ("timebase_adjust", 2**63 - 1, 2**63 - 1),
        ("timebase_adjust", 2**63, -(2**63)),
        ("timebase_increment", 8 << 40, 8 << 40),
    ],
)
def test_value_is_put_together_from_its_words(link: NotingLink, name: str, bits: int, value: int) -> None:
    link.model.values[name] = bits
    assert registers_of(link).read(name) == value
    assert registers_of(link).read_many([name, "probe_ports", name]) == {name: value, "probe_ports": 2}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("port0_tx_count", 2**32 - 1, [0xFFFFFFFF]),
        ("timebase_set_time", 0x0123456789ABCDEF, [0x01234567, 0x89ABCDEF]),
        ("timebase_adjust", -1, [0xFFFFFFFF, 0xFFFFFFFF]),
        ("timebase_adjust", -(2**63), [0x80000000, 0]),
    ],
)
def test_value_is_written_high_word_first(link: NotingLink, name: str, value: int, words: list[int]) -> None:
    registers = registers_of(link)
    registers.write(name, value)
    assert link.written == [(registers.register(name).address, words)]
    assert registers.read(name) == value


def test_neighbours_are_written_in_one_burst(link: NotingLink) -> None:
    registers = registers_of(link)
    registers.write_many({"port0_tx_repeats": 3, "port0_tx_count": 2, "port0_tx_length": 1, "port0_tx_start_time": 4})
    base = registers.register("port0_tx_length").address
    start = registers.register("port0_tx_start_time").address
    assert link.written == [(base, [1, 2, 3]), (start, [0, 4])]


@pytest.mark.parametrize(
    ("name", "value"), [("port0_tx_count", 2**32), ("port0_tx_count", -1), ("timebase_adjust", 2**63)]
)
def test_value_that_does_not_fit_is_refused(link: NotingLink, name: str, value: int) -> None:
    with pytest.raises(UsageError, match=f"{value} does not fit {name}: give "):
        registers_of(link).write(name, value)
    assert link.written == []


def test_typo_gets_close_matches(link: NotingLink) -> None:
    with pytest.raises(UsageError, match="there is no register 'port0_tx_cont': did you mean port0_tx_count"):
        registers_of(link).read("port0_tx_cont")
    with pytest.raises(UsageError, match="there is no memory 'port0_header_': did you mean port0_header"):
        registers_of(link).read_memory("port0_header_", 0, 1)
    with pytest.raises(UsageError, match=r"there is no register 'zzz': see liteprobe regs list"):
        registers_of(link).write("zzz", 1)


def test_read_only_register_is_not_written(link: NotingLink) -> None:
    with pytest.raises(UsageError, match="port0_tx_sent can only be read"):
        registers_of(link).write("port0_tx_sent", 1)


def test_write_that_is_not_kept_is_an_error_after_three_tries(tmp_path: Path) -> None:
    link = NotingLink(ModelProbe(), tmp_path, keeps=False)
    with pytest.raises(ProbeError, match="doesn't keep what is written to a register of port0_tx_count"):
        registers_of(link).write_many({"port0_tx_count": 5})
    assert len(link.written) == 3


def test_memory_is_written_and_read_by_words(link: NotingLink) -> None:
    registers = registers_of(link)
    registers.write_memory("port1_header", 30, [7, 8])
    assert registers.read_memory("port1_header", 29, 3).tolist() == [0, 7, 8]
    for first, count in ((31, 2), (-1, 1), (0, 33)):
        with pytest.raises(
            UsageError, match=f"words {first} to {first + count - 1} lie outside port1_header: it has 32"
        ):
            registers.read_memory("port1_header", first, count)


def other_map(model: ModelProbe) -> dict[str, object]:
    """Return the map of a build where one more register shifts those behind it."""
    shifted = json.loads(json.dumps(model.map))
    for entry in shifted["csr_registers"].values():
        entry["addr"] += 4
    return dict(shifted)


def test_map_of_another_build_is_refused_with_both_hashes(link: NotingLink, tmp_path: Path) -> None:
    other = other_map(link.model)
    path = tmp_path / "other.json"
    path.write_text(json.dumps(other))
    with pytest.raises(MapError) as error:
        open_registers(link, path)
    found = link.model.values["probe_ports"]  # What lies where the other map has its hash.
    assert str(error.value).startswith(
        f"{path} is the map of another build (hash {map_hash(other):08x}, the probe's is {found:08x}): give --map"
    )
    assert error.value.exit_code == 1


def test_map_is_found_among_builds_by_its_hash(
    link: NotingLink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in {
        "wrong": json.dumps(other_map(link.model)),
        "broken": "{",
        "none": "[]",
        "empty": "{}",
        "right": json.dumps(link.model.map),
    }.items():
        (tmp_path / "build" / name).mkdir(parents=True)
        (tmp_path / "build" / name / "csr.json").write_text(content)
    os.utime(tmp_path / "build" / "wrong" / "csr.json", (2**31, 2**31))  # The latest is looked at first.
    link.map_file = None
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LITEPROBE_MAP", raising=False)
    assert (tmp_path / "build" / "wrong" / "csr.json").resolve() in candidates()
    assert open_registers(link).source == str(tmp_path / "build" / "right" / "csr.json")


def test_map_that_the_environment_names_is_taken(
    link: NotingLink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "named.json"
    path.write_text(json.dumps(link.model.map))
    link.map_file = None
    monkeypatch.setenv("LITEPROBE_MAP", str(path))
    assert open_registers(link).source == str(path)


def test_no_map_at_all_says_what_to_give(link: NotingLink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link.map_file = None
    monkeypatch.setattr("liteprobe.host.device.registers.candidates", lambda: [])
    monkeypatch.delenv("LITEPROBE_MAP", raising=False)
    with pytest.raises(MapError, match=r"there is no build/\*/csr\.json here\): give --map FILE, or set LITEPROBE_MAP"):
        open_registers(link)


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_file_that_is_no_map_is_a_usage_error(link: NotingLink, tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "map.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=r"map.*: give --map build/BOARD/csr\.json"):
        load_map(path)


def test_json_without_registers_is_no_map(link: NotingLink) -> None:
    with pytest.raises(UsageError, match=r"csr\.json is not a register map"):
        Registers(link, {"csr_registers": {"a": {}}}, "csr.json")
