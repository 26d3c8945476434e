# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The firmware's libraries under Zephyr's own test runner: firmware/tests/zephyr on native_sim."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from liteprobe.host.base.errors import ProbeError
from liteprobe.host.device.firmware_build import FIRMWARE, find_tools
from liteprobe.soc.build.devicetree import write_formats

PLATFORM = "native_sim/native/64"


def test_libraries_pass_under_twister(tmp_path: Path) -> None:
    try:
        tools = find_tools()
    except ProbeError as error:
        pytest.skip(f"twister isn't run: {error}")
    twister = tools.zephyr / "scripts" / "twister"
    asked = subprocess.run([tools.python, twister, "--help"], capture_output=True, text=True, check=False)
    if asked.returncode:
        why = asked.stderr.strip().splitlines()[-1:] or ["it says nothing"]
        pytest.skip(
            f"twister isn't run by {tools.python}: {why[0]}; pip install -r "
            f"{tools.zephyr}/scripts/requirements-build-test.txt -r {tools.zephyr}/scripts/requirements-run-test.txt"
        )
    path = f"{tools.python.parent}:{os.environ['PATH']}"  # CMake looks there for Zephyr's Python.
    write_formats(tmp_path)
    variables = {"ZEPHYR_BASE": str(tools.zephyr), "ZEPHYR_TOOLCHAIN_VARIANT": "host", "PATH": path}
    variables["LITEPROBE_GENERATED"] = str(tmp_path)
    command = [tools.python, twister, "--testsuite-root", FIRMWARE / "tests" / "zephyr"]
    command += ["--platform", PLATFORM, "--outdir", tmp_path / "out", "--inline-logs"]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    (suite,) = json.loads((tmp_path / "out" / "twister.json").read_text())["testsuites"]
    assert (suite["name"], suite["platform"], suite["status"]) == ("liteprobe.libraries", PLATFORM, "passed")
    assert len(suite["testcases"]) == 10 and {case["status"] for case in suite["testcases"]} == {"passed"}
