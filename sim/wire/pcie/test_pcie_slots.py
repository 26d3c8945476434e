# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""PCIe: what a host streams from its memory into the rings of a probe, read by DMA: every word, in its order, or counted."""

import random

import cocotb
import pytest
from cocotb.triggers import ClockCycles
from cocotb.utils import get_sim_time

from liteprobe.cores.formats import DATAGRAM_MAGIC, SLOT_WORDS
from liteprobe.sim.drivers.pcie.probes import FIRST, RINGS, TOP, WORDS, PcieSlots, writer
from liteprobe.sim.drivers.pcie.streaming import SLOTS, Streaming, slot, slots, words
from liteprobe.sim.drivers.tools.compiled import REPOSITORY
from liteprobe.sim.drivers.tools.wire import run_wire_test, with_full

SESSION = 0x1234
CLEAN = {"repeated": 0, "early": 0, "full": 0, "strange": 0}


@pytest.mark.full
def test_words_reach_the_rings_over_pcie():
    folder = REPOSITORY / "build" / "wire" / "pcie_slots"
    folder.mkdir(parents=True, exist_ok=True)
    map_file = folder / "csr.json"
    run_wire_test(__file__, TOP, writer(PcieSlots, map_file), "pcie_slots", {"PCIE_MAP": str(map_file)})


async def streaming(dut, **options):
    """Return a host that has booted and opened both rings, whose readers run."""
    host = Streaming(dut, **options)
    await host.boot()
    for ring in range(RINGS):
        await host.open(ring, SESSION + ring)
        await host.run(ring)
        host.drains[ring].start()
    return host


@cocotb.test()
@cocotb.parametrize((("max_payload", "part"), with_full([(1, 1.0), (0, 0.2)], [(2, 0.5)])))
async def every_word_of_both_rings_comes_out_in_its_order(dut, max_payload, part):
    host = await streaming(dut, max_payload=max_payload)
    source = random.Random(cocotb.RANDOM_SEED)

    def sizes():
        return source.choice((1, 2, 3, 63, 64, 65, 500, SLOT_WORDS - 1, SLOT_WORDS, source.randint(1, SLOT_WORDS)))

    sent = [words(f"{ring} {cocotb.RANDOM_SEED}", 9000 + 777 * ring) for ring in range(RINGS)]
    given = {ring: slots(ring, SESSION + ring, sent[ring], sizes=sizes) for ring in range(RINGS)}
    for drain in host.drains:
        drain.part = part
    await host.stream(given)
    for ring in range(RINGS):
        assert await host.come(ring, len(sent[ring])) == sent[ring]
        position = (FIRST + len(sent[ring])) % 2**32
        assert await host.counts(ring) == {"accepted": position, "datagrams": len(given[ring]), **CLEAN}


@cocotb.test()
async def ring_that_is_full_holds_its_own_host_and_no_other(dut):
    host = await streaming(dut)
    host.drains[0].part = 0.0 # Nobody takes its words.
    sent = [words(ring, 12 * SLOT_WORDS) for ring in range(RINGS)]
    given = [slots(ring, SESSION + ring, sent[ring]) for ring in range(RINGS)]
    await host.give(0, given[0])
    await host.stream({1: given[1]})
    assert await host.come(1, len(sent[1])) == sent[1]
    await ClockCycles(dut.clk_sys, 3000)
    held = (await host.counts(0))["accepted"]
    # The ring, and what the reader has in its buffer before anybody takes it: that is still needed.
    assert (held - FIRST) % 2**32 == WORDS
    taken = await host.read("replay_dma_taken0")
    assert taken < 3 # The slot under way, and one before it.
    await ClockCycles(dut.clk_sys, 3000)
    assert (await host.counts(0))["accepted"] == held and await host.read("replay_dma_taken0") == taken
    host.drains[0].part = 0.7
    await host.stream({0: []})
    assert await host.come(0, len(sent[0])) == sent[0]
    assert await host.counts(0) == {"accepted": (FIRST + len(sent[0])) % 2**32, "datagrams": 12, **CLEAN}


@cocotb.test()
async def slot_that_is_not_filled_is_never_read(dut):
    host = await streaming(dut)
    sent = words("not filled", 3 * SLOT_WORDS)
    for number, one in enumerate(slots(0, SESSION, sent)):
        await host.give(0, [one])
        await ClockCycles(dut.clk_sys, 4000)
        assert await host.read("replay_dma_taken0") == number + 1
        assert await host.come(0, (number + 1) * SLOT_WORDS) == sent[: (number + 1) * SLOT_WORDS]
    assert (await host.counts(0))["strange"] == 0


@cocotb.test()
async def what_is_of_another_session_lease_port_or_place_changes_nothing_and_is_counted(dut):
    host = await streaming(dut)
    sent, other = words("right", 200), words("wrong", 100)
    next_ = FIRST + 100
    wrong = [
        slot(0, SESSION + 7, next_, other), slot(1, SESSION, next_, other), slot(0, SESSION, next_, other, lease=5),
        slot(0, SESSION, next_, other, magic=DATAGRAM_MAGIC ^ 1), slot(0, SESSION, next_, [], count=0),
        slot(0, SESSION, next_, other, count=SLOT_WORDS + 1), slot(0, SESSION, next_, other, count=100 | 1 << 20),
    ]
    misplaced = [slot(0, SESSION, FIRST, other), slot(0, SESSION, FIRST + 99, other), slot(0, SESSION, FIRST + 101, other)]
    right = slots(0, SESSION, sent, sizes=100)
    await host.stream({0: [right[0], *wrong, *misplaced, right[1]]})
    assert await host.come(0, 200) == sent
    await ClockCycles(dut.clk_sys, 1000)
    found = await host.counts(0)
    assert found == {"accepted": (FIRST + 200) % 2**32, "datagrams": 2, "repeated": 2, "early": 1, "full": 0, "strange": 7}
    assert (await host.counts(1))["strange"] == 0


@cocotb.test()
async def slots_are_of_the_present_lease_while_somebody_holds_it(dut):
    host = await streaming(dut)
    number = await host.read("probe_lease_owner") & 0xFFFF
    await host.write("probe_lease_claim", 0xBEEF << 16 | number)
    lease = await host.read("probe_lease_owner") & 0xFFFF
    assert lease != number
    sent = words("lease", 300)
    given = [slot(0, SESSION, FIRST, sent, lease=one) for one in (0, number, lease)]
    await host.stream({0: given})
    assert await host.come(0, 300) == sent
    assert await host.counts(0) == {"accepted": (FIRST + 300) % 2**32, "datagrams": 1, **CLEAN, "strange": 2}


@cocotb.test()
@cocotb.parametrize(cycles=with_full([900, 2113], [0, 150, 4000]))
async def host_that_is_killed_in_mid_stream_leaves_a_probe_for_the_next_one(dut, cycles):
    host = await streaming(dut)
    host.drains[0].part = 0.3
    sent = words("killed", 15 * SLOT_WORDS)
    await host.give(0, slots(0, SESSION, sent))
    await ClockCycles(dut.clk_sys, cycles)
    await host.stop_reader(0) # What the driver does when the file is closed, however its program ended.
    await ClockCycles(dut.clk_sys, 20_000)
    accepted = ((await host.counts(0))["accepted"] - FIRST) % 2**32
    assert 0 <= accepted < len(sent)
    assert host.drains[0].found == sent[:accepted]
    await ClockCycles(dut.clk_sys, 5000)
    assert ((await host.counts(0))["accepted"] - FIRST) % 2**32 == accepted, "it goes on by itself"
    # The next host: another session, another trace.
    host.drains[0].found.clear()
    await host.open(0, SESSION + 9)
    await host.run(0)
    again = words("next", 5000)
    await host.stream({0: slots(0, SESSION + 9, again)})
    assert await host.come(0, len(again)) == again
    assert await host.counts(0) == {"accepted": (FIRST + len(again)) % 2**32, "datagrams": 5, **CLEAN}


@cocotb.test()
@cocotb.parametrize(cycles=with_full([700], [60, 1500]))
async def reader_that_is_stopped_and_started_goes_on_from_what_was_accepted(dut, cycles):
    host = await streaming(dut)
    sent, accepted, runs = words("again", 20_000), 0, 0
    while accepted < len(sent):
        runs += 1
        assert runs < 100, "it doesn't go on"
        await host.give(0, slots(0, SESSION, sent, accepted)[:15])
        await ClockCycles(dut.clk_sys, cycles)
        await host.stop_reader(0)
        accepted = ((await host.counts(0))["accepted"] - FIRST) % 2**32
        await host.run(0)
        cycles += 977
    assert await host.come(0, len(sent)) == sent
    assert {**await host.counts(0), "datagrams": 0} == {"accepted": (FIRST + len(sent)) % 2**32, "datagrams": 0, **CLEAN}


@cocotb.test()
@cocotb.parametrize(is_full=[False, True])
async def session_that_is_opened_in_mid_stream_gets_no_word_of_the_one_before(dut, is_full):
    host = await streaming(dut)
    host.drains[0].part = 0.0 if is_full else 1.0
    old, new = words("old", 4 * SLOT_WORDS), words("new", 4 * SLOT_WORDS)
    await host.give(0, [*slots(0, SESSION, old), *slots(0, SESSION + 1, new)])
    await ClockCycles(dut.clk_sys, 3000 if is_full else 900)
    assert await host.read("replay_dma_taken0") < 4
    await host.open(0, SESSION + 1)
    host.drains[0].part = 1.0
    await host.stream({0: []})
    await ClockCycles(dut.clk_sys, 3 * WORDS)
    found = host.drains[0].found
    old_ones = found[: len(found) - len(new)]
    assert found[len(old_ones) :] == new and old_ones == old[: len(old_ones)]
    assert len(old_ones) < len(old)
    counts = await host.counts(0)
    assert counts["accepted"] == (FIRST + len(new)) % 2**32 and counts["datagrams"] == 4
    assert (counts["repeated"], counts["early"]) == (0, 0) and 1 <= counts["strange"] <= 3


@cocotb.test()
async def slots_of_a_session_that_is_closed_are_strange(dut):
    host = await streaming(dut)
    sent = words("closed", 2 * SLOT_WORDS)
    given = slots(0, SESSION, sent)
    await host.stream({0: given[:1]})
    await host.write("ring0_close", 1)
    await host.stream({0: given[1:]})
    assert await host.come(0, SLOT_WORDS) == sent[:SLOT_WORDS]
    await ClockCycles(dut.clk_sys, 2000)
    assert len(host.drains[0].found) == SLOT_WORDS
    assert await host.counts(0) == {"accepted": (FIRST + SLOT_WORDS) % 2**32, "datagrams": 1, **CLEAN, "strange": 1}


@cocotb.test()
async def slow_root_complex_loses_nothing(dut):
    host = await streaming(dut)
    source = random.Random(cocotb.RANDOM_SEED)
    host.endpoint.stall = lambda: source.random() > 0.1
    sent = [words(f"slow {ring}", 6000) for ring in range(RINGS)]
    await host.stream({ring: slots(ring, SESSION + ring, sent[ring]) for ring in range(RINGS)})
    for ring in range(RINGS):
        assert await host.come(ring, len(sent[ring])) == sent[ring]


@cocotb.test()
@cocotb.parametrize(max_payload=with_full([1], [0, 2]))
async def both_rings_are_filled_faster_than_two_lines_empty_them(dut, max_payload):
    host = await streaming(dut, max_payload=max_payload)
    sent = [words(f"rate {ring}", SLOTS * SLOT_WORDS) for ring in range(RINGS)]
    given = [slots(ring, SESSION + ring, sent[ring]) for ring in range(RINGS)]
    for ring in range(RINGS):
        await host.give(ring, given[ring])
    begun = get_sim_time("ns")
    while not all(len(host.drains[ring].found) == len(sent[ring]) for ring in range(RINGS)):
        await ClockCycles(dut.clk_sys, 50)
        assert get_sim_time("ns") < begun + 1_000_000
    mbps = 32_000 * len(sent[0]) / (get_sim_time("ns") - begun)
    cocotb.log.info(f"{mbps:.0f} Mb/s of words to each ring, payloads of {128 << max_payload} octets")
    assert mbps > 1100 # A full line of 1514 octets takes 990 Mb/s of records.
