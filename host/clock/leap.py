# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads the list of leap seconds that comes with tzdata, or from the IERS, and tells a probe's firmware what it says.

Stands alone: the format of a file of others.
"""

import hashlib
import importlib.util
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from liteprobe.host.base.errors import ProbeError
from liteprobe.host.device.firmware import PROMPT, Console, Shell

ZONES = Path("/usr/share/zoneinfo")
PACKAGE = "tzdata"  # PyPI's, which may be newer than the system's.
AT_FIRST_S = 10  # TAI less UTC in 1972, from which tzdata's ``leapseconds`` counts.
DAY_S = 86_400
NTP_LESS_POSIX = 2_208_988_800  # Seconds from 1900 to 1970, in which the list counts.
NEWER = "install a newer tzdata, or give --leap FILE, the leap-seconds.list of the IERS"


@dataclass(frozen=True)
class LeapSeconds:
    """Holds TAI less UTC as of a moment, and until when."""

    tai_utc_s: int
    until: int  # POSIX time: of the next leap second, or that at which the list expires.
    then_s: int  # TAI less UTC from there on, as far as it is known.


def places() -> list[Path]:
    """Return where this system may keep a list: tzdata, and the package of that name."""
    package = importlib.util.find_spec(PACKAGE)
    folders = [Path(package.origin).parent / "zoneinfo"] if package and package.origin else []
    return [ZONES / "leap-seconds.list", *(folder / "leapseconds" for folder in [ZONES, *folders])]


def find(now: float, path: Path | None = None) -> tuple[LeapSeconds, Path]:
    """Return what the list ``path`` says of ``now``, or the first of this system that has not expired, and its place.

    Raises ProbeError, with what is wrong with the last one, when there is none.
    """
    tried = [path] if path else places()
    wrong = ProbeError(f"no list of leap seconds ({', '.join(map(str, tried))}): {NEWER}")
    for place in tried:
        if place.is_file():
            try:
                return read(place, now), place
            except ProbeError as error:
                wrong = error
    raise wrong


def read(path: Path, now: float) -> LeapSeconds:
    """Return what a list says of ``now`` (POSIX time).

    Raises ProbeError when the list has expired, is not such a list, or was changed since it was made (SHA-1).

    Source: leap-seconds.list and leapseconds, as their own comments describe them (IERS; tzdata).
    """
    digits, expires, digest = "", None, ""
    steps: list[tuple[int, int]] = []
    try:
        for line in path.read_text(encoding="ascii", errors="replace").splitlines():
            words = line[2:].split() if line[:2] in ("#$", "#@", "#h") else line.partition("#")[0].split()
            if line.startswith("#expires"):
                expires = int(line.split()[1])
            elif line.startswith("Leap"):
                day = datetime.strptime(" ".join(line.split()[1:4]) + " +0000", "%Y %b %d %z")
                before = steps[-1][1] if steps else AT_FIRST_S
                steps.append((int(day.timestamp()) + DAY_S, before + (1 if line.split()[5] == "+" else -1)))
            elif line.startswith("#h"):
                digest = "".join(f"{int(word, 16):08x}" for word in words)
            elif words:
                digits += "".join(words[: 1 if line.startswith("#") else 2])
                if line.startswith("#@"):
                    expires = int(words[0]) - NTP_LESS_POSIX
                elif not line.startswith("#"):
                    steps.append((int(words[0]) - NTP_LESS_POSIX, int(words[1])))
    except (ValueError, IndexError, OSError) as error:
        raise ProbeError(f"{path} is not a list of leap seconds ({error}): {NEWER}") from error
    if expires is None or not steps or steps != sorted(steps):
        raise ProbeError(f"{path} is not a list of leap seconds: {NEWER}")
    if digest and hashlib.sha1(digits.encode(), usedforsecurity=False).hexdigest() != digest:
        raise ProbeError(f"{path} was changed since it was made (its SHA-1 differs): {NEWER}")
    if now >= expires:
        raise ProbeError(f"{path} has expired on {datetime.fromtimestamp(expires, UTC):%Y-%m-%d}: {NEWER}")
    past = [seconds for at, seconds in steps if at <= now]
    coming = [(at, seconds) for at, seconds in steps if at > now]
    if not past:
        raise ProbeError(f"{path} begins after this host's time: set the time of this host")
    until, then_s = coming[0] if coming else (expires, past[-1])
    return LeapSeconds(past[-1], until, then_s)


def tell(console: Console, known: LeapSeconds) -> None:
    """Type what is known at the firmware's shell; raises ProbeError with its answer when the shell refuses it."""
    line = f"clock leap {known.tai_utc_s} {known.until} {known.then_s}"
    shell = Shell(console)
    shell.ask()
    said = shell.type(line).decode("ascii", "replace")
    lines = said.replace("\r", "").partition(line)[2].splitlines()
    rest = " ".join(one for one in lines if one.strip() and not one.endswith(PROMPT.decode()))
    if line not in said or rest:
        raise ProbeError(
            f"the firmware did not take {line!r}: it said {rest or said!r}; load it again ('liteprobe firmware load')"
        )
