# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Rows of the bench ``monitor``: what this host takes, by what the frames are, when nobody waits, and beside others."""

import os
from collections.abc import Iterator
from pathlib import Path

from liteprobe.sim.drivers.system import host_speed
from liteprobe.sim.drivers.tools.figures import ROOT, Figure, note, row

LINE_RATE = 1e9 / 672  # Frames of 60 octets in a second.
MIXES = ("flows", "scan", "random_ipv4", "random_ipv6")
RECORD_WORDS = {"pcapng": 4 + 15, "parquet": 32}
GOALS = {"pcapng": LINE_RATE, "parquet": 1e6}
SHARES = (0.25, 0.5, 0.67, 0.8, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0)
BEYOND = 8.0
FOLDER = ROOT / "build" / "bench" / "host"


def load(row: str) -> None:
    """Say how busy the machine is: rates depend on it, processor time hardly does."""
    note(f"{row}: load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


@row("monitor")
def test_mixes(is_full: bool) -> Iterator[Figure]:
    """A recording to Parquet and to pcapng, by what the frames are: processor time of a frame, rate, octets of the file."""
    frames, headers = host_speed.recordings(FOLDER, 3_000_000 if is_full else 1_500_000)
    for mix in MIXES:
        for ending, recording in (("parquet", headers), ("pcapng", frames)):
            load(f"{mix} to {ending}")
            blocks = recording if mix == "flows" else host_speed.of_mix(recording, mix)
            path = FOLDER / f"{mix}.{ending}"
            speed = host_speed.best(lambda blocks=blocks, path=path: host_speed.from_file(blocks, path))  # type: ignore[misc]
            yield Figure(f"host_{ending}_{mix}_processor", 1e6 * speed.cores(1), "us/frame", 2e6 / LINE_RATE)
            yield Figure(f"host_{ending}_{mix}_from_file", speed.rate, "frames/s", LINE_RATE, is_least=True)
            yield Figure(f"host_{ending}_{mix}_octets", path.stat().st_size / speed.packets, "octets/frame", 128)


@row("monitor")
def test_without_waiting(is_full: bool) -> Iterator[Figure]:
    """Blocks by UDP from a process that doesn't wait and takes one of the cores: the rate that comes whole; losses beyond."""
    frames, headers = host_speed.recordings(FOLDER, 6_000_000 if is_full else 1_500_000)
    for ending, blocks in (("pcapng", frames), ("parquet", headers)):

        def measure(rate: float, ending: str = ending, blocks: Path = blocks) -> host_speed.Unpaced:
            load(f"{ending} at {rate:.0f} frames/s")
            return host_speed.at_rate(blocks, FOLDER / f"unpaced.{ending}", rate, RECORD_WORDS[ending])

        runs, best = host_speed.greatest(measure, [share * LINE_RATE for share in SHARES])
        beyond = measure(BEYOND * LINE_RATE)
        for each in [*runs, beyond]:
            note(f"{ending}: {each}")
        yield Figure(f"unpaced_{ending}_whole", best.rate if best else 0, "frames/s", GOALS[ending], is_least=True)
        yield Figure(f"unpaced_{ending}_whole_cores", best.cores if best else 0, "cores", 2)
        yield Figure(f"unpaced_{ending}_beyond_sent", beyond.rate, "frames/s", 0, is_least=True)
        yield Figure(f"unpaced_{ending}_beyond_written", beyond.written / beyond.frames * 100, "%", 0, is_least=True)
        yield Figure(f"unpaced_{ending}_beyond_lost", beyond.never_came, "blocks", 1, is_least=True)
        yield Figure(f"unpaced_{ending}_miscounted", sum(each.off for each in [*runs, beyond]), "blocks+frames", 0)


@row("monitor")
def test_others(is_full: bool) -> Iterator[Figure]:
    """The same 60-octet frames written to a file by liteprobe, tcpdump and dumpcap: the whole commands, from file and pipe."""
    frames, _ = host_speed.recordings(FOLDER, 6_000_000 if is_full else 3_000_000)
    pcapng = FOLDER / "frames.pcapng"
    count = host_speed.from_file(frames, pcapng).packets
    for command in host_speed.commands(frames, pcapng, FOLDER):
        if not host_speed.is_there(command):
            note(f"SKIPPED {command.name}: {command.words[0]} is not installed (Debian has it)")
            continue
        load(command.name)
        found = host_speed.best_written(lambda command=command: host_speed.written(command))  # type: ignore[misc]
        yield Figure(f"{command.name}_frames", found.frames, "frames", count, is_least=True)
        yield Figure(f"{command.name}_rate", found.frames / found.seconds, "frames/s", 0, is_least=True)
        yield Figure(f"{command.name}_processor", 1e6 * found.processor_s / count, "us/frame", 0, is_least=True)
        yield Figure(f"{command.name}_octets", found.octets / count, "octets/frame", 128)
