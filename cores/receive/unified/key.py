# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Holds fields of a frame side by side for the stages after the parser: a filter's key, and a probe's header."""

from migen import *

from litex.gen import *

from liteprobe.cores.octets import swapped
from liteprobe.cores.receive.unified.walk import WalkStep, place

# Layouts ------------------------------------------------------------------------------------------

def key_layout():
    """Return the fields that a filter asks for. Those that a frame lacks may be anything."""
    return [
        ("source",           128), # Four words as in the unified header; IPv4 (and ARP's) is the first.
        ("destination",      128),
        ("layer3",             2), # With none there are no addresses; without IP, no protocol.
        ("protocol",           8),
        ("source_port",       16),
        ("destination_port",  16),
        ("has_ports",          1), # Of TCP, UDP or SCTP.
        ("vlan",              12), # Of the outermost tag.
        ("has_tag",            1),
        ("source_mac",        48), # First octet highest.
        ("destination_mac",   48),
        ("has_macs",           1),
    ]

def probe_layout():
    """Return the fields of a probe's header."""
    return [("stream_id", 16), ("sequence", 32), ("tx_stamp", 64)]

# Key Fields ---------------------------------------------------------------------------------------

class KeyFields(LiteXModule):
    """Keeps those words of a unified header that a filter asks for, as they pass.

    Attributes
    ----------
    write, address, data : Signal(), Signal(5), Signal(32), in
        Words of the unified header.
    key : Record(key_layout()), out
        What the last ones written say: addresses, ports, VLAN id, MACs.
    """
    def __init__(self):
        self.write   = Signal()
        self.address = Signal(5)
        self.data    = Signal(32)
        self.key     = key = Record(key_layout())

        # # #

        words = {}
        for name, count in [("source", 4), ("destination", 4), ("source_port", 1), ("tags", 1), ("destination_mac", 3)]:
            words[name] = [Signal(32, reset_less=True, name=f"{name}_word{number}") for number in range(count)]
            for number, word in enumerate(words[name]):
                self.sync += If(self.write & (self.address == place(name, number)), word.eq(self.data))
        ports, macs = words["source_port"][0], Cat(*words["destination_mac"])
        self.comb += [
            key.source.eq(Cat(*words["source"])),
            key.destination.eq(Cat(*words["destination"])),
            key.source_port.eq(swapped(ports[:16])),
            key.destination_port.eq(swapped(ports[16:])),
            key.vlan.eq(swapped(words["tags"][0][:16])),
            key.destination_mac.eq(swapped(macs[:48])),
            key.source_mac.eq(swapped(macs[48:])),
        ]

# Probe Fields -------------------------------------------------------------------------------------

class ProbeFields(LiteXModule):
    """Keeps what a probe says of itself, as it passes: its words lie as the stream has them.

    Attributes
    ----------
    take, state, position, raw : Signal(), Signal(4), Signal(4), Signal(32), in
        As in `UnifiedWalk`: a word of the stream passes.
    fields : Record(probe_layout()), out
        What the last words at these places were, a probe's or not.
    """
    def __init__(self):
        self.take     = Signal()
        self.state    = Signal(4)
        self.position = Signal(4)
        self.raw      = Signal(32)
        self.fields   = fields = Record(probe_layout(), reset_less=True)

        # # #

        parts = {
            2 : (fields.stream_id, self.raw[16:]),
            3 : (fields.sequence,  self.raw),
            4 : (fields.tx_stamp[32:], self.raw),
            5 : (fields.tx_stamp[:32], self.raw),
        }
        for position, (field, octets) in parts.items():
            self.sync += If(self.take & (self.state == WalkStep.TRANSPORT) & (self.position == position), field.eq(swapped(octets)))
