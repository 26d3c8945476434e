# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Declares what a transmit path asks of each source of programs that it has beside trains."""

from migen import *

from liteprobe.cores.bus import RegisterBank

class ProgramSource(RegisterBank):
    """Emits the frames of programs of one kind; a `TransmitPath` takes a list of them, and `join` makes one a part of it.

    A source with ``is_scheduled`` has its frames described by the path's `TrainSchedule`, whose ``length`` and end it says.

    Attributes
    ----------
    name : str
        Of the kind; the path has the source as its attribute of this name.
    source : Endpoint(descriptor_description()), out, or None
        None: its frames leave by the ``source`` of the other one that shares its header templates.
    fetch : Endpoint([("data", 32)]), out, or None
        Octets of frames whose descriptors ask for them; else all are built.
    header_read : Record(header_read_layout), or None
        With ``builds``, ``build_stream`` and ``build_word``: where the builder reads headers that vary.
    request : Signal(), in
        One pulse: a program of this kind is asked for; ignored unless the path is idle.
    is_chosen : Signal(), out
        The program is of this source; still from before its begin until it is over.
    arm, stop : Signal(), out
        Pulse: the program begins; level: it is to end.
    may_start : Signal(), out
        Of a program that began: it may start, though its first frame may be due much later.
    """
    is_scheduled    = False
    keeps_headers   = True # A write to headers while a program runs disturbs it.
    fetch           = None
    header_read     = None

    def __init__(self):
        self.request   = Signal()
        self.is_chosen = Signal()
        self.arm       = Signal()
        self.stop      = Signal()
        self.may_start = Signal()

    def join(self, path):
        """Follow the programs of a `TransmitPath`."""
        self.comb += [
            self.arm.eq(path.begins & self.is_chosen),
            self.stop.eq(path.is_stopped & self.is_chosen),
        ]
        self.sync += If(path.asked & ~path.is_busy, self.is_chosen.eq(self.request))

    def add_csr(self):
        """Add the registers that it has in the bank of its path, if any."""
