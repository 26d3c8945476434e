# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A GNSS receiver: when its pulses come, what it says of them (qErr), its NMEA sentences and u-blox's binary ones."""

import struct
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from liteprobe.sim.models.clock.oscillator import markov

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ReceiverSpec:
    """Describes a receiver's pulses; the defaults are an ideal one.

    Parameters
    ----------
    white_ns : white noise of each pulse, one sigma.
    wander_ns, wander_s : slow error (ionosphere, multipath), one sigma and time constant, Gauss-Markov.
    grid_ns : the pulse leaves at an edge of the receiver's own clock of this period: the sawtooth. 0: none.
    grid_ppm, grid_ppb : offset of that clock, and how far its temperature swings it.
    has_qerr : whether the receiver tells the error of its grid.
    outliers : share of pulses that are off by 100 to 1000 ns, either way.
    missing : share of pulses that don't come.
    spurious : pulses a period that come at any time besides.
    outages : (from, to) in seconds: no pulses.
    """

    white_ns: float = 0.0
    wander_ns: float = 0.0
    wander_s: float = 200.0
    grid_ns: float = 0.0
    grid_ppm: float = 0.35
    grid_ppb: float = 50.0
    has_qerr: bool = False
    outliers: float = 0.0
    missing: float = 0.0
    spurious: float = 0.0
    outages: tuple[tuple[float, float], ...] = ()


# The noise of these three is what makes a plain PI servo as bad as published runs with such receivers have it.
IDEAL = ReceiverSpec()
TIMING = ReceiverSpec(white_ns=1.6, wander_ns=1.4, grid_ns=25.0)
TIMING_QERR = replace(TIMING, has_qerr=True)
PLAIN = ReceiverSpec(white_ns=7.0, wander_ns=5.5, grid_ns=25.0)
# A navigation receiver: 10 ns in all, most of it slow.
WANDERING = ReceiverSpec(white_ns=5.0, wander_ns=9.0)


@dataclass(frozen=True)
class Pulses:
    """The pulses of a run, in the order of time.

    Attributes
    ----------
    time_s : whole period that the pulse belongs to, in seconds, shape (pulses,).
    late_ns : how much later than that the edge is, shape (pulses,).
    qerr_ns : what the receiver says of it; NaN where it says nothing, shape (pulses,).
    is_spurious, is_outlier : what it is, shape (pulses,).
    """

    time_s: Floats
    late_ns: Floats
    qerr_ns: Floats
    is_spurious: NDArray[np.bool_]
    is_outlier: NDArray[np.bool_]


def pulses(spec: ReceiverSpec, count: int, seed: int, period_s: float = 1.0) -> Pulses:
    """Return the pulses at the periods 1 to ``count``; the same seed gives the same pulses."""
    generator = np.random.default_rng([seed, 2])
    time_s: Floats = np.arange(1, count + 1, dtype=np.float64) * period_s
    late: Floats = spec.white_ns * generator.standard_normal(count) + wander(spec, count, generator, period_s)
    sawtooth = grid(spec, time_s, late, generator)
    late = late + sawtooth
    is_outlier = generator.random(count) < spec.outliers
    size = generator.uniform(100, 1000, count) * generator.choice([-1.0, 1.0], count)
    late = late + np.where(is_outlier, size, 0)
    stays = generator.random(count) >= spec.missing
    for start, end in spec.outages:
        stays &= (time_s < start) | (time_s >= end)
    extra = np.flatnonzero(generator.random(count) < spec.spurious)
    extra_ns = generator.uniform(0.02e9, 0.98e9, len(extra)) * period_s
    all_times = np.concatenate([time_s[stays], time_s[extra]])
    all_late = np.concatenate([late[stays], extra_ns])
    qerr = np.concatenate(
        [sawtooth[stays] if spec.has_qerr else np.full(stays.sum(), np.nan), np.full(len(extra), np.nan)]
    )
    outlying = np.concatenate([is_outlier[stays], np.zeros(len(extra), bool)])
    spurious = np.arange(len(all_times)) >= stays.sum()
    order = np.lexsort((all_late, all_times))
    return Pulses(all_times[order], all_late[order], qerr[order], spurious[order], outlying[order])


def wander(spec: ReceiverSpec, count: int, generator: np.random.Generator, period_s: float) -> Floats:
    """Return a Gauss-Markov process, stationary from its first value on (ns)."""
    return spec.wander_ns * markov(count, spec.wander_s / period_s, generator)


def grid(spec: ReceiverSpec, time_s: Floats, wanted_ns: Floats, generator: np.random.Generator) -> Floats:
    """Return how much the pulse is moved to the nearest edge of the receiver's own clock (ns)."""
    if spec.grid_ns == 0:
        return np.zeros_like(time_s)
    angle = 2 * np.pi / 1200
    start, phase = generator.uniform(0, 1), generator.uniform(0, 2 * np.pi)
    swing_ns = spec.grid_ppb / angle * (np.cos(phase) - np.cos(angle * time_s + phase))
    ahead_ns = 1e3 * spec.grid_ppm * time_s + swing_ns + spec.grid_ns * start + wanted_ns
    return np.asarray(np.round(ahead_ns / spec.grid_ns) * spec.grid_ns - ahead_ns)


# NMEA ---------------------------------------------------------------------------------------------


def sentence(body: str) -> bytes:
    """Return an NMEA sentence with its checksum (IEC 61162-1, section 7)."""
    checksum = 0
    for octet in body.encode():
        checksum ^= octet
    return f"${body}*{checksum:02X}\r\n".encode()


def clock_text(utc: datetime, leap: bool = False) -> str:
    """Return hhmmss.ss; ``leap``: the second 60 that follows ``utc``, which must be a second 59."""
    return utc.strftime("%H%M") + ("60" if leap else utc.strftime("%S")) + ".00"


def rmc(utc: datetime, is_valid: bool = True, leap: bool = False) -> bytes:
    """Return the recommended minimum sentence for a second of UTC."""
    status = "A" if is_valid else "V"
    return sentence(f"GNRMC,{clock_text(utc, leap)},{status},5542.1234,N,01233.5678,E,0.01,,{utc:%d%m%y},,,A,V")


def zda(utc: datetime, leap: bool = False) -> bytes:
    """Return time and date for a second of UTC."""
    return sentence(f"GNZDA,{clock_text(utc, leap)},{utc:%d},{utc:%m},{utc:%Y},00,00")


def gga(utc: datetime, is_valid: bool = True, leap: bool = False) -> bytes:
    """Return the fix data for a second of UTC."""
    quality = 1 if is_valid else 0
    return sentence(f"GNGGA,{clock_text(utc, leap)},5542.1234,N,01233.5678,E,{quality},12,0.80,10.0,M,40.0,M,,")


def utc_of(seconds: int) -> datetime:
    """Return the moment ``seconds`` after 1970-01-01 UTC, leap seconds not counted."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


# UBX ----------------------------------------------------------------------------------------------

GPS_EPOCH = datetime(1980, 1, 6, tzinfo=UTC)
WEEK_S = 604_800


def ubx(message_class: int, message: int, payload: bytes) -> bytes:
    """Return a message of u-blox's protocol with its checksum (UBX-20033631, "UBX frame structure")."""
    body = bytes([message_class, message]) + struct.pack("<H", len(payload)) + payload
    sum_a = sum_b = 0
    for octet in body:
        sum_a = (sum_a + octet) & 0xFF
        sum_b = (sum_b + sum_a) & 0xFF
    return b"\xb5\x62" + body + bytes([sum_a, sum_b])


def tim_tp(utc: datetime, late_ps: int, is_valid: bool = True, gps_utc: int | None = None, reference: int = 0) -> bytes:
    """Return UBX-TIM-TP of the pulse at a second of UTC, which comes ``late_ps`` after it; it is sent before that pulse.

    qErr says how early the pulse is: firmware/lib/second/qerr.h. ``gps_utc``: the receiver counts in the time of a
    satellite system (``reference``, 0: GPS), which is so many seconds ahead of UTC; None: in UTC.
    """
    week, tow = divmod(int((utc - GPS_EPOCH).total_seconds()) + (gps_utc or 0), WEEK_S)
    flags = 0x03 if gps_utc is None else 0x00  # Time base UTC, which is available, or GNSS.
    flags |= 0x00 if is_valid else 0x10  # qErr is not valid.
    return ubx(0x0D, 0x01, struct.pack("<IIiHBB", 1000 * tow, 0, -late_ps, week, flags, reference))


def timels(current: int | None, change: int | None = None, in_s: int = 0, source: int = 2) -> bytes:
    """Return UBX-NAV-TIMELS: GPS less UTC, and the leap second that comes ``in_s`` from now; None: not known (valid bits)."""
    valid = (current is not None) | (change is not None) << 1
    fields = (0, 0, source, current or 0, source if change is not None else 0, change or 0, in_s, 0, 0, valid)
    return ubx(0x01, 0x26, struct.pack("<IB3xBbBbiHH3xB", *fields))
