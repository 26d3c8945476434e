# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads the frames of a file of packets, pcap or pcapng, packed or not, and names what is wrong in it by packet and octet."""

import struct
import sys
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import MAX_LENGTH, MIN_LENGTH, TICKS_PER_SECOND
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.text import say
from liteprobe.host.packets.frames import PARTS, Frames, Index
from liteprobe.host.packets.pcap import ETHERNET, MAGICS, PCAP_HEADER, Packets, PcapReader
from liteprobe.host.packets.pcapng import SECTION, PcapngReader
from liteprobe.host.packets.window import STDIN, CutError, PlainFile, Window, plain_file

LINKS = {
    0: "BSD loopback",
    101: "raw IP",
    105: "802.11",
    113: "Linux cooked",
    127: "radiotap",
    228: "IPv4",
    276: "Linux cooked",
}
REPAIR = "capture it again, or replay what is before with --repair"
Reader = PcapReader | PcapngReader
#: What is counted of a file, and the note that says so.
COUNTED = {
    "empty": "{} records without octets are left out",
    "damaged": "{} frames that the file calls damaged are left out: --damaged sends them, with a right FCS",
    "mended": "{} frames that the file calls damaged are sent with a right FCS: a replay sends no wrong one",
    "fcs": "the FCS of {} frames is left out, because the probe sends its own",
    "longer": "{} frames have more octets in the file than they had on the wire: they are cut to their length",
    "carried": "{} times have a part of a second of more than one: what is more is carried into the seconds",
    "padded": "{} frames of less than 60 octets are padded with zeros",
}


@dataclass(frozen=True)
class FileSource:
    """The frames of a file; UsageError when it can't be read, or is of another kind.

    A packed file, a pipe and standard input (``-``) are copied to a temporary file first: frames are read more than once.
    """

    path: Path
    repair: bool = False  # Where the file is cut or corrupt, it ends before that, with a note; else that is an error.
    with_damaged: bool = False  # Frames that it calls damaged are sent, too.
    _plain: PlainFile = field(init=False, repr=False, compare=False)
    #: Of the last time that all was read: why it ended before its end, and how many packets each of `COUNTED` holds for.
    _ended: list[str] = field(default_factory=list, init=False, repr=False, compare=False)
    counts: dict[str, int] = field(default_factory=dict, init=False, compare=False)

    follows_line = is_endless = False
    ticks_per_unit = Fraction(TICKS_PER_SECOND)  # Times of its frames are seconds.

    def __post_init__(self) -> None:
        plain = plain_file(self.path, self.name)
        object.__setattr__(self, "_plain", plain)
        if plain.is_copy:
            weakref.finalize(
                self, plain.path.unlink, missing_ok=True
            )  # Those that other processes have of it don't delete it.
        with closing(Window(plain.path)) as window:
            self._open(window)

    @property
    def name(self) -> str:
        """Name of it in messages."""
        return "standard input" if self.path == STDIN else str(self.path)

    @property
    def notes(self) -> list[str]:
        """Notes of what is not sent as it stands in the file, as of the last time that all was read."""
        return [*self._ended, *(text.format(self.counts[key]) for key, text in COUNTED.items() if self.counts.get(key))]

    def frames(self, with_times: bool = True, most: int = MAX_LENGTH) -> Iterator[Frames]:
        """Yield all frames that can be sent, some at once; UsageError when a packet can't be replayed.

        ``with_times``: one without a time can't be; ``most``: octets of a frame.
        """
        counts = self.counts
        counts.update(dict.fromkeys(COUNTED, 0))
        for packets, octets, number, place in self._packets():
            length = np.maximum(packets.length - packets.fcs, 0)
            kept = np.minimum(packets.kept, length)
            stays = kept > 0
            counts["empty"] += int(np.count_nonzero(~stays))
            damaged = int(np.count_nonzero(packets.damaged & stays))
            counts["mended" if self.with_damaged else "damaged"] += damaged
            if not self.with_damaged:
                stays &= ~packets.damaged
            is_longer = packets.kept > packets.length
            some = slice(None) if stays.all() else stays
            packets, length, kept, number, place = (
                packets.select(some),
                length[some],
                kept[some],
                number[some],
                place[some],
            )
            if not len(packets):
                continue
            found = {
                "fcs": packets.fcs > 0,
                "longer": is_longer[some],
                "carried": packets.carried,
                "padded": length < MIN_LENGTH,
            }
            for key, which in found.items():
                counts[key] += int(np.count_nonzero(which))
            self._check(packets, length > most, with_times, number, place, length)
            padded = np.maximum(length, MIN_LENGTH)
            yield Frames(octets, packets.at, kept, padded, length, packets.time, packets.rest, number, place)

    # # #

    def _packets(self) -> Iterator[tuple[Packets, NDArray[np.uint8], Index, Index]]:
        """Yield packets as they stand in the file, some at once: where their octets are, number and place of each.

        Raises UsageError where the file is cut or corrupt.
        """
        self._ended.clear()
        with closing(Window(self._plain.path)) as window:
            reader, number = self._open(window), 1
            while True:
                packets = reader.read()
                count = int(np.argmax(packets.wrong)) if packets.wrong.any() else len(packets)
                if count:
                    some = packets.select(slice(0, count))
                    yield some, window.octets, number + np.arange(count), window.base + some.at
                    number += count
                if count < len(packets):
                    at = window.base + int(packets.at[count])
                    self._end(
                        f"packet {number} (octets from {at} on) is corrupt: its header contradicts itself, or its time is none"
                    )
                    return
                if len(packets):  # There may be another section.
                    continue
                if reader.is_stuck() or not reader.move_on():
                    if self._plain.broken and not reader.is_stuck():
                        self._end(f"{self._plain.broken}, after packet {number - 1}")
                    elif window.missing:
                        self._end(f"the block before packet {number} is cut: {window.missing} octets are missing")
                    elif reader.is_stuck() or reader.at < window.filled:
                        place = window.base + reader.at
                        self._end(f"packet {number} (at octet {place}) can't be read: {reader.reason()}")
                    return

    def _open(self, window: Window) -> Reader:
        window.move_on(0)
        magics = {int.from_bytes(window.octets[:4].tobytes(), order) for order in ("little", "big")}
        try:
            if magics & set(MAGICS) and window.filled >= 4:
                return PcapReader(window)
            if SECTION in magics:
                return PcapngReader(window)
        except CutError as error:
            raise UsageError(f"{self.name} can't be read: {error}: capture it again") from None
        what = "is empty" if not window.filled else "is neither pcap nor pcapng"
        why = f" ({self._plain.broken})" if self._plain.broken else ""
        if self.path.suffix in (".yaml", ".yml"):
            why += ", but perhaps a document of 'liteprobe send', 'sets' or 'emulate'"
        raise UsageError(f"{self.name} {what}{why}: give a file that tcpdump, dumpcap or liteprobe capture wrote")

    def _end(self, what: str) -> None:
        if not self.repair:
            raise UsageError(f"{self.name}: {what}: {REPAIR}")
        self._ended.append(f"{self.path.name} was read up to where it is broken: {what}")

    def _check(
        self,
        packets: Packets,
        too_long: NDArray[np.bool_],
        with_times: bool,
        number: Index,
        place: Index,
        length: Index,
    ) -> None:
        """Raise UsageError at the first packet that can't be replayed."""
        is_strange = packets.link != ETHERNET
        wrong = is_strange | too_long | (packets.timeless if with_times else False)
        if not wrong.any():
            return
        first = int(np.argmax(wrong))
        kind = int(packets.link[first])
        if is_strange[first]:
            named = f" ({LINKS[kind]})" if kind in LINKS else ""
            why = (
                f"of link type {kind}{named}, and a probe sends Ethernet (1): capture on an Ethernet interface, or write the "
                "file anew with an Ethernet header"
            )
        elif too_long[first]:
            why = (
                f"{int(length[first])} octets long, and a probe sends {MAX_LENGTH} at most: leave it out with editcap, or "
                "capture with offloads off (ethtool -K INTERFACE gro off tso off gso off)"
            )
        else:
            why = "a Simple Packet Block, which has no time: give it one with --rate or --top"
        raise UsageError(f"{self.name}: packet {number[first]} (at octet {place[first]}) is {why}")


SNAP = 1 << 18
ORIGIN_S = 1 << 20  # Times begin here, so that a packet may be from before the first one.


@contextmanager
def as_pcap(path: Path) -> Iterator[Path]:
    """Lend a little-endian pcap of the frames that are in a capture; what is left out of it is said on stderr.

    Raises UsageError when the capture can't be read, or isn't of Ethernet frames.
    """
    source = FileSource(path)
    with TemporaryDirectory() as folder:
        made = Path(folder) / f"{path.stem}.pcap"
        write_pcap(source, made)
        if left := source.counts["empty"] + source.counts["damaged"]:
            say(
                f"liteprobe: {left} packets of {source.name} are left out: without octets, or damaged",
                stream=sys.stderr,
            )
        yield made


def write_pcap(source: FileSource, path: Path) -> None:
    """Write the frames of a file as a little-endian pcap with nanoseconds, without FCS, from second `ORIGIN_S` on."""
    with path.open("wb") as file:
        file.write(PCAP_HEADER)
        for frames in source.frames(most=SNAP):
            columns = (frames.at, frames.kept, frames.own, ORIGIN_S + frames.time, frames.rest // (PARTS // 10**9))
            for at, kept, own, second, rest in zip(*(one.tolist() for one in columns), strict=True):
                file.write(struct.pack("<IIII", second, rest, kept, own) + frames.octets[at : at + kept].tobytes())
