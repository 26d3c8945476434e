# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A port that monitors, with its registers."""

from migen import *

from litex.gen import *

from litex.soc.interconnect.csr import CSR, CSRField, CSRStatus, CSRStorage

from liteprobe.cores.crossing import LevelCrossing
from liteprobe.cores.receive.monitor.path import MonitorPath
from liteprobe.cores.bus import WriteOnlyCSR
from liteprobe.cores.timebase.line_clock import LineClockLatch

# Monitor Port -------------------------------------------------------------------------------------

class MonitorPort(LiteXModule):
    """Gives the path of a port its registers (docs/cores/monitor.md).

    Parameters
    ----------
    clock, matcher, port, management_mac
        As of `MonitorPath`.
    with_line_clock : bool
        Latches the clock of the line: registers ``line_*``, as of `LineClockLatch`.
    pad_ticks, with_fields, with_hash
        As of `MonitorPath`. Without ``with_hash`` there are no registers ``sample_seed`` and ``channel_table``, and no bit
        ``by_hash``.

    Attributes
    ----------
    path : MonitorPath
    sink, management_source : as of `MonitorPath`
    link_up : Signal(), in, asynchronous
        The PHY's; 1 unless driven.
    """
    def __init__(self, clock, matcher, port=0, management_mac=None, with_line_clock=False, **of_path):
        self.path = path = MonitorPath(clock, matcher, port, management_mac, **of_path)
        self.sink              = path.sink
        self.management_source = path.management_source
        self.link_up           = Signal(reset=1)

        # # #

        self.add_csr(of_path.get("with_hash", True))
        if with_line_clock:
            self.line = LineClockLatch(path.arrivals.stamper.waiting)

    def add_csr(self, with_hash):
        """Add the registers."""
        path = self.path
        self._keep = CSRStorage(4, name="keep", description="What a record of a frame is kept of.", fields=[
            CSRField("packets", size=1, description="The frame, up to snap_length."),
            CSRField("headers", size=1, description="The whole unified header."),
            CSRField("damaged", size=1, description="Frames with a wrong FCS or symbol errors, runts and giants, too."),
            CSRField("own",     size=1, description="Frames for the probe itself, too."),
        ])
        by_hash = [CSRField("by_hash", size=1, description="By the hash of the packet, not by count.")]*with_hash
        self._sample = CSRStorage(3 + with_hash, name="sample", description="Which of the frames that pass are kept.", fields=[
            CSRField("shift",   size=3, description="One of 2^shift, 0 to 4."),
            *by_hash,
        ])
        self._snap_length = WriteOnlyCSR(16, name="snap_length", reset=0xffff, description="Octets kept of a frame, at most.")
        if with_hash:
            self._sample_seed = WriteOnlyCSR(32, name="sample_seed", description="Of the hash of the packet.")
            self._table       = CSR(16, name="channel_table")
        self._clear       = CSRStorage(1, name="clear", description="Write: clear the counters, begin a new count of samples. "
            "A frame on its way is counted by those that come later (matched and on).")
        self._latch       = CSRStorage(1, name="latch", description="Write: snapshot of all counters.")
        self._link_up     = CSRStatus(1, name="link_up")

        # # #

        self.link_crossing = LevelCrossing("sys")
        keep, sample = self._keep.fields, self._sample.fields
        of_hash = [
            path.sample_by_hash.eq(sample.by_hash),
            path.sample_seed.eq(self._sample_seed.storage),
            # Entry in the upper octet, channel in the lower one.
            path.table_write.eq(self._table.re),
            path.table_number.eq(self._table.r[8:]),
            path.table_value.eq(self._table.r),
        ] if with_hash else []
        self.comb += [
            path.enable.eq(keep.packets | keep.headers),
            path.snap_length.eq(self._snap_length.storage & Replicate(keep.packets, 16)),
            path.keep_headers.eq(keep.headers),
            path.keep_damaged.eq(keep.damaged),
            path.keep_own.eq(keep.own),
            path.sample_shift.eq(sample.shift),
            *of_hash,
            path.clear.eq(self._clear.re),
            path.latch.eq(self._latch.re),
            self.link_crossing.i.eq(self.link_up),
            self._link_up.status.eq(self.link_crossing.o),
        ]
