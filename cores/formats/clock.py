# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Defines the states, errors and units of a probe's clock and of its PPS.

Stands alone: a table of data, as all files here are.
"""

from enum import IntEnum, IntFlag
from typing import Final


class ClockState(IntEnum):
    """Register ``clock_state``."""

    UNKNOWN = 0  # No firmware, or none that is alive.
    FREE_RUNNING = 1
    ACQUIRING = 2
    LOCKED = 3
    HOLDOVER = 4


class ClockMode(IntEnum):
    """Register ``clock_mode``, written by a host."""

    DISCIPLINE = 0
    LEAVE_ALONE = 1
    REACQUIRE = 2  # The firmware sets it back to DISCIPLINE.


class ClockError(IntFlag):
    """Bits of ``clock_error``."""

    NONE = 0
    NO_PPS = 1 << 0
    NO_NMEA = 1 << 1
    WRONG_SECOND = 1 << 2  # NMEA and clock disagree.
    WRONG_GATEWARE = 1 << 3  # The firmware was made for another map.
    NO_FIX = 1 << 4  # The receiver talks, but knows no time.
    BAD_NMEA = 1 << 5  # Sentences with a wrong checksum or form.
    STEP_REFUSED = 1 << 6  # The time is wrong, but a train runs: it is slewed.
    REFERENCE_JUMPED = 1 << 7  # The pulses have moved, or seem to: the bound covers where they were, too.
    LEAP_UNSURE = 1 << 8  # A leap second may have passed unseen: TAI may be a second off.
    SECOND_UNKNOWN = 1 << 9  # No second of a pulse is known yet: the clock's phase is right at most.
    PPS_INVERTED = 1 << 10  # Pulses are longer than the pauses between them: their ends may be taken for their beginnings.


# Word ``clock_error``: bits of ClockError, then how often the reference jumped and ``now`` was stepped; both wrap.
CLOCK_ERROR_MASK: Final = 0xFFFF
CLOCK_JUMPS_BIT: Final = 16
CLOCK_STEPS_BIT: Final = 24
CLOCK_COUNT_MASK: Final = 0xFF

#: Units of the block ``clock``: 1 LSB of uncertainty and offset (ns), rate (ppb), drift (ppt/s).
CLOCK_LSB: Final = 2.0**-8
UNCERTAINTY_UNKNOWN: Final = 0xFFFFFFFF  # That or more.


class PpsControl(IntFlag):
    """Bits of ``pps_control``."""

    NONE = 0
    ENABLE = 1 << 0
    INVERT = 1 << 1  # A pulse is low.


# Word ``clock_qerr``: bit 0, it is known; then low bits of the edge's ``pps_count``, and how late the edge was (signed, ps).
QERR_KNOWN: Final = 1
QERR_COUNT_BIT: Final = 1
QERR_COUNT_MASK: Final = 0x7F
QERR_BIT: Final = 8
PPS_SPURIOUS: Final = 1  # Bit of ``pps_flags``.
PPS_EARLY_BIT: Final = (
    4  # Of ``pps_flags``: from here on, samples between the pin's rise and the last sample of its tick.
)
PPS_EARLY_MASK: Final = 3
