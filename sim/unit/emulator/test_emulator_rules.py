# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Rules that name classes: the gateware against their model, and expressions made into rules against libpcap, frame by frame."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import UnifiedFlag
from liteprobe.cores.formats.emulate import RULE_BOUNDS, RULE_HALVES, RULE_TURNS, RULE_VERDICTS, RULES, UNMATCHED_CLASS
from liteprobe.host.base.errors import UsageError
from liteprobe.host.packets.filter import libpcap
from liteprobe.host.packets.filter.expression import parse
from liteprobe.host.packets.filter.rules import ClassRules, class_rules, rules_of
from liteprobe.host.packets.unified import has, label_count, tag_count
from liteprobe.sim.drivers.emulator import rules as gateware
from liteprobe.sim.drivers.filter import faults
from liteprobe.sim.drivers.filter.expressions import DEEP, EXPRESSIONS, OCTETS, ON_HOST, Frames, RandomRules, rare, varied
from liteprobe.sim.drivers.frames import stacks
from liteprobe.sim.drivers.tools.figures import Figure, Size, note, row
from liteprobe.sim.models.emulator.rules import RulesModel, headers_of

ALWAYS_THERE = (3, 4, 5, *range(28, 31))  # Words of a header that every frame has.
Classes = Mapping[int, tuple[str, str]]  # Number, and expression.


def frames_of(count: int, rng: random.Random) -> list[bytes]:
    """Return frames as they come on a line: with tags, labels, extension headers, fragments; some are broken."""
    made = [*varied(count // 3, rng), *rare(count // 30, rng), *rng.sample(stacks.stacks(), min(count // 3, 700))]
    made += stacks.fuzz(count - len(made), rng.randrange(1000))
    rng.shuffle(made)
    return [frame.ljust(60, b"\0")[:1514] for frame in made]


def memory_of(rules: ClassRules) -> dict[int, int]:
    """Return the words of rules."""
    return {first + place: word for first, words in rules.blocks(RULES) for place, word in enumerate(words)}


def random_memory(rng: random.Random, looks: int) -> dict[int, int]:
    """Return rules that ask for random values of random halves, and random ranges of the length."""
    memory = {RULE_VERDICTS + turn: rng.randrange(256) for turn in range(RULE_TURNS)}
    for word in (word for word in ALWAYS_THERE if looks >> word & 1):
        for at in range(128 * word, 128 * word + 16 * RULE_HALVES):
            memory[at] = sum((rng.random() < 0.97) << rule for rule in range(RULES))
    ranges = [(rng.randrange(40, 200), rng.randrange(100, 400)) for _ in range(RULES)]
    for step, value in ((step, value) for step in range(8) for value in range(16)):
        bounds = [ends[step // 4] >> 4 * (step % 4) & 15 for ends in ranges]
        at = RULE_BOUNDS + 32 * (24 + step) + value
        memory[at] = sum((value > bound if step < 4 else value < bound) << rule for rule, bound in enumerate(bounds))
        memory[at + 16] = sum((value == bound) << rule for rule, bound in enumerate(bounds))
    return memory


def test_random_rules_name_the_classes_of_the_model_at_line_rate_and_faster() -> None:
    rng = random.Random(3)
    some = frames_of(300, rng)
    cases: list[tuple[dict[int, int], int, list[bytes]]] = []
    for _ in range(12):
        looks = sum(1 << word for word in ALWAYS_THERE if rng.random() < 0.6) | 4 * rng.randrange(2)
        cases.append((random_memory(rng, looks), looks, rng.sample(some, 60)))
    wanted = [RulesModel(memory, looks).classes(headers_of(frames)) for memory, looks, frames in cases]
    assert len(set(np.concatenate(wanted).tolist())) == 8
    for spacing in (0, 32):
        found, took = gateware.run(cases, spacing)
        assert found.tolist() == np.concatenate(wanted).tolist()
        assert took == (53, 53)


def asked(classes: Classes) -> ClassRules:
    """Return the rules of classes."""
    return class_rules({number: (name, parse(match)) for number, (name, match) in classes.items()})


def by_libpcap(classes: Classes, frames: Sequence[bytes]) -> NDArray[np.uint8]:
    """Return the class of each frame: the first whose expression libpcap says holds."""
    found = np.full(len(frames), UNMATCHED_CLASS, np.uint8)
    for number in sorted(classes, reverse=True):
        found[libpcap.matches(classes[number][1], frames)] = number
    return found


def networks(texts: Sequence[str]) -> tuple[list[Classes], Counter[str]]:
    """Return expressions as classes of as few directions as hold them, each of 32 rules at most; and why some are left out."""
    made: list[Classes] = []
    present: dict[int, tuple[str, str]] = {}
    used, left = 0, Counter[str]()
    for text in texts:
        try:
            count = len(rules_of(parse(text)))
        except UsageError as error:
            left["no frame can match" if "no frame can" in str(error) else "refused"] += 1
            continue
        try:
            libpcap.compiled(text)
        except UsageError:
            left["libpcap refuses it"] += 1
            continue
        if count > RULES:
            left["more than 32 rules"] += 1
            continue
        if len(present) == UNMATCHED_CLASS or used + count > RULES:
            made.append(present)
            present, used = {}, 0
        present[len(present)] = (text, text)
        used += count
    return [*made, present], left


@row("emulator", "rules", is_test=True)
def test_expressions_made_into_rules_are_what_libpcap_says_of_each_frame(size: Size) -> Iterator[Figure]:
    """Yield what rules of random expressions say otherwise than libpcap, by their model, and of some frames by the gateware.

    Frames whose headers end too soon, or that are malformed, are left out, and counted: the probe reads nothing beyond them.
    """
    rng = random.Random(38)
    frames = frames_of(size.of(900, 40_000, 300_000), rng)
    headers = headers_of(frames)
    whole = np.flatnonzero(~has(headers, UnifiedFlag.UNPARSED))
    few = rng.sample(range(len(frames)), size.of(60, 600, 2000))
    maker = RandomRules(rng, Frames.of(frames[:2000]).keys)
    fixed = [*EXPRESSIONS, *ON_HOST, *DEEP, *OCTETS]
    count = size.of(60, 500)
    texts = [*(rng.sample(fixed, 30) if size is Size.TEST else fixed), *(maker.expression() for _ in range(count))]
    rng.shuffle(texts)
    made, left = networks(texts)
    off, misread, cases, wanted = 0, 0, [], []
    for classes in made:
        rules = asked(classes)
        model = RulesModel(memory_of(rules), rules.looks)
        here, there = model.classes(headers[whole]), by_libpcap(classes, [frames[place] for place in whole])
        differs = here != there
        for word, counted in (("vlan", tag_count(headers[whole])), ("mpls", label_count(headers[whole]))):
            # Behind 'vlan or', libpcap reads what would be behind a tag, and doesn't ask whether one is there.
            joined = [match for _, match in classes.values() if " or " in match or "||" in match]
            most = max((match.count(word) for match in joined), default=0)
            misread += int(np.count_nonzero(differs & (counted < most)))
            differs &= counted >= most
        off += int(np.count_nonzero(differs))
        for place in np.flatnonzero(differs)[:1]:
            note(f"{classes}: class {here[place]}, by libpcap {there[place]}: {frames[whole[place]][:80].hex()}")
        cases.append((memory_of(rules), rules.looks, [frames[place] for place in few]))
        wanted.append(model.classes(headers[few]))
    found, took = gateware.run(cases)
    cut = np.flatnonzero(has(headers, UnifiedFlag.UNPARSED))[:3000]
    broken = Counter(faults.fault(frames[place]) or "nothing" for place in cut)
    note(f"left out: {len(frames) - len(whole)} of {len(frames)} frames, whose headers are not whole; of {sum(broken.values())}: ")
    note(*(f"  {number} {fault}" for fault, number in broken.most_common()))
    note(*(f"left out: {number} expressions: {why}" for why, number in left.items()))
    yield Figure("rules_expressions", sum(map(len, made)), "expressions", size.of(60, 500), is_least=True)
    yield Figure("rules_frames_to_libpcap", len(whole), "frames", size.of(700, 30_000, 225_000), is_least=True)
    yield Figure("rules_off_libpcap", off, "frames", 0)
    yield Figure("rules_frames_read_as_tagged_that_are_not", misread, "frames", 20)
    yield Figure("rules_left_out_but_not_broken", broken["nothing"], "frames", 0)
    yield Figure("rules_gateware_frames", len(found), "frames", size.of(500, 40_000), is_least=True)
    yield Figure("rules_gateware_off_model", int(np.count_nonzero(found != np.concatenate(wanted))), "frames", 0)
    yield Figure("rules_latency", max(took), "cycles from a frame's end", 55)
