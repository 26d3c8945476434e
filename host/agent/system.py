# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes settings and values of a device's files and commands: only files of a list, and never a shell."""

import glob
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import PurePath

from liteprobe.host.agent.message import Scalar, Type
from liteprobe.host.base.errors import ProbeError, UsageError

READ_MOST = 1 << 16  # Octets of a file, or of what a command prints.
PLACE = "{value}"
SHELLS = (
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "fish",
    "ash",
    "csh",
    "tcsh",
    "busybox",
    "env",
    "eval",
    "ssh",
    "su",
    "sudo",
)
TRUTHS = {"0": False, "1": True, "false": False, "true": True, "n": False, "y": True, "no": False, "yes": True}


# Files --------------------------------------------------------------------------------------------


def pattern_of(written: str) -> "re.Pattern[str]":
    """Return a pattern of paths: ``*`` stands for any part of a name, ``**`` for any names; what ``*`` matches is a group."""
    parts = re.split(r"(\*\*|\*|\?)", written)
    wild = {"**": ".*", "*": "([^/]*)", "?": "[^/]"}
    return re.compile("".join(wild.get(part, re.escape(part)) for part in parts))


class AllowList:
    """Lists the files that may be read and written; ``patterns``: absolute, with ``*`` and ``**``."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [pattern_of(one) for one in patterns]

    def check(self, path: str) -> None:
        """Raise UsageError when a file, or what a link at its place leads to, is not in the list."""
        for one in dict.fromkeys((path, os.path.realpath(path))):
            if ".." in PurePath(one).parts or not any(pattern.fullmatch(one) for pattern in self._patterns):
                leads = "" if one == path else f" leads to {one}, which"
                raise UsageError(
                    f"{path}{leads} is not a file that may be used: add it to 'allow', or name another one"
                )

    def read(self, path: str) -> bytes:
        """Return what a file holds now; raises ProbeError."""
        self.check(path)
        try:
            with open(path, "rb", buffering=0) as file:
                return file.read(READ_MOST)
        except OSError as error:
            raise ProbeError(f"cannot read {path} ({error.strerror})") from None

    def write(self, path: str, octets: bytes) -> None:
        """Write to a file that is there, in one piece; raises ProbeError."""
        self.check(path)
        try:
            fd = os.open(path, os.O_WRONLY | os.O_TRUNC)
            try:
                os.write(fd, octets)
            finally:
                os.close(fd)
        except OSError as error:
            raise ProbeError(f"cannot write '{octets.decode(errors='replace')}' to {path} ({error.strerror})") from None

    def found(self, written: str) -> list[tuple[str, str]]:
        """Return the files that a path with ``*`` stands for now: what each ``*`` is, joined by dots, and the path."""
        if "*" not in written:
            self.check(written)
            return [("", written)]
        pattern = pattern_of(written)
        some = []
        for path in sorted(glob.glob(written)):
            if (match := pattern.fullmatch(path)) and os.path.isfile(path):
                self.check(path)
                some.append((".".join(match.groups()), path))
        return some


# Commands -----------------------------------------------------------------------------------------


def check_command(words: Sequence[str], is_setting: bool, kind: Type) -> None:
    """Raise UsageError for a command that could do something else than it says."""
    if not os.path.isabs(words[0]):
        raise UsageError(
            f"'{words[0]}' is not a whole path: write it like /usr/sbin/tc, so that it is that program and no other"
        )
    holders = [word for word in words if PLACE in word]
    if bool(holders) != is_setting:
        raise UsageError(f"the command of a setting has {PLACE} in its words, that of a value has not")
    if holders and (PLACE in words[0] or os.path.basename(words[0]) in SHELLS):
        raise UsageError(
            f"{words[0]} would run the value as a command: name the program itself, with {PLACE} in its words"
        )
    if holders and kind == Type.OCTETS:
        raise UsageError("octets can't be a word of a command: write them to a file, or make it a text")
    if kind == Type.TEXT and any(word.startswith(PLACE) for word in holders):
        raise UsageError(
            f"a text that begins with - would be an option: write {PLACE} in a word with something before it"
        )


def run_command(words: Sequence[str], value: Scalar | None, limit_s: float) -> bytes:
    """Run a command without a shell, and return what it prints; raises ProbeError when it fails or takes too long."""
    typed = [word if value is None else word.replace(PLACE, text_of(value)) for word in words]
    try:
        done = subprocess.run(typed, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        raise ProbeError(f"{words[0]} took more than {limit_s:g} s and was ended") from None
    except (OSError, ValueError) as error:
        raise ProbeError(f"cannot run {words[0]} ({error})") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ProbeError(f"{words[0]} ended with {done.returncode}: {''.join(said)}")
    return done.stdout[:READ_MOST]


# Values as text -----------------------------------------------------------------------------------


def text_of(value: Scalar) -> str:
    """Return a value as files of /proc and /sys take it."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def octets_of(value: Scalar) -> bytes:
    """Return a value as it is written to a file."""
    return value if isinstance(value, bytes) else text_of(value).encode()


def reader(
    name: str, kind: Type, read: Callable[[], bytes], match: "re.Pattern[str] | None" = None
) -> Callable[[], Scalar]:
    """Return a callback that reads a value.

    Parameters
    ----------
    name : str
        For messages.
    read : callable
        Returns the octets that hold it.
    match : pattern or None
        Its first group is the value.
    """

    def callback() -> Scalar:
        octets = read()
        if kind == Type.OCTETS:
            return octets
        text = octets.decode(errors="replace")
        if match is not None:
            found = match.search(text)
            if not found:
                raise ProbeError(f"'{name}' is not found: nothing fits '{match.pattern}'")
            text = found[1]
        return _value(name, kind, text.strip())

    return callback


def _value(name: str, kind: Type, text: str) -> Scalar:
    try:
        if kind == Type.INT:
            return int(text, 16 if text.lower().startswith("0x") else 10)
        if kind == Type.FLOAT:
            return float(text)
        return TRUTHS[text.lower()] if kind == Type.BOOL else text
    except (ValueError, KeyError):
        raise ProbeError(f"'{name}' is '{text[:40]}', which is not a {kind.name.lower()}") from None
