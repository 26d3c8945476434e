# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The firmware under Zephyr's own tools: firmware/tests/zephyr by twister on native_sim, all sources by checkpatch."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from liteprobe.host.base.errors import ProbeError
from liteprobe.host.device.firmware_build import FIRMWARE, find_tools

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
    variables = {"ZEPHYR_BASE": str(tools.zephyr), "ZEPHYR_TOOLCHAIN_VARIANT": "host", "PATH": path}
    (folder,) = yaml.safe_load((FIRMWARE / "zephyr" / "module.yml").read_text())["tests"]
    command = [tools.python, twister, "-T", FIRMWARE / folder, "-p", PLATFORM]
    command += ["--outdir", tmp_path / "out", "--inline-logs"]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    (suite,) = json.loads((tmp_path / "out" / "twister.json").read_text())["testsuites"]
    assert (suite["name"], suite["platform"], suite["status"]) == ("liteprobe.libraries", PLATFORM, "passed")
    assert len(suite["testcases"]) == 10 and {case["status"] for case in suite["testcases"]} == {"passed"}


#: Of checkpatch, by file and kind: the plain C of lib/ has no macro of Zephyr's.
EXPLAINED = {("qerr.c", "ARRAY_SIZE"), ("configure.c", "ARRAY_SIZE")}


def test_checkpatch_finds_nothing_that_is_not_explained() -> None:
    try:
        zephyr = find_tools().zephyr
    except ProbeError as error:
        pytest.skip(f"checkpatch isn't run: {error}")
    if not shutil.which("perl"):
        pytest.skip("checkpatch isn't run: apt-get install perl")
    sources = sorted(FIRMWARE.rglob("*.[ch]"))
    assert len(sources) > 60
    command = ["perl", "scripts/checkpatch.pl", "--no-tree", "--terse", "-f", *map(str, sources)]
    said = subprocess.run(command, cwd=zephyr, capture_output=True, text=True, check=False).stdout
    found = re.findall(r"([^/\n]+):\d+: (?:WARNING|ERROR|CHECK):(\w+): (.*)", said)
    assert "total: " in said and [one for one in found if one[:2] not in EXPLAINED] == []
