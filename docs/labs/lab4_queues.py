# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
# %% [markdown]
# # Lab 4: queues
#
# **Aim.** You predict how long packets wait at the output of a switch from nothing but its load, measure it, and say how
# sure you are. You see why 80 % of load is not "20 % of reserve", and what a queue of finite length does.
#
# **Time.** 90 minutes: 25 of reading, 35 of measuring, 30 of questions.
#
# ## Background
#
# Frames of one length arrive at random (Poisson) at an output that needs the time *D* for each: the queue M/D/1. At a
# load *ρ* (the part of the time that the output is busy) a frame that comes at a random moment waits in the mean
#
# > W / D = ρ / (2 (1 − ρ))
#
# and not at all with the chance 1 − *ρ*.
#
# For exponential lengths (M/M/1) the mean is twice that. Both are cases of the formula of Pollaczek and Khinchine
#
# > W = λ E[S²] / (2 (1 − ρ))
#
# which holds for any mix of service times *S*, with λ frames a second.
#
# With a queue of finite length some frames are dropped. For K frames in the system (the one that is being sent, too)
# no short formula is known, but each chance follows from the one before (step 4).
#
# Our probe packets are short and far apart: each looks at the queue at a moment of its own. They see the average over
# time, which is what a Poisson arrival sees (PASTA).
#
# Sources: A. K. Erlang, "The theory of probabilities and telephone conversations", Nyt Tidsskrift for Matematik B 20,
# 1909. F. Pollaczek, Mathematische Zeitschrift 32, 1930; A. Y. Khinchine, Matematicheskii Sbornik 39, 1932. D. V.
# Lindley, "The theory of queues with a single server", Mathematical Proceedings of the Cambridge Philosophical Society
# 48(2), 1952. L. Kleinrock, "Queueing Systems, Volume 1: Theory", Wiley, 1975. R. W. Wolff, "Poisson arrivals see time
# averages", Operations Research 30(2), 1982.

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

OCTETS = 250  # Of the other traffic's frames, without FCS.
D_NS = 8 * (OCTETS + 24)  # The output needs this for one of them.
PROBE_NS = 8 * (60 + 24)  # And this for one of our packets.
EMPTY_NS = 8 * (60 + 12) + 3000  # Delay where nothing waits.


def waits(load, count, interval_ns, seed, queue=1000):
    """Send short packets into a switch with Poisson traffic of this load; return their waits, and how many were lost."""
    wire = f"switch?latency=3us&queue={queue}&cross={load}&cross_size={OCTETS}&seed={student.seed(seed)}"
    with Probe(PROBE or f"sim://{wire}") as probe:
        records = probe.train(TrainProgram(60, count, interval_ns=interval_ns)).records
    return (records["rx_stamp"] - records["tx_stamp"]).astype(float) - EMPTY_NS, count - len(records)


# %% [markdown]
# ## Step 1: first a prediction
#
# Fill in a table by hand: W / D for loads of 0.3, 0.5, 0.7 and 0.8. Which load doubles the wait of 0.7?
#
# Our packets are traffic, too. One of 672 ns every 100 us is 0.7 % of load. The formula of Pollaczek and Khinchine takes
# the mix: a packet finds a frame on the line with the chance *ρ*, and what is left of it is half of it in the mean.


# %%
def md1(load):
    """Return W / D of M/D/1."""
    return load / (2 * (1 - load))


def mixed(load, interval_ns):
    """Return W / D where our own packets load the output, too."""
    own = PROBE_NS / interval_ns
    return (load * D_NS + own * PROBE_NS) / (2 * (1 - load - own)) / D_NS


LOADS = (0.3, 0.5, 0.7, 0.8)
INTERVAL_NS = 60_000.0
for load in LOADS:
    print(f"{load:.1f}: M/D/1 {md1(load):.3f}, with our packets {mixed(load, INTERVAL_NS):.3f}")
    results[f"theory_{round(100 * load)}"] = md1(load)

# %% [markdown]
# ## Step 2: measure
#
# The same by a command, which prints mean and deviation of the delay:
#
# ```
# ./run liteprobe train --probe 'sim://switch?latency=3us&queue=1000&cross=0.5&cross_size=250&seed=12' \
#     --length 60 --count 400 --interval 60000ns
# ```

# %%
COUNT = 400
measured = {}
for seed, load in enumerate(LOADS, 11):
    waits_ns, _ = waits(load, COUNT, INTERVAL_NS, seed)
    measured[load] = waits_ns / D_NS
    low, high = mean_interval(measured[load])
    print(f"{load:.1f}: W/D {measured[load].mean():.3f}, 95 % interval {low:.3f} to {high:.3f}, theory {md1(load):.3f}")
    results[f"wait_{round(100 * load)}"] = float(measured[load].mean())
results["without_wait_50"] = float(np.mean(measured[0.5] * D_NS < 8))

# %% [markdown]
# Is the prediction inside the interval each time? (It may be outside once in twenty times. Near saturation the waits of
# packets that follow each other resemble each other, so the interval is too narrow there: why?)
#
# ## Step 3: check the theory without a probe
#
# Lindley's recursion is the queue in one line: the next wait is this wait, plus the service, less the time until the
# next arrival, or 0. Ten thousand frames of M/D/1 take a moment.


# %%
def lindley(load, frames, seed):
    """Return the mean wait over D of frames that arrive at random, by Lindley's recursion."""
    gaps = np.random.default_rng(seed).exponential(1 / load, frames)
    wait, total = 0.0, 0.0
    for gap in gaps:
        wait = max(0.0, wait + 1.0 - gap)
        total += wait
    return total / frames


for load in LOADS:
    results[f"lindley_{round(100 * load)}"] = float(np.mean([lindley(load, 10_000, seed) for seed in range(10)]))
    print(f"{load:.1f}: {results[f'lindley_{round(100 * load)}']:.3f}")

# %% [markdown]
# ## Step 4: a finite queue, and more load than the output takes
#
# Ten frames find room (nine wait, one is being sent). With a load of 1.2 at least a sixth must be lost. How much is lost
# exactly? The chances pi that a departing frame leaves j behind follow one from the other; a is Poisson.


# %%
def md1k_loss(load, places):
    """Return the loss of M/D/1/K: D. Gross and C. M. Harris, Fundamentals of Queueing Theory, the embedded chain."""
    a = [math.exp(-load) * load**j / math.factorial(j) for j in range(places + 1)]
    pi = [1.0]
    for j in range(places - 1):
        pi.append((pi[j] - pi[0] * a[j] - sum(pi[i] * a[j - i + 1] for i in range(1, j + 1))) / a[0])
    first = pi[0] / sum(pi)
    return 1 - 1 / (first + load)


results["theory_loss_120"] = md1k_loss(1.2, 10)
waits_ns, lost = waits(1.2, 600, 40_000.0, seed=21, queue=9)
share = lost / 600
half = 1.96 * math.sqrt(share * (1 - share) / 600)
print(f"lost {100 * share:.1f} +- {100 * half:.1f} %, theory {100 * results['theory_loss_120']:.1f} %")
print(f"a packet that is not lost waits {waits_ns.mean() / D_NS:.2f} D; the most is {waits_ns.max() / D_NS:.2f} D")
results["loss_120"] = share
results["most_wait_120"] = float(waits_ns.max() / D_NS)

# %% [markdown]
# ## Your plot

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
smooth = np.linspace(0.01, 0.92, 200)
left.plot(smooth, md1(smooth), label="M/D/1")
left.plot(smooth, 2 * md1(smooth), ":", label="M/M/1")
for load in LOADS:
    low, high = mean_interval(measured[load])
    mean = measured[load].mean()
    left.errorbar(load, mean, [[max(0, mean - low)], [max(0, high - mean)]], fmt="ko", capsize=4)
left.set(xlabel="load", ylabel="mean wait over D", ylim=(0, 6), title="Measured, with 95 % interval")
left.legend()
for load in LOADS:
    ordered = np.sort(measured[load])
    right.step(ordered, 1 - np.arange(len(ordered)) / len(ordered), where="post", label=f"load {load}")
right.set(xlabel="wait over D", ylabel="part that waits longer", yscale="log", ylim=(2e-3, 1.1), title="The tail")
right.legend()
figure.savefig(OUT / "lab4.png", dpi=120)

# %% [markdown]
# ## Questions
#
# 1. A colleague: "The link is at 80 %, we have 20 % of reserve." What does the plot say?
# 2. Why does a packet wait less before frames of one length than before frames of exponential length, at the same load?
# 3. Two streams of 40 % share an output, or each has an output of its own with half of the rate. Where is the wait
#    shorter, and by which factor?
# 4. In step 4 the longest wait has a limit. Which? What would a queue of 1000 frames do at a load of 1.2: to the loss,
#    and to the delay? (The word is *bufferbloat*.)
# 5. Real traffic is not Poisson. What do bursts do to your prediction?
# 6. How many packets would you need at a load of 0.8 for an interval of ± 1 %? (The deviation of W is 2.3 D there.)

# %%
(OUT / "lab4.json").write_text(json.dumps(student.named(results), indent=2))
print(json.dumps(results, indent=2))
