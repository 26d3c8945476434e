# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what replay, sets and the agent at the device are held to.

Prints one line a figure (``name value unit target ok|short``), writes build/bench/replay.json, and ends with 1 when one falls
short. ``memory`` runs the compiled SDRAM controller, four masters at its burst ports and one at its bus, against a chip that
knows its times: a wrong word, a wrong order or a time of the chip that isn't kept fails the row. ``port`` runs a compiled port
of the gateware: from words that come into its ring to the octets on its PHY, ``sys`` at 50 MHz and up to 100 ppm off, in a
memory that gives a burst of 64 words each 80 cycles; every octet and every start against a model that knows only the frames and
when their words came. ``system`` runs the whole simulated probe, streamed to by UDP. ``servo`` has its clock locked by Zephyr in
the same SDRAM, and is skipped where there is no Zephyr. ``sets`` and ``sets_system`` do the same
for configuration sets. ``records`` takes 10^5 (``--full``: 10^6) frames of exponential gaps and random lengths at 8/10 load
from a file, and every packet of the corpora of tcpdump and nDPI: each word against a model in plain Python, each time against
whole fractions. ``loss`` streams through a network that loses, doubles and reorders datagrams both ways and stands still for 1
to 100 ms, on real sockets. ``host`` makes captures of 1 GB up, prepares them and streams them over this machine's loopback to a
process that takes all: what the preparing, the sending and the taking process reach together. ``agent`` runs the agent in
Python and the one in C (with sanitizers) as processes, and compares each answer to fuzzed messages with a model of the grammar.
"""

import sys

from _figures import Row, run
from _replay_agent import agent
from _replay_datagrams import datagrams
from _replay_host import host, loss, records
from _replay_memory import memory
from _replay_port import port
from _replay_servo import servo
from _replay_sets import sets, whole_probe
from _replay_system import system

ROWS: dict[str, Row] = {
    "memory": memory,
    "datagrams": datagrams,
    "port": port,
    "system": system,
    "servo": servo,
    "sets": sets,
    "sets_system": whole_probe,
    "records": records,
    "loss": loss,
    "host": host,
    "agent": agent,
}


if __name__ == "__main__":
    sys.exit(run("replay", __doc__, ROWS))
