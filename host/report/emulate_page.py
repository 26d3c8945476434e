# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The report of an emulated network: what became of the frames of each class, rates, queues and delays."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from liteprobe.host.device.link.sim_stations import StationsReport
from liteprobe.host.report import emulate_plots, page
from liteprobe.host.report.page import Part, count, heading, megabits, number, said_of, table
from liteprobe.host.run.emulate_figures import DROPS, ClassLook, DirectionLook, EmulationResult
from liteprobe.host.traffic.document import treatment, write_network

TITLE = "A network, emulated"
WAYS = {"there": "From port 0 to port 1", "back": "From port 1 to port 0"}
ENDS = {
    "done": "until its time was over",
    "finished": "until its stations had done all",
    "stopped": "until it was stopped",
    "interrupted": "until it was interrupted",
    "detached": "and it was left running",
    "": "and it goes on",
}
FATES = "Class|Arrived|Sent|Discarded|Lost|Queue full|RED|No store|Twice|Corrupt|Held back|Late"
QUEUES = "Class|Mb/s,\nmean|Waits|Waited\nat most|Least\ndelay, ms|Greatest\ndelay, ms|Background|Of it\ndropped"
STATIONS = "Station|Port|Frames\nsent|Received|Octets\nreceived|Wrong FCS|Segments\nsent again"
DEFINED = ("Frame length",)
FATES_WORDS = (
    "A frame that arrived was sent, was dropped (discarded by its class; lost; in front of a full queue; by RED; for "
    "want of the probe's memory), or waits or is under way still. Late frames left after their tick."
)


def write(path: Path, result: EmulationResult, content: Mapping[str, Any]) -> None:
    """Write the page of ``result`` to ``path``; ``content`` is that of the JSON file (``files.emulation_document``)."""
    title = f"{TITLE}: {result.network.name}" if result.network else TITLE
    ran = f"{page.address(content['url'])}: {number(result.last.there.seconds, 3)} s, {ENDS[result.end]}."
    about = [result.network.about] if result.network and result.network.about else []
    parts = [
        *said_of([ran, *about]),
        *said_of(result.notes, "note"),
        _tiles(result),
        *(part for way in result.last.ways for part in _way(result, way)),
        *(_stations(result.stations) if result.stations else ()),
        heading("How to read it"),
        *said_of([FATES_WORDS]),
        *(page.asked_for(write_network(result.network)) if result.network else ()),
        *page.definitions(DEFINED),
        *page.made_with(content),
    ]
    path.write_text(page.document(title, content, parts), encoding="utf-8")


# # #


def _tiles(result: EmulationResult) -> Part:
    classes = [one for way in result.last.ways for one in way.classes]
    tiles = [
        (count(sum(one.counts.arrived for one in classes)), "frames arrived"),
        (count(sum(one.counts.sent for one in classes)), "sent"),
        (count(sum(one.counts.lost for one in classes)), "lost by loss models"),
        (count(sum(one.counts.full + one.counts.early for one in classes)), "dropped by queues"),
        (count(sum(one.counts.no_store for one in classes)), "dropped for want of memory"),
        (count(sum(one.counts.late for one in classes)), "left after their tick"),
    ]
    return page.tiles_of(tiles)


def _stations(report: StationsReport) -> list[Part]:
    rows = [
        [name, str(port), *map(count, (one.sent + one.played, one.frames, one.octets, one.wrong, one.resent))]
        for port, (name, one) in enumerate(zip(report.names, report.ports, strict=True))
    ]
    return [heading("Stations"), table(STATIONS, rows), *said_of([report.sentence])]


def _way(result: EmulationResult, last: DirectionLook) -> list[Part]:
    way = last.way
    looks = [getattr(look, way) for look in result.samples]
    outside = (
        f"{count(last.damaged)} frames with bad FCS, too short or too long; {count(last.overflows)} for which there "
        f"was no space on their way in; {count(last.management)} for the probe itself."
    )
    captions = [
        (emulate_plots.rates(looks), "Rate of what left.", "Means from look to look."),
        (emulate_plots.queues(looks), "Queue.", "Frames that wait for the link at each look, background among them."),
        (
            emulate_plots.delays(last),
            "Delay.",
            "Which part of the frames was due within it: known at the dots, whose delays double, and at both ends.",
        ),
    ]
    return [
        heading(WAYS[way]),
        *_asked(result, way),
        table(FATES, [_fates(one) for one in last.classes]),
        table(QUEUES, [_queues(one, last.seconds) for one in last.classes]),
        *said_of([outside]),
        page.figures(captions),
    ]


def _asked(result: EmulationResult, way: str) -> list[Part]:
    if result.network is None:
        return []
    classes = getattr(result.network, way).numbered.values()
    rows = [[one.name, one.match or "the rest", treatment(one)] for one in classes]
    return [table(["Class", "Matches", "What its frames meet"], rows, "words")]


def _fates(one: ClassLook) -> list[str]:
    counts = one.counts
    drops = [getattr(counts, name) for name in DROPS]
    values = (counts.arrived, counts.sent, *drops, counts.duplicated, counts.corrupted, counts.held_back, counts.late)
    return [one.name, *(count(value) for value in values)]


def _queues(one: ClassLook, seconds: float) -> list[str]:
    octets, delays = one.counts.sent_octets, one.delays
    mean_bps = None if octets is None or not seconds else 8 * octets / seconds
    ends = [None if value is None else value / 1e6 for value in (delays.least_ns, delays.most_ns)]
    cells = [megabits(mean_bps), count(one.queue.frames), count(one.queue.most), *(number(end, 6) for end in ends)]
    return [one.name, *cells, count(one.counts.background), count(one.counts.background_dropped)]
