# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A bench as one Verilog file."""

from pathlib import Path
from typing import Any

from litex.gen.fhdl.verilog import convert

from liteprobe.sim.system.build import inline_memories


def write_module(bench: Any, name: str, path: Path) -> None:
    """Write ``bench``, whose pins are ``bench.pins``, to ``path`` as module ``name``, with the contents of its memories."""
    output = convert(bench, ios=bench.pins, name=name, regular_comb=False)
    path.write_text(inline_memories(output.main_source, output.data_files), encoding="utf-8")
