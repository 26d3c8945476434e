# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Parts the processor from the bus by a register, and lets a block RAM show settings in the place of their registers."""

from contextlib import contextmanager

from migen import *

from litex.gen import *

from litex.soc.interconnect import csr_bus, wishbone
from litex.soc.interconnect.csr import CSR, CSRStatus, CSRStorage, GenericBank

WORD_BITS    = 32
BANK_BITS    = 4 # Of a `ReadBack`: then it is one block RAM of an ECP5.
OFFSET_BITS  = 5 # Settings are among the first 32 words of a bank.

# Bus Register -------------------------------------------------------------------------------------

class BusRegister(LiteXModule):
    """Parts a Wishbone master from what decides about its cycle: answers are held in a register.

    The processor's pipeline waits on the answer in the cycle in which it comes, and the interconnect forms that answer from
    all slaves and the time-out; in one cycle that is the longest path of the probe.

    Parameters
    ----------
    master : wishbone.Interface
        Like the buses in address and data width, and in addressing.

    Attributes
    ----------
    sink, source : wishbone.Interface, slave and master
        Each access takes a cycle more, in which nothing is asked. Bursts become single accesses.

    Limits: the master must hold its request until the answer, as Wishbone says, and give it from registers: only the answer is
    held here. The interconnect gives all masters the same data, so Yosys makes one register of the masters' answers.
    """
    def __init__(self, master):
        self.sink, self.source = sink, source = [
            wishbone.Interface(master.data_width, address_width=master.address_width, addressing=master.addressing)
            for _ in range(2)
        ]

        # # #

        answers = Signal()
        is_bad  = Signal()
        answer  = Signal(master.data_width, reset_less=True)
        self.comb += [
            *[getattr(source, name).eq(getattr(sink, name)) for name in ("adr", "dat_w", "sel", "we")],
            source.cyc.eq(sink.cyc & sink.stb & ~answers),
            source.stb.eq(source.cyc),
            sink.dat_r.eq(answer),
            sink.ack.eq(answers),
            sink.err.eq(is_bad),
        ]
        self.sync += [
            answers.eq(source.cyc & (source.ack | source.err)),
            is_bad.eq(source.cyc & source.err),
            answer.eq(source.dat_r),
        ]

# Write Only CSR -----------------------------------------------------------------------------------

class WriteOnlyCSR(CSRStorage):
    """Keeps a setting whose bits don't go back to the bus, each through the bus's multiplexer: `ReadBack` shows what was written.

    Of the registers of a probe, settings are the most bits. In a bank without a `ReadBack` it reads 0.

    Parameters
    ----------
    size, reset, name, description : as of CSRStorage
        ``reset`` is the value at power-up. A reset of the SoC leaves a setting as it is, like the memory that shows it; so what
        acts upon a setting must be something that a reset does stop.

    Attributes
    ----------
    storage : Signal(size), out
    re : Signal(), out
        A pulse after a write of the low word, as CSRStorage's.
    is_written : Signal(), out
        Any word is written in this cycle.
    """
    def __init__(self, size, name, description, reset=0):
        CSRStorage.__init__(self, size, reset=reset, reset_less=True, name=name, description=description)
        self.is_written = Signal()

    def do_finalize(self, busword, ordering):
        assert ordering == "big"
        for low in reversed(range(0, self.size, busword)):
            part = self.storage[low:low + busword]
            word = CSR(len(part), f"{self.name}{low//busword}")
            self.simple_csrs.append(word)
            self.sync += If(word.re, part.eq(word.r))
        self.sync += self.re.eq(word.re)
        self.comb += self.is_written.eq(Cat(*[word.re for word in self.simple_csrs]) != 0)

    def initial_words(self, busword):
        """Return the words at power-up, the highest first."""
        return [self.storage.reset.value >> low & (1 << busword) - 1 for low in reversed(range(0, self.size, busword))]

class MemoryCSR(WriteOnlyCSR):
    """Brings a setting of 32 bits to a memory, which is written with it.

    Attributes
    ----------
    is_written, data : Signal(), Signal(32), out
        In one cycle.
    """
    def __init__(self, name, description):
        WriteOnlyCSR.__init__(self, WORD_BITS, name, description)
        self.data = Signal(WORD_BITS)

    def do_finalize(self, busword, ordering):
        assert busword == WORD_BITS
        word = CSR(WORD_BITS, self.name)
        self.simple_csrs.append(word)
        self.comb += [
            self.is_written.eq(word.re),
            self.data.eq(word.r),
        ]

class WordStatus(CSRStatus):
    """A register of one or more words, read only, that lie in a memory.

    Attributes
    ----------
    asked : Signal(words), out
        The bus reads this word in this cycle, or one of another bank at the same place; bit 0 is the highest word, which has the
        lowest address.
    """
    def __init__(self, size, name, description):
        CSRStatus.__init__(self, size, name=name, description=description)
        self.asked = Signal(-(-size//WORD_BITS))

    def do_finalize(self, busword, ordering):
        assert (busword, ordering) == (WORD_BITS, "big")
        CSRStatus.do_finalize(self, busword, ordering)
        for word in self.simple_csrs:
            word.is_of_memory = True
        self.comb += self.asked.eq(Cat(*[word.we for word in self.simple_csrs]))

# Register Bank ------------------------------------------------------------------------------------

class RegisterBank(LiteXModule):
    """Has registers by tables of names and descriptions: each is of the signal of its name, here or in another module."""
    def add_settings(self, table, of=None, **resets):
        """Add what is written, and not read back from here; ``resets``: what some are at power-up, by name; the others are 0."""
        for name, description in table.items():
            signal   = getattr(of or self, name)
            register = WriteOnlyCSR(len(signal), name=name, description=description, reset=resets.get(name, 0))
            setattr(self, f"_{name}", register)
            self.comb += signal.eq(register.storage)

    def add_status(self, table, of=None):
        """Add what is read."""
        for name, description in table.items():
            signal   = getattr(of or self, name)
            register = CSRStatus(len(signal), name=name, description=description)
            setattr(self, f"_{name}", register)
            self.comb += register.status.eq(signal)

# Joined Bank --------------------------------------------------------------------------------------

class JoinedBank(GenericBank):
    """Has the registers of a module on the bus, as LiteX's CSRBank, but for its register of what is read: all banks share one.

    Of a register with the attribute ``is_of_memory`` ``we`` is high for what another bank has at its place, too, and for writes: a
    memory's address must be there early in the cycle in which its word is read.

    Attributes
    ----------
    is_asked : Signal(), in
        The bank is the one that the bus asks for, if it asks for any.
    word : Signal(32), out
        Register that the bus asks for, in the same cycle; 0 where it is another bank's.
    """
    def __init__(self, description, address=0, bus=None, paging=0x800, ordering="big"):
        self.bus      = bus
        self.word     = Signal(len(bus.dat_w))
        self.address  = address
        self.is_asked = is_asked = Signal()
        GenericBank.__init__(self, description=description, busword=len(bus.dat_w), ordering=ordering)

        # # #

        page_bits = log2_int(paging//4)
        near      = bus.adr[:bits_for(len(self.simple_csrs) - 1)]
        number    = bus.adr[:page_bits]
        self.comb += [
            If(is_asked, Case(number, {n: self.word.eq(one.w) for n, one in enumerate(self.simple_csrs)})),
        ]
        for n, one in enumerate(self.simple_csrs):
            self.comb += [
                one.r.eq(bus.dat_w[:one.size]),
                If(is_asked & (number == n),
                    one.re.eq(bus.we),
                    *([] if getattr(one, "is_of_memory", False) else [one.we.eq(bus.re)]),
                ),
                *([one.we.eq(near == n)] if getattr(one, "is_of_memory", False) else []),
            ]

@contextmanager
def joins_banks(banks):
    """Have LiteX make a `JoinedBank` in place of each bank meanwhile; they are added to the list ``banks``."""
    def bank(*args, **kwargs):
        banks.append(JoinedBank(*args, **kwargs))
        return banks[-1]
    theirs, csr_bus.CSRBank = csr_bus.CSRBank, bank
    try:
        yield
    finally:
        csr_bus.CSRBank = theirs

# Read Back ----------------------------------------------------------------------------------------

class ReadBack(LiteXModule):
    """Sits between the bridge and the registers, and answers for each `WriteOnlyCSR`: see docs/design/settings.md.

    Where each one is, is known when the SoC is finalized: call `learn` then, before the Verilog is written.

    Parameters
    ----------
    master : csr_bus.Interface
        Of the bridge.
    paging : int
        Octets of a bank of registers.
    bank_bits : int
        Of the number of a bank: settings of banks that are alike in these bits must not be at the same place.
    banks : list of JoinedBank
        Whose words it gives to the bus; all are in it when the SoC is finalized. Other banks may be on ``bus``, too.
    ahead : Signal(), in
        Address that ``master`` has in the next cycle, if it reads or writes in that: so banks know early that they are asked.

    Attributes
    ----------
    bus : csr_bus.Interface, master
        For the registers, which answer 0 for a setting.
    """
    def __init__(self, master, paging, bank_bits=BANK_BITS, banks=(), ahead=None):
        # Else LiteX gives the memories a page of the bus.
        self.autocsr_exclude = {"settings", "is_setting"}
        self.master       = master
        self.banks        = banks
        self.ahead        = ahead
        self.bus          = bus = csr_bus.Interface.like(master)
        self.page_bits    = log2_int(paging//4)
        self.bank_bits    = bank_bits
        depth             = 2**(bank_bits + OFFSET_BITS)
        self.settings     = Memory(WORD_BITS, depth, init=[0]*depth)
        self.is_setting   = Memory(1, depth, init=[0]*depth)

        # # #

        self.specials += self.settings, self.is_setting
        write   = self.settings.get_port(write_capable=True, mode=READ_FIRST)
        self.read = read = self.settings.get_port(mode=READ_FIRST)
        asked   = self.is_setting.get_port(async_read=True)
        self.specials += write, read, asked
        address = Cat(bus.adr[:OFFSET_BITS], bus.adr[self.page_bits:self.page_bits + bank_bits])
        self.shows = shows = Signal()
        is_low  = Signal() # A word where settings are.
        self.sync += shows.eq(asked.dat_r & is_low)
        self.comb += [
            master.connect(bus, omit={"dat_r"}),
            # What is written to other registers lies here unread.
            *[port.adr.eq(address) for port in (write, read, asked)],
            is_low.eq(bus.adr[OFFSET_BITS:self.page_bits] == 0),
            write.we.eq(bus.we & is_low),
            write.dat_w.eq(bus.dat_w),
        ]

    def do_finalize(self):
        word = Signal(WORD_BITS, reset_less=True)
        address  = self.bus.adr if self.ahead is None else self.ahead
        page     = address[self.page_bits:len(self.bus.adr)]
        is_asked = [bank.is_asked.eq(page == bank.address) for bank in self.banks]
        if self.ahead is None:
            self.comb += is_asked
        else:
            self.sync += is_asked
        if self.banks:
            self.sync += word.eq(Reduce("OR", [bank.word for bank in self.banks]))
        self.comb += self.master.dat_r.eq(word | self.bus.dat_r | Mux(self.shows, self.read.dat_r, 0))

    def learn(self, banks):
        """Take the places and the first values of all settings.

        Parameters
        ----------
        banks : of CSRBankArray, once it has addresses.

        Raises ValueError when two registers would share a word, or a setting is not among the first words of its bank.
        """
        seen = {}
        for name, registers, page, bank in banks:
            numbers = {id(word): number for number, word in enumerate(bank.simple_csrs)}
            for number in range(min(len(numbers), 2**OFFSET_BITS)):
                place = (page % 2**self.bank_bits) << OFFSET_BITS | number
                seen.setdefault(place, set()).add((name, number))
            for setting in (register for register in registers if isinstance(register, WriteOnlyCSR)):
                for word, value in zip(setting.simple_csrs, setting.initial_words(WORD_BITS)):
                    if numbers[id(word)] >= 2**OFFSET_BITS:
                        raise ValueError(f"setting {setting.name} of {name} has no word in the read-back memory: move it up")
                    place = (page % 2**self.bank_bits) << OFFSET_BITS | numbers[id(word)]
                    self.settings.init[place], self.is_setting.init[place] = value, 1
        for place, words in seen.items():
            if self.is_setting.init[place] and len(words) > 1:
                raise ValueError(f"registers {sorted(words)} share a word of the read-back memory: give ReadBack more bits")
