# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
# %% [markdown]
# # Lab 3: quantisation and stamps
#
# **Aim.** You know what a time stamp with a resolution of 8 ns is worth: which errors add up and which do not, when the
# mean of many stamps is better than one of them and when it is not, and how one clock is read by another.
#
# **Time.** 75 minutes: 20 of reading, 30 of measuring, 25 of questions.
#
# ## Background
#
# The probe counts ticks of 8 ns. A time is rounded down to a tick, so it is wrong by an error between 0 and 8 ns. If
# every error in this range is as likely as any other, its standard deviation is 8 / √12 = 2.31 ns.
#
# Two ways to send a frame every 1000.3 ns: round the interval to a tick and add it up (each frame then makes the same
# error again, and the sum grows without end), or keep the exact time and round only when a frame starts.
#
# A stamp says when the SFD passed, not when the frame ended: so it does not depend on the length of the frame.
#
# Sources: W. R. Bennett, "Spectra of quantized signals", Bell System Technical Journal 27, 1948 (errors that are evenly
# spread). B. Widrow, I. Kollar, "Quantization Noise", Cambridge University Press, 2008. RFC 2330, sections 10.1 and 10.2
# (errors of clocks, wire time). RFC 7679, section 3.7 (calibration). G. Antichi et al., "OSNT: open source network
# tester", IEEE Network 28(5), 2014.

# %%
import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import student

from liteprobe.host import Probe, TrainProgram
from liteprobe.host.run.trains import Route
from liteprobe.host.suites.owd import OneWay

PROBE = None  # A board: "etherbone://192.168.1.50". None: the simulated probe, behind the wire that a step names.
OTHER_PROBE = None  # A second board, for step 3.
OUT = Path("lab-results")
OUT.mkdir(exist_ok=True)
results = {}
TICK_NS = 8.0

# %% [markdown]
# ## Step 1: an interval that is not a multiple of a tick
#
# 400 frames of 60 octets, one every 1000.3 ns. The probe stamps the start of each. Compare with the exact time, and with
# what adding up a rounded interval of 1000 ns would give:
#
# ```
# ./run liteprobe train --probe 'sim://cable?delay=1us' --length 60 --count 400 --interval 1000.3ns
# ```

# %%
COUNT, INTERVAL_NS = 400, 1000.3
with Probe(PROBE or "sim://cable?delay=1us") as probe:
    records = probe.train(TrainProgram(60, COUNT, interval_ns=INTERVAL_NS)).records
number = np.arange(COUNT)
sent_ns = (records["tx_stamp"] - records["tx_stamp"][0]).astype(float)
error_ns = sent_ns - number * INTERVAL_NS
naive_error_ns = number * 1000.0 - number * INTERVAL_NS
print(f"error of a start: {error_ns.min():.2f} to {error_ns.max():.2f} ns, deviation {error_ns.std():.2f} ns")
print(f"the last frame, by a rounded interval: {naive_error_ns[-1]:.2f} ns")
results["start_error_least_ns"] = error_ns.min()
results["start_error_most_ns"] = error_ns.max()
results["start_error_deviation_ns"] = error_ns.std()
results["naive_error_ns"] = naive_error_ns[-1]

# %% [markdown]
# ## Step 2: one clock for both stamps
#
# Both stamps of a delay come from the same clock here, and the cable is synchronous with it. What is the delay of the
# cable, and how much do 400 packets scatter? Does their mean tell you whether the cable is 1000 or 1003 ns long?

# %%
for delay in (1000, 1003, 1005):
    with Probe(PROBE or f"sim://cable?delay={delay}ns") as probe:
        records = probe.train(TrainProgram(60, 50)).records
    delays_ns = (records["rx_stamp"] - records["tx_stamp"]).astype(float)
    print(f"cable of {delay} ns: mean {delays_ns.mean():.3f} ns, deviation {delays_ns.std():.3f} ns")
    results[f"cable_{delay}_mean_ns"] = delays_ns.mean()
results["one_clock_deviation_ns"] = delays_ns.std()

# %% [markdown]
# ## Step 3: two clocks
#
# Now the frames go from one probe to another, whose oscillator is slower by 50 millionths (20 ppm fast, 30 ppm slow).
# Nobody disciplines the clocks, so the delay drifts: in each microsecond by 50 ps. A straight line takes that out. What
# is left is the receive stamp's quantisation, because the frames now arrive at any place of the receiver's tick.
#
# The receiver also latches the clock of the line (what the sender's oscillator does) now and then, and fits a line
# through the latches. That tells *where within its tick* an SFD came. A few come so near to the edge of a tick that the
# line can't tell on which side; they get the middle of the tick, and are off by up to 4 ns: a small group of its own in
# your plot.

# %%
PAIR = "sim://pair?oscillators=20,-30&delay=1us&pps=1ms"
with Probe(PROBE or PAIR + "&probe=a") as sender, Probe(OTHER_PROBE or PAIR + "&probe=b") as receiver:
    for probe in (sender, receiver):
        probe.clock.enable_pps(1_000_000)
    route = Route(TrainProgram(60, COUNT, interval_ns=5000.0), sender, receiver)
    found = OneWay([route], any_clock=True).measure()[0]
arrived = found.arrived
seconds = (arrived.tx_stamp - arrived.tx_stamp[0]).astype(float) / 1e9
raw_ns = arrived.owd_ns.astype(float)
slope, intercept = np.polyfit(seconds, raw_ns, 1)
residual_ns = raw_ns - (slope * seconds + intercept)
resolved = np.polyfit(seconds, found.owd_ns, 1)
resolved_residual_ns = found.owd_ns - np.polyval(resolved, seconds)
print(
    f"drift {slope / 1e3:.2f} ppm; raw: deviation {residual_ns.std():.2f} ns; resolved: {resolved_residual_ns.std():.2f} ns"
)
results["drift_ppm"] = slope / 1e3
results["raw_deviation_ns"] = residual_ns.std()
results["raw_spread_ns"] = np.ptp(residual_ns)
results["resolved_deviation_ns"] = resolved_residual_ns.std()

# %% [markdown]
# ## Step 4: does the mean help?
#
# Take the mean of *n* packets at random places of the run of step 3, and look how much such means scatter. Errors that
# do not depend on each other fall by the root of *n*.

# %%
random = np.random.default_rng(3)
sizes = np.array([1, 2, 4, 8, 16, 32, 64])
scatter_ns = np.array([np.std([random.choice(residual_ns, size).mean() for _ in range(2000)]) for size in sizes])
exponent = np.polyfit(np.log(sizes), np.log(scatter_ns), 1)[0]
print(f"scatter falls as n to the power of {exponent:.3f}; of 16 packets: {scatter_ns[4]:.2f} ns")
results["mean_exponent"] = exponent
results["mean_of_16_ns"] = scatter_ns[4]

# %% [markdown]
# ## Your plot

# %%
figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
axes[0].plot(number[:120], error_ns[:120], ".-", linewidth=0.6, label="time kept exactly")
axes[0].plot(number[:120], naive_error_ns[:120], label="rounded interval")
axes[0].set(xlabel="frame", ylabel="start less exact time (ns)", title="Rounding once, or each time")
axes[0].legend()
axes[1].hist(residual_ns, np.arange(-6, 6.5, 0.5), alpha=0.6, label="stamp alone")
axes[1].hist(resolved_residual_ns, np.arange(-6, 6.5, 0.5), alpha=0.6, label="with the line's clock")
axes[1].margins(y=0.4)
axes[1].set(xlabel="delay less line (ns)", ylabel="packets", title="Two clocks")
axes[1].legend()
axes[2].loglog(sizes, scatter_ns, "o", label="measured")
axes[2].loglog(sizes, TICK_NS / np.sqrt(12 * sizes), "k--", linewidth=0.8, label="8 ns / sqrt(12 n)")
axes[2].set(xlabel="packets in a mean", ylabel="scatter of the mean (ns)", title="Does the mean help?")
axes[2].legend()
figure.savefig(OUT / "lab3.png", dpi=120)

# %% [markdown]
# ## Questions
#
# 1. In step 1 all errors are at or below 0. Why? What would you add to make the *mean* error 0, and does anybody care?
# 2. Step 2 gives the same wrong answer fifty times. Step 4 shows that the mean of many packets is better than one. Both
#    are true. What is the difference? (The word to look for is *dither*.)
# 3. How long a cable does a signal pass in 8 ns? (Take two thirds of the speed of light.)
# 4. The two clocks of step 3 differ by 50 ppm. After which time do they differ by a whole tick? What would step 4 show
#    if they differed by 0.001 ppm?
# 5. Linux can stamp a packet in software. Its error is microseconds, not nanoseconds, and it has a long tail. Which of
#    the methods of this lab still work?
# 6. A switch's data sheet says "latency 780 ns" and was measured from the last bit in to the first bit out (LIFO). What
#    would this probe measure for a frame of 512 octets? (RFC 1242, section 3.8.)

# %%
results = {name: float(value) for name, value in results.items()}
(OUT / "lab3.json").write_text(json.dumps(student.named(results), indent=2))
print(json.dumps(results, indent=2))
