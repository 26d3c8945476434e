# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Programs that tests run: nothing of them is left when the waiting is cut short."""

import os
import signal
import sys

import pytest

from liteprobe.sim.drivers.tools.processes import is_running, run_group, wait_for

PARENT = """
import pathlib, subprocess
child = subprocess.Popen(["sleep", "600"])
pathlib.Path("pid").write_text(str(child.pid))
child.wait()
"""


class CutShort(BaseException):
    """As the time-out of a test: comes in the middle of a wait."""


def test_what_a_program_started_ends_when_the_wait_for_it_is_cut_short(tmp_path):
    def cut(number, frame):
        raise CutShort

    before = signal.signal(signal.SIGALRM, cut)
    signal.setitimer(signal.ITIMER_REAL, 2.0)
    try:
        with pytest.raises(CutShort):
            run_group([sys.executable, "-c", PARENT], tmp_path, os.environ)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    pid = int((tmp_path / "pid").read_text())
    wait_for(lambda: not is_running(pid))
