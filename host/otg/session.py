# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Does with a probe what clients of Open Traffic Generator ask for: configuration, transitions of state, metrics, captures.

All of it runs in the thread that has the probe. Something runs on it while a flow transmits, is paused, or a port captures.

Source: Open Traffic Generator models 1.61, control/, config/.
"""

import ipaddress
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from liteprobe.cores.formats import Part
from liteprobe.host.base.errors import BusyError, LeaseLostError, ProbeError, UsageError
from liteprobe.host.capture.request import CaptureRequest, CaptureSettings
from liteprobe.host.capture.run import capture_probe
from liteprobe.host.capture.session import WINDOW_NS, Sink
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.measure.monitor import Monitor
from liteprobe.host.otg.captures import PortFile, PortSink
from liteprobe.host.otg.config import DeviceInterface, OtgPorts, OtgSetup, setup_of
from liteprobe.host.otg.flows import OtgFlow, TimeScale
from liteprobe.host.otg.messages import Given, OtgError, OtgReport, pb
from liteprobe.host.otg.metrics import FlowState, PortView, flow_metrics, port_metrics
from liteprobe.host.otg.pings import ECHOES, Ping, Pings, answer_of, pings_of
from liteprobe.host.packets.filter.expression import parse
from liteprobe.host.probe import Probe
from liteprobe.host.run.figures import StreamFigures
from liteprobe.host.run.streams import Traffic
from liteprobe.host.serve.worker import ProbeRun, ProbeWorker, Show

STEP_LOOKS = 2  # Looks of the link that time passes by while nothing is asked.
LOOK_S = 0.25  # From a look at what runs to the next, while nobody asks (time of this host).
PACE_SECONDS = 0.0002  # By which the pace of a simulated probe is measured (its time).
CAPTURE_MOST = 1 << 30
SNAP_LEAST = 128  # Octets that are taken of each frame, so that answers to pings are known.


@dataclass(frozen=True)
class SessionSettings:
    """Says how a session treats its clients."""

    scale: TimeScale = field(default_factory=TimeScale)
    replaces: bool = False  # A configuration ends what runs; else it is refused meanwhile.
    idle_s: float = 3600.0  # After so long without a request, what has no end is stopped, and the probe is free.
    capture_most: int = CAPTURE_MOST  # Octets that a port's capture may have.


@dataclass
class _Sending:
    """Flows that were started together."""

    traffic: Traffic
    names: tuple[str, ...]
    paused: set[str]
    stopped: set[str]
    rows: tuple[StreamFigures, ...] = ()
    is_over: bool = False


class Session:
    """Keeps what a probe is configured for, and has it done; all methods are called in the thread of the probe.

    Parameters
    ----------
    worker : ProbeWorker
        Has the probe.
    ports : OtgPorts
        By which locations are understood.
    folder : Path
        For captures; it is theirs alone.
    """

    def __init__(self, worker: ProbeWorker, ports: OtgPorts, folder: Path, settings: SessionSettings) -> None:
        self._worker, self._ports, self._folder, self._settings = worker, ports, folder, settings
        self.config = pb.Config()
        self.setup = OtgSetup()
        self._sending: _Sending | None = None
        self._files: dict[int, PortFile] = {}  # By the number of the port.
        self._pings = Pings()
        self._neighbours: dict[
            str, str | None
        ] = {}  # MAC address of each interface's gateway; None: it did not answer.
        self._tend_ns = 0
        self._asked_s = time.monotonic()
        self._look_s = 0.0
        self._before: dict[str, tuple[int, dict[str, int]]] = {}  # Of ports: when it was, and their counts.
        self._said: list[str] = []  # For the next answer that has place for it.
        self.pace: float | None = (
            None  # Seconds of this host that one of a simulated probe takes; None: it is not simulated.
        )

    # Configuration ------------------------------------------------------------------------------

    def set_config(self, probe: Probe, config: Any) -> list[str]:
        """Take a configuration; return warnings.

        Raises OtgError where it can't be, or while flows transmit.
        """
        self._hear()
        setup = setup_of(config, self._ports, self._settings.scale)
        self._check_filters(setup)
        self._check_parts(probe, setup)
        if self._is_sending:
            names = ", ".join(f"'{name}'" for name in self._sending.names) if self._sending else ""
            if not self._settings.replaces:
                raise OtgError(
                    [f"flows {names} transmit: stop them first (control/state, traffic), or serve with --replace"], 409
                )
            self._stop_all("another configuration came")
        for file in self._files.values():
            file.close()
        self._pings.fail()
        self._files, self._sending, self._neighbours, self._before = {}, None, {}, {}
        self.config, self.setup = config, setup
        warnings = [*setup.warnings, *self._pace_words(probe)]
        if setup.auto_start:
            warnings += self._start_hosts(probe)
        return warnings

    def update_config(self, probe: Probe, update: Any) -> list[str]:
        """Change the rate or the size of flows; as of ``set_config``."""
        report = OtgReport()
        given = Given(update, report)
        if given.choice() != "flows" or not (flows := given.part("flows")):
            raise OtgError(["choice: rate and size of flows can be updated: give flows"])
        names = flows.values("property_names")
        changed = pb.Config()
        changed.CopyFrom(self.config)
        known = {flow.name: flow for flow in changed.flows}
        for number, flow in enumerate(update.flows.flows):
            if flow.name not in known:
                report.error(f"flows.flows[{number}].name", f"there is no flow '{flow.name}'")
                continue
            for name in names:
                known[flow.name].ClearField(name)
                if flow.HasField(name):
                    getattr(known[flow.name], name).CopyFrom(getattr(flow, name))
        if report.errors:
            raise OtgError(report.errors)
        return self.set_config(probe, changed)

    def append_config(self, probe: Probe, append: Any) -> list[str]:
        """Add flows; as of ``set_config``."""
        changed = pb.Config()
        changed.CopyFrom(self.config)
        for one in append.config_append_list:
            changed.flows.extend(one.flows)
        return self.set_config(probe, changed)

    def delete_config(self, probe: Probe, delete: Any) -> list[str]:
        """Take flows away; as of ``set_config``."""
        changed = pb.Config()
        changed.CopyFrom(self.config)
        names = [name for one in delete.config_delete_list for name in one.flows]
        known = {flow.name for flow in changed.flows}
        if unknown := [name for name in names if name not in known]:
            raise OtgError([f"config_delete_list: there is no flow '{name}'" for name in unknown])
        kept = [flow for flow in changed.flows if flow.name not in names]
        del changed.flows[:]
        changed.flows.extend(kept)
        return self.set_config(probe, changed)

    def get_config(self) -> Any:
        """Return the configuration as it was given."""
        self._hear()
        return self.config

    # Transitions --------------------------------------------------------------------------------

    def set_state(self, probe: Probe, state: Any) -> list[str] | None:
        """Start or stop flows, captures, protocols, links; return warnings. None: pings must end first, ask again."""
        self._hear()
        report = OtgReport()
        given = Given(state, report)
        kind = given.choice()
        part = given.part(kind) if kind in ("traffic", "port", "protocol") else None
        if part is None:
            raise OtgError(["choice: give traffic, port or protocol"])
        what = part.choice()
        known = {"traffic": ("flow_transmit",), "port": ("capture", "link"), "protocol": ("all",)}[kind]
        body = part.part(what) if what in known else None
        if body is None:
            raise OtgError([f"{kind}.{what}: liteprobe does not support this: give {' or '.join(known)}"])
        wanted = str(body.value("state", ""))
        names = body.values("flow_names" if kind == "traffic" else "port_names") if kind != "protocol" else []
        report.check()
        if what == "capture" and wanted == "start" and self._takes_echoes_alone:
            return None
        said = self._taken()
        if what == "flow_transmit":
            return said + self._transmit(probe, wanted, names)
        if what == "capture":
            return said + self._capture(probe, wanted, names)
        return said + (self._link(probe, wanted, names) if what == "link" else self._protocols(probe, wanted))

    def _transmit(self, probe: Probe, wanted: str, names: Sequence[str]) -> list[str]:
        flows = {flow.name: flow for flow in self.setup.flows}
        _check_names("traffic.flow_transmit.flow_names", names, flows, "flow")
        chosen = [flow for flow in self.setup.flows if not names or flow.name in names]
        if wanted == "start":
            return self._start(probe, chosen)
        if wanted not in ("stop", "pause", "resume"):
            raise OtgError(
                [f"traffic.flow_transmit.state: '{wanted}' is not a state: give start, stop, pause or resume"]
            )
        self._advance(probe)
        sending = self._sending
        if sending is None or sending.is_over:
            return (
                []
                if wanted == "stop"
                else [f"traffic.flow_transmit: nothing transmits, so there is nothing to {wanted}"]
            )
        for name in [flow.name for flow in chosen if flow.name in sending.names]:
            if wanted == "resume":
                if name in sending.paused | sending.stopped:
                    sending.traffic.start(name)
                sending.paused.discard(name)
                sending.stopped.discard(name)
            else:
                sending.traffic.stop(name)
                sending.paused.discard(name)
                (sending.paused if wanted == "pause" else sending.stopped).add(name)
        if sending.stopped >= set(sending.names):
            self._end_traffic()
        return []

    def _start(self, probe: Probe, chosen: Sequence[OtgFlow]) -> list[str]:
        if not chosen:
            raise OtgError(["traffic.flow_transmit: no flow is configured: set a configuration with flows first"])
        self._advance(probe)
        if self._is_sending:
            assert self._sending
            busy = ", ".join(f"'{name}'" for name in self._sending.names)
            raise OtgError([f"traffic.flow_transmit: flows {busy} transmit or are paused: stop them first"], 409)
        warnings = []
        if any(flow.devices for flow in chosen):
            warnings = self._start_hosts(probe)
        streams = [self._with_mac(flow) for flow in chosen]
        receivers = {flow.stream.port: self.setup.ports[flow.rx_name] for flow in chosen if flow.rx_name is not None}
        count = len(probe.ports)
        for flow in chosen:
            receivers.setdefault(flow.stream.port, probe.link.receive_port(flow.stream.port, count))
        for number in self.setup.ports.values():
            if probe.parts & (Part.MONITOR | Part.MEASURE):
                Monitor(probe, number).clear()
        self._before = {}
        traffic = probe.send(streams, receivers)
        self._sending = _Sending(traffic, tuple(flow.name for flow in chosen), set(), set())
        self._begin(probe)
        return [*warnings, *self._pace_words(probe)]

    def _with_mac(self, flow: OtgFlow) -> Any:
        if flow.devices is None or not flow.needs_mac:
            return flow.stream
        mac = self._neighbours.get(flow.devices[0])
        if mac is None:
            one = self.setup.interfaces[flow.devices[0]]
            raise OtgError(
                [
                    f"{flow.path}.tx_rx.device: gateway {one.gateway} of '{one.name}' did not answer: see to the other end"
                ],
                500,
                "internal",
            )
        return replace(flow.stream, headers=replace(flow.stream.headers, destination_mac=mac))

    def _protocols(self, probe: Probe, wanted: str) -> list[str]:
        if wanted == "start":
            return self._start_hosts(probe)
        if wanted != "stop":
            raise OtgError([f"protocol.all.state: '{wanted}' is not a state: give start or stop"])
        self._pings.fail()
        for name in self.setup.hosts:
            host = probe.host(self.setup.ports[name])
            host.set(type(host.settings)())
        self._neighbours = {}
        return []

    def _start_hosts(self, probe: Probe) -> list[str]:
        """Give ports their addresses, and find the gateways of their interfaces; return what was not found."""
        missing = []
        for name, settings in self.setup.hosts.items():
            probe.host(self.setup.ports[name]).set(settings)
        for one in self._own_interfaces():
            if one.gateway_mac is not None:
                self._neighbours[one.name] = one.gateway_mac
                continue
            if self._neighbours.get(one.name):
                continue
            try:
                self._neighbours[one.name] = probe.host(self.setup.ports[one.port_name]).resolve(one.gateway)
            except (ProbeError, UsageError) as error:
                self._neighbours[one.name] = None
                missing.append(f"{one.path}.gateway: {error}")
        return missing

    def _own_interfaces(self) -> list[DeviceInterface]:
        return [one for name, one in self.setup.interfaces.items() if name == one.name]

    def _link(self, probe: Probe, wanted: str, names: Sequence[str]) -> list[str]:
        _check_names("port.link.port_names", names, self.setup.ports, "port")
        if wanted not in ("up", "down"):
            raise OtgError([f"port.link.state: '{wanted}' is not a state: give up or down"])
        for name in names or self.setup.ports:
            try:
                probe.link.set_link(self.setup.ports[name], wanted == "up")
            except UsageError as error:
                raise OtgError([f"port.link: {error}"]) from None
        return []

    # Actions ------------------------------------------------------------------------------------

    def ping(self, probe: Probe, action: Any) -> list[Ping]:
        """Ask hosts, each from an interface of a device; `pinged` has what came of it."""
        self._hear()
        pings = pings_of(action, self.setup)
        for part in (Part.HOSTS, Part.MONITOR):
            probe.need(part)
        if any(probe.host(self.setup.ports[name]).settings != one for name, one in self.setup.hosts.items()):
            self._start_hosts(probe)
        for one in pings:
            one.mac = self._next_mac(probe, one)
            one.has_answer = None if one.mac else False
        self._pings.add(pings)
        if self._pings.is_waiting:
            self._begin(probe)
        return pings

    def pinged(self, pings: Sequence[Ping]) -> Any:
        """Return what came of pings; None: answers may still come, ask again."""
        self._hear()
        waiting = [one for one in pings if one.has_answer is None]
        if not waiting:
            return answer_of(pings)
        if not all(self._pings.has(one) for one in waiting):
            raise ProbeError("the capture that takes answers to pings has ended: see to the probe, and ask again")
        return None

    def _next_mac(self, probe: Probe, one: Ping) -> str | None:
        """Return the address that frames to a host go to: its own, or that of the gateway; None: nobody answers for it."""
        own = one.interface
        network = ipaddress.ip_interface(f"{own.address}/{own.prefix}").network
        address = one.address if ipaddress.ip_address(one.address) in network else own.gateway
        if address == own.gateway and (known := self._neighbours.get(own.name)):
            return known
        try:
            return probe.host(self.setup.ports[own.port_name]).resolve(address)
        except UsageError as error:
            raise OtgError([f"{one.path}.dst_ip: {error}"]) from None
        except ProbeError:
            return None

    # Captures -----------------------------------------------------------------------------------

    def _capture(self, probe: Probe, wanted: str, names: Sequence[str]) -> list[str]:
        _check_names("port.capture.port_names", names, self.setup.ports, "port")
        asked = self.setup.captures
        chosen = list(names or asked)
        if without := [name for name in chosen if name not in asked]:
            raise OtgError(
                [f"port.capture.port_names: port '{name}' has no capture in the configuration" for name in without]
            )
        if not chosen:
            raise OtgError(["port.capture: the configuration has no captures: add them, with the names of ports"])
        if wanted == "start":
            self._check_snaps(chosen)
            for name in chosen:
                number = self.setup.ports[name]
                if number in self._files:
                    self._files[number].close()
                self._files[number] = PortFile(self._folder, asked[name], self._settings.capture_most)
            self._begin(probe)
            return self._pace_words(probe)
        if wanted != "stop":
            raise OtgError([f"port.capture.state: '{wanted}' is not a state: give start or stop"])
        now_ns = probe.timebase.now_ns
        for name in chosen:
            file = self._files.get(self.setup.ports[name])
            if file and file.is_open and file.ends_ns is None:
                file.ends_ns = now_ns
        return []

    def _check_snaps(self, chosen: Sequence[str]) -> None:
        """Raise OtgError where a capture that runs takes less of each frame than another one needs."""
        wanted = [self.setup.captures[name].snap_length for name in chosen]
        if (
            self._snap is not None
            and self._wants_frames
            and (None in wanted or max(one or 0 for one in wanted) > self._snap)
        ):
            raise OtgError(
                [
                    f"port.capture: a capture takes {self._snap} octets of each frame, and another needs more: start both by "
                    "one request"
                ],
                409,
            )

    def captured(self, probe: Probe, request: Any) -> Iterator[bytes] | None:
        """Return the octets of a port's capture, which ends by that; None: frames are still on their way, ask again."""
        self._hear()
        report = OtgReport()
        given = Given(request, report)
        name = str(given.value("port_name", ""))
        first, count = _slice(given)
        report.check()
        if name not in self.setup.ports:
            raise OtgError([f"port_name: there is no port '{name}': give one of {', '.join(self.setup.ports)}"])
        file = self._files.get(self.setup.ports[name])
        if file is None:
            raise OtgError([f"port_name: nothing was captured on port '{name}': start a capture there first"])
        if file.is_open:
            if file.ends_ns is None:
                file.ends_ns = probe.timebase.now_ns
            return None
        if file.dropped:
            self._said.append(
                f"the capture of port '{name}' left out {file.dropped:,} frames: it may have "
                f"{self._settings.capture_most:,} octets (--capture-limit)"
            )
        return file.pieces(first, count)

    @property
    def sinks(self) -> Sequence[Sink]:
        """Takers of records, for the capture that this session is the companion of."""
        return [PortSink(self._files), self._pings]

    def is_wanted(self) -> bool:
        """Do what else there is to do while a capture runs; return whether a port still captures."""
        assert self._acting
        probe, show = self._acting
        self._step(probe, show)
        self._pings.tend(probe)
        waiting = [file for file in self._files.values() if file.is_open and file.ends_ns is not None]
        if waiting and self._wants_capture:  # The others go on: what is on the way comes within the window.
            now_ns = probe.timebase.now_ns
            for file in waiting:
                if file.ends_ns is not None and now_ns > file.ends_ns + WINDOW_NS:
                    file.close()
        return self._wants_capture

    def stop(self) -> None:
        """End what runs: a signal came."""
        self._worker.stop("interrupted")
        for file in self._files.values():
            file.close()

    @property
    def _wants_frames(self) -> bool:
        return any(file.is_open and file.ends_ns is None for file in self._files.values())

    @property
    def _wants_capture(self) -> bool:
        return self._wants_frames or self._pings.is_waiting

    # What runs ----------------------------------------------------------------------------------

    _acting: tuple[Probe, Show] | None = None
    _snap: int | None = None  # Octets of each frame that the capture which runs takes; None: all.
    _takes_echoes_alone = False  # The capture that runs is for pings.

    @property
    def _is_sending(self) -> bool:
        return self._sending is not None and not self._sending.is_over

    def _begin(self, probe: Probe) -> None:
        """Have the probe looked after, unless it is."""
        if self._acting is None and not self._worker.is_busy:
            self._worker.start(ProbeRun("otg", "otg", "Open Traffic Generator", "clients", self._act))

    def _act(self, probe: Probe, show: Show) -> None:
        self._acting = (probe, show)
        try:
            while self._is_sending or self._wants_capture:
                if self._wants_capture:
                    self._run_capture(probe)
                else:
                    self._step(probe, show)
                    self._pass_time(probe)
        except BaseException:
            self._stop_all("it ended")
            raise
        finally:
            self._acting = None
            self._pings.clear()
            for file in self._files.values():
                file.close()

    def _run_capture(self, probe: Probe) -> None:
        """Capture until no port does any more, and take what is on its way."""
        is_for_echoes = self._takes_echoes_alone = not self._wants_frames
        snaps = [file.asked.snap_length for file in self._files.values() if file.is_open]
        self._snap = None if None in snaps else max([SNAP_LEAST, *(one or 0 for one in snaps)])
        settings = CaptureSettings() if self._snap is None else CaptureSettings(snap_length=self._snap)
        request = CaptureRequest(settings=settings, filter=ECHOES if is_for_echoes else None, is_for_sinks=True)
        try:
            found = capture_probe(probe, request, companion=self)
        finally:
            self._takes_echoes_alone = False
        if not is_for_echoes and (found.frames_lost or not found.is_complete):
            self._said.append(f"frames are missing in captures: {found.counts}")
        for file in self._files.values():
            if file.ends_ns is not None:
                file.close()

    def _step(self, probe: Probe, show: Show) -> None:
        """Do what clients ask for, look at flows now and then, and end those that nobody watches."""
        show({})
        now_s = time.monotonic()
        if now_s < self._look_s:
            return
        self._look_s = now_s + LOOK_S
        if self._is_sending:
            self._advance(probe)
        if now_s - self._asked_s > self._settings.idle_s:
            self._abandon(probe)

    def _abandon(self, probe: Probe) -> None:
        """Stop what has no end: nobody asks for it any more, and others wait for the probe."""
        what = []
        sending = self._sending
        if sending and self._is_sending and (sending.paused or any(row.stream.count is None for row in sending.rows)):
            self._end_traffic()
            what.append("flows")
        if self._wants_frames:
            what.append("captures")
            now_ns = probe.timebase.now_ns
            for file in self._files.values():
                file.ends_ns = now_ns if file.ends_ns is None else file.ends_ns
        if what:
            self._said.append(
                f"{' and '.join(what)} were stopped: no request came for {self._settings.idle_s:,g} s (--idle)"
            )

    def _pass_time(self, probe: Probe) -> None:
        probe.wait(STEP_LOOKS * probe.link.look_ns / 1e9)

    def _advance(self, probe: Probe) -> None:
        """Look at flows, and take their result when they have ended."""
        sending = self._sending
        if sending is None or sending.is_over:
            return
        look = sending.traffic.look()
        sending.rows = look.rows
        if not look.is_running and not sending.paused:
            self._end_traffic()

    def _end_traffic(self) -> None:
        sending = self._sending
        assert sending
        if any(row.is_active for row in sending.rows) or sending.paused or sending.stopped:
            sending.traffic.stop()
        result = sending.traffic.result()
        sending.rows, sending.is_over = result.rows, True
        sending.paused.clear()
        self._said += [note for note in result.notes if "no probe header" not in note]

    def _stop_all(self, why: str) -> None:
        """End flows and captures."""
        if self._is_sending:
            assert self._sending
            self._sending.traffic.stop()
            self._sending.is_over = True
        for file in self._files.values():
            file.close()

    # Metrics ------------------------------------------------------------------------------------

    def metrics(self, probe: Probe, request: Any) -> Any:
        """Return metrics of ports or flows."""
        self._hear()
        report = OtgReport()
        given = Given(request, report)
        kind = given.choice("port")
        if kind not in ("port", "flow"):
            raise OtgError([f"{kind}: liteprobe does not support these metrics: give port or flow"])
        body = given.part(kind)
        names = body.values(f"{kind}_names") if body else []
        columns = body.values("column_names" if kind == "port" else "metric_names") if body else []
        if body and kind == "flow" and (tagged := body.part("tagged_metrics")):
            tagged.value("include")
            tagged.value("include_empty_metrics")
        report.check()
        self._advance(probe)
        found = pb.MetricsResponse()
        if kind == "flow":
            flows = {flow.name: flow for flow in self.setup.flows}
            _check_names("flow.flow_names", names, flows, "flow")
            found.choice = pb.MetricsResponse.Choice.flow_metrics
            chosen = [flow for flow in self.setup.flows if not names or flow.name in names]
            flow_metrics(found, [self._state_of(flow) for flow in chosen], self.setup, self._settings.scale, columns)
            return found
        _check_names("port.port_names", names, self.setup.ports, "port")
        found.choice = pb.MetricsResponse.Choice.port_metrics
        sent: dict[int, list[FlowState]] = {}
        for flow in self.setup.flows:
            sent.setdefault(flow.stream.port, []).append(self._state_of(flow))
        capturing = {number for number, file in self._files.items() if file.is_open and file.ends_ns is None}
        chosen_ports = {name: number for name, number in self.setup.ports.items() if not names or name in names}
        view = PortView(probe, self.setup, self._settings.scale, sent, capturing, self._before)
        port_metrics(found, chosen_ports, view, columns)
        return found

    def _state_of(self, flow: OtgFlow) -> FlowState:
        sending = self._sending
        if sending is None or flow.name not in sending.names:
            return FlowState(flow, "stopped", None, False)
        row = next((row for row in sending.rows if row.name == flow.name), None)
        state = "started"
        if flow.name in sending.paused:
            state = "paused"
        elif sending.is_over or flow.name in sending.stopped or (row is not None and not row.is_active):
            state = "stopped"
        return FlowState(flow, state, row, sending.is_over, sending.traffic)

    def states(self, request: Any) -> Any:
        """Return the neighbours of interfaces."""
        self._hear()
        report = OtgReport()
        given = Given(request, report)
        kind = given.choice("ipv4_neighbors")
        if kind not in ("ipv4_neighbors", "ipv6_neighbors"):
            raise OtgError([f"{kind}: liteprobe does not support these states: give ipv4_neighbors or ipv6_neighbors"])
        body = given.part(kind)
        names = body.values("ethernet_names") if body else []
        report.check()
        found = pb.StatesResponse()
        found.choice = getattr(pb.StatesResponse.Choice, kind)
        family = 4 if kind == "ipv4_neighbors" else 6
        _check_names(
            f"{kind}.ethernet_names", names, {one.ethernet: one for one in self._own_interfaces()}, "interface"
        )
        for one in self._own_interfaces():
            if (":" in one.address) != (family == 6) or (names and one.ethernet not in names):
                continue
            row = getattr(found, kind).add()
            row.ethernet_name = one.ethernet
            setattr(row, f"ipv{family}_address", one.gateway)
            if mac := self._neighbours.get(one.name):
                row.link_layer_address = mac
        return found

    # # #

    def _hear(self) -> None:
        self._asked_s = time.monotonic()

    def _taken(self) -> list[str]:
        said, self._said = self._said, []
        return said

    def _pace_words(self, probe: Probe) -> list[str]:
        """Return how time passes for a client, where that is not as it seems."""
        if self.pace is None and isinstance(probe.link, SimLink):
            start_s = time.perf_counter()
            probe.wait(PACE_SECONDS)
            self.pace = (time.perf_counter() - start_s) / PACE_SECONDS
        factor = self._settings.scale.factor
        words = []
        if factor != 1:
            words.append(
                f"time scale {float(factor):g}: a second of the client is {1 / float(factor):g} s of the probe; rates and times "
                "asked for are those of the client, so are rates in metrics; latency and time stamps are the probe's own"
            )
        if self.pace is not None and self.pace / float(factor) > 1.5:
            words.append(
                f"this probe is simulated: a second of traffic takes {self.pace / float(factor):,.0f} s"
                + ("" if factor != 1 else "; --time-scale of the server makes it shorter")
            )
        return words

    def _check_filters(self, setup: OtgSetup) -> None:
        for name, one in setup.captures.items():
            try:
                if one.filter:
                    parse(one.filter, True)
            except (UsageError, ProbeError) as error:
                raise OtgError([f"captures: the filter of port '{name}' can't be: {error}"]) from None

    def _check_parts(self, probe: Probe, setup: OtgSetup) -> None:
        """Raise OtgError where the probe lacks a part; the message names presets that have it."""
        wanted = []
        if setup.flows:
            wanted.append(("flows", Part.STREAMS))
        if any(flow.is_measured for flow in setup.flows):
            wanted.append(("flows", Part.MEASURE | Part.MONITOR))
        if setup.captures:
            wanted.append(("captures", Part.MONITOR))
        if setup.hosts:
            wanted.append(("devices", Part.HOSTS))
        errors = []
        for path, part in wanted:
            try:
                probe.need(part)
            except UsageError as error:
                errors.append(f"{path}: {error}")
        if errors:
            raise OtgError(errors)


def _check_names(path: str, names: Sequence[str], known: Any, what: str) -> None:
    """Raise OtgError where a name is of nothing."""
    errors = [
        f"{path}[{number}]: there is no {what} '{name}': give one of {', '.join(known) or 'none is configured'}"
        for number, name in enumerate(names)
        if name not in known
    ]
    if errors:
        raise OtgError(errors)


def _slice(given: Given) -> tuple[int, int | None]:
    """Return the first frame that is wanted of a capture, from 0, and how many; None: all."""
    packets = given.part("packets")
    if packets is None or packets.choice("all") == "all":
        return 0, None
    chosen = packets.part("slice")
    if chosen is None or chosen.choice("initial") != "initial":
        packets.error("slice.choice", "give initial")
        return 0, None
    initial = chosen.part("initial")
    start, count = (
        int(initial.value(name, usual)) if initial else usual for name, usual in (("start", 1), ("count", 100))
    )
    if start < 1 or count < 1:
        chosen.error("initial", "start and count are 1 or more")
    return start - 1, count


def error_of(error: BaseException) -> OtgError:
    """Return an error of the library as one of Open Traffic Generator."""
    if isinstance(error, OtgError):
        return error
    if isinstance(error, BusyError | LeaseLostError):
        return OtgError([str(error)], 409, "internal")
    if isinstance(error, UsageError):
        return OtgError([str(error)])
    if isinstance(error, ProbeError):
        return OtgError([str(error)], 503 if getattr(error, "exit_code", 1) == 3 else 500, "internal")
    return OtgError([f"{error!r}: report this with what was asked for"], 500, "internal")
