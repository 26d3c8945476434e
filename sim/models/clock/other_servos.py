# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Clock servos of others, to be compared with the firmware's own on the same pulses. Floating point, one call a pulse.

All get the same good start (rate from two pulses, phase set once), so that only the tracking is compared.
"""

from collections import deque
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


class Regression:
    """A straight line through the last measured phases of the oscillator, dead beat on where it will be next.

    ``length``: how many phases.
    """

    def __init__(self, length: int = 64) -> None:
        self._phases: deque[float] = deque(maxlen=length)
        self._steered = 0.0
        self._steering = 0.0

    def start(self, rate_ppb: float) -> None:
        """Begin with a rate."""
        self._steering = -rate_ppb

    def sample(self, offset_ns: float, periods: int) -> float:
        """Return the steering."""
        self._steered += self._steering * periods
        self._phases.append(offset_ns - self._steered)
        if len(self._phases) > 2:
            phases = np.array(self._phases)
            back = np.arange(len(phases)) - (len(phases) - 1.0)
            middle = back.mean()
            rate = float(((back - middle) @ phases) / ((back - middle) ** 2).sum())
            self._steering = -rate - (offset_ns - phases[-1] + phases.mean() - rate * middle)
        return self._steering


class ThreeStates:
    """A Kalman filter of phase, rate and drift with dead-beat steering.

    Parameters
    ----------
    noise_ns : of a measured offset, one sigma.
    phase_walk, rate_walk, drift_walk : of the oscillator after a second of random walk: ns, ppb, ppb a second; the
        defaults do best with oscillator B.
    drift : one sigma of the drift at the start, ppb a second.

    ``phase_ns``, ``rate_ppb``, ``drift_ppb_s``: of the clock, of the oscillator and of its rate, after the last sample.

    Source: R. G. Brown, P. Y. C. Hwang, "Introduction to Random Signals and Applied Kalman Filtering", 2012, 9.3.
    """

    def __init__(
        self,
        noise_ns: float,
        phase_walk: float = 0.3,
        rate_walk: float = 0.06,
        drift_walk: float = 0.014,
        drift: float = 1.0,
    ) -> None:
        self._measured = noise_ns**2
        p, r, d = phase_walk**2, rate_walk**2, drift_walk**2
        self._process = (p + r / 3 + d / 20, r / 2 + d / 8, d / 6, r + d / 3, d / 2, d)
        self._covariance = (self._measured, self._measured, 0.0, 2 * self._measured + drift**2, 0.0, drift**2)
        self.phase_ns = self.rate_ppb = self.drift_ppb_s = 0.0
        self._steering = 0.0

    def start(self, rate_ppb: float) -> None:
        """Begin with a rate."""
        self.rate_ppb = rate_ppb
        self._steering = -rate_ppb

    def sample(self, offset_ns: float, periods: int) -> float:
        """Return the steering."""
        pp, pr, pd, rr, rd, dd = self._covariance
        for _ in range(periods):
            self.phase_ns += self.rate_ppb + self._steering + self.drift_ppb_s / 2
            self.rate_ppb += self.drift_ppb_s
            pp += 2 * pr + rr + pd + rd + dd / 4 + self._process[0]
            pr += rr + pd + 1.5 * rd + dd / 2 + self._process[1]
            pd += rd + dd / 2 + self._process[2]
            rr += 2 * rd + dd + self._process[3]
            rd += dd + self._process[4]
            dd += self._process[5]
        total = pp + self._measured
        to_phase, to_rate, to_drift = pp / total, pr / total, pd / total
        residual = offset_ns - self.phase_ns
        self.phase_ns += to_phase * residual
        self.rate_ppb += to_rate * residual
        self.drift_ppb_s += to_drift * residual
        self._covariance = (
            pp - to_phase * pp,
            pr - to_phase * pr,
            pd - to_phase * pd,
            rr - to_rate * pr,
            rd - to_rate * pd,
            dd - to_drift * pd,
        )
        self._steering = -self.rate_ppb - self.drift_ppb_s / 2 - self.phase_ns
        return self._steering


class TwoStates(ThreeStates):
    """A Kalman filter of phase and rate.

    Parameters
    ----------
    noise_ns : of a measured offset, one sigma.
    rate_walk : ppb a square root of a second; 1.5 does best with oscillator B.
    """

    def __init__(self, noise_ns: float, rate_walk: float = 1.5) -> None:
        super().__init__(noise_ns, rate_walk=rate_walk, drift_walk=0.0, drift=0.0)
