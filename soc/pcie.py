# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Shows the bus in BAR0 of PCIe, and writes the sources of the Linux driver of a build."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

from migen import *

from litex.gen import *

from litex.soc.integration.export import get_csr_header, get_mem_header, get_soc_header
from litex.soc.interconnect import wishbone

from litepcie.frontend.wishbone import LitePCIeWishboneMaster

from liteprobe.cores.formats import BAR0_SEGMENTS, BAR0_SEGMENT_BYTES, DMA_SLOTS, DMA_SLOT_BYTES

BAR0_BYTES    = len(BAR0_SEGMENTS)*BAR0_SEGMENT_BYTES
ADDRESS_WIDTH = 64
MSI_BLOCKS    = 32 # Of a channel, from one interrupt to the next: LitePCIe's own pace.

# Bar Window ---------------------------------------------------------------------------------------

class BarWindow(LiteXModule):
    """Shows the bus's regions side by side in BAR0, because they lie further apart than a BAR is long.

    Segment n of BAR0 is the bus from ``BAR0_SEGMENTS[n]`` on, BAR0_SEGMENT_BYTES long. No register chooses a segment, so that
    several programs may read and write at once.

    Parameters
    ----------
    endpoint : LitePCIeEndpoint

    Attributes
    ----------
    bus : wishbone.Interface, master

    Limits: single 32-bit accesses, as of LitePCIe's bridge.
    """
    def __init__(self, endpoint):
        self.bus    = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.bridge = LitePCIeWishboneMaster(endpoint)

        # # #

        theirs, bits = self.bridge.wishbone, log2_int(BAR0_SEGMENT_BYTES//4)
        number = theirs.adr[bits:bits + log2_int(len(BAR0_SEGMENTS))]
        self.comb += [
            theirs.connect(self.bus, omit={"adr"}),
            Case(number, {n: self.bus.adr.eq(Cat(theirs.adr[:bits], C(base >> bits + 2, 30 - bits)))
                for n, base in enumerate(BAR0_SEGMENTS)}),
        ]

def ends_failed_reads(endpoint):
    """Return what lets an answer with an error end its request, as a whole one does; it belongs to the `LitePCIeEndpoint`.

    LitePCIe 2024.12 would wait for the rest for ever, keep the tag, and with four such answers read no more (its issue 166).
    """
    answers = endpoint.crossbar.phy_master.sink
    return If(answers.err, answers.end.eq(1)) # After the endpoint's own statement, and so in its place.

def check_reach(regions):
    """Raise ValueError when a region of the bus, by name, can't be reached through BAR0; the processor keeps two for itself."""
    for name, region in regions.items():
        if name in ("rom", "sram"):
            continue
        starts = [base for base in BAR0_SEGMENTS if base <= region.origin < base + BAR0_SEGMENT_BYTES]
        if not starts or region.origin + region.size > starts[0] + BAR0_SEGMENT_BYTES:
            raise ValueError(f"{name} at {region.origin:#x}, {region.size} octets, is out of reach of BAR0: "
                f"change BAR0_SEGMENTS of cores/formats")

# Driver -------------------------------------------------------------------------------------------

# Lines of kernel/config.h and what they become. A descriptor is a slot, and `last` ends it early (DMA_BUFFER_ALIGNED), so
# that each block begins in a slot of its own: docs/pcie.md.
CONFIG = {
    "#define DMA_BUFFER_COUNT       256\n": f"#define DMA_BUFFER_COUNT       {DMA_SLOTS}\n",
    "#define DMA_BUFFER_SIZE        8192\n": f"#define DMA_BUFFER_SIZE        {DMA_SLOT_BYTES}\n",
    "//#define DMA_BUFFER_ALIGNED\n": "#define DMA_BUFFER_ALIGNED\n",
}

# Lines of kernel/Makefile and kernel/init.sh, which loads modules of the present folder, whichever that is. Their second
# module, a serial line of the console, is left out: it doesn't compile against Linux 6.12, and takes octets that are our
# own console's.
MAKEFILE = {"obj-m = litepcie.o liteuart.o\n": "obj-m = litepcie.o\n", "all: litepcie.ko liteuart.ko\n": "all: litepcie.ko\n"}
INIT = {"#!/bin/sh\n": '#!/bin/sh\ncd "$(dirname "$0")" || exit 1\n', "# Install liteuart module.\ninsmod liteuart.ko\n": ""}


def litepcie_sources() -> Path:
    """Return the folder of LitePCIe's software, which comes with its package."""
    spec = importlib.util.find_spec("litepcie")
    assert spec is not None and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "software"


def change(path: Path, lines: dict[str, str]) -> None:
    """Change lines of a file of LitePCIe's; raises ValueError when one isn't there once: then it is another LitePCIe."""
    text = path.read_text(encoding="utf-8")
    for theirs, ours in lines.items():
        if text.count(theirs) != 1:
            raise ValueError(f"{path.name} of LitePCIe has no line {theirs.strip()!r}: install the litepcie of pyproject.toml")
        text = text.replace(theirs, ours)
    path.write_text(text, encoding="utf-8")


def write_driver(soc: Any, folder: Path) -> None:
    """Write ``kernel`` and ``user`` of a finalized ``soc`` into ``folder``, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("kernel", "user"):
        shutil.copytree(litepcie_sources() / part, folder / part)
    kernel = folder / "kernel"
    for name, lines in {"config.h": CONFIG, "Makefile": MAKEFILE, "init.sh": INIT}.items():
        change(kernel / name, lines)
    (kernel / "liteuart.c").unlink()
    headers = {
        "csr.h": get_csr_header(soc.csr_regions, soc.constants, with_access_functions=False),
        "soc.h": get_soc_header(soc.constants, with_access_functions=False),
        "mem.h": get_mem_header(soc.mem_regions),
    }
    for name, text in headers.items():
        (kernel / name).write_text(text, encoding="utf-8")
