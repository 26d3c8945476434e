# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
# %% [markdown]
# # Lab 2: what a distribution hides
#
# **Aim.** You see two networks with the same mean delay that a user would never take for alike. You know what mean,
# deviation, percentile and histogram each keep and lose, how many packets a percentile needs, and how a regular
# measurement can miss a regular disturbance altogether.
#
# **Time.** 75 minutes: 20 of reading, 30 of measuring, 25 of questions.
#
# ## Background
#
# A short probe packet meets other traffic at the output of a switch: it waits for what is being sent and for what
# stands before it. Two kinds of other traffic, both of frames of 1514 octets (*S* = 8 × (1514 + 24) = 12304 ns each):
#
# - **Regular**: a frame every *T* = *S* / *u* at a load *u*. A packet that comes at a random moment waits nothing with
#   the chance 1 − *u*, else any time up to *S*, each as likely. So the mean wait is *u S* / 2, and
#   P(W > x) = (S − x) / T.
# - **Poisson**: frames at random, load *ρ*. That is the queue M/D/1: the mean wait is *ρ S* / (2 (1 − *ρ*)).
#
# With *u* = 1/3 and *ρ* = 1/4 both means are *S* / 6 = 2051 ns.
#
# Sources: RFC 2330, sections 11.1 (sampling), 11.3 (empirical distribution, percentiles). RFC 5481 (delay variation).
# RFC 7679, section 5 (statistics of one-way delay). R. W. Wolff, "Poisson arrivals see time averages", Operations
# Research 30(2), 1982. F. Baccelli, S. Machiraju, D. Veitch, J. Bolot, "The role of PASTA in network measurement",
# SIGCOMM 2006. F. J. Anscombe, "Graphs in statistical analysis", The American Statistician 27(1), 1973. J. Dean, L. A.
# Barroso, "The tail at scale", Communications of the ACM 56(2), 2013.

# %%
import json
import math
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import student

from liteprobe.host import Probe, TrainProgram
from liteprobe.host.analysis.confidence import mean_interval, percentile_interval

PROBE = None  # A board: "etherbone://192.168.1.50". None: the simulated probe, behind the wire that a step names.
OUT = Path("lab-results")
OUT.mkdir(exist_ok=True)
results = {}


def probe_url(wire):
    """Return the URL of the board, or of a simulated probe behind this wire."""
    return PROBE or f"sim://{wire}"


def waits_ns(wire, count, interval_ns):
    """Send short frames at this interval; return how long each waited (ns): its delay over that of an empty switch."""
    with Probe(probe_url(wire)) as probe:
        records = probe.train(TrainProgram(60, count, interval_ns=interval_ns)).records
    delays_ns = (records["rx_stamp"] - records["tx_stamp"]).astype(float)
    return delays_ns - EMPTY_NS


S_NS = 8 * (1514 + 24)  # One frame of the other traffic, with its overhead.
EMPTY_NS = 8 * (60 + 12) + 3000  # Delay of a frame of 60 octets that does not wait: lab 1, question 4.
REGULAR = f"switch?latency=3us&queue=1000&cross_model=cbr&cross=0.333333333&seed={student.seed(3)}"
POISSON = f"switch?latency=3us&queue=1000&cross_model=poisson&cross=0.25&seed={student.seed(5)}"
T_NS = 3 * S_NS  # Interval of the regular traffic.

# %% [markdown]
# ## Step 1: two networks
#
# The interval of the probe packets must not be in step with *T*: 1.236 *T* falls into a new place of *T* each time (the
# fraction is that of the golden ratio, which is as far from any simple fraction as can be). The same by a command:
#
# ```
# ./run liteprobe train --probe 'sim://switch?latency=3us&queue=1000&cross_model=cbr&cross=0.333333333' \
#     --length 60 --count 1000 --interval 45626ns
# ```

# %%
COUNT = 1000
OUT_OF_STEP_NS = T_NS * (math.sqrt(5) - 1)
regular = waits_ns(REGULAR, COUNT, OUT_OF_STEP_NS)
poisson = waits_ns(POISSON, COUNT, OUT_OF_STEP_NS)


def summary(name, waits):
    """Print and keep what people usually say of a distribution."""
    mean, half = mean_interval(waits)
    p50, p90, p99 = np.percentile(waits, [50, 90, 99], method="inverted_cdf")
    print(
        f"{name:8} mean {mean:6.0f} +-{half:4.0f} ns  deviation {np.std(waits, ddof=1):6.0f}  "
        f"p50 {p50:5.0f}  p90 {p90:6.0f}  p99 {p99:6.0f}  most {waits.max():6.0f}"
    )
    results[f"{name}_mean_ns"] = mean
    results[f"{name}_deviation_ns"] = float(np.std(waits, ddof=1))
    results[f"{name}_p50_ns"] = float(p50)
    results[f"{name}_p90_ns"] = float(p90)
    results[f"{name}_p99_ns"] = float(p99)
    results[f"{name}_share_without_wait"] = float(np.mean(waits < 8))


summary("regular", regular)
summary("poisson", poisson)
results["regular_most_ns"] = float(regular.max())

# %% [markdown]
# The means agree within their 95 % intervals. Which other figures tell the two apart? Which would you put into a
# contract?
#
# ## Step 2: how sure is a percentile?
#
# The interval of a percentile needs no assumption: the number of packets below the true percentile is binomial, so two
# of the sorted values enclose it. With few packets a high percentile has no such interval.

# %%
for percent in (50, 90, 99, 99.9):
    low, high = percentile_interval(poisson, percent)
    print(f"P{percent:g}: {low:8.0f} to {high:8.0f} ns (95 %)")

# %% [markdown]
# How many packets must you send so that, with 95 %, at least one is above the true P99.9? Solve 0.999ⁿ ≤ 0.05.

# %%
needed = math.ceil(math.log(0.05) / math.log(0.999))
print(needed)
results["packets_for_p999"] = needed

# %% [markdown]
# ## Step 3: in step
#
# Now the probe packets come every *T*: exactly as often as the other frames.

# %%
in_step = waits_ns(REGULAR, 200, float(T_NS))
print(f"mean {in_step.mean():.0f} ns, deviation {in_step.std():.1f} ns")
results["in_step_deviation_ns"] = float(in_step.std())

# %% [markdown]
# Every packet sees the same. Another start time would have given another constant: anything from 0 to *S*. No number of
# packets helps. RFC 2330 therefore asks for random intervals where nothing is known of the network.
#
# ## Your plot
#
# The same data twice: a histogram, and the empirical distribution function (which part of the packets waited at most so
# long) with what theory says. The theory of M/D/1 is A. K. Erlang's formula of 1909, a sum over *k* from 0 to *x* / *S*:
#
# > P(W ≤ x) = (1 − ρ) Σ yᵏ exp(−y) / k!, with y = ρ (k − x / S)


# %%
def regular_cdf(x_ns):
    """Return P(W <= x) behind the regular traffic."""
    return 1 - np.clip(S_NS - x_ns, 0, None) / T_NS


def md1_cdf(x_ns, rho):
    """Return P(W <= x) of M/D/1 with the service time S."""
    t = x_ns / S_NS
    terms = ((rho * (k - t)) ** k / math.factorial(k) * math.exp(-rho * (k - t)) for k in range(int(t) + 1))
    return (1 - rho) * sum(terms)


x_ns = np.linspace(0, 36_000, 400)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
bins = np.arange(0, 36_001, 1000)
left.hist(regular, bins, alpha=0.6, label="regular")
left.hist(poisson, bins, alpha=0.6, label="Poisson")
left.axvline(S_NS / 6, color="k", linestyle=":", label="mean of both, by theory")
left.set(yscale="log", xlabel="wait (ns)", ylabel="packets in 1000 ns", title="Histogram")
left.legend()
for name, waits, theory in (
    ("regular", regular, regular_cdf(x_ns)),
    ("Poisson", poisson, [md1_cdf(x, 0.25) for x in x_ns]),
):
    right.step(np.sort(waits), np.arange(1, len(waits) + 1) / len(waits), where="post", label=name)
    right.plot(x_ns, theory, "k--", linewidth=0.8)
right.set(
    xlabel="wait (ns)", ylabel="part of the packets", ylim=(0.6, 1.02), title="Distribution function (dashed: theory)"
)
right.legend(loc="lower right")
figure.savefig(OUT / "lab2.png", dpi=120)

# %% [markdown]
# How far is the measured distribution function from theory, at most? (The statistic of Kolmogorov and Smirnov.)

# %%
ordered = np.sort(poisson)
edges = np.unique(ordered)
distance = max(abs(np.mean(ordered <= edge + 4) - md1_cdf(edge + 4, 0.25)) for edge in edges)
print(
    f"{distance:.4f}; with {COUNT} independent packets it is below {1.36 / math.sqrt(COUNT):.4f} in 95 % of all cases"
)
results["poisson_distance"] = float(distance)

# %% [markdown]
# ## Questions
#
# 1. For voice a packet is useless when it comes 10 us late. Which part of the packets is that, in each network? Which
#    one figure of step 1 shows it, if any?
# 2. The deviation of both is larger than the mean. What does "mean ± deviation" suggest to a reader, and why is it
#    wrong here?
# 3. Make the bins of the histogram 100 ns and 10,000 ns wide. What appears, what vanishes?
# 4. Your tester prints "P99.99 = 31 us" from 1000 packets. What do you answer?
# 5. Where in practice do measurements run in step with a disturbance? (Think of a cron job, a video camera, a radio
#    frame.)
# 6. The probe packets themselves load the output. By how much, and how would you see it if it mattered?

# %%
(OUT / "lab2.json").write_text(json.dumps(student.named(results), indent=2))
print(json.dumps(results, indent=2))
