# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Schedules the frames of a program of trains."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import SEQUENCE_OFFSET, STAMP_OCTETS, STAMP_OFFSET
from liteprobe.cores.transmit.frames import LENGTH_BITS, descriptor_description

class TrainSchedule(LiteXModule):
    """Emits one descriptor a frame: ``count`` frames in each of ``repeats`` trains; in ``sys``.

    The first frame is due in tick 0. The interval has a fraction of 2^-32 ticks, which is carried from frame to frame: no
    rounding error adds up.

    Attributes
    ----------
    source : Endpoint(descriptor_description()), out
        ``sequence`` counts from 0 over the whole program; ``final`` marks the last frame of all.
    count, repeats : Signal(32), in
        From 1; must stand still while active, as all numbers.
    length : Signal(14), in
        Octets of a frame, without FCS.
    interval : Signal(32), in
        Whole ticks from start to start.
    interval_gap : Signal(33), in
        The same after the last frame of a train.
    interval_fraction : Signal(32), in
        2^-32 ticks, added to both.
    payload_offset : Signal(8), in
        Start of the UDP payload; ``payload_offset + 6`` must be a multiple of 4.
    fill : Signal(2), in
        ``formats.Fill``.
    checksum_enable, checksum_seed : Signal(), Signal(16), in
    start : Signal(), in
        Begins the program; ignored while active.
    stop : Signal(), in
        While high, the next descriptor is ``empty`` and ``final``: the program ends early.
    is_active : Signal(), out
    """
    def __init__(self):
        self.source            = source = stream.Endpoint(descriptor_description())
        self.count             = Signal(32)
        self.repeats           = Signal(32)
        self.length            = Signal(LENGTH_BITS)
        self.interval          = Signal(32)
        self.interval_gap      = Signal(33)
        self.interval_fraction = Signal(32)
        self.payload_offset    = Signal(8)
        self.fill              = Signal(2)
        self.checksum_enable   = Signal()
        self.checksum_seed     = Signal(16)
        self.start             = Signal()
        self.stop              = Signal()
        self.is_active         = Signal()

        # # #

        frames     = Signal(32, reset_less=True) # Frames of this train, this one included.
        trains     = Signal(32, reset_less=True) # Trains, this one included.
        sequence   = Signal(32, reset_less=True)
        due        = Signal(64, reset_less=True)
        fraction   = Signal(32, reset_less=True) # Of due, 2^-32 ticks.
        step       = Signal(33)
        train_last = Signal()
        is_empty   = Signal()
        taken      = Signal()
        self.comb += [
            taken.eq(source.valid & source.ready),
            train_last.eq(frames == 1),
            step.eq(Mux(train_last, self.interval_gap, self.interval)),
            source.valid.eq(self.is_active),
            source.first.eq(1),
            source.last.eq(1),
            source.sequence.eq(sequence),
            source.length.eq(self.length),
            source.due.eq(due),
            source.final.eq(is_empty | (train_last & (trains == 1))),
            source.empty.eq(is_empty),
        ]
        self.sync += [
            If(taken | ~self.is_active,
                # Sampled between descriptors only: one that waits must not change.
                is_empty.eq(self.stop),
            ),
            If(taken,
                sequence.eq(sequence + 1),
                Cat(fraction, due).eq(Cat(fraction, due) + Cat(self.interval_fraction, step)),
                frames.eq(frames - 1),
                If(train_last,
                    frames.eq(self.count),
                    trains.eq(trains - 1),
                ),
                If(source.final, self.is_active.eq(0)),
            ).Elif(self.start & ~self.is_active,
                frames.eq(self.count),
                trains.eq(self.repeats),
                sequence.eq(0),
                due.eq(0),
                fraction.eq(0),
                self.is_active.eq(1),
            ),
        ]
        self.add_settings()

    def add_settings(self):
        """Say what stands in each frame: the same in all, a probe's header with its stamp."""
        source = self.source
        self.comb += [
            source.stream.eq(0),
            source.header_words.eq((self.payload_offset + SEQUENCE_OFFSET)[2:]),
            source.with_probe.eq(1),
            *copied(source, self, "fill", "payload_offset", "checksum_enable", "checksum_seed"),
            source.stamp_enable.eq(1),
            source.stamp_offset.eq(self.payload_offset + STAMP_OFFSET),
            source.stamp_octets.eq(STAMP_OCTETS - 1),
            source.stamp_shift.eq(0),
            source.stamp_nibble.eq(0),
            source.stamp_mend.eq(0),
        ]
