# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Holds the settings of a direction in two banks, and switches between them at a tick."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import wishbone

from liteprobe.cores.emulate.layouts import TICKS_BITS
from liteprobe.cores.formats.emulate import (
    BANK_WORDS, CLASSES, DELAY_ENTRIES, NOW_BITS, PATTERN_WORDS, SETTING_WORDS, WAIT_MAX,
)

BANK_BITS = log2_int(2*BANK_WORDS)
USERS     = ("impairments", "background", "engine")

# Words --------------------------------------------------------------------------------------------

def word_address(bank, word, number):
    """Return the address of a word of a class, in the banks."""
    return Cat(in_block(word), number, Constant(0, 1), bank)

def link_address(bank, word):
    """Return the address of a word of the link, in the banks."""
    return Cat(in_block(word), Constant(CLASSES, 4), bank)

def in_block(word):
    """Return the number of a word of a class or of the link, as wide as it must be."""
    return Constant(word, log2_int(SETTING_WORDS)) if isinstance(word, int) else word

def field(fields, name, data):
    """Return a field of a word."""
    place = fields[name]
    return data[place.low:place.high]

# Shared Words -------------------------------------------------------------------------------------

class SharedWords(LiteXModule):
    """Words that the bus writes, with a port to read for each user: a copy each.

    Attributes
    ----------
    write, address, data : Signal(), Signal, Signal(32), in
        Of the bus.
    read : Signal(32), out
        What is at ``address``, a cycle later.
    addresses, values : lists of Signal and Signal(32), in and out
        Of each user: what is at its address, a cycle later.
    holds : Signal(), in
        The first user's value stays.
    """
    def __init__(self, depth, users, name):
        self.write     = Signal()
        self.address   = Signal(max=depth)
        self.data      = Signal(32)
        self.addresses = [Signal(max=depth, name=f"{name}_address_{n}") for n in range(users)]
        self.holds     = Signal()
        self.values    = []

        # # #

        # Else LiteX gives the memories a page of the CSR bus.
        self.autocsr_exclude = {f"memory_{n}" for n in range(users)}
        for n, address in enumerate(self.addresses):
            memory = Memory(32, depth, name=f"{name}_{n}")
            host   = memory.get_port(write_capable=True, mode=READ_FIRST)
            user   = memory.get_port(mode=READ_FIRST, has_re=n == 0)
            if n == 0:
                self.comb += user.re.eq(~self.holds)
            setattr(self, f"memory_{n}", memory)
            self.specials += memory, host, user
            self.comb += [
                host.adr.eq(self.address),
                host.dat_w.eq(self.data),
                host.we.eq(self.write),
                user.adr.eq(address),
            ]
            self.values.append(user.dat_r)
            if n == 0:
                self.read = host.dat_r

# Settings Memory ----------------------------------------------------------------------------------

class SettingsMemory(LiteXModule):
    """Keeps the two banks of settings, the quantiles of the delay, and patterns.

    Attributes
    ----------
    bus : wishbone.Interface, slave
        Words 0 to 1023: the banks; 1024 to 2047: the delays; 2048 to 2559: the patterns. An access takes two cycles.
    words, values : dict of Signal(10), Signal(32), in and out
        Of each of USERS: what is at an address of the banks, a cycle later.
    holds : Signal(), in
        What ``impairments`` read last stays there.
    quantile, delay : Signal(10), Signal(32), in and out
        An entry of the delays, likewise.
    patterns, pattern_values : dict of Signal(9), Signal(32), in and out
        Of ``impairments`` and ``background``, likewise.
    """
    words_count = 2*BANK_WORDS + DELAY_ENTRIES + PATTERN_WORDS

    def __init__(self):
        self.bus = bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")

        # # #

        self.banks    = banks    = SharedWords(2*BANK_WORDS, len(USERS), "banks")
        self.holds    = banks.holds
        self.delays   = delays   = SharedWords(DELAY_ENTRIES, 1, "delays")
        self.lists    = lists    = SharedWords(PATTERN_WORDS, 2, "patterns")
        self.words    = dict(zip(USERS, banks.addresses))
        self.values   = dict(zip(USERS, banks.values))
        self.quantile, self.delay = delays.addresses[0], delays.values[0]
        self.patterns       = dict(zip(USERS, lists.addresses))
        self.pattern_values = dict(zip(USERS, lists.values))
        places = [banks, delays, lists]
        place  = bus.adr[BANK_BITS:BANK_BITS + 2]
        take   = Signal()
        self.comb += [
            take.eq(bus.cyc & bus.stb & ~bus.ack),
            Case(place, {0: bus.dat_r.eq(banks.read), 1: bus.dat_r.eq(delays.read), "default": bus.dat_r.eq(lists.read)}),
        ]
        for number, memory in enumerate(places):
            self.comb += [
                memory.address.eq(bus.adr),
                memory.data.eq(bus.dat_w),
                memory.write.eq(take & bus.we & (place == number)),
            ]
        self.sync += bus.ack.eq(take)

# Bank Switch --------------------------------------------------------------------------------------

class BankSwitch(LiteXModule):
    """Lets each user go over to the other bank at the same tick of its own events.

    Attributes
    ----------
    now : Signal(48), in
        Ticks since the start, some ticks old.
    start : Signal(), in
        Pulse: bank 0 holds, no switch is wanted.
    tick : Signal(48), in
        When; stands still from ``ask`` until no switch is pending. A tick that has passed means now.
    at : Signal(32), out
        Its low bits, while a switch is pending.
    ask : Signal(), in
        Pulse: a switch is wanted; ignored while one is pending.
    pending, taken : dict of Signal(), out and in
        Of each of USERS: a switch is wanted of it, and is less than WAIT_MAX away; a pulse as it is done.
    banks : dict of Signal(), out
        The bank that holds for each user.
    is_pending : Signal(), out
        It was asked for, and is not done by all.
    """
    def __init__(self):
        self.now        = Signal(NOW_BITS)
        self.tick       = Signal(NOW_BITS)
        self.start      = Signal()
        self.at         = Signal(TICKS_BITS)
        self.ask        = Signal()
        self.pending    = {user: Signal(name=f"pending_{user}") for user in USERS}
        self.taken      = {user: Signal(name=f"taken_{user}") for user in USERS}
        self.banks      = {user: Signal(name=f"bank_{user}") for user in USERS}
        self.is_pending = Signal()

        # # #

        ahead    = Signal(NOW_BITS, reset_less=True)
        is_asked = Signal()
        is_known = Signal() # ``ahead`` is of this switch.
        gives    = Signal()
        self.comb += [
            self.is_pending.eq(is_asked | Reduce("OR", list(self.pending.values()))),
            gives.eq(is_asked & is_known & (ahead[-1] | (ahead[log2_int(WAIT_MAX):] == 0))),
        ]
        self.sync += [
            ahead.eq(self.tick - self.now),
            is_known.eq(is_asked),
            If(self.ask & ~self.is_pending, is_asked.eq(1)),
            If(gives,
                is_asked.eq(0),
                self.at.eq(Mux(ahead[-1], self.now, self.tick)),
            ),
            If(self.start, is_asked.eq(0)),
        ]
        for user in USERS:
            pending, taken, bank = self.pending[user], self.taken[user], self.banks[user]
            self.sync += [
                If(taken, pending.eq(0), bank.eq(~bank)),
                If(gives, pending.eq(1)),
                If(self.start, pending.eq(0), bank.eq(0)),
            ]
