# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The SDRAM controller against a chip that knows its times and has no data masks."""

import random
from types import SimpleNamespace

import pytest

from migen import *

from litedram.phy.dfi import Interface

from liteprobe.boards import board
from liteprobe.cores.memory import sdram
from liteprobe.cores.memory.ports import QueuedPort
from liteprobe.cores.memory.sdram import SdramController, SdramPace
from liteprobe.sim.drivers.tools.steps import assign, wait_cycles, wait_until
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
    stores = {"firmware": (0, 1024), "emulate0": (1024, 2048), "emulate1": (3072, 2048)}
    assert places("emulator", trace_entries=1 << 16, with_spill=False) == stores | {
        "trace0": (5120, 512), "trace1": (5632, 512), "capture": (6144, 2048),
    }
    assert places("emulator", trace_entries=1 << 16) == stores | {
        "waiting0": (5120, 1024), "waiting1": (6144, 1024), "trace0": (7168, 512), "trace1": (7680, 512), "capture": (8192, 0),
    }

def test_an_emulator_whose_stores_are_larger_than_the_memory_is_refused():
    with pytest.raises(ValueError, match="1048576 bytes too small: lower store_words"):
        places("emulator", store_words=1 << 20, with_spill=False)
    with pytest.raises(ValueError, match="5242880 bytes too small: lower store_words"): # With 2 MiB a direction of what waits.
        places("emulator", store_words=1 << 20)

@pytest.mark.parametrize("freq", [80e6, None])
def test_each_user_of_a_probe_that_replays_has_a_port_of_its_own(freq):
    target = board("colorlight_i9")
    target.memory_clk_freq = freq
    soc = ProbeSoC(target, ProbeConfig(preset="replay", ports=1, with_cpu=False))
    assert len(soc.burst_ports.ports) == 4 # Capture, what a host streams, and a port's ring and its table of sets.
    assert all(isinstance(port, QueuedPort) == (freq is not None) for port in soc.burst_ports.ports)
    assert hasattr(soc, "memory_crossing") == (freq is not None)


# Controller ----------------------------------------------------------------------------------------

# Of the slowest grade but two (cores/memory/sdram.py); the chip below is a model of its own, in nanoseconds.
T_RCD, T_RP, T_RAS, T_RC, T_WR, T_RFC, T_MRD = 20, 20, 49, 70, 30, 80, 40
T_REFRESH, T_POWER_UP = 64e6/4096, 200e3
BANKS, ROWS, COLUMNS = 2, 2048, 256
CL = 2
NEVER_WRITTEN = 0xdeadbeef

class Chip:
    """A SDRAM behind a PHY, cycle by cycle; AssertionError when a time isn't kept."""

    def __init__(self, dfi, clk_ns):
        self.dfi, self.ns = dfi.p0, clk_ns
        self.words    = {}
        self.row      = None # That is open: bank, row.
        self.at       = {} # Of the last command of each kind, ns.
        self.log      = []
        self.refreshes = []
        self.pipeline = [0]*CL # And a cycle until the controller sees it.

    def since(self, name, least, now):
        assert now - self.at.get(name, -1e9) >= least - 1e-6, f"{now - self.at[name]} ns after {name}, {least} asked for"

    def do(self, name, now, address, bank, data):
        self.log.append(name)
        for other, least in {"refresh": T_RFC, "mode": T_MRD}.items():
            self.since(other, least, now)
        if name == "activate":
            assert self.row is None
            self.since("precharge", T_RP, now)
            self.since("activate", T_RC, now)
            self.row = bank, address
        elif name in ("read", "write"):
            self.since("activate", T_RCD, now)
            assert self.row is not None and self.row[0] == bank and address < COLUMNS # A10 = 0: no auto precharge.
            if name == "write":
                self.words[(*self.row, address)] = data
            else:
                self.pipeline[-1] = self.words.get((*self.row, address), NEVER_WRITTEN)
        elif name == "precharge":
            assert address == 1 << 10
            self.since("activate", T_RAS, now)
            self.since("write", T_WR, now)
            self.row = None
        else:
            assert self.row is None
            self.since("precharge", T_RP, now)
            self.refreshes += [now] if name == "refresh" else []
            assert name == "refresh" or (address, bank) == (CL << 4, 0)
        self.at[name] = now

    @passive
    def run(self):
        names = {0b011: "activate", 0b101: "read", 0b100: "write", 0b010: "precharge", 0b001: "refresh", 0b000: "mode"}
        now = 0.0
        while True:
            yield
            now += self.ns
            command = (yield self.dfi.ras_n) << 2 | (yield self.dfi.cas_n) << 1 | (yield self.dfi.we_n)
            enables = (yield self.dfi.wrdata_en), (yield self.dfi.rddata_en)
            assert enables == (command == 0b100, command == 0b101)
            self.pipeline.append(0)
            if command != 0b111:
                self.do(names[command], now, (yield self.dfi.address), (yield self.dfi.bank), (yield self.dfi.wrdata))
            yield self.dfi.rddata.eq(self.pipeline.pop(0))

SHORT_REFRESH = 2e3 # The start is as many refreshes long, and takes most of a test.

def run(generator, mhz=50, refresh=SHORT_REFRESH, is_late=False):
    """Run a user of the bus; return the chip."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sdram, "T_REFRESH", refresh*1e-9)
        patch.setattr(sdram, "T_POWER_UP", T_POWER_UP*1e-9*refresh/T_REFRESH)
        return run_patched(generator, mhz, is_late)

def run_patched(generator, mhz, is_late):
    dfi = Interface(11, 1, 1, 32)
    phy = SimpleNamespace(dfi=dfi, settings=SimpleNamespace(cl=CL, read_latency=CL + 1))
    dut = SdramController(phy, mhz*1e6, with_late_answer=is_late)
    chip = Chip(dfi, 1e3/mhz)
    run_simulation(dut, [generator(dut), chip.run()])
    return chip

def started(dut):
    yield from wait_until(dut.ready)

def access(bus, address, write=None, sel=0xf):
    """Read, or write, a word; return it and the cycles until the answer."""
    yield from assign(bus, adr=address, sel=sel, we=write is not None, dat_w=write or 0, cyc=1, stb=1)
    yield
    count = 0
    while not (yield bus.ack):
        yield
        count += 1
    word = yield bus.dat_r
    yield bus.cyc.eq(0)
    yield bus.stb.eq(0)
    return word, count

def test_chip_is_started_as_it_asks():
    chip = run(started, refresh=T_REFRESH)
    assert chip.log == ["precharge"] + ["refresh"]*8 + ["mode"]
    assert chip.at["precharge"] >= T_POWER_UP

@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("mhz", [50, 62.5, 75, 100, 125])
def test_any_octets_of_any_word_are_written_and_no_other(mhz, is_late):
    seed = random.randrange(2**32)
    print("seed", seed)
    rand = random.Random(seed)
    model, seen = {}, []
    places = [0, 255, 256, 257, 511, 512, BANKS*ROWS*COLUMNS - 1] + [rand.randrange(BANKS*ROWS*COLUMNS) for _ in range(5)]
    def user(dut):
        yield from started(dut)
        for place in places:
            model[place] = rand.getrandbits(32)
            yield from access(dut.bus, place, model[place])
        for _ in range(300):
            place = rand.choice(places)
            if rand.random() < 0.5:
                word, sel = rand.getrandbits(32), rand.randrange(16)
                mask = sum(0xff << 8*n for n in range(4) if sel >> n & 1)
                model[place] = model[place] & ~mask | word & mask
                yield from access(dut.bus, place, word, sel)
            else:
                word, _ = yield from access(dut.bus, place)
                seen.append((word, model[place]))
            yield from wait_cycles(rand.choice([0, 0, 0, 1, 5]))
    chip = run(user, mhz, is_late=is_late)
    assert len(seen) > 100 and all(found == right for found, right in seen)
    assert {(place >> 8 & 1, place >> 9, place & 255): word for place, word in model.items()} == chip.words

@pytest.mark.parametrize(("is_late", "told"), [(False, [4, 1, 4]), (True, [5, 2, 5])])
def test_answers_come_in_the_cycles_that_the_docstring_tells(is_late, told):
    counts = []
    def user(dut):
        yield from started(dut)
        for write, sel in ((None, 15), (1, 15), (2, 1)):
            yield from wait_cycles(20)
            _, count = yield from access(dut.bus, 5, write, sel)
            counts.append(count)
    run(user, is_late=is_late)
    assert counts == told

def test_refreshes_keep_their_pace_however_busy_the_bus_is():
    def user(dut):
        yield from started(dut)
        for n in range(2000):
            yield from access(dut.bus, n, n, 0xf if n & 1 else 0x1)
    chip = run(user)
    times = chip.refreshes[9:]
    gaps = [b - a for a, b in zip(times[:-1], times[1:])]
    assert len(gaps) > 10
    # One may wait for an access; none is lost.
    assert max(gaps) < SHORT_REFRESH + 200 and abs(times[-1] - times[0] - SHORT_REFRESH*len(gaps)) < 200

@pytest.mark.parametrize("mhz", [1, 1.3, 5])
def test_a_tick_of_a_register_comes_in_the_same_cycle(mhz):
    class Both(Module):
        def __init__(self):
            self.submodules.late  = SdramPace(mhz*1e6)
            self.submodules.early = SdramPace(mhz*1e6, with_early_tick=True)
    dut, chance, seen = Both(), random.Random(20261128), []
    def user():
        for _ in range(int(60*15.6*mhz)):
            refreshed = chance.random() < 0.2
            for pace in (dut.late, dut.early):
                yield pace.is_refreshed.eq(refreshed)
            yield
            late  = yield from told(dut.late)
            early = yield from told(dut.early)
            seen.append((late, early))
    def told(pace):
        return ((yield pace.tick), (yield pace.step), (yield pace.ready), (yield pace.is_due))
    run_simulation(dut, user())
    assert all(late == early for late, early in seen)
    assert sum(late[0] for late, _ in seen) >= 55 and any(late[3] for late, _ in seen)

def test_nothing_is_answered_before_the_chip_is_started():
    seen = []
    def user(dut):
        yield dut.bus.cyc.eq(1)
        yield dut.bus.stb.eq(1)
        while not (yield dut.ready):
            assert not (yield dut.bus.ack)
            yield
        yield from wait_until(dut.bus.ack)
        seen.append((yield dut.bus.dat_r))
    chip = run(user)
    assert seen == [NEVER_WRITTEN] and chip.log[-3:] == ["mode", "activate", "read"]
