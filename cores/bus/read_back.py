# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Settings read from a block RAM, which takes what the bus writes to them."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import csr_bus

from liteprobe.cores.bus.write_only_csr import WriteOnlyCSR

WORD_BITS    = 32
BANK_BITS    = 4 # Then it is one block RAM of an ECP5.
OFFSET_BITS  = 5 # Settings are among the first 32 words of a bank.

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

    Attributes
    ----------
    bus : csr_bus.Interface, master
        For the registers, which answer 0 for a setting.
    """
    def __init__(self, master, paging, bank_bits=BANK_BITS):
        # Else LiteX gives the memories a page of the bus.
        self.autocsr_exclude = {"settings", "is_setting"}
        self.bus          = bus = csr_bus.Interface.like(master)
        self.page_bits    = log2_int(paging//4)
        self.bank_bits    = bank_bits
        depth             = 2**(bank_bits + OFFSET_BITS)
        self.settings     = Memory(WORD_BITS, depth, init=[0]*depth)
        self.is_setting   = Memory(1, depth, init=[0]*depth)

        # # #

        self.specials += self.settings, self.is_setting
        write   = self.settings.get_port(write_capable=True, mode=READ_FIRST)
        read    = self.settings.get_port(mode=READ_FIRST)
        asked   = self.is_setting.get_port(async_read=True)
        self.specials += write, read, asked
        address = Cat(bus.adr[:OFFSET_BITS], bus.adr[self.page_bits:self.page_bits + bank_bits])
        shows   = Signal()
        is_low  = Signal() # A word where settings are.
        self.sync += shows.eq(asked.dat_r & is_low)
        self.comb += [
            master.connect(bus, omit={"dat_r"}),
            # What is written to other registers lies here unread.
            *[port.adr.eq(address) for port in (write, read, asked)],
            is_low.eq(bus.adr[OFFSET_BITS:self.page_bits] == 0),
            write.we.eq(bus.we & is_low),
            write.dat_w.eq(bus.dat_w),
            master.dat_r.eq(bus.dat_r | Mux(shows, read.dat_r, 0)),
        ]

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
