# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a port that monitors counts."""

from liteprobe.cores.measure.tally import Event

# Monitor Events -----------------------------------------------------------------------------------

def monitor_events(path):
    """Return the events of a `MonitorPath`, by the names of its counters: those of any port, and its own.

    Frames that are classified are 32 cycles apart, so few come in a pass of the tally.
    """
    decision, verdict = path.decision, path.decision.verdict
    decides, placed   = decision.measured.valid, path.staging.is_placed
    lacks_header      = path.keep_headers & ~verdict.is_lost & ~verdict.has_header
    return [
        *path.arrivals.events,
        Event("classified",         path.parser.seen & path.parser.frame.is_classified,   3),
        Event("matched",            decides & decision.matched,                           3),
        Event("passed",             decides & decision.measured.passed,                   3),
        Event("sampled",            decides & decision.sampled,                           3),
        Event("kept",               placed,                                               3),
        Event("damaged",            decides & decision.damaged,                           3),
        Event("own_frames",         decides & decision.own,                               3),
        Event("staging_dropped",    placed & verdict.is_lost,                             3),
        Event("headers_lost",       placed & lacks_header,                                3),
        Event("unplaced",           path.staging.keep & path.staging.decide & ~placed,    3),
    ]
