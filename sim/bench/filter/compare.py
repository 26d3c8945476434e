# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Random rule sets and frames through the filter of the gateware, held against its model."""

import random
import sys
from dataclasses import dataclass, field

from liteprobe.cores.formats import NO_RULE
from liteprobe.sim.bench.filter.rules import RandomRules
from liteprobe.sim.bench.filter.filter import FilterRun, answer_of, hit_words
from liteprobe.sim.models.receive.filter import FilterKey, FilterModel

HOLD_CYCLES = 60  # Until no frame is under way that began before.


@dataclass
class Comparison:
    """What came of it: how much was compared, and what was otherwise than in the model."""

    packets: int = 0
    rule_sets: int = 0
    matched: int = 0
    disagreements: int = 0
    counters_off: int = 0
    rules: set[int] = field(default_factory=set)
    latencies: set[int] = field(default_factory=set)

    @property
    def rows_used(self) -> int:
        """Row slots that were the rule of a frame."""
        return len([rule for rule in self.rules if rule < 64])

    @property
    def terms_used(self) -> int:
        """Terms that were."""
        return len([rule for rule in self.rules if 64 <= rule < NO_RULE])


def compare(seed: int, rule_sets: int, packets: int) -> Comparison:
    """Send ``packets`` to each of two ports, at line rate, under each of the rule sets."""
    rng, run = random.Random(seed), FilterRun(random.Random(seed))
    cases: list[tuple[RandomRules, FilterModel, list[list[FilterKey]]]] = []
    for _ in range(rule_sets):
        rules = RandomRules(rng)
        model = FilterModel(rules.words, drop=rng.randrange(4) == 0)
        keys = [[rules.key(port) for _ in range(packets)] for port in range(2)]
        cases.append((rules, model, keys))
        run.control(enable=False)
        run.idle(HOLD_CYCLES)
        run.load(rules.words)
        run.control(drop=model.drop)
        run.send((keys[0], keys[1]))
        run.read(hit_words())
    found = iter(run.run())
    result = Comparison(rule_sets=rule_sets)
    for rules, model, keys in cases:
        sent, counters = next(found), next(found).read
        result.latencies |= sent.latencies
        for port_keys, answers in zip(keys, sent.answers, strict=True):
            for key, answer in zip(port_keys, answers, strict=True):
                decision = model.decide(key)
                model.count(decision)
                result.packets += 1
                result.matched += decision.matched
                result.rules.add(decision.rule)
                if answer_of(decision) != answer or decision.rows != rules.matching(key):
                    result.disagreements += 1
                    print(f"seed {seed}: {key}: {decision}, not {answer}", file=sys.stderr)
        wanted = [*model.row_hits[0], *model.row_hits[1], *model.term_hits]
        result.counters_off += sum(want != counter for want, counter in zip(wanted, counters, strict=True))
    return result
