# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a port has that takes what the host streams, beside its transmit path: the ring's reader, the session, registers."""

from migen import *

from litex.gen import *
from litex.soc.interconnect.csr import *

from liteprobe.cores.bus import WriteOnlyCSR
from liteprobe.cores.formats import RING_WORDS, TransmitState
from liteprobe.cores.memory.ring_reader import POSITION_BITS, RingReader

SETTINGS = {
    "session": "Number of the session that open begins: datagrams of another one are strange.",
    "prime":   "Words that must be in the ring before the first program of the session is ready: at most those of the trace; "
               "of a trace that loops all of them, and exactly.",
    "loops":   "How often the trace is sent: 0 until stop. Other than 1: all of it lies in the ring, from position 0 on.",
}

STROBES = {
    "open":  "Write: begin a session: the ring is empty, counters are 0. Ignored while a trace is armed or runs.",
    "close": "Write: take no more words of this session.",
    "arm":   "Write: a trace is to be sent, as arm of port<n>_tx a train; ignored unless idle.",
}

COUNTERS = {
    "frames":         "Frames of this program, or of the last one, that the pacer took.",
    "underruns":      "Frames that were due before their words came, 65535 at most; and the one that was missing at a stop.",
    "first_underrun": "Number of the first of them; 0xffffffff: none.",
    "errors":         "1: the program ended at a record that no frame can be made of, that of frame number frames or a WAIT before "
                      "it; or it began behind a stop or an error, without open.",
}

# Replay Port --------------------------------------------------------------------------------------

class ReplayPort(LiteXModule):
    """Joins a `ReplaySource`, and a `SetsSource` where there is one, to the ring in the memory and what fills it; in ``sys``.

    Parameters
    ----------
    path : TransmitPath
        With replay.
    port : BurstPort
        Of the memory.
    address, words : int
        As of `RingReader`.

    Attributes
    ----------
    session, prime, loops : Signal(16), Signal(18), Signal(16), in
    open, close, arm : Signal(), in
        Pulses. ``arm`` may follow ``open`` at once: the program waits for the words of its session.
    opens, closes : Signal(), out
        Pulses, as of `DatagramReceiver`.
    restart, is_restarted : Signal(), Signal(), in and out
        Likewise: pulse, some time after ``opens``: ``written`` is 0 from the next cycle on. Then low until the reader has
        begun anew.
    written, fetched : Signal(32), in and out
    keeps, is_running : Signal(), out
    frames, underruns, first_underrun, errors, is_starved : Signal(32), Signal(16), Signal(32), Signal(), Signal(), out
        As of `ReplaySource`.
    """
    def __init__(self, path, port, address, words=RING_WORDS):
        source = path.replay
        self.session        = Signal(16)
        self.prime          = Signal.like(source.prime)
        self.loops          = Signal.like(source.loops)
        self.open           = Signal()
        self.close          = Signal()
        self.arm            = Signal()
        self.opens          = Signal()
        self.closes         = Signal()
        self.restart        = Signal()
        self.is_restarted   = Signal()
        self.written        = Signal(POSITION_BITS)
        self.fetched        = Signal(POSITION_BITS)
        self.keeps          = Signal()
        self.is_running     = Signal()
        self.frames         = source.frames
        self.underruns      = source.underruns
        self.first_underrun = source.first_underrun
        self.errors         = source.is_bad
        self.is_starved     = source.is_starved

        # # #

        self.reader = reader = RingReader(port, address, words)
        is_opening  = Signal() # From ``opens`` on,
        restarts    = Signal() # and from ``restart`` on, until the reader begins anew.
        of_ring     = path.of_replay if path.sets is None else path.of_replay | path.of_sets
        self.comb += [
            source.level.eq(reader.level),
            source.fetched.eq(reader.fetched),
            source.written.eq(self.written),
            source.prime.eq(self.prime),
            source.loops.eq(self.loops),
            source.open.eq(is_opening),
            reader.written.eq(self.written),
            reader.wraps.eq(source.wraps),
            reader.restart.eq(self.restart),
            path.replay_arm.eq(self.arm),
            self.opens.eq(self.open & ~(path.is_busy & of_ring)),
            self.closes.eq(self.close),
            self.is_restarted.eq(reader.ready),
            self.fetched.eq(reader.fetched),
            self.keeps.eq(source.is_loop),
            self.is_running.eq(of_ring & (path.state == TransmitState.RUNNING)),
        ]
        self.sync += [
            If(restarts & reader.ready, is_opening.eq(0), restarts.eq(0)),
            If(self.restart, restarts.eq(1)),
            If(self.opens, is_opening.eq(1), restarts.eq(0)),
        ]
        if path.sets is None:
            self.comb += reader.source.connect(source.words)
        else:
            self.add_sets(path, is_opening)

    def add_sets(self, path, is_opening):
        """Give words to the program that they are for; one of sets waits for those of its session, too."""
        sets, words = path.sets, self.reader.source
        self.comb += [
            If(path.of_sets,
                words.connect(sets.words, omit={"valid", "ready"}),
                sets.words.valid.eq(words.valid & ~is_opening),
                words.ready.eq(sets.words.ready & ~is_opening),
            ).Else(
                words.connect(path.replay.words),
            ),
            sets.prime.eq(self.prime),
            If(~is_opening, sets.written.eq(self.written)),
        ]
        frames, underruns, is_starved = self.frames, self.underruns, self.is_starved
        self.frames, self.underruns   = Signal.like(frames), Signal.like(underruns)
        self.is_starved = Signal()
        self.comb += [
            self.frames.eq(Mux(path.of_sets, sets.sets, frames)),
            self.underruns.eq(Mux(path.of_sets, sets.underruns, underruns)),
            self.is_starved.eq(is_starved | sets.is_starved),
        ]

    def add_csr(self):
        """Add the registers of the contract (docs/design/replay.md)."""
        for name, description in SETTINGS.items():
            signal   = getattr(self, name)
            register = WriteOnlyCSR(len(signal), name=name, description=description, reset=int(name == "loops"))
            setattr(self, f"_{name}", register)
            self.comb += signal.eq(register.storage)
        for name, description in STROBES.items():
            register = CSRStorage(1, name=name, description=description)
            setattr(self, f"_{name}", register)
            self.comb += getattr(self, name).eq(register.re)

    def add_counters(self):
        """Add registers of what is counted, where no `DatagramReceiver` shows it."""
        for name, description in COUNTERS.items():
            signal   = getattr(self, name)
            register = CSRStatus(len(signal), name=name, description=description)
            setattr(self, f"_{name}", register)
            self.comb += register.status.eq(signal)
