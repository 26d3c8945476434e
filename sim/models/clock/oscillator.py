# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""An oscillator with noise, temperature and warm-up: how far it is ahead of true time, at any time."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bends:
    """A rate whose slope changes at once: it goes from one value to the next in a ramp, and rests there.

    Parameters
    ----------
    ppb : how far the values are apart.
    ramp_s, rest_s : least and most time of a ramp and of a rest; each is drawn anew.
    has_two_values : it goes back and forth (a fan, a thermostat); otherwise each value is drawn from -ppb to ppb.
    settle_s : time constant of what the temperature still lags behind such a course; 0: none.
    gust_ppb, gust_s : Gauss-Markov noise of the rate while the second of two values holds: the air of a fan.
    """

    ppb: float
    ramp_s: tuple[float, float]
    rest_s: tuple[float, float] = (0.0, 0.0)
    has_two_values: bool = True
    settle_s: float = 0.0
    gust_ppb: float = 0.0
    gust_s: float = 5.0


@dataclass(frozen=True)
class OscillatorSpec:
    """A crystal oscillator; the defaults are "oscillator B", a cheap one without temperature compensation.

    Parameters
    ----------
    offset_ppm : constant error of the rate.
    white : Allan deviation at 1 s of the white frequency noise.
    flicker : Allan deviation of the flicker floor.
    thermal_ppb, thermal_s : amplitude and period of a sinus of the rate, as an air conditioner makes.
    warm_up_ppm, warm_up_s : how much the rate falls by after power on, as an exponential that has gone through 95 % of
        it (three time constants) after that time; negative ppm: rises.
    bends : of the rate; None: none.
    popcorn_ppb, popcorn_s : random telegraph: the rate jumps between two values so far apart, after exponential times of
        this mean (S. Machlup, J. Appl. Phys. 25 (1954)).
    vibration_ppb, vibration_s, shaken_s : amplitude of the rate, acceleration times the crystal's sensitivity to it (R. L.
        Filler, IEEE Trans. UFFC 35 (1988)), and its period; it begins and ends after exponential times of the third's mean.
    ageing_ppb, ageing_s : the rate grows by A ln(1 + t / B) (MIL-PRF-55310, section 4).
    """

    offset_ppm: float = 0.0
    white: float = 3e-10
    flicker: float = 2e-10
    thermal_ppb: float = 200.0
    thermal_s: float = 1800.0
    warm_up_ppm: float = 0.0
    warm_up_s: float = 300.0
    bends: Bends | None = None
    popcorn_ppb: float = 0.0
    popcorn_s: float = 900.0
    vibration_ppb: float = 0.0
    vibration_s: float = 7.3
    shaken_s: float = 900.0
    ageing_ppb: float = 0.0
    ageing_s: float = 3600.0


class Oscillator:
    """One run of an oscillator; the same seed gives the same run.

    Parameters
    ----------
    seconds : how long the run may be.
    seed : of the noise and of the thermal phase.
    step_s : between two points of the noise; between them the rate is constant.
    """

    def __init__(self, spec: OscillatorSpec, seconds: float, seed: int, step_s: float = 0.25) -> None:
        generator = np.random.default_rng([seed, 1])
        count = int(np.ceil(seconds / step_s)) + 2
        self.spec = spec
        self._times = np.arange(count + 1) * step_s
        self._thermal_phase = generator.uniform(0, 2 * np.pi)
        rate = spec.white / np.sqrt(step_s) * generator.standard_normal(count)
        rate += flicker(count, spec.flicker, generator)
        if spec.bends is not None:
            rate += 1e-9 * bent(spec.bends, count, step_s, generator)
        if spec.popcorn_ppb:
            rate += 1e-9 * spec.popcorn_ppb * telegraph(count, spec.popcorn_s / step_s, generator)
        if spec.vibration_ppb:
            swing = np.sin(2 * np.pi * (self._times[:-1] / spec.vibration_s + generator.uniform()))
            rate += 1e-9 * spec.vibration_ppb * swing * telegraph(count, spec.shaken_s / step_s, generator)
        self._noise_ns = 1e9 * step_s * np.concatenate([[0.0], np.cumsum(rate)])

    def ahead_ns(self, true_s: Floats) -> Floats:
        """Return how far the oscillator, counting from 0 at its nominal rate, is ahead of true time (ns)."""
        spec = self.spec
        angle = 2 * np.pi / spec.thermal_s
        thermal = np.cos(self._thermal_phase) - np.cos(angle * true_s + self._thermal_phase)
        constant_s = spec.warm_up_s / 3
        warm = spec.warm_up_ppm * 1e3 * constant_s * -np.expm1(-true_s / constant_s)
        steady = spec.offset_ppm * 1e3 * true_s
        noise = np.interp(true_s, self._times, self._noise_ns)
        since = true_s / spec.ageing_s
        steady += spec.ageing_ppb * spec.ageing_s * ((1 + since) * np.log1p(since) - since)
        return np.asarray(steady + warm + spec.thermal_ppb / angle * thermal + noise)


def bent(bends: Bends, count: int, step_s: float, generator: np.random.Generator) -> Floats:
    """Return the rate (ppb) at ``count`` steps."""
    times, values = [0.0], [0.0]
    while times[-1] < count * step_s:
        if bends.has_two_values:
            value = 0.0 if values[-1] else bends.ppb
        else:
            value = generator.uniform(-bends.ppb, bends.ppb)
        rest, ramp = generator.uniform(*bends.rest_s), generator.uniform(*bends.ramp_s)
        times += [times[-1] + rest, times[-1] + rest + ramp]
        values += [values[-1], value]
    rate = np.interp(np.arange(count) * step_s, times, values)
    if bends.gust_ppb:
        rate += bends.gust_ppb * rate / bends.ppb * markov(count, bends.gust_s / step_s, generator)
    if bends.settle_s:
        rate = lag(rate, bends.settle_s / step_s)
    return np.asarray(rate)


def telegraph(count: int, steps: float, generator: np.random.Generator) -> Floats:
    """Return 0 and 1 in turn, each for an exponential time of so many steps on the mean."""
    flips = generator.random(count) < 1 / steps
    return np.asarray((np.cumsum(flips) + generator.integers(2)) % 2, np.float64)


def lag(values: Floats, steps: float) -> Floats:
    """Return what follows ``values`` with a time constant of so many steps."""
    keep = np.exp(-1 / steps)
    found, _ = lfilter([1 - keep], [1, -keep], values, zi=[keep * values[0]])
    return np.asarray(found)


def markov(count: int, steps: float, generator: np.random.Generator) -> Floats:
    """Return Gauss-Markov noise of one sigma 1 and a time constant of so many steps, stationary from its first value."""
    keep = np.exp(-1 / steps)
    noise = generator.standard_normal(count)
    noise[1:] *= np.sqrt(1 - keep**2)
    return np.asarray(lfilter([1.0], [1, -keep], noise))


def flicker(count: int, floor: float, generator: np.random.Generator) -> Floats:
    """Return flicker frequency noise whose Allan deviation is ``floor`` at any averaging time.

    Source: N. J. Kasdin, "Discrete simulation of colored noise and stochastic processes", Proc. IEEE 83 (1995), with
    alpha = 1; the floor is sqrt(2 ln 2 h_-1) and a unit input gives h_-1 = 1/pi (two-sided 1/(2 pi f)).
    """
    index = np.arange(1, count)
    response = np.concatenate([[1.0], np.cumprod((index - 0.5) / index)])
    length = 1 << (2 * count - 1).bit_length()
    noise = generator.standard_normal(count)
    shaped = np.fft.irfft(np.fft.rfft(noise, length) * np.fft.rfft(response, length), length)[:count]
    return np.asarray(floor / np.sqrt(2 * np.log(2) / np.pi) * shaped)
