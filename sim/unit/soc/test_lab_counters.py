# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The counters of lab 8, the given one and the answer to its exercise, against plain Python; and what builds them in."""

import random

import pytest
from migen import run_simulation

from liteprobe.host.device.link.sim import SimOptions, build
from liteprobe.host.device.link.url import sim_options, sim_url
from liteprobe.host.base.errors import ProbeError
from liteprobe.sim.drivers.labs import notebook
from liteprobe.sim.system.board import Board
from liteprobe.sim.drivers.tools.steps import wait_cycles
from liteprobe.soc.build.bitstream import write_sources
from liteprobe.soc.config import ProbeConfig
from liteprobe.soc.export import soc_map
from liteprobe.soc.extension import extend_with
from liteprobe.soc.probe import ProbeSoC

COUNTER = notebook.LABS / "octet_counter.py"
SETTLE = 200 # Ticks until a setting has crossed, or a count.
FCS = bytes(4)

# Counters -----------------------------------------------------------------------------------------

def counted(dut, settings, frames, gaps):
    """Return the count after frames (without FCS) that come with these preambles and gaps."""
    found = []

    def line():
        for signal, value in settings.items():
            yield signal.eq(value)
        yield from wait_cycles(SETTLE)
        for frame, (preamble, gap) in zip(frames, gaps):
            for octet in b"\x55"*preamble + b"\xd5" + frame + FCS:
                yield dut.valid.eq(1)
                yield dut.octet.eq(octet)
                yield
            yield dut.valid.eq(0)
            yield from wait_cycles(gap)
        yield from wait_cycles(SETTLE)
        found.append((yield dut.count))

    run_simulation(dut, {"eth_rx": line()}, clocks={"eth_rx": 8, "sys": 16})
    return found[0]


def traffic(seed, count):
    """Return random frames in which an octet is often that of an SFD, and how each begins and ends on the line."""
    rng    = random.Random(seed)
    frames = [bytes(rng.choice((0xD5, 1, 0x55)) for _ in range(rng.randint(1, 40))) for _ in range(count)]
    return frames, [(rng.randint(1, 9), rng.randint(1, 14)) for _ in range(count)]


@pytest.mark.parametrize("place", [0, 7, 20, 2**14 - 1])
def test_the_octet_counter_counts_frames_that_have_it_there(place):
    frames, gaps = traffic(seed=place, count=25)
    dut   = notebook.load("octet_counter").OctetCounter(with_csr=False)
    right = sum((frame + FCS)[place:place + 1] == b"\xd5" for frame in frames)
    assert place > 20 or right
    assert counted(dut, {dut.place: place, dut.value: 0xD5}, frames, gaps) == right


@pytest.mark.parametrize("limit", [0, 19, 20, 40])
def test_the_answer_to_the_exercise_counts_frames_that_are_longer(limit):
    frames, gaps = traffic(seed=limit, count=25)
    frames[:2] = bytes(limit), bytes(limit + 1)
    dut = notebook.load("teacher/length_counter").LengthCounter(with_csr=False)
    assert counted(dut, {dut.limit: limit}, frames, gaps) == sum(len(frame) > limit for frame in frames) >= 1

# Extension ----------------------------------------------------------------------------------------

def test_a_file_extends_a_probe_and_its_registers_are_in_the_map():
    config = ProbeConfig(link="uart", with_cpu=False, with_discipline=False)
    plain, extended = [ProbeSoC(Board(), config) for _ in range(2)]
    extend_with(extended, COUNTER)
    maps = []
    for soc in (plain, extended):
        soc.finalize()
        maps.append(set(soc_map(soc)["csr_registers"]))
    new = {f"port{port}_counter_{name}" for port in (0, 1) for name in ("place", "value", "count")}
    assert (maps[1] - maps[0], maps[0] - maps[1]) == (new, set())


@pytest.mark.parametrize(("name", "text", "message"), [
    ("gone.py",  None, "there is no .*gone.py to extend the probe with"),
    ("none.py",  "",   r"none.py has no function extend\(soc\)"),
    ("none.txt", "",   "its name must end in .py"),
])
def test_a_file_that_extends_nothing_is_refused(tmp_path, name, text, message):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=message):
        extend_with(None, path)


def test_a_url_names_the_file_and_who_builds_says_what_is_wrong(tmp_path):
    gone = tmp_path / "gone & lost.py"
    url  = sim_url("cable?delay=1us", extend=gone)
    assert (sim_options(url).extend, sim_options(url).wire) == (gone, "cable?delay=1us")
    with pytest.raises(ProbeError, match="there is no .*gone & lost.py to extend the probe with: name a Python file"):
        build(SimOptions(extend=gone, link="own", with_cpu=False))


def test_a_board_is_built_with_it_too(tmp_path):
    config = ProbeConfig(link="uart", with_cpu=False, with_discipline=False)
    _, folder = write_sources("colorlight_5a_75b", config, tmp_path, COUNTER)
    assert "port1_counter_count" in (tmp_path / "csr.json").read_text()
    assert "port1_counter" in (folder / "liteprobe.v").read_text()
