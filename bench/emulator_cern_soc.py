# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``cern_soc`` of the bench ``emulator``: CERN's experiment, shortened, through the whole simulated probe.

The stations of row ``cern`` at the pins of the probe whose frames wait in SDRAM. Each frame that left the probe, and each frame of
both stations on the reference alone, must be the same at the same tick; so must the transfer time.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from liteprobe.sim.drivers.emulator.cern import CERN, Kind, Line, site
from liteprobe.sim.drivers.emulator.stations import build
from liteprobe.sim.drivers.system.emulator import emulating
from liteprobe.sim.drivers.system.stations import Fetch, fetch
from liteprobe.sim.drivers.tools.figures import Figure, row
from liteprobe.sim.system.build import build_probe

FAST = Line(octet=10, delay=125_000)  # 100 Mb/s, 1 ms.
LIMIT_S = 5.0

CASES = {
    # 10 Mb/s and 12.5 ms each way, a queue of 128, as CERN had it.
    "own_constant": Fetch(CERN, Kind.CONSTANT, 0.8, site(3, 40_000), is_kept=True),
    "own_exponential": Fetch(CERN, Kind.EXPONENTIAL, 0.8, site(3, 40_000), is_kept=True),
    "fast_constant": Fetch(FAST, Kind.CONSTANT, 0.8, site(8, 150_000), is_kept=False),
    "fast_exponential": Fetch(FAST, Kind.EXPONENTIAL, 0.9, site(8, 150_000), is_kept=False),
    "fast_bursts": Fetch(FAST, Kind.BURSTS, 0.8, site(8, 150_000), is_kept=True),
}
FULL_CASES = {
    "own_exponential_off": Fetch(CERN, Kind.EXPONENTIAL, 0.9, site(3, 40_000), is_kept=False),
    "own_constant_off": Fetch(CERN, Kind.CONSTANT, 0.8, site(3, 40_000), is_kept=False),
}


@row("emulator")
def test_cern_soc(is_full: bool) -> Iterator[Figure]:
    """Yield what differs from the reference in each case, and frames that left late."""
    reason = build.lacking()
    if reason:
        print(f"cern_soc skipped: {reason}")
        return
    folder = build_probe("own", with_cpu=False, preset="emulator")
    for name, asked in {**CASES, **(FULL_CASES if is_full else {})}.items():
        with TemporaryDirectory() as files, emulating(folder, Path(files)) as emulated:
            found = fetch(emulated, asked, LIMIT_S)
        for line in found.differences[:5]:
            print(f"{name}: {line}")
        print(
            f"{name}: {found.frames} frames, {found.lost} lost, {found.resent} sent again, {1e3 * found.seconds:.3f} ms"
        )
        yield Figure(f"cern_soc_{name}_off", len(found.differences), "differences", 0)
        yield Figure(f"cern_soc_{name}_late", found.late, "frames", 0)
