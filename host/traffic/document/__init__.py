# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Streams, and networks, as a YAML document: read with the line of each error, written, and described as JSON Schema."""

from liteprobe.host.traffic.document.network import network_schema, read_network
from liteprobe.host.traffic.document.network_write import write_network
from liteprobe.host.traffic.document.read import read_document, schema
from liteprobe.host.traffic.document.write import write_document

__all__ = ["network_schema", "read_document", "read_network", "schema", "write_document", "write_network"]
