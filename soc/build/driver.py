# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sources of the Linux driver and of its C library for a probe with PCIe: LitePCIe's own, with our registers and rings."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

from litex.soc.integration.export import get_csr_header, get_mem_header, get_soc_header

from liteprobe.cores.formats import DMA_SLOT_BYTES, DMA_SLOTS

# Lines of kernel/config.h and what they become. A descriptor is a slot, and `last` ends it early (DMA_BUFFER_ALIGNED), so
# that each block begins in a slot of its own: docs/pcie.md.
CONFIG = {
    "#define DMA_BUFFER_COUNT       256\n": f"#define DMA_BUFFER_COUNT       {DMA_SLOTS}\n",
    "#define DMA_BUFFER_SIZE        8192\n": f"#define DMA_BUFFER_SIZE        {DMA_SLOT_BYTES}\n",
    "//#define DMA_BUFFER_ALIGNED\n": "#define DMA_BUFFER_ALIGNED\n",
}


def litepcie_sources() -> Path:
    """Return the folder of LitePCIe's software, which comes with its package."""
    spec = importlib.util.find_spec("litepcie")
    assert spec is not None and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "software"


def configure(text: str) -> str:
    """Return kernel/config.h with our rings.

    Raises ValueError when a line isn't there: then it is another LitePCIe.
    """
    for theirs, ours in CONFIG.items():
        if text.count(theirs) != 1:
            raise ValueError(f"config.h of LitePCIe has no line {theirs.strip()!r}: install the litepcie of pyproject.toml")
        text = text.replace(theirs, ours)
    return text


def write_driver(soc: Any, folder: Path) -> None:
    """Write ``kernel`` and ``user`` of a finalized ``soc`` into ``folder``, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("kernel", "user"):
        shutil.copytree(litepcie_sources() / part, folder / part)
    kernel = folder / "kernel"
    config = kernel / "config.h"
    config.write_text(configure(config.read_text(encoding="utf-8")), encoding="utf-8")
    headers = {
        "csr.h": get_csr_header(soc.csr_regions, soc.constants, with_access_functions=False),
        "soc.h": get_soc_header(soc.constants, with_access_functions=False),
        "mem.h": get_mem_header(soc.mem_regions),
    }
    for name, text in headers.items():
        (kernel / name).write_text(text, encoding="utf-8")
