# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Streams as a YAML document: read with the line of each error, written, and described as JSON Schema."""

from liteprobe.host.traffic.document.read import read_document, schema
from liteprobe.host.traffic.document.write import write_document

__all__ = ["read_document", "schema", "write_document"]
