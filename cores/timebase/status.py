# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Shows the host what firmware reports of the time, and whether firmware is still alive.

Stands alone: it is firmware's own block, with words that the clock itself knows nothing of.
"""

from migen import *

from litex.gen import *

from litex.soc.interconnect.csr import *

from liteprobe.cores.bus import WriteOnlyCSR
from liteprobe.cores.timebase.word_window import WORD_BITS, WordWindow

WATCHDOG_MS = 3000
PAGE_WORDS  = 16

# Published by the firmware: name, bits, meaning.
WORDS = [
    ("state",        3, "0 unknown (no firmware), 1 free-running, 2 acquiring, 3 locked, 4 holdover."),
    ("uncertainty", 32, "95 % bound of the time (2^-8 ns); 2^32 - 1: that or more."),
    ("offset",      32, "Last residual (signed, 2^-8 ns)."),
    ("rate",        32, "Rate error of the oscillator (signed, 2^-8 ppb)."),
    ("drift",       32, "Its change (signed, 2^-8 ppt/s)."),
    ("edges",       32, "Edges used."),
    ("rejected",    32, "Edges rejected."),
    ("holdover",    32, "Seconds since the last edge used."),
    ("tai_utc",     32, "TAI less UTC (s)."),
    ("error",       32, "What is wrong, a bit each (`ClockError`)."),
    ("qerr",        32, "Bits 31..8: how late the receiver says its pulse was (signed, ps); 7..1 of `pps_count`, 0: it says so."),
]

class ClockStatusBlock(LiteXModule):
    """Shows what the firmware published last, and forgets the state when it falls silent; in ``sys``.

    The firmware writes words and then ``update``: all of them appear at once. A read always gives what was published. When no
    update comes for ``watchdog`` milliseconds, ``state`` reads 0 and ``alive`` falls; the other words stay.

    Parameters
    ----------
    sys_clk_freq : float, Hz
    """
    def __init__(self, sys_clk_freq):
        self.words = {name: CSR(bits, name=name) for name, bits, _ in WORDS}
        for name, _, meaning in WORDS:
            self.words[name].description = meaning
            setattr(self, f"_{name}", self.words[name])
        self._update   = CSRStorage(1, name="update", description="Write: publish the words above; feeds the watchdog.")
        self._updates  = CSRStatus(16, name="updates", description="Updates since reset; wraps.")
        self._watchdog = WriteOnlyCSR(16, name="watchdog", reset=WATCHDOG_MS,
            description="Milliseconds from an update until the state is unknown; taken with an update.")
        self._alive    = CSRStatus(1, name="alive", description="The last update is no older.")
        self._mode     = WriteOnlyCSR(8, name="mode",
            description="By a host: 0 discipline, 1 leave alone, 2 re-acquire (the firmware sets it back to 0).")

        # # #

        self.add_words()
        self.add_watchdog(round(sys_clk_freq/1000))

    def add_words(self):
        """Publish all words of the firmware at once.

        Each word has two places in a memory, one that is shown and one to write. An update changes them over where the firmware
        has written; so a word that it leaves out stays as it is.
        """
        self.window = window = WordWindow([(register, [n]) for n, register in enumerate(self.words.values())])
        memory    = Memory(WORD_BITS, 2*PAGE_WORDS)
        read      = memory.get_port(async_read=True)
        write     = memory.get_port(write_capable=True, mode=READ_FIRST)
        self.specials += memory, read, write
        shown     = Signal(len(WORDS)) # Of each word: which place.
        coming    = Signal(len(WORDS)) # The same from the next update on: the other one, where a word was written.
        is_known  = Signal()           # There was an update since reset, which leaves the memory as it is.
        page      = Signal()
        is_seen   = Signal()
        number    = window.number
        self.comb += [
            page.eq(Array([*shown])[number]),
            is_seen.eq(Mux(number == 0, self._alive.status, is_known)),
            read.adr.eq(Cat(number, page)),
            window.value.eq(Mux(is_seen, read.dat_r, 0)),
            write.adr.eq(Cat(number, ~page)),
            write.dat_w.eq(window.written),
            write.we.eq(window.is_written),
        ]
        self.sync += [
            If(window.is_written, Array([*coming])[number].eq(~page)),
            If(self._update.re,
                shown.eq(coming),
                is_known.eq(1),
                self._updates.status.eq(self._updates.status + 1),
            ),
        ]

    def add_watchdog(self, cycles):
        """Count milliseconds down from each update."""
        left        = Signal(16)
        cycle       = Signal(max=cycles)
        millisecond = Signal()
        self.sync += [
            millisecond.eq(cycle == cycles - 2),
            cycle.eq(cycle + 1),
            If(millisecond,
                cycle.eq(0),
                If(left != 0, left.eq(left - 1)),
            ),
            If(self._update.re,
                millisecond.eq(0),
                cycle.eq(0),
                left.eq(self._watchdog.storage),
            ),
            self._alive.status.eq(left != 0),
        ]
