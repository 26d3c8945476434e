# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Parts of the SDRAM and their owners, and whose port is whose."""

import pytest

from liteprobe.boards import board
from liteprobe.cores.memory.ports import QueuedPort
from liteprobe.soc.config import ProbeConfig
from liteprobe.soc.probe import ProbeSoC, sdram_places

KIB = 1024

pytestmark = pytest.mark.usefixtures("quiet")

def places(preset, **fields):
    found = sdram_places(ProbeConfig(preset=preset, **fields), board("colorlight_i9"))
    return {name: (place.origin//KIB, place.size//KIB) for name, place in found.items()}

def test_a_ring_has_what_firmware_leaves():
    assert places("monitor") == {"firmware": (0, 1024), "capture": (1024, 3072)}
    assert places("monitor", with_cpu=False) == {"capture": (0, 4096)}

def test_sets_and_a_ring_a_port_lie_between_firmware_and_capture():
    assert places("replay") == {
        "firmware": (0, 1024), "sets": (1024, 256), "replay0": (1280, 512), "replay1": (1792, 512), "capture": (2304, 1792),
    }
    assert places("replay", with_cpu=False, ports=1) == {"sets": (0, 256), "replay0": (256, 512), "capture": (768, 3328)}

def test_an_emulator_has_all_banks_for_its_stores_and_traces():
    assert places("emulator", trace_entries=1 << 16) == {
        "firmware": (0, 1024), "emulate0": (1024, 2048), "emulate1": (3072, 2048), "trace0": (5120, 512), "trace1": (5632, 512),
        "capture": (6144, 2048),
    }

def test_an_emulator_whose_stores_are_larger_than_the_memory_is_refused():
    with pytest.raises(ValueError, match="1048576 bytes too small: lower store_words"):
        places("emulator", store_words=1 << 20)

@pytest.mark.parametrize("freq", [80e6, None])
def test_each_user_of_a_probe_that_replays_has_a_port_of_its_own(freq):
    target = board("colorlight_i9")
    target.memory_clk_freq = freq
    soc = ProbeSoC(target, ProbeConfig(preset="replay", ports=1, with_cpu=False))
    assert len(soc.burst_ports.ports) == 4 # Capture, what a host streams, and a port's ring and its table of sets.
    assert all(isinstance(port, QueuedPort) == (freq is not None) for port in soc.burst_ports.ports)
    assert hasattr(soc, "memory_crossing") == (freq is not None)
