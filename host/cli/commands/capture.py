# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Captures frames into pcapng, unified headers into Parquet, or blocks into a file as they come."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from liteprobe.host import interrupt
from liteprobe.host.capture import live
from liteprobe.host.capture.expression import host_filter, set_filter, set_trigger
from liteprobe.host.capture.merge import WINDOW_NS
from liteprobe.host.capture.session import Capture, Choice
from liteprobe.host.capture.settings import SNAP_MOST, CaptureSettings, Keep, Sampling
from liteprobe.host.capture.sources import RecordedSource, Source
from liteprobe.host.capture.stream import BlockDecoder
from liteprobe.host.capture.trigger import Trigger
from liteprobe.host.capture.triggered import ProbeTrigger, free_channel
from liteprobe.host.capture.write.output import Output
from liteprobe.host.capture.write.pcapng import Interface, PcapngWriter, Statistics
from liteprobe.host.cli.output import write_text
from liteprobe.host.errors import UsageError

#: What a recording can't be asked for any more: option, and its name among the arguments.
OF_A_PROBE = {
    "--keep": "keep", "--sample": "sample", "--snap": "snap", "--channels": "channels", "--duration": "duration",
    "--via": "via", "--udp-port": "udp_port", "--damaged": "damaged", "--host-trigger": "host_trigger",
}  # fmt: skip
#: What is reported to a person, if it isn't 0.
REMARKS = {
    "filtered": "frames taken out by the filter on this host",
    "gap_frames": "frames dropped for want of room, each gap marked at its place",
    "asked_again": "times blocks were asked for again, which hadn't come in time",
    "never_came": "blocks never came, however often they were asked for",
    "missing": "blocks missing: the records in them are lost",
    "cut": "records lost with a part in a missing block",
    "damaged": "blocks refused: damaged, or no blocks",
    "broken": "places where records don't follow one another: a damaged stream",
    "repeated": "blocks came twice",
    "late": "blocks came after their place was given up",
    "restarts": "times the numbers of the blocks began anew",
    "disordered": "frames out of the order of their stamps",
    "before_given_up": "frames before the trigger given up: too many to hold",
    "stalls": "times this host was too slow to take blocks",
}
ONE_CHANNEL_NS = 200_000  # Both ports of a channel are that near to one another: the longest frame takes 73 us.
RECORDED_PORTS = 2


@dataclass
class Setup:
    """What a capture is made of."""

    source: Source
    finish: Callable[[], dict[str, Any]] = field(default=dict)
    ports: list[Interface] = field(default_factory=list)
    hardware: str = ""
    comment: str = ""
    shift_ns: int = 0
    first_numbers: dict[int, int] | None = None
    window_ns: int = WINDOW_NS
    clock_s: Callable[[], float] = time.monotonic
    matches: Any = None


def check(args: argparse.Namespace) -> None:
    """Raise UsageError for what can't be, before anything is opened."""
    if not (args.write or args.headers or args.blocks):
        raise UsageError("nothing would be written: give -w FILE.pcapng, --headers FILE.parquet or --blocks FILE")
    if str(args.write) == "-" and sys.stdout.isatty():
        raise UsageError("a terminal can't show pcapng: pipe it, like -w - | tshark -r -, or give a file")
    if str(args.write) == "-" and str(args.json) == "-":
        raise UsageError("stdout can't take frames and counts: give --json a file")
    if args.read:
        for option, name in OF_A_PROBE.items():
            if getattr(args, name) is not None:
                raise UsageError(f"{option} is for a probe, and --read takes a recording: leave one of them out")
    if args.trigger is None and not (args.before is None and args.after is None and args.host_trigger is None):
        raise UsageError("--before, --after and --host-trigger need a --trigger EXPR")
    if args.count is not None and args.count < 1:
        raise UsageError(f"count {args.count} is out of range: give 1 or more")
    if args.write and args.keep == "headers":
        raise UsageError("pcapng needs packets: give --keep both, or --headers FILE.parquet in the place of -w")
    if args.headers and args.keep == "packets":
        raise UsageError("--headers needs headers: give --keep both")
    if (args.host_filter or args.trigger) and args.keep == "packets":
        raise UsageError("a filter on the host and a trigger look at headers: give --keep both")


def settings(args: argparse.Namespace) -> CaptureSettings:
    """Return what the probe is to be told."""
    needs_headers = bool(args.headers or args.host_filter or args.trigger)
    needs_packets = bool(args.write or not needs_headers)
    keep = (
        Keep[args.keep.upper()] if args.keep else Keep((Keep.PACKETS * needs_packets) | (Keep.HEADERS * needs_headers))
    )
    return CaptureSettings(
        channels=tuple(args.channels or (0,)),
        snap_length=SNAP_MOST if args.snap is None else args.snap,
        keep=keep,
        sampling=Sampling.of(args.sample) if args.sample else Sampling(),
        with_damaged=bool(args.damaged),
    )


def run(args: argparse.Namespace) -> None:
    """Capture until what was asked for has come, or until Ctrl-C."""
    check(args)
    trigger = None
    if args.trigger:
        trigger = Trigger(
            host_filter(args.trigger), _before_ns(args), None if args.after is None else round(args.after)
        )
    with ExitStack() as stack:
        setup = _recorded(args) if args.read else _live(args, stack)
        choice = Choice(setup.matches, trigger, args.count)
        counts, number = _capture(args, setup, choice, stack)
        if args.json:
            write_text(args.json, json.dumps(counts, indent=2) + "\n")
    said = _report(args, counts)
    if number and not (args.count is None and args.duration is None):  # Else nothing but a signal ends it.
        raise interrupt.Interrupted(number, said)
    print(said, file=sys.stderr)


def _before_ns(args: argparse.Namespace) -> int:
    return 10_000_000 if args.before is None else round(args.before)


def _recorded(args: argparse.Namespace) -> Setup:
    """Return a capture from a recording."""
    if args.utc == "probe":
        raise UsageError("a recording doesn't know TAI - UTC: give --utc 37, or what it was")
    ports = [Interface(f"port{number}", filter=args.filter or "") for number in range(RECORDED_PORTS)]
    return Setup(
        RecordedSource(args.read),
        ports=ports,
        comment=f"From the recording {args.read}",
        shift_ns=-_seconds(args.utc) * 10**9,
        matches=host_filter(args.filter) if args.filter else None,
    )


def _seconds(text: str | None) -> int:
    try:
        return int(text or 0)
    except ValueError:
        raise UsageError(f"'{text}' is not a whole number of seconds: give --utc 37") from None


def _live(args: argparse.Namespace, stack: ExitStack) -> Setup:
    """Return a capture from a probe that has its settings and has started."""
    wanted = settings(args)
    probe = stack.enter_context(live.open_probe(args.probe, args.map, args.steal))
    transport = live.open_transport(probe, live.Transport(args.via, args.udp_port or 0), wanted.channels, stack)
    if transport.remark:
        print(transport.remark, file=sys.stderr)
    matches = trigger = None
    if args.trigger and not args.host_trigger and transport.kind != "dma":  # By DMA all frames come here as it is.
        trigger = ProbeTrigger(free_channel(wanted.channels))
        set_trigger(probe.registers, args.filter, args.trigger, trigger.channel)
    else:
        matches = set_filter(probe.registers, args.filter, on_host=args.host_filter)
    status = live.clock_words(probe)
    tai_utc_s = (live.tai_utc_s(probe) if args.utc == "probe" else _seconds(args.utc)) if args.utc else 0
    running = live.begin(probe, wanted, transport, stack, trigger)
    snap = 0 if wanted.snap_length == SNAP_MOST else wanted.snap_length
    ports = [
        Interface(f"port{number}", f"port {number} of {probe.url}", args.filter or "", status, snap)
        for number in range(running.ports)
    ]
    return Setup(
        running.source,
        running.finish,
        ports,
        hardware=f"liteprobe {probe.url}",
        comment="Stamps are UTC." if args.utc else "Stamps are of the probe's own time, TAI where its clock is set.",
        shift_ns=-tai_utc_s * 10**9,
        first_numbers=None if trigger else dict.fromkeys(wanted.channels, 0),
        window_ns=ONE_CHANNEL_NS if len(wanted.channels) == 1 and not trigger else WINDOW_NS,
        clock_s=running.clock_s,
        matches=matches,
    )


def _capture(args: argparse.Namespace, setup: Setup, choice: Choice, stack: ExitStack) -> tuple[dict[str, Any], int]:
    """Run, close the files whatever happens; return all counts, and the signal that ended it, or 0."""
    sinks: list[Any] = []
    pcapng = raw = None
    if args.write:
        frames_to = stack.enter_context(closing(Output(args.write)))
        pcapng = PcapngWriter(frames_to, setup.ports, setup.hardware, setup.comment, setup.shift_ns)
        sinks.append(pcapng)
    if args.headers:
        from liteprobe.host.capture.write.parquet import HeaderWriter  # Loading Arrow takes a while.

        headers = HeaderWriter(args.headers, {"liteprobe": setup.comment}, setup.shift_ns)
        stack.callback(headers.close)
        sinks.append(headers)
    if args.blocks:
        raw = stack.enter_context(closing(Output(args.blocks)))
    with _progress(args) as show:
        capture = Capture(sinks, choice, BlockDecoder(setup.first_numbers), setup.window_ns, show)
        number = _loop(args, setup, capture, raw)
    counts = _counts(capture, choice) | setup.finish()
    if pcapng:
        pcapng.close(_statistics(setup, counts))
    return counts, number


def _loop(args: argparse.Namespace, setup: Setup, capture: Capture, raw: Output | None) -> int:
    """Take blocks until the end; the first Ctrl-C ends the capture, and what is on its way is still taken.

    Returns the signal that ended it, or 0.
    """
    ends_s = None if args.duration is None else setup.clock_s() + args.duration / 1e9
    is_stopping = False
    with interrupt.wished() as wish:
        for blocks, lengths in setup.source.batches():
            if raw and len(blocks):
                raw.write(blocks.reshape(-1))
            capture.take(blocks, lengths)
            if capture.is_done:
                setup.source.stop()
                return 0
            is_over = ends_s is not None and setup.clock_s() >= ends_s
            if not is_stopping and (wish.is_asked or is_over):
                is_stopping = True
                setup.source.stop()
    capture.finish()
    return 0 if ends_s is not None and setup.clock_s() >= ends_s else wish.number


def _counts(capture: Capture, choice: Choice) -> dict[str, Any]:
    """Return what became of everything, by name."""
    found: dict[str, Any] = {"frames": capture.frames, "octets": capture.octets, "filtered": capture.filtered}
    found |= asdict(capture.decoder.counters) | {"disordered": capture.merger.disordered}
    if choice.trigger:
        trigger = choice.trigger
        found |= {"trigger_stamp": trigger.stamp, "before_given_up": trigger.given_up, "before_ns": trigger.reach_ns}
    return found


def _statistics(setup: Setup, counts: dict[str, Any]) -> list[Statistics]:
    """Return what the probe knows of each port."""
    return [
        Statistics(received=seen.get("received"), accepted=seen.get("accepted"), comment=counts.get("clock", ""))
        for seen in counts.get("ports", [{} for _ in setup.ports])  # A recording doesn't know.
    ]


@contextmanager
def _progress(args: argparse.Namespace) -> Iterator[Callable[[int], None] | None]:
    """Show on stderr how many frames were written; nothing where stderr is not a terminal."""
    errors = Console(stderr=True)
    if not errors.is_terminal:
        yield None
        return
    text = TextColumn("{task.completed:,} frames, {task.fields[rate]:,.0f}/s")
    with Progress(SpinnerColumn(), text, console=errors, transient=True, refresh_per_second=4) as bars:
        task = bars.add_task("", total=None, rate=0.0)
        began_s = time.monotonic()
        yield lambda count: bars.update(task, completed=count, rate=count / (time.monotonic() - began_s + 1e-9))


def _report(args: argparse.Namespace, counts: dict[str, Any]) -> str:
    """Return what was written, and all that isn't as sent, a line each."""
    names = ["stdout" if str(name) == "-" else str(name) for name in (args.write, args.headers, args.blocks) if name]
    lines = [f"{counts['frames']:,} frames, {counts['octets']:,} octets, in {', '.join(names)}"]
    if args.trigger and counts["trigger_stamp"] is None:
        lines.append("no frame matched the trigger: nothing was kept")
    elif args.trigger and any(counts.get("overwritten", {}).values()) and counts["before_ns"] < _before_ns(args):
        reach_ms, asked_ms = counts["before_ns"] / 1e6, _before_ns(args) / 1e6
        lines.append(
            f"the probe's ring reached back {reach_ms:,.3f} ms before the trigger, not {asked_ms:,g}: keep less (--filter, --snap)"
        )
    for name, words in REMARKS.items():
        if counts.get(name):
            lines.append(f"{counts[name]:,} {words}")
    dropped = counts.get("dropped_by_probe", counts["dropped"])
    if sum(dropped.values()) == counts["gap_frames"]:
        dropped = {}  # All of them are told already.
    for channel, count in dropped.items():
        if count:
            lines.append(f"{count:,} frames dropped by the probe on channel {channel}, for want of room: keep less")
    return "\n".join(lines)
