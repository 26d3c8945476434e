# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the tests of an area, or those that pytest's arguments choose. Run by ``./run test``."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import other_litex

#: The folders and files of each area; some belong to two. A house test holds that each test is in one.
AREAS = {
    "agent": ("test/agent",),
    "analysis": ("test/analysis", "sim/unit/emulator/test_queueing.py"),
    "boards": ("test/boards", "sim/pins"),
    "capture": (
        *("test/capture", "sim/unit/receive/test_capture_record.py", "sim/unit/receive/test_capture_staging.py"),
        *("sim/wire/receive/test_capture.py", "sim/wire/receive/test_unified.py"),
    ),
    "cli": ("test/cli", "sim/system/probe/test_signals.py"),
    "clock": ("test/clock", "sim/unit/timebase", "sim/system/clock"),
    "device": (
        *("test/device", "sim/unit/soc", "sim/wire/management", "sim/system/probe/test_control.py"),
        *("sim/system/probe/test_host.py", "sim/system/probe/test_litex_clients.py"),
    ),
    "docs": ("test/docs", "sim/system/docs"),
    "emulator": ("test/emulator", "sim/unit/emulator", "sim/system/emulator"),
    "filter": ("test/filter", "sim/wire/receive/test_filter.py", "sim/system/monitor/test_host_filter.py"),
    "fleet": ("test/fleet",),
    "firmware": ("test/firmware", "sim/system/firmware"),
    "formal": ("sim/formal",),
    "house": ("test/house", "sim/unit/tools"),
    "memory": ("sim/unit/memory", "sim/wire/memory"),
    "monitor": (
        *("test/monitor", "sim/unit/measure", "sim/unit/receive/test_receive_sample.py"),
        *("sim/unit/receive/test_receive_toeplitz.py", "sim/wire/receive/test_monitor.py"),
        *("sim/wire/receive/test_measure_fields.py", "sim/system/monitor"),
    ),
    "otg": ("test/otg", "sim/system/traffic/test_otg.py"),
    "pcie": (
        *("sim/wire/pcie", "test/device/test_link_pcie.py", "test/boards/test_pcie_build.py"),
        *("test/capture/test_capture_dma.py", "test/replay/test_replay_pcie.py"),
    ),
    "receive": ("sim/unit/receive", "sim/wire/receive"),
    "reflect": ("sim/unit/reflect", "sim/system/traffic/test_hosts.py"),
    "replay": (
        *("test/replay", "sim/unit/transmit/test_transmit_replay.py", "sim/unit/memory/test_memory_ring_reader.py"),
        *("sim/wire/transmit/test_replay_port.py", "sim/system/traffic/test_replay.py"),
    ),
    "serve": ("test/serve",),
    "simulation": ("sim/system/wires", "test/device/test_link_sim.py"),
    "stamp": ("test/stamp", "sim/system/traffic/test_stamp.py"),
    "store": ("test/store",),
    "suites": ("test/suites", "sim/system/traffic/test_suites.py"),
    "tengig": ("sim/unit/xgmii", "sim/system/tengig"),
    "traffic": (
        *("test/traffic", "sim/unit/transmit/test_transmit_streams.py", "sim/unit/transmit/test_transmit_sets.py"),
        *("sim/wire/transmit/test_traffic_port.py", "sim/system/traffic/test_traffic.py"),
        "sim/system/traffic/test_tester.py",
    ),
    "train": ("test/train", "sim/system/probe/test_probe.py"),
    "transmit": ("sim/unit/transmit", "sim/wire/transmit"),
}
# Files share what they set up. The third worker runs while others wait for a probe, a timeout, or the disk.
PYTEST = (sys.executable, "-m", "pytest", "-n", "3", "--dist", "loadfile", "--no-loadscope-reorder")


def chosen(words: Sequence[str]) -> list[str]:
    """Return pytest's arguments: areas by their folders and files, anything else as it is."""
    return [path for word in words for path in AREAS.get(word, (word,))]


def main(words: list[str]) -> int:
    """Become pytest, with the LiteX of a folder after ``--litex``; return 2 where that is none."""
    if "--litex" in words:
        place = words.index("--litex")
        try:
            folder = Path(os.environ.get("LITEPROBE_HERE", ""), *words[place + 1 : place + 2])
            print("\n".join(other_litex.use(folder, os.environ)), flush=True)
        except ValueError as error:
            print(f"test: {error}", file=sys.stderr)
            return 2
        del words[place : place + 2]
    os.execv(sys.executable, [*PYTEST, *chosen(words)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
