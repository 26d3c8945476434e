# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads captures once more, packet by packet in plain Python and fractions, and holds a trace against what it finds.

Written from the specifications, apart from host/packets; it shares no code with it.
Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng; libpcap, sf-pcap.c.
"""

import bz2
import gzip
import io
import lzma
import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path

from liteprobe.host.base.errors import UsageError
from liteprobe.host.traffic.trace.trace import Trace

TICK_S = Fraction(8, 10**9)
HOUR_S = 3600
ATTOSECONDS = 5**12 << 32  # Of 0.95: the finest time that a trace has.
MOST = 262_144


@dataclass(frozen=True)
class Seen:
    """A packet of a capture, its FCS taken off."""

    number: int
    time_s: Fraction
    octets: bytes
    length: int
    link: int
    is_damaged: bool
    has_time: bool


#: Time, octets and length with the FCS, octets of FCS, link type, whether it is damaged, and whether it has a time.
Step = tuple[Fraction, bytes, int, int, int, bool, bool]
#: Tick (of what is wanted: as exact as it is), octets, length, and length on the wire of a frame that is sent.
Sent = tuple[Fraction | int, bytes, int, int]


@dataclass(frozen=True)
class Capture:
    """A capture as it was read, and why reading ended before its end; empty: it didn't."""

    packets: tuple[Seen, ...]
    broken: str = ""


class Broken(Exception):
    """A capture can't be read on."""


def unpacked(content: bytes) -> bytes:
    """Return what is in a packed file, or the file itself."""
    import lz4.frame
    import zstandard

    if content[:4] == b"\x28\xb5\x2f\xfd":
        with zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True) as reader:
            return bytes(reader.read())
    if content[:4] == b"\x04\x22\x4d\x18":
        with lz4.frame.open(io.BytesIO(content)) as file:
            return bytes(file.read())
    kinds = {b"\x1f\x8b": gzip, b"BZh": bz2, b"\xfd7z": lzma}
    return next((kind.decompress(content) for magic, kind in kinds.items() if content.startswith(magic)), content)


def read(content: bytes) -> Capture:
    """Return the packets of a capture; ValueError when it is neither pcap nor pcapng."""
    found: list[Seen] = []
    try:
        for time_s, kept, length, fcs, link, is_damaged, has_time in steps_of(content):
            whole = max(length - fcs, 0)
            origin_s = next((one.time_s for one in found if one.has_time), time_s)
            if has_time and abs((time_s - origin_s) // 1) >= 2**62 - 1:
                raise Broken("a time that is none")
            found.append(Seen(len(found) + 1, time_s, kept[:whole], whole, link, is_damaged, has_time))
    except Broken as error:
        return Capture(tuple(found), str(error))
    return Capture(tuple(found))


def steps_of(content: bytes) -> Iterator[Step]:
    """Yield what stands in a capture, a packet at a time; ValueError as of ``read``, Broken where it ends before its end."""
    if content[:4] == b"\x0a\x0d\x0d\x0a":
        return _blocks(content)
    order, form = _form(content)
    return _records(content, order, *form)


def _form(content: bytes) -> tuple[str, tuple[int, int, int]]:
    forms = {
        0xA1B2C3D4: (10**6, 24, 16),
        0xA1B23C4D: (10**9, 24, 16),
        0xA1B2CD34: (10**6, 24, 24),
        0x1C0001AB: (10**6, 28, 16),
        0x1C0001AC: (10**9, 28, 16),
    }
    for order in "<>":
        if len(content) >= 4 and (found := forms.get(struct.unpack(order + "I", content[:4])[0])):
            if len(content) < found[1]:
                raise ValueError("cut header")
            return order, found
    raise ValueError("neither")


def _records(content: bytes, order: str, per_second: int, at: int, head: int) -> Iterator[Step]:
    major, minor, *_, link = struct.unpack(order + "HHiIII", content[4:24])
    fcs = (link >> 28) * 2 if link >> 26 & 1 else 0
    while at < len(content):
        if at + head > len(content):
            raise Broken("cut header of a packet")
        second, part, kept, length = struct.unpack(order + "4I", content[at : at + 16])
        if (major == 2 and minor < 3) or major == 543:
            kept, length = length, kept
        if kept > MOST or at + head + kept > len(content):
            raise Broken("cut packet")
        octets = content[at + head : at + head + kept]
        yield second + Fraction(part, per_second), octets[:length], length, fcs, link & 0xFFFF, False, True
        at += head + kept


def _options(content: bytes, order: str) -> dict[int, bytes]:
    found, at = {}, 0
    while at + 4 <= len(content):
        code, size = struct.unpack(order + "HH", content[at : at + 4])
        if code == 0 or at + 4 + size > len(content):
            break
        found[code] = content[at + 4 : at + 4 + size]
        at += 4 + size + -size % 4
    return found


def _blocks(content: bytes) -> Iterator[Step]:
    at, order = 0, "<"
    interfaces: list[tuple[Fraction, int, int, int, int]] = []
    while at < len(content):
        if at + 12 > len(content):
            raise Broken("cut block")
        if content[at : at + 4] == b"\x0a\x0d\x0d\x0a":
            order = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}.get(content[at + 8 : at + 12], "")
            if not order:
                raise Broken("no byte order")
            interfaces = []
        kind, size = struct.unpack(order + "II", content[at : at + 8])
        if size < 12 or size % 4 or at + size > len(content):
            raise Broken("cut or corrupt block")
        body = content[at + 8 : at + size - 4]
        is_whole = struct.unpack(order + "I", content[at + size - 4 : at + size])[0] == size
        if kind == 0x0A0D0D0A and struct.unpack(order + "H", body[4:6])[0] != 1:
            raise Broken("version")
        if kind == 1:
            link, _, snap = struct.unpack(order + "HHI", body[:8])
            options = _options(body[8:], order)
            resolution = options.get(9, b"\x06")[0]
            fcs = options.get(13, b"\0")[0]
            offset = int.from_bytes(options.get(14, b""), "little" if order == "<" else "big", signed=True)
            unit = Fraction(1, 2 ** (resolution & 127) if resolution >> 7 else 10**resolution)
            interfaces.append((unit, offset, fcs // 8 if fcs >= 8 else fcs, snap, link))
        if kind in (2, 3, 6):
            if not is_whole or (kind != 3 and len(body) < 20):
                raise Broken("corrupt packet")
            number, time_s, flags = 0, Fraction(0), 0
            if kind == 6:
                number, high, low, kept, length = struct.unpack(order + "5I", body[:20])
            elif kind == 2:
                number, _, high, low, kept, length = struct.unpack(order + "HHIIII", body[:20])
            else:
                (length,) = struct.unpack(order + "I", body[:4])
            if number >= len(interfaces):
                raise Broken("no such interface")
            unit, offset, fcs, snap, link = interfaces[number]
            if kind == 3:
                octets = body[4 : 4 + min(length, snap or MOST)]
            else:
                if kept > min(MOST, len(body) - 20):
                    raise Broken("corrupt packet")
                octets = body[20 : 20 + kept]
                time_s = (high << 32 | low) * unit + offset
                option = _options(body[20 + kept + -kept % 4 :], order).get(2, b"")
                flags = struct.unpack(order + "I", option)[0] if len(option) == 4 else 0
            yield time_s, octets[:length], length, flags >> 5 & 15 or fcs, link, flags >> 24 != 0, kind != 3
        at += size


# What a trace must make of it ---------------------------------------------------------------------


def nearest(exact: Fraction) -> int:
    """Return the nearest whole number, halves upwards."""
    return int((exact + Fraction(1, 2)) // 1)


def sent_of(packets: Sequence[Seen], max_gap_s: Fraction | None = None, factor: Fraction = Fraction(1)) -> list[Sent]:
    """Return what is to be sent."""
    found: list[Sent] = []
    due, before = Fraction(0), packets[0]
    for one in packets:
        gap, before = (one.time_s - before.time_s) * factor, one
        due += gap if max_gap_s is None else min(gap, max_gap_s)
        found.append((due / TICK_S, one.octets, one.length, max(one.length, 60)))
    return found


def made_of(trace: Trace) -> list[Sent]:
    """Return what a trace sends."""
    found: list[Sent] = []
    for frames, due in trace.due():
        columns = (due, frames.at, frames.kept, frames.own, frames.length)
        for tick, at, kept, own, length in zip(*(one.tolist() for one in columns), strict=True):
            found.append((tick, frames.octets[at : at + kept].tobytes(), own, length))
    return found


#: What a broken file may be refused for: what is broken, or what comes before it.
BROKEN = (
    "can't be read",
    "is corrupt",
    "is cut",
    " data are ",
    "before that of",
    "after the one before",
    "no time",
    "no frame",
)


class Differs(Exception):
    """A trace is not what the capture says."""


def judged(path: Path) -> str:
    """Return how a capture is replayed: as it is, or refused and why, and then with the option that helps.

    Raises Differs where a trace has another frame, tick or count, is refused without a reason, or isn't with one.
    """
    try:
        capture = read(unpacked(path.read_bytes()))
    except (ValueError, EOFError, OSError, RuntimeError, struct.error):
        return _refused(path, "other kind", "can't be read", "is neither", "is empty", " data are ")
    stays = [one for one in capture.packets if one.octets and not one.is_damaged]
    how = {"repair": bool(capture.broken)}
    untimed = not all(one.has_time for one in stays)
    strange, long = any(one.link != 1 for one in stays), any(one.length > 9000 for one in stays)
    if strange or long or not stays:
        kinds = {
            "is of link type": strange,
            "octets long, and": long,
            "has no time": untimed,
            "has no frame": not stays,
        }
        found = [text for text, holds in kinds.items() if holds]
        return _refused(path, found[0], *found, "before that of", "after the one before", repair=True)
    said = "refused: broken, repaired; " if capture.broken else ""
    if capture.broken:
        _refused(path, "broken", *BROKEN)
    if untimed:
        said += _refused(path, "no time", "has no time", "before that of", "after the one before", **how)
        ends = accumulate((max(one.length, 60) + 24 for one in stays), initial=0)
        wanted: list[Sent] = [
            (end, one.octets, one.length, max(one.length, 60)) for end, one in zip(ends, stays, strict=False)
        ]
        _compare("back to back", wanted, Trace.from_pcap(path, **how).at_top())
        return said
    origin_s = next(one.time_s for one in capture.packets if one.has_time)
    order = [int((one.time_s - origin_s) * ATTOSECONDS // 1) for one in stays]  # What is closer came at once.
    if order != sorted(order):
        said += _refused(path, "back", "before that of the one before", "after the one before", **how) + ", sorted; "
        how["sort"] = True
        stays = [one for _, one in sorted(zip(order, stays, strict=True), key=lambda pair: pair[0])]
    trace = Trace.from_pcap(path, **how)
    if max((after.time_s - before.time_s for before, after in pairwise(stays)), default=0) > HOUR_S:
        said += _refused(path, "gap", "after the one before", **how) + ", shortened"
        for limit in (Fraction(1), Fraction(77, 10**7)):
            _compare(f"gaps of {limit} s", sent_of(stays, limit), trace.limited(limit))
        trace = trace.limited(1)
    else:
        for factor in (Fraction(1), Fraction(1, 3)):
            _compare(f"times {factor}", sent_of(stays, None, factor), trace.stretched(factor))
    summary = trace.summary()
    numbers = [one for frames in trace.source.frames() for one in frames.number.tolist()]
    if sorted(numbers) != sorted(one.number for one in stays):
        raise Differs(f"packets {numbers[:100]}")
    wanted_counts = {
        "empty": sum(not one.octets for one in capture.packets),
        "damaged": sum(one.is_damaged and bool(one.octets) for one in capture.packets),
        "padded": sum(one.length < 60 for one in stays),
        "cut": sum(len(one.octets) < one.length for one in stays),
    }
    counts = {**summary.counts, "cut": summary.cut}
    if any(counts[name] != count for name, count in wanted_counts.items()):
        raise Differs(f"counts {counts}, not {wanted_counts}")
    return said or "as it is"


def _refused(path: Path, why: str, *texts: str, **how: bool) -> str:
    """Return what is to be said of a trace that is refused; ``texts``: one of them has to be in the message."""
    try:
        made_of(Trace.from_pcap(path, **how))
    except UsageError as error:
        if not any(text in str(error) for text in texts):
            raise Differs(f"refused for another reason than '{why}': {error}") from None
        return f"refused: {why}"
    raise Differs(f"not refused: {why}")


def _compare(how: str, wanted: list[Sent], trace: Trace) -> None:
    found = made_of(trace)
    if len(wanted) != len(found):
        raise Differs(f"{how}: {len(found)} frames, not {len(wanted)}")
    for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
        # Of clocks of several finenesses, some finer than a trace's: then a half of a tick may be a little less.
        spare = 0 if (one[0] * TICK_S * ATTOSECONDS).denominator == 1 else Fraction(4, 10**10)
        ticks = {nearest(Fraction(one[0] + spare)), nearest(Fraction(one[0] - spare))}
        if one[1:] != other[1:] or other[0] not in ticks:
            raise Differs(f"{how}: frame {number} is {str(other)[:200]} and not {str(one)[:200]}")


# Files of all kinds -------------------------------------------------------------------------------


def hostile_file(chance: random.Random) -> bytes:
    """Return a capture: one in which some of all that a file can have is found, or broken, and packed now and then."""
    content = _hostile_pcap(chance) if chance.random() < 0.4 else _hostile_pcapng(chance)
    if chance.random() < 0.1:
        content = content[: chance.randrange(len(content))]
    if chance.random() < 0.1:
        spoilt = bytearray(content)
        for _ in range(chance.randint(1, 3)):
            spoilt[chance.randrange(len(spoilt))] = chance.randrange(256)
        content = bytes(spoilt)
    if chance.random() < 0.15:
        import lz4.frame
        import zstandard

        packs = [gzip.compress, bz2.compress, lzma.compress, lz4.frame.compress, zstandard.ZstdCompressor().compress]
        cut = chance.randrange(len(content) + 1)
        content = b"".join(map(chance.choice(packs), [content[:cut], content[cut:]] if cut % 3 else [content]))
    return content


def _frame(chance: random.Random) -> tuple[bytes, int]:
    """Return octets, and the length on the wire."""
    length = chance.choice(
        (60, 64, chance.randint(1, 80), chance.randint(14, 1518), chance.choice((0, 5, 59, 61, 9000)))
    )
    kept = length if chance.random() < 0.7 else chance.choice((0, 4, 54, 96, chance.randint(0, length + 9)))
    if chance.random() < 0.002:
        length = chance.choice((9001, 65549))
    return chance.randbytes(kept), length


def _times(chance: random.Random, count: int) -> list[Fraction]:
    """Return times (s) from 0 on: close together, some equal, and now and then far apart or back."""
    time, found = Fraction(0), []
    step = chance.choice((Fraction(1, 10**6), Fraction(1, 10**9), Fraction(1, 10**3), Fraction(13), Fraction(500)))
    is_wild = chance.random() < 0.3
    for _ in range(count):
        time += chance.choice((Fraction(0), step, step * chance.randint(0, 1000) / 997))
        if is_wild and chance.random() < 0.1:
            time += chance.choice(
                (65_536, 40 * HOUR_S, -step, 3 * HOUR_S, Fraction(chance.randrange(10**18), 10**17), 2**31)
            )
        time = max(time, Fraction(0))
        found.append(time)
    return found


def _hostile_pcap(chance: random.Random) -> bytes:
    order = chance.choice("<>")
    magic, per_second, more, before = chance.choice(
        [(0xA1B2C3D4, 10**6, 0, 0), (0xA1B23C4D, 10**9, 0, 0)] * 3
        + [(0xA1B2CD34, 10**6, 8, 0), (0x1C0001AB, 10**6, 0, 4), (0x1C0001AC, 10**9, 0, 4)]
    )
    version = chance.choice([(2, 4)] * 9 + [(2, 2), (543, 0)])
    field = 1 if chance.random() < 0.97 else chance.choice((101, 113, 0))
    if chance.random() < 0.2:
        field |= chance.choice((1, 0)) << 26 | chance.choice((2, 2, 1, 3)) << 28
    found = struct.pack(order + "IHHiIII", magic, *version, 0, 0, chance.choice((0, 96, 1 << 18)), field) + bytes(
        before
    )
    start = chance.choice((0, 1_700_000_000, 2**32 - 3, 1))
    for time in _times(chance, chance.choice((1, 3, 30, 100))):
        second, part = divmod(int(time * per_second), per_second)
        if chance.random() < 0.05 and second:
            second, part = second - 1, part + per_second
        part = min(part, 2**32 - 1)
        octets, length = _frame(chance)
        sizes = (len(octets), length) if version == (2, 4) else (length, len(octets))
        found += struct.pack(order + "4I", (start + second) % 2**32, part, *sizes) + bytes(more) + octets
    return found


#: Decimal and binary resolutions.
POWERS = ((0, 3, 6, 6, 9, 9, 9, 10, 12, 13, 15, 18, 19, 25, 60), (0, 3, 6, 9, 12, 20, 30, 31, 32, 33, 40, 63, 127))


def _hostile_pcapng(chance: random.Random) -> bytes:
    found, start = b"", chance.choice((0, 0, 1_700_000_000, 2**32 + 5))
    times = _times(chance, chance.choice((1, 3, 30, 100)))
    order, interfaces = "<", list[tuple[int, Fraction, int]]()

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return struct.pack(order + "II", kind, len(body) + 12) + body + struct.pack(order + "I", len(body) + 12)

    def option(code: int, value: bytes) -> bytes:
        return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)

    def interface() -> bytes:
        binary = chance.random() < 0.5
        power = chance.choice(POWERS[binary])
        unit = Fraction(1, 2**power if binary else 10**power)
        most_s = int(2**64 * unit)
        offset = chance.choice((0, 0, 0, start, -(2**40), 2**62, -(2**63))) if most_s > 10**5 else start
        if not -(10**6) < start - offset < max(most_s, 1) - 10**6:
            offset = start
        options = b""
        if (binary, power) != (False, 6) or chance.random() < 0.3:
            options += option(9, bytes([binary << 7 | power]))
        if offset or chance.random() < 0.1:
            options += option(14, struct.pack(order + "q", offset))
        if chance.random() < 0.15:
            options += option(13, bytes([chance.choice((4, 32, 2))]))
        if chance.random() < 0.2:
            options += option(2, b"eth0") + option(9999, b"x")
        interfaces.append((offset, unit, most_s))
        link = 1 if chance.random() < 0.985 else chance.choice((101, 127, 105))
        options += bytes(4) if options else b""
        return block(1, struct.pack(order + "HHI", link, 0, chance.choice((0, 0, 65535, 96))) + options)

    for number, time in enumerate(times):
        if not number or chance.random() < 0.03:
            order, interfaces = chance.choice("<>"), []
            found += block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, chance.choice((0, 2)), -1))
            found += b"".join(interface() for _ in range(chance.randint(1, 3)))
        elif chance.random() < 0.03:
            found += chance.choice((interface(), block(0x0BAD, bytes(9)), block(5, bytes(12)), block(10, bytes(40))))
        which = chance.randrange(len(interfaces))
        offset, unit, _ = interfaces[which]
        raw = min(max(int((start + time - offset) / unit), 0), 2**64 - 1)
        if chance.random() < 0.001:
            raw = chance.choice((0, 2**64 - 1))
        octets, length = _frame(chance)
        options = b""
        if chance.random() < 0.15:
            options += option(1, b"a comment")
        if chance.random() < 0.2:
            flags = chance.choice((0, 1, 2, 4 << 2, 4 << 5, 2 << 5, 1 << chance.randint(24, 31), 0xFF << 16))
            options += option(2, struct.pack(order + "I", flags))
        options += bytes(4) if options and chance.random() < 0.8 else b""
        padded = octets + bytes(-len(octets) % 4) + options
        kind = chance.random()
        if kind < 0.004:
            found += block(3, struct.pack(order + "I", length) + octets[:length])
        elif kind < 0.1:
            sizes = (raw >> 32, raw & 0xFFFFFFFF, len(octets), length)
            found += block(2, struct.pack(order + "HHIIII", which, chance.randrange(65536), *sizes) + padded)
        else:
            found += block(
                6, struct.pack(order + "5I", which, raw >> 32, raw & 0xFFFFFFFF, len(octets), length) + padded
            )
    return found
