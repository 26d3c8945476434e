# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads files of text that users give, whatever they are; and shows text of others without what would steer a terminal."""

import json
import os
import re
import select
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from textwrap import wrap
from typing import Any, TextIO

from liteprobe.host.base.errors import UsageError

#: What stands for a character where ASCII alone can be shown; bars keep their height in dots and dashes.
IN_ASCII: dict[int, str] = {
    **dict(zip(map(ord, "µ·━▁▂▃▄▅▆▇█│─×"), "u.=.:-=+*#@|-x", strict=True)),
    **{ord("→"): "->", ord("±"): "+-", ord("…"): "..."},
}
TEXT_MOST = 64 << 20  # Octets of a file: a million sets take about half.
#: First octets of pcapng and pcap, in both orders and with times in us or ns.
CAPTURES = tuple(map(bytes.fromhex, ("0a0d0d0a", "a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1")))
PIPE_S = 5.0  # Until somebody writes to a named pipe.
#: Control characters but for tab and new line, what sets the direction of writing, separators of lines, what has no width.
_STEERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def safe(text: str) -> str:
    r"""Return text with escapes like ``\x1b`` in the place of what would steer a terminal."""
    return _STEERS.sub(lambda found: ascii(found[0])[1:-1], text)


def is_ascii() -> bool:
    """Return whether stdout takes ASCII alone, as with ``LC_ALL=C``."""
    return not (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")


def visible(text: str) -> str:
    r"""Return text as the terminal can show it: safe, and with ``->``, ``us`` or ``\xe9`` where it takes ASCII alone."""
    text = safe(text)
    return text.translate(IN_ASCII).encode("ascii", "backslashreplace").decode() if is_ascii() else text


def folded(text: str, width: int, end: str = "") -> str:
    """Return text whose lines are no longer than a terminal, broken between words; ``end`` is put where a line is broken."""
    lines = []
    for line in text.split("\n"):
        parts = [line]
        if len(line) > width:
            indent = line[: min(len(line) - len(line.lstrip()), width // 4)]
            line, after, most = indent + line.lstrip(), indent + "  " * bool(end), max(width - len(end), 1)
            parts = wrap(line, most, subsequent_indent=after, break_long_words=False, break_on_hyphens=False)
        lines.append(f"{end}\n".join(parts))
    return "\n".join(lines)


def say(line: object, stream: TextIO | None = None, flush: bool = False) -> None:
    """Print a line on stdout, or another stream; what others have named is shown without what steers a terminal."""
    stream, text = stream or sys.stdout, visible(str(line))
    with suppress(OSError, ValueError):  # Not a terminal: lines stay whole.
        text = folded(text, os.get_terminal_size(stream.fileno()).columns or len(text))
    print(text, file=stream, flush=flush)


def now_and_then(
    line_of: Callable[[Any, Any], str], every_s: float, stream: TextIO | None = None
) -> Callable[[Any], None]:
    """Return what is given looks, and prints a line every so often, of this machine's time.

    ``line_of``: returns the line of a look, given the look of the line before it; the first look has none.
    """
    before, due_s = None, time.monotonic() + every_s

    def show(look: Any) -> None:
        nonlocal before, due_s
        if before is look or (before is not None and time.monotonic() < due_s):
            return
        if before is not None:
            say(line_of(before, look), stream, flush=True)
            due_s = max(due_s, time.monotonic() - every_s) + every_s
        before = look

    return show


def read_text(path: Path, what: str) -> str:
    """Return the text of a file, without a byte order mark; ``what``: what to name in its place, for the message.

    Raises UsageError when it can't be read, is longer than TEXT_MOST, or isn't UTF-8, with the line.
    """
    try:
        octets = _octets(path)
    except (OSError, ValueError) as error:
        why = error.strerror or error if isinstance(error, OSError) else error
        raise UsageError(f"can't read {path} ({why}): name {what}") from None
    if octets[:4] in CAPTURES:
        raise UsageError(f"{path} is a capture: 'liteprobe replay {path}' sends it; here name {what}")
    if len(octets) > TEXT_MOST:
        raise UsageError(f"can't read {path} (it has more than {TEXT_MOST >> 20} MiB): name {what}")
    try:
        text = octets.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = octets.count(b"\n", 0, error.start) + 1
        raise UsageError(f"can't read {path} (line {line} is not UTF-8): save it as UTF-8, or name {what}") from None
    if (place := text.find("\0")) >= 0:
        line = text.count("\n", 0, place) + 1
        raise UsageError(f"can't read {path} (line {line} has a NUL character): name {what}")
    return text


def json_of(path: Path, what: str) -> Any:
    """Return what a file of JSON holds; raises UsageError as ``read_text``, or when it isn't JSON."""
    try:
        return json.loads(read_text(path, what))
    except (ValueError, RecursionError) as error:  # Of thousands of brackets, and of digits.
        why = "it is nested too deep" if isinstance(error, RecursionError) else str(error)[:200]
        raise UsageError(f"{path} is not {what} ({why}): name one that is") from None


def _octets(path: Path) -> bytes:
    """Return what a file has, up to one octet more than is taken; a pipe that nobody writes to is an error."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb", buffering=0) as file:
        found, due_s = bytearray(), time.monotonic() + PIPE_S
        is_pipe = stat.S_ISFIFO(os.fstat(handle).st_mode)
        while len(found) <= TEXT_MOST:
            some = file.read(min(1 << 20, TEXT_MOST + 1 - len(found)))
            if some:
                found += some
            elif not is_pipe or (some is not None and found):
                return bytes(found)
            elif time.monotonic() > due_s and not found:
                raise OSError(f"nothing was written to this pipe within {PIPE_S:g} s")
            else:
                select.select([handle] if some is None else [], [], [], 0.05)
        return bytes(found)
