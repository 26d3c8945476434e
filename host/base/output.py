# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes files whole, or line by line as results come, and names the file when that fails."""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STDOUT = Path("-")


@contextmanager
def named(path: Path) -> Iterator[None]:
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


def write_json(path: Path, content: Mapping[str, Any] | Sequence[Any]) -> None:
    """Write a document as JSON, as of ``write_text``."""
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


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
