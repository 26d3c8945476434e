# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Pings from the hosts of ports for Open Traffic Generator: mailboxes send echo requests, a capture sees what answers.

Source: Open Traffic Generator models 1.61, control/action.yaml; RFC 792 (echo); RFC 4443, 4 (echo).
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from liteprobe.host.capture.session import WINDOW_NS
from liteprobe.host.otg.config import DeviceInterface, OtgSetup
from liteprobe.host.otg.messages import Given, OtgError, OtgReport, pb
from liteprobe.host.packets.batch import Batch
from liteprobe.host.probe import Probe
from liteprobe.host.run.hosts import ECHO_OCTETS, TRIES, echo_answer

#: What a capture lets through that is for pings alone.
ECHOES = "icmp or icmp6 or (vlan and (icmp or icmp6))"


@dataclass
class Ping:
    """An address that is asked, from an interface of a device."""

    interface: DeviceInterface
    port: int
    address: str
    path: str
    identifier: int = 0  # Of its echo requests; no two that are asked at once have the same.
    mac: str | None = None  # That its frames go to; None: nobody has it.
    tries: int = 0
    due_ns: int = 0  # When to ask again, or to give it up.
    has_answer: bool | None = None  # None: not known yet.


def pings_of(action: Any, setup: OtgSetup) -> list[Ping]:
    """Return what is to be asked; OtgError, with the path, where it can't be."""
    report = OtgReport()
    given: Given | None = Given(action, report)
    path = []
    for allowed in (("protocol",), ("ipv4", "ipv6"), ("ping",)):
        assert given is not None
        chosen = given.choice()
        given = given.part(chosen) if chosen in allowed else None
        path.append(chosen or "choice")
        if given is None:
            raise OtgError(
                [f"{'.'.join(path)}: liteprobe does no such action: give protocol.ipv4.ping or protocol.ipv6.ping"]
            )
    assert given is not None
    version = int(path[1][3:])
    found = [_ping(one, setup, version) for one in given.parts("requests")]
    if not found:
        given.error("requests", "there is nothing to ask: give src_name and dst_ip")
    report.check()
    return [one for one in found if one is not None]


def _ping(one: Given, setup: OtgSetup, version: int) -> Ping | None:
    name, text = str(one.value("src_name", "")), str(one.value("dst_ip", ""))
    own = {
        key: each
        for key, each in setup.interfaces.items()
        if key == each.name and ipaddress.ip_address(each.address).version == version
    }
    if name not in own:
        names = ", ".join(own) or "none is configured"
        one.error("src_name", f"there is no IPv{version} interface '{name}': give one of {names}")
        return None
    try:
        address = (ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address)(text)
    except ValueError:
        one.error("dst_ip", f"'{text[:60]}' is not an IPv{version} address")
        return None
    if address.is_multicast or address.is_unspecified or str(address) == own[name].address:
        one.error("dst_ip", f"{address} is not the address of another host: give that of one")
        return None
    return Ping(own[name], setup.ports[own[name].port_name], str(address), one.path)


def answer_of(pings: Sequence[Ping]) -> Any:
    """Return what came of pings, in the order in which they were asked for."""
    found = pb.ControlActionResponse()
    version = ipaddress.ip_address(pings[0].address).version
    found.response.choice = pb.ActionResponse.Choice.protocol
    protocol = found.response.protocol
    protocol.choice = getattr(pb.ActionResponseProtocol.Choice, f"ipv{version}")
    part = getattr(protocol, f"ipv{version}")
    part.choice = part.Choice.ping
    for one in pings:
        row = part.ping.responses.add(src_name=one.interface.name, dst_ip=one.address)
        row.result = row.Result.succeeded if one.has_answer else row.Result.failed
    return found


class Pings:
    """Sends echo requests and takes answers while a capture runs, until none of them is waited for any more."""

    def __init__(self) -> None:
        self._waiting: list[Ping] = []
        self._last = 0

    @property
    def is_waiting(self) -> bool:
        """Whether an answer may still come."""
        return bool(self._waiting)

    def has(self, one: Ping) -> bool:
        """Return whether this one is waited for."""
        return one in self._waiting

    def add(self, pings: Sequence[Ping]) -> None:
        """Wait for these."""
        for one in pings:
            self._last = self._last % 0xFFFF + 1
            one.identifier = self._last
        self._waiting += [one for one in pings if one.has_answer is None]

    def clear(self) -> None:
        """Wait for none any more: what takes answers has ended."""
        self._waiting.clear()

    def fail(self) -> None:
        """Give up all that wait for an answer: the hosts that asked are gone."""
        for one in self._waiting:
            one.has_answer = bool(one.has_answer)
        self.clear()

    def tend(self, probe: Probe) -> None:
        """Ask what is due; what was asked often enough has no answer."""
        for one in self._waiting:
            now_ns = probe.timebase.now_ns
            if one.has_answer is not None or now_ns < one.due_ns:
                continue
            if one.tries == TRIES:
                one.has_answer = False
                continue
            assert one.mac is not None
            one.tries += 1
            one.due_ns = now_ns + round(1e9 * probe.link.arrival_timeout_s)
            one.due_ns += WINDOW_NS * (one.tries == TRIES)  # For so long a capture may hold an answer back.
            probe.host(one.port).echo(one.address, one.mac, one.identifier, one.tries)
        self._waiting = [one for one in self._waiting if one.has_answer is None]

    def write(self, batch: Batch) -> None:
        """Take records: what answers is noted."""
        if not self._waiting:
            return
        batch = batch.select(~batch.is_gap)
        for number in np.flatnonzero(batch.heads["length"] >= ECHO_OCTETS).tolist():
            octets = batch.octets(number)
            for one in self._waiting:
                answer = echo_answer(octets, one.interface.address, one.address)
                if answer is not None and answer[0] == one.identifier and 1 <= answer[1] <= one.tries:
                    one.has_answer = True
