# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
# %% [markdown]
# # Lab 1: line-rate arithmetic
#
# **Aim.** You can say, without a computer, how many frames a second a link carries, how much of it is your data, and
# what a tester means by "100 %". Then you measure it, and the measurement agrees to the last digit.
#
# **Time.** 60 minutes: 20 of reading and arithmetic, 25 of measuring, 15 of questions.
#
# ## Background
#
# On the wire an Ethernet frame never travels alone. Before it come 7 octets of preamble and one octet of start frame
# delimiter (SFD), behind it 4 octets of frame check sequence (FCS), and then the line must be idle for the time of 12
# octets. So a frame of *L* octets, counted without its FCS as in a capture file, takes the time of *L* + 24 octets: its
# *slot*. At 1 Gb/s an octet takes 8 ns.
#
# The shortest frame has 60 octets (64 with FCS), the longest of a plain Ethernet 1514 (1518 with FCS).
#
# Sources: IEEE Std 802.3-2022, clauses 3 (frame format) and 4.4.2 (interpacket gap of 96 bit times). RFC 2544, section
# 9.1 (frame sizes of a test; they are counted *with* FCS) and appendix B (the greatest frame rates). RFC 1242, section
# 3.17 (throughput).

# %%
import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import student

from liteprobe.host import Probe, TrainProgram, UsageError

PROBE = None  # A board: "etherbone://192.168.1.50". None: the simulated probe, behind the wire that a step names.
OUT = Path("lab-results")
OUT.mkdir(exist_ok=True)
results = {}


def probe_url(wire):
    """Return the URL of the board, or of a simulated probe behind this wire."""
    return PROBE or f"sim://{wire}"


# %% [markdown]
# ## Step 1: by hand
#
# Work out on paper, for frames of 60, 512 and 1514 octets at 1 Gb/s: the slot in ns, the frames a second, and which
# part of the line UDP payload is (a UDP datagram in IPv4 has 42 octets of headers: 14 + 20 + 8). Then check:

# %%
OVERHEAD = 24  # Octets: preamble 7, SFD 1, FCS 4, gap 12.
UDP_HEADERS = 42
OCTET_NS = 8.0  # At 1 Gb/s.


def slot_ns(length):
    """Return the time from one SFD to the next (ns) of frames back to back; length without FCS."""
    return OCTET_NS * (length + OVERHEAD)


def frames_per_second(length):
    """Return the greatest number of frames a second."""
    return 1e9 / slot_ns(length)


def payload_share(length):
    """Return which part of the line is UDP payload."""
    return (length - UDP_HEADERS) / (length + OVERHEAD)


for length in (60, 512, 1514):
    print(
        f"{length:5} octets: {slot_ns(length):8.0f} ns {frames_per_second(length):12.2f} /s {payload_share(length):.4f}"
    )

results["slot_60_ns"] = slot_ns(60)
results["frames_60_per_s"] = frames_per_second(60)
results["frames_1514_per_s"] = frames_per_second(1514)
results["payload_share_60"] = payload_share(60)
results["payload_share_1514"] = payload_share(1514)

# %% [markdown]
# ## Step 2: measure it
#
# The probe sends 200 frames of each length back to back from port 0, through a switch, to port 1. Each frame carries
# the time of its own SFD, and port 1 notes when the SFD came. The command line does the same:
#
# ```
# ./run liteprobe train --probe 'sim://switch?latency=3us' --length 60,128,256,512,1024,1514 --count 200
# ```
#
# The number of frames a second follows from the first and the last arrival: 199 intervals lie between 200 frames.

# %%
LENGTHS = (60, 128, 256, 512, 1024, 1514)
COUNT = 200
rates, delays_ns = [], []
with Probe(probe_url("switch?latency=3us")) as probe:
    for length in LENGTHS:
        records = probe.train(TrainProgram(length, COUNT)).records
        arrivals_ns = records["rx_stamp"].astype(float)
        rates.append((len(records) - 1) / (arrivals_ns[-1] - arrivals_ns[0]) * 1e9)
        delays_ns.append(np.mean(records["rx_stamp"] - records["tx_stamp"]))
        print(f"{length:5} octets: {rates[-1]:12.2f} /s measured, {frames_per_second(length):12.2f} /s by arithmetic")

results["measured_60_per_s"] = rates[0]
results["measured_1514_per_s"] = rates[-1]

# %% [markdown]
# ## Step 3: what a switch adds
#
# A store-and-forward switch sends a frame on when it has all of it. So its delay grows with the length. Fit a line
# through the delays: what does its slope say, and what its intercept?

# %%
slope, intercept = np.polyfit(LENGTHS, delays_ns, 1)
print(f"delay = {intercept:.1f} ns + {slope:.4f} ns/octet * length")
results["delay_slope_ns_per_octet"] = slope
results["delay_intercept_ns"] = intercept

# %% [markdown]
# ## Step 4: any rate, and one too many
#
# A rate of 333.3 Mb/s is a matter of the interval from SFD to SFD. What interval do frames of 1514 octets need? And what
# happens if you ask for an interval that is shorter than the slot?

# %%
interval_ns = slot_ns(1514) * 1e9 / 333.3e6
print(f"{interval_ns:.3f} ns")
results["interval_333_ns"] = interval_ns

with Probe(probe_url("switch?latency=3us")) as probe:
    records = probe.train(TrainProgram(1514, 60, interval_ns=interval_ns)).records
    sent_ns = records["tx_stamp"].astype(float)
    measured_bps = 8 * (1514 + OVERHEAD) * (60 - 1) / (sent_ns[-1] - sent_ns[0]) * 1e9
    print(f"asked for 333.3 Mb/s, measured {measured_bps / 1e6:.4f} Mb/s")
    results["measured_333_mbps"] = measured_bps / 1e6
    try:
        probe.train(TrainProgram(60, COUNT, interval_ns=600.0))
    except UsageError as error:
        print(error)

# %% [markdown]
# ## Step 5: what follows for a host
#
# A processor of 3 GHz receives the shortest frames at line rate. How many clock cycles has it for each? And two ends of
# a link have clocks that may be off by 100 ppm each, one up and one down: how many frames a second does the faster end
# send that the slower one can't pass on?

# %%
results["cycles_per_frame"] = 3e9 / frames_per_second(60)
results["surplus_frames_per_s"] = 200e-6 * frames_per_second(60)
print({name: round(results[name], 1) for name in ("cycles_per_frame", "surplus_frames_per_s")})

# %% [markdown]
# ## Your plot
#
# Frames a second, and the share of UDP payload, against the length: the curve is arithmetic, the points are measured.

# %%
smooth = np.arange(60, 1515)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(smooth, frames_per_second(smooth) / 1e6, label="arithmetic")
left.plot(LENGTHS, np.array(rates) / 1e6, "o", label="measured")
left.set(xlabel="frame without FCS (octets)", ylabel="frames a second (million)", title="Frame rate at 1 Gb/s")
left.legend()
right.plot(smooth, 100 * payload_share(smooth), label="arithmetic")
measured_share = [8 * (length - UDP_HEADERS) * rate / 1e9 for length, rate in zip(LENGTHS, rates, strict=True)]
right.plot(LENGTHS, 100 * np.array(measured_share), "o", label="measured")
right.set(
    xlabel="frame without FCS (octets)", ylabel="UDP payload (% of the line)", title="What is your data", ylim=(0, 100)
)
right.legend()
figure.savefig(OUT / "lab1.png", dpi=120)

# %% [markdown]
# ## Questions
#
# 1. A data sheet says that a switch forwards "1.488 million packets a second per gigabit port". Which frame length is
#    meant, and why does no vendor print the figure for 1518?
# 2. iperf3 shows 957 Mb/s on this link. Is the link slow? Which octets does iperf3 count?
# 3. Why is the slope in step 3 exactly 8 ns an octet? What would it be behind *two* such switches? Behind a repeater?
# 4. The intercept in step 3 is not 3000 ns. Where do the other 96 ns come from?
# 5. A VLAN tag adds 4 octets. How much of the frame rate does it cost at 60 octets, and how much at 1514?
# 6. In step 4 the interval is not a multiple of 8 ns, a tick. How can the rate still be right?
#    ([Lab 3](lab3_stamps.py) comes back to it.)

# %%
(OUT / "lab1.json").write_text(json.dumps(student.named(results), indent=2))
print(json.dumps(results, indent=2))
