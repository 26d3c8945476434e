# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads the accumulators of a port and of its streams, as the memory of its meter shows them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from liteprobe.cores import formats
from liteprobe.host.device.registers import Registers

STREAM_IDS = 1 << 16


@dataclass(frozen=True)
class ReceivedStream:
    """Probe frames of a stream; damaged ones are in none."""

    slot: int  # From 1 on; 0: the probe frames of all other streams, whose sequence numbers then say nothing.
    stream_id: int | None  # None in slot 0.
    #: ``frames``, ``octets``, ``first_stamp_ns``, ``last_stamp_ns``: duplicates and late ones too; octets without FCS.
    #: Stamps are 0 without frames.
    frames: int
    octets: int
    first_stamp_ns: int
    last_stamp_ns: int
    #: ``expected``, ``lost``, ``duplicated``, ``reordered``, ``beyond_window``: next sequence number that is expected,
    #: and what came otherwise, modulo 2^32 (RFC 4737, section 3; window of 128). As a meter has them, they are of a stream
    #: whose first number is 0: of one that was under way when the meter was cleared, ``lost`` has all numbers before it
    #: (`liteprobe.host.serve.poll.Poller` counts from its first look on). None: not known.
    expected: int
    lost: int | None
    duplicated: int | None
    reordered: int | None
    beyond_window: int | None
    #: ``delay_min_ns``, ``delay_max_ns``, ``delay_sum_ns``, ``delay_square_sum``: RX stamp less TX stamp (ns, ns^2),
    #: exact; 0 without frames.
    delay_min_ns: int
    delay_max_ns: int
    delay_sum_ns: int
    delay_square_sum: int
    #: ``bit_errors``, ``damaged_bit_errors``: bits of the fill that are not PRBS-31's, of all frames of the stream; and
    #: of those with a bad FCS, which are counted nowhere else in it. None: this probe checks no fill, or not that of
    #: this stream (`Monitor.watch`).
    bit_errors: int | None = None
    damaged_bit_errors: int | None = None
    #: Delays are known modulo this alone, the range of a short stamp; None: they are known.
    delay_modulo_ns: int | None = None
    #: ``missing_before``: numbers from 0 on that had not come when the stream was first looked at: sent before its meter was
    #: cleared, or lost until then; none of them is in ``lost``. ``came_before``: frames that had come until then, but for
    #: duplicates and those beyond the window.
    missing_before: int | None = 0
    came_before: int = 0

    @property
    def delay_mean_ns(self) -> float:
        """Mean delay (ns), also where clocks disagree so far that the sum wrapped; NaN without frames."""
        return self._delay_total_ns / self.frames if self.frames else float("nan")

    @property
    def delay_std_ns(self) -> float:
        """Standard deviation of the sample of delays (ns); NaN without frames, 0 of one.

        Delays outside +-(2^32 - 1) ns enter the squares as 2^32 - 1: it is NaN, too, where there were any.
        """
        limit = (1 << 32) - 1
        if not self.frames or self.delay_min_ns < -limit or self.delay_max_ns > limit:
            return float("nan")
        # Exact up to the root: these are integers.
        square = self.delay_square_sum * self.frames - self._delay_total_ns**2
        return float((square / (self.frames * (self.frames - 1))) ** 0.5) if self.frames > 1 else 0.0

    @property
    def loss_ratio(self) -> float:
        """Lost over all that were sent, as far as the numbers tell; NaN without frames, or where loss isn't known."""
        if self.lost is None:
            return float("nan")
        sent = self.lost + self.came - self.came_before
        return self.lost / sent if sent else float("nan")

    @property
    def came(self) -> int:
        """Frames but for duplicates and those beyond the window, which may be copies of some that came."""
        return self.frames - (self.duplicated or 0) - (self.beyond_window or 0)

    @property
    def _delay_total_ns(self) -> int:
        """Sum of the delays, not modulo 2^64: it is no less than the least one times the frames."""
        least = self.frames * self.delay_min_ns
        return least + (self.delay_sum_ns - least) % (1 << 64)


def modulo_of(streams: Iterable[ReceivedStream]) -> int | None:
    """Return what all delays of these streams are known modulo, the least range, as all are powers of two; None: they are known."""
    return min((one.delay_modulo_ns for one in streams if one.frames and one.delay_modulo_ns), default=None)


def streams_memory(port: int) -> str:
    """Return the name of the memory that shows the accumulators of a port."""
    return f"port{port}_streams"


def read_accumulators(registers: Registers, port: int) -> list[dict[str, int]]:
    """Return the accumulators of the last snapshot by name: those of the port, then those of each slot.

    Slot 0 has the probe frames of no stream, slot 1 the first stream, and so on.
    """
    memory = streams_memory(port)
    words = registers.read_memory(memory, 0, registers.memory(memory).words)
    slots = words.reshape(-1, formats.STREAM_SLOT_WORDS).tolist()
    return [named(formats.PORT_ACCUMULATORS, slots[0]), *(named(formats.STREAM_ACCUMULATORS, slot) for slot in slots)]


def read_stream(registers: Registers, port: int) -> dict[str, int]:
    """Return the accumulators of the first stream, as of the last snapshot, by name."""
    words = registers.read_memory(streams_memory(port), formats.STREAM_SLOT_WORDS, formats.STREAM_SLOT_WORDS)
    return named(formats.STREAM_ACCUMULATORS, words.tolist())


def named(layout: Mapping[str, formats.Accumulator], words: Sequence[int]) -> dict[str, int]:
    """Return the accumulators that ``words`` of a slot hold, by name."""
    return {name: place.value(words) for name, place in layout.items()}


def stream_of(
    slot: int, stream_base: int, values: Mapping[str, int], is_checked: bool = False, delay_modulo_ns: int | None = None
) -> ReceivedStream:
    """Return the stream of a slot from its accumulators; ``is_checked``: its fill is."""
    in_ns = ("first_stamp", "last_stamp", "delay_min", "delay_max", "delay_sum")
    named = {name: value for name, value in values.items() if is_checked or name not in formats.BIT_ERRORS}
    fields = {name + "_ns" if name in in_ns else name: value for name, value in named.items()}
    stream_id = (stream_base + slot - 1) % STREAM_IDS if slot else None
    lost = formats.lost_frames(values)
    return ReceivedStream(slot=slot, stream_id=stream_id, lost=lost, delay_modulo_ns=delay_modulo_ns, **fields)


def counters_of(registers: Registers, port: int) -> list[str]:
    """Return the names of the registers that say what became of a port's frames: those of the memory of its snapshot."""
    name = f"port{port}_snapshot"
    if name not in registers.memory_names:
        return []
    memory = registers.memory(name)
    places = range(memory.address, memory.address + 4 * memory.words)
    counted = [name for name in registers.names if name.startswith(f"port{port}_rx_")]
    return [name for name in counted if registers.register(name).address in places]
