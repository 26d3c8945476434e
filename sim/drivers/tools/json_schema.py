# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Checks plain data against a JSON Schema, for what the schemas of the host use of it."""

import re
from typing import Any


def problems(value: Any, schema: dict[str, Any], place: str = "") -> list[str]:
    """Return what in a value is not as a JSON Schema says, for what ours uses of it."""
    return _problems(value, schema, place, schema.get("$defs", {}))


def _problems(value: Any, wanted: dict[str, Any], place: str, defined: dict[str, Any]) -> list[str]:
    if "$ref" in wanted:
        wanted = defined[wanted["$ref"].rpartition("/")[2]]
    if "anyOf" in wanted:
        found = [_problems(value, one, place, defined) for one in wanted["anyOf"]]
        return [] if [] in found else [line for lines in found for line in lines]
    if "enum" in wanted:
        return [] if value in wanted["enum"] else [f"{place}: {value!r}"]
    types: dict[str, Any] = {"integer": int, "number": (int, float), "string": str, "boolean": bool, "array": list, "object": dict}
    if not isinstance(value, types[wanted["type"]]) or (isinstance(value, bool) and wanted["type"] != "boolean"):
        return [f"{place}: {value!r} is no {wanted['type']}"]
    if wanted["type"] == "array":
        return [line for item in value for line in _problems(item, wanted["items"], place, defined)]
    if wanted["type"] == "object" and "properties" not in wanted:
        return [line for item in value.values() for line in _problems(item, wanted["additionalProperties"], place, defined)]
    if wanted["type"] == "object":
        lines = [f"{place}.{key}: unknown" for key in value if key not in wanted["properties"]]
        lines += [f"{place}: lacks {key}" for key in wanted.get("required", ()) if key not in value]
        known = {key: one for key, one in value.items() if key in wanted["properties"]}
        return lines + [
            line for key, one in known.items() for line in _problems(one, wanted["properties"][key], f"{place}.{key}", defined)
        ]
    if wanted["type"] == "string" and not re.search(wanted["pattern"], value):
        return [f"{place}: {value!r} is not {wanted['pattern']}"]
    if not wanted.get("minimum", value) <= value <= wanted.get("maximum", value):
        return [f"{place}: {value} is out of range"]
    return []
