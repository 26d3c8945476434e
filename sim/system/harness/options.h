// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// The command line of liteprobe-sim.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "simulator.h"

namespace liteprobe {

struct Options {
    uint16_t port = 0;
    std::string wire = "loopback", truth, pcap, flash;
    std::string peer;     // Shared library of the build of probe b; empty: that of probe a.
    NetworkSpec network;  // Between the hosts and the management port.
    std::vector<std::string> pps, receivers;  // One a probe; one alone is for each.
    bool free_run = false;
    bool is_pair = false;
    std::array<double, 2> oscillators{};      // ppm
    std::array<ReceiveClock, PORTS> clocks{};
    uint64_t benchmark = 0;

    unsigned probes() const { return is_pair ? 2 : 1; }
};

// Prints the help and ends for --help. Throws UsageError.
Options parse_options(int argc, char **argv);

}  // namespace liteprobe
