# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a port that monitors counts."""

from migen import *

from liteprobe.cores.measure.tally import Event

# Monitor Events -----------------------------------------------------------------------------------

def monitor_events(path, with_management):
    """Return the events of a `MonitorPath`, by the names of its counters.

    A pass of the tally takes fewer than 60 cycles. In that time come up to 20 of the shortest carriers with an SFD, or 60
    without (at 45 MHz); frames that are classified are 32 cycles apart.
    """
    seen, frame, staging  = path.parser.seen, path.parser.frame, path.staging
    decision, verdict     = path.decision, path.decision.verdict
    decides, placed, none = decision.measured.valid, staging.is_placed, Constant(0, 1)
    lacks_header = path.keep_headers & ~verdict.is_lost & ~verdict.has_header
    length       = Signal(16)
    path.comb += If(seen, length.eq(frame.length))
    events = [
        Event("all_frames",         seen,                                               6),
        Event("all_octets",         length,                                            18),
        Event("fcs_errors",         seen & frame.fcs_error,                             6),
        Event("runts",              seen & frame.runt,                                  6),
        Event("giants",             seen & frame.giant,                                 3),
        Event("preamble_errors",    path.mac.preamble_errors,                           8),
        Event("symbol_errors",      seen & frame.symbol_error,                          6),
        Event("overflows",          path.mac.overflows,                                 6),
        Event("stamp_errors",       path.pairing.stamp_error,                           6),
        Event("management_frames",  path.store.stored  if with_management else none,    5),
        Event("management_dropped", path.store.dropped if with_management else none,    5),
        Event("classified",         seen & frame.is_classified,                         3),
        Event("unclassified",       seen & ~frame.is_classified,                        6),
        Event("matched",            decides & decision.matched,                         3),
        Event("passed",             decides & decision.measured.passed,                 3),
        Event("sampled",            decides & decision.sampled,                         3),
        Event("kept",               placed,                                             3),
        Event("damaged",            decides & decision.damaged,                         3),
        Event("own_frames",         decides & decision.own,                             3),
        Event("staging_dropped",    placed & verdict.is_lost,                           3),
        Event("headers_lost",       placed & lacks_header,                              3),
        Event("unplaced",           staging.keep & staging.decide & ~placed,            3),
    ]
    # A monitor counts for months, where a train ends with its sequence numbers of 32 bits.
    return [event._replace(words=2) for event in events]
