# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A capture as lines of text and as pcap: held against tcpdump, tshark, capinfos and scapy, with hostile frames."""

import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scapy.utils import RawPcapReader

from liteprobe.cores.formats import UnifiedFlag
from liteprobe.host.base.errors import UsageError
from liteprobe.host.capture.request import CaptureRequest
from liteprobe.host.capture.run import capture_recording
from liteprobe.host.capture.write import lines
from liteprobe.sim.drivers.capture.blocks import Captured, blocks_of
from liteprobe.sim.drivers.filter import tcpdump
from liteprobe.sim.drivers.frames import stacks
from liteprobe.sim.drivers.tools.figures import Figure, Size, note, row

Run = Callable[..., tuple[int, str, str]]
SEED, FIRST = 20261127, 1_800_000_000_123_456_789
DAMAGE = (UnifiedFlag.FCS_ERROR, UnifiedFlag.SYMBOL_ERROR, UnifiedFlag.RUNT, UnifiedFlag.GIANT)
ENDS = re.compile(r"\b(IP6?) (\S+) > (\S+?):")  # As tcpdump has them.
OF_IPV6, PORTS = re.compile(r": (HBH|DSTOPT|AH|RT6|frag|srcrt|\[\|)"), re.compile(r"\.\d+\b")
LINE = re.compile(r"(\d\d:\d\d:\d\d\.\d{9}) port(\d) (.*), length (\d+)\n")
GAP = re.compile(r"\d\d:\d\d:\d\d\.\d{9} ([\d,]+) frames dropped by the probe")
UTC = {**os.environ, "TZ": "UTC"}


def hostile(draw: random.Random, count: int) -> list[Captured]:
    """Return frames of all stacks, cut, broken, runt, jumbo and of garbage, of two ports, some damaged; and gaps."""
    stamp, found = FIRST + draw.randrange(10**15), []
    whole, broken = stacks.stacks(draw.randrange(1, 4)), iter(stacks.fuzz(count, draw.randrange(1, 4)))
    for _ in range(count):
        stamp += draw.choice([672, 1000, 10**6, 10**9])
        port = draw.randrange(2)
        if draw.random() < 0.02:
            found.append(Captured(stamp, missing=draw.randrange(1, 10**6), port=port))
            continue
        frame = draw.choice(whole)
        octets = draw.choice(
            [frame, frame, next(broken), frame[: draw.randrange(14, len(frame) + 1)], draw.randbytes(draw.randrange(14, 200)),
             frame + bytes(draw.randrange(9000 - len(frame)))]
        )  # fmt: skip
        flags = draw.choice(DAMAGE) if draw.random() < 0.05 else UnifiedFlag.NONE
        found.append(Captured(stamp, octets, port, flags=flags, with_header=draw.random() > 0.02))
    return found


def printed(frames: list[Captured], folder: Path) -> list[str]:
    """Return the lines of a recording of frames; beside them stand the same frames as ``f.pcap`` and ``f.pcapng``."""
    blocks_of(frames).tofile(folder / "f.blocks")
    for name in ("f.pcap", "f.pcapng"):
        capture_recording(folder / "f.blocks", CaptureRequest(folder / name))
    capture_recording(folder / "f.blocks", CaptureRequest(lines=folder / "f.txt"))
    return (folder / "f.txt").read_text().splitlines(keepends=True)


def said_by(*command: object) -> list[str]:
    """Return the lines that a program prints."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True, env=UTC, errors="replace")
    return done.stdout.splitlines()


@pytest.mark.skipif(not tcpdump.is_there(), reason="tcpdump is missing: apt-get install tcpdump")
@row("people", "capture", is_test=True)
def test_lines_and_pcap(size: Size, tmp_path: Path) -> Iterator[Figure]:
    """Captures drawn from a seed: each line against tcpdump and tshark, each file against capinfos and scapy."""
    draw, found = random.Random(SEED), Counter[str]()
    for _ in range(size.of(1, 60, 600)):
        made = hostile(draw, size.of(120, 400))
        shown, frames = printed(made, tmp_path), [one for one in made if not one.missing]
        gaps = [int(one[1].replace(",", "")) for line in shown if (one := GAP.match(line))]
        found["gaps"] += len(gaps)
        found["gaps_wrong"] += gaps != [one.missing for one in made if one.missing]
        of_frames = [one for line in shown if (one := LINE.fullmatch(line))]
        found["frames"] += len(frames)
        found["lines_wrong"] += abs(len(of_frames) - len(frames)) + len(shown) - len(of_frames) - len(gaps)
        epochs = said_by(
            "tshark", "-n", "-r", tmp_path / "f.pcap", "-T", "fields", "-e", "frame.time", "-e", "frame.len"
        )
        by_tcpdump = said_by("tcpdump", "-nnq", "--time-stamp-precision=nano", "-r", tmp_path / "f.pcap")
        by_tcpdump = [line for line in by_tcpdump if re.match(r"\d\d:\d\d:\d\d\.", line)]
        for ours, epoch, theirs, one in zip(of_frames, epochs, by_tcpdump, frames, strict=True):
            time, port, words, length = ours.groups()
            found["times_wrong"] += time not in epoch or not theirs.startswith(time)
            found["ports_wrong"] += int(port) != one.port
            found["lengths_wrong"] += not epoch.endswith(f"\t{length}")
            ends = ENDS.search(theirs)
            if not (ends and one.with_header and ENDS.search(words)):
                continue
            found["ends"] += 1
            said, right = (" ".join(match.groups()) for match in (ENDS.search(words), ends) if match)
            if ends[1] == "IP6" and OF_IPV6.search(theirs):
                said = PORTS.sub("", said)  # tcpdump has them behind the extension headers.
                found["without_ports"] += 1
            if said != right:
                found["ends_wrong"] += 1
                note(f"{ours[0]}{theirs}\n{one.octets[:200].hex()}")
        (pcap,) = [line for line in said_by("capinfos", "-Mc", tmp_path / "f.pcap") if "Number of packets" in line]
        (pcapng,) = [line for line in said_by("capinfos", "-Mc", tmp_path / "f.pcapng") if "Number of packets" in line]
        found["counts_wrong"] += {line.split()[-1] for line in (pcap, pcapng)} != {str(len(frames))}
        with RawPcapReader(str(tmp_path / "f.pcap")) as reader:
            read = [(meta.sec * 10**9 + meta.usec, octets, meta.wirelen) for octets, meta in reader]
        found["octets_wrong"] += read != [(one.stamp, one.octets, len(one.octets)) for one in frames]
    note(
        f"  excluded: {found['frames'] - found['ends']} frames whose ends tcpdump doesn't show as IP a > b, or that have no header;"
    )
    note(f"  {found['without_ports']} of IPv6 with extension headers: compared without ports")
    yield Figure("frames", found["frames"], "frames", size.of(100, 20_000), is_least=True)
    yield Figure("gaps", found["gaps"], "gaps", 1, is_least=True)
    yield Figure("ends_that_tcpdump_shows_too", 100 * found["ends"] / found["frames"], "%", 30, is_least=True)
    for name in ("lines", "gaps", "times", "ports", "lengths", "ends", "counts", "octets"):
        yield Figure(f"{name}_wrong", found[f"{name}_wrong"], "times", 0)


def test_words_of_a_line(tmp_path: Path) -> None:
    of = bytes.fromhex
    macs = of("02000000000202000000000" + "1")
    syn = of("0800450000280001400040060000c0000201c00002020050303900000000000000005012200000000000")
    frames = [
        macs + of("81006064") + syn + bytes(2),
        macs + of("08060001080006040001020000000001c0000201000000000000c0000202") + bytes(18),
        macs + of("88cc") + bytes(46),
        macs + of("0026aaaa03") + bytes(43),
        macs + of("08004500001c00010000400100007f0000017f0000020800000000000000") + bytes(18),
        macs + of("0800450000300000201f401100007f0000017f000002") + bytes(28),
    ]
    made = [Captured(1_000_000_000 * at, frame, at % 2, with_header=True) for at, frame in enumerate(frames, 3600)]
    made.append(Captured(5 * 10**12, frames[0], flags=UnifiedFlag.FCS_ERROR))
    assert [line.strip() for line in printed(made, tmp_path)] == [
        "01:00:00.000000000 port0 vlan 100 IP 192.0.2.1.80 > 192.0.2.2.12345: TCP [S.], length 60",
        "01:00:01.000000000 port1 ARP 192.0.2.1 > 192.0.2.2: request, length 60",
        "01:00:02.000000000 port0 02:00:00:00:00:01 > 02:00:00:00:00:02: LLDP, length 60",
        "01:00:03.000000000 port1 02:00:00:00:00:01 > 02:00:00:00:00:02: LLC, length 60",
        "01:00:04.000000000 port0 IP 127.0.0.1 > 127.0.0.2: ICMP echo, length 60",
        "01:00:05.000000000 port1 IP 127.0.0.1 > 127.0.0.2: UDP, fragment from octet 248, length 62",
        "01:23:20.000000000 port0 02:00:00:00:00:01 > 02:00:00:00:00:02: type 0x8100, no header, length 60",
    ]


def test_headers_that_are_known_are_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of many flows are those of each alone, however few are remembered."""
    made = hostile(random.Random(SEED), 50)
    whole = printed(made, tmp_path)
    monkeypatch.setattr(lines, "KNOWN_MOST", 3)
    assert printed(made, tmp_path) == whole


def capture(*arguments: object, head: int | None = None) -> tuple[int, str, str]:
    """Run the command in a process of its own, of whose stdout ``head`` octets are read; return code, stdout and stderr."""
    command = [sys.executable, "-m", "liteprobe.host.cli", "capture", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout and running.stderr
        out = running.stdout.read() if head is None else running.stdout.read(head)
        running.stdout.close()
        said = running.stderr.read()
    return running.returncode, out, said


def test_a_capture_without_a_file_prints_lines_and_a_summary(tmp_path: Path) -> None:
    frames = [Captured(FIRST + at, frame, with_header=True) for at, frame in enumerate(stacks.stacks())]
    frames.insert(7, Captured(FIRST + 6, missing=5))
    blocks_of(frames).tofile(tmp_path / "f.blocks")
    code, out, said = capture("--read", tmp_path / "f.blocks")
    assert code == 0 and len(out.splitlines()) == len(frames)
    assert (
        said.splitlines()[0].startswith(f"{len(frames) - 1} frames, ") and "5 frames dropped for want of space" in said
    )
    code, out, said = capture("--read", tmp_path / "f.blocks", "--port", "0", "--filter", "tcp", "--count", 3)
    assert (code, out.count(": TCP [")) == (0, 3) and "\n3 frames, " in said
    blocks_of(frames[:7]).tofile(tmp_path / "f.blocks")
    assert capture("--read", tmp_path / "f.blocks")[2].splitlines()[1:] == ["0 frames dropped by the probe"]


def test_a_reader_that_goes_ends_it_with_the_summary_alone(tmp_path: Path) -> None:
    frames = [Captured(FIRST + at, bytes(60), with_header=True) for at in range(20_000)]
    blocks_of(frames).tofile(tmp_path / "f.blocks")
    code, _, said = capture("--read", tmp_path / "f.blocks", head=100)
    assert code == 1 and len(said.splitlines()) == 2 and re.match(r"[\d,]+ frames, [\d,]+ octets\n", said)


def test_names_say_what_is_written(tmp_path: Path, run: Run) -> None:
    for name in ("f.cap", "f", "f.pcapng.gz", "f.parquet", "f.txt"):
        with pytest.raises(UsageError, match=r"give FILE.pcapng, FILE.pcap .*, or - for stdout"):
            CaptureRequest(tmp_path / name)
    for name in ("f.pcap", "f.PCAPNG", "-", "/dev/null"):
        assert CaptureRequest(name).write == name
    code, _, said = run("capture", "--read", str(tmp_path), "-w", str(tmp_path / "f.cap"))
    assert code == 2 and "f.cap says by its ending neither pcapng nor pcap" in said
    code, _, said = run("capture", "--read", str(tmp_path), "--json")
    assert code == 2 and "give --json a file" in said
