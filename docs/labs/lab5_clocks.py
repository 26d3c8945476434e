# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
# %% [markdown]
# # Lab 5: clocks, PPS, Allan deviation
#
# **Aim.** You read an oscillator by a pulse per second, tell its rate from its noise, read an Allan deviation (what the
# slopes say), and let a servo steer a clock whose error you know from elsewhere.
#
# **Time.** 90 minutes: 30 of reading, 35 of measuring, 25 of questions.
#
# ## Background
#
# A GNSS receiver gives one pulse a second (PPS). It is right for ever, but each pulse is off by some nanoseconds. A
# quartz oscillator is smooth from one moment to the next, but it runs fast or slow, and it wanders. A good clock takes
# the short times from the quartz and the long times from the pulses.
#
# Let x(k) be the phase at pulse k: oscillator less reference, in seconds. The *Allan deviation* at an averaging time
# τ = m T is a root of a mean over all k:
#
# > σ(τ) = √( mean of (x(k + 2m) − 2 x(k + m) + x(k))² ) / (√2 τ)
#
# Constant phase and constant rate cancel; what is left is how much the mean rate over τ changes from one τ to the next.
#
# - White noise of the *phase* (pulses, quantisation), standard deviation s: √3 s / τ, slope −1.
# - White noise of the *rate*: slope −1/2.
# - A random walk of the *rate*: slope +1/2.
#
# A simulated second would take minutes. So a pulse comes every 100 us here, and the noise is made as much larger: read
# "100 us" as "1 s".
#
# Sources: D. W. Allan, "Statistics of atomic frequency standards", Proceedings of the IEEE 54(2), 1966. W. J. Riley,
# "Handbook of Frequency Stability Analysis", NIST Special Publication 1065, 2008. IEEE Std 1139-2008. D. A. Howe, D. W.
# Allan, J. A. Barnes, "Properties of signal sources and measurement methods", Frequency Control Symposium 1981. R. E.
# Kalman, "A new approach to linear filtering and prediction problems", Journal of Basic Engineering 82, 1960. RFC 2330,
# section 10 (clocks of a measurement). UBX-20033631 (u-blox, ZED-F9T: pulse and quantisation error).

# %%
import json
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import student

from liteprobe.host import Probe
from liteprobe.host.analysis.clock_stability import allan_deviation
from liteprobe.host.clock import log as clock_log

PROBE = None  # A board with a PPS: "etherbone://192.168.1.50". None: the simulated probe, with the pulses of step 1.
OUT = Path("lab-results")
OUT.mkdir(exist_ok=True)
results = {}

# %% [markdown]
# ## Step 1: make pulses of which you know everything
#
# The oscillator starts 20 ppm fast and its rate takes a random walk; each pulse is off by 10 ns. Seen by the oscillator, the
# pulses therefore come a little late: at k T (1 + 20e-6) plus the sum of the rate's wander plus noise. They go into a
# file, which plays the receiver. *The file is the truth of this lab.*

# %%
PERIOD_NS, PULSES, RATE = 100_000, 260, 20e-6
NOISE_NS, WALK = 10.0, 2e-6  # Of a pulse; of the rate, at each pulse.
random = np.random.default_rng(4)
rate = RATE + np.cumsum(random.normal(0, WALK, PULSES))
noise_ns = random.normal(0, NOISE_NS, PULSES)
true_phase_ns = np.concatenate([[0], np.cumsum(rate[1:])]) * PERIOD_NS  # Oscillator less reference.
edges_ns = PERIOD_NS * np.arange(1, PULSES + 1) + true_phase_ns + noise_ns
receiver = OUT / "lab5.receiver"
receiver.write_text("".join(f"pps {edge:.3f}\n" for edge in edges_ns))

# %% [markdown]
# ## Step 2: log them
#
# The probe stamps each edge in ticks of its oscillator, to a quarter of a tick: 2 ns. On a board leave the log running
# for an hour:
#
# ```
# ./run liteprobe clock log --probe etherbone://192.168.1.50 --out clock.csv --duration 3600s
# ./run liteprobe clock plot clock.csv --out clock.svg
# ```

# %%
log_file = OUT / "lab5.csv"
with Probe(PROBE or f"sim://loopback?receivers={receiver}") as probe, log_file.open("w") as stream:
    probe.clock.enable_pps(PERIOD_NS)
    writer = clock_log.Writer(stream, PERIOD_NS, probe.clock.quantum_ps)
    for edge in probe.clock.edges(PULSES * PERIOD_NS * 1.01 / 1e9, probe.wait):
        writer.write(edge, probe.clock.status())
log = clock_log.read(log_file)
phase_ns = log.oscillator_ns
seconds = log.index * PERIOD_NS / 1e9
slope = np.polyfit(seconds, phase_ns, 1)[0]
print(f"{len(phase_ns)} edges; the oscillator is {slope / 1e3:.2f} ppm fast")
results["edges"] = len(phase_ns)
results["rate_ppm"] = slope / 1e3

# %% [markdown]
# How well was each edge captured? Compare with the file. Errors of a quarter of a tick, evenly spread, have a deviation
# of 2 / √12 ns.

# %%
offset = PULSES - len(phase_ns)  # The first pulses may have come before the input was open.
captured_ns = phase_ns - (true_phase_ns + noise_ns)[offset:]
captured_ns -= captured_ns.mean()
print(f"capture: deviation {captured_ns.std():.3f} ns, at most {np.abs(captured_ns).max():.2f} ns off")
results["capture_deviation_ns"] = captured_ns.std()
results["capture_most_ns"] = np.abs(captured_ns).max()

# %% [markdown]
# ## Step 3: Allan deviation, by yourself
#
# Write it from the definition above. The library's function (allantools does the work) must agree.


# %%
def allan(phase_s, tau_s, m):
    """Return the overlapping Allan deviation at m periods of tau_s."""
    second = phase_s[2 * m :] - 2 * phase_s[m:-m] + phase_s[: -2 * m]
    return float(np.sqrt(np.mean(second**2) / 2) / (m * tau_s))


PERIOD_S = PERIOD_NS / 1e9
factors = np.array([1, 2, 4, 8, 16, 32, 64])
mine = np.array([allan(phase_ns / 1e9, PERIOD_S, m) for m in factors])
theirs = allan_deviation(phase_ns, PERIOD_NS)
assert np.allclose(mine, theirs.deviation[: len(mine)], rtol=1e-6)
white = np.sqrt(3) * np.hypot(NOISE_NS, 2 / np.sqrt(12)) * 1e-9 / (factors * PERIOD_S)
walk = WALK * np.sqrt((2 * factors**2 + 1) / (6 * factors))
for m, deviation, a, b in zip(factors, mine, white, walk, strict=True):
    print(f"tau {m:3} periods: {deviation:.2e}; theory: noise {a:.2e}, walk {b:.2e}, both {np.hypot(a, b):.2e}")
results["allan_1"] = mine[0]
results["allan_4"] = mine[2]
results["best_periods"] = float(factors[np.argmin(mine)])
results["slope_short"] = float(np.log2(mine[2] / mine[0]) / 2)

# %% [markdown]
# The least of the curve says over how many pulses a clock should average: shorter follows the noise of the pulses,
# longer follows the wander of the oscillator too late.
#
# ## Step 4: let a servo do it
#
# LiteProbe's servo reads the pulses and steers the clock of the probe. Here it runs on this computer. A pulse comes every
# millisecond; the oscillator is 20 ppm fast; the pulses are off by up to 8 ns either way.
#
# ```
# ./run liteprobe clock discipline --probe 'sim://loopback?receivers=lab-results/lab5.servo' --period 1ms --duration 60ms \
#     --log clock.csv
# ```

# %%
SERVO_NS, SERVO_PULSES = 1_000_000, 64
steady = SERVO_NS * (1 + RATE) * np.arange(1, SERVO_PULSES + 1)
jitter_ns = np.random.default_rng(8).uniform(-8, 8, SERVO_PULSES)
servo_file, servo_log = OUT / "lab5.servo", OUT / "lab5_servo.csv"
servo_file.write_text("".join(f"pps {edge:.3f}\n" for edge in steady + jitter_ns))
url = PROBE or f"sim://loopback?receivers={servo_file}"
command = ["clock", "discipline", "--probe", url, "--duration", "60ms", "--log", str(servo_log)]
command += [] if PROBE else ["--period", "1ms"]
done = subprocess.run(
    [sys.executable, "-m", "liteprobe.host.cli", *command], capture_output=True, text=True, check=False
)
print(done.stdout or done.stderr)

# %% [markdown]
# The log has what the clock said of itself at each edge, and the file has the truth. The offset is clock less pulse; a
# pulse that came late by j would make a right clock read j at that moment. So the error of the clock is offset less j.

# %%
steered = clock_log.read(servo_log)
pulse_error_ns = jitter_ns[
    np.clip(np.rint(steered.ticks * 8 / (SERVO_NS * (1 + RATE))).astype(int) - 1, 0, SERVO_PULSES - 1)
]
error_ns = steered.offset_ns - pulse_error_ns
settled = np.array([state == "locked" for state in steered.state])
inside = np.abs(error_ns[settled]) <= steered.bound_ns[settled]
print(f"locked at {settled.sum()} of {len(settled)} edges; error {error_ns[settled][5:].std():.2f} ns")
print(f"the clock's own bound held at {100 * inside.mean():.0f} % of them")
results["locked_edges"] = int(settled.sum())
results["servo_error_ns"] = float(np.sqrt(np.mean((error_ns[settled][5:]) ** 2)))
results["bound_held"] = float(inside.mean())

# %% [markdown]
# ## Your plot

# %%
figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
axes[0].plot(seconds * 1e3, phase_ns - slope * seconds, linewidth=0.8, label="measured")
axes[0].plot(seconds * 1e3, true_phase_ns[offset:] - slope * seconds, label="oscillator (truth)")
axes[0].set(xlabel="time (ms)", ylabel="phase less line (ns)", title="Rate taken out")
axes[0].legend()
axes[1].loglog(factors, mine, "o", label="measured")
axes[1].loglog(factors, white, ":", label="noise of the pulses, slope -1")
axes[1].loglog(factors, walk, "--", label="walk of the rate, slope +1/2")
axes[1].loglog(factors, np.hypot(white, walk), "k", linewidth=0.8, label="both")
axes[1].set(xlabel="averaging time (periods)", ylabel="Allan deviation", title="Which noise rules when")
axes[1].legend(fontsize=8)
axes[2].plot(np.flatnonzero(settled), error_ns[settled], ".-", label="error of the clock")
axes[2].fill_between(
    np.flatnonzero(settled),
    -steered.bound_ns[settled],
    steered.bound_ns[settled],
    alpha=0.2,
    label="its own bound, 95 %",
)
axes[2].set(xlabel="pulse", ylabel="ns", title="Steered by a servo")
axes[2].legend()
figure.savefig(OUT / "lab5.png", dpi=120)

# %% [markdown]
# ## Questions
#
# 1. Why does a wrong but constant rate not show in an Allan deviation? Where does it show?
# 2. Read off your plot: over how many pulses should this clock average? What changes if the receiver is ten times better?
# 3. The PPS is stamped to 2 ns. Would 0.1 ns make the Allan deviation at one period better here? From which noise of the
#    pulses on does it matter?
# 4. The pulses stop (somebody parks a lorry on the antenna). How wrong is the clock after 100 periods, if its rate is
#    known to 1 ppm? If its rate also drifts by 0.1 ppm a period?
# 5. Why does the servo step the clock only while it acquires, and never while a measurement runs?
# 6. GPS time, TAI and UTC differ by whole seconds. Which one should a delay between two probes be taken in?

# %%
results = {name: float(value) for name, value in results.items()}
(OUT / "lab5.json").write_text(json.dumps(student.named(results), indent=2))
print(json.dumps(results, indent=2))
