# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``datagrams`` of the bench ``replay``: the compiled receiver of datagrams, its rings in a memory, against a model.

Frames come as the management port's store gives them, ``sys`` at 50 MHz. ``hostile``: loss, duplication, reordering, lying
lengths and heads, sessions, leases, full rings, wraps, reopening. ``line``: datagrams of 1472 octets of UDP back to back on a line
of 1 Gb/s, a memory that rests 10 cycles after each burst and 300 after one in a hundred: what a stream sustains for ever, and,
by arithmetic, what that is of a test port's line for frames that are replayed whole (a record has 8 octets more).
"""

from collections.abc import Iterator

from liteprobe.cores.formats import OVERHEAD, TRACE_HEADER_WORDS
from liteprobe.sim.drivers.replay.datagrams import LINE, run
from liteprobe.sim.drivers.tools.figures import Figure, row
from liteprobe.sim.models.receive.datagrams import Verdict

LINE_DATAGRAMS = 3000
LEAST = {60: 100.0, 256: 100.0, 512: 97.0, 1024: 95.5, 1514: 95.0}  # Per cent of a line, by length.


@row("replay")
def test_datagrams(is_full: bool) -> Iterator[Figure]:
    """10^5 datagrams and more of hostile networks; the rate of a full line."""
    found = [run(seed, 1000) for seed in range(100, 124 if is_full else 112)]
    yield Figure("datagrams_judged", sum(sum(one.verdicts.values()) for one in found), "datagrams", 1e5, is_least=True)
    yield Figure(
        "datagrams_accepted", sum(one.verdicts[Verdict.ACCEPTED] for one in found), "datagrams", 1e4, is_least=True
    )
    yield Figure("datagrams_off", sum(len(one.off) for one in found), "findings", 0)
    line = run(1, LINE_DATAGRAMS, LINE)
    yield Figure("datagrams_line_rate", line.payload_bps / 1e6, "Mb/s", 945, is_least=True)
    yield Figure("datagrams_line_off", len(line.off) + line.lost, "findings", 0)
    for length, least in LEAST.items():
        record = 4 * TRACE_HEADER_WORDS + 4 * -(-length // 4)
        share = min(100 * line.payload_bps / 1e9 * (length + OVERHEAD) / record, 100)
        yield Figure(f"datagrams_sustain_{length}", share, "%", least, is_least=True)
