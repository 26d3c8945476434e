# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The PCS of 10 Gb/s against a model that is written apart, bit by bit, and by examples of the standard."""

import numpy as np
import pytest

from liteprobe.sim.drivers.xgmii.pcs import after_idle, run, trimmed
from liteprobe.sim.models import baser, xgmii
from liteprobe.sim.models.xgmii import Line

BER_CYCLES = 4000  # In place of 20,141: each error of a header is seen within a test.


def left(done, count):
    """Return the blocks that left with the first ``count`` words of the line, as rows; they come behind those of a start."""
    rows = done.bits().reshape(-1, 66)
    filled = next(n for n in range(len(rows)) if rows[n, :2].any())
    return rows[filled : filled + count], rows[:filled]


# Blocks -------------------------------------------------------------------------------------------


def test_idle_is_the_scrambled_block_of_the_standard():
    rows = baser.encoded(Line(np.full(8, xgmii.IDLE, np.uint8), np.ones(8, bool)))
    assert rows.tolist() == [[1, 0, 0, 1, 1, 1, 1, 0, 0, 0] + [0] * 56]


@pytest.mark.parametrize("seed", range(3))
def test_each_word_of_a_line_of_any_kind_leaves_as_its_block(seed):
    line = xgmii.hostile(2_000, seed)
    done = run(line)
    words = line.words()
    sent, started = left(done, len(words) + 8)
    wanted = baser.encoded(Line.read(words))
    plain = baser.plain(np.vstack([started, sent]))[len(started) :]
    places = [n for n in range(9) if (plain[n : n + len(wanted)] == wanted).all()]
    assert len(places) == 1
    assert done.counts["tx_lost"] == done.counts["tx_missed"] == 0


@pytest.mark.parametrize("seed", range(3))
def test_each_block_of_a_line_of_any_kind_comes_as_its_word(seed):
    line = after_idle(Line.read(xgmii.hostile(2_000, seed).words()))
    rows = baser.encoded(line)
    done = run(bits=baser.scrambled(rows).reshape(-1), ppm=(0, 100, -100)[seed])
    assert trimmed(done.received) == trimmed(baser.decoded(rows))
    assert done.counts["is_locked"] and not done.slips
    assert done.counts["rx_lost"] == done.counts["rx_missed"] == 0


@pytest.mark.parametrize("offset", [1, 2, 33, 65])
def test_blocks_are_found_from_any_bit_on(offset):
    line = after_idle(Line.read(xgmii.hostile(200, offset).words()), 12_000)
    rows = baser.encoded(line)
    done = run(bits=baser.scrambled(rows).reshape(-1), offset=offset)
    assert trimmed(done.received) == trimmed(baser.decoded(rows))
    assert len(done.slips) % 66 == 66 - offset


def test_bit_errors_of_a_line_are_those_of_the_standard():
    line = after_idle(Line.read(xgmii.hostile(2_000, 5).words()))
    bits = baser.scrambled(baser.encoded(line)).reshape(-1)
    chance = np.random.default_rng(5)
    bits[400 * 66 :] ^= chance.random(len(bits) - 400 * 66) < 3e-4
    wanted = baser.decoded(baser.plain(bits.reshape(-1, 66)))
    done = run(bits=bits)
    assert trimmed(done.received) == trimmed(wanted)
    assert done.counts["rx_error_count"] > 100 and done.counts["is_locked"]


def states(done):
    """Return whether there was a local fault, each time that it changed; a line that has ended is one."""
    octets, control = done.received.octets.reshape(-1, 8), done.received.control.reshape(-1, 8)
    fault = np.array(baser.LOCAL_FAULT)
    is_fault = (octets == fault[0]).all(axis=1) & (control == fault[1]).all(axis=1)
    changes = np.flatnonzero(np.diff(is_fault)) + 1
    return [bool(is_fault[place]) for place in [0, *changes]]


@pytest.mark.parametrize("wrong", [15, 16])
def test_sixteen_wrong_headers_in_125_us_are_a_local_fault_and_fifteen_are_not(wrong):
    rows = baser.scrambled(baser.encoded(after_idle(Line.read(xgmii.hostile(50, 1).words()), 12_000)))
    # In the second window of so many cycles; fewer than sixteen of any 64.
    rows[BER_CYCLES + 200 : BER_CYCLES + 200 + 100 * wrong : 100, :2] = 1
    done = run(bits=rows.reshape(-1), ber_cycles=BER_CYCLES)
    assert states(done) == [True, *[False, True] * (1 + (wrong == 16))]
    assert not done.slips and done.counts["rx_error_count"] >= wrong


@pytest.mark.parametrize("wrong", [15, 16])
def test_sixteen_wrong_headers_of_64_lose_the_lock_and_fifteen_do_not(wrong):
    rows = baser.scrambled(baser.encoded(after_idle(Line.read(xgmii.hostile(50, 1).words()), 12_000)))
    rows[64 * 20 + 1 : 64 * 20 + 1 + 3 * wrong : 3, :2] = 0
    done = run(bits=rows.reshape(-1))
    assert bool(done.slips) == (wrong == 16)
    assert len(done.slips) % 66 == 0 and done.counts["is_locked"]


def test_a_line_that_was_noise_is_found_again():
    line = after_idle(Line.read(xgmii.hostile(300, 2).words()), 12_000)
    rows = baser.scrambled(baser.encoded(line))
    noise = np.random.default_rng(1).integers(0, 2, (3_000, 66), np.uint8)
    done = run(bits=np.vstack([rows[:500], noise, rows[500:]]).reshape(-1))
    received, wanted = (trimmed(one) for one in (done.received, baser.decoded(baser.encoded(line))))
    assert received[0][-len(wanted[0]) :] == wanted[0] and received[1][-len(wanted[1]) :] == wanted[1]
    assert states(done)[:4] == [True, False, True, False]  # The line has faults of its own later.


def test_a_line_that_ends_is_a_local_fault():
    rows = baser.scrambled(baser.encoded(after_idle(Line.read(xgmii.hostile(50, 1).words()))))
    done = run(bits=rows.reshape(-1))
    assert states(done) == [True, False, True] and done.counts["rx_missed"] == 0
