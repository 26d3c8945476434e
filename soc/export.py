# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Exports the register map of a finalized SoC, and the number that names it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from litex.soc.integration import export

from liteprobe.cores.formats import map_hash


def soc_map(soc: Any) -> dict[str, Any]:
    """Return the map of a finalized ``soc``: what LiteX writes as csr.json, and the snapshots' registers in it.

    Raises ValueError where two registers have one name: the map would have one of them.
    """
    regions = {name: region.obj for name, region in soc.csr_regions.items() if isinstance(region.obj, list)}
    names = [f"{name}_{csr.name}" for name, registers in regions.items() for csr in registers]
    words = snapshot_registers(soc)
    if twice := [name for name, count in Counter([*names, *words]).items() if count > 1]:
        raise ValueError(f"two registers have the name {', '.join(twice)}: give one of them, or its module, another")
    text = export.get_csr_json(csr_regions=soc.csr_regions, constants=soc.constants, mem_regions=soc.mem_regions)
    loaded: dict[str, Any] = json.loads(text)
    loaded["csr_registers"] |= words
    return loaded


def snapshot_registers(soc: Any) -> dict[str, dict[str, Any]]:
    """Return the words of the ports' snapshots, and of other memories, as registers: to the host they are some like all others."""
    found = {}
    for region, places in getattr(soc, "words_as_registers", {}).items():
        base = soc.mem_regions[region].origin
        found |= {name: {"addr": base + 4 * place, "size": 1, "type": "ro"} for name, place in places.items()}
    for port, layout in getattr(soc, "snapshots", {}).items():
        base = soc.mem_regions[f"{port}_snapshot"].origin
        for name, (first, words) in layout.items():
            found[f"{port}_rx_{name}"] = {"addr": base + 4 * first, "size": words, "type": "ro"}
    return found


def identity(soc: Any) -> int:
    """Return the hash of the map of a finalized ``soc``, as its ``probe_map_hash`` register reads."""
    return map_hash(soc_map(soc))


def write_map(soc: Any, path: Path) -> None:
    """Write the map of a finalized ``soc`` as csr.json, and beside it as csr.csv, which LiteX's own clients read.

    Of a probe with a `scope`, its signals are in scope.csv.
    """
    found = soc_map(soc)
    path.write_text(json.dumps(found, indent=4) + "\n", encoding="utf-8")
    rows = export.get_csr_csv(csr_regions=soc.csr_regions, constants=soc.constants, mem_regions=soc.mem_regions)
    words = snapshot_registers(soc).items()
    rows += "".join(f"csr_register,{name},0x{word['addr']:08x},{word['size']},{word['type']}\n" for name, word in words)
    path.with_suffix(".csv").write_text(rows, encoding="utf-8")
    if hasattr(soc, "scope"):
        soc.scope.export_csv(SimpleNamespace(get_name=lambda signal: signal.backtrace[-1][0]), str(path.with_name("scope.csv")))
