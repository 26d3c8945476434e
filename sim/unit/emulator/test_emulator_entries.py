# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The lists of entries of the emulator against queues of Python."""

from collections import deque
from random import Random

from migen import run_simulation

from liteprobe.cores.emulate.memories import EntryLists

ENTRIES, LISTS, STEPS, BITS = 8, 3, 600, 12

def test_each_list_is_first_in_first_out_and_all_entries_are_used_again() -> None:
    dut, chance = EntryLists([("value", BITS)], ENTRIES, LISTS), Random(1)
    lists: list[deque[int]] = [deque() for _ in range(LISTS)]
    seen, fullest = [], 0
    def drive():
        nonlocal fullest
        for _ in range(STEPS):
            number = chance.randrange(LISTS)
            mine   = lists[number]
            yield dut.number.eq(number)
            yield
            yield
            yield
            seen.append(((yield dut.is_there), [n for n, one in enumerate(lists) if one]))
            if mine:
                seen.append(((yield dut.head.value), mine[0]))
            count = sum(map(len, lists))
            fullest = max(fullest, count)
            # It fills up, and is emptied.
            puts = count < ENTRIES and chance.random() < 0.6
            if puts:
                mine.append(chance.getrandbits(BITS))
                yield dut.entry.value.eq(mine[-1])
                yield dut.put.eq(1)
            elif mine:
                mine.popleft()
                yield dut.drop.eq(1)
            yield
            yield dut.put.eq(0)
            yield dut.drop.eq(0)
    run_simulation(dut, drive())
    assert fullest == ENTRIES
    for came, expected in seen:
        if isinstance(expected, list):
            assert [n for n in range(LISTS) if came >> n & 1] == expected
        else:
            assert came == expected
