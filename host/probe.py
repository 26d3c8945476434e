# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A probe: the one object that a script needs."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from liteprobe.cores.formats import PRESETS, Part, TransmitState, preset_of
from liteprobe.host.analysis.summary import TrainResult
from liteprobe.host.base.errors import BusyError, LeaseLostError, NetworkError, ProbeError, UsageError
from liteprobe.host.base.line import TEN_GIGABIT, Line, line_of_url
from liteprobe.host.base.probe_url import is_simulated
from liteprobe.host.base.text import read_text
from liteprobe.host.base.validate import Seconds, validated
from liteprobe.host.capture.request import CaptureRequest, CaptureResult
from liteprobe.host.clock.clock import ProbeClock
from liteprobe.host.clock.timebase import Timebase, bound_words
from liteprobe.host.device.bitstreams import how_to_get
from liteprobe.host.device.eye import memory_eye
from liteprobe.host.device.lease import HostLease
from liteprobe.host.device.link.base import Link
from liteprobe.host.device.link.url import emulated_by, open_link, other_of_pair
from liteprobe.host.device.phy import Links
from liteprobe.host.device.registers import open_registers
from liteprobe.host.measure.monitor import Monitor, PortMeasurement
from liteprobe.host.run.hosts import Neighbours, NetworkHost
from liteprobe.host.run.port import ProbePort, TransmitPort
from liteprobe.host.run.receive import BlindPort, MeterPort, ReceivePort, RingPort
from liteprobe.host.run.streams import RunningStream, SendOptions, StreamsPort, Traffic
from liteprobe.host.run.trains import Progress, Route, TrainRun
from liteprobe.host.traffic.layout import receivers_of
from liteprobe.host.traffic.stream import Stream
from liteprobe.host.traffic.train import TrainProgram

if TYPE_CHECKING:
    from liteprobe.host.run.emulate import Emulation
    from liteprobe.host.run.figures import TrafficLook
    from liteprobe.host.run.replay import ReplayOptions, ReplayResult
    from liteprobe.host.run.sets import SetsOptions, SetsResult
    from liteprobe.host.run.stamp import StampResult, StampSession
    from liteprobe.host.run.streamed import StreamLook
    from liteprobe.host.traffic.network import Network
    from liteprobe.host.traffic.sets import Sets
    from liteprobe.host.traffic.trace.trace import Trace

SOC_RESET = 1
#: What a probe says of itself; ``octets_per_tick`` only where that isn't 1.
IDENTITY = tuple(
    f"probe_{name}" for name in ("parts", "ports", "record_depth", "ticks_per_second", "octets_per_tick", "data_width")
)
#: Options of a build, by the part that a preset may have or not.
OPTIONS = {
    Part.STREAMS: "--traffic",
    Part.REPLAY: "--replay",
    Part.SETS: "--sets",
    Part.HOSTS: "--hosts",
}


@validated
class Probe:
    """A probe, on a board or simulated.

    Parameters
    ----------
    url : str or Link
        ``sim://loopback``, ``etherbone://HOST[:PORT]``, ``uart:///dev/ttyUSB0``; or a link that is open.
    map : str, Path or None
        Register map (``csr.json``); None: the one at hand whose hash the probe confirms.
    steal : bool
        Take the probe from another host that has it.

    Attributes
    ----------
    link : Link
    registers : Registers
        All registers and memories of this build, by name.
    lease : HostLease
        The right to write to the probe: taken at the first write, given back by ``close``.
    timebase : Timebase
    links : Links
        What the PHYs say, and what is wrong with a link.
    ports : list of ProbePort
        Those that send trains, and measure them; none on a probe without the part ``generate``.
    port_count : int
        Test ports.

    Raises
    ------
    UsageError
        When the URL or the map can't be understood.
    NoProbeError
        When no probe answers.
    MapError
        When the map is that of another build.
    BusyError
        Later, at the first write, when another host has the probe.
    """

    def __init__(self, url: str | Link, map: str | Path | None = None, steal: bool = False) -> None:
        self.url = url if isinstance(url, str) else type(url).__name__
        network = _network_beside(url) if isinstance(url, str) else None
        self.link = open_link(url) if isinstance(url, str) else url
        try:
            self.registers = open_registers(self.link, Path(map) if map else None)
            self.lease = HostLease(self.registers, steal)
            self.registers.own = self.lease.ensure
            self._identity = self.registers.read_many(name for name in IDENTITY if name in self.registers.names)
            self._check_ports()
        except BaseException:
            self.link.close()
            raise
        self.timebase = Timebase(self.registers, self.link.oscillator_ppm, self.line)
        self.port_count = self._identity["probe_ports"]
        self.links = Links(self.registers, self.port_count, self.link.wait)
        self._hosts: dict[int, NetworkHost] = {}
        self.ports = self._open_ports() if Part.GENERATE in self.parts else []
        self._simulated = ExitStack()
        if network:
            self._open_emulator(self.url, network)

    def _open_emulator(self, url: str, network: "Network") -> None:
        """Start a network on the other probe of a ``sim://emulated``."""
        other = other_of_pair(url)
        assert other
        try:
            self._simulated.enter_context(Probe(other)).emulate(network)
        except BaseException:
            self.close()
            raise

    def _check_ports(self) -> None:
        """Raise NetworkError where the probe is said to have other ports than those of its register map."""
        known = {name.split("_")[0] for name in self.registers.names if name.startswith("port")}
        if (count := self._identity["probe_ports"]) != len(known):
            raise NetworkError(
                f"the probe is said to have {count:,} ports, its register map has {len(known)}: the network changes what is "
                "read; see to the network, and try again"
            )

    def _open_ports(self) -> list[ProbePort]:
        kind = StreamsPort if Part.STREAMS in self.parts else TransmitPort
        receivers = self._open_receivers()
        return [ProbePort(number, kind(self.registers, number), one) for number, one in enumerate(receivers)]

    def _open_receivers(self) -> list[ReceivePort]:
        numbers, registers = range(self.port_count), self.registers
        if Part.RECORD in self.parts:
            depth = self._identity["probe_record_depth"]
            return [RingPort(registers, number, depth) for number in numbers]
        if Part.MEASURE in self.parts:
            return [MeterPort(registers, number) for number in numbers]
        if not self.parts & Part.MONITOR:
            return [BlindPort(registers, number) for number in numbers]
        from liteprobe.host.run.recorder import CapturePort, Recorder  # Its files take a while to load.

        recorder = Recorder(registers, self.port_count, self.link.wait)
        return [CapturePort(registers, number, recorder) for number in numbers]

    def __enter__(self) -> "Probe":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the probe; a simulated one ends."""
        with suppress(ProbeError):  # What can't be given back ends by itself, soon.
            self.lease.release()
        self._simulated.close()
        self.link.close()

    @property
    def parts(self) -> Part:
        """Parts that are built in."""
        return Part(self._identity["probe_parts"])

    @property
    def line(self) -> Line:
        """Line of its test ports."""
        octets = self._identity.get("probe_octets_per_tick", 1)  # Where it isn't said, a tick is an octet.
        return Line(8 * octets * self._identity["probe_ticks_per_second"], octets)

    def need(self, part: Part) -> None:
        """Raise UsageError, naming the presets that have it, unless ``part`` is built in; of several, one is enough."""
        if not part & self.parts:
            raise UsageError(lacking(self.url, self.parts, part, self.registers.identifier))

    def wait(self, seconds: float) -> None:
        """Let ``seconds`` of the probe's time pass; none when they are less than 0, as is left of a time that is past."""
        self.link.wait(max(seconds, 0))

    def set_time(self, time_ns: int) -> None:
        """Set the clock to ``time_ns``, at the moment when the request reaches the probe.

        Raises
        ------
        ProbeError
            When a train or streams run, or wait for their time: their frames would leave at another one.
        """
        if (port := self.busy_port) is not None:
            raise ProbeError(f"port {port} runs a train or streams: set the time when they have ended")
        self.timebase.set_time(time_ns)

    def reset(self) -> None:
        """Put the probe back as it was after power-up, but for its clock's time and what its memories hold.

        Whatever runs ends, firmware included; use it after a tool that isn't LiteProbe's has written to the probe.
        """
        with suppress(LeaseLostError):  # It may have been reset already: then it is claimed anew.
            self.registers.read("probe_lease_owner")
        if "boot_entry" in self.registers.names:
            self.registers.write("boot_entry", 0)
        self.timebase.increment = self.line.increment
        for port in self.ports:
            port.sends_for = port.measures_for = None
        with suppress(LeaseLostError):  # The answer to a reset comes from a probe that was reset, if at all.
            self.registers.write("ctrl_reset", SOC_RESET)
            self.registers.read("probe_lease_owner")

    @property
    def busy_port(self) -> int | None:
        """Number of the first port that runs a train, or has one that waits for its time; None: no step disturbs any."""
        busy = (TransmitState.WAITING, TransmitState.RUNNING)
        return next((port.number for port in self.ports if port.transmit.look()[0] in busy), None)

    def info(self) -> dict[str, int | float | str | bool]:
        """Return what the probe is and how it is: a row for each fact."""
        facts: dict[str, int | float | str | bool] = {
            "url": self.url,
            "build": self.registers.identifier,
            "map": self.registers.source,
            "map_hash": f"{self.registers.map_hash:08x}",
        }
        facts |= {name.removeprefix("probe_"): value for name, value in self._identity.items()}
        with suppress(BusyError):  # Another's snapshot of the time must not be touched.
            facts["now_ns"] = self.timebase.now_ns
        facts |= {
            "lease": self.lease.holder() or "free",
            "tick_ns": float(self.timebase.tick_ns),
            "clock_state": self.timebase.clock_state,
            "clock_error": bound_words(self.timebase.trust()[1]),
            "preset": preset_of(self.parts),
        }
        eye = memory_eye(self.registers)
        facts |= {"sdram_eye": eye.text} if eye else {}
        facts |= {"flow_hash": self.registers.has_flow_hash} if Part.MONITOR in self.parts else {}
        up = {f"port{port.number}_link_up": port.transmit.is_link_up for port in self.ports}
        return facts | up | self.links.facts()

    def train(
        self,
        program: TrainProgram,
        transmit: int = 0,
        receive: int | None = None,
        progress: Progress | None = None,
    ) -> TrainResult:
        """Send a program from port ``transmit``, and measure it at port ``receive``.

        Parameters
        ----------
        transmit : int
            Port that sends.
        receive : int or None
            Port that measures; None: the one that the wire leads to (with a real link, the neighbour).
        progress : callable or None
            Called with the frames sent and the frames to send, now and then.

        Raises
        ------
        UsageError
            When the program or a port can't be.
        ProbeError
            When a link is down, or nothing comes back.
        """
        return self.trains([(program, transmit, receive)], progress)[0]

    def launch(self, program: TrainProgram, transmit: int = 0) -> int:
        """Start a program that goes on when this host is gone, until ``stop``; return its end (ns); raises what `train` does."""
        return self.launch_all([(program, transmit)])

    def launch_all(self, requests: Sequence[tuple[TrainProgram, int]]) -> int:
        """Start several programs in the same tick, as `launch` does; in band, answers are waited for until the last ends."""
        self.need(Part.GENERATE)
        return self._train_run([(program, transmit, None) for program, transmit in requests]).launch()

    def send(
        self,
        streams: Sequence[Stream],
        receive: int | Mapping[int, int] | None = None,
        seconds: Seconds | None = None,
        detach: bool = False,
        latency_range_ns: tuple[int, int] | None = None,
    ) -> Traffic:
        """Start streams, all ports in the same tick, and return while they run.

        Parameters
        ----------
        streams : sequence of Stream
            Up to 16 a port; each says which port sends it.
        receive : int, mapping of int to int, or None
            Port that measures all of them, or those that each port sends; None: the one that the wire leads to.
        seconds : float or None
            Of the probe's time, after which `Traffic.wait` stops them; None: when they have sent all their frames.
        detach : bool
            They go on when this host lets go of the probe, or is gone: ``stop`` ends them, of any host.
        latency_range_ns : (int, int) or None
            Between what delays the histograms are; None: they follow the delays that come.

        Returns
        -------
        Traffic
            ``look``, ``wait``, ``stop``, ``start``, ``result``.

        Raises
        ------
        UsageError
            When the probe can't send or measure them, or those of a port add up to more than its line.
        ProbeError
            When a link is down.
        """
        options = SendOptions(receive, seconds, detach, latency_range_ns)
        found, neighbours = self.resolve(streams, receive)
        traffic = Traffic(self, found, options)
        traffic.tend = neighbours.tend
        traffic.begin()
        return traffic

    def host(self, port: int) -> NetworkHost:
        """Return the host of a test port: its addresses, whom it knows; UsageError where the probe has none there."""
        if port not in self._hosts:
            self._hosts[port] = NetworkHost(self, port)
        return self._hosts[port]

    def resolve(
        self, streams: Sequence[Stream], receive: int | Mapping[int, int] | None = None
    ) -> tuple[list[Stream], Neighbours]:
        """Return streams with the MAC addresses of their neighbours, and what keeps these: call its ``tend`` now and then.

        Ports get the addresses that streams come from, and go to. Raises UsageError where the probe has no hosts, or streams
        contradict each other; ProbeError, which names it, where a neighbour doesn't answer.
        """
        neighbours = Neighbours(self.host, lambda: self.timebase.now_ns)
        count = len(self.ports)
        receivers = receivers_of(streams, receive, lambda port: self.link.receive_port(port, count), count)
        return neighbours.resolved(streams, receivers), neighbours

    def replay(
        self,
        traces: "Trace | Mapping[int, Trace]",
        loops: int | None = 1,
        capture: CaptureRequest | str | Path | None = None,
        options: "ReplayOptions | None" = None,
        show: "Callable[[StreamLook], None] | None" = None,
    ) -> "ReplayResult":
        """Replay traces, all ports in the same tick, streamed from this host while they run; return what came of it.

        ``show`` and what is raised are as of ``run.replay``; ``loops`` and ``capture`` stand above those of ``options``.

        Parameters
        ----------
        traces : Trace or mapping of int to Trace
            By port; one alone is sent from port 0. Other processes stream: a script begins with ``if __name__ == "__main__":``.
        loops : int or None
            How often all is sent; None: until it is interrupted.
        capture : CaptureRequest, path or None
            What all ports see meanwhile: a path is that of a pcapng. With stamps, each frame's delay is in the result.
        """
        from liteprobe.host.run.replay import ReplayOptions, replay  # Its files take a while to load.

        chosen = replace(options or ReplayOptions(), loops=loops, capture=CaptureRequest.of(capture))
        return replay(self, traces if isinstance(traces, Mapping) else {0: traces}, chosen, show)

    def sets(
        self,
        sets: "Sets | Mapping[int, Sets]",
        options: "SetsOptions | None" = None,
        capture: CaptureRequest | str | Path | None = None,
        show: "Callable[[StreamLook], None] | None" = None,
    ) -> "SetsResult":
        """Send frames that the probe makes of sets, by port or from that of their stream; as of ``send_sets`` and ``replay``."""
        from liteprobe.host.run.sets import SetsOptions, send_sets

        return send_sets(self, sets, replace(options or SetsOptions(), capture=CaptureRequest.of(capture)), show)

    def stamp(
        self, session: "StampSession | str", show: "Callable[[TrafficLook], None] | None" = None
    ) -> "StampResult":
        """Measure the path to a reflector of STAMP and back; a session of 100 packets where an address alone is given.

        ``show`` is given looks at what is sent, now and then.

        Raises
        ------
        UsageError
            When the probe can't send, or not measure.
        ProbeError
            When a link is down.
        """
        from liteprobe.host.run.stamp import StampSession, run_stamp  # Its files take a while to load.

        return run_stamp(self, StampSession(session) if isinstance(session, str) else session, show)

    def emulate(self, network: "Network | None" = None) -> "Emulation":
        """Start a network between ports 0 and 1, or take over the one that runs; as of `Emulation`, which see."""
        from liteprobe.host.run.emulate import Emulation  # Its files take a while to load.

        return Emulation.started(self, network)

    def traffic(self) -> list[RunningStream]:
        """Return the streams of all ports, whoever started them: what they are, whether they run, what they have sent."""
        self.need(Part.STREAMS)
        ports = [port.transmit for port in self.ports]
        return [stream for port in ports if isinstance(port, StreamsPort) for stream in port.running()]

    def stop(self, port: int) -> bool:
        """End the program of a port after its present frame, whoever started it; return whether it had one.

        Raises
        ------
        UsageError
            When there is no such port.
        """
        self.need(Part.GENERATE)
        if not 0 <= port < len(self.ports):
            raise UsageError(f"there is no port {port}: give 0 to {len(self.ports) - 1}")
        return self.ports[port].halt(self.timebase)

    def trains(
        self,
        requests: Sequence[tuple[TrainProgram, int, int | None]],
        progress: Progress | None = None,
    ) -> list[TrainResult]:
        """Send several programs, their first SFDs in the same tick; each is (program, transmit, receive)."""
        self.need(Part.GENERATE)
        return self._train_run(requests, progress).run()

    def _train_run(
        self, requests: Sequence[tuple[TrainProgram, int, int | None]], progress: Progress | None = None
    ) -> TrainRun:
        """Return a run of trains, those with an address of their port with the MAC addresses that were found."""
        count = len(self.ports)
        routes = [
            Route(program, self, self, sent, self.link.receive_port(sent, count) if seen is None else seen)
            for program, sent, seen in requests
        ]
        if not any(route.program.source for route in routes):
            return TrainRun(routes, progress)
        found, neighbours = self.resolve(
            [route.asking for route in routes], {route.transmit: route.receive for route in routes}
        )
        programs = [replace(route.program, headers=one.headers) for route, one in zip(routes, found, strict=True)]
        known = [replace(route, program=program) for route, program in zip(routes, programs, strict=True)]
        return TrainRun(known, progress, neighbours.tend)

    def capture(
        self,
        request: CaptureRequest,
        progress: Callable[[int], None] | None = None,
        remark: Callable[[str], None] | None = None,
    ) -> CaptureResult:
        """Write what all ports see to files, until what was asked for has come; Ctrl-C ends it, too.

        Parameters
        ----------
        progress : callable or None
            Called with the frames written so far, now and then, also while none come. Where it raises `Interrupted` the
            capture ends, with what is on its way.
        remark : callable or None
            Called with a line on what isn't as fast as it could be.

        Raises
        ------
        UsageError
            When the probe has no part that captures, or can't do what is asked for.
        ProbeError
            When the probe, or the way of its blocks, breaks.
        OutputError
            When a file could not be written to the end; ``results`` has what came of the rest.
        """
        from liteprobe.host.capture.run import capture_probe  # Its files take a while to load.

        return capture_probe(self, request, progress, remark)

    def measure(self, port: int) -> PortMeasurement:
        """Return what a port has measured since its meters were cleared: counts, rates, streams, histograms.

        Which streams, and how histograms are sorted, is set by `Monitor`, which takes this probe.

        Raises
        ------
        UsageError
            When the probe has no such port, or no part that measures without records.
        """
        self.need(Part.MONITOR | Part.MEASURE)
        return Monitor(self, port).read()

    @property
    def clock(self) -> ProbeClock:
        """The clock's state, its reference and who disciplines it."""
        return self.timebase.clock


def lacking(url: str, parts: Part, part: Part, identifier: str = "") -> str:
    """Return that the probe at ``url``, which has ``parts``, has none of ``part``, and how to get one that has.

    ``identifier``: what the probe calls itself, which names its board.
    """
    names = " or ".join(str(one.name).lower() for one in part)
    own = preset_of(parts)
    having = [name for name, its_parts in PRESETS.items() if part & its_parts and name != own]
    fix = f"give it as preset={' or '.join(having)}" if is_simulated(url) else how_to_get(identifier, having)
    if not having:
        fix = "no preset of this version has it"
    if part == Part.HOSTS:
        fix = (
            "simulated ones of preset=tester and generator have it"
            if is_simulated(url)
            else f"build and load one with {OPTIONS[part]}, where its board has room"
        )
    if line_of_url(url) == TEN_GIGABIT:
        fix = "at 10 Gb/s there are trains, streams and replay alone so far; probes of sim:// have it, at 1 Gb/s"
        if part & (Part.MEASURE | Part.STREAMS):
            fix = "give it as preset=generator"
        if part & Part.REPLAY:
            fix = "give it as preset=replay"
    elif part & PRESETS[own]:  # Its board had no room, or it wasn't asked for.
        fix += f", or a {own} with {OPTIONS.get(part, '--traffic')}, where its board has room"
    return f"{url} was built without the part {names}: {fix}"


def _network_beside(url: str) -> "Network | None":
    """Return the network that the other probe of a ``sim://emulated`` is to emulate, checked before anything is built.

    Raises UsageError where the URL or the document can't be.
    """
    document = emulated_by(url)
    if document is None:
        return None
    from liteprobe.host.run.emulate import check_network
    from liteprobe.host.traffic.network.document import read_network  # Its files take a while to load.

    network = read_network(read_text(document, "a network"), str(document), document.parent)
    check_network(network)
    if network.changes:
        raise UsageError(f"{document}: nobody makes its changes in sim://emulated: leave out the key 'changes'")
    return network
