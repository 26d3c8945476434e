# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What comes to the capture from the ports, a record after the other."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.capture.channels import CHANNEL_BITS
from liteprobe.cores.capture.descriptors import descriptor_layout, words_bits
from liteprobe.cores.formats import RECORD_HEAD_WORDS, UnifiedFlag

CHANNEL_BIT = 24 # Of word 3 of a record.
HEADER_BIT  = log2_int(UnifiedFlag.HEADER)
# Parts of a record: its four first words, then these.
HEADER_PART, DATA_PART = RECORD_HEAD_WORDS, RECORD_HEAD_WORDS + 1

class RecordPort:
    """What a port's `Staging` gives: endpoints ``descriptor``, ``header``, ``data``; and takes: ``skip``.

    See docs/design/monitor.md, "From `Staging` to `BlockWriter`".
    """
    def __init__(self):
        self.descriptor = stream.Endpoint(descriptor_layout())
        self.header     = stream.Endpoint([("data", 32)])
        self.data       = stream.Endpoint([("data", 32)])
        self.skip       = Signal()

# Record Ports -------------------------------------------------------------------------------------

class RecordPorts(LiteXModule):
    """Shows one record after the other; ports that have one take turns.

    Parameters
    ----------
    ports : int

    Attributes
    ----------
    ports : list of RecordPort, in
    is_waiting, waiting_channel : Signal(), Signal(3), out
        There is a record, and whose.
    choose : Signal(), in
        One cycle: it is the present one from the next cycle on.
    lost, has_header, words : Signal(), Signal(), Signal(14), out
        Of the present one, until ``take``.
    take, skip : Signal(), in
        Takes the descriptor of the present one; with ``skip`` nothing of it follows.
    discard : Signal(), in
        Throws away whatever comes.
    part : Signal(3), in
        What ``source`` shows of the present one: word 0 to 3 of the record, the rest of its header (4), or its octets (5).
    source : Endpoint([("data", 32)]), out
        ``last`` with the last word of part 4 or 5. Words 0 to 3 stay until ``take``.
    """
    def __init__(self, ports):
        self.ports           = ports = [RecordPort() for _ in range(ports)]
        self.is_waiting      = Signal()
        self.waiting_channel = Signal(CHANNEL_BITS)
        self.choose          = Signal()
        self.lost            = Signal()
        self.has_header      = Signal()
        self.words           = Signal(words_bits)
        self.take            = Signal()
        self.skip            = Signal()
        self.discard         = Signal()
        self.part            = Signal(3)
        self.source          = source = stream.Endpoint([("data", 32)])

        # # #

        present = Signal(max=max(2, len(ports)))
        chosen  = Signal.like(present)
        count   = len(ports)
        for number in range(count): # What is said last counts: the port after the present one.
            self.comb += If(present == number, *[
                If(ports[other].descriptor.valid, chosen.eq(other), self.is_waiting.eq(1))
                for other in [(number - step) % count for step in range(count)]
            ])
        channels = Array([port.descriptor.head3[CHANNEL_BIT:CHANNEL_BIT + CHANNEL_BITS] for port in ports])
        self.comb += self.waiting_channel.eq(channels[chosen])
        self.sync += If(self.choose, present.eq(chosen))
        self.comb += Case(present, {number: self.show(port) for number, port in enumerate(ports)})
        for number, port in enumerate(ports):
            mine = present == number
            self.comb += [
                port.descriptor.ready.eq((self.take & mine) | self.discard),
                port.skip.eq(self.skip | self.discard),
                port.header.ready.eq(source.ready & mine & (self.part == HEADER_PART)),
                port.data.ready.eq(source.ready & mine & (self.part == DATA_PART)),
            ]

    def show(self, port):
        """Return what shows the record of a port."""
        descriptor, source = port.descriptor, self.source
        heads = [getattr(descriptor, f"head{n}") for n in range(RECORD_HEAD_WORDS)]
        return [
            self.lost.eq(descriptor.lost),
            self.has_header.eq(descriptor.has_header),
            self.words.eq(descriptor.words),
            source.valid.eq(1),
            Case(self.part, {
                **{number: source.data.eq(head) for number, head in enumerate(heads[:-1])},
                "default":   source.data.eq(heads[-1] | descriptor.has_header << HEADER_BIT),
                HEADER_PART: [
                    source.valid.eq(port.header.valid), source.data.eq(port.header.data), source.last.eq(port.header.last)],
                DATA_PART:   [
                    source.valid.eq(port.data.valid), source.data.eq(port.data.data), source.last.eq(port.data.last)],
            }),
        ]
