# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Word tails, at every length around a word boundary and both widths."""

import pytest
from migen import *

from liteprobe.cores.octets import bytes_of_last_be, last_be_of_length, words_of_length

class Tail(Module):
    def __init__(self, data_width):
        self.length  = Signal(14)
        self.last_be = Signal(data_width//8)
        self.words   = Signal(14)
        self.bytes   = Signal(8)
        self.comb += [
            self.last_be.eq(last_be_of_length(self.length, data_width)),
            self.words.eq(words_of_length(self.length, data_width)),
            self.bytes.eq(bytes_of_last_be(self.last_be)),
        ]

@pytest.mark.parametrize("data_width", [32, 64])
def test_tails_are_arithmetic_there_and_back(data_width):
    lengths = [*range(1, 34), *range(59, 78), 1514, 1518, *range(8990, 9001)]
    dut     = Tail(data_width)
    seen    = []
    def process():
        for length in lengths:
            yield dut.length.eq(length)
            yield
            yield
            seen.append(((yield dut.last_be), (yield dut.words), (yield dut.bytes)))
    run_simulation(dut, process())
    count    = data_width//8
    expected = []
    for length in lengths:
        tail = (length - 1)%count
        expected.append((1 << tail, -(-length//count), tail + 1))
    assert seen == expected

def test_a_word_without_mark_has_no_bytes():
    last_be = Signal(4)
    count   = Signal(8)
    dut     = Module()
    dut.comb += count.eq(bytes_of_last_be(last_be))
    seen = []
    def process():
        for value in [8, 0, 1]:
            yield last_be.eq(value)
            yield
            yield
            seen.append((yield count))
    run_simulation(dut, process())
    assert seen == [4, 0, 1]
