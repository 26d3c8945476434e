# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The same frames written to a file by this host's capture, by tcpdump and by dumpcap, each as a person would start it.

The frames are those of a recording. liteprobe reads its blocks, the others the pcapng file that was made of it before, from
a file or from a pipe that ``cat`` fills. Time and processor time are those of the whole command, its start included, without
those of ``cat``. Files are written to the page cache.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PCAP_HEAD, PACKET_HEAD, FRAME = 24, 16, 60  # Octets of a pcap file, and of the frames of the recordings.
SAID = {"liteprobe": r"^([\d,]+) frames", "dumpcap": r"Packets received/dropped on interface .*: (\d+)/0 "}


@dataclass(frozen=True)
class Command:
    """A program that writes frames anew.

    Parameters
    ----------
    name : str
        What the figure is called.
    words : list of str
        Program and arguments.
    source : Path
        What it reads.
    by_pipe : bool
    output : Path
    """

    name: str
    words: list[str]
    source: Path
    by_pipe: bool
    output: Path


@dataclass(frozen=True)
class Written:
    """Frames that the file holds, time (s), processor time (s) and octets of the file."""

    frames: int
    seconds: float
    processor_s: float
    octets: int


def commands(recording: Path, pcapng: Path, folder: Path) -> list[Command]:
    """Return what is compared; ``pcapng`` has the frames of ``recording``."""
    host = [sys.executable, "-m", "liteprobe.host.cli.main", "capture", "--read"]
    found = []
    for by_pipe in (False, True):
        way = "by_pipe" if by_pipe else "from_file"
        ours, theirs = folder / f"liteprobe_{way}.pcapng", folder / f"tcpdump_{way}.pcap"
        read = "-" if by_pipe else str(recording)
        found.append(Command(f"liteprobe_{way}", [*host, read, "-w", str(ours)], recording, by_pipe, ours))
        words = ["tcpdump", "-r", "-" if by_pipe else str(pcapng), "-w", str(theirs)]
        found.append(Command(f"tcpdump_{way}", words, pcapng, by_pipe, theirs))
    theirs = folder / "dumpcap_by_pipe.pcapng"  # dumpcap reads no files.
    found.append(Command("dumpcap_by_pipe", ["dumpcap", "-i", "-", "-w", str(theirs)], pcapng, True, theirs))
    return found


def is_there(command: Command) -> bool:
    """Return whether the program is installed."""
    return shutil.which(command.words[0]) is not None


def written(command: Command) -> Written:
    """Run a command, and return what it wrote.

    Raises
    ------
    subprocess.CalledProcessError
        When it fails.
    """
    command.output.unlink(missing_ok=True)
    cat = subprocess.Popen(["cat", str(command.source)], stdout=subprocess.PIPE) if command.by_pipe else None
    with tempfile.TemporaryFile("w+") as said:
        began_s = time.monotonic()
        process = subprocess.Popen(command.words, stdin=cat.stdout if cat else subprocess.DEVNULL, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began_s
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    if cat:
        assert cat.stdout
        cat.stdout.close()
        cat.wait()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command.words, text)
    return Written(_frames(command, text), seconds, used.ru_utime + used.ru_stime, command.output.stat().st_size)


def best(measure: Callable[[], Written], runs: int = 3) -> Written:
    """Return the quickest of some runs."""
    return min((measure() for _ in range(runs)), key=lambda each: each.seconds)


# # #


def _frames(command: Command, text: str) -> int:
    """Return how many frames were written: as the program says, or by the size of the file."""
    for program, pattern in SAID.items():
        if command.name.startswith(program):
            found = re.search(pattern, text, re.MULTILINE)
            return int(found[1].replace(",", "")) if found else 0
    return (command.output.stat().st_size - PCAP_HEAD) // (PACKET_HEAD + FRAME)
