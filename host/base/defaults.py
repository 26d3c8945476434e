# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Holds what is meant where nobody says otherwise, and words that a user may give; without numpy, which takes long to load."""

PAPER_LENGTHS = (60, 64, 128, 256, 512, 1024, 1514)  # Ruiz et al. 2015, Table 1 (octets without FCS).
PAPER_COUNTS = (100, 1000)
PAPER_REPEATS = 10
DEMO_REPEATS = 2  # Where nothing scatters, two trains of a kind say what ten do.

TAI_UTC_S = 37  # Since 2017-01-01 (IERS Bulletin C 52).

FILLS = {"zero": 0, "counting": 1, "prbs": 2}

# Locally administered MACs (02 "LPT", other than those of simulated management stations), and the network of benchmarks
# (RFC 2544, C.2.2; RFC 5180).
DESTINATION_MAC = "02:4c:50:54:00:02"
SOURCE_MAC = "02:4c:50:54:00:01"
SOURCE_IP = "198.18.0.1"
DESTINATION_IP = "198.18.0.2"
SOURCE_IPV6 = "2001:2::1"
DESTINATION_IPV6 = "2001:2::2"
SOURCE_PORT = 49184
DESTINATION_PORT = 49185
TTL = 64
TRAFFIC_CLASS = 0

KEEPS = ("packets", "headers", "both")  # What a capture keeps of a frame.
TRANSPORTS = ("udp", "dma", "bus")  # How the blocks of a capture come.

AGENT_ADDRESS = "tcp://127.0.0.1:5580"
AGENT_LIMIT_S = 5.0  # Of a callback at the device.
#: Figures of conditions, by what they are of.
FIGURES_OF_TRAINS = (
    "sent received lost duplicated reordered late loss_ratio rate capacity least mean std p50 p99 p99_9 most jitter"
)
FIGURES_OF_STREAMS = (
    "sent received lost duplicated reordered waited late bit_errors checked_bits loss_ratio bit_error_ratio rate fps "
    "least mean std p50 p99 p99_9 most"
)
FIGURES_OF_PORTS = "sent received lost loss_ratio late underruns least mean p50 p99 p99_9 most"
FIGURES_OF_CLASSES = (
    "sent received lost loss_ratio discarded full early no_store marked duplicated corrupted late rate "
    "least mean p50 p99 p99_9 most"
)
FIGURES_OF_CLOCKS = "bound offset rate_ppb edges rejected missing spurious glitches faults unlocked"
FIGURES_OF_CHECKS = "passed failed not_done sent received lost loss_ratio least most"
FIGURES_OF_SESSIONS = "sent received lost duplicated reordered loss_ratio least mean std p50 p99 p99_9 most"
FIGURES_OF_CAPTURES = "received lost octets"
FIGURES_OF_LOOKS = "received octets lost duplicated reordered bit_errors refused"
FIGURES_OF_RFC2544 = (
    "rate fps p50 p99_9 pdv least most burst buffer recovery reset frmol mfr broadcast addresses learning"
)
FIGURES_OF_Y1564 = "passed failed not_done lost loss_ratio rate least mean most pdv available_ratio"
FIGURES_OF_SOAKS = (
    "sent received lost loss_ratio duplicated reordered late bit_errors checked_bits bit_error_ratio events"
)
#: Of pairs, and of suites.
FIGURES_OF_EXPERIMENTS = " ".join(
    dict.fromkeys(
        f"sent received lost duplicated reordered loss_ratio bound least mean std p50 p99 p99_9 most {FIGURES_OF_RFC2544} "
        f"{FIGURES_OF_Y1564} {FIGURES_OF_SOAKS}".split()
    )
)
