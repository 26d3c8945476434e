# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Settings read back through a bank array as LiteX builds it, against a dict of what was written."""

import random
from contextlib import nullcontext

import pytest
from migen import *

from litex.gen import *

from litex.soc.interconnect import csr_bus
from litex.soc.interconnect.csr import CSRStatus, CSRStorage

from liteprobe.cores.bus import ReadBack, WordStatus, WriteOnlyCSR, joins_banks

PAGING = 0x800
MASK   = 2**32 - 1

class Bank(LiteXModule):
    """Settings between registers of other kinds; ``early`` moves its words up by as many."""
    def __init__(self, early=0):
        for number in range(early):
            setattr(self, f"_early{number}", CSRStorage(32, name=f"early{number}"))
        self._first  = WriteOnlyCSR(32, name="first", reset=0x89abcdef, description="A word.")
        self._plain  = CSRStorage(32, name="plain", reset=0x1234)
        self._wide   = WriteOnlyCSR(48, name="wide", reset=8 << 40, description="A word and a half.")
        self._status = CSRStatus(32, name="status", reset=0x77777777)
        self._narrow = WriteOnlyCSR(3, name="narrow", description="Three bits.")

class Probe(LiteXModule):
    """A bus, its settings' memory, and banks at pages 1, 2, ..."""
    def __init__(self, banks, is_joined=True, is_ahead=False):
        self.master = csr_bus.Interface(data_width=32, address_width=14)
        self.ahead  = Signal(14) # As LiteX's bridge has the address, a cycle before ``master``.
        joined = []
        self.read_back = ReadBack(self.master, PAGING, banks=joined, ahead=self.ahead if is_ahead else None)
        self.banks  = banks
        for name, bank in banks.items():
            setattr(self, name, bank)
        pages = {name: number for number, name in enumerate(banks, 1)}
        with joins_banks(joined) if is_joined else nullcontext():
            self.array = csr_bus.CSRBankArray(self, lambda name, memory: pages.get(name) if memory is None else None,
                data_width=32, address_width=14, paging=PAGING, ordering="big")
        self.interconnect = csr_bus.InterconnectShared([self.read_back.bus], self.array.get_buses())
        self.read_back.learn(self.array.banks)

    def words(self, bank, name):
        """Return the addresses of a register, the highest word first."""
        for found, _, page, built in self.array.banks:
            if found == bank:
                csr = getattr(self.banks[bank], f"_{name}")
                return [page*PAGING//4 + built.simple_csrs.index(word) for word in csr.simple_csrs]
        raise KeyError(bank)

def run(dut, process):
    run_simulation(dut, process, clocks={"sys": 20})

def look_ahead(dut, address):
    yield dut.ahead.eq(address)
    yield
    yield dut.ahead.eq(0x1555) # Whatever comes next on the bus before it.

def write(dut, address, value):
    yield from look_ahead(dut, address)
    yield from dut.master.write(address, value)

def read(dut, address):
    """Read as LiteX's bridge does: the answer is there in the next cycle."""
    yield from look_ahead(dut, address)
    yield dut.master.adr.eq(address)
    yield dut.master.re.eq(1)
    yield
    yield dut.master.re.eq(0)
    yield dut.master.adr.eq(0)
    yield
    return (yield dut.master.dat_r)

def test_at_power_up_a_setting_reads_its_first_value():
    dut = Probe({"one": Bank(), "two": Bank()})
    def process():
        for bank in ("one", "two"):
            for name, words in (("first", [0x89abcdef]), ("wide", [8 << 8, 0]), ("narrow", [0]), ("plain", [0x1234])):
                for address, expected in zip(dut.words(bank, name), words, strict=True):
                    assert (yield from read(dut, address)) == expected, (bank, name)
    run(dut, process())

KINDS = pytest.mark.parametrize(("is_joined", "is_ahead"), [(True, False), (True, True), (False, False)])

@KINDS
def test_settings_read_what_was_written_and_all_other_registers_what_they_are(is_joined, is_ahead):
    rng = random.Random(3)
    dut = Probe({"one": Bank(), "two": Bank()}, is_joined, is_ahead)
    def process():
        holds = {}
        for bank in dut.banks:
            for name, bits in (("first", [32]), ("plain", [32]), ("wide", [16, 32]), ("narrow", [3])):
                for address, width in zip(dut.words(bank, name), bits, strict=True):
                    holds[address] = [width, (yield from read(dut, address))]
            holds[dut.words(bank, "status")[0]] = [0, 0x77777777]
        for _ in range(200):
            address = rng.choice(list(holds))
            width, _ = holds[address]
            value = rng.getrandbits(width) if width else rng.getrandbits(32)
            yield from write(dut, address, value)
            if width:
                holds[address][1] = value
            for other in rng.sample(list(holds), 3):
                assert (yield from read(dut, other)) == holds[other][1]
        for bank, module in dut.banks.items():
            (address,) = dut.words(bank, "first")
            assert (yield module._first.storage) == holds[address][1]
            high, low = dut.words(bank, "wide")
            assert (yield module._wide.storage) == holds[high][1] << 32 | holds[low][1]
    run(dut, process())

def test_a_setting_gives_its_strobe_behind_a_write_of_its_low_word_alone():
    dut  = Probe({"one": Bank()})
    seen = []
    def process():
        high, low = dut.words("one", "wide")
        for address in (high, low, dut.words("one", "first")[0]):
            yield from write(dut, address, 5)
            strobes = []
            for _ in range(3):
                strobes.append((yield dut.banks["one"]._wide.re))
                yield
            seen.append(sum(strobes))
    run(dut, process())
    assert seen == [0, 1, 0]

def test_registers_beyond_the_first_words_are_no_settings_and_change_none():
    class LongBank(Bank):
        def __init__(self):
            Bank.__init__(self)
            for number in range(40):
                setattr(self, f"_late{number:02}", CSRStorage(32, name=f"late{number:02}"))
    dut = Probe({"one": LongBank()})
    def process():
        settings = dut.words("one", "first") + dut.words("one", "wide") + dut.words("one", "narrow")
        for number, address in enumerate(settings):
            yield from write(dut, address, number + 1)
        for number in range(40):
            yield from write(dut, dut.words("one", f"late{number:02}")[0], MASK - number)
        for number, address in enumerate(settings):
            assert (yield from read(dut, address)) == number + 1
        for number in range(40):
            assert (yield from read(dut, dut.words("one", f"late{number:02}")[0])) == MASK - number
    run(dut, process())

@KINDS
def test_words_of_a_memory_are_those_of_their_own_bank_whatever_another_has_at_the_same_place(is_joined, is_ahead):
    """Each bank has three words, with a register before them in one and none in the other."""
    class WordBank(LiteXModule):
        def __init__(self, first, early):
            for number in range(early):
                setattr(self, f"_early{number}", CSRStorage(32, name=f"early{number}"))
            self._pair = WordStatus(64, name="pair", description="Two words.")
            self._one  = WordStatus(32, name="one", description="A word.")
            self.asked = asked = Cat(self._pair.asked, self._one.asked)
            value = Signal(32)
            self.comb += [
                Case(asked, {1 << n: value.eq(first + n) for n in range(3)}),
                self._pair.status.eq(Cat(value, value)),
                self._one.status.eq(value),
            ]
    dut = Probe({"one": WordBank(100, 0), "two": WordBank(200, 1)}, is_joined, is_ahead)
    def process():
        for _ in range(2):
            for bank, first in (("one", 100), ("two", 200)):
                words = dut.words(bank, "pair") + dut.words(bank, "one")
                for number, address in enumerate(words):
                    assert (yield from read(dut, address)) == first + number
                yield from write(dut, words[0], MASK)
            (early,) = dut.words("two", "early0")
            yield from write(dut, early, 7)
            assert (yield from read(dut, early)) == 7
    run(dut, process())

def test_a_setting_beyond_the_first_words_is_refused():
    with pytest.raises(ValueError, match="has no word in the read-back memory"):
        Probe({"one": Bank(early=31)})

def test_two_registers_that_would_share_a_word_are_refused():
    with pytest.raises(ValueError, match="share a word of the read-back memory"):
        Probe({f"bank{number:02}": Bank() for number in range(17)})
