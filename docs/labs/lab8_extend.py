# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
# %% [markdown]
# # Lab 8: capture, replay, extend
#
# **Aim.** You write a capture file octet by octet, send it with every gap as it is in the file, capture it on the other
# side and compare. Then you put a circuit of your own into the probe: a counter, written in Migen, tested, built in,
# and read from Python.
#
# **Time.** 90 minutes: 20 of reading, 40 of work, 30 of the exercise. The first run builds a simulated probe with your
# circuit in it: a minute or two of the computer's time, in which you read the code of the counter.
#
# ## Background
#
# - A **pcap** file is a header of 24 octets and then, for each packet, four words (seconds, fraction, octets kept,
#   octets on the wire) and the octets. The magic number says whether the fraction is microseconds (a1b2c3d4) or
#   nanoseconds (a1b23c4d), and by its order of octets how all other numbers are written.
# - A **pcapng** file is a list of blocks: type, length, content, length again. A packet is a block of type 6 with the
#   number of its interface and a stamp in 64 bits.
# - **Replay.** Times of a file are nanoseconds, the probe starts frames on ticks of 8 ns. It rounds each time from the
#   first frame on, so a gap is off by less than 8 ns and nothing adds up ([lab 3](lab3_stamps.py)).
# - **Migen** is a Python library in which you describe synchronous circuits: `self.comb` has what holds at any moment,
#   `self.sync` what happens at the edge of a clock. A circuit can be simulated in Python, and written as Verilog.
# - **Clock domains.** Octets come in the clock of the line (125 MHz, recovered from the other end), registers are read
#   in the clock of the bus (`sys`). A number of several bits that is read in another clock while it changes can come out
#   as neither the old nor the new one. So it crosses by a circuit made for it.
#
# Sources: G. Harris, M. C. Richardson, "PCAP Capture File Format", draft-ietf-opsawg-pcap; M. Tuexen et al., "PCAP Next
# Generation (pcapng) Capture File Format", draft-ietf-opsawg-pcapng. RFC 791 (IPv4), RFC 1071 (its checksum), RFC 768
# (UDP). S. McCanne, V. Jacobson, "The BSD packet filter", USENIX Winter 1993. C. E. Cummings, "Clock domain crossing
# (CDC) design and verification techniques", SNUG Boston 2008. The manuals of Migen and LiteX.

# %%
import json
import random
import struct
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import octet_counter
import student
from migen import run_simulation

from liteprobe.host import CaptureRequest, Probe, Trace

# A board ("etherbone://192.168.1.50"), built by: ./run build BOARD --preset replay --extend docs/labs/octet_counter.py
PROBE = None  # None: the simulated probe, with the counter built in.
OUT = Path("lab-results")
OUT.mkdir(exist_ok=True)
results = {}
COUNTER = Path(octet_counter.__file__).resolve()

# %% [markdown]
# ## Step 1: a capture file by hand
#
# 120 UDP packets at random times. Some have a time to live (TTL) of 1: the next router would drop them. That is the
# octet at place 22: 14 of Ethernet, then the ninth of the IPv4 header (we count from 0).

# %%
TTL_PLACE = 22
chance = random.Random(8)


def checksum(header):
    """Return the checksum of an IPv4 header whose own field is 0: RFC 1071."""
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def packet(length, ttl, number):
    """Return a UDP packet in an Ethernet frame of this length, without FCS."""
    ethernet = bytes.fromhex("020000000002 020000000001 0800")
    head = struct.pack(">BBHHHBBH", 0x45, 0, length - 14, number, 0, ttl, 17, 0) + bytes([10, 0, 0, 1, 10, 0, 0, 2])
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    udp = struct.pack(">HHHH", 5000, 5001, length - 34, 0)
    return ethernet + head + udp + bytes(number + place & 0xFF for place in range(length - 42))


PACKETS = 120
packets, times_ns, now_ns = [], [], 0
for number in range(PACKETS):
    packets.append(packet(chance.randint(60, 180), 1 if chance.random() < 0.3 else 64, number))
    times_ns.append(now_ns)
    now_ns += 8 * (len(packets[-1]) + 24) + round(chance.expovariate(1 / 8000))
office = OUT / "lab8.pcap"
with office.open("wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
    for octets, time_ns in zip(packets, times_ns, strict=True):
        file.write(struct.pack("<IIII", *divmod(time_ns, 10**9), len(octets), len(octets)) + octets)
expired = sum(octets[TTL_PLACE] == 1 for octets in packets)
print(f"{PACKETS} packets in {now_ns / 1e3:.0f} us, {expired} with a TTL of 1")
results["packets"] = PACKETS
results["ttl_1"] = expired

# %% [markdown]
# Look at it with other people's tools, if you have them: `tshark -r lab-results/lab8.pcap -Y 'ip.ttl == 1'`, or
# `./run liteprobe replay lab-results/lab8.pcap --check`.
#
# ## Step 2: the counter, and its test
#
# Read [octet_counter.py](octet_counter.py): 25 lines of circuit. Then test it without any probe: Migen simulates it, one
# generator plays the line, another one the bus. The right answer comes from Python, which looks at the same octets.


# %%
def simulated_count(frames, place, value):
    """Return what the counter counts of these frames, in Migen's simulator."""
    dut = octet_counter.OctetCounter(with_csr=False)
    found = []

    def line():
        for _ in range(200):  # Until the counter knows what to look for.
            yield
        for frame in frames:
            for octet in b"\x55" * 7 + b"\xd5" + frame:
                yield dut.valid.eq(1)
                yield dut.octet.eq(octet)
                yield
            yield dut.valid.eq(0)
            for _ in range(12):
                yield

    def bus():
        yield dut.place.eq(place)
        yield dut.value.eq(value)
        for _ in range(150 + sum(len(frame) + 20 for frame in frames) // 2):
            yield
        found.append((yield dut.count))

    run_simulation(dut, {"eth_rx": line(), "sys": bus()}, clocks={"eth_rx": 8, "sys": 16})
    return found[0]


some = packets[:30]
counted = simulated_count(some, TTL_PLACE, 1)
right = sum(octets[TTL_PLACE] == 1 for octets in some)
print(f"counter {counted}, right {right}")
assert counted == right
tricky = [bytes([0xD5] * 30), bytes(30), bytes([0xD5] * 10)]  # The SFD's own value inside; a frame that is too short.
assert simulated_count(tricky, 22, 0xD5) == 1
results["simulated_count"] = counted

# %% [markdown]
# Break the counter on purpose (begin `at` at 1, say), and see the test fail. A test that never failed proves nothing.
#
# ## Step 3: into the probe, and replay
#
# [extend=](../simulation.md#parts-of-ones-own) builds the function `extend(soc)` of the file into the simulated probe;
# nothing of LiteProbe is changed. The registers get their names from the module: `port1_counter_place`. Port 0 sends the
# file, 1 us of cable leads to port 1.
#
# ```
# ./run liteprobe replay lab-results/lab8.pcap --capture seen.pcapng \
#     --probe 'sim://cable?delay=1us&preset=replay&cpu=0&extend=docs/labs/octet_counter.py'
# ```

# %%
seen = OUT / "lab8_seen.pcapng"
url = PROBE or f"sim://cable?delay=1us&preset=replay&cpu=0&extend={COUNTER}"
with Probe(url) as probe:
    print([name for name in probe.registers.names if "counter" in name])
    probe.registers.write("port1_counter_place", TTL_PLACE)
    probe.registers.write("port1_counter_value", 1)
    found = probe.replay({0: Trace.from_pcap(office)}, capture=CaptureRequest(write=str(seen)))
    counted = probe.registers.read("port1_counter_count")
print(f"sent {found[0].frames}, late {found[0].late}, underruns {found[0].underruns}; counted {counted}")
results["sent"] = found[0].frames
results["counted"] = counted

# %% [markdown]
# ## Step 4: what came
#
# Read the pcapng yourself: a dozen lines. Compare each octet and each gap with the file.


# %%
def pcapng_packets(path):
    """Return interface, time (ns) and octets of each packet of a pcapng in little-endian order with stamps in ns."""
    content, place, found = path.read_bytes(), 0, []
    while place < len(content):
        kind, size = struct.unpack_from("<II", content, place)
        if kind == 6:
            interface, high, low, kept, _ = struct.unpack_from("<5I", content, place + 8)
            found.append((interface, high << 32 | low, content[place + 28 : place + 28 + kept]))
        place += size
    return found


came = [entry for entry in pcapng_packets(seen) if entry[0] == 1]
stamps_ns = np.array([time_ns for _, time_ns, _ in came])
results["captured"] = len(came)
results["octets_equal"] = sum(octets == sent for (_, _, octets), sent in zip(came, packets, strict=False))
gap_error_ns = np.diff(stamps_ns) - np.diff(times_ns)
position_error_ns = (stamps_ns - stamps_ns[0]) - np.array(times_ns)
results["gap_error_most_ns"] = int(np.abs(gap_error_ns).max())
results["drift_ns"] = int(abs(position_error_ns[-1]))
results["delay_ns"] = found[0].known_delays.mean_ns if found[0].known_delays else float("nan")
print(results)

# %% [markdown]
# ## Your plot

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
left.hist(gap_error_ns, np.arange(-9.5, 10, 1))
left.set(xlabel="gap as it came less gap of the file (ns)", ylabel="gaps", title="Every gap, to a tick")
ttl = np.array([octets[TTL_PLACE] for octets in packets])
right.plot(np.array(times_ns) / 1e3, np.cumsum(ttl == 1), drawstyle="steps-post", label="in the file, TTL 1")
right.axhline(counted, color="k", linestyle=":", label="your counter, at the end")
right.set(xlabel="time (µs)", ylabel="packets", title="What your circuit counted")
right.legend()
figure.savefig(OUT / "lab8.png", dpi=120)

# %% [markdown]
# ## Exercise: a counter of your own
#
# Copy `octet_counter.py` to `length_counter.py`. Your counter has one setting, `limit`, and counts the frames that are
# *longer* than so many octets (without FCS). When does the circuit know how long a frame was? Write the test first; it
# has frames of `limit` and of `limit` + 1 octets. Then build it in by `extend=length_counter.py`.
#
# ## Questions
#
# 1. Which gaps of step 4 are off by 8 ns, which by less, and why is the last frame not off by hundreds of ns?
# 2. A capture from a switch's mirror port has frames 300 ns apart, although the shortest slot is 672 ns. How can that
#    be, and what does the replay do?
# 3. The counter also counts damaged frames. Which signal would it need to leave them out, and when does it come?
# 4. `place` is written in one clock and used in the other. What could go wrong if it were simply wired across? Why would
#    the simulation not show it?
# 5. 32 bits count frames at line rate. After which time do they wrap?
# 6. What must a checksum do when a router lowers the TTL? (RFC 1624.)

# %%
results = {name: float(value) for name, value in results.items()}
(OUT / "lab8.json").write_text(json.dumps(student.named(results), indent=2))
print(json.dumps(results, indent=2))
