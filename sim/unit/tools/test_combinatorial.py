# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A signal that is worked out from itself is refused before it is simulated: in gates it is a loop."""

import random

import pytest
from migen import *
from migen.fhdl.tools import group_by_targets

from liteprobe.sim.system.combinatorial import grouped, refuse_loop

REQUEST, OUT, OTHER = Signal(4, name="request"), Signal(4, name="out"), Signal(4, name="other")


@pytest.mark.parametrize(
    "statements",
    [
        [OUT.eq(REQUEST), If(OUT == 0, OUT.eq(OTHER))],
        [OUT.eq(REQUEST), If(REQUEST[0], If(OTHER == 0, OUT.eq(OUT + 1)))],
        [Case(OUT, {0: OUT.eq(REQUEST), "default": OUT.eq(OTHER)})],
        [Case(REQUEST, {0: [If(OUT[1], OUT.eq(0))]})],
        [Cat(OTHER, OUT).eq(Cat(REQUEST, OUT))],
    ],
)
def test_a_signal_that_reads_itself_is_refused(statements):
    with pytest.raises(ValueError, match="out reads itself"):
        refuse_loop(OUT, statements)


@pytest.mark.parametrize(
    "statements",
    [
        [OUT.eq(REQUEST), If(REQUEST == 0, OUT.eq(OTHER))],
        [OUT.eq(REQUEST), If(OTHER == 0, REQUEST.eq(OUT))],
        [Case(REQUEST, {0: OUT.eq(OTHER), 1: OTHER.eq(OUT)})],
        [If(OTHER == 0, OUT.eq(REQUEST)), If(OUT == 0, OTHER.eq(REQUEST))],
    ],
)
def test_others_pass(statements):
    refuse_loop(OUT, statements)


@pytest.mark.sample(7)
@pytest.mark.parametrize("seed", range(20))
def test_groups_of_statements_are_those_of_migen_in_its_order(seed):
    """Statements of up to three of twelve targets, a few of none, nested in conditions and in lists."""
    chance  = random.Random(seed)
    signals = [Signal(4, name=f"signal{number}") for number in range(12)]

    def statement(depth):
        if depth and chance.random() < 0.3:
            return If(chance.choice(signals), [statement(depth - 1) for _ in range(chance.randrange(3))])
        if depth and chance.random() < 0.1:
            return [statement(depth - 1) for _ in range(chance.randrange(3))]
        chosen = chance.sample(signals, chance.choice([1, 1, 1, 2, 3]))
        return (chosen[0] if len(chosen) == 1 else Cat(*chosen)).eq(chance.choice(signals))

    statements = [statement(2) for _ in range(chance.randrange(40))]
    assert grouped(statements) == group_by_targets(statements)
