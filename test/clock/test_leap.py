# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The list of leap seconds: current, with one to come, expired, damaged, missing; what the firmware is told."""

import hashlib
from pathlib import Path
from typing import cast

import pytest

from liteprobe.host.base.errors import ProbeError
from liteprobe.host.clock import leap
from liteprobe.host.device.firmware import Console

NTP = 2_208_988_800
LAST, NEXT, EXPIRES = 1_483_228_800, 1_798_761_600, 1_814_140_800  # 2017-01-01, 2027-01-01, 2027-06-28.
NOW = 1_795_000_000.0


def listed(path: Path, *steps: tuple[int, int], expires: int = EXPIRES, damage: str = "") -> Path:
    """Write a list by the rules in its own comments."""
    lines = [f"{at + NTP} {seconds}" for at, seconds in steps]
    digits = f"{3_900_000_000}{expires + NTP}" + "".join(line.replace(" ", "") for line in lines)
    digest = hashlib.sha1(digits.encode()).hexdigest()
    words = " ".join(f"{int(digest[at : at + 8], 16):x}" for at in range(0, 40, 8))  # Without leading zeros.
    text = [
        f"#$ {3_900_000_000}",
        f"#@\t{expires + NTP}",
        "# a remark",
        *(f"{line} # 1 Jan" for line in lines),
        f"#h {words}",
    ]
    path.write_text("\n".join(text).replace(*damage.split(">") if damage else ("", "")))
    return path


def test_a_list_says_what_holds_and_until_when(tmp_path: Path) -> None:
    path = tmp_path / "list"
    assert leap.read(listed(path, (LAST, 37)), NOW) == leap.LeapSeconds(37, EXPIRES, 37)
    assert leap.read(listed(path, (LAST, 37), (NEXT, 38)), NOW) == leap.LeapSeconds(37, NEXT, 38)
    assert leap.read(listed(path, (LAST, 37), (NEXT, 36)), NEXT) == leap.LeapSeconds(36, EXPIRES, 36)


@pytest.mark.parametrize(
    ("expires", "damage", "said"),
    [
        (int(NOW) - 1, "", "has expired on 2026-11-18"),
        (EXPIRES, " 37> 38", "its SHA-1 differs"),
        (EXPIRES, "#@>#", "not a list"),
        (EXPIRES, " 37> x", "not a list"),
    ],
)
def test_a_list_that_is_not_to_be_believed_is_refused_in_words(
    tmp_path: Path, expires: int, damage: str, said: str
) -> None:
    path = listed(tmp_path / "list", (LAST, 37), expires=expires, damage=damage)
    with pytest.raises(ProbeError, match=f"{said}.*install a newer tzdata"):
        leap.read(path, NOW)


def test_a_system_without_a_list_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leap, "ZONES", tmp_path)
    monkeypatch.setattr(leap, "PACKAGE", "no_tzdata_at_all")
    with pytest.raises(ProbeError, match=r"no list of leap seconds.*install a newer tzdata, or give --leap FILE"):
        leap.find(NOW)
    with pytest.raises(ProbeError, match="no list"):
        leap.find(NOW, tmp_path / "other")
    listed(tmp_path / "leap-seconds.list", (LAST, 37), expires=int(NOW) - 1)
    with pytest.raises(ProbeError, match="has expired"):
        leap.find(NOW)
    newer = tmp_path / "leapseconds"
    newer.write_text(
        "# tzdata\nLeap\t1972\tJun\t30\t23:59:60\t+\tS\nLeap\t2026\tDec\t31\t23:59:60\t+\tS\n"
        f"#expires {EXPIRES} (2027-06-28 00:00:00 UTC)\n"
    )
    assert leap.find(NOW) == (leap.LeapSeconds(11, NEXT, 12), newer)


class FakeShell:
    """Is a console whose shell answers as the firmware's does: it echoes, and shows its prompt."""

    def __init__(self, answer: str = "") -> None:
        self.answer = answer
        self.typed = b""
        self._said = b""

    def write(self, text: bytes) -> None:
        self.typed += text
        answer = self.answer.encode() if text.strip() else b""
        self._said += text.replace(b"\n", b"\r\n") + answer + b"liteprobe:~$ "

    def follow(self, seconds: float, until: bytes | None = None) -> bytes:
        said, self._said = self._said, b""
        return said


def test_the_firmware_is_told_and_asked_whether_it_took_it() -> None:
    shell = FakeShell()
    leap.tell(cast(Console, shell), leap.LeapSeconds(37, NEXT, 38))
    assert shell.typed == b"\nclock leap 37 1798761600 38\n"
    with pytest.raises(ProbeError, match="wrong parameter count"):
        leap.tell(cast(Console, FakeShell("leap: wrong parameter count\r\n")), leap.LeapSeconds(37, NEXT, 38))
