# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A whole simulated probe that joins its ports by emulated networks: what leaves its pins against the reference."""

import random
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.main import load_contrib
from scapy.packet import Packet as Layer

from liteprobe.cores.formats import TICK_NS, TransmitState
from liteprobe.cores.formats.emulate import (
    BANK_WORDS, CLASSES, COUNTER_WORDS, DELAY_ENTRIES, UNMATCHED_CLASS, ClassCounter, ClassGauge,
)
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.packets.filter.expression import parse
from liteprobe.host.packets.filter.rules import class_rules
from liteprobe.host.probe import Probe
from liteprobe.host.run.emulate import EmulatorDirection
from liteprobe.host.run.port import ProbePort
from liteprobe.sim.drivers.frames.truth import BAD_FCS, OUT, read_pcap, read_truth
from liteprobe.sim.drivers.system.senders import Packet, write
from liteprobe.sim.models.emulator.direction import Direction, Frame, is_reserved
from liteprobe.sim.models.emulator.settings import Settings, bank_words
from liteprobe.soc.config import ProbeConfig

load_contrib("mpls")  # Scapy knows what is behind labels then.
NOWHERE = "cable?loss=100%"
ETHERNET, IPV4 = 14, bytes.fromhex("08004500002800000000")
FIRST_PROTOCOL = 100  # Of class 0; that of class 7 is named by no rule.
PROTOCOL_OCTET = 23
STORE_BITS_LEAST = 9
PROBE_MAC = ProbeConfig.mac_address.to_bytes(6, "big")
DRAINED_TICKS = 1 << 17  # From the last arrival until all have left, in these tests.
#: Words that go on while there is background.
OF_BACKGROUND = {
    *(ClassCounter.BACKGROUND, ClassCounter.BACKGROUND_DROPPED),
    *(ClassGauge.QUEUE_FRAMES, ClassGauge.QUEUE_OCTETS, ClassGauge.QUEUE_MOST),
}


class Seen(NamedTuple):
    """A frame on the pins of a port: the tick of its SFD, whether its FCS is wrong, its octets."""

    tick: int
    is_bad: bool
    octets: bytes


class EmulatorProbe(Probe):
    """A probe of which only registers are asked."""

    def _open_ports(self) -> list[ProbePort]:
        return []


def packets(
    count: int, seed: int, load: float, lengths: tuple[int, int] = (60, 1514), classes: Sequence[int] = range(CLASSES)
) -> list[Packet]:
    """Return random frames of some classes, which load a line so far on the mean; 1 or more is back to back."""
    chance = random.Random(seed)
    mean_ns = TICK_NS * (sum(lengths) / 2 + 24) / load
    made, now = [], 0.0
    for _ in range(count):
        octets = bytearray(b"\x02" + chance.randbytes(chance.randint(*lengths) - 1))  # To a station, not to all.
        octets[12:22] = IPV4
        octets[PROTOCOL_OCTET] = FIRST_PROTOCOL + chance.choice(classes)
        made.append(Packet(1_700_000_000 * 10**9 + int(now), bytes(octets)))
        now += chance.expovariate(1 / mean_ns) if load < 1 else TICK_NS * (len(octets) + 24)
    return made


def back_to_back(frames: Sequence[bytes]) -> list[Packet]:
    """Return frames that come one right behind the other."""
    made, now = [], 1_700_000_000 * 10**9
    for octets in frames:
        made.append(Packet(now, octets))
        now += TICK_NS * (len(octets) + 24)
    return made


def class_of(octets: bytes) -> int:
    """Return the class of a frame, as `Emulated.name_classes` has them."""
    number = octets[PROTOCOL_OCTET] - FIRST_PROTOCOL
    is_named = octets[12:22] == IPV4 and 0 <= number < UNMATCHED_CLASS
    return number if is_named else UNMATCHED_CLASS


def rings(bits: Mapping[int, int] | int, words: int) -> list[dict[str, int]]:
    """Return where the rings of the lanes are, as settings of each class and of the link; those not named are the least.

    Parameters
    ----------
    bits : of each lane that has more than the least, which all others have; or of all.
    words : of the store.
    """
    sizes = [bits if isinstance(bits, int) else bits.get(lane, STORE_BITS_LEAST) for lane in range(CLASSES + 1)]
    starts, at = {}, 0
    for lane in sorted(range(CLASSES + 1), key=lambda lane: -sizes[lane]):
        starts[lane] = at
        at += 1 << sizes[lane]
    if at > words:
        raise ValueError(f"the rings take {at} words, the store has {words}")
    return [{"store_start": starts[lane], "store_bits": sizes[lane]} for lane in range(CLASSES + 1)]


def bank(
    classes: Mapping[int, Mapping[str, int]], link: Mapping[str, int], lanes: Sequence[Mapping[str, int]], delay: int
) -> list[int]:
    """Return the words of a bank: what ``classes`` and ``link`` say, all else plain and delayed by ``delay``."""
    whole = {number: {"delay": delay, **lanes[number], **classes.get(number, {})} for number in range(CLASSES)}
    return bank_words(whole, {**lanes[CLASSES], **link})


@dataclass
class Emulated:
    """A simulated emulator, and what was on its pins."""

    probe: Probe
    files: Path
    taken: list[int]  # Frames of each port's captures, in and out, that belong to programs before.

    @property
    def link(self) -> SimLink:
        """Its link."""
        assert isinstance(self.probe.link, SimLink)
        return self.probe.link

    def read(self, number: int, name: str) -> int:
        """Return a register of a direction."""
        return self.probe.registers.read(f"direction{number}_{name}")

    def counts(self, number: int) -> list[list[int]]:
        """Return what a direction counted, of each class."""
        words = [
            int(word)
            for word in self.probe.registers.read_memory(f"direction{number}_counts", 0, CLASSES * COUNTER_WORDS)
        ]
        return [words[COUNTER_WORDS * one : COUNTER_WORDS * (one + 1)] for one in range(CLASSES)]

    def total(self, number: int, counter: ClassCounter) -> int:
        """Return a counter of a direction, of all classes together."""
        return sum(words[counter] for words in self.counts(number))

    def name_classes(self) -> None:
        """Have rules name the class of each frame by its protocol."""
        expressions = {number: (str(number), parse(f"ip proto {FIRST_PROTOCOL + number}")) for number in range(UNMATCHED_CLASS)}
        for number in range(EmulatorDirection.count(self.probe.registers)):
            EmulatorDirection(self.probe.registers, number).load_rules(class_rules(expressions), False)

    def start(self, settings: Mapping[int, Settings], other: Mapping[int, Sequence[int]] | None = None) -> None:
        """Write the settings of directions, and start them in one tick.

        Parameters
        ----------
        settings : of each direction.
        other : words of its other bank.
        """
        registers = self.probe.registers
        for number, one in settings.items():
            registers.write_memory(f"direction{number}_settings", 0, list(one.words))
            registers.write_memory(
                f"direction{number}_settings", BANK_WORDS, list((other or {}).get(number, one.words))
            )
            if one.delays:
                registers.write_memory(f"direction{number}_settings", 2 * BANK_WORDS, one.delay_table())
            if one.patterns:
                registers.write_memory(
                    f"direction{number}_settings", 2 * BANK_WORDS + DELAY_ENTRIES, one.pattern_memory()
                )
            if one.trace:
                registers.write_memory(f"direction{number}_trace", 0, [word for entry in one.trace for word in entry])
                registers.write(f"direction{number}_trace_entries", len(one.trace))
            registers.write(f"direction{number}_arm", 1)
        self.probe.wait(30e-6)
        states = [registers.read(f"port{1 - number}_tx_state") for number in settings]
        assert states == [TransmitState.READY] * len(settings), states
        registers.write("probe_start", sum(1 << 1 - number for number in settings))
        self.probe.wait(20e-6)
        self.link.sync()
        self.taken = [len(self.pins(port, way, anew=False)) for port in range(2) for way in ("in", "out")]

    def stop(self, numbers: Sequence[int]) -> None:
        """Stop directions."""
        for number in numbers:
            self.probe.registers.write(f"port{1 - number}_tx_stop", 1)
        self.probe.wait(40e-6)
        assert [self.probe.registers.read(f"port{1 - number}_tx_state") for number in numbers] == [0] * len(numbers)

    def play_on(self, traffic: Mapping[int, Sequence[Packet]]) -> None:
        """Play frames into ports, from one tick on, while time passes."""
        start = self.link.now_ns() + 5000
        for port, made in traffic.items():
            path = self.files / f"play{port}.pcap"
            write(path, made)
            assert self.link.play(port, path, start) == len(made)

    def play(self, traffic: Mapping[int, Sequence[Packet]], more_s: float = 0.0) -> None:
        """Play frames into ports, from one tick on, until all of them have come, and for a while more."""
        self.play_on(traffic)
        self.probe.wait(
            5e-6 + max(made[-1].time_ns - made[0].time_ns for made in traffic.values()) * 1e-9 + 30e-6 + more_s
        )

    def pins(self, port: int, way: str, anew: bool = True, is_own: bool = False) -> list[Seen]:
        """Return what stood on the pins of a port since the start of the program, without management in band.

        Parameters
        ----------
        way : ``in`` or ``out``.
        anew : since the start of the program, not of the simulation.
        is_own : management alone.
        """
        self.link.sync()
        stamps, frames = read_pcap(self.files / f"pins.port{port}.{way}.pcap")
        rows = read_truth(self.files / "truth")
        rows = rows[
            (rows["port"] == port) & ((rows["direction"] == OUT) == (way == "out")) & (rows["flags"] & BAD_FCS != 0)
        ]
        bad = set(rows["sfd_tick"].tolist())
        seen = [
            Seen(int(stamp) // TICK_NS, int(stamp) // TICK_NS in bad, octets)
            for stamp, octets in zip(stamps, frames, strict=True)
        ]
        place = 6 * (way == "out")  # Of the address of the receiver or the sender.
        is_shared = port == 0 and self.link.is_in_band
        seen = [one for one in seen if is_own == (is_shared and one.octets[place : place + 6] == PROBE_MAC)]
        return seen[self.taken[2 * port + (way == "out")] :] if anew and not is_own else seen

    def compare(
        self,
        number: int,
        settings: Settings,
        switches: Sequence[tuple[Any, ...]] = (),
        slip: int = 0,
        drained: int = DRAINED_TICKS,
    ) -> list[str]:
        """Hold what left the pins of a direction, and what it counted, against the reference; return what differs.

        Parameters
        ----------
        number : of the direction.
        settings : that it began with.
        switches : ticks, words of the banks that hold from there on, and what else is other then, as of `Direction.switch`.
        slip : ticks by which an arrival's stamp may differ from its SFD: 1 where clocks differ. Then only delays are held, and
            the settings must be such that they don't depend on arrivals but by their own.
        drained : ticks from the last arrival until all have left.
        """
        origin = self.read(number, "origin") - 1  # The clock's count is 1 in the harness's tick 0.
        model, came = Direction(settings), []
        for switch in switches:
            model.switch(*switch)
        for seen in self.pins(number, "in"):
            length = len(seen.octets)
            if is_reserved(seen.octets) and not self.read(number, "forward_reserved"):
                continue
            if not seen.is_bad and 60 <= length <= self.read(number, "longest") and seen.tick >= origin:
                model.arrive(seen.tick - origin, length, class_of(seen.octets), is_ect=with_ce(seen.octets) is not None)
                came.append(seen.octets)
        model.advance(max(frame.time for frame in model.frames) + drained if model.frames else 0)
        wanted = [(tick, *damaged(model.frames[frame], came[frame])) for tick, frame in model.departures]
        found = self.pins(1 - number, "out")
        wrong = [] if len(found) == len(wanted) else [f"{len(found)} frames left, not {len(wanted)}"]
        for index, (seen, (tick, octets, is_bad)) in enumerate(zip(found, wanted, strict=False)):
            if abs(seen.tick - origin - tick) > slip:
                wrong.append(f"frame {index} left at tick {seen.tick - origin}, not {tick}")
            if seen.octets != octets:
                places = [
                    place for place, (one, other) in enumerate(zip(seen.octets, octets, strict=False)) if one != other
                ]
                wrong.append(
                    f"frame {index} has {len(seen.octets)} octets, not {len(octets)}, or others at {places[:8]}"
                )
            if seen.is_bad != is_bad:
                wrong.append(f"frame {index} has a {'wrong' if seen.is_bad else 'good'} FCS")
        counted, right = self.counts(number), [model.counts.words(one) for one in range(CLASSES)]
        has_background = any(one.background for one in model.bank.classes)
        if not slip:
            for one in range(CLASSES):
                wrong += [
                    f"word {word} of class {one} is {counted[one][word]}, not {right[one][word]}"
                    for word in range(COUNTER_WORDS)
                    if counted[one][word] != right[one][word] and not (has_background and word in OF_BACKGROUND)
                ]
        wrong += [f"{name}: {self.read(number, name)}" for name in ("overflows",) if self.read(number, name)]
        return wrong


def with_ce(octets: bytes) -> bytes | None:
    """Return a frame with the ECN codepoint CE, as scapy writes it; None where it can't be marked."""
    layer: Layer = Ether(octets)
    while layer and not isinstance(layer, (IP, IPv6)):
        layer = layer.payload
    if not layer or not (layer.tos if isinstance(layer, IP) else layer.tc) & 3:
        return None
    packet, length = layer.copy(), 4 * layer.ihl if isinstance(layer, IP) else 40
    if isinstance(layer, IP):
        packet.tos |= 3
        del packet.chksum
    else:
        packet.tc |= 3
    place = len(octets) - len(layer.original)
    return octets[:place] + bytes(packet)[:length] + octets[place + length :]


def damaged(frame: Frame, octets: bytes) -> tuple[bytes, bool]:
    """Return the octets of a frame as it leaves, and whether its FCS is wrong."""
    octets = (with_ce(octets) or octets) if frame.is_marked else octets
    if not frame.is_corrupt:
        return octets, False
    wrong = bytearray(octets)
    wrong[frame.bit // 8] ^= 1 << frame.bit % 8
    return bytes(wrong), not frame.is_mended


def delays(emulated: Emulated, number: int) -> np.ndarray:
    """Return the delays of a direction, ticks from SFD to SFD at the pins, of frames that are unlike each other."""
    came = {seen.octets: seen.tick for seen in emulated.pins(number, "in")}
    return np.array([seen.tick - came[seen.octets] for seen in emulated.pins(1 - number, "out") if seen.octets in came])


def with_options(folder: Path, into: Path, options: str) -> Path:
    """Return the folder of a simulated probe that is started with more options of ``liteprobe-sim``."""
    (into / "csr.json").write_bytes((folder / "csr.json").read_bytes())
    program = into / "liteprobe-sim"
    program.write_text(f'#!/bin/sh\nexec "{folder}/liteprobe-sim" "$@" {options}\n', encoding="utf-8")
    program.chmod(0o755)
    return into


@contextmanager
def emulating(
    folder: Path, files: Path, link: str = "own", wire: str = NOWHERE, clocks: str = ""
) -> Iterator[Emulated]:
    """A simulated emulator, built in ``folder``; ``files``: where its captures go; ``clocks``: as of `with_options`."""
    if clocks:
        folder = with_options(folder, files, clocks)
    with EmulatorProbe(sim_url(wire, build=folder, link=link, pcap=files / "pins", truth=files / "truth")) as probe:
        yield Emulated(probe, files, [0, 0, 0, 0])


def padded(*headers: str) -> list[bytes]:
    """Return frames of the shortest length that begin with these octets, in hexadecimal."""
    return [bytes.fromhex(header).ljust(14 + 46, b"\x07") for header in headers]


#: PAUSE to the group and to a station, PFC, LACP, STP, LLDP, PTP's delays between neighbours, the last address of the range.
RESERVED = padded(
    "0180c2000001 024c50000001 8808 0001ffff",
    "024c50000002 024c50000001 8808 0001ffff",
    "0180c2000001 024c50000001 8808 0101",
    "0180c2000002 024c50000001 8809 01",
    "0180c2000000 024c50000001 0026 424203",
    "0180c200000e 024c50000001 88cc",
    "0180c200000e 024c50000001 88f7 02",
    "0180c200000f 024c50000001 0800 45",
)
#: What is nearly that, and passes any bridge.
ORDINARY = padded(
    "0180c2000010 024c50000001 0800",
    "0180c2010000 024c50000001 0800",
    "0180c3000000 024c50000001 0800",
    "0080c2000001 024c50000001 0800",
    "024c50000002 024c50000001 8807",
    "024c50000002 024c50000001 0888",
    "011b19000000 024c50000001 88f7",
)


def frame_with(octets: bytes, fcs_error: int = 0) -> bytes:
    """Return a frame as it stands on the wire: preamble, SFD, octets, FCS, of which some bits are wrong."""
    return bytes([0x55] * 7 + [0xD5]) + octets + struct.pack("<I", zlib.crc32(octets) ^ fcs_error)
