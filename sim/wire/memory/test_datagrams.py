# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Datagrams from frames to rings in a memory: the receiver, compiled, against the model, with hosts that go back when told."""

import pytest

from liteprobe.sim.drivers.replay import datagrams
from liteprobe.sim.drivers.tools.wire import with_full
from liteprobe.sim.models.receive.datagrams import Verdict

LINE_OCTETS = 8 + 14 + 20 + 8 + 12 + datagrams.PAYLOAD_OCTETS + 4 + 12  # Of a datagram on the line.


@pytest.mark.parametrize("seed", with_full(range(1, 3), range(3, 17)))
def test_a_hostile_network_puts_no_wrong_word_into_a_ring(seed):
    """Each word that is read is the session's; counts, rings, what goes on, and each answer are the model's."""
    found = datagrams.run(seed, 1000)
    assert found.off == []
    assert min(found.verdicts.values()) > 50, found.verdicts  # Of each kind many came.


def test_a_line_full_of_datagrams_is_taken():
    """1472 octets of UDP back to back at 1 Gb/s, with ``sys`` at 50 MHz, and a memory that rests and is now and then busy."""
    found = datagrams.run(1, 3000, datagrams.LINE)
    share = found.payload_bps / (1e9 * datagrams.PAYLOAD_OCTETS / LINE_OCTETS)
    assert found.off == [] and found.lost == 0
    assert found.verdicts[Verdict.ACCEPTED] == sum(found.verdicts.values())
    assert 0.999 < share < 1.001, share


def test_a_store_before_it_could_give_a_third_more():
    found = datagrams.run(1, 2000, datagrams.FLAT_OUT)
    assert found.off == [] and found.payload_bps > 1.3e9


def test_what_is_wrong_is_seen():
    """The check of a run finds a word, a count, an answer and a frame that are not as they should be."""
    found = datagrams.changed(1, 200)
    assert {name: bool(off) for name, off in found.items()} == dict.fromkeys(found, True)
