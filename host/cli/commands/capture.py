# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Captures frames into pcapng, unified headers into Parquet, or blocks into a file as they come."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from liteprobe.host import interrupt
from liteprobe.host.capture.request import (
    BEFORE_NS,
    SNAP_MOST,
    CaptureRequest,
    CaptureSettings,
    Keep,
    Sampling,
    Transport,
)
from liteprobe.host.capture.run import capture_recording
from liteprobe.host.cli.output import write_text
from liteprobe.host.errors import UsageError
from liteprobe.host.probe import Probe

#: What a recording can't be asked for any more: option, and its name among the arguments.
OF_A_PROBE = {
    "--keep": "keep", "--sample": "sample", "--snap": "snap", "--channels": "channels", "--duration": "duration",
    "--via": "via", "--udp-port": "udp_port", "--damaged": "damaged", "--host-trigger": "host_trigger",
}  # fmt: skip
#: What is reported to a person, if it isn't 0.
REMARKS = {
    "filtered": "frames taken out by the filter on this host",
    "filter_cut": "frames were cut (--snap) before libpcap looked at them",
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


def check(args: argparse.Namespace) -> None:
    """Raise UsageError for what a command line can't mean; `CaptureRequest` refuses the rest."""
    if str(args.write) == "-" and sys.stdout.isatty():
        raise UsageError("a terminal can't show pcapng: pipe it, like -w - | tshark -r -, or give a file")
    if str(args.write) == "-" and str(args.json) == "-":
        raise UsageError("stdout can't take frames and counts: give --json a file")
    for option, name in OF_A_PROBE.items():
        if args.read and getattr(args, name) is not None:
            raise UsageError(f"{option} is for a probe, and --read takes a recording: leave one of them out")


def request_of(args: argparse.Namespace) -> CaptureRequest:
    """Return what is asked for."""
    settings = CaptureSettings(
        channels=tuple(args.channels or (0,)),
        snap_length=SNAP_MOST if args.snap is None else args.snap,
        keep=Keep[args.keep.upper()] if args.keep else None,
        sampling=Sampling.of(args.sample) if args.sample else Sampling(),
        with_damaged=bool(args.damaged),
    )
    return CaptureRequest(
        args.write,
        args.headers,
        args.blocks,
        settings,
        filter=args.filter,
        host_filter=bool(args.host_filter),
        trigger=args.trigger,
        before_ns=None if args.before is None else round(args.before),
        after_ns=None if args.after is None else round(args.after),
        host_trigger=bool(args.host_trigger),
        count=args.count,
        duration_s=None if args.duration is None else args.duration / 1e9,
        tai_utc_s=_seconds(args.utc),
        transport=Transport(args.via, args.udp_port or 0),
    )


def _seconds(text: str | None) -> int | Literal["probe"] | None:
    try:
        return text if text is None or text == "probe" else int(text)  # type: ignore[return-value]
    except ValueError:
        raise UsageError(f"'{text}' is not a whole number of seconds: give --utc 37") from None


def run(args: argparse.Namespace) -> None:
    """Capture until what was asked for has come, or until Ctrl-C."""
    check(args)
    request = request_of(args)

    def remark(line: str) -> None:
        print(line, file=sys.stderr)

    with _progress() as show:
        if args.read:
            found = capture_recording(args.read, request, show, remark)
        else:
            with Probe(args.probe, args.map, args.steal) as probe:
                found = probe.capture(request, show, remark)
    if args.json:
        write_text(args.json, json.dumps(found.counts, indent=2) + "\n")
    said = _report(args, found.counts, found.header_files)
    if found.signal and not (args.count is None and args.duration is None):  # Else nothing but a signal ends it.
        raise interrupt.Interrupted(found.signal, said)
    print(said, file=sys.stderr)


@contextmanager
def _progress() -> Iterator[Callable[[int], None] | None]:
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


def _report(args: argparse.Namespace, counts: dict[str, Any], header_files: Sequence[Path]) -> str:
    """Return what was written, and all that isn't as sent, a line each."""
    files = (args.write, *header_files, args.blocks)
    names = ["stdout" if str(name) == "-" else str(name) for name in files if name]
    before_ns = BEFORE_NS if args.before is None else round(args.before)
    lines = [f"{counts['frames']:,} frames, {counts['octets']:,} octets, in {', '.join(names)}"]
    if args.trigger and counts["trigger_stamp"] is None:
        lines.append("no frame matched the trigger: nothing was kept")
    elif args.trigger and any(counts.get("overwritten", {}).values()) and counts["before_ns"] < before_ns:
        reach_ms, asked_ms = counts["before_ns"] / 1e6, before_ns / 1e6
        lines.append(
            f"the probe's ring reached back {reach_ms:,.3f} ms before the trigger, not {asked_ms:,g}: keep less (--filter, --snap)"
        )
    for name, words in REMARKS.items():
        if counts.get(name):
            lines.append(f"{counts[name]:,} {words}")
    dropped = counts.get("dropped_by_probe", counts["dropped"])
    if sum(dropped.values()) == counts["gap_frames"]:
        dropped = {}  # All of them are reported already.
    for channel, count in dropped.items():
        if count:
            lines.append(f"{count:,} frames dropped by the probe on channel {channel}, for want of room: keep less")
    return "\n".join(lines)
