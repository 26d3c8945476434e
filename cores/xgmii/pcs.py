# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Turns XGMII into blocks of 66 bits and back (10GBASE-R): what lies between a MAC and the gearbox of a transceiver.

Source: IEEE 802.3-2022, clause 49. Bit 0 of a header and of a payload is the first on the line.
"""

from enum import IntEnum

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.crossing import StreamCrossing
from liteprobe.cores.formats.xgmii import COLUMN, LANES, Control, LinkState

BLOCK       = 8*LANES           # Bits of a payload.
HEADER      = {"data": 0b10, "control": 0b01}
IDLE_CODE   = 0x00              # Of the seven bits of a control character, two are used here.
ERROR_CODE  = 0x1e
TAPS        = (39, 58)          # Of the scrambler, x^58 + x^39 + 1.
ERROR_TYPE  = 0x1e              # Of a block of eight control characters.
TERMINATES  = (0x87, 0x99, 0xaa, 0xb4, 0xcc, 0xd2, 0xe1, 0xff) # Types of blocks that a frame ends in, by lane.
LOCK_BLOCKS = 64                # With a right header: locked.
SLIP_BLOCKS = 16                # With a wrong one, of 64 or within BER_CYCLES: not locked, or too many errors.
SLIP_CYCLES = 64                # Until a slip of the gearbox has come through.
BER_CYCLES  = 20_141            # 125 us of the transceiver's clock, 161.13 MHz.
FIFO_DEPTH  = 16
FIFO_FILL   = 6                 # Words that are there before reading begins: it never runs dry then.

ERROR_WORD    = sum(int(Control.ERROR) << 8*lane for lane in range(LANES))
# Two ordered sets of a local fault.
FAULT_WORD    = sum((int(Control.SEQUENCE) | LinkState.LOCAL_FAULT << 24) << 8*lane for lane in range(0, LANES, COLUMN))
FAULT_CONTROL = sum(1 << lane for lane in range(0, LANES, COLUMN))

class BlockKind(IntEnum):
    """Names what a block is to the state machines of clause 49."""

    CONTROL   = 0 # Idle, ordered sets.
    START     = 1
    DATA      = 2
    TERMINATE = 3
    ERROR     = 4

def is_lane(signal, lane, character):
    """Return whether a lane of eight has a character."""
    return signal[8*lane:8*lane + 8] == int(character)

# Scrambler ----------------------------------------------------------------------------------------

class Scrambler(LiteXModule):
    """Scrambles payloads, or brings them back.

    Attributes
    ----------
    ce : Signal(), in; ``i`` is taken.
    i, o : Signal(64), Signal(64), in, out; a cycle late, held.
    """
    def __init__(self, is_back=False):
        self.ce = Signal()
        self.i  = Signal(BLOCK)
        self.o  = Signal(BLOCK)

        # # #

        line = Signal(TAPS[-1], reset=2**TAPS[-1] - 1) # The last bits of the line, the oldest in bit 0.
        bits = [line[n] for n in range(TAPS[-1])]
        done = []
        for n in range(BLOCK):
            made = self.i[n] ^ bits[-TAPS[0]] ^ bits[-TAPS[1]]
            out  = Signal()
            self.comb += out.eq(made)
            done.append(out)
            bits.append(self.i[n] if is_back else out)
        self.sync += If(self.ce,
            self.o.eq(Cat(done)),
            line.eq(Cat(bits[-TAPS[-1]:])),
        )

# Encoder ------------------------------------------------------------------------------------------

class PcsEncoder(LiteXModule):
    """Makes a block of each word of XGMII; what no block can say becomes a block of errors. Three cycles late.

    Attributes
    ----------
    data, control : Signal(64), Signal(8), in
    header, payload : Signal(2), Signal(64), out; not scrambled.
    """
    def __init__(self):
        self.data    = Signal(BLOCK)
        self.control = Signal(LANES)
        self.header  = Signal(2)
        self.payload = Signal(BLOCK)

        # # #

        # Each lane by itself.
        data      = Signal(BLOCK)
        control   = Signal(LANES)
        is_plain  = Signal(LANES) # Idle or error: seven bits say it.
        is_error  = Signal(LANES)
        is_end    = Signal(LANES)
        is_start  = Signal(LANES)
        is_set    = Signal(LANES)
        for lane in range(LANES):
            tells = {name: self.control[lane] & is_lane(self.data, lane, getattr(Control, name))
                for name in ("IDLE", "ERROR", "TERMINATE", "START", "SEQUENCE")}
            self.sync += [
                is_plain[lane].eq(tells["IDLE"] | tells["ERROR"]),
                is_error[lane].eq(tells["ERROR"]),
                is_end[lane].eq(tells["TERMINATE"]),
                is_start[lane].eq(tells["START"]),
                is_set[lane].eq(tells["SEQUENCE"]),
            ]
        self.sync += [data.eq(self.data), control.eq(self.control)]

        # The block, if there is one.
        codes     = [Mux(is_error[lane], C(ERROR_CODE, 7), C(IDLE_CODE, 7)) for lane in range(LANES)]
        octets    = [data[8*lane:8*lane + 8] for lane in range(LANES)]
        low_idle  = (control[:COLUMN] == 0xf) & (is_plain[:COLUMN] == 0xf)
        high_idle = (control[COLUMN:] == 0xf) & (is_plain[COLUMN:] == 0xf)
        low_set   = (control[:COLUMN] == 1) & is_set[0]
        high_set  = (control[COLUMN:] == 1) & is_set[COLUMN]
        high_from = (control[COLUMN:] == 1) & is_start[COLUMN]
        shapes    = [
            (low_idle & high_idle, BlockKind.CONTROL, 0x1e, [*codes]),
            (low_idle & high_set,  BlockKind.CONTROL, 0x2d, [*codes[:4], C(0, 4), *octets[5:]]),
            (low_set & high_idle,  BlockKind.CONTROL, 0x4b, [*octets[1:4], C(0, 4), *codes[4:]]),
            (low_set & high_set,   BlockKind.CONTROL, 0x55, [*octets[1:4], C(0, 8), *octets[5:]]),
            (low_idle & high_from, BlockKind.START,   0x33, [*codes[:4], C(0, 4), *octets[5:]]),
            (low_set & high_from,  BlockKind.START,   0x66, [*octets[1:4], C(0, 8), *octets[5:]]),
            ((control == 1) & is_start[0], BlockKind.START, 0x78, octets[1:]),
            *(self.end(lane, control, is_end, is_plain, octets, codes) for lane in range(LANES)),
        ]
        header  = Signal(2)
        payload = Signal(BLOCK)
        kind    = Signal(3)
        self.sync += [
            kind.eq(int(BlockKind.ERROR)),
            If(control == 0,
                kind.eq(int(BlockKind.DATA)),
                payload.eq(data),
            ),
            *(If(said, kind.eq(int(what)), payload.eq(Cat(C(number, 8), *parts))) for said, what, number, parts in shapes),
            header.eq(Mux(control == 0, HEADER["data"], HEADER["control"])),
        ]

        # Which may follow which.
        state = Signal(3) # Of the block before.
        after = Signal(3)
        self.comb += after.eq(followed(state, kind))
        self.sync += [
            state.eq(after),
            self.header.eq(header),
            self.payload.eq(payload),
            If(after == BlockKind.ERROR,
                self.header.eq(HEADER["control"]),
                self.payload.eq(Cat(C(ERROR_TYPE, 8), Replicate(C(ERROR_CODE, 7), LANES))),
            ),
        ]

    def end(self, lane, control, is_end, is_plain, octets, codes):
        """Return the shape of a block in whose ``lane`` a frame ends."""
        rest   = 2**LANES - 2**(lane + 1)
        idle   = (is_plain & rest) == rest
        is_one = (control == 2**LANES - 2**lane) & is_end[lane] & idle
        filled = [C(0, LANES - 1 - lane)] if lane < LANES - 1 else []
        return is_one, BlockKind.TERMINATE, TERMINATES[lane], [*octets[:lane], *filled, *codes[lane + 1:]]

def followed(state, kind):
    """Return what a block of a kind is after one of ``state``, as the figures 49-16 and 49-17 have it, but what looks ahead."""
    is_in = (state == BlockKind.START) | (state == BlockKind.DATA)
    fits  = Array([
        ~is_in,                            # CONTROL
        ~is_in,                            # START
        is_in | (state == BlockKind.ERROR),     # DATA
        is_in | (state == BlockKind.ERROR),     # TERMINATE
        0,                                 # ERROR
    ])[kind]
    return Mux(fits, kind, int(BlockKind.ERROR))

# Decoder ------------------------------------------------------------------------------------------

class PcsDecoder(LiteXModule):
    """Makes a word of XGMII of each block; three cycles late.

    Attributes
    ----------
    header, payload : Signal(2), Signal(64), in; not scrambled.
    is_locked : Signal(), in; without it all words are two ordered sets of a local fault.
    data, control : Signal(64), Signal(8), out
    errors : Signal(), out; a word became one of errors.
    """
    def __init__(self):
        self.header    = Signal(2)
        self.payload   = Signal(BLOCK)
        self.is_locked = Signal()
        self.data      = Signal(BLOCK, reset=FAULT_WORD)
        self.control   = Signal(LANES, reset=FAULT_CONTROL)
        self.errors    = Signal()

        # # #

        bits, number = self.payload, self.payload[:8]
        octet = [bits[8*n:8*n + 8] for n in range(LANES)]
        code  = [bits[8 + 7*lane:15 + 7*lane] for lane in range(LANES)]
        plain = [(one == IDLE_CODE) | (one == ERROR_CODE) for one in code]
        characters  = [Mux(one == ERROR_CODE, int(Control.ERROR), int(Control.IDLE)) for one in code]
        low, high = Reduce("AND", plain[:COLUMN]), Reduce("AND", plain[COLUMN:])
        start, several, end = (C(int(one), 8) for one in (Control.START, Control.SEQUENCE, Control.TERMINATE))
        low_set  = bits[32:36] == 0
        high_set = bits[36:40] == 0
        shapes   = [
            (0x1e, BlockKind.CONTROL, low & high,          0xff, characters),
            (0x2d, BlockKind.CONTROL, low & high_set,      0x1f, [*characters[:4], several, *octet[5:]]),
            (0x4b, BlockKind.CONTROL, low_set & high,      0xf1, [several, *octet[1:4], *characters[4:]]),
            (0x55, BlockKind.CONTROL, low_set & high_set,  0x11, [several, *octet[1:4], several, *octet[5:]]),
            (0x33, BlockKind.START,   low,                 0x1f, [*characters[:4], start, *octet[5:]]),
            (0x66, BlockKind.START,   low_set,             0x11, [several, *octet[1:4], start, *octet[5:]]),
            (0x78, BlockKind.START,   1,                   0x01, [start, *octet[1:]]),
            *((one, BlockKind.TERMINATE, Reduce("AND", plain[lane + 1:]) if lane < LANES - 1 else 1, 2**LANES - 2**lane,
                [*octet[1:lane + 1], end, *characters[lane + 1:]]) for lane, one in enumerate(TERMINATES)),
        ]
        kind      = Signal(3)
        data      = Signal(BLOCK)
        control   = Signal(LANES)
        is_locked = Signal()
        self.sync += [
            kind.eq(int(BlockKind.ERROR)),
            is_locked.eq(self.is_locked),
            If(self.header == HEADER["data"],
                kind.eq(int(BlockKind.DATA)),
                data.eq(bits),
                control.eq(0),
            ).Elif(self.header == HEADER["control"],
                Case(number, {one: [
                    If(is_right, kind.eq(int(what))),
                    data.eq(Cat(*octets)),
                    control.eq(controls),
                ] for one, what, is_right, controls, octets in shapes}),
            ),
        ]

        # What may follow which; the last block of a frame is looked at with the one after it.
        now_data    = Signal(BLOCK)
        now_control = Signal(LANES)
        now         = Signal(3)
        now_locked  = Signal()
        state       = Signal(3)
        after       = Signal(3)
        is_followed = (kind == BlockKind.CONTROL) | (kind == BlockKind.START)
        self.comb += [
            after.eq(followed(state, now)),
            If((now == BlockKind.TERMINATE) & ~is_followed, after.eq(int(BlockKind.ERROR))),
        ]
        self.sync += [
            now.eq(kind),
            now_data.eq(data),
            now_control.eq(control),
            now_locked.eq(is_locked),
            state.eq(after),
            self.data.eq(now_data),
            self.control.eq(now_control),
            self.errors.eq(now_locked & (after == BlockKind.ERROR)),
            If(after == BlockKind.ERROR,
                self.data.eq(ERROR_WORD),
                self.control.eq(2**LANES - 1),
            ),
            If(~now_locked,
                state.eq(int(BlockKind.CONTROL)),
                self.data.eq(FAULT_WORD),
                self.control.eq(FAULT_CONTROL),
            ),
        ]

# Block Lock ---------------------------------------------------------------------------------------

class BlockLock(LiteXModule):
    """Finds where blocks begin, and says when too many of their headers are wrong.

    Attributes
    ----------
    valid : Signal(), in; a block comes, of which ``is_right`` says whether its two bits differ.
    slip : Signal(), out; a pulse: the gearbox begins blocks a bit later.
    is_locked : Signal(), out; blocks begin where they should, and have few errors.
    ber_cycles : int

    Source: IEEE 802.3, figures 49-14 (lock) and 49-15 (errors of headers).
    """
    def __init__(self, ber_cycles=BER_CYCLES):
        self.valid     = Signal()
        self.is_right  = Signal()
        self.slip      = Signal()
        self.is_locked = Signal()

        # # #

        has_lock = Signal()
        blocks   = Signal(max=LOCK_BLOCKS)
        wrong    = Signal(max=SLIP_BLOCKS)
        rest     = Signal(max=SLIP_CYCLES + 1)
        is_last  = blocks == LOCK_BLOCKS - 1
        is_many  = wrong == SLIP_BLOCKS - 1
        self.sync += [
            self.slip.eq(0),
            If(rest != 0,
                rest.eq(rest - 1),
            ).Elif(self.valid,
                blocks.eq(blocks + 1),
                If(~self.is_right, wrong.eq(wrong + 1)),
                If(is_last,
                    wrong.eq(0),
                    If(self.is_right & (wrong == 0), has_lock.eq(1)),
                ),
                If(~self.is_right & (~has_lock | is_many),
                    has_lock.eq(0),
                    self.slip.eq(1),
                    blocks.eq(0),
                    wrong.eq(0),
                    rest.eq(SLIP_CYCLES),
                ),
            ),
        ]

        cycles   = Signal(max=ber_cycles)
        errors   = Signal(max=SLIP_BLOCKS + 1)
        has_many = Signal()
        self.sync += [
            If(self.valid & ~self.is_right & (errors != SLIP_BLOCKS), errors.eq(errors + 1)),
            If(errors == SLIP_BLOCKS, has_many.eq(1)),
            cycles.eq(cycles + 1),
            If(cycles == ber_cycles - 1,
                cycles.eq(0),
                errors.eq(0),
                If(errors != SLIP_BLOCKS, has_many.eq(0)),
            ),
            If(~has_lock,
                cycles.eq(0),
                errors.eq(0),
                has_many.eq(0),
            ),
            self.is_locked.eq(has_lock & ~has_many),
        ]

# Block Crossing -----------------------------------------------------------------------------------

class BlockCrossing(LiteXModule):
    """Takes blocks from one clock to another that is as fast on the whole, and never lets them run dry.

    Both clocks have one source, so as many blocks come as go. What is held is filled once, when blocks begin to come; from
    there on each takes the same time, but for the phase of the clocks.

    Attributes
    ----------
    sink : Endpoint(layout), in, cd_from; ``valid`` with each block.
    source : Endpoint(layout), out, cd_to; ``ready`` takes one. Without ``valid`` there is none, and its bits are zeros.
    lost : Signal(8), out, cd_from; blocks that found no space. It stops at 255.
    missed : Signal(8), out, cd_to; blocks that were not there when they had to be, after which it is filled anew. It stops at 255.
    """
    def __init__(self, layout, cd_from, cd_to):
        self.crossing = crossing = StreamCrossing(layout, cd_from, cd_to, FIFO_DEPTH)
        self.sink     = sink     = crossing.sink
        self.source   = source   = stream.Endpoint(layout)
        self.lost     = lost     = Signal(8)
        self.missed   = missed   = Signal(8)

        # # #

        held  = crossing.source
        began = Signal()
        fill = Signal(max=FIFO_FILL + 1, reset=FIFO_FILL)
        sync_from, sync_to = getattr(self.sync, cd_from), getattr(self.sync, cd_to)
        sync_from += [
            If(sink.ready, began.eq(1)), # After a reset.
            If(began & sink.valid & ~sink.ready & (lost != 255), lost.eq(lost + 1)),
        ]
        sync_to   += [
            If(held.valid & (fill != 0), fill.eq(fill - 1)),
            If(source.ready & (fill == 0) & ~held.valid,
                fill.eq(FIFO_FILL),
                If(missed != 255, missed.eq(missed + 1)),
            ),
        ]
        self.comb += [
            source.valid.eq(held.valid & (fill == 0)),
            held.ready.eq(source.ready & (fill == 0)),
            If(source.valid, source.payload.eq(held.payload)),
        ]

# PCS ----------------------------------------------------------------------------------------------

class XgmiiPCS(LiteXModule):
    """Joins XGMII to the gearbox of a transceiver, whose clocks of 161.13 MHz pause for a block in 33 cycles.

    ``timebase`` (156.25 MHz) and ``gt_tx`` have one source, as have ``eth_rx`` and ``gt_rx``, the clock of what comes in: nothing
    is inserted or left out, so a stamp in ``eth_rx`` is that of the line.

    Attributes
    ----------
    tx_data, tx_control : Signal(64), Signal(8), in, ``timebase``
    rx_data, rx_control : Signal(64), Signal(8), out, ``eth_rx``
    tx_take : Signal(), in, ``gt_tx``; the gearbox takes a block.
    tx_header, tx_payload : Signal(2), Signal(64), out, ``gt_tx``; a cycle after ``tx_take``, held.
    rx_valid, rx_header, rx_payload : Signal(), Signal(2), Signal(64), in, ``gt_rx``
    slip : Signal(), out, ``gt_rx``; as of `BlockLock`.
    is_locked : Signal(), out, ``gt_rx``
    tx_lost, tx_missed, rx_lost, rx_missed : Signal(8), out; of either `BlockCrossing`, in its clocks.
    rx_error_count : Signal(32), out, ``eth_rx``; words that became errors. It wraps.
    """
    def __init__(self, ber_cycles=BER_CYCLES):
        layout = [("header", 2), ("block", BLOCK)]

        # Transmit.
        self.encoder   = encoder   = ClockDomainsRenamer("timebase")(PcsEncoder())
        self.leaving   = leaving   = BlockCrossing(layout, "timebase", "gt_tx")
        self.scrambler = scrambler = ClockDomainsRenamer("gt_tx")(Scrambler())
        self.tx_data, self.tx_control = encoder.data, encoder.control
        self.tx_take    = Signal()
        self.tx_header  = Signal(2)
        self.tx_payload = scrambler.o
        self.tx_lost, self.tx_missed = leaving.lost, leaving.missed

        # Receive.
        self.rx_valid   = Signal()
        self.rx_header  = Signal(2)
        self.rx_payload = Signal(BLOCK)
        self.lock       = lock     = ClockDomainsRenamer("gt_rx")(BlockLock(ber_cycles))
        self.descrambler = back    = ClockDomainsRenamer("gt_rx")(Scrambler(is_back=True))
        self.coming     = coming   = BlockCrossing([*layout, ("is_locked", 1)], "gt_rx", "eth_rx")
        self.decoder    = decoder  = ClockDomainsRenamer("eth_rx")(PcsDecoder())
        self.slip, self.is_locked = lock.slip, lock.is_locked
        self.rx_data, self.rx_control = decoder.data, decoder.control
        self.rx_lost, self.rx_missed  = coming.lost, coming.missed
        self.rx_error_count = Signal(32)

        # # #

        self.comb += [
            leaving.sink.valid.eq(1),
            leaving.sink.header.eq(encoder.header),
            leaving.sink.block.eq(encoder.payload),
            leaving.source.ready.eq(self.tx_take),
            scrambler.ce.eq(self.tx_take),
            scrambler.i.eq(leaving.source.block),
        ]
        self.sync.gt_tx += If(self.tx_take, self.tx_header.eq(leaving.source.header))

        header, valid = Signal(2), Signal()
        self.sync.gt_rx += [
            valid.eq(self.rx_valid),
            header.eq(self.rx_header),
        ]
        self.comb += [
            lock.valid.eq(self.rx_valid),
            lock.is_right.eq(self.rx_header[0] ^ self.rx_header[1]),
            back.ce.eq(self.rx_valid),
            back.i.eq(self.rx_payload),
            coming.sink.valid.eq(valid),
            coming.sink.header.eq(header),
            coming.sink.block.eq(back.o),
            coming.sink.is_locked.eq(lock.is_locked),
            coming.source.ready.eq(1),
            decoder.header.eq(coming.source.header),
            decoder.payload.eq(coming.source.block),
            decoder.is_locked.eq(coming.source.is_locked),
        ]
        self.sync.eth_rx += If(decoder.errors, self.rx_error_count.eq(self.rx_error_count + 1))
