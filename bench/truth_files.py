# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Captures of others, and those that a seed makes, as a reader and programs have them that know nothing of LiteProbe's."""

import os
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from liteprobe.sim.drivers.replay.capture_truth import Broken, Differs, hostile_file, judged, steps_of, unpacked
from liteprobe.sim.drivers.tools.figures import Figure, Size, note, row

CAPTURES = "LITEPROBE_CAPTURES"
#: Begin what a replay takes; other files of a folder are none.
ENDINGS = (".pcap", ".pcapng", ".cap", ".ntar", ".trace", ".dmp", ".gz", ".zst", ".xz", ".lz4", ".bz2")
REPORT = ""  # Of blocks without a packet, which tshark shows as one.
FIELDS = ("frame.encap_type", "frame.cap_len", "frame.len")  # Times of most resolutions tshark 4.0 shows with an error.


@row("truth", "captures", is_long=True)
def test_captures_of_others_are_replayed_as_a_reader_has_them(size: Size) -> Iterator[Figure]:
    """All files of the folder LITEPROBE_CAPTURES: each frame, tick and count, or refused for what is in it."""
    folder = os.environ.get(CAPTURES, "")
    if not folder:
        note(f"no captures: give {CAPTURES}=FOLDER, like a clone of the-tcpdump-group/tcpdump")
        return
    kinds: Counter[str] = Counter()
    differ = 0
    paths = [one for one in sorted(Path(folder).rglob("*")) if one.is_file()]
    chosen = [one for one in paths if one.name.lower().endswith(ENDINGS)]
    for path in chosen:
        try:
            kinds[judged(path)] += 1
        except Differs as error:
            note(f"{path}: {error}")
            differ += 1
    note(f"{len(chosen)} captures; {len(paths) - len(chosen)} files of other names are left out")
    note(*(f"{count:6} {kind}" for kind, count in kinds.most_common()))
    yield Figure("captures_differ", differ, "files", 0)


@row("truth", "tshark", is_long=True)
def test_tshark_has_the_packets_that_the_reader_of_these_rows_has(size: Size, tmp_path: Path) -> Iterator[Figure]:
    """Of made files that are whole: how many packets, and how many octets each has."""
    seen: Counter[str] = Counter()
    differ = 0
    for seed in range(size.of(10, 400)):
        content = hostile_file(random.Random(seed))
        try:
            steps = list(steps_of(unpacked(content)))
        except (Broken, ValueError, EOFError, OSError, RuntimeError):
            seen["broken, or packed and broken: left out"] += 1
            continue
        path = tmp_path / "frames"
        path.write_bytes(unpacked(content))
        command = ("tshark", "-n", "-r", str(path), "-T", "fields", *(f"-e{field}" for field in FIELDS))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            seen[f"refused by tshark: {done.stderr.strip().splitlines()[-1][-60:]}"] += 1
            continue
        found = [line.split("\t") for line in done.stdout.splitlines()]
        wanted = [(len(one[1]), one[2]) for one in steps]
        got = [(min(int(kept), int(length)), int(length)) for kind, kept, length in found if kind != REPORT]
        alike = wanted == got
        seen["same" if alike else "differs"] += 1
        if not alike:
            note(f"seed {seed}: {[pair for pair in zip(wanted, got, strict=False) if pair[0] != pair[1]][:3]}")
        differ += not alike
    note(*(f"{count:6} {kind}" for kind, count in seen.most_common()))
    yield Figure("tshark_differs", differ, "files", 0)
