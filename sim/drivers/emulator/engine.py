# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Takes random networks and frames through the emulation of a direction, and compares all of it with the reference."""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from migen import *

from litex.gen import *

from liteprobe.cores.emulate.direction import DirectionControl
from liteprobe.cores.formats.emulate import (
    BANK_WORDS, CLASSES, CODEL_INTERVAL_MAX, COUNTER_WORDS, DELAY_ENTRIES, PATTERN_WORDS, BackgroundKind, ClassCounter, ClassFlag,
    ClassGauge, PIE_WAIT_MAX, Outcome,
)
from liteprobe.cores.memory.sdram import BurstPort
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench
from liteprobe.sim.models.emulator.direction import Direction
from liteprobe.sim.models.emulator.direction import Frame
from liteprobe.sim.models.emulator.settings import Settings, bank_words

WAITING, ENTRIES          = 1024, 4096 # Frames and background frames that wait; frames that wait or are under way.
ARRIVAL_TICKS, LEAD_TICKS = 2048, 1024
STORE_WORDS               = 1 << 21
COUNTS                    = 1 << 16    # Bit of ``adr``: the counts, not the settings.

# Engine Bench -------------------------------------------------------------------------------------

class EngineBench(PinnedBench):
    """An `DirectionControl`.

    Pins: ``sys_clk``, ``sys_rst``; ``<stream>_valid``, ``_ready`` and payload of its streams; ``start``, ``now``, ``freed``,
    ``freed_lane``, ``freed_words``, ``switch_at``, ``switch_ask``, ``switch_pending``; one bus ``adr``, ``stb``, ``we``, ``dat_w``,
    ``ack``, ``dat_r``; ``is_idle``: a pulse each time that the engine finds that it has nothing to do yet;
    ``is_empty``: no frame waits for its draws or its verdict; ``counted_<field>``; ``memory_<field>``: of a `BurstPort`.

    Parameters
    ----------
    pool : entries of queues and of lanes that are in block RAM, the others in the memory; 0: all are, and there are enough.
    """
    def __init__(self, pool=0):
        PinnedBench.__init__(self)
        port        = BurstPort()
        memory      = (port, 0, STORE_WORDS) if pool else None
        self.core   = core = DirectionControl(pool or WAITING, pool or ENTRIES, ARRIVAL_TICKS, LEAD_TICKS, memory=memory)
        self.add_source("memory", port.request)
        self.add_outputs(port, ["write_data"], "memory_")
        self.add_inputs(port, ["takes", "gives", "read_data"], "memory_")
        self.add_inputs(core, ["start", "now", "freed", "freed_lane", "freed_words"])
        self.add_input("switch_at", core.switch.tick)
        self.add_input("switch_ask", core.switch.ask)
        self.add_output("switch_pending", core.switch.is_pending)
        for stream in ["arrivals", "opportunities", "late"]:
            self.add_sink(stream, getattr(core, stream))
        for stream in ["verdicts", "departures"]:
            self.add_source(stream, getattr(core, stream))
        counted = core.engine.counted
        self.comb += self.add_pin("counted_valid").eq(counted.valid & counted.ready)
        self.add_outputs(counted, ["arrives", "background", "outcome", "number"], "counted_")
        self.comb += self.add_pin("is_empty").eq(~core.queue.source.valid & ~core.drawn.source.valid)
        fsm = core.engine.fsm
        self.comb += self.add_pin("is_idle").eq(fsm.ongoing("DECIDE") & fsm.before_entering("PICK"))
        self.add_bus([core.settings_bus, core.counts_bus])

BENCH = CompiledBench(EngineBench, Path(__file__).with_name("engine.cpp"))

# Plans --------------------------------------------------------------------------------------------

ALL = 2**32 - 1
TICK = 1 << 16
MARGIN = 1000             # Ticks, of what the engine takes.
RING_BITS = 17
LIST, BACKGROUND = 256, 384   # Words of the pattern memory from which on there are numbers of frames; intervals and lengths.
LONGEST, JUMBO = 1514, 9018
SHORTEST = 50             # Octets of a background frame: an overhead may take so many off.
MEAN_MOST = 2**25         # Ticks: an exponential interval is up to 22 times its mean, and no interval is longer than 2^30.
SWITCH_TICKS = 8000       # Least time between two switches.

@dataclass(frozen=True)
class Plan:
    """A direction, what comes to it, and how the bench goes about it.

    Attributes
    ----------
    switches : list of (tick, words of a bank)
    arrivals : list of (tick, length, class); `ecn_of` says of each whether it can be marked.
    end : tick up to which it is run.
    step_ticks, lag_ticks, stall_256, rate_256 : int
        Ticks that time goes on at once, at most; and that a frame comes after its SFD. How often of 256 cycles nobody takes what
        the emulation says. Ticks of 256 cycles; 0: as fast as the emulation can.
    memory_cycles, memory_256 : int
        Until a burst begins, at most; and how often of 256 cycles its next word is late.
    again : int
        Cycles after which all begins anew; 0: never. Without switches.
    """
    settings: Settings
    switches: list[tuple[int, list[int]]]
    arrivals: list[tuple[int, int, int]]
    end: int
    step_ticks: int
    lag_ticks: int
    stall_256: int
    rate_256: int = 0
    memory_cycles: int = 200
    memory_256: int = 64
    again: int = 0

class Planner:
    """Draws a plan: ``scale`` stretches all times, ``grid`` makes ties."""

    def __init__(self, seed: int, count: int) -> None:
        self.random = random = Random(seed)
        self.count = count
        self.codels = Random(f"CoDel {seed}")
        self.has_codel = self.codels.random() < 0.5
        self.scale = random.choice([1, 1, 1, 1, 1, 1, 1, 10_000])
        self.grid = random.choice([0, 0, 128, 1536])
        self.has_trace = random.random() < 0.25
        self.is_jumbo = random.random() < 0.15
        self.busy = random.sample(range(CLASSES), random.choice([1, 2, 4, 8])) # Classes that get frames.
        self.reorders = random.choice(self.busy)
        self.step_ticks = random.choice([84, 500, 2000, 8000]) * self.scale
        self.least_delay = ARRIVAL_TICKS + LEAD_TICKS + MARGIN + self.step_ticks
        self.has_red, self.has_tokens = random.random() < 0.5, random.random() < 0.4
        self.has_loss, self.has_background = random.random() < 0.6, random.random() < 0.7

    def share(self) -> int:
        """Return a share: none, all, a small one or any."""
        random = self.random
        return random.choice([0, 0, 1, ALL, ALL - 1, random.getrandbits(26), random.getrandbits(30), random.getrandbits(32)])

    def seldom(self) -> int:
        """Return a share that is small, most often."""
        return self.share() if self.random.random() < 0.15 else self.random.choice([0, 0, self.random.getrandbits(28)])

    def ticks(self, most: int) -> int:
        """Return a time up to ``most``, stretched."""
        random = self.random
        found = random.choice([0, random.randint(0, most), random.randint(0, most)]) * self.scale
        return found // self.grid * self.grid if self.grid else found

    # Settings.

    def bank(self) -> list[int]:
        """Return the words of a bank."""
        random = self.random
        classes = {number: self.one_class() | {"store_start": number << RING_BITS} for number in range(CLASSES)}
        classes[self.reorders]["reorder"] = self.seldom()
        octet = random.choice([0, TICK, TICK, TICK * 3 // 4, TICK * 5 // 4, TICK // 3, random.randint(1, 4 * TICK), 10 * TICK])
        octet = min(octet * (1 if self.grid else self.scale // 100 or 1), ALL)
        if random.random() < 0.02:
            octet = ALL
        link = {"octet": octet, "service": random.randint(0, 1), "trace": self.has_trace, "store_bits": RING_BITS}
        link["store_start"] = CLASSES << RING_BITS
        return bank_words(classes, link)

    def one_class(self) -> dict[str, int]:
        """Return the fields of a class."""
        random = self.random
        flags = 0
        for flag in (ClassFlag.LOSS_LATE, ClassFlag.MENDED, ClassFlag.JITTER):
            flags |= random.choice([0, flag])
        flags |= ClassFlag.DISCARD if random.random() < 0.04 else 0
        most = 50 if self.is_jumbo else 100
        found = {
            "duplicate":      self.seldom(),
            "corrupt":        self.seldom(),
            "reorder_ticks":  self.ticks(20_000),
            "delay":          self.least_delay + self.ticks(20_000),
            "delay_repeat":   self.share(),
            "limit_frames":   random.choice([0, 1, 2, 5, random.randint(3, most), most, most]),
            "limit_octets":   random.choice([ALL, ALL, ALL, ALL, 0, 1514, random.randint(60, 50_000)]),
            "overhead":       24 if self.grid else random.choice([0, 0, 24, 255, random.randint(-50, 255)]) & 511,
            "service_weight": random.choice([0, 1, 1, 2, 5, random.randint(0, 255)]),
            "store_bits":     RING_BITS,
        }
        for low in ("frame_seed_low", "background_seed_low"):
            found[low] = random.randint(1, ALL)
            found[low.replace("low", "high")] = random.getrandbits(32)
        parts: list[tuple[bool, Callable[[], dict[str, int]]]] = [
            (self.has_loss, self.loss), (self.has_red, self.red), (self.has_tokens, self.tokens),
            (self.has_background, self.background),
        ]
        for has, part in parts:
            if has and random.random() < 0.6:
                more = part()
                flags |= more.pop("flags", 0)
                found |= more
        if self.has_codel and self.codels.random() < 0.8:
            if flags & ClassFlag.RED:
                flags |= self.codels.choice([0, ClassFlag.ECN])
            else:
                more = self.codel()
                flags |= more.pop("flags", 0)
                found |= more
        return {**found, "flags": flags}

    def codel(self) -> dict[str, int]:
        """Return fields of CoDel."""
        random = self.codels
        target = random.choice([0, 1, 100, 500, 2000, random.randint(0, 20_000)]) * self.scale
        interval = random.choice([0, 1, 100, 1000, 3000, 10_000, random.randint(0, 100_000)]) * self.scale
        if random.random() < 0.4:
            update = random.choice([1, 100, 300, 500, 2000, random.randint(1, 20_000)]) * self.scale
            return {
                "limit_frames": 50 if self.is_jumbo else 100,
                "limit_octets": ALL,
                "flags":      ClassFlag.PIE | random.choice([0, ClassFlag.ECN]),
                "pie":        1,
                "pie_target": min(target, PIE_WAIT_MAX),
                "pie_update": min(update, CODEL_INTERVAL_MAX),
                "pie_burst":  random.choice([0, 0, 1, 10]),
            }
        room = {"limit_frames": 50 if self.is_jumbo else 100, "limit_octets": ALL} if random.random() < 0.8 else {}
        return room | {
            "codel":          1,
            "codel_ecn":      random.randint(0, 1),
            "codel_target":   min(target, CODEL_INTERVAL_MAX),
            "codel_interval": min(interval, CODEL_INTERVAL_MAX),
        }

    def loss(self) -> dict[str, int]:
        """Return fields of loss, by chance or by pattern."""
        random = self.random
        found = {"loss_enter": self.seldom(), "loss_leave": self.share(), "loss_good": self.seldom(), "loss_bad": self.share()}
        match random.randint(0, 3):
            case 0:
                found |= {"pattern_start": random.randrange(PATTERN_WORDS), "pattern_count": random.choice([1, 31, 32, 33, 5000])}
            case 1:
                start = random.randrange(LIST, BACKGROUND)
                found |= {"flags": ClassFlag.LIST, "pattern_start": start, "pattern_count": random.randint(1, BACKGROUND - start)}
        return found

    def red(self) -> dict[str, int]:
        """Return fields of early drops."""
        random = self.random
        least = random.choice([0, 1, 5, 20])
        return {
            "flags":      ClassFlag.RED,
            "red_weight": random.choice([0, 1, 2, 5, 9, 15]),
            "red_least":  least,
            "red_most":   random.choice([0, least, least + 3, 60, 0xFFFF]),
            "red_slope":  random.choice([0, ALL, random.getrandbits(28), random.getrandbits(32)]),
        }

    def tokens(self) -> dict[str, int]:
        """Return fields of a bucket."""
        random = self.random
        octet = random.choice([1, TICK, 8 * TICK, random.randint(1, 20 * TICK), ALL if random.random() < 0.1 else TICK])
        burst = random.choice([0, 1, 100 * TICK, random.getrandbits(32), random.getrandbits(40), 2**45 - 1])
        return {"token_octet": octet, "token_burst_low": burst & ALL, "token_burst_high": burst >> 32}

    def background(self) -> dict[str, int]:
        """Return fields of background; on the whole no more of it than a background frame in 200 ticks."""
        random = self.random
        kind = random.choice(list(BackgroundKind))
        mean = random.choice([200, 500, 1500, random.randint(200, 10_000)]) * self.scale
        if self.grid:
            mean = -(-mean // self.grid) * self.grid
        if kind in (BackgroundKind.EXPONENTIAL, BackgroundKind.RANDOM_ON_OFF):
            mean = min(mean, MEAN_MOST)
        burst = random.choice([0, 1, 2, 10, 100])
        found = {
            "background":     kind,
            "background_length":   104 if self.grid else max(random.choice([0, 60, 1514, random.randint(0, 2**14 - 1)]), SHORTEST),
            "background_phase":    self.ticks(5000),
            "background_ticks":    min(mean, ALL),
            "background_fraction": 0 if self.grid else random.getrandbits(16),
            "background_start":    BACKGROUND + 4 * random.randint(0, 10),
            "background_count":    random.choice([0, 1, 2, 40]),
        }
        if kind in (BackgroundKind.ON_OFF, BackgroundKind.RANDOM_ON_OFF):
            number = max(burst, 1)
            found["background_ticks"] = random.choice([0, 1, mean // 10])
            found["background_pause"] = min(mean * number, MEAN_MOST)
            found["background_burst"] = burst if kind is BackgroundKind.ON_OFF else min(2**32 // number, ALL)
        return found

    def patterns(self) -> list[int]:
        """Return the pattern memory: bits, numbers of frames that ascend, intervals and lengths."""
        random = self.random
        bits = [random.getrandbits(32) & random.getrandbits(32) for _ in range(LIST)]
        listed = sorted(random.sample(range(self.count // 2 + 1000), BACKGROUND - LIST))
        background = []
        for entry in range((PATTERN_WORDS - BACKGROUND) // 2):
            gap = random.choice([0, 200, random.randint(0, 2000)]) if entry % 2 else random.randint(300, 2000)
            length = random.randint(0, 2**14 - 1) if random.random() < 0.1 else random.randint(0, 1514)
            background += [gap * self.scale, max(length, SHORTEST)]
        return bits + listed + background

    def trace(self) -> list[tuple[int, int]]:
        """Return opportunities, if the link has any."""
        random = self.random
        if not self.has_trace:
            return []
        found = []
        for _ in range(random.choice([1, 2, 10, 50])):
            ticks = random.choice([0, 1, 128, 1536, random.randint(0, 3000)]) * self.scale
            found.append((ticks, random.choice([0, 1, 60, 1500, 1500, 1500, random.randint(0, 20_000)])))
        return [(1000 * self.scale, 1500), *found]

    # Frames.

    def arrivals(self) -> list[tuple[int, int, int]]:
        """Return frames, up to line rate."""
        random = self.random
        kind = random.choice(["short", "long", "mixed"])
        load = random.choice([1, 1, 0.9, 0.5, 0.3])
        tick, found, klass = random.randint(0, 1000), [], self.busy[0]
        for _ in range(self.count):
            length = 104 if self.grid else {"short": 60, "long": LONGEST, "mixed": random.randint(60, LONGEST)}[kind]
            if self.is_jumbo and random.random() < 0.3:
                length = random.randint(LONGEST, JUMBO)
            if random.random() < 0.7:
                klass = random.choice(self.busy)
            if self.grid:
                tick = -(-tick // self.grid) * self.grid
            found.append((tick, length, klass))
            tick += (length + 24) * self.scale
            if random.random() < 0.5 and load < 1:
                tick += int(random.expovariate(1 / (2 * (length + 24) * self.scale * (1 / load - 1))))
        return found

    def plan(self) -> Plan:
        """Return the plan."""
        random = self.random
        delays = sorted(self.ticks(5000) for _ in range(DELAY_ENTRIES))
        settings = Settings(self.bank(), delays, self.patterns(), self.trace())
        arrivals = self.arrivals()
        last = arrivals[-1][0]
        switches: list[tuple[int, list[int]]] = []
        tick = 0
        for _ in range(random.choice([0, 1, 3, 8])):
            tick += SWITCH_TICKS * max(self.scale // 100, 1) + random.randint(0, last // 3)
            if random.random() < 0.3:
                tick = random.choice(arrivals)[0] if tick < 10_000 else min(arrivals, key=lambda one: abs(one[0] - tick))[0]
            if (switches and tick < switches[-1][0] + SWITCH_TICKS) or tick < SWITCH_TICKS:
                continue
            switches.append((tick, self.bank()))
        end = last + self.least_delay + 60_000 * self.scale
        return Plan(settings, switches, arrivals, end, self.step_ticks, random.choice([0, 200, 1500]), random.choice([0, 60, 200]))

def random_plan(seed: int, count: int) -> Plan:
    """Return the plan of a seed, with ``count`` frames."""
    return Planner(seed, count).plan()

# Runs ---------------------------------------------------------------------------------------------

ITEM = struct.Struct("<IIQ")
SET, WRITE, FRAME, OPPORTUNITY, SWITCH, END = range(6)
POSITIONS = 2**22
SHOWN = 3 # Findings of a kind.

VERDICT_DTYPE = np.dtype([("position", "<u4"), ("keep", "u1"), ("lane", "u1"), ("outcome", "u1"), ("number", "u1")])
DEPARTURE_DTYPE = np.dtype(
    [("now", "<u8"), ("due", "<u4"), ("position", "<u4"), ("bit", "<u4"), ("length", "<u2")]
    + [(name, "u1") for name in ("lane", "number", "twice", "corrupt", "mended", "marked")] + [("ip", "<u4")])
Records = NDArray[np.void]

@dataclass(frozen=True)
class EngineRun:
    """Holds what the emulation did: a verdict of each frame, departures, words of the counters, cycles."""
    verdicts: Records
    departures: Records
    counts: NDArray[np.uint32]
    cycles: int

@dataclass(frozen=True)
class Compared:
    """Counts how far a run is from the reference.

    Attributes
    ----------
    frames, sent, switches : that came; that left; of the settings.
    outcomes : how many frames had each outcome.
    off : frames, departures and counters that are not as they should be.
    found : the first of them.
    """
    frames: int
    sent: int
    switches: int
    outcomes: dict[Outcome, int]
    off: int
    found: list[str]
    cycles: int

def ecn_of(tick: int) -> int:
    """Return what is known of ECN of the frame that comes at a tick: bit 0, whether it can be marked; above, where its IP is."""
    return (tick * 0x9E3779B1 & ALL) >> 26

def script_of(plan: Plan) -> bytes:
    """Return what the bench is to do."""
    parameters = (plan.step_ticks, plan.lag_ticks, plan.stall_256, plan.rate_256, ARRIVAL_TICKS, LEAD_TICKS,
        plan.memory_cycles, plan.memory_256, plan.again)
    items = [(SET, n, value) for n, value in enumerate(parameters)]
    memory = [*plan.settings.words, *[0] * BANK_WORDS, *plan.settings.delay_table(), *plan.settings.pattern_memory()]
    assert len(plan.settings.words) == BANK_WORDS and len(plan.settings.delay_table()) == DELAY_ENTRIES
    items += [(WRITE, place, word) for place, word in enumerate(memory)]
    items += [(OPPORTUNITY, ticks, octets) for ticks, octets in plan.settings.trace]
    bank = 0
    for tick, words in plan.switches:
        bank = 1 - bank
        items.append((SWITCH, 0, tick))
        items += [(WRITE, BANK_WORDS * bank + place, word) for place, word in enumerate(words[:CLASSES * 32 + 32])]
    items += [(FRAME, length | klass << 16 | ecn_of(tick) << 20, tick) for tick, length, klass in plan.arrivals]
    items.append((END, 0, plan.end))
    return b"".join(ITEM.pack(*item) for item in items)

def run(plan: Plan, pool: int = 0) -> EngineRun:
    """Run a plan, with ``pool`` of an `EngineBench`; RuntimeError where the emulation breaks a rule."""
    done = BENCH.run({"script": script_of(plan)}, pool=pool)
    return EngineRun(done.array("verdicts", VERDICT_DTYPE), done.array("departures", DEPARTURE_DTYPE),
        done.array("counts", np.uint32), done.numbers[0])

def reference(plan: Plan) -> tuple[Direction, list[int]]:
    """Return what should become of all frames, and which of them have been handed on at the end, in their order."""
    one = Direction(plan.settings)
    for tick, words in plan.switches:
        one.switch(tick, words)
    for arrival in plan.arrivals:
        one.arrive(*arrival, is_ect=bool(ecn_of(arrival[0]) & 1))
    left = one.advance(plan.end - ARRIVAL_TICKS, ARRIVAL_TICKS + LEAD_TICKS + 1)
    return one, [number for place, (_, number) in enumerate(left) if place == 0 or left[place - 1][1] != number]

# Comparison -------------------------------------------------------------------------------------------

def compare(plan: Plan, pool: int = 0) -> Compared:
    """Run a plan both ways."""
    done = run(plan, pool)
    one, left = reference(plan)
    off, found = 0, []
    for kind in (verdicts_off(done, one), departures_off(done, one, left), counts_off(done, one)):
        texts = list(kind)
        off += len(texts)
        found += texts[:SHOWN]
    outcomes = {outcome: sum(frame.outcome is outcome for frame in one.frames) for outcome in Outcome}
    return Compared(len(one.frames), len(left), len(plan.switches), outcomes, off, found, done.cycles)

def words_of(frame: Frame) -> int:
    """Return how many words of the store a frame takes."""
    return (frame.length + 3) // 4

def verdicts_off(done: EngineRun, one: Direction) -> Iterator[str]:
    """Give in what the verdict of each frame is off."""
    if len(done.verdicts) != len(one.frames):
        yield f"{len(done.verdicts)} verdicts on {len(one.frames)} frames"
    position = [0] * 9
    for frame, verdict in zip(one.frames, done.verdicts.tolist(), strict=False):
        outcome = Outcome.SENT if frame.did_wait or frame.outcome is None else frame.outcome
        expected = [int(frame.is_kept), outcome, frame.klass]
        came = [verdict[1], verdict[3], verdict[4]]
        if frame.is_kept:
            expected += [frame.lane, position[frame.lane] % POSITIONS]
            came += [verdict[2], verdict[0]]
            position[frame.lane] += words_of(frame)
        if came != expected:
            yield f"frame {frame.number} at tick {frame.time} (keep, outcome, class, lane, position): {came}, not {expected}"

def departures_off(done: EngineRun, one: Direction, left: list[int]) -> Iterator[str]:
    """Give in what each departure is off."""
    if len(done.departures) != len(left):
        yield f"{len(done.departures)} departures, not {len(left)}"
    position = [0] * 9
    place = {}
    for frame in one.frames: # The octets lie as they came.
        if frame.is_kept:
            place[frame.number] = position[frame.lane] % POSITIONS
            position[frame.lane] += words_of(frame)
    names = ("due", "lane", "number", "length", "position", "twice", "corrupt", "marked", "ip")
    for number, departure in zip(left, done.departures, strict=False):
        frame = one.frames[number]
        assert frame.due is not None # It was left.
        expected = [frame.due % 2**32, frame.lane, frame.klass, frame.length, place[number],
            int(frame.is_twice), int(frame.is_corrupt), int(frame.is_marked), ecn_of(frame.time) >> 1]
        came = [int(departure[name]) for name in names]
        if frame.is_corrupt:
            expected += [int(frame.is_mended), frame.bit]
            came += [int(departure["mended"]), int(departure["bit"])]
        if came != expected:
            yield f"frame {number} of tick {frame.time} ({', '.join(names)}, ...): {came}, not {expected}"

def counts_off(done: EngineRun, one: Direction) -> Iterator[str]:
    """Give which counters are off."""
    for klass in range(CLASSES):
        expected = one.counts.words(klass)
        came = done.counts[COUNTER_WORDS * klass:COUNTER_WORDS * (klass + 1)].tolist()
        for word, (got, wanted) in enumerate(zip(came, expected, strict=True)):
            if got != wanted:
                name = next((kind(word).name for kind in (ClassCounter, ClassGauge) if word in list(kind)), str(word))
                yield f"class {klass}: {name} is {got}, not {wanted}"
