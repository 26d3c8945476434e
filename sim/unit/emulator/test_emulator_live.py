# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Networks that a host changes at random in mid-traffic: each frame is the reference's, and what holds is what was set."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from liteprobe.cores.formats.emulate import (
    BANK_WORDS, CLASS_FIELDS, CLASSES, DELAY_ENTRIES, LINK_FIELDS, LINK_WORD, SETTING_WORDS, UNMATCHED_CLASS,
)
from liteprobe.host.base.errors import UsageError
from liteprobe.host.probe import Probe
from liteprobe.host.traffic.network import Network
from liteprobe.host.traffic.network.document import network_document, read_network
from liteprobe.sim.drivers.emulator.engine import ARRIVAL_TICKS, LEAD_TICKS, MARGIN, Plan, compare
from liteprobe.sim.drivers.system.fake_link import FakeLink, fake_emulator
from liteprobe.sim.drivers.tools.figures import Figure, row
from liteprobe.sim.models.emulator.direction import AROUND
from liteprobe.sim.models.emulator.settings import Settings
from liteprobe.sim.models.probe.emulator import SETTINGS_BASE, SETTINGS_WORDS, EmulatorProbe

STEP_TICKS = 500
CHANGES = 30 # The bench has 1000.
FIRST = """\
both: {rate: 600Mbit, queue: 30, delay: 100us}
there:
  classes:
    - {name: a, match: udp, jitter: {spread: 10us}, background: {kind: constant, share: 5%}}
    - {name: b, match: tcp, queue: {frames: 20, octets: 20000}, loss_pattern: '00010'}
    - {name: c.d, match: icmp, bucket: {rate: 200Mbit, burst: 6000}, reorder: {share: 1%, extent: 20us}}
"""
NAMES = {0: "a", 1: "b", 2: "c.d", UNMATCHED_CLASS: "rest"}
PLACES = ("store_start", "store_bits", "pattern_start", "background_start") # Where something lies.
TABLES_WORD = 2 * BANK_WORDS

def setting(random: Random) -> str:
    """Return a setting of one thing; a few can't be."""
    share = f"{random.choice([0, 1, 5, 20, 100])}%"
    time = f"{random.randint(40, 400)}us"
    numbers = sorted(random.sample(range(3000), random.randint(1, 20)))
    pace = random.choice(["rate: 20Mbit", "share: 10%", "interval: 50us"])
    burst = random.choice([f"constant, {pace}", f"exponential, {pace}", f"on-off, {pace}, burst: 5, pause: 100us"])
    of_class = [
        f"delay={time}", f"loss={share}", f"loss={{p: {share}, r: 50%}}", f"queue={random.randint(1, 60)}",
        f"queue.octets={random.randint(1600, 60000)}", f"weight={random.randint(1, 5)}", f"duplicate={share}", f"corrupt={share}",
        f"rate={random.choice(['50Mbit', '300Mbit', 'none'])}", f"discard={random.choice(['true', 'false'])}",
        f"overhead={random.randint(0, 255)}", f"loss_late={random.choice(['true', 'false'])}",
        "jitter={spread: 10us}", "jitter=none",
        f"loss_pattern={''.join(random.choice('0001') for _ in range(random.randint(1, 90)))}", f"loss_list={numbers}",
        "loss_pattern=none", f"background={{kind: {burst}}}", "background=none",
        f"background.stopped={random.choice(['true', 'false'])}",
        f"queue={{frames: 40, red: {{least: 3, most: 30, share: {share}, weight: 4}}}}",
        f"mended={random.choice(['true', 'false'])}",
        f"background={{kind: pattern, entries: [{{after: {time}, length: 900}}, {{after: 30us, length: 60}}]}}",
        "jitter={spread: 1ms}", "delay=8s", "reorder.share=2%",
    ]
    of_direction = [f"rate={random.randint(100, 1000)}Mbit", f"service={random.choice(['strict', 'weighted'])}", f"delay={time}"]
    if random.random() < 0.15:
        return f"there.{random.choice(of_direction)}"
    return f"there.{random.choice(list(NAMES.values()))}.{random.choice(of_class)}"

@dataclass
class LiveRun:
    """Holds what a host set, and what it wrote to its probe for that."""
    model: EmulatorProbe
    plan: Plan
    taken: int
    refused: int
    changed_at_refusals: int
    network: Network
    seen: Network # By another host.

def tables(model: EmulatorProbe) -> dict[int, int]:
    """Return all words behind the banks."""
    return {word: model.read(SETTINGS_BASE + 4 * (TABLES_WORD + word)) for word in range(SETTINGS_WORDS - TABLES_WORD)}

def holding(model: EmulatorProbe) -> list[int]:
    """Return the bank that holds there, without its description."""
    one = model.running[0]
    assert one
    return [model.read(SETTINGS_BASE + 4 * (BANK_WORDS * one.bank + word)) for word in range(LINK_WORD + SETTING_WORDS)]

def live_run(seed: int, count: int, folder: Path) -> LiveRun:
    """Set so many things at random, one to four of them at a time."""
    random = Random(seed)
    model, link = fake_emulator(folder, EmulatorProbe(least_delay=ARRIVAL_TICKS + LEAD_TICKS + MARGIN + STEP_TICKS))
    switches: list[tuple[int, list[int]]] = []
    others: list[dict[int, int]] = []
    refused = off = 0
    with Probe(link) as probe, probe.emulate(read_network(FIRST)) as emulation:
        padding = [0] * (BANK_WORDS - LINK_WORD - SETTING_WORDS)
        before = tables(model)
        first = Settings(holding(model) + padding, list(before.values())[:DELAY_ENTRIES], list(before.values())[DELAY_ENTRIES:])
        while len(switches) < count:
            probe.wait(random.choice([70e-6, 100e-6, 300e-6]))
            held = holding(model)
            try:
                emulation.set_words(*[setting(random) for _ in range(random.choice([1, 1, 1, 2, 4]))])
            except UsageError:
                refused += 1
                off += (held, before) != (holding(model), tables(model))
                continue
            now = tables(model)
            switches.append((model.switches[-1][2], holding(model) + padding))
            others.append({place: word for place, word in now.items() if word != before[place]})
            before = now
        with Probe(FakeLink(model, folder)) as other:
            seen = other.emulate().now
        network = emulation.now
        assert network and seen and emulation.look().there.state == count
        arrivals, tick = [], 20_000
        while tick < switches[-1][0] + 100_000:
            length = random.choice([60, 1514, random.randint(60, 1514)])
            arrivals.append((tick, length, random.choice([*NAMES])))
            tick += int((length + AROUND) * random.choice([1, 1, 1, 1.5, 4]))
        plan = Plan(first, switches, arrivals, tick + 600_000, STEP_TICKS, 200, 60, tables=others)
        return LiveRun(model, plan, len(switches), refused, off, network, seen)

def fields(words: list[int], patterns: dict[int, int]) -> list[dict[str, Any]]:
    """Return what a bank says, with what lies in patterns in the place of where it lies."""
    found = []
    for number in range(CLASSES):
        own = words[SETTING_WORDS * number:SETTING_WORDS * (number + 1)]
        value = {name: place.value(own) for name, place in CLASS_FIELDS.items()}
        listed = value["pattern_count"] if value["flags"] & 32 else -(-value["pattern_count"] // 32)
        counts = {"pattern_start": listed, "background_start": 2 * value["background_count"]}
        lie = {name: [patterns[DELAY_ENTRIES + value[name] + n] for n in range(each)] for name, each in counts.items()}
        found.append({**{name: one for name, one in value.items() if name not in PLACES}, **lie})
    link = {name: place.value(words[LINK_WORD:]) for name, place in LINK_FIELDS.items() if name not in PLACES}
    return [*found, link]

def different(done: LiveRun, folder: Path) -> int:
    """Return how many classes are not as in a network that begins so; queues whose length isn't given are as the store has."""
    model, link = fake_emulator(folder, EmulatorProbe(least_delay=ARRIVAL_TICKS + LEAD_TICKS + MARGIN + STEP_TICKS))
    with Probe(link) as probe, probe.emulate(done.network):
        wanted = fields(holding(model), tables(model))
    came = fields(holding(done.model) if done.model.running[0] else done.plan.switches[-1][1], tables(done.model))
    for number, one in done.network.there.numbered.items():
        if one.queue.frames is None:
            wanted[number]["limit_frames"] = came[number]["limit_frames"] = 0
    return sum(one != other for one, other in zip(wanted, came, strict=True))

def test_frames_among_changes_at_random_are_those_of_the_reference(tmp_path: Path) -> None:
    done = live_run(3, CHANGES, tmp_path)
    found = compare(done.plan)
    assert (found.found, found.frames, found.switches) == ([], len(done.plan.arrivals), CHANGES)
    assert (done.changed_at_refusals, different(done, tmp_path)) == (0, 0) and done.refused
    assert network_document(done.seen) == network_document(done.network)

@row("emulator")
def test_live() -> Iterator[Figure]:
    """1,000 changes at random in mid-traffic, by the host through the engine: frame by frame against the reference.

    One to four settings each, of all keys. What a host wrote for them, with its ticks, is taken through the compiled engine. Those
    that can't be are refused, are not among the 1,000, and are given by their number.
    """
    off = states = seen = changed = frames = taken = refused = 0
    for seed in range(5):
        with TemporaryDirectory() as folder:
            done = live_run(100 + seed, 200, Path(folder))
            found = compare(done.plan)
            for text in found.found:
                print(f"seed {seed}: {text}")
            states += different(done, Path(folder))
        seen += network_document(done.seen) != network_document(done.network)
        off, frames, taken = off + found.off, frames + found.frames, taken + done.taken
        refused, changed = refused + done.refused, changed + done.changed_at_refusals
    yield Figure("live_set", taken, "changes", 1000, is_least=True)
    yield Figure("live_frames", frames, "frames", 10_000, is_least=True)
    yield Figure("live_off", off, "findings", 0)
    yield Figure("live_state_off", states, "classes", 0)
    yield Figure("live_seen_off", seen, "networks", 0)
    yield Figure("live_refused", refused, "changes", 1, is_least=True)
    yield Figure("live_refused_off", changed, "changes", 0)
