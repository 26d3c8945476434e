# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The simulated probe: built when needed, started as a process, reached by Etherbone on localhost."""

import contextlib
import subprocess
import sys
import threading
import weakref
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, ClassVar

from liteprobe.host import programs
from liteprobe.host.errors import ProbeError, UsageError
from liteprobe.host.link.etherbone import EtherboneLink, Patience

EXECUTABLE = "liteprobe-sim"
MAP = "csr.json"
PROBES = ("a", "b")  # Of a pair.
USAGE_EXIT_CODE = 2
CLOSE_TIMEOUT_S = 5.0
LOOK_TIMEOUT_S = 0.02  # A reply that takes longer is asked after: see SimLink._receive.
RUN_STEP_NS = 2_000_000  # Simulated time is let go in steps, so that Ctrl-C gets through.


@dataclass(frozen=True)
class SimOptions:
    """What to simulate.

    Parameters
    ----------
    wire : str
        Wire specification: ``loopback``, ``cable?delay=1us``, ``switch?latency=3us&rate=1G``.
    link : str
        ``own``: Etherbone on a port of its own; ``shared``: in band on test port 0.
    with_cpu : bool
        Whether the simulated SoC has its softcore.
    truth, pcap : Path or None
        File of the truth, prefix of the captures that the simulation writes.
    flash : Path or None
        What the SPI flash holds at the place of firmware (``liteprobe firmware pack``); None: nothing.
    build : Path or None
        Folder of a simulated probe that is built already; None: build it, or take it from the cache.
    pps_ns, jitter_ns : int or None, int
        A PPS of this period on the input of each probe, whose edges are off by up to so much either way, evenly;
        None: no PPS, unless a receiver has one.
    receivers : tuple of Path
        What the GNSS receiver of each probe does, a file a probe (docs/simulation.md).
    play : tuple of Path
        Captures that come to the ports over and over, one for each port.
    preset : str
        What is built in: ``train`` or ``monitor``.
    oscillators : tuple of float
        Of a pair: how fast each probe's oscillator is (ppm). Empty: one probe, whose oscillator is right.
    probe : str
        Of a pair: which of the two this is, ``a`` or ``b``.
    """

    wire: str = "loopback"
    link: str = "own"
    with_cpu: bool = True
    truth: Path | None = None
    pcap: Path | None = None
    build: Path | None = None
    flash: Path | None = None
    pps_ns: int | None = None
    jitter_ns: int = 0
    receivers: tuple[Path, ...] = ()
    play: tuple[Path, ...] = ()
    preset: str = "train"
    oscillators: tuple[float, ...] = ()
    probe: str = "a"


def build(options: SimOptions) -> Path:
    """Build the simulated probe, or find it in the cache, and return its folder."""
    command = [sys.executable, "-m", "liteprobe.sim.system.build", "--link", options.link]
    command += [] if options.with_cpu else ["--no-cpu"]
    command += ["--preset", options.preset] if options.preset != "train" else []
    done = programs.run(command, keep_output=True, passes_on="liteprobe: ")
    lines = done.output.strip().splitlines()
    if done.code or not lines:
        raise ProbeError(f"the simulated probe can't be built; '{' '.join(command[1:])}' says:\n{done.tail}")
    return Path(lines[-1])


class SimProcess:
    """A running ``liteprobe-sim``: commands go to its stdin, one line of answer comes back for each.

    Parameters
    ----------
    command : list of str
        The executable and its options.

    Attributes
    ----------
    udp_ports : list of int
        Where it listens on localhost, for each probe.

    Raises
    ------
    UsageError
        When it refuses its options (a wire that can't be).
    ProbeError
        When it ends without an answer.
    """

    def __init__(self, command: list[str]) -> None:
        self._said: deque[str] = deque(maxlen=50)
        self._commands = 0
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,  # Ctrl-C is for the host, which then stops the train.
            )
        except OSError as error:
            raise ProbeError(
                f"cannot start {command[0]} ({error.strerror}): leave build= out of the URL, and a simulated probe is built"
            ) from None
        self.close = weakref.finalize(self, _end, self._process)
        # A pipe that nobody reads would block it.
        self._listener = threading.Thread(target=_listen, args=(self._process.stderr, self._said), daemon=True)
        self._listener.start()
        word, *numbers = self._answer().split(" ")
        if word != "listening" or not numbers or not all(number.isdecimal() for number in numbers):
            raise self._failure(f"'{' '.join([word, *numbers])}' where 'listening PORT' was due")
        self.udp_ports = [int(number) for number in numbers]

    def command(self, line: str) -> str:
        """Send a line, and return what stands behind ``ok`` in the answer.

        Each line has a number, which its answer repeats: an interrupt may come before a line is sent, or before its answer
        is read, and the next command must not take that answer for its own.
        """
        stdin = self._process.stdin
        assert stdin is not None
        self._commands += 1
        mark = f"#{self._commands} "
        try:
            stdin.write(mark + line + "\n")
            stdin.flush()
        except OSError:
            raise self._failure("its input is closed") from None
        answer = self._answer()
        while not answer.startswith(mark):
            answer = self._answer()
        answer = answer.removeprefix(mark)
        word, _, rest = answer.partition(" ")
        if word != "ok":
            raise ProbeError(f"the simulated probe refuses '{line}': {answer}")
        return rest

    def _answer(self) -> str:
        stdout = self._process.stdout
        assert stdout is not None
        line = stdout.readline()
        if not line:
            raise self._failure("it ended")
        return line.strip()

    def _failure(self, what: str) -> ProbeError:
        """Return the error of a process that doesn't answer, with what it printed last."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._listener.join(1.0)
        said = list(self._said)
        if self._process.returncode == USAGE_EXIT_CODE:
            return UsageError(
                "\n".join(said) or "the simulated probe refuses its options: see sim://switch?latency=3us"
            )
        tail = "\n".join(said[-5:])
        return ProbeError(f"the simulated probe failed ({what}, exit code {self._process.returncode}): {tail}")


def _listen(stderr: IO[str], said: deque[str]) -> None:
    """Keep the last lines that the process prints."""
    with stderr:
        said.extend(line.rstrip() for line in stderr)


def _end(process: "subprocess.Popen[str]") -> None:
    """End the process, asking first, so that its truth and capture files are whole."""
    assert process.stdin is not None
    if process.poll() is None:
        with contextlib.suppress(OSError, ValueError):
            process.stdin.write("quit\n")
            process.stdin.flush()
        try:
            process.wait(CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def start(options: SimOptions) -> tuple[SimProcess, Path]:
    """Start a simulation; return its process and the register map of its probes."""
    folder = options.build or build(options)
    command = [str(folder / EXECUTABLE), "--port", "0", "--wire", options.wire]
    command += ["--truth", str(options.truth)] if options.truth else []
    command += ["--pcap", str(options.pcap)] if options.pcap else []
    command += ["--flash", str(options.flash)] if options.flash else []
    command += ["--oscillators", ",".join(f"{ppm:g}" for ppm in options.oscillators)] if options.oscillators else []
    for seed in range(1, 1 + (len(options.oscillators) or 1)) if options.pps_ns else ():
        command += ["--pps", f"period={options.pps_ns}ns&jitter={options.jitter_ns}ns&seed={seed}"]
    for receiver in options.receivers:
        command += ["--receiver", str(receiver)]
    return SimProcess(command), folder / MAP


class SharedProcess:
    """The one simulation of two probes, for as long as either is open."""

    _running: ClassVar[dict[SimOptions, "SharedProcess"]] = {}

    def __init__(self, options: SimOptions) -> None:
        self.process, self.map_file = start(options)
        self._key = options
        self._users: set[str] = set()

    @classmethod
    def join(cls, options: SimOptions) -> "SharedProcess":
        """Return the simulation of these options, started when it doesn't run yet.

        Raises
        ------
        UsageError
            When this probe of the pair is open already.
        """
        key = replace(options, probe="a")
        shared = cls._running.get(key)
        if shared is None:
            shared = cls._running[key] = cls(key)
        if options.probe in shared._users:
            raise UsageError(
                f"probe {options.probe} of this pair is open already: name the other one (probe=a, probe=b)"
            )
        shared._users.add(options.probe)
        return shared

    def leave(self, probe: str) -> None:
        """End the simulation when nobody is left."""
        self._users.discard(probe)
        if not self._users:
            self._running.pop(self._key, None)
            self.process.close()


class SimLink(EtherboneLink):
    """A simulated probe of one's own, in lock-step: its time passes only while it is asked something.

    Two links to the probes of one pair, opened in the same Python process, share one simulation and its time.

    Parameters
    ----------
    options : SimOptions
        What to simulate.
    """

    arrival_timeout_s = 0.002
    look_ns = 100_000.0
    oscillator_ppm = 0.0  # Its tick is 8 ns by definition.

    def __init__(self, options: SimOptions) -> None:
        self.options = options
        self.is_in_band = options.link == "shared"
        self.pps_period_ns = options.pps_ns
        self._shared = SharedProcess.join(options) if options.oscillators else None
        self._prefix = f"{options.probe} " if options.oscillators else ""
        self._process, self.map_file = (self._shared.process, self._shared.map_file) if self._shared else start(options)
        if options.oscillators:
            self.oscillator_ppm = EtherboneLink.oscillator_ppm
        self._silence_until_ns = 0
        port = self._process.udp_ports[PROBES.index(options.probe) if options.oscillators else 0]
        super().__init__("127.0.0.1", port, Patience(timeout_s=LOOK_TIMEOUT_S))
        for test_port, capture in enumerate(options.play):
            self.play(test_port, capture, repeats=0)

    def idle(self) -> None:
        """Let a little of the simulated time pass."""
        self.wait(self.look_ns / 1e9)

    def now_s(self) -> float:
        """Return the simulated time since the start (s)."""
        return self.now_ns() / 1e9

    def now_ns(self) -> int:
        """Return the simulated time since the start (ns)."""
        return int(self._process.command("time"))

    def wait(self, seconds: float) -> None:
        """Let ``seconds`` of simulated time pass."""
        left_ns = round(seconds * 10**9)
        while left_ns > 0:
            step_ns = min(left_ns, RUN_STEP_NS)
            self._process.command(f"run {step_ns}")
            left_ns -= step_ns

    def set_link(self, port: int, is_up: bool) -> None:
        """Plug (True) or pull (False) the cable of a port."""
        self._process.command(f"{self._prefix}link {port} {'up' if is_up else 'down'}")

    def inject(self, port: int, octets: bytes) -> None:
        """Put octets on the wire into a port, preamble, SFD and FCS included, right or wrong."""
        self._process.command(f"{self._prefix}inject {port} {octets.hex()}")

    def play(self, port: int, path: Path, start_ns: int = 0, repeats: int = 1) -> int:
        """Play a capture (pcap) into a port: each frame at its time after the first one, or when the line is free.

        Parameters
        ----------
        port : test port.
        path : the capture.
        start_ns : simulated time of the first SFD; 0, or what has passed: as soon as can be.
        repeats : how often; 0: without end.

        Returns
        -------
        int
            Frames of the capture.

        Raises
        ------
        ProbeError
            When it is no capture of Ethernet frames.
        """
        return int(self._process.command(f"{self._prefix}play {port} {start_ns} {repeats} {path.absolute()}"))

    def sync(self) -> None:
        """Have the truth and capture files written up to now."""
        self._process.command("sync")

    def set_oscillator(self, ppm: float) -> None:
        """Let the oscillator of this probe of a pair be fast by ``ppm`` from now on."""
        self._process.command(f"{self._prefix}rate {ppm:.9f}")

    def receive(self, line: str) -> None:
        """Have the GNSS receiver do something still to come: ``pps NS [WIDTH_NS]`` or ``gnss NS OCTETS`` (hexadecimal)."""
        self._process.command(self._prefix + line)

    def sent_to_receiver(self) -> bytes:
        """Return what the probe has sent to the GNSS receiver since the last call."""
        return bytes.fromhex(self._process.command(f"{self._prefix}gnss"))

    def expect_silence(self, seconds: float) -> None:
        """Say that the probe may not answer for ``seconds`` of simulated time; 0 ends it."""
        self._silence_until_ns = self.now_ns() + round(seconds * 10**9) if seconds > 0 else 0

    def receive_port(self, transmit: int, ports: int) -> int:
        """Return the port that the wire leads to."""
        return transmit if self.options.wire.partition("?")[0] == "loopback" else super().receive_port(transmit, ports)

    def close(self) -> None:
        """Close the socket and end the process."""
        super().close()
        if self._shared:
            self._shared.leave(self.options.probe)
        else:
            self._process.close()

    # # #

    def _receive(self, timeout_s: float) -> bytes | None:
        """Return the next datagram; none comes any more once the process obeys a command again."""
        datagram = super()._receive(timeout_s)
        if datagram is None:
            self.now_ns()
            datagram = super()._receive(0.001)
        return datagram

    def _is_silent(self) -> bool:
        """Let expected silence pass: nothing else moves the simulated time."""
        left_ns = self._silence_until_ns - self.now_ns()
        if left_ns <= 0:
            return False
        self._process.command(f"run {min(left_ns, RUN_STEP_NS)}")
        return True

    def _unreachable(self) -> str:
        return (
            "the simulated probe doesn't answer: that is a fault of the simulation; please report it with the command"
        )
