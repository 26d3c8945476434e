# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``servo`` of the bench ``replay``: CPU time of the clock's edges while a replay takes all that it can of firmware's SDRAM.

The whole simulated probe with its processor and Zephyr, main RAM and rings in one SDRAM of 80 MHz where ``sys`` has 50, as on the
boards. Skipped, with the reason, where there is no Zephyr. A cycle is a cycle of the processor; milliseconds are those of 50 MHz.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from liteprobe.cores.formats import ClockState
from liteprobe.host.base.errors import ProbeError
from liteprobe.sim.drivers.system import servo_beside
from liteprobe.sim.drivers.system.firmware_run import CYCLES_MS, simulated_tools
from liteprobe.sim.drivers.tools.figures import Figure, note, row

MOST_MS = 5.0


@row("replay")
def test_servo(is_full: bool) -> Iterator[Figure]:
    """Alone, beside two ports that loop what their rings hold, and beside one that loops and one that is streamed to."""
    try:
        tools = simulated_tools()
    except ProbeError as error:
        if "ZEPHYR_BASE" in os.environ:
            raise
        note(f"# servo: skipped, it needs the firmware: {error}")
        return
    pulses = 30 if is_full else 6
    with TemporaryDirectory() as files, servo_beside.locked(tools, Path(files)) as clock:
        work = clock.running.work()
        yield Figure("servo_alone_last", work.last / CYCLES_MS, "ms", MOST_MS)
        yield Figure("servo_alone_most", work.most / CYCLES_MS, "ms", MOST_MS)
        loops, streams = dict.fromkeys((0, 1), servo_beside.LOOPED), {0: servo_beside.STREAMED, 1: servo_beside.LOOPED}
        for name, ports in (("looped", loops), ("streamed", streams)):
            found = servo_beside.beside(clock, ports, pulses)
            yield Figure(f"servo_{name}_edges", found.edges, "edges", pulses / 2, is_least=True)
            yield Figure(f"servo_{name}_last", found.work.last / CYCLES_MS, "ms", MOST_MS)
            yield Figure(f"servo_{name}_most", found.work.most / CYCLES_MS, "ms", MOST_MS)
            yield Figure(f"servo_{name}_unlocked", not found.is_locked, "clocks", 0)
            underruns = sum(port.underruns for port in found.ports)
            # No figures: what two ports sustain beside the processor has no target, and lock-step keeps no stream up.
            note(f"# servo_{name}: {found.sustained:.1f} % of port 0's line, {underruns} underruns")
            clock.running.until({ClockState.LOCKED}, periods=10)
