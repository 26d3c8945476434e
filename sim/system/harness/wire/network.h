// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// The network between a host and the management port, which may lose, double, reorder and delay datagrams.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "random.h"

namespace liteprobe {

struct NetworkSpec {
    uint64_t loss = 0, duplicate = 0, reorder = 0;  // Parts of the datagrams (ppb), in each direction.
    uint64_t seed = 1;
};

// One direction. Time is counted in datagrams: simulated time stands while the host waits.
template <class Datagram> class Network {
public:
    Network(const NetworkSpec &spec, uint64_t stream) : spec_(spec), random_(spec.seed, stream) {}

    // Puts into `arrived` what a datagram that is sent now makes arrive: nothing, itself, its double, earlier ones.
    void pass(const Datagram &datagram, std::deque<Datagram> &arrived) {
        sent_++;
        bool is_lost = random_.happens(spec_.loss), is_doubled = random_.happens(spec_.duplicate);
        bool is_late = random_.happens(spec_.reorder);
        uint64_t late = 1 + random_.below(LATEST), doubled_late = random_.below(LATEST + 1);
        lost_ += is_lost;
        doubled_ += is_doubled && !is_lost;
        delayed_ += is_late && !is_lost;
        if (!is_lost)
            held_.push_back({sent_ + (is_late ? late : 0), datagram});
        if (is_doubled && !is_lost)
            held_.push_back({sent_ + doubled_late, datagram});
        for (auto &held : held_)
            if (held.due <= sent_)
                arrived.push_back(held.datagram);
        held_.erase(std::remove_if(held_.begin(), held_.end(), [this](const Held &held) { return held.due <= sent_; }), held_.end());
    }

    // Sent, lost, doubled, delayed.
    std::string counts() const {
        return std::to_string(sent_) + " " + std::to_string(lost_) + " " + std::to_string(doubled_) + " " + std::to_string(delayed_);
    }

private:
    static constexpr uint64_t LATEST = 24;  // Datagrams: across several requests, and across the next train.
    struct Held {
        uint64_t due;
        Datagram datagram;
    };
    NetworkSpec spec_;
    Random random_;
    std::vector<Held> held_;
    uint64_t sent_ = 0, lost_ = 0, doubled_ = 0, delayed_ = 0;
};

}  // namespace liteprobe
