# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes settings and readings of a device as files beside those of a measurement: JSON and Parquet."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from liteprobe.host.agent.client import AgentClient, Event, row
from liteprobe.host.agent.message import Scalar, type_of
from liteprobe.host.base import extras
from liteprobe.host.base.validate import validated
from liteprobe.host.report.files import head

with extras.named():
    import pyarrow as pa
    import pyarrow.parquet as pq

FORMAT = "liteprobe-agent"
#: A column of values for each type, of which one is not null.
TYPES = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "text": pa.string(), "octets": pa.binary()}
SCHEMA = pa.schema(
    [
        ("action", pa.string()),
        ("name", pa.string()),
        *((f"{column}_{kind}", arrow) for column in ("asked", "value") for kind, arrow in TYPES.items()),
        *((name, pa.string()) for name in ("status", "error")),
        *((name, pa.timestamp("ns")) for name in ("sent_utc", "received_utc", "agent_utc")),
        *((name, pa.int64()) for name in ("agent_monotonic_ns", "agent_duration_ns", "number", "missed")),
    ]
)


@validated
def document(client: AgentClient, command: Sequence[str] = ()) -> dict[str, Any]:
    """Return everything that a client did as plain data, for `write_json`: one row an event."""
    return {
        **head(FORMAT, command),
        "address": client.address,
        "device": client.device.name,
        "rows": [row(event) for event in client.events],
    }


@validated
def table(events: Sequence[Event]) -> pa.Table:
    """Return events as a table of `SCHEMA`."""
    return pa.Table.from_pylist([_cells(event) for event in events], schema=SCHEMA)


@validated
def write_parquet(path: Path, events: Sequence[Event]) -> None:
    """Write events to a file, a row each; raises OSError."""
    pq.write_table(table(events), path)


def _cells(event: Event) -> dict[str, Any]:
    plain = row(event)
    times = {f"{name}_utc": plain[f"{name}_utc_ns"] for name in ("sent", "received", "agent")}
    names = ("action", "name", "status", "error", "agent_monotonic_ns", "agent_duration_ns", "number", "missed")
    return {name: plain[name] for name in names} | times | _typed("asked", event.asked) | _typed("value", event.value)


def _typed(column: str, value: Scalar | None) -> dict[str, Scalar]:
    return {} if value is None else {f"{column}_{type_of(value).name.lower()}": value}
