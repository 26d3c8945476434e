# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
# %% [markdown]
# # Lab 6: loss, reordering, duplication
#
# **Aim.** From nothing but the sequence numbers of the packets that came, you find which were lost, which came twice and
# which were overtaken; you say how far, by the definitions of the IETF; and you say how sure a loss ratio is.
#
# **Time.** 75 minutes: 25 of reading, 25 of measuring, 25 of questions.
#
# ## Background
#
# - A packet is *lost* if it did not come within a waiting time T_max that you chose before. "Late" and "lost" differ by
#   this choice alone (RFC 7680).
# - A packet is *reordered* if its number is smaller than the greatest that came before it plus one (the "next
#   expected"). Its *extent* is how many arrivals back the first packet with a greater number came (RFC 4737). Note who
#   is reordered: the packet that was late, not those that overtook it.
# - A packet is *duplicated* if it came more than once (RFC 5560).
# - A loss ratio of k out of n is a binomial proportion. Its interval is not k/n ± something symmetric, least of all
#   when k is small. With p = k/n, and z = 1.96 for 95 %, Wilson's interval is
#   (p + z²/2n ± z √(p (1 − p)/n + z²/4n²)) / (1 + z²/n).
#
# Sources: RFC 7680 (loss), RFC 4737, sections 3.3 and 4.2 (reordering), RFC 5560, section 3 (duplication), RFC 5236
# (other ways to count reordering). E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
# Journal of the American Statistical Association 22, 1927. J. A. Hanley, A. Lippman-Hand, "If nothing goes wrong, is
# everything all right?", JAMA 249(13), 1983 (the rule of three). J. C. R. Bennett, C. Partridge, N. Shectman, "Packet
# reordering is not pathological network behavior", IEEE/ACM Transactions on Networking 7(6), 1999.

# %%
import json
import math
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import student

from liteprobe.host import Probe, TrainProgram
from liteprobe.host.analysis import sequence, truth

PROBE = None  # A board: "etherbone://192.168.1.50". None: the simulated probe, behind the wire that a step names.
OUT = Path("lab-results")
OUT.mkdir(exist_ok=True)
results = {}

# %% [markdown]
# ## Step 1: a bad network
#
# 3000 packets, one every 2 us, through a switch that loses 2 %, doubles 1 % and holds 2 % back for 11 us. It draws
# from a seed, so each run is the same. It also writes down what it did: don't look before step 5.
#
# ```
# ./run liteprobe train --length 60 --count 3000 --interval 2000ns \
#     --probe 'sim://switch?latency=3us&loss=2%&duplicate=1%&reorder=2%&reorder_by=11us&seed=7'
# ```

# %%
COUNT = 3000
WIRE = f"switch?latency=3us&loss=2%&duplicate=1%&reorder=2%&reorder_by=11us&seed={student.seed(7)}"
TRUTH = OUT / "lab6.truth"
with Probe(PROBE or f"sim://{WIRE}&truth={TRUTH}") as probe:
    found = probe.train(TrainProgram(60, COUNT, interval_ns=2000.0))
records = found.records
came = records["sequence"].astype(int)
print(f"{COUNT} sent, {len(came)} arrivals; the first 20 numbers: {came[:20]}")

# %% [markdown]
# ## Step 2: your own definitions
#
# Ten lines of Python each, no library. `came` has the numbers in the order of arrival.


# %%
def lost(numbers, sent):
    """Return the numbers that never came."""
    return sorted(set(range(sent)) - set(numbers))


def duplicates(numbers):
    """Return how many arrivals were of packets that had come before."""
    return len(numbers) - len(set(numbers))


def first_arrivals(numbers):
    """Return the numbers in the order of their first arrival."""
    return list(dict.fromkeys(numbers))


def extents(numbers):
    """Return the reordering extent of each reordered packet: RFC 4737, section 4.2."""
    found, next_expected = [], 0
    for place, number in enumerate(numbers):
        if number < next_expected:
            earlier = next(index for index, other in enumerate(numbers) if other > number)
            found.append(place - earlier)
        else:
            next_expected = number + 1
    return found


firsts = first_arrivals(came.tolist())
mine = extents(firsts)
results["lost"] = len(lost(came.tolist(), COUNT))
results["duplicates"] = duplicates(came.tolist())
results["reordered"] = len(mine)
results["extent_most"] = max(mine)
results["extent_mean"] = float(np.mean(mine))
print(results)

# %% [markdown]
# Try your functions on the examples of RFC 4737, too: 1,2,3,5,6,7,8,4,9,10 has one reordered packet of extent 4;
# 1,2,3,4,7,5,6,8 has two, of extents 1 and 2. (Numbers begin at 1 there: it makes no difference.)

# %%
assert extents([1, 2, 3, 5, 6, 7, 8, 4, 9, 10]) == [4]
assert extents([1, 2, 3, 4, 7, 5, 6, 8]) == [1, 2]

# %% [markdown]
# ## Step 3: the library, and the waiting time
#
# LiteProbe's own functions must say the same. Then choose a waiting time of 10 us: what is lost now?

# %%
theirs = sequence.reordering(np.array(firsts))
assert theirs.extents.tolist() == mine
assert int((sequence.arrivals(came, COUNT) == 0).sum()) == results["lost"]

delays_ns = (records["rx_stamp"] - records["tx_stamp"]).astype(int)
in_time = {int(number) for number, delay in zip(came, delays_ns, strict=True) if delay <= 10_000}
results["lost_within_10us"] = COUNT - len(in_time)
print(f"lost for ever: {results['lost']}; not here within 10 us: {results['lost_within_10us']}")

# %% [markdown]
# ## Step 4: how sure is the loss?


# %%
def wilson(k, n, z=1.96):
    """Return the interval (95 %) of a proportion of k out of n."""
    p = k / n
    centre, reach = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (centre - reach) / (1 + z * z / n), (centre + reach) / (1 + z * z / n)


low, high = wilson(results["lost"], COUNT)
print(f"loss {100 * results['lost'] / COUNT:.2f} %, between {100 * low:.2f} and {100 * high:.2f} % (95 %)")
results["loss_low"], results["loss_high"] = low, high
results["wilson_0_of_1000_high"] = wilson(0, 1000)[1]
results["packets_for_1e6"] = math.ceil(math.log(0.05) / math.log(1 - 1e-6))
print(f"nothing lost of 1000: up to {100 * results['wilson_0_of_1000_high']:.2f} % may be lost")
print(f"to say 'less than one in a million' (95 %): {results['packets_for_1e6']} packets without a loss")

# %% [markdown]
# ## Step 5: the truth
#
# The simulator wrote a row for each frame. (A board's cable keeps no such book: there you would need a second witness.)

# %%
if not PROBE:
    rows = truth.read(TRUTH)
    out = rows[(rows["direction"] == truth.OUT) & (rows["port"] == 0) & (rows["flags"] & 4 == 0)]
    into = rows[(rows["direction"] == truth.IN) & (rows["port"] == 1) & (rows["flags"] & 4 == 0)]
    true_lost = int((out["fate"] == 1).sum())
    true_double = int((into["fate"] == truth.DUPLICATE).sum())
    print(f"truth: {len(out)} sent, {true_lost} lost, {true_double} doubled")
    assert (true_lost, true_double) == (results["lost"], results["duplicates"])
    arrived = into[np.argsort(into["sfd_tick"])]["sequence"].tolist()
    assert arrived == came.tolist()

# %% [markdown]
# ## Your plot

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
# Show the packets around the first one that was overtaken.
centre = int(np.flatnonzero(np.array(firsts) < np.maximum.accumulate(firsts))[0])
start_ns = records["tx_stamp"][0].astype(int)
window = slice(max(0, centre - 25), centre + 25)
left.plot((records["rx_stamp"].astype(int) - start_ns)[window] / 1e3, came[window], "o", markersize=4, label="came")
missing = [number for number in lost(came.tolist(), COUNT) if came[window].min() <= number <= came[window].max()]
for number in missing:
    left.axhline(number, color="C3", linewidth=0.8, label="lost" if number == missing[0] else None)
left.set(xlabel="arrival (µs)", ylabel="sequence number", title="Who was late, and who is missing")
left.legend()
right.hist(mine, np.arange(0.5, max(mine) + 1.5), rwidth=0.8)
right.set(xlabel="reordering extent (packets)", ylabel="reordered packets", title="RFC 4737")
figure.savefig(OUT / "lab6.png", dpi=120)

# %% [markdown]
# ## Questions
#
# 1. A packet that is held back for 11 us, with one packet every 2 us: which extents can it have? Why are some smaller
#    than others?
# 2. Packets 4, 5, 6 come as 6, 4, 5. Which are reordered? Many people say "6". Why does the RFC say otherwise?
# 3. TCP takes three duplicate acknowledgements for a loss (RFC 5681). Which reordered packets of this run would have
#    been sent again for nothing?
# 4. Count of lost packets 60 of 3000. A colleague repeats the run with another seed and gets 48. Is one of you wrong?
# 5. Why does a tester need sequence numbers that are wider than 16 bits? How long does a 16-bit number last at line rate?
# 6. Two routers lose 1 % each, one behind the other. What is lost in all? And what if both lose in bursts, at the same
#    times?

# %%
results = {name: float(value) for name, value in results.items()}
(OUT / "lab6.json").write_text(json.dumps(student.named(results), indent=2))
print(json.dumps(results, indent=2))
