# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what LiteProbe does under conditions that it did not choose: a network that loses datagrams, a second host,
a process that is killed, a loaded hop, records that are missing.

Prints one line a figure (``name value unit target ok|short``), writes build/bench/hostile.json, and ends with 1 when one
falls short. Every row draws its conditions from a seed, and prints what it left out, with the count.
"""

import sys

from _figures import Row, run
from _hostile_capacity import capacity_row
from _hostile_control import hostile_host, silence, trains, two_hosts
from _hostile_reports import reports
from _hostile_signals import signals_row

ROWS: dict[str, Row] = {
    "trains": trains,
    "two_hosts": two_hosts,
    "silence": silence,
    "signals": signals_row,
    "hostile_host": hostile_host,
    "capacity": capacity_row,
    "reports": reports,
}


if __name__ == "__main__":
    sys.exit(run("hostile", __doc__, ROWS))
