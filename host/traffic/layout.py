# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Turns the streams of a port into the words of its memories: schedule, modifiers, lists and headers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from liteprobe.cores.formats import (
    HEADER_WORDS_OF_STREAM,
    MEAN_FRACTION_BITS,
    MODIFIER_FIELDS,
    MODIFIER_WORDS,
    MODIFIERS,
    OVERHEAD,
    STREAM_FIELDS,
    STREAM_SLOTS_MAX,
    STREAM_WORDS,
    LengthKind,
    ModifierOp,
    packed_words,
)
from liteprobe.host.base.defaults import FILLS
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.probe_url import is_simulated
from liteprobe.host.base.units import exact, time_text
from liteprobe.host.traffic.due import WORD, DueTicks, Timing, UnknownDueError
from liteprobe.host.traffic.headers import CHECKSUM_CONSTANT, header_words, ones_complement_sum
from liteprobe.host.traffic.intervals import (
    TICKS_MAX,
    back_to_back_cycle,
    head_ticks,
    is_back_to_back,
    ticks_of,
)
from liteprobe.host.traffic.lengths import Fixed, Lengths, RandomLength, Stepped
from liteprobe.host.traffic.load import (
    base_of,
    check_port,
    check_quiet,
    is_line_full,
    list_words,
    lists,
    receiver_settings,
    slowdown,
)
from liteprobe.host.traffic.modifiers import Field, Increment, Modifier, Random, Values, value_of
from liteprobe.host.traffic.stream import Stream

FRACTION_ONE = 2**32

LENGTH_SEED, INTERVAL_SEED, MODIFIER_SEED = 0, 1, 2  # What a random state is for; one of modifier k: MODIFIER_SEED + k.


@dataclass(frozen=True)
class PortWords:
    """Words of a port's memories, each from its word 0, as far as these streams need."""

    schedule: tuple[int, ...]  # Words of ``port<n>_schedule``.
    modifiers: tuple[int, ...]  # Of ``port<n>_modifiers``.
    lists: tuple[int, ...]  # Of ``port<n>_lists``.
    headers: tuple[int, ...]  # Of ``port<n>_header``.
    mask: int  # Of the streams: register ``streams_mask``.
    notes: tuple[str, ...] = ()  # What the reader of the figures must know, a sentence each.
    dues: tuple[DueTicks, ...] = ()  # When the frames of each stream are due.
    ends: tuple[int | None, ...] = ()  # Frames that each sends; None: without an end.
    is_timed: bool = False  # All end by themselves when their duration is over, or before.


def words_of(
    streams: Sequence[Stream], seconds: float | None, is_detached: bool, increment: Fraction | int | None = None
) -> dict[int, PortWords]:
    """Return by port the words of its streams; raises UsageError as ``port_words``, or when nobody could stop or name them."""
    names = [stream.name for stream in streams]
    if not streams:
        raise UsageError("there is no stream to send: give one or more")
    if seconds is not None and seconds <= 0:
        raise UsageError(f"{seconds:g} seconds are out of range: give more than 0")
    least_ns = streams[0].line.tick_ns
    if seconds is not None and exact(seconds) * 10**9 < least_ns:
        given = time_text(exact(seconds) * 10**9)
        raise UsageError(f"{given} is less than a tick of the probe's clock: give {float(least_ns):g} ns or more")
    if seconds is not None and is_detached:
        raise UsageError(
            "no host is left to stop detached streams after a duration: give each a count, or stop them later"
        )
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{names.count(name)} streams have the name '{name}': give each a name of its own")
    duration_ns = None if seconds is None else exact(seconds) * 10**9
    own = {number: [one for one in streams if one.port == number] for number in sorted({one.port for one in streams})}
    return {number: port_words(those, increment, duration_ns) for number, those in own.items()}


def receivers_of(
    streams: Sequence[Stream], receive: int | Mapping[int, int] | None, leads_to: Callable[[int], int], ports: int
) -> dict[int, int]:
    """Return which port measures what each port sends.

    ``receive``: as of ``Probe.send``; ``leads_to`` returns the port that the wire leads to from one; ``ports``: of the probe.
    Raises UsageError when there is no such port.
    """
    numbers = sorted({stream.port for stream in streams})
    found = {one: one for one in numbers}
    for direction in ("transmit", "receive"):
        for number in found.values():
            if not 0 <= number < ports:
                raise UsageError(f"there is no {direction} port {number}: give 0 to {ports - 1}")
        given = dict.fromkeys(numbers, receive) if isinstance(receive, int) else receive or {}
        found = {one: given[one] if one in given else leads_to(one) for one in numbers}
    return found


USUAL_PORTS = 2


def check_all(
    streams: Sequence[Stream], seconds: float | None, is_detached: bool, receive: int | None, url: str
) -> str:
    """Check all that is checked before a probe is written to, and return as of what probe: one that has what most have.

    ``url``: where the wire leads is known of simulated ones. Raises UsageError as ``words_of``, ``receivers_of`` and
    ``receiver_settings``.
    """
    is_loop = url.startswith(("sim://loopback", "sim10g://loopback"))
    receivers = receivers_of(streams, receive, lambda port: port if is_loop else port ^ 1, USUAL_PORTS)
    words = words_of(streams, seconds, is_detached)
    for port in set(receivers.values()):
        coming = [stream for stream in streams if receivers[stream.port] == port]
        receiver_settings(coming, base_of(coming, STREAM_SLOTS_MAX))
    if is_simulated(url) and "link=shared" in url and (own := [stream for stream in streams if stream.port == 0]):
        check_quiet(is_line_full(own), streams, seconds, all(one.is_timed for one in words.values()))
    return f"Checked as of a probe with {USUAL_PORTS} ports that each measure {STREAM_SLOTS_MAX - 1} ids in a row."


def port_words(
    streams: Sequence[Stream], increment: Fraction | int | None = None, duration_ns: Fraction | None = None
) -> PortWords:
    """Return the words that make a port send ``streams``; the first one is stream 0.

    ``streams``: up to 16, of one port; ``increment``: nanoseconds an octet of the line by the probe's clock, in 8.40 fixed
    point (None: by a right one): times and rates are those of disciplined time; ``duration_ns``: from the start of the
    program, no frame is due then or later. Raises UsageError as ``check_port``, or when a time is longer than a probe can
    count.
    """
    check_port(streams)
    increment = streams[0].line.nominal if increment is None else increment
    factor = slowdown(streams, increment)
    notes: tuple[str, ...] = ()
    if factor > 1:
        ppm = float((factor - 1) * 10**6)
        notes = (
            f"the line is {ppm:.1f} ppm slower than the rates asked for, by the probe's clock: they are lowered so much",
        )
    bases: dict[tuple[int, ...], int] = {}
    entries: list[int] = []
    for one in lists(streams):
        bases[one] = len(entries)
        entries += one
    schedule: list[int] = []
    modifiers: list[int] = []
    headers: list[int] = []
    dues = tuple(due_ticks(stream, timing(stream, increment, factor)) for stream in streams)
    ends, is_timed = _ends(streams, dues, duration_ns, increment)
    if duration_ns is not None and not is_timed:
        notes += (
            "the duration is not kept to the tick: in it are more frames of a stream (2^32 - 1), or random intervals (2^26), than "
            "the probe ends by itself, so this host stops the streams of this port some round trips after it",
        )
    for stream, due, end in zip(streams, dues, ends, strict=True):
        cut = stream if end == stream.count or not end else replace(stream, count=end)
        schedule += stream_words(cut, due.times, bases)
        modifiers += modifier_words(stream, bases)
        template = header_words(stream.template(stream.length.least))
        headers += template + [0] * (HEADER_WORDS_OF_STREAM - len(template))
    mask = sum(1 << number for number, end in enumerate(ends) if end != 0)
    memories = (tuple(schedule), tuple(modifiers), tuple(entries), tuple(headers))
    return PortWords(*memories, mask, notes, dues, ends, is_timed)


def due_ticks(stream: Stream, times: Timing) -> DueTicks:
    """Return when the frames of a stream are due."""
    states = [random_state(stream, purpose) for purpose in (INTERVAL_SEED, LENGTH_SEED)]
    return DueTicks(times, stream.length, stream.interval.exponential, *states)


def _ends(
    streams: Sequence[Stream], dues: Sequence[DueTicks], duration_ns: Fraction | None, increment: Fraction | int
) -> tuple[tuple[int | None, ...], bool]:
    """Return how many frames each stream sends (None: without an end), and whether that is as the duration wants it."""
    counts = tuple(stream.count for stream in streams)
    if duration_ns is None:
        return counts, False
    limit = ceil(ticks_of(duration_ns, increment))
    try:
        frames = [due.before(limit) for due in dues]
    except UnknownDueError:
        return counts, False
    cut = tuple(most if count is None else min(count, most) for count, most in zip(counts, frames, strict=True))
    return (cut, True) if max(cut) < WORD else (counts, False)


def timing(stream: Stream, increment: Fraction | int, factor: Fraction = Fraction(1)) -> Timing:
    """Return the times of a stream in ticks; those that follow the clock are stretched by ``factor``."""
    interval, length = stream.interval, stream.length
    phase = round(ticks_of(stream.start_ns, increment))
    if phase > TICKS_MAX:
        most_s = int(TICKS_MAX * stream.line.octet_ns / 10**9)
        raise UsageError(
            f"stream '{stream.name}': its start is above {most_s} s by the probe's clock: let it start earlier"
        )
    if is_back_to_back(interval, length, stream.line.nominal):
        cycle = back_to_back_cycle(length)
        assert cycle is not None  # Refused with the stream.
        frames, ticks = cycle
        return Timing(ticks, 0, frames if frames > 1 else 0, 0, phase)
    ticks_exact = head_ticks(interval, length, increment, factor)
    burst, inner = 0, 0
    if interval.burst is not None:
        burst = interval.burst.count
        inner_ns = interval.burst.inner_ns
        inner = 0 if inner_ns is None else round(ticks_of(inner_ns, increment))
        # By a slow clock the least interval is shorter than a frame: that is back to back.
        inner = 0 if inner <= length.greatest + OVERHEAD and isinstance(length, Fixed) else inner
    if interval.exponential:
        return Timing(max(1, round(ticks_exact * 2**MEAN_FRACTION_BITS)), 0, burst, inner, phase)
    whole, fraction = divmod(round(ticks_exact * FRACTION_ONE), FRACTION_ONE)
    return Timing(whole, fraction, burst, inner, phase)


def random_state(stream: Stream, purpose: int) -> int:
    """Return the first state of xorshift32 for what is random in a stream, never 0.

    ``purpose``: 0 its lengths, 1 its intervals, 2 to 5 its modifiers. With f a mixing of 32 bits that maps no two numbers to
    one, it is f(f(seed) xor (8 * id + purpose)), or 1 where that is 0.
    """
    return _mixed(_mixed(stream.seed) ^ (8 * stream.stream_id + purpose)) or 1


def _mixed(number: int) -> int:
    """Return 32 bits, each of which depends on all of ``number``.

    Source: Appleby, MurmurHash3 (2011), fmix32.
    """
    number ^= number >> 16
    number = number * 0x85EBCA6B % WORD
    number ^= number >> 13
    number = number * 0xC2B2AE35 % WORD
    return number ^ number >> 16


# Schedule ----------------------------------------------------------------------------------------------


def stream_words(stream: Stream, times: Timing, bases: dict[tuple[int, ...], int]) -> list[int]:
    """Return the words of a stream in the schedule; ``bases``: where each list begins."""
    values = {
        "exponential": stream.interval.exponential,
        "endless": stream.count is None,
        "interval": times.interval,
        "interval_fraction": times.fraction,
        "burst_frames": times.burst,
        "burst_left": max(1, times.burst),
        "burst_interval": times.inner,
        "phase": times.phase,
        "interval_random": random_state(stream, INTERVAL_SEED),
        "frames_left": stream.count or 0,
        **_length_values(stream, bases),
        **template_values(
            stream,
            {pair for _, place in stream.fields() for pair in place.pairs},
            stream.length.least != stream.length.greatest,
        ),
    }
    return packed_words(STREAM_FIELDS, STREAM_WORDS, values)


def template_values(stream: Stream, modified: set[int], varies: bool) -> dict[str, int]:
    """Return what describes the header of a stream and what is worked out for it: fields of its first four words.

    Parameters
    ----------
    stream : Stream
        Its modifiers don't matter.
    modified : set of int
        First octets of the pairs that change from frame to frame.
    varies : bool
        Whether the length does.
    """
    return {
        "fill": FILLS[stream.fill],
        "with_probe": stream.probe,
        "header_words": stream.template_octets // 4,
        "payload_offset": stream.covered_from,
        **_computed_values(stream, modified, varies),
        **_stamp_values(stream),
    }


def _length_values(stream: Stream, bases: dict[tuple[int, ...], int]) -> dict[str, int]:
    length = stream.length
    values = {"length_random": random_state(stream, LENGTH_SEED)}
    match length:
        case Fixed():
            values |= {"length_kind": LengthKind.FIXED, "length_least": length.length}
        case Stepped():
            values |= {
                "length_kind": LengthKind.STEPPED,
                "length_least": length.least,
                "length_greatest": length.greatest,
            }
            values |= {"length_next": length.least, "length_step": length.step}
        case RandomLength():
            values |= {"length_kind": LengthKind.RANDOM, "length_least": length.least}
            values["length_range"] = length.greatest - length.least + 1
        case Lengths():
            values |= {"length_kind": LengthKind.LIST, "list_base": bases[length.entries]}
            values |= {"list_entries": len(length.entries), "list_drawn": length.random}
    return values


def _computed_values(stream: Stream, modified: set[int], varies: bool) -> dict[str, int]:
    """Return what the gateware works out for each frame: lengths, checksums."""
    headers, length = stream.headers, stream.length.least
    network, transport = headers.network_offset, headers.transport_offset
    values = {"transport_offset": transport}
    if headers.has_ip:
        field, base = (network + 4, transport) if headers.is_ipv6 else (network + 2, network)
        values |= {"network_halfword": field // 2, "network_base": base, "network_write": varies}
    if headers.is_ipv4:
        changing = modified | ({network + 2} if varies else set())
        in_header = {pair for pair in changing if network <= pair < transport}
        fixed = _without(headers.stack(length, 0), in_header | {network + 10})
        values["ipv4_sum"] = ones_complement_sum(fixed[network:transport])
        values |= {"ipv4_halfword": (network + 10) // 2, "ipv4_write": bool(in_header)}
    if headers.has_transport and headers.transport == "udp":
        values |= {"udp_halfword": (transport + 4) // 2, "udp_write": varies}
    if stream.used_checksum == "complement":
        values |= {"checksum_enable": 1, "checksum_seed": _seed(stream, varies, modified)}
        with_length = varies and stream.has_own_pseudo_header
        values["seed_lengths"] = (
            (2 if headers.has_transport and headers.transport == "udp" else 1) if with_length else 0
        )
    return values


def _seed(stream: Stream, varies: bool, modified: set[int]) -> int:
    """Return the sum of pseudo-header and transport header without all that varies."""
    headers, length, coverage = stream.headers, stream.length.least, stream.coverage
    transport, payload = headers.transport_offset, headers.payload_offset
    is_udp = headers.has_transport and headers.transport == "udp"
    octets = stream.template(length) if coverage else headers.stack(length, CHECKSUM_CONSTANT[headers.transport])
    omitted = modified & stream.summed_pairs | ({transport + 4} if varies and is_udp else set())
    fixed = _without(octets, omitted)
    if coverage and not stream.has_own_pseudo_header:
        first = coverage.addresses
        return ones_complement_sum(fixed[first : first + coverage.octets] + coverage.constant.to_bytes(2))
    addresses = fixed[min(stream.summed_pairs) : transport]
    protocol = octets[headers.network_offset + (6 if headers.is_ipv6 else 9)]
    pseudo_length = 0 if varies else length - transport
    pseudo_header = pseudo_length.to_bytes(4) + protocol.to_bytes(4)
    return ones_complement_sum(addresses + pseudo_header + fixed[transport:payload])


def _without(octets: bytes, pairs: set[int]) -> bytes:
    """Return octets with some pairs of them as 0."""
    changed = bytearray(octets)
    for pair in pairs:
        changed[pair : pair + 2] = bytes(2)
    return bytes(changed)


def _stamp_values(stream: Stream) -> dict[str, int]:
    stamp = stream.used_stamp
    if stamp is None:
        return {}
    return {
        "stamp_enable": 1,
        "stamp_offset": stamp.offset(stream.headers),
        "stamp_octets_less_1": stamp.octets - 1,
        "stamp_shift": stamp.tick,
        "stamp_nibble": stamp.bits % 8 != 0,
        "stamp_mend": stamp.place == "ipv4.identification",
    }


# Modifiers ---------------------------------------------------------------------------------------------


def modifier_words(stream: Stream, bases: dict[tuple[int, ...], int]) -> list[int]:
    """Return the words of all modifiers of a stream, those that it doesn't use as 0."""
    words: list[int] = []
    for number, (modifier, place) in enumerate(stream.fields()):
        values = {
            "halfword": place.offset // 2,
            "mask": place.mask,
            "random": random_state(stream, MODIFIER_SEED + number),
            **_sums(stream, place),
            **_operation(stream, modifier, place, bases),
        }
        words += packed_words(MODIFIER_FIELDS, MODIFIER_WORDS, values)
    return words + [0] * (MODIFIERS * MODIFIER_WORDS - len(words))


def _sums(stream: Stream, place: Field) -> dict[str, int]:
    """Into which sums its two pairs of octets enter."""
    headers = stream.headers
    in_ipv4 = range(headers.network_offset, headers.transport_offset) if headers.is_ipv4 else range(0)
    in_seed = stream.summed_pairs if stream.used_checksum == "complement" else frozenset()
    values: dict[str, int] = {}
    for name, pair in (("high", place.offset), ("low", place.offset + 2)):
        values[f"{name}_in_ipv4"] = pair in place.pairs and pair in in_ipv4
        values[f"{name}_in_seed"] = pair in place.pairs and pair in in_seed
    return values


def _operation(stream: Stream, modifier: Modifier, place: Field, bases: dict[tuple[int, ...], int]) -> dict[str, int]:
    match modifier:
        case Increment():
            first = first_value(stream, modifier, place) << place.shift
            step = (modifier.signed_step << place.shift) % WORD
            values = {"op": ModifierOp.STEP, "step": step, "first": first, "value": first}
            return values | {"number": modifier.count, "left": modifier.count}
        case Random():
            return {"op": ModifierOp.RANDOM}
        case Values():
            words = list_words(stream, modifier, place.shift)
            operation = ModifierOp.DRAWN if modifier.random else ModifierOp.LIST
            return {"op": operation, "list_base": bases[words], "number": len(words)}


def first_value(stream: Stream, modifier: Increment, place: Field) -> int:
    """Return what a field that counts begins with: by default what the headers have."""
    if modifier.first is not None:
        return value_of(modifier.first, modifier.field, stream.headers)
    window = stream.template(stream.length.least)[place.offset : place.offset + 4]
    return (int.from_bytes(window) & place.mask) >> place.shift
