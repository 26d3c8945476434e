# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The emulation of a direction against its reference, in short; `./run bench emulator engine` has the long runs."""

from dataclasses import replace
from random import Random

import pytest

from liteprobe.cores.formats.emulate import (
    CLASSES, COUNTER_WORDS, ENTRY_SPACE, LANES, REORDER_LANE, ClassCounter, ClassGauge, Outcome,
)
from liteprobe.sim.drivers.emulator.engine import (
    ALL, ARRIVAL_TICKS, DEPARTURE_DTYPE, LEAD_TICKS, EngineRun, Plan, Records, compare, counts_off, departures_off, random_plan,
    reference, run, verdicts_off, words_of,
)
from liteprobe.sim.models.emulator.direction import AROUND, Direction, Frame
from liteprobe.sim.models.emulator.settings import Settings, bank_words
import sys
from collections import Counter
from collections.abc import Iterator
from collections.abc import Mapping
from liteprobe.cores.formats import OVERHEAD
from liteprobe.cores.formats.emulate import BackgroundKind, ClassFlag
from liteprobe.sim.drivers.tools.figures import Figure, row

FRAMES = 1500
POOL = 256  # Entries in block RAM, of which lists that spill have a few each.
#: All services, loss, early drops, buckets, all backgrounds, traces, ties, jumbo frames, switches, and times beyond 2^32.
SEEDS = (0, 1, 9, 21, 32, 36, 39, 40, 48, 55)


@pytest.mark.parametrize(
    ("seed", "pool"),
    [
        pytest.param(seed, pool, marks=[pytest.mark.full] if number % 2 == bool(pool) else [])
        for pool in (0, POOL)
        for number, seed in enumerate(SEEDS)
    ],
)
def test_what_becomes_of_each_frame_is_what_the_reference_says(seed: int, pool: int) -> None:
    done = compare(random_plan(seed, FRAMES), pool)
    assert (done.frames, done.found) == (FRAMES, [])


def test_what_becomes_of_a_frame_does_not_depend_on_how_it_is_run() -> None:
    plan = random_plan(12, FRAMES)
    assert same(run(plan), run(replace(plan, step_ticks=plan.step_ticks // 7, lag_ticks=0, stall_256=240)))


def same(one: EngineRun, other: EngineRun) -> bool:
    """Return whether the same became of the same frames."""
    names = [name for name in DEPARTURE_DTYPE.fields or {} if name != "now"]
    departures = (one.departures[names] == other.departures[names]).all()
    return bool((one.verdicts == other.verdicts).all() and departures and (one.counts == other.counts).all())


def found(done: EngineRun, one: Direction, left: list[int]) -> list[int]:
    return [
        len(list(kind)) for kind in (verdicts_off(done, one), departures_off(done, one, left), counts_off(done, one))
    ]


def test_each_thing_that_is_off_is_seen() -> None:
    plan = random_plan(39, FRAMES)
    done = run(plan)
    one, left = reference(plan)
    assert found(done, one, left) == [0, 0, 0]
    kept = int(done.verdicts["keep"].argmax())
    for name in ("keep", "outcome", "number", "position", "lane"):
        verdicts = done.verdicts.copy()
        verdicts[name][kept] ^= 1
        assert found(replace(done, verdicts=verdicts), one, left) == [1, 0, 0], name
    for name in ("due", "lane", "number", "length", "position", "twice", "corrupt"):
        departures = done.departures.copy()
        departures[name][7] ^= 1
        assert found(replace(done, departures=departures), one, left) == [0, 1, 0], name
    for word in range(len(done.counts)):
        counts = done.counts.copy()
        counts[word] += 1
        assert found(replace(done, counts=counts), one, left) == [0, 0, 1], word
    assert found(replace(done, departures=done.departures[:-1]), one, left) == [0, 1, 0]
    assert found(replace(done, verdicts=done.verdicts[:-1]), one, left) == [1, 0, 0]


def taken(frame: Frame, pool: int) -> int:
    """Return the words of a ring that a frame takes."""
    return max(words_of(frame), ENTRY_SPACE if pool else 0)


@pytest.mark.parametrize("pool", [0, POOL])
def test_a_ring_that_is_full_takes_what_still_fits_and_all_again_once_it_is_empty(pool: int) -> None:
    bits, delay, bursts, apart = 9, 400_000, 3, 2_000_000
    chance = Random(5)
    classes = {number: {"delay": delay, "store_start": number << bits, "store_bits": bits} for number in range(CLASSES)}
    classes[6]["reorder"] = ALL  # All of its frames are in the lane of those that are held back.
    arrivals = []
    for burst in range(bursts):
        tick = 1000 + burst * apart
        for _ in range(200):  # The last one comes before the first one leaves.
            length = chance.choice([60, 700, 1514, chance.randint(60, 1514)])
            arrivals.append((tick, length, chance.randrange(CLASSES)))
            tick += length + AROUND
    link = {"store_start": CLASSES << bits, "store_bits": bits}
    plan = Plan(Settings(bank_words(classes, link)), [], arrivals, bursts * apart, 2000, 0, 60)
    done = run(plan, pool)
    offered = Direction(plan.settings)
    for arrival in arrivals:
        offered.arrive(*arrival)
    free, kept = {}, []
    for frame in offered.frames:
        key = (frame.time // apart, REORDER_LANE if frame.klass == 6 else frame.klass)
        kept.append(taken(frame, pool) <= free.setdefault(key, 1 << bits))
        free[key] -= taken(frame, pool) * kept[-1]
    assert 100 < sum(kept) < len(kept) - 100
    outcomes = [Outcome.SENT if is_kept else Outcome.NO_STORE for is_kept in kept]
    assert done.verdicts["outcome"].tolist() == outcomes
    assert done.verdicts["keep"].tolist() == [int(is_kept) for is_kept in kept]
    one, left = reference(
        replace(plan, arrivals=[arrival for arrival, is_kept in zip(arrivals, kept, strict=True) if is_kept])
    )
    for (_, length, klass), is_kept in zip(arrivals, kept, strict=True):
        if not is_kept:
            one.counts.arrived(klass, length)
            one.counts.dropped(klass, Outcome.NO_STORE, is_background=False)
    assert [*departures_off(done, one, left), *counts_off(done, one)] == []


@pytest.mark.parametrize(
    "own",
    [
        {"codel": 1, "codel_ecn": 1, "codel_target": 5000, "codel_interval": 100_000},
        {"codel": 1, "codel_target": 1000, "codel_interval": 20_000},
        {"flags": ClassFlag.PIE | ClassFlag.ECN, "pie": 1, "pie_target": 4000, "pie_update": 3000, "pie_burst": 3},
        {"flags": ClassFlag.PIE, "pie": 1, "pie_target": 100_000, "pie_update": 60_000},
    ],
    ids=["codel ecn", "codel", "pie ecn", "pie"],
)
def test_a_queue_that_is_offered_too_much_drops_as_the_reference(own: dict[str, int]) -> None:
    chance, tick, arrivals = Random(8), 1000, []
    for number in range(2500):
        arrivals.append((tick, chance.choice([60, 600, 1514]), 0))
        tick += arrivals[-1][1] + AROUND + chance.randrange(400 if number // 500 % 2 else 30_000)
    delay = ARRIVAL_TICKS + LEAD_TICKS + 4000
    classes = {number: {"delay": delay, "store_bits": 21, "limit_frames": 900, **own} for number in range(CLASSES)}
    settings = Settings(bank_words(classes, {"octet": 10 << 16, "store_bits": 21}))
    plan = Plan(settings, [], arrivals, tick + 20_000_000, 2000, 200, 60)
    done = compare(plan)
    assert (done.found, done.outcomes[Outcome.EARLY] > 30) == ([], True)


# What waits beyond block RAM -----------------------------------------------------------------------

BOARD_POOL = 512  # Entries of a probe's lists in block RAM (cores/emulate/direction.py).
STORE_BITS, SHARE_BITS = 19, 17  # Of a class that has all, while each other one has the least; of each of nine.
SHORTEST = 60
AT_ONCE = 30_000  # Frames.


def rings_of(bits: int) -> list[dict[str, int]]:
    """Return a ring for each lane."""
    if bits == SHARE_BITS:
        return [{"store_start": lane << bits, "store_bits": bits} for lane in range(LANES)]
    others = [{"store_start": (1 << STORE_BITS) + (lane << 9), "store_bits": 9} for lane in range(1, LANES)]
    return [{"store_start": 0, "store_bits": bits}, *others]


def waiting_plan(
    count: int, length: int, used: int, fields: Mapping[int, Mapping[str, int]], link: Mapping[str, int], after: int
) -> Plan:
    """Return frames back to back, of so many classes by turns, and how long all of it takes after the last one."""
    rings = rings_of(STORE_BITS if used == 1 else SHARE_BITS)
    classes = {n: {**rings[n], "delay": 10_000, **fields.get(n, {})} for n in range(CLASSES)}
    settings = Settings(bank_words(classes, {**rings[REORDER_LANE], **link}))
    arrivals = [(1000 + n * (length + AROUND), length, n % used) for n in range(count)]
    return Plan(settings, [], arrivals, arrivals[-1][0] + after, 2000, 0, 20)


def waiting_plans(count: int) -> dict[str, Plan]:
    """Return plans in which ``count`` frames of 60 octets wait or are under way at once; see their names."""
    slot = SHORTEST + AROUND
    slow = {"octet": 10 << 16, "service": 1}
    some = {"background": BackgroundKind.CONSTANT, "background_ticks": 200 * slot, "background_length": SHORTEST}
    lanes = {n: {"delay": (count + 500 * n) * slot} for n in range(CLASSES)}
    lanes[3] |= {"reorder": ALL // 2, "reorder_ticks": 500 * slot, "loss_good": ALL // 50}
    queues = {n: {"delay": 10_000 * (n + 1), "loss_good": ALL // 50, "flags": ClassFlag.LOSS_LATE, **some} for n in range(CLASSES)}
    drained = 10 * slot * count + 300_000
    plans = {
        "under_way": waiting_plan(count + 2000, SHORTEST, 1, {0: {"delay": count * slot}}, {}, count * slot + 100_000),
        "waiting": waiting_plan(count * 10 // 9, SHORTEST, 1, {}, slow, drained),
        "waiting_in_all": waiting_plan(count * 7 // 6, SHORTEST, CLASSES, queues, slow, 2 * drained),
        "under_way_in_all": waiting_plan(count + 2000, SHORTEST, CLASSES, lanes, {}, 3 * count * slot),
    }
    codel = {0: {"codel": 1, "codel_target": 100 * slot, "codel_interval": 5000 * slot, "codel_ecn": 1}}
    plans["codel"] = waiting_plan(count * 8 // 7, SHORTEST, 1, codel, slow, drained)
    # Another bank while they wait: another link, other delays and classes in turn.
    plan = plans["waiting_in_all"]
    rings = rings_of(SHARE_BITS)
    others = {n: {**rings[n], "delay": 5000, "service_weight": n + 1} for n in range(CLASSES)}
    words = bank_words(others, {**rings[REORDER_LANE], "octet": 5 << 16, "service": 1})
    plans["switched"] = replace(plan, switches=[(plan.arrivals[-1][0] + slot, words)])
    return plans


@pytest.mark.parametrize("name", waiting_plans(1))
def test_what_waits_beyond_block_ram_is_what_the_reference_says(name: str) -> None:
    done = compare(waiting_plans(1500)[name], BOARD_POOL)
    assert done.found == [] and done.outcomes[Outcome.FULL] == 0


@pytest.mark.parametrize(
    "how", [{"memory_cycles": 500, "memory_256": 128}, {"again": 15_000}, {"again": 20_011, "memory_cycles": 500}]
)
def test_nothing_depends_on_the_memory_nor_on_what_it_still_brings_after_a_start(how: dict[str, int]) -> None:
    plan = waiting_plans(1500)["under_way_in_all"]
    assert same(run(plan, BOARD_POOL), run(replace(plan, **how), BOARD_POOL))


def test_a_class_whose_ring_has_no_entry_left_drops_and_nothing_else_is_disturbed() -> None:
    # Late losses wait without octets: so what waits is bounded by entries alone.
    plan = waiting_plan(600, SHORTEST, 2, {}, {"octet": 100 << 16}, 20_000_000)
    rings = rings_of(SHARE_BITS)
    rings[1] = {**rings[1], "store_bits": 9}
    lost = {"flags": ClassFlag.LOSS_LATE, "loss_good": ALL}
    settings = Settings(bank_words({n: {**rings[n], "delay": 10_000, **(lost if n == 1 else {})} for n in range(CLASSES)},
        {**rings[REORDER_LANE], "octet": 100 << 16}))
    plan = replace(plan, settings=settings)
    done = run(plan, POOL)
    dropped = done.verdicts["outcome"] == Outcome.NO_STORE
    assert set(done.verdicts["number"][dropped].tolist()) == {1}
    kept = [arrival for arrival, is_dropped in zip(plan.arrivals, dropped.tolist(), strict=True) if not is_dropped]
    one, left = reference(replace(plan, arrivals=kept))
    for (_, length, klass), is_dropped in zip(plan.arrivals, dropped.tolist(), strict=True):
        if is_dropped:
            one.counts.arrived(klass, length)
            one.counts.dropped(klass, Outcome.NO_STORE, is_background=False)
    assert [*departures_off(done, one, left), *counts_off(done, one)] == []
    most = one.counts.words(1)[ClassGauge.QUEUE_MOST]
    assert (most, int(dropped.sum())) == ((1 << 9) // ENTRY_SPACE, 300 - len([k for k in kept if k[2] == 1]))


@row("emulator")
def test_waiting() -> Iterator[Figure]:
    """Frames that wait or are under way on the sizes of a board with an SDRAM, which hinders, against the reference."""
    for name, plan in waiting_plans(AT_ONCE * 21 // 20).items():
        done = compare(plan, BOARD_POOL)
        for found in done.found:
            print(f"{name}: {found}", file=sys.stderr, flush=True)
        yield Figure(f"waiting_{name}_off", done.off, "findings", 0)
        yield Figure(f"waiting_{name}_dropped", sum(done.outcomes[one] for one in (Outcome.FULL, Outcome.NO_STORE)), "frames", 0)
        yield Figure(f"waiting_{name}_most", most_at_once(plan), "frames", AT_ONCE, is_least=True)
    hindered = {"rate_256": 256 * TICK_MHZ // BOARD_MHZ, "step_ticks": 1, "stall_256": 0, "memory_cycles": 100, "memory_256": 0}
    departures = run(replace(waiting_plans(4000)["under_way"], lag_ticks=LAG_TICKS, **hindered), BOARD_POOL).departures
    yield Figure("waiting_behind_at_50_mhz", behind(departures), "ticks", ENGINE_TICKS)


def most_at_once(plan: Plan) -> int:
    """Return the frames that wait or are under way at once by the reference, at most."""
    one, _ = reference(plan)
    moves = sorted([(frame.due, -1) for frame in one.frames if frame.due is not None]
        + [(frame.time, 1) for frame in one.frames if frame.due is not None])
    count = most = 0
    for _, step in moves:
        count += step
        most = max(most, count)
    return most


@pytest.mark.parametrize(("ticks_256", "is_too_slow"), [(512, False), (32768, True)])
def test_an_emulation_whose_clock_is_too_slow_counts_late_frames_and_keeps_their_order(
    ticks_256: int, is_too_slow: bool
) -> None:
    delay, length, count, apart = ARRIVAL_TICKS + LEAD_TICKS + 1000, 1514, 400, 4000
    chance = Random(6)
    classes = {number: {"delay": delay, "store_bits": 21} for number in range(CLASSES)}
    arrivals = [(1000 + n * apart, length, chance.randrange(CLASSES)) for n in range(count)]
    end = arrivals[-1][0] + 50_000
    plan = Plan(Settings(bank_words(classes, {"store_bits": 21})), [], arrivals, end, 1, 0, 0, ticks_256)
    done = run(plan)
    one, left = reference(plan)
    assert len(left) == count
    assert [*verdicts_off(done, one), *departures_off(done, one, left)] == []
    late, waited, free = [0] * CLASSES, [0] * CLASSES, 0
    for departure in done.departures:
        ready = max(int(departure["now"]), int(departure["due"]))
        late[departure["number"]] += int(ready >= free and ready > departure["due"])
        waited[departure["number"]] += int(free > ready)
        free = max(ready, free) + length + AROUND
    counts = [done.counts[COUNTER_WORDS * klass :][:COUNTER_WORDS] for klass in range(CLASSES)]
    assert [words[ClassCounter.LATE] for words in counts] == late
    assert [words[ClassCounter.WAITED] for words in counts] == waited
    assert sum(late) > count // 2 if is_too_slow else sum(late) == 0


# Long runs ----------------------------------------------------------------------------------------

NETWORKS = 200
LEAST_OF_AN_OUTCOME = 1000


@row("emulator")
def test_engine(is_full: bool) -> Iterator[Figure]:
    """The compiled emulation of a direction against the reference, frame by frame; every outcome must come up.

    The outcome of each frame, where its octets go, its tick of departure and all that is done to it, and every counter. Networks
    have all features, ties, background beyond the link, switches, traces, jumbo frames, and times that pass 2^32 ticks. Every
    other one has most of its lists in a memory.
    """
    count = 100_000 if is_full else 10_000
    off = sent = frames = switches = cycles = 0
    outcomes: Counter[Outcome] = Counter()
    for seed in range(NETWORKS):
        done = compare(random_plan(seed, count), seed % 2 * POOL)
        for found in done.found:
            print(f"network {seed}: {found}", file=sys.stderr)
        if is_full:  # Takes an hour: what is done is known when it is ended before.
            line = f"network {seed} of 0 to {NETWORKS - 1}: {done.frames} frames, {done.sent} left, {done.off} off"
            print(
                f"{line}; all up to it: {frames + done.frames} frames, {off + done.off} off",
                file=sys.stderr,
                flush=True,
            )
        off, frames, sent = off + done.off, frames + done.frames, sent + done.sent
        switches, cycles = switches + done.switches, cycles + done.cycles
        outcomes.update(done.outcomes)
    yield Figure("engine_off", off, "findings", 0)
    yield Figure("engine_frames", frames, "frames", NETWORKS * count, is_least=True)
    yield Figure("engine_departures", sent, "frames", NETWORKS * count / 10, is_least=True)
    yield Figure("engine_switches", switches, "switches", NETWORKS, is_least=True)
    for outcome in (Outcome.DISCARDED, Outcome.LOST, Outcome.FULL, Outcome.EARLY):
        yield Figure(f"engine_{outcome.name.lower()}", outcomes[outcome], "frames", LEAST_OF_AN_OUTCOME, is_least=True)


SPEED_FRAMES, FRAME_LENGTH = 4000, 60
ENGINE_TICKS = 256  # As of a probe (soc/probe.py).
LAG_TICKS = FRAME_LENGTH + 4 + 512  # From the SFD of a frame of this length until it is classified.
TICK_MHZ, BOARD_MHZ, LEAST_MHZ, MOST_MHZ = 125, 50, 30, 110

CASES: dict[str, tuple[int, Mapping[str, int]]] = {
    "one_class": (1, {}),
    "eight_classes": (CLASSES, {}),
    "red": (CLASSES, {"flags": ClassFlag.RED, "red_most": 0xFFFF, "red_least": 0xFFFE}),
    "codel": (CLASSES, {"codel": 1}),
    "pie": (CLASSES, {"flags": ClassFlag.PIE, "pie": 1, "pie_update": 10**6}),
    "bucket": (CLASSES, {"token_octet": 1, "token_burst_high": 1}),
    # In one class, a background frame for every four frames.
    "ghosts": (
        1,
        {
            "background": BackgroundKind.CONSTANT,
            "background_ticks": 4 * (FRAME_LENGTH + OVERHEAD),
            "background_length": FRAME_LENGTH,
        },
    ),
}


def plan_of(used: int, fields: Mapping[str, int], mhz: int) -> Plan:
    """Return frames back to back, in so many classes by turns, and the pace of a clock."""
    delay = ARRIVAL_TICKS + LEAD_TICKS + ENGINE_TICKS
    classes = {n: {"delay": delay, "store_bits": 21, **(fields if n < used else {})} for n in range(CLASSES)}
    arrivals = [(1000 + n * (FRAME_LENGTH + OVERHEAD), FRAME_LENGTH, n % used) for n in range(SPEED_FRAMES)]
    settings = Settings(bank_words(classes, {"store_bits": 21}))
    return Plan(settings, [], arrivals, arrivals[-1][0] + 20_000, 1, LAG_TICKS, 0, 256 * TICK_MHZ // mhz)


def keeps_up(used: int, fields: Mapping[str, int], mhz: int) -> bool:
    """Return whether every frame is handed on in time at this clock."""
    try:
        departures = run(plan_of(used, fields, mhz)).departures
    except RuntimeError as error:
        if "frames come faster than they are taken" in str(error):
            return False
        raise
    return len(departures) == SPEED_FRAMES and behind(departures) <= ENGINE_TICKS


def behind(departures: Records) -> int:
    """Return the most ticks by which a frame is handed on later than its lead before it is due."""
    return int((departures["now"].astype("int64") - departures["due"].astype("int64")).max()) + LEAD_TICKS


@row("emulator")
def test_speed() -> Iterator[Figure]:
    """The least clock (MHz) at which frames of 60 octets, back to back, never wait for the engine, beside that of the boards.

    Ticks of 8 ns go on whatever it does. It keeps up where each frame is handed on in time for the least delay that a probe
    names: its lead before it is due, or ENGINE_TICKS later.
    """
    for name, (used, fields) in CASES.items():
        least, most = LEAST_MHZ, MOST_MHZ
        while least < most:
            middle = (least + most) // 2
            least, most = (least, middle) if keeps_up(used, fields, middle) else (middle + 1, most)
        yield Figure(f"speed_{name}", least, "MHz", BOARD_MHZ)
