# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Builds the simulated probe when needed, starts it as a process, and reaches it by Etherbone on localhost."""

import contextlib
import shutil
import struct
import subprocess
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, ClassVar

from liteprobe.cores.formats import DEFAULT_PRESET
from liteprobe.host.base import extras, folders, programs
from liteprobe.host.base.errors import NoProbeError, ProbeError, UsageError
from liteprobe.host.device.link.etherbone import EtherboneLink, Patience
from liteprobe.host.device.link.sim_stations import (
    ReflectorAsked,
    ReflectorProcess,
    Seen,
    Station,
    Stations,
    StationsAsked,
)
from liteprobe.host.packets.files import as_pcap

USAGE_EXIT_CODE = 2
CLOSE_TIMEOUT_S = 5.0


class SimProcess:
    """Runs a ``liteprobe-sim``: commands go to its stdin, one line of answer comes back for each.

    ``udp_ports``: where it listens on localhost, for each probe.
    Raises UsageError when it refuses its options (a wire that can't be), ProbeError when it ends without an answer.
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
            raise self._failure("it ended") from None
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


EXECUTABLE = "liteprobe-sim"
LIBRARY = "liteprobe-sim.so"  # The same probe, for a pair with one of another build.
MAP = "csr.json"
SAID = "build: "  # What the program that builds it begins with where it knows why it can't.
PROBES = ("a", "b")  # Of a pair.
LOOK_TIMEOUT_S = 0.002  # Then the process is asked whether a reply is still to come: see SimLink._receive.
LOOK_TRIES = 50  # The network between may be a bad one.
BATCH_MAGIC = b"LPBT"  # As in sim/system/harness/management.cpp: several datagrams in one.
REPLAY_FLIGHT = 32  # Of 2 ms each; the kernel's buffer holds 92, and drops more without a word.
REPLAY_TIMEOUT_S = 10.0  # Nothing gets lost then, and time stands still while nobody asks for any.
RUN_STEP_NS = 2_000_000  # Simulated time is let go in steps, so that Ctrl-C gets through.


@dataclass(frozen=True)
class SimOptions:
    """Says what to simulate."""

    wire: str = "loopback"  # Wire specification: ``loopback``, ``cable?delay=1us``, ``switch?latency=3us&rate=1G``.
    link: str = "own"  # ``own``: Etherbone on a port of its own; ``shared``: in band on test port 0.
    with_cpu: bool = True  # Whether the simulated SoC has its softcore.
    #: ``truth``, ``pcap``: file of the truth, prefix of the captures that the simulation writes.
    truth: Path | None = None
    pcap: Path | None = None
    #: Folder of a simulated probe that is built already; None: build it, or take it from the cache.
    build: Path | None = None
    #: What the SPI flash holds at the place of firmware (``liteprobe firmware pack``); None: nothing.
    flash: Path | None = None
    #: ``pps_ns``, ``jitter_ns``: a PPS of this period on the input of each probe, whose edges are off by up to so much
    #: either way, evenly; None: no PPS, unless a receiver has one.
    pps_ns: int | None = None
    jitter_ns: int = 0
    receivers: tuple[Path, ...] = ()  # What the GNSS receiver of each probe does, a file a probe (docs/simulation.md).
    play: tuple[Path, ...] = ()  # Captures that come to the ports over and over, one for each port.
    preset: str = DEFAULT_PRESET  # What is built in: ``train`` or ``monitor``.
    #: What datagrams between host and probe meet, both ways: ``loss=5%,duplicate=5%,reorder=5%,seed=1``; empty: nothing.
    network: str = ""
    #: Of a pair: how fast each probe's oscillator is (ppm). Empty: one probe, whose oscillator is right.
    oscillators: tuple[float, ...] = ()
    probe: str = "a"  # Of a pair: which of the two this is, ``a`` or ``b``.
    peer: str = ""  # Of a pair: preset of probe b; empty: as of a.
    emulates: Path | None = None  # Of a pair: the network that probe b is to emulate, a document; None: nothing.
    stations: StationsAsked | None = None  # Of an emulator: who sits at its ports.
    reflector: ReflectorAsked | None = None  # Sits at both ports.
    #: A Python file that adds parts of one's own to the gateware (docs/simulation.md); None: nothing is added.
    extend: Path | None = None
    scope: bool = False  # Whether LiteScope is built in (docs/litex-clients.md).
    is_10g: bool = (
        False  # Whether it is a probe of 10 Gb/s, with ports of XGMII: ``wire`` is then in the harness's time.
    )
    ppm: float = 0.0  # Of a probe of 10 Gb/s: how much faster its ports' receive clocks are than its own.

    @property
    def time_scale(self) -> int:
        """Nanoseconds of the harness that are one of the probe's: its tick of 8 ns is an octet of any line."""
        return 10 if self.is_10g else 1

    @property
    def variant(self) -> str:
        """Name of the gateware that this asks for, but for parts of one's own."""
        if self.is_10g:
            return f"10g-own-{self.preset}-no-cpu"
        return f"{self.link}-{self.preset}" + ("" if self.with_cpu else "-no-cpu")


def build(options: SimOptions, product: str = EXECUTABLE) -> Path:
    """Build the simulated probe, or find it in the package or in the cache, and return its folder.

    ``product``: what must be in there. Raises ProbeError when it can't be built; the message says what to install.
    """
    kept = None if options.extend or options.scope else folders.built_in(options.variant)
    if kept and (kept / product).exists():
        return kept
    extras.require("sim")
    if shutil.which("g++") is None:
        raise ProbeError("the simulated probe is compiled here, and there is no g++: type  apt-get install g++")
    command = programs.module("liteprobe.sim.system.build", "--link", options.link)
    command += [] if options.with_cpu else ["--no-cpu"]
    command += ["--preset", options.preset] if options.preset != DEFAULT_PRESET else []
    command += ["--extend", str(options.extend)] if options.extend else []
    command += ["--scope"] if options.scope else []
    if options.is_10g:
        command = programs.module("liteprobe.sim.system.xgmii.build", "--preset", options.preset)
    done = programs.run(command, keep_output=True, passes_on="liteprobe: ")
    lines = done.output.strip().splitlines()
    if done.code or not lines:
        *_, last = done.tail.splitlines() or ["it said nothing"]
        why = last.removeprefix(SAID) if last.startswith(SAID) else f"\n{done.tail}"
        raise ProbeError(f"the simulated probe can't be built: {why}")
    return Path(lines[-1])


def start(options: SimOptions) -> tuple[SimProcess, tuple[Path, ...]]:
    """Start a simulation; return its process and the register map of each of its probes."""
    folder = options.build or build(options)
    peer = build(replace(options, preset=options.peer, extend=None), LIBRARY) if options.peer else folder
    command = [str(folder / EXECUTABLE), "--port", "0", "--wire", options.wire]
    command += ["--peer", str(peer / LIBRARY)] if options.peer else []
    for name in ("truth", "pcap", "flash", "network"):
        command += [f"--{name}", str(value)] if (value := getattr(options, name)) else []
    command += ["--oscillators", ",".join(f"{ppm:g}" for ppm in options.oscillators)] if options.oscillators else []
    for seed in range(1, 1 + (len(options.oscillators) or 1)) if options.pps_ns else ():
        command += ["--pps", f"period={options.pps_ns}ns&jitter={options.jitter_ns}ns&seed={seed}"]
    for receiver in options.receivers:
        command += ["--receiver", str(receiver)]
    command += ["--ppm", f"{options.ppm:g},{options.ppm:g},0"] if options.ppm else []
    return SimProcess(command), (folder / MAP, peer / MAP)


class SharedProcess:
    """The one simulation of two probes, for as long as either is open."""

    _running: ClassVar[dict[SimOptions, "SharedProcess"]] = {}

    def __init__(self, options: SimOptions) -> None:
        self.process, self.map_files = start(options)
        self._key = options
        self._users: set[str] = set()

    @classmethod
    def join(cls, options: SimOptions) -> "SharedProcess":
        """Return the simulation of these options, started when it doesn't run yet.

        Raises UsageError when this probe of the pair is open already.
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
    """

    silence_s = 60.0  # Its 10 ms take seconds.
    replay_flight = REPLAY_FLIGHT
    arrival_timeout_s = 0.002
    look_ns = 100_000.0
    oscillator_ppm = 0.0  # Its tick is right by definition.
    has_cables = True

    def __init__(self, options: SimOptions) -> None:
        self.options = options
        self.is_in_band = options.link == "shared"
        self.pps_period_ns = options.pps_ns
        self._shared = SharedProcess.join(options) if options.oscillators else None
        self._prefix = f"{options.probe} " if options.oscillators else ""
        shared = self._shared
        self._process, map_files = (shared.process, shared.map_files) if shared else start(options)
        number = PROBES.index(options.probe) if shared else 0
        self.map_file = map_files[number]
        if options.oscillators:
            self.oscillator_ppm = EtherboneLink.oscillator_ppm
        if not options.network:
            self.replay_timeout_s = REPLAY_TIMEOUT_S
        self._silence_until_ns = 0
        self._beats: tuple[Callable[[], None], int] | None = None
        self._since_beat_ns = 0
        port = self._process.udp_ports[number]
        super().__init__("127.0.0.1", port, Patience(LOOK_TIMEOUT_S, LOOK_TRIES))
        for test_port, capture in enumerate(options.play):
            self.play(test_port, capture, repeats=0)
        if options.stations:
            self.stations = Stations(self, options.stations)
        self._reflector = ReflectorProcess(options.reflector) if options.reflector else None
        if self._reflector:
            self._reflector.put(self)

    def idle(self) -> None:
        self.wait(self.look_ns / 1e9)

    def now_s(self) -> float:
        return self.now_ns() / 1e9

    def beat(self, act: Callable[[], None], period_s: float) -> Callable[[], None]:
        """Call ``act`` as time passes in ``wait``."""
        self._beats = (act, round(period_s * 10**9))
        self._since_beat_ns = 0

        def stop() -> None:
            self._beats = None

        return stop

    def prove(self, address: int) -> None:
        if self.options.network:  # Else there is none.
            super().prove(address)

    def now_ns(self) -> int:
        """Return the simulated time since the start (ns)."""
        return int(self._process.command("time")) // self.options.time_scale

    def wait(self, seconds: float) -> None:
        left_ns = round(seconds * 10**9)
        while left_ns > 0:
            step_ns = min(left_ns, RUN_STEP_NS)
            self._run(step_ns)
            left_ns -= step_ns

    def _run(self, step_ns: int) -> None:
        self._process.command(f"run {step_ns * self.options.time_scale}")
        self._since_beat_ns += step_ns
        if self._beats and self._since_beat_ns >= self._beats[1]:
            self._since_beat_ns = 0
            self._beats[0]()

    def set_link(self, port: int, is_up: bool) -> None:
        self._process.command(f"{self._prefix}link {port} {'up' if is_up else 'down'}")

    def inject(self, port: int, octets: bytes) -> None:
        """Put octets on the wire into a port, preamble, SFD and FCS included, right or wrong."""
        self._process.command(f"{self._prefix}inject {port} {octets.hex()}")

    def play(self, port: int, path: Path, start_ns: int = 0, repeats: int = 1) -> int:
        """Play a capture (pcap, pcapng) into a port: each frame at its time after the first one, or when the line is free.

        Its first SFD is at ``start_ns`` of the simulated time, or as soon as can be; ``repeats`` 0: without end. Returns the
        frames of the capture; raises ProbeError when it is not one of Ethernet frames.
        """
        with as_pcap(path) as readable:
            at_ns = start_ns * self.options.time_scale
            return int(self._process.command(f"{self._prefix}play {port} {at_ns} {repeats} {readable.absolute()}"))

    def put_station(self, port: int, station: Station, start_ns: int) -> None:
        """Put a station with a TCP/IP stack at the end of a port's line; its time begins at ``start_ns`` of the simulation's."""
        lengths = ",".join(map(str, station.lengths))
        words = f"{station.number} {station.seed} {int(station.is_kept)} {lengths} {station.library.absolute()}"
        self._process.command(f"{self._prefix}station {port} {start_ns} {words}")

    def seen(self, port: int) -> Seen:
        """Return what was played into a port, and what came to the station at the end of its line."""
        played, is_playing, *counts = map(int, self._process.command(f"{self._prefix}seen {port}").split())
        return Seen(played, bool(is_playing), *counts)

    def network_counts(self) -> str:
        """Return how many datagrams the network took, lost, doubled and delayed, towards the probe and back."""
        sent, lost, doubled, delayed, *back = self._process.command("network").split()
        return (
            f"{sent} datagrams to the probe ({lost} lost, {doubled} doubled, {delayed} delayed), "
            f"{back[0]} back ({back[1]} lost, {back[2]} doubled, {back[3]} delayed)"
        )

    def replay_address(self) -> tuple[str, int] | None:
        return "127.0.0.1", int(self._process.command(f"{self._prefix}replay"))

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
        self._silence_until_ns = self.now_ns() + round(seconds * 10**9) if seconds > 0 else 0

    def receive_port(self, transmit: int, ports: int) -> int:
        return transmit if self.options.wire.partition("?")[0] == "loopback" else super().receive_port(transmit, ports)

    def close(self) -> None:
        super().close()
        if self._shared:
            self._shared.leave(self.options.probe)
        else:
            self._process.close()
        if self._reflector:
            self._reflector.close()

    # # #

    def _asks_more(self, outstanding: int) -> bool:
        """Ask when all is answered: time stands still until then."""
        return not outstanding

    def _send_datagrams(self, datagrams: Sequence[bytes]) -> None:
        """Send several in one, so that they are served together whoever is faster."""
        if len(datagrams) > 1:
            datagrams = [BATCH_MAGIC + b"".join(struct.pack(">H", len(each)) + each for each in datagrams)]
        super()._send_datagrams(datagrams)

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
        self._run(min(left_ns, RUN_STEP_NS))
        return True

    def _unreachable(self, error: OSError) -> NoProbeError:
        return NoProbeError(
            f"cannot reach the simulated probe at {self.host}:{self.port} ({error.strerror}): it is on this host's loopback "
            "interface, which must be up (ip link set lo up)"
        )

    def _no_answer(self) -> str:
        return (
            "the simulated probe doesn't answer: that is a fault of the simulation; please report it with the command"
        )
