# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The report of a bring-up: plain data, and Markdown for an issue."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from liteprobe.host.report.files import environment
from liteprobe.host.suites.bring_up import BringUpCheck

FORMAT = "liteprobe-bring-up"
FORMAT_VERSION = 1


def document(facts: Mapping[str, Any], checks: Sequence[BringUpCheck]) -> dict[str, Any]:
    """Return everything about a bring-up as plain data."""
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": environment(),
        "probe": dict(facts),
        "checks": [asdict(check) for check in checks],
    }


def as_markdown(found: Mapping[str, Any]) -> str:
    """Return a `document` as a page that can be attached to an issue."""
    parts = [
        f"# Bring-up of {found['probe']['build']}, {found['created']}",
        "\n## Checks\n",
        _table(("check", "result", "what was seen"), [(c["name"], c["verdict"], c["seen"]) for c in found["checks"]]),
        "\n## Probe\n",
        _table(("fact", "value"), list(found["probe"].items())),
        "\n## Host\n",
        _table(("fact", "value"), list(found["environment"].items())),
        "\n## Figures\n",
        "```json",
        json.dumps({check["name"]: check["figures"] for check in found["checks"] if check["figures"]}, indent=1),
        "```",
    ]
    return "\n".join(parts) + "\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(content: object) -> str:
    return " ".join(str(content).split()).replace("|", "\\|")
