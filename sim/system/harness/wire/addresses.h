// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// The address table of a learning switch with a known capacity, learning rate and ageing time: docs/simulation.md, "Devices".
#pragma once

#include <map>
#include <set>
#include <utility>

#include "packets.h"
#include "spec.h"

namespace liteprobe {

class AddressTable {
public:
    explicit AddressTable(const DeviceSpec &spec) : spec_(spec) {}
    // Learns the source of a frame that came to `port`, where there is space and time; returns whether the frame belongs to
    // that port, by its destination, and so goes nowhere.
    bool filters(unsigned port, const uint8_t *content, uint64_t tick);
    void clear();

private:
    struct Entry {
        unsigned port;
        uint64_t seen;
    };

    void learn(unsigned port, const MacAddress &source, uint64_t tick);

    const DeviceSpec &spec_;
    std::map<MacAddress, Entry> entries_;
    std::set<std::pair<uint64_t, MacAddress>> ages_;  // By when they were seen.
    u128 free_ = 0;  // When the next one can be learned, in parts of a tick.
};

}  // namespace liteprobe
