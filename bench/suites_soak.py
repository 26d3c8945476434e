# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Rows of the bench ``suites`` about soak tests and bit errors, at the pins of the simulated probe.

Runs are scaled to milliseconds. What is excluded: bits that are wrong in a frame whose FCS is right, which no wire of the
simulation makes; the meters' own tests count those.
"""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from liteprobe.host.probe import Probe
from liteprobe.host.suites.soak import Soak, SoakRequest
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.lengths import Fixed
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.drivers.tools.figures import Figure, drawn, row


@row("suites")
def test_soak(is_full: bool) -> Iterator[Figure]:
    """A device that reboots now and then and loses by chance: each lost frame is in the count and in one event at its time."""
    chance = drawn()
    lost_off, outside, verdicts = 0, 0, 0
    for _ in range(4 if is_full else 1):
        length = chance.randrange(68, 600)
        stream = Stream("soaked", 1, Fixed(length), Interval(share=Fraction(chance.randrange(20, 70), 100)))
        wire = f"loss={chance.randrange(1, 40) / 100:.2f}%&reboot=150us&reboot_every={chance.randrange(900, 2500)}us"
        with TemporaryDirectory() as folder:
            path = Path(folder) / "truth"
            with Probe(f"sim://device?preset=tester&cpu=0&{wire}&seed={chance.randrange(2**32)}&truth={path}") as probe:
                result = Soak(probe, SoakRequest((stream,), 0.008, 0.002)).run()
            out = truth.frames_out(truth.read_truth(path), 0)
        gone = out["fate"] == truth.LOST
        lost_off += abs(int(gone.sum()) - (result.lost or 0)) + abs(len(out) - (result.sent or 0))
        # Times of a run are without the pauses between segments: by the frames sent before, not by the clock.
        at_s = [number * 8e-9 * float((length + 24) / stream.interval.share) for number in gone.nonzero()[0]]  # type: ignore[operator]
        block_s = 0.002 / 10
        near = [any(one.at_s - block_s <= at <= one.until_s + block_s for one in result.events) for at in at_s]
        outside += near.count(False)
        verdicts += str(result.outcome) != ("FAILED" if gone.any() else "passed")
    yield Figure("soak_frames_off", lost_off, "frames", 0)
    yield Figure("soak_losses_outside_of_events", outside, "frames", 0)
    yield Figure("soak_wrong_verdicts", verdicts, "runs", 0)


@row("suites")
def test_bert(is_full: bool) -> Iterator[Figure]:
    """A cable without faults, and one that flips bits: checked bits by arithmetic, damaged frames by the truth."""
    del is_full
    chance = drawn()
    bits_off, lost_off, wrong = 0, 0, 0
    for corrupt in ("0%", "3%"):
        length = chance.randrange(200, 1515)
        stream = Stream("prbs", 1, Fixed(length), Interval(share=Fraction(9, 10)), fill="prbs")
        with TemporaryDirectory() as folder:
            path = Path(folder) / "truth"
            url = f"sim://cable?preset=tester&cpu=0&corrupt={corrupt}&seed={chance.randrange(2**32)}&truth={path}"
            with Probe(url) as probe:
                result = Soak(probe, SoakRequest((stream,), 0.003, 0.001, True)).run()
            out = truth.frames_out(truth.read_truth(path), 0)
        (found,) = result.rows
        damaged = int((out["fate"] == truth.CORRUPTED).sum())
        bits_off += abs(found.checked_bits - 8 * (length - 60) * (found.sent - damaged))
        lost_off += abs(found.lost - damaged)
        wrong += found.verdict != ("FAILED" if damaged else "passed")
    yield Figure("bert_bits_off", bits_off, "bits", 0)
    yield Figure("bert_damaged_frames_off", lost_off, "frames", 0)
    yield Figure("bert_wrong_verdicts", wrong, "runs", 0)
