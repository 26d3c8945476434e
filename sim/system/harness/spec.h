// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// The wire spec: what stands after sim:// in a probe's URL.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "network.h"

namespace liteprobe {

constexpr uint64_t NS_PER_TICK = 8;
constexpr uint64_t LINE_RATE = 1'000'000'000;
constexpr uint64_t PPB = 1'000'000'000;
// In band, a frame's destination and type must be known before it goes on: preamble, two MACs, type, margin.
constexpr uint64_t SHARED_DELAY_TICKS = 24;

// Bad arguments: reported on stderr, exit code 2.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

enum class WireKind { LOOPBACK, CABLE, SWITCH };

struct WireSpec {
    WireKind kind = WireKind::LOOPBACK;
    uint64_t delay = 1;           // Ticks (loopback, cable).
    uint64_t latency = 375;       // Ticks from the last octet in to the first octet out (switch).
    uint64_t latency2 = 0;        // Ticks, of the second hop.
    uint64_t rate = LINE_RATE;    // Bits a second of the first hop.
    uint64_t queue = 64;          // Frames waiting in each queue.
    uint64_t loss = 0, corrupt = 0, duplicate = 0, reorder = 0;  // Probabilities (ppb).
    uint64_t reorder_by = 250;    // Ticks.
    uint64_t cross = 0, cross2 = 0;  // Load of cross traffic, of its hop's rate (ppb).
    uint64_t cross_size = 1514;   // Octets without FCS.
    bool cross_poisson = true;
    bool cross_deliver = false;
    uint64_t cut_after = 0;       // Frames in each direction; 0: never.
    uint64_t seed = 1;

    bool two_hops() const { return rate != LINE_RATE || cross2 != 0; }
};

// Throws UsageError on anything unknown or out of range. `shared`: management is in band on port 0.
WireSpec parse_wire(const std::string &text, bool shared);
// As `loss=5%,duplicate=1%,reorder=1%,seed=7`.
NetworkSpec parse_network(const std::string &text);
uint64_t parse_count(const std::string &name, const std::string &text, uint64_t least, uint64_t most);

}  // namespace liteprobe
