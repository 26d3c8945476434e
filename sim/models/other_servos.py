# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Clock servos of others, to be compared with the firmware's own on the same pulses. Floating point, one call a pulse.

All get the same good start (rate from two pulses, phase set once), so that only the tracking is compared.
"""

from typing import Protocol

import numpy as np


class OtherServo(Protocol):
    """A servo: from the measured offset of the clock to the rate at which it shall run."""

    def start(self, rate_ppb: float) -> None:
        """Begin with the rate of the oscillator that two pulses gave (ppb)."""

    def sample(self, offset_ns: float, periods: int) -> float:
        """Return the steering (ppb, added to the oscillator) for an offset of the clock, ``periods`` after the last."""


class ProportionalIntegral:
    """``pi`` of linuxptp with its defaults for hardware stamps at one pulse a second: 0.7 and 0.3.

    Source: linuxptp, pi.c.
    """

    def __init__(self, proportional: float = 0.7, integral: float = 0.3) -> None:
        self._proportional = proportional
        self._integral = integral
        self._sum = 0.0

    def start(self, rate_ppb: float) -> None:
        """Begin with a rate."""
        self._sum = -rate_ppb

    def sample(self, offset_ns: float, periods: int) -> float:
        """Return the steering."""
        self._sum -= self._integral * offset_ns
        return self._sum - self._proportional * offset_ns


class ErrorSum(ProportionalIntegral):
    """The sum of all errors sets the rate, as in the packet-train paper, which doesn't publish its gain.

    A sum alone is unstable (its poles lie at sqrt(1 + gain) from the centre), so the last error damps it here. Both
    gains are ours.

    Source: M. Ruiz et al., 2015 (packet-train tester with a variable-rate counter corrected by GPS).
    """

    def __init__(self) -> None:
        super().__init__(proportional=0.4, integral=0.1)


class FrequencyOnly:
    """The rate that the last two pulses showed; the phase is never looked at, as in OSNT's stamp counter.

    Source: G. Antichi et al., "OSNT: Open Source Network Tester", IEEE Network 2014.
    """

    def __init__(self) -> None:
        self._steering = 0.0
        self._last: float | None = None

    def start(self, rate_ppb: float) -> None:
        """Begin with a rate."""
        self._steering = -rate_ppb

    def sample(self, offset_ns: float, periods: int) -> float:
        """Return the steering."""
        if self._last is not None:
            self._steering -= (offset_ns - self._last) / periods
        self._last = offset_ns
        return self._steering


class TwoStates:
    """A Kalman filter of phase and rate with dead-beat steering, its noise tuned to the same oscillator.

    Parameters
    ----------
    noise_ns : of a measured offset, one sigma.
    rate_walk : ppb a square root of a second; 1.5 does best with oscillator B.
    """

    def __init__(self, noise_ns: float, rate_walk: float = 1.5) -> None:
        self._measured = noise_ns**2
        self._process = np.array([0.09 + rate_walk**2 / 3, rate_walk**2 / 2, rate_walk**2])
        self._rate = 0.0
        self._steering = 0.0
        self._phase = 0.0
        self._pp, self._pr, self._rr = self._measured, self._measured, 2 * self._measured

    def start(self, rate_ppb: float) -> None:
        """Begin with a rate."""
        self._rate = rate_ppb
        self._steering = -rate_ppb

    def sample(self, offset_ns: float, periods: int) -> float:
        """Return the steering."""
        for _ in range(periods):
            self._phase += self._rate + self._steering
            self._pp += 2 * self._pr + self._rr + float(self._process[0])
            self._pr += self._rr + float(self._process[1])
            self._rr += float(self._process[2])
        total = self._pp + self._measured
        gain_phase, gain_rate = self._pp / total, self._pr / total
        residual = offset_ns - self._phase
        self._phase += gain_phase * residual
        self._rate += gain_rate * residual
        self._rr -= gain_rate * self._pr
        self._pr *= 1 - gain_phase
        self._pp *= 1 - gain_phase
        self._steering = -self._rate - self._phase
        return self._steering
