# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Counts of frames, and the snapshot that shows all counts as of one cycle."""

from migen import *

from litex.gen import *

# Port Counters ------------------------------------------------------------------------------------

class PortCounters(LiteXModule):
    """Counts every frame of a port, whatever it carries. A frame may be several things at once.

    Attributes
    ----------
    frame : Signal(), in
        One cycle for each frame; the next ones are valid then.
    length : Signal(16), in
        Bytes without FCS.
    fcs_error, runt, giant, symbol_error : Signal(), in
    clear : Signal(), in
        Back to 0.
    all_frames, fcs_errors, runts, giants, symbol_errors : Signal(32), out
    all_octets : Signal(64), out
        Lengths added up, bad frames too.
    """
    names = ("all_frames", "all_octets", "fcs_errors", "runts", "giants", "symbol_errors")

    def __init__(self):
        self.frame         = Signal()
        self.length        = Signal(16)
        self.fcs_error     = Signal()
        self.runt          = Signal()
        self.giant         = Signal()
        self.symbol_error  = Signal()
        self.clear         = Signal()
        self.all_frames    = Signal(32)
        self.all_octets    = Signal(64)
        self.fcs_errors    = Signal(32)
        self.runts         = Signal(32)
        self.giants        = Signal(32)
        self.symbol_errors = Signal(32)

        # # #

        for total, addend in [
            (self.all_frames,    1),
            (self.all_octets,    self.length),
            (self.fcs_errors,    self.fcs_error),
            (self.runts,         self.runt),
            (self.giants,        self.giant),
            (self.symbol_errors, self.symbol_error),
        ]:
            self.sync += [
                If(self.frame, total.eq(total + addend)),
                If(self.clear, total.eq(0)),
            ]

# Probe Counters -----------------------------------------------------------------------------------

class ProbeCounters(LiteXModule):
    """Counts the good probe frames of the stream that is measured.

    Attributes
    ----------
    length : Signal(16), in
        Bytes without FCS.
    stamp : Signal(64), in
        Arrival (ns).
    commit : Signal(), in
        One cycle for each frame.
    clear : Signal(), in
        Back to no frame at all.
    frames : Signal(32), out
    octets, first_stamp, last_stamp : Signal(64), out
        Lengths added up; arrivals (ns), 0 before the first frame.
    """
    def __init__(self):
        self.length      = Signal(16)
        self.stamp       = Signal(64)
        self.commit      = Signal()
        self.clear       = Signal()
        self.frames      = Signal(32)
        self.octets      = Signal(64)
        self.first_stamp = Signal(64)
        self.last_stamp  = Signal(64)

        # # #

        is_first = Signal(reset=1)
        self.sync += [
            If(self.commit,
                is_first.eq(0),
                self.frames.eq(self.frames + 1),
                self.octets.eq(self.octets + self.length),
                If(is_first, self.first_stamp.eq(self.stamp)),
                self.last_stamp.eq(self.stamp),
            ),
            If(self.clear,
                is_first.eq(1),
                self.frames.eq(0), self.octets.eq(0), self.first_stamp.eq(0), self.last_stamp.eq(0),
            ),
        ]

# Event Counters -----------------------------------------------------------------------------------

class EventCounters(LiteXModule):
    """Counts single events, 32 bits each.

    Attributes
    ----------
    <name> : Signal(), in
        One for each of ``names``: counts in each cycle that it is 1.
    clear : Signal(), in
        Back to 0.
    totals : dict of name to Signal(32), out
        Wrap.
    """
    def __init__(self, names):
        self.clear  = Signal()
        self.totals = {}

        # # #

        for name in names:
            event = Signal(name=name)
            total = self.totals[name] = Signal(32, name=f"{name}_total")
            setattr(self, name, event)
            self.sync += [
                total.eq(total + event),
                If(self.clear, total.eq(0)),
            ]

# Snapshot -----------------------------------------------------------------------------------------

class Snapshot(LiteXModule):
    """Shows many counts as of one cycle.

    Parameters
    ----------
    live : dict of name to Signal
        What is copied.

    Attributes
    ----------
    latch : Signal(), in
        Copies all in one cycle.
    shown : dict of name to Signal, out
        The copies; 0 before the first latch.
    """
    def __init__(self, live):
        self.latch = Signal()
        self.shown = {name: Signal(len(signal), name=f"{name}_shown") for name, signal in live.items()}

        # # #

        self.sync += If(self.latch, *[self.shown[name].eq(signal) for name, signal in live.items()])
