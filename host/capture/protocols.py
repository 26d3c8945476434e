# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Counts what frames carry, by the headers that a probe's parser makes of them: of all that a probe keeps, or of a sample.

The meters of a probe don't count by protocol. Its records say what each frame is, so a capture of headers alone, which no file
has, is counted on this host; how many of all frames these are stands beside each figure.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import IpProtocol, Layer3, UnifiedFlag
from liteprobe.host.analysis.columns import Column, Columns
from liteprobe.host.analysis.confidence import share_interval
from liteprobe.host.base.errors import UsageError
from liteprobe.host.capture.decode import BlockDecoder
from liteprobe.host.capture.request import SHIFT_MOST, CaptureSettings, Keep, Sampling, Transport
from liteprobe.host.capture.ring import CaptureRing, clear_filter
from liteprobe.host.capture.write.lines import PROTOCOL_NAMES, type_name
from liteprobe.host.measure.percentiles import Bounds
from liteprobe.host.packets import unified
from liteprobe.host.packets.batch import Batch
from liteprobe.host.packets.filter.words import PORTS

if TYPE_CHECKING:
    from liteprobe.host.capture.live import CaptureDevice

ROWS_MOST = 64  # Of a port: whoever sends random types must not fill this host.
TAKE_S = 0.05  # Of this host, that one look at the ring takes at the most: those who look at a probe wait for it.
UNREAD, OTHERS = "header left out", "others"
_WORDS = {Layer3.IPV4: "IPv4", Layer3.IPV6: "IPv6", Layer3.ARP: "ARP"}
_OF_SERVICES = {IpProtocol.TCP: "tcp", IpProtocol.UDP: "udp", IpProtocol.SCTP: "sctp"}
#: Names of services by protocol and port, the first where a port has several.
_SERVICES = {
    protocol: {number: name for name, number in reversed(PORTS[word].items())}
    for protocol, word in _OF_SERVICES.items()
}
#: Types of layer 3 whose headers could not be read.
_CUT = {
    0x0800: "IPv4, not whole",
    0x86DD: "IPv6, not whole",
    0x0806: "ARP, not of IPv4",
    0x8847: "MPLS",
    0x8848: "MPLS",
}
_NO_PORT = 1 << 16
_IS_KNOWN = np.zeros((256, 1 << 16), bool)
for _protocol, _names in _SERVICES.items():
    _IS_KNOWN[_protocol, list(_names)] = True


@dataclass(frozen=True)
class ProtocolRow:
    """Says how many frames of a port carried a protocol, of those that were seen, and which share of all that may be."""

    port: int
    protocol: str
    frames: int
    octets: int  # Without FCS.
    share: Bounds  # 95 % interval of the share of all frames of the port.


#: Of a row, for every reader of it.
PROTOCOLS = Columns(
    Column("port"),
    Column("protocol", "protocol"),
    Column("frames", "frames", metric="frames", about="Frames of a port that were looked at, by what they carry"),
    Column("octets", "octets", metric="bytes", about="Octets of the frames that were looked at, without FCS"),
    Column("share", "% of all", "", 1, 0.01),
)


@dataclass(frozen=True)
class ProtocolTable:
    """Holds what frames carry, as of one look: rows, most frames first, and of each port how many frames of all were seen."""

    one_of: int  # One frame in so many was to be kept.
    seen: dict[int, int]  # By port.
    of: dict[int, int]  # All frames of the port since the same time, damaged ones too.
    rows: list[ProtocolRow]

    def said(self, port: int) -> str:
        """Return how many frames of a port these are.

        >>> ProtocolTable(16, {0: 10}, {0: 163}, []).said(0)
        'of 10 of 163 frames (one in 16)'
        """
        seen, of = self.seen.get(port, 0), self.of.get(port, 0)
        return f"of {seen:,} of {of:,} frames" + (f" (one in {self.one_of})" if self.one_of > 1 else "")

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        rows = [{key: column.plain(row) for key, column in PROTOCOLS.items()} for row in self.rows]
        ports = [{"port": port, "seen": self.seen.get(port, 0), "of": of} for port, of in self.of.items()]
        return {"one_of": self.one_of, "ports": ports, "rows": rows}


class ProtocolCounts:
    """Counts records by port and protocol, as they come."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}  # By key.
        self._found: dict[int, dict[str, list[int]]] = {}  # By port and protocol: frames, octets.

    def write(self, batch: Batch) -> None:
        """Take records."""
        if not len(batch):
            return
        has_header, is_frame = batch.has_header, ~batch.is_gap
        keys = np.full(len(batch), -1, np.int64)
        keys[has_header] = _keys(batch.headers())
        keys, lengths, ports = keys[is_frame], batch.heads["length"][is_frame], batch.port[is_frame]
        kinds, which = np.unique(keys << 4 | ports, return_inverse=True)
        frames = np.bincount(which, minlength=len(kinds)).tolist()
        octets = np.bincount(which, lengths, minlength=len(kinds)).tolist()
        for kind, count, total in zip(kinds.tolist(), frames, octets, strict=True):
            self._add(kind & 15, kind >> 4, count, int(total))

    def _add(self, port: int, key: int, frames: int, octets: int) -> None:
        of_port = self._found.setdefault(port, {})
        if (name := self._names.get(key)) is None:
            name = _name(key)
            if len(self._names) < 16 * ROWS_MOST:
                self._names[key] = name
        if name not in of_port and len(of_port) >= ROWS_MOST - 1:
            name = OTHERS
        counted = of_port.setdefault(name, [0, 0])
        counted[0] += frames
        counted[1] += octets

    def table(self, frames: Mapping[int, int], one_of: int = 1) -> ProtocolTable:
        """Return what has come of the ports of ``frames``: all frames of each, those that were left out too."""
        by_port = {port: self._found.get(port, {}) for port in sorted(frames)}
        seen = {port: sum(count for count, _ in found.values()) for port, found in by_port.items()}
        of = {port: max(frames[port], count) for port, count in seen.items()}
        rows = [
            ProtocolRow(port, name, count, octets, Bounds(*share_interval(count, seen[port], of[port])))
            for port, found in by_port.items()
            for name, (count, octets) in sorted(found.items(), key=lambda item: (-item[1][0], item[0]))
        ]
        return ProtocolTable(one_of, seen, of, rows)


def _keys(headers: NDArray[np.void]) -> NDArray[np.int64]:
    """Return a number for what each frame carries: layer 3, its protocol or else the type, whether it is a probe's, the port."""
    layer = unified.layer3(headers).astype(np.int64)
    is_ip = layer >= Layer3.IPV4
    protocol = headers["protocol"].astype(np.int64)
    kind = np.where(is_ip, protocol, np.where(layer == Layer3.NONE, headers["ethertype"], 0)).astype(np.int64)
    is_probe = unified.has(headers, UnifiedFlag.PROBE)
    ends = [headers[name].astype(np.int64) for name in ("source_port", "destination_port")]
    has_ports = is_ip & ~is_probe & unified.has(headers, UnifiedFlag.TRANSPORT)
    known = [np.where(has_ports & _IS_KNOWN[protocol, end], end, _NO_PORT) for end in ends]
    port = np.minimum(known[0], known[1])
    return layer << 40 | kind << 20 | is_probe.astype(np.int64) << 17 | port


def _name(key: int) -> str:
    """Return the words of a key."""
    if key < 0:
        return UNREAD
    layer, kind, is_probe, port = Layer3(key >> 40), key >> 20 & 0xFFFF, key >> 17 & 1, key & 0x1FFFF
    if layer == Layer3.NONE:
        return _CUT.get(kind) or type_name(kind)
    if layer == Layer3.ARP:
        return _WORDS[layer]
    words = f"{_WORDS[layer]} {PROTOCOL_NAMES.get(kind, f'protocol {kind}')}"
    if is_probe:
        return f"{words}, of a probe"
    return words if port == _NO_PORT else f"{words} {_SERVICES[IpProtocol(kind)][port]}"


class ProtocolSampler:
    """Has a probe keep headers, and counts them, while the ``with`` block runs; it takes the capture and clears its filter.

    Parameters
    ----------
    sampling : Sampling
        Which frames.

    Raises UsageError when the probe captures nothing; ProbeError when another program captures.
    """

    def __init__(self, probe: CaptureDevice, sampling: Sampling) -> None:
        CaptureRing(probe.registers)  # Refuses a probe that captures nothing.
        self._probe = probe
        self._settings = CaptureSettings(keep=Keep.HEADERS, snap_length=0, sampling=sampling)
        self.counts = ProtocolCounts()
        self.decoder = BlockDecoder({0: 0})

    def __enter__(self) -> Self:
        from liteprobe.host.capture import live  # Links and rings, which a look at a recording does without.

        with ExitStack() as stack:
            transport = live.open_transport(self._probe, Transport(), self._settings.channels, stack)
            clear_filter(self._probe.registers)
            running = live.begin(self._probe, self._settings, transport, stack)
            self._batches = iter(running.source.batches())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def take(self) -> bool:
        """Count what has come, for TAKE_S at most; return whether there was nothing more."""
        ends_s = time.monotonic() + TAKE_S
        while True:
            blocks, lengths = next(self._batches)
            if not len(blocks):
                return True
            self.counts.write(self.decoder.decode(blocks, lengths))
            if time.monotonic() >= ends_s:
                return False

    def wait(self, seconds: float) -> None:
        """Let so many seconds of the probe's time pass, and count meanwhile: its ring may be small."""
        link = self._probe.link
        ends_s = link.now_s() + seconds
        while (left_s := ends_s - link.now_s()) > 0:
            if self.take():
                self._probe.wait(min(left_s, link.look_ns / 1e9))

    def table(self, frames: Mapping[int, int]) -> ProtocolTable:
        """Return what has come, as `ProtocolCounts.table` does."""
        return self.counts.table(frames, 1 << self._settings.sampling.shift)


def sampling_of(one_of: int) -> Sampling:
    """Return the sampling of one frame in so many; UsageError where a probe can't do that.

    >>> sampling_of(16).shift
    4
    """
    if one_of not in (1 << shift for shift in range(SHIFT_MOST + 1)):
        raise UsageError(f"a probe doesn't sample one frame in {one_of}: give 1, 2, 4, 8 or 16")
    return Sampling(one_of.bit_length() - 1)
