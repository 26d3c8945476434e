# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Keeps the results of a server in a folder: a folder each, whose name nobody can guess, so that its address can be sent.

Stands alone: it is a program, too, which makes a report in a process of its own: plots take ten times the memory of the server.
"""

import importlib
import json
import math
import pickle
import re
import secrets
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from liteprobe.host.base import programs
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.base.output import write_text

NUMBER = re.compile(r"[A-Za-z0-9_-]{22}")
META, REPORT = "meta.json", "report.pickle"
#: Files of a result that are given away, and their types.
FILES = {
    "result.json": "application/json",
    "report.html": "text/html; charset=utf-8",
    "document.yaml": "text/plain; charset=utf-8",
    "capture.pcapng": "application/octet-stream",
    "trials.jsonl": "text/plain; charset=utf-8",
}
LISTED = 200  # Results of which a list has a line.
UPLOADS = 16  # Captures that are kept for a replay: the oldest goes.


def dumps(content: Any, **more: Any) -> str:
    """Return plain data as JSON. NaN and infinity, which JSON doesn't have, become null."""
    try:
        return json.dumps(content, allow_nan=False, **more)
    except ValueError:
        return json.dumps(_finite(content), allow_nan=False, **more)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


class Store:
    """Keeps results below a folder, which its owner alone can read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uploads = folder / "uploads"
        self.uploads.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
        self._making = threading.Lock()

    def new(self) -> tuple[str, Path]:
        """Make a folder; return its name of 132 bits, and the folder."""
        number = secrets.token_urlsafe(16)
        path = self.folder / number
        path.mkdir(mode=0o700)
        return number, path

    def keep(self, number: str, meta: Mapping[str, Any], content: Mapping[str, Any], document: str) -> None:
        """Write the files of a result."""
        path = self.folder / number
        write_text(path / "result.json", dumps(content, indent=1) + "\n")
        if document:
            write_text(path / "document.yaml", document)
        write_text(path / META, dumps({**meta, "files": self._names(path)}) + "\n")

    def keep_report(self, number: str, module: str, *arguments: Any) -> None:
        """Keep what a report is made of: a module of host/report, and arguments of its ``write`` after the path."""
        with suppress(TypeError, AttributeError, pickle.PicklingError):
            (self.folder / number / REPORT).write_bytes(pickle.dumps((module, arguments)))

    def forget(self, number: str) -> None:
        """Remove a folder that nothing came of."""
        shutil.rmtree(self.folder / number, ignore_errors=True)

    def listed(self) -> list[dict[str, Any]]:
        """Return what is known of the newest results, the newest first."""
        found = sorted(self.folder.glob(f"*/{META}"), key=lambda path: path.stat().st_mtime, reverse=True)
        return [{**json.loads(path.read_text()), "files": self._names(path.parent)} for path in found[:LISTED]]

    def file(self, number: str, name: str) -> Path | None:
        """Return a file of a result, a report made where there is none yet; None: there is none.

        Raises ProbeError where a report can't be made.
        """
        if not NUMBER.fullmatch(number) or name not in FILES:
            return None
        path = self.folder / number / name
        if name == "report.html" and not path.exists() and (path.parent / REPORT).exists():
            with self._making:
                if not path.exists():
                    command = programs.module("liteprobe.host.serve.store", str(path.parent))
                    done = subprocess.run(
                        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
                    )
                    if done.returncode:
                        said = done.stderr.strip().splitlines() or ["it said nothing"]
                        raise ProbeError(f"the report can't be made: {said[-1]}")
        return path if path.is_file() else None

    def upload(self) -> Path:
        """Return where the next capture is written to; the oldest ones are removed."""
        there = sorted(self.uploads.iterdir(), key=lambda path: path.stat().st_mtime)
        for path in there[: max(0, len(there) - UPLOADS + 1)]:
            path.unlink(missing_ok=True)
        return self.uploads / secrets.token_hex(8)

    # # #

    @staticmethod
    def _names(path: Path) -> list[str]:
        return [
            name for name in FILES if (path / name).exists() or (name == "report.html" and (path / REPORT).exists())
        ]


def main(folder: str) -> None:
    """Make the report of a result."""
    path = Path(folder)
    module, arguments = pickle.loads((path / REPORT).read_bytes())
    part = path / "report.part"
    importlib.import_module(f"liteprobe.host.report.{module}").write(part, *arguments)
    part.replace(path / "report.html")


if __name__ == "__main__":
    main(sys.argv[1])
