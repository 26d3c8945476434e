# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes files whole, or line by line as results come; one that can't be written is named, and keeps no other one from it."""

import errno
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.interrupt import Interrupted, stop_requests
from liteprobe.host.base.text import is_ascii

STDOUT = Path("-")
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
AWAY = (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ETIMEDOUT)


class OutputError(ProbeError):
    """Some outputs could not be written, each for the reason that a line of the message says; all others were.

    ``results``: what was measured.
    """

    def __init__(self, lines: Sequence[str], results: Sequence[Any] = ()) -> None:
        super().__init__("\n".join(lines))
        self.results = list(results)


def words_of(error: OSError) -> str:
    """Return what an error of the system means, and what to do."""
    what = error.strerror or str(error)
    where = "stdout" if error.filename in (None, str(STDOUT)) else error.filename
    if error.errno in FULL:
        return f"cannot write {where} ({what}): free space on the disk, or name another file, and run again"
    if error.errno == errno.EBADF and where == "stdout":
        return "cannot write to stdout, which is closed: send it to a file, or to /dev/null"
    if error.errno in AWAY:
        return f"cannot reach {where} ({what}): check its address, and that the server there runs"
    if where != "stdout":
        return f"cannot use {where} ({what}): check its name and its permissions"
    return f"{what}: check the files and devices that the command names"


class Outputs:
    """Outputs of a command, written one after the other; what keeps one of them from it is kept for the end."""

    def __init__(self) -> None:
        self.errors: list[OSError] = []
        self._ended: set[Path | str] = set()  # What could not be written is left alone from then on.

    def write(self, path: Path | str | None, act: Callable[[], object]) -> bool:
        """Have an output written by ``act``, a file or a place, unless none is wanted (None); return whether it was."""
        if path is None or path in self._ended:
            return False
        try:
            with named(path):
                act()
                if path == STDOUT:
                    sys.stdout.flush()
        except OSError as error:
            self.errors.append(error)
            self._ended.add(path)
            return False
        return True

    def take(self, other: "Outputs") -> None:
        """Take over what kept others' outputs from being written."""
        self.errors += other.errors

    @property
    def said(self) -> list[str]:
        """A line for each output that could not be written; none where the reader of stdout has gone, as head does."""
        return [words_of(error) for error in self.errors if not isinstance(error, BrokenPipeError)]

    def end(self) -> None:
        """Raise OutputError where something could not be written; BrokenPipeError where only the reader of stdout has gone."""
        if self.said:
            raise OutputError(self.said)
        if self.errors:
            raise self.errors[0]


@contextmanager
def outputs(cause: BaseException | None = None) -> Iterator[Outputs]:
    """Give what writes outputs; at the end their errors are raised, or become notes of ``cause``, which ended the measurement.

    A signal waits until all are written, and is raised then; behind a signal the next one ends the writing.
    """
    found = Outputs()
    if isinstance(cause, KeyboardInterrupt):
        yield found
    else:
        with stop_requests() as request:
            yield found
        if request.is_made and cause is None:
            raise Interrupted(request.number, "; ".join(found.said) or "all was measured and written")
    if cause is None:
        found.end()
    else:
        for line in found.said:
            cause.add_note(line)


@contextmanager
def named(path: Path | str) -> Iterator[None]:
    """Name the file in errors of writing it, which the system leaves out."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a whole file; ``-`` is stdout. A file that is there is replaced when the new one is whole.

    Raises OSError with the file's name.
    """
    if path == STDOUT and is_ascii():  # Data stay UTF-8.
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())
        return
    if path == STDOUT:
        sys.stdout.write(text)
        return
    target = path.resolve()
    part = target.with_name(f".{target.name}.part")
    with named(path):
        if (target.exists() and not target.is_file()) or not os.access(target.parent, os.W_OK):
            target.write_text(text, encoding="utf-8")  # A pipe or a device, or a folder that takes no new file.
            return
        try:
            part.write_text(text, encoding="utf-8")
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def write_synced(path: Path, octets: Any) -> None:
    """Write a file that a loss of power doesn't take away: whole, or not at all; it and its name are on the disk afterwards.

    Raises OSError.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("xb") as stream:
            stream.write(octets)
            stream.flush()
            os.fsync(stream.fileno())
        part.rename(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_json(path: Path, content: Mapping[str, Any] | Sequence[Any]) -> None:
    """Write a document as JSON, as of ``write_text``."""
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def hold(file: int, refusal: str) -> None:
    """Hold an open file until it is closed; raise UsageError with the words of ``refusal`` where another program holds it."""
    try:
        import fcntl
    except ImportError:  # Windows.
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UsageError(refusal) from None


@contextmanager
def in_turn(path: Path, say: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Have one program at a time run the body, of those that name the same file, which is made; ``say`` is called before a wait."""
    with path.open("w") as stream:
        try:
            hold(stream.fileno(), "")
        except UsageError:
            import fcntl

            say()
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


class Lines:
    """Writes JSON, a line a document, each at once; ``path``: ``-`` is stdout."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with named(path):
            self._stream = sys.stdout if path == STDOUT else path.open("w", encoding="utf-8")

    def write(self, content: dict[str, Any]) -> None:
        with named(self._path):
            self._stream.write(json.dumps(content) + "\n")
            self._stream.flush()

    def close(self) -> None:
        if self._path != STDOUT:
            self._stream.close()
