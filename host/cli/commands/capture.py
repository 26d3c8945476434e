# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Prints frames, or captures them into pcapng or pcap, unified headers into Parquet, or blocks into a file as they come."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

from liteprobe.host.base.defaults import FIGURES_OF_CAPTURES, KEEPS, TRANSPORTS
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.base.output import OutputError, outputs, write_text
from liteprobe.host.base.text import now_and_then, say
from liteprobe.host.cli.arguments import add, add_data, add_expect, add_probe, every_s, is_plain, open_probe
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import duration_ns, output, output_or_stdout, span_ns, whole, wholes

with lazily():
    from liteprobe.host.capture import request as requests
    from liteprobe.host.capture import run as runs
    from liteprobe.host.capture.write import output as output_of
    from liteprobe.host.cli import results, tables, verdicts
    from liteprobe.host.report import files

HELP = "print frames, a line each; or capture them into pcapng or pcap, and their headers into Parquet"
EXAMPLES = """
liteprobe capture --read office.blocks -w office.pcapng --filter 'udp port 53'
liteprobe capture --probe 'sim://loopback?preset=monitor&play=east.pcap,west.pcap' --count 100 -w seen.pcapng
liteprobe capture --probe 192.168.1.50 --filter 'tcp port 443' --snap 96 --duration 10s -w https.pcapng
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    _add_files(parser)
    _add_choice(parser)
    _add_reduction(parser)
    add(parser, "-r --read FILE", Path, "take the blocks of a recording (--blocks); - is stdin")
    add_probe(parser)
    add_expect(parser, FIGURES_OF_CAPTURES)


def _add_files(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("files")
    add(
        group,
        "-w --write FILE.pcapng",
        output_or_stdout,
        "write frames (FILE.pcap: as pcap); - is stdout, for wireshark -k -i -",
    )
    add(group, "--headers FILE.parquet", output, "write unified headers")
    add(group, "--blocks FILE", output, "write blocks as they come, to be read by --read")
    add_data(group, "all counts", "capture")
    add(group, "--utc S", str, "write UTC, S seconds less than TAI (what the probe knows)", nargs="?", const="probe")


def _add_choice(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which frames")
    add(group, "--filter EXPR", str, "like tcpdump's: 'udp port 53 and net 10.0.0.0/8' (default: all frames)")
    add(group, "--port N[,N...]", wholes, "that come to these ports of the probe (default: to all)")
    add(group, "--host-filter", bool, "by libpcap on this host, exactly as tcpdump")
    add(group, "--sample N", str, "every Nth frame (1, 2, 4, 8, 16), or hash:N[:SEED] (default: all)")
    add(group, "--damaged", bool, "frames with FCS or symbol errors, runts and giants, too")
    add(group, "--count N", whole, "end after N frames (default: until Ctrl-C)")
    add(
        group,
        "--duration TIME",
        duration_ns,
        "end after so long, like 10s; a number alone is seconds (default: until Ctrl-C)",
    )
    add(group, "--trigger EXPR", str, "keep nothing until a frame matches")
    add(group, "--host-trigger", bool, "look for it on this host: all frames come here")
    add(group, "--before TIME", span_ns, "with --trigger: so much before it (default: 10ms)")
    add(group, "--after TIME", span_ns, "with --trigger: so much after it (default: to the end)")


def _add_reduction(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what the probe hands over")
    add(group, "--snap N", whole, "octets of a frame at the most (default: all)")
    add(group, "--keep", str, "of a frame (default: what the files need)", choices=KEEPS)
    add(group, "--channels N[,N...]", wholes, "flows go to these, by hash (default: 0)")
    add(
        group,
        "--via",
        str,
        "how blocks come here (default: udp over Etherbone, dma over PCIe where its devices can be opened, else bus)",
        choices=TRANSPORTS,
    )
    add(group, "--udp-port PORT", whole, "of this host, of channel 0; 7 more follow (default: free ones)")


#: What a recording can't be asked for any more: option, and its name among the arguments.
OF_A_PROBE = {
    "--keep": "keep", "--sample": "sample", "--snap": "snap", "--channels": "channels", "--duration": "duration",
    "--via": "via", "--udp-port": "udp_port", "--damaged": "damaged", "--host-trigger": "host_trigger",
}  # fmt: skip
#: What is reported to a person, if it isn't 0.
REMARKS = {
    "filtered": "frames taken out by the filter on this host",
    "filter_cut": "frames were cut (--snap) before libpcap looked at them",
    "gap_frames": "frames dropped for want of space, each gap marked at its place",
    "without_header": "frames came without a header, so lines have no addresses of IP, Parquet no rows of them: keep less",
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
    if (str(args.write) == "-" or prints_lines(args)) and is_plain(args):
        raise UsageError("stdout can't take frames and counts: give --json a file, or -w FILE.pcapng")
    for option, name in OF_A_PROBE.items():
        if args.read and all(getattr(args, name) is not nothing for nothing in (None, False)):
            raise UsageError(f"{option} is for a probe, and --read takes a recording: leave one of them out")


def prints_lines(args: argparse.Namespace) -> bool:
    """Return whether frames are printed, a line each: where no file takes them."""
    return not (args.write or args.headers or args.blocks)


def request_of(args: argparse.Namespace) -> requests.CaptureRequest:
    """Return what is asked for."""
    settings = requests.CaptureSettings(
        channels=tuple(args.channels or (0,)),
        snap_length=requests.SNAP_MOST if args.snap is None else args.snap,
        keep=requests.Keep[args.keep.upper()] if args.keep else None,
        sampling=requests.Sampling.of(args.sample) if args.sample else requests.Sampling(),
        with_damaged=args.damaged,
    )
    return requests.CaptureRequest(
        args.write,
        args.headers,
        args.blocks,
        settings,
        None if args.port is None else tuple(args.port),
        filter=args.filter,
        host_filter=args.host_filter,
        trigger=args.trigger,
        before_ns=None if args.before is None else round(args.before),
        after_ns=None if args.after is None else round(args.after),
        host_trigger=args.host_trigger,
        count=args.count,
        duration_s=None if args.duration is None else args.duration / 1e9,
        tai_utc_s=_seconds(args.utc),
        transport=requests.Transport(args.via, args.udp_port or 0),
        lines=Path("-") if prints_lines(args) else None,
    )


def looked(args: argparse.Namespace, show: Callable[[int], None] | None) -> Callable[[int], None] | None:
    """Return what is given the number of frames that have come."""
    found: Callable[[int], None] | None = show
    if args.jsonl:  # Else nothing that takes long is loaded.
        found = results.looks_of(args).beside(show, lambda frames: {"frames": frames})
    return found


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
        say(line, stream=sys.stderr)

    # Where nobody looks, what draws isn't loaded: it takes longer than a million frames.
    counted = nullcontext(None if prints_lines(args) else _counted(every_s(args)))
    with tables.frame_counter() if sys.stderr.isatty() and not prints_lines(args) else counted as show:
        found, failed = captured(args, request, looked(args, show), remark)
    said = "\n".join(report(args, found.counts, found.header_files))
    ended: BaseException | None = failed
    is_meant = args.count is None and args.duration is None and found.signal == signal.SIGINT  # Nothing else ends it.
    if found.signal and not is_meant:
        ended = Interrupted(found.signal, "\n".join([said, *found.failed]))
    elif not (
        failed and not (args.headers or args.blocks or args.json or args.jsonl or args.csv) and str(args.write) == "-"
    ):
        remark(said)  # Unless the reader of stdout has gone, and nothing else is left.
    if prints_lines(args) and failed and str(failed).startswith(output_of.GONE):
        ended = BrokenPipeError()  # As head goes: there is nothing to say.
    verdict = verdicts.judged(args, found)
    content = found.counts if verdict is None else {**found.counts, "expect": verdict.document()}
    with outputs(ended) as out:
        out.write(args.json, lambda: write_text(args.json, json.dumps(content, indent=2) + "\n"))
        if args.jsonl:
            results.looks_of(args).end(out, content)
        out.write(args.csv, lambda: write_text(args.csv, files.table_as_csv(found.table())))
        if verdict is not None:
            verdicts.publish(args, verdict, out)
    if ended:
        raise ended
    if verdict is not None:
        verdict.require()


def _counted(step_s: float) -> Callable[[int], None]:
    """Return what is given how many frames have come, and says it on stderr now and then."""
    began_s = time.monotonic()

    def line(before: tuple[float, int], look: tuple[float, int]) -> str:
        (then_s, old), (now_s, new) = before, look
        return f"{now_s - began_s:,.1f} s   {new:,} frames, {(new - old) / (now_s - then_s):,.0f}/s"

    show = now_and_then(line, step_s, sys.stderr)
    show((began_s, 0))
    shown = 0

    def counted(count: int) -> None:
        nonlocal shown
        if count > shown:  # Where nothing comes, nothing is said.
            shown = count
            show((time.monotonic(), count))

    return counted


def captured(
    args: argparse.Namespace, request: requests.CaptureRequest, show: runs.Progress | None, remark: runs.Remark | None
) -> tuple[requests.CaptureResult, OutputError | None]:
    """Return what came of a capture, and the error of files that could not be written."""
    try:
        if args.read:
            return runs.capture_recording(args.read, request, show, remark), None
        with open_probe(args) as probe:
            return probe.capture(request, show, remark), None
    except OutputError as end:
        return end.results[0], end


def report(args: argparse.Namespace, counts: dict[str, Any], header_files: Sequence[Path] = ()) -> list[str]:
    """Return what was written, and then all that isn't as sent, a line each."""
    written = (args.write, *header_files, args.blocks)
    names = ["stdout" if str(name) == "-" else str(name) for name in written if name]
    names = [name for name in names if name not in counts["unwritten"]]  # Errors tell of these.
    before_ns = requests.BEFORE_NS if args.before is None else round(args.before)
    lines = [f"{counts['frames']:,} frames, {counts['octets']:,} octets{', in ' * bool(names)}{', '.join(names)}"]
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
    if prints_lines(args) and not any(dropped.values()) and not counts["gap_frames"]:
        lines.append("0 frames dropped by the probe")
    if sum(dropped.values()) == counts["gap_frames"]:
        dropped = {}  # All of them are reported already.
    for channel, count in dropped.items():
        if count:
            lines.append(f"{count:,} frames dropped by the probe on channel {channel}, for want of space: keep less")
    return lines
