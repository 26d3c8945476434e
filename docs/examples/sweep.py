# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends trains of several lengths, one after the other, and writes a table, JSON and the HTML report."""

import sys
from pathlib import Path

from liteprobe.host import TrainProgram
from liteprobe.host.base.output import write_json
from liteprobe.host.report.files import document
from liteprobe.host.report.page import write_report
from liteprobe.host.suites import sweep

LENGTHS = (60, 256, 1514)


def main(url: str = "sim://switch?latency=3us&cpu=0", folder: str = ".") -> None:
    """Measure each length with trains of 20 and of 100 frames; by default through a simulated switch."""
    programs = sweep.programs_for(LENGTHS, (20, 100), TrainProgram(60, 1, repeats=2))
    measured = sweep.run(sweep.SweepRequest("switch", url, programs))
    print("length count     Mb/s  delay ns  lost")
    for row in measured.rows:
        rate, delay = row["dispersion_rate_bps"]["mean"], row["owd_ns"]["mean"]
        print(f"{row['length']:6} {row['count']:5} {rate / 1e6:8.3f} {delay:9.1f} {row['lost']:5}")
    content = document([measured], sys.argv)
    write_json(Path(folder) / "sweep.json", content)
    write_report(Path(folder) / "sweep.html", [measured], content)


if __name__ == "__main__":
    main(*sys.argv[1:])
