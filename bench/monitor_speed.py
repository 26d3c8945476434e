# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Rows of ``monitor`` and ``truth``: what this host takes, by what the frames are, when nobody waits, and beside others."""

import os
from collections.abc import Iterator
from pathlib import Path

from liteprobe.sim.drivers.system import host_speed
from liteprobe.sim.drivers.tools.figures import ROOT, Figure, Size, note, row

LINE_RATE = 1e9 / 672  # Frames of 60 octets in a second.
TWO_LINES = 2 * LINE_RATE
MIXES = ("flows", "scan", "random_ipv4", "random_ipv6", "tags", "kinds")
TRIES = 3
RECORD_WORDS = {"pcapng": 4 + 15, "parquet": 32}
GOALS = {"pcapng": LINE_RATE, "parquet": 1e6}
SHARES = (0.25, 0.5, 0.67, 0.8, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0)
BEYOND = 8.0
FOLDER = ROOT / "build" / "bench" / "host"


def load(row: str) -> None:
    """Say how busy the machine is: rates depend on it, processor time hardly does."""
    note(f"{row}: load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


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


@row("truth")
def test_capture(size: Size) -> Iterator[Figure]:
    """Two lines back to back, 60-octet frames, to pcapng and Parquet: by file beside tcpdump and dumpcap, and by UDP.

    Programs take turns, and the least of their processor time counts. By UDP a rate that comes whole once of some tries is
    one that this host can take: others use it, too.
    """
    count = size.of(100_000, 3_000_000, 6_000_000)
    for mix in MIXES:
        frames, headers = host_speed.of_mix(FOLDER, mix, count)
        yield from beside_others(mix, frames)
        speeds = [host_speed.from_file(headers, FOLDER / "mix.parquet") for _ in range(host_speed.RUNS)]
        yield Figure(
            f"parquet_{mix}_processor", 1e6 * min(each.cores(1) for each in speeds), "us/frame", 2e6 / TWO_LINES
        )
        yield Figure(f"parquet_{mix}_by_file", max(each.rate for each in speeds), "frames/s", TWO_LINES, is_least=True)
        yield Figure(
            f"parquet_{mix}_octets", (FOLDER / "mix.parquet").stat().st_size / speeds[0].packets, "octets/frame", 128
        )
        yield Figure(f"parquet_{mix}_off", host_speed.off_parquet(FOLDER / "mix.parquet", headers), "rows", 0)
        for ending, recording, off in (
            ("pcapng", frames, host_speed.off_pcapng),
            ("parquet", headers, host_speed.off_parquet),
        ):
            path, runs = FOLDER / f"udp.{ending}", list[host_speed.Unpaced]()
            while len(runs) < TRIES and (not runs or runs[-1].never_came):
                load(f"{mix} to {ending} by UDP")
                runs.append(host_speed.at_rate(recording, path, TWO_LINES, RECORD_WORDS[ending]))
                note(f"{mix} to {ending} by UDP: {runs[-1]}")
            yield Figure(f"{ending}_{mix}_by_udp_lost", runs[-1].never_came, "blocks", 0)
            yield Figure(f"{ending}_{mix}_by_udp_rate", runs[-1].rate, "frames/s", 0.99 * TWO_LINES, is_least=True)
            yield Figure(f"{ending}_{mix}_by_udp_cores", runs[-1].cores, "cores", 2)
            yield Figure(f"{ending}_{mix}_by_udp_miscounted", sum(each.off for each in runs), "blocks+frames", 0)
            if not runs[-1].never_came:
                yield Figure(f"{ending}_{mix}_by_udp_off", off(path, recording), "frames", 0)


def beside_others(mix: str, frames: Path) -> Iterator[Figure]:
    """Write the frames of a recording by liteprobe, tcpdump and dumpcap, the whole commands in turns, from file and pipe."""
    pcapng = FOLDER / "mix.pcapng"
    speed = host_speed.from_file(frames, pcapng)
    off, (packets, octets) = host_speed.off_pcapng(pcapng, frames), host_speed.capinfos(pcapng)
    yield Figure(
        f"pcapng_{mix}_off", off + abs(packets - speed.packets) + abs(octets - 60 * speed.packets), "packets", 0
    )
    yield Figure(f"pcapng_{mix}_by_file", speed.rate, "frames/s", TWO_LINES, is_least=True)
    commands = [each for each in host_speed.commands(frames, pcapng, FOLDER) if host_speed.is_there(each)]
    if mix != MIXES[0]:  # What the frames are is nothing to these.
        commands = [each for each in commands if not each.by_pipe]
    note(f"{mix}: {', '.join(each.name for each in commands)}; a program that isn't named is not installed")
    load(mix)
    found: dict[str, list[host_speed.Written]] = {}
    for number in range(host_speed.RUNS):
        for command in commands:
            if number and command.words[0] == "dumpcap":  # Once: it takes 20 times as long.
                continue
            found.setdefault(command.name, []).append(host_speed.written(command))
    least = {name: 1e6 * min(run.processor_s for run in runs) / speed.packets for name, runs in found.items()}
    for name, runs in found.items():
        yield Figure(f"{mix}_{name}_frames", min(run.frames for run in runs), "frames", speed.packets, is_least=True)
        yield Figure(f"{mix}_{name}_processor", least[name], "us/frame", 0, is_least=True)
        yield Figure(f"{mix}_{name}_octets", runs[0].octets / speed.packets, "octets/frame", 128)
    if "tcpdump_from_file" in least:
        ratio = least["liteprobe_from_file"] / least["tcpdump_from_file"]
        yield Figure(f"{mix}_times_tcpdump", ratio, "times", 1.5)
