# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what the emulated network is held to.

Prints one line a figure (``name value unit target ok|short``), writes build/bench/emulator.json, and ends with 1 when one falls
short. ``theory`` holds the reference, which knows nothing of the gateware, to the theory of queues (M/D/1, M/D/1/K, N*D/D/1, strict
priority, background), of loss (Gilbert, Gilbert-Elliott) and of shapers (bucket, bandwidth traces). ``engine`` takes random frames
through random networks in the compiled gateware of a direction, and compares outcomes, departures and counters with the reference;
``speed`` finds the least clock at which it takes a full line.
``memory`` finds the most of a line that the SDRAM of a whole simulated probe takes, ``delay`` the longest delay that a store holds.
``cern`` fetches a web site through the reference, with background, by TCP stacks on simulated time, as CERN did;
``cern_soc`` does so, shortened, through the whole simulated probe, and compares it frame by frame. ``netem`` sends
the same frames through netem of a user-mode kernel, too.
"""

import sys

from _emulator_cern import cern
from _emulator_cern_soc import cern_soc
from _emulator_engine import engine
from _emulator_memory import delay, memory
from _emulator_netem import netem
from _emulator_speed import speed
from _emulator_theory import theory
from _figures import Row, run

ROWS: dict[str, Row] = {
    "theory": theory,
    "engine": engine,
    "speed": speed,
    "memory": memory,
    "delay": delay,
    "cern": cern,
    "cern_soc": cern_soc,
    "netem": netem,
}


if __name__ == "__main__":
    sys.exit(run("emulator", __doc__, ROWS))
