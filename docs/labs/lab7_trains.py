# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
# %% [markdown]
# # Lab 7: packet trains, capacity and dispersion
#
# **Aim.** You measure the rate of a link that you can't reach, from outside, with a handful of packets, and you know why
# the obvious figure (octets over time) is neither the capacity of the path nor what is free of it.
#
# **Time.** 90 minutes: 30 of reading, 35 of measuring, 25 of questions.
#
# ## Background
#
# Two packets that are sent back to back leave the narrowest link with the time of one packet between them: their
# *dispersion*. Packet size over dispersion is the capacity, if no other traffic came between.
#
# Other traffic does two things. It comes *between* the two at the narrow link: the dispersion grows, the rate looks too
# low. Or it holds up the *first* of the two behind the narrow link: the dispersion shrinks, the rate looks too high.
#
# A train of N packets averages: with Poisson traffic of load u on a link of capacity C, at which the train comes in,
# K packets of other traffic come between its ends, Poisson with the mean u (N − 1). So the train measures
#
# > C / (1 + K / (N − 1))
#
# and long trains C / (1 + u). That is the *asymptotic dispersion rate*. It is neither C, nor the free rate C (1 − u).
#
# A pair whose two packets both had the least delay of all was not queued: its dispersion is right (CapProbe).
#
# Sources: V. Jacobson, "Congestion avoidance and control", SIGCOMM 1988 (packets leave the bottleneck spaced). S.
# Keshav, "A control-theoretic approach to flow control", SIGCOMM 1991 (packet pair). C. Dovrolis, P. Ramanathan, D.
# Moore, "What do packet dispersion techniques measure?", INFOCOM 2001. R. Kapoor, L.-J. Chen, L. Lao, M. Gerla, M. Y.
# Sanadidi, "CapProbe: a simple and accurate capacity estimation technique", SIGCOMM 2004. RFC 5136 (defining network
# capacity).

# %%
import json
import math
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import student

from liteprobe.host import Probe, TrainProgram
from liteprobe.host.analysis.confidence import mean_interval

PROBE = None  # A board: "etherbone://192.168.1.50". None: the simulated probe, behind the wire that a step names.
OUT = Path("lab-results")
OUT.mkdir(exist_ok=True)
results = {}
LENGTH, OVERHEAD = 1514, 24
BITS = 8 * (LENGTH + OVERHEAD)


def trains(wire, count, repeats, length=LENGTH, gap_ns=None):
    """Send trains back to back; return their arrivals and departures (ns), shape (repeats, count)."""
    with Probe(PROBE or f"sim://{wire}") as probe:
        records = probe.train(TrainProgram(length, count, repeats, gap_ns=gap_ns)).records
    assert len(records) == count * repeats, "packets were lost: take a longer queue"
    arrived = records["rx_stamp"].astype(float).reshape(repeats, count)
    return arrived, records["tx_stamp"].astype(float).reshape(repeats, count)


def dispersion_rates(arrived):
    """Return the rate of each train: bits behind its first packet, over the time that they took (Mb/s)."""
    return (arrived.shape[1] - 1) * BITS / (arrived[:, -1] - arrived[:, 0]) * 1e3


# %% [markdown]
# ## Step 1: a narrow link, and nobody else
#
# One train of 20 packets through a link of 100 Mb/s. What do you expect?
#
# ```
# ./run liteprobe train --probe 'sim://switch?latency=3us&rate=100M' --length 1514 --count 20
# ```

# %%
arrived, _ = trains("switch?latency=3us&rate=100M&queue=100", 20, 1)
results["narrow_mbps"] = float(dispersion_rates(arrived)[0])
results["narrow_dispersion_us"] = float(np.diff(arrived[0]).mean() / 1e3)
print(f"{results['narrow_mbps']:.3f} Mb/s; a packet every {results['narrow_dispersion_us']:.2f} us")

# %% [markdown]
# ## Step 2: other traffic on the link
#
# Now a link of 1 Gb/s with other traffic of 30 %, packets of the same length. 60 trains of 24.

# %%
LOAD, COUNT, REPEATS = 0.3, 24, 60
CROSS = f"switch?latency=3us&queue=1000&cross={LOAD}&seed={student.seed(4)}"
arrived, sent = trains(CROSS, COUNT, REPEATS, gap_ns=400_000.0)
rates = dispersion_rates(arrived)
low, high = mean_interval(rates)
print(
    f"mean {rates.mean():.1f} Mb/s (95 %: {low:.1f} to {high:.1f}), single trains {rates.min():.0f} to {rates.max():.0f}"
)
results["train_mean_mbps"] = float(rates.mean())
results["train_deviation_mbps"] = float(rates.std(ddof=1))

# %% [markdown]
# ## Step 3: what theory says
#
# The mean of C / (1 + K / (N − 1)), K Poisson: for N = 2, for N = 24, and for a train without end.


# %%
def expected_mbps(count, load):
    """Return the mean dispersion rate of trains of this length (Mb/s)."""
    mean = load * (count - 1)
    chances = [
        math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(int(mean + 40 * math.sqrt(mean) + 40))
    ]
    return 1000 * sum(chance / (1 + k / (count - 1)) for k, chance in enumerate(chances))


for count in (2, COUNT, 1000):
    results[f"theory_{count}_mbps"] = expected_mbps(count, LOAD)
    print(f"N = {count:4}: {expected_mbps(count, LOAD):.2f} Mb/s")
results["asymptotic_mbps"] = 1000 / (1 + LOAD)
results["free_mbps"] = 1000 * (1 - LOAD)
print(f"without end: {results['asymptotic_mbps']:.2f} Mb/s; free: {results['free_mbps']:.0f} Mb/s")

# %% [markdown]
# The same trains, cut shorter: the first n packets of each are a train of n. So one run gives a whole curve.

# %%
sizes = np.arange(2, COUNT + 1)
curve = np.array([dispersion_rates(arrived[:, :size]).mean() for size in sizes])
reach = np.array([np.ptp(mean_interval(dispersion_rates(arrived[:, :size]))) / 2 for size in sizes])
results["pairs_mean_mbps"] = float(curve[0])

# %% [markdown]
# ## Step 4: the capacity in spite of it
#
# All pairs of neighbours of all trains: their dispersions, and the sum of the delays of both. Take the pairs whose sum is
# the least.

# %%
gaps_ns = np.diff(arrived, axis=1)
delays_ns = arrived - sent
sums_ns = delays_ns[:, :-1] + delays_ns[:, 1:]
is_least = sums_ns <= sums_ns.min() + 16
results["pairs_not_queued"] = int(is_least.sum())
results["capacity_mbps"] = float(BITS / np.median(gaps_ns[is_least]) * 1e3)
results["share_of_right_pairs"] = float(np.mean(np.abs(gaps_ns - BITS) <= 8))
print(f"{is_least.sum()} of {is_least.size} pairs were not queued: capacity {results['capacity_mbps']:.1f} Mb/s")
print(f"pairs with the right dispersion, queued or not: {100 * results['share_of_right_pairs']:.1f} %")

# %% [markdown]
# ## Step 5: a loaded link *behind* the narrow one
#
# The narrow link has 200 Mb/s. Behind it is one of 1 Gb/s with other traffic of 50 %: it holds up some of the first
# packets of a pair, and then pairs look *faster* than the narrow link. The trains are short and far apart, so that each
# finds the narrow link empty.

# %%
arrived2, sent2 = trains(
    f"switch?latency=3us&rate=200M&cross2=0.5&queue=1000&seed={student.seed(9)}", 4, 40, gap_ns=300_000.0
)
pair_mbps = BITS / np.diff(arrived2, axis=1).ravel() * 1e3
sums2_ns = (arrived2 - sent2)[:, :1] + (arrived2 - sent2)[:, 1:2]
best = np.argmin(sums2_ns)
results["behind_capacity_mbps"] = float(BITS / (arrived2[best, 1] - arrived2[best, 0]) * 1e3)
results["pairs_too_fast"] = float(np.mean(pair_mbps > 201))
print(f"pairs faster than the narrow link: {100 * results['pairs_too_fast']:.0f} %, up to {pair_mbps.max():.0f} Mb/s")
print(f"by the pair of the least delay: {results['behind_capacity_mbps']:.1f} Mb/s")

# %% [markdown]
# ## Your plot

# %%
figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
axes[0].hist(BITS / gaps_ns.ravel() * 1e3, np.arange(0, 1100, 20))
axes[0].set(xlabel="rate of a pair (Mb/s)", ylabel="pairs", title="Load on the link: pairs at C, C/2, C/3")
axes[1].errorbar(sizes, curve, reach, fmt=".", capsize=2, label="measured, 95 %")
axes[1].plot(sizes, [expected_mbps(size, LOAD) for size in sizes], label="theory")
axes[1].axhline(results["asymptotic_mbps"], color="k", linestyle=":", label="train without end")
axes[1].axhline(results["free_mbps"], color="C3", linestyle="--", label="free rate")
axes[1].set(xlabel="packets in a train", ylabel="mean rate (Mb/s)", title="Neither the capacity nor the free rate")
axes[1].legend()
axes[2].hist(pair_mbps, np.arange(0, 620, 20))
axes[2].axvline(200, color="k", linestyle=":", label="narrow link")
axes[2].set(xlabel="rate of a pair (Mb/s)", ylabel="pairs", title="Load behind: pairs above the capacity")
axes[2].legend()
figure.savefig(OUT / "lab7.png", dpi=120)

# %% [markdown]
# ## Questions
#
# 1. Where in the first histogram are the pairs between which one, and two, foreign packets came?
# 2. Which rate would an application get that sends as much as it can on the link of step 2? Which of the four figures
#    (C, free rate, dispersion rate, rate of a pair) comes nearest?
# 3. Why is a mean of many pairs not the capacity, however many there are? Which statistic of the pairs is?
# 4. Your stamps are good to 8 ns. How well is the capacity of 1 Gb/s known from one pair of 60 octets, and from one of
#    1514? From a train of 1000?
# 5. An interrupt of the receiving host delivers eight packets at once. What does a host without a hardware stamp measure?
# 6. At which load does the method of step 4 fail, and how would it show?

# %%
(OUT / "lab7.json").write_text(json.dumps(student.named(results), indent=2))
print(json.dumps(results, indent=2))
