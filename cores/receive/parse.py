# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Recognises probe frames and reports on every frame."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.formats import GIANT_LENGTH, MIN_LENGTH, RecordFlag
from liteprobe.cores.last_be import bytes_of_last_be
from liteprobe.cores.receive.frames import frame_layout, number_bits, report_layout
from liteprobe.cores.receive.headers import HeaderParser

# Frame Parser -------------------------------------------------------------------------------------

class FrameParser(LiteXModule):
    """Reports on each frame at its end: length, verdict, and what its headers say.

    Frames that were cut by an overflow are not reported: they are counted where they were cut.

    Attributes
    ----------
    sink : Endpoint(frame_layout(data_width)), in
        Always ready.
    source : Endpoint(report_layout()), out
        ``valid`` for one cycle, two cycles after the last word; can't be stalled. The probe's fields stay until the
        next probe frame's report.
    """
    def __init__(self, data_width=32):
        self.sink   = sink   = stream.Endpoint(frame_layout(data_width))
        self.source = source = stream.Endpoint(report_layout())
        stream.set_reset_less(source.payload)

        # # #

        # Length.
        # -------
        # Counted in words; ``length`` stays at the greatest, whatever jabbers.
        shift   = log2_int(data_width//8)
        words   = Signal(16 - shift)
        length  = Signal(16, reset_less=True)
        ended   = Signal()
        verdict = Signal(2, reset_less=True)
        number  = Signal(number_bits, reset_less=True)
        self.sync += [
            ended.eq(sink.valid & sink.last & ~sink.overflow),
            If(sink.valid,
                If(sink.last,
                    words.eq(0)
                ).Elif(words != 2**len(words) - 1,
                    words.eq(words + 1)
                ),
                length.eq(Cat(Constant(0, shift), words) + bytes_of_last_be(sink.last_be)),
                If(words == 2**len(words) - 1, length.eq(0xffff)),
                verdict.eq(Cat(sink.fcs_error, sink.symbol_error)),
                number.eq(sink.number),
            ),
        ]

        # Headers.
        # --------
        self.headers = headers = HeaderParser(data_width)
        self.comb += sink.connect(headers.sink)

        # Report.
        # -------
        is_padded    = Signal()
        length_error = Signal()
        expected     = headers.expected_length
        self.comb += [
            is_padded.eq((length == MIN_LENGTH) & (expected < MIN_LENGTH)),
            length_error.eq(~headers.is_complete | ~headers.udp_fits | ((expected != length) & ~is_padded)),
        ]
        fcs_error    = verdict[0]
        symbol_error = verdict[1]
        runt         = Signal()
        giant        = Signal()
        flags        = Signal(16)
        self.comb += [
            runt.eq(length < MIN_LENGTH),
            giant.eq(length > GIANT_LENGTH),
        ]
        for flag, condition in [
            (RecordFlag.FCS_ERROR,    fcs_error),
            (RecordFlag.LENGTH_ERROR, length_error),
            (RecordFlag.RUNT,         runt),
            (RecordFlag.GIANT,        giant),
            (RecordFlag.SYMBOL_ERROR, symbol_error),
        ]:
            self.comb += flags[log2_int(int(flag))].eq(condition)
        self.sync += [
            source.valid.eq(ended),
            source.number.eq(number),
            source.length.eq(length),
            source.fcs_error.eq(fcs_error),
            source.symbol_error.eq(symbol_error),
            source.runt.eq(runt),
            source.giant.eq(giant),
            source.is_probe.eq(headers.has_signature),
            If(ended & headers.has_signature,
                source.probe_length.eq(length),
                source.probe_flags.eq(flags),
                source.stream_id.eq(headers.stream_id),
                source.sequence.eq(headers.sequence),
                source.tx_stamp.eq(headers.tx_stamp),
            ),
        ]
