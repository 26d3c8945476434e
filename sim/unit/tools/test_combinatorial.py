# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A signal that is worked out from itself is refused before it is simulated: in gates it is a loop."""

import pytest
from migen import *

from liteprobe.sim.system.combinatorial import refuse_loop

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
