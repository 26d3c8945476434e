# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The command ``monitor`` in a terminal: what it shows is what was on the pins up to one instant, at each width."""

import errno
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest

from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.drivers.system import signals
from liteprobe.sim.drivers.system.monitoring import PORTS, bursts

SEED, OVERHEAD = 20261125, 24
LATE_NS = 3_000  # Between the latches of two ports, and from the end of a frame on the pins to its count.
#: From the latch of a port's meter to the instant of its counts: a datagram of at most 106 octets of the line, then two passes
#: of `Tally`, of at most 64 cycles of 16 ns. And a frame is measured up to 58 cycles after it was seen (`Decision`).
MEASURED_NS = 8 * 106 + 16 * (2 * 64 + 58)
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A command in a terminal of its own."""

    def __init__(self, command: list[str], width: int, kind: str = "xterm") -> None:
        self._master, slave = pty.openpty()
        self.resize(width)
        environment = {**os.environ, "TERM": kind}
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            environment.pop(name, None)
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment)
        os.close(slave)
        self.shown = ""

    def resize(self, width: int, height: int = 60) -> None:
        """Make it so wide and high."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def type(self, key: str) -> None:
        """Press a key."""
        os.write(self._master, key.encode())

    def until(self, pattern: str, seconds: float = 60) -> str:
        """Return what was shown, up to the pattern and a little further; it is forgotten."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.shown) and time.monotonic() < end and self._take(0.2):
            pass
        self._take(0.2)
        shown, self.shown = self.shown, ""
        assert re.search(pattern, shown), shown
        return shown

    def ended(self, seconds: float = 60) -> int | None:
        """Return the exit code, once there is one; what is shown meanwhile is read, or the program would wait for that."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            if not self._take(0.1):
                time.sleep(0.1)
        return self.process.poll()

    def _take(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return True
        try:
            read = os.read(self._master, 65536)
        except OSError as error:
            assert error.errno == errno.EIO  # The program has ended.
            return False
        self.shown += ESCAPES.sub("", read.decode(errors="replace"))
        return True


@contextmanager
def monitoring(build: Path, folder: Path, *options: str, width: int = 80, kind: str = "xterm") -> Iterator[Terminal]:
    """The command with bursts on both ports; pins and looks are written into ``folder``."""
    played = ",".join(str(bursts(folder / f"{port}.pcap", SEED + port)) for port in range(PORTS))
    url = f"sim://loopback?preset=monitor&build={build}&play={played}&pcap={folder / 'pins'}"
    times = ["--refresh", "2ms", "--rates", "1ms"]
    terminal = Terminal([str(signals.PROGRAM), "monitor", "--probe", url, *times, *options], width, kind)
    try:
        yield terminal
    finally:
        terminal.process.kill()
        terminal.process.wait()


def test_screens_at_each_width_have_the_numbers_of_one_instant(monitor_build: Path, tmp_path: Path) -> None:
    looks_file, screens = tmp_path / "looks.json", {}
    with monitoring(monitor_build, tmp_path, "--json", str(looks_file), "--bins", "keep") as terminal:
        for width in (80, 40, 140):
            terminal.resize(width)
            count = len(looks_file.read_text().splitlines()) if looks_file.exists() else 0
            while not looks_file.exists() or len(looks_file.read_text().splitlines()) < count + 2:
                terminal.until("frames/s|no rate")
            screens[width] = terminal.until("(?s)port 0.*port 1.*arrival")
        terminal.type("?")
        assert "values by bin" in terminal.until("histograms values by bin")
        terminal.type("q")
        assert terminal.ended() == 0
    looks = [json.loads(line) for line in looks_file.read_text().splitlines()]
    pins = [truth.read_pcap(tmp_path / f"pins.port{port}.in.pcap") for port in range(PORTS)]
    assert len(looks) >= 6
    for look in looks:
        after, before = 0, look["clock"]["now_ns"]
        for port, (stamps, contents) in zip(look["ports"], pins, strict=True):
            lengths = [len(octets) for octets in contents]
            seen = port["events"]["all_frames"]
            assert port["events"]["all_octets"] == [0, *accumulate(lengths)][seen]
            # Frame n has ended at the instant, frame n + 1 not yet.
            ends = stamps + 8 * (np.array(lengths) + 4)
            after, before = max(after, int(ends[seen - 1]) if seen else 0), min(before, int(ends[seen]))
            # The meter is latched first, and has a frame after it was seen: so never more, and all but the last ones.
            came = int(np.sum(ends[:seen] <= ends[max(seen - 1, 0)] - MEASURED_NS))
            assert came <= port["counters"]["frames"] <= seen
        assert after - before < LATE_NS
    said = [{f"{p['events']['all_frames']:,} frames" for p in look["ports"]} for look in looks]
    for width, screen in screens.items():
        assert any(all(words in screen for words in look) for look in said), width
        assert {len(line) for line in re.findall("╭─ port [01] ─+╮", screen)} == {width}, screen
        assert screen.count("0 fcs errors") >= PORTS


def test_keys_turn_pages_choose_bins_and_clear_what_was_worst(monitor_build: Path, tmp_path: Path) -> None:
    looks_file = tmp_path / "looks.json"
    with monitoring(monitor_build, tmp_path, "--json", str(looks_file), "--bins", "arrival=0:1", width=40) as terminal:
        terminal.resize(40, 24)
        assert "% out" in terminal.until(r"(?s)p: page 1/\d.*arrival 0\.\.46, [0-9.]+ % out")
        terminal.type("p")
        terminal.until(r"(?s)p: page 2/\d.*port 0 ─")
        terminal.type("c")
        terminal.type("b")
        terminal.until("(?s)p: page 2/.*p: page 2/")
        looks = len(looks_file.read_text().splitlines())
        while len(looks_file.read_text().splitlines()) < looks + 6:
            terminal.until("port 0")
        terminal.type("q")
        assert terminal.ended() == 0
    found = [json.loads(line)["ports"][0]["histograms"][0]["arrival"] for line in looks_file.read_text().splitlines()]
    assert (found[0]["origin"], found[0]["width"]) == (0, 1) and found[0]["above"] > 0
    # Bursts: a frame each 1, 2 or 12 us or as soon as the line is free, with at most 1 ms between.
    assert found[-1]["width"] >= 256 and found[-1]["above"] <= 0.05 * sum(found[-1]["counts"])


@pytest.mark.parametrize(("kind", "number", "code"), [("xterm", signal.SIGTERM, 143), ("dumb", signal.SIGINT, 0)])
def test_a_signal_ends_the_screen_and_the_terminal_echoes_again(
    monitor_build: Path, tmp_path: Path, kind: str, number: int, code: int
) -> None:
    with monitoring(monitor_build, tmp_path, kind=kind) as terminal:
        terminal.until("frames, [0-9,]+ octets")
        terminal.process.send_signal(number)
        assert terminal.ended() == code
        assert termios.tcgetattr(terminal._master)[3] & termios.ECHO


def test_a_probe_that_goes_away_is_said_and_ends_with_one_line(monitor_build: Path, tmp_path: Path) -> None:
    with monitoring(monitor_build, tmp_path) as terminal:
        terminal.until("frames, [0-9,]+ octets")
        (child,) = Path(f"/proc/{terminal.process.pid}/task/{terminal.process.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGKILL)
        said = terminal.until("liteprobe: .*\n")
        assert "liteprobe: the simulated probe failed (it ended, exit code -9)" in said and "Traceback" not in said
        assert terminal.ended() == 1
