# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Runs a program so that nothing of it is left when a test is cut short."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from liteprobe.host.traffic.programs import end_group


def run_group(
    command: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a process group of its own, and return its output as text.

    Whatever ends the waiting (a time-out of the test, Ctrl-C) ends the whole group.
    """
    process = subprocess.Popen(
        command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        out, err = (text.decode("utf-8", "replace") for text in process.communicate())
    finally:
        end_group(process)
    return subprocess.CompletedProcess(command, process.returncode, out, err)
