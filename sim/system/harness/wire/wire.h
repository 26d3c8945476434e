// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// The wires between test ports: one Path for each direction. All times are ticks of the timebase.
// sim/models/switch.py says the same in plain Python, written apart; the tests hold them against each other.
#pragma once

#include <deque>
#include <memory>
#include <queue>
#include <vector>

#include "pins.h"
#include "random.h"
#include "spec.h"

namespace liteprobe {

class Path : public Sink {
public:
    Path(const WireSpec &spec, unsigned from, Tap &in, Feeder &out);
    virtual uint64_t due() const { return due_; }  // Next tick at which advance() has something to do.
    virtual void advance(uint64_t) {}
    virtual void close() {}                // Rows for what is still under way.

protected:
    // The draws of a frame that enters: always the same number, so that options don't shift later draws.
    void decide(Frame &frame, uint32_t corruptible);

    WireSpec spec_;
    Tap &in_;
    Feeder &out_;
    Random random_;
    uint64_t due_ = NEVER;
    uint64_t entered_ = 0;
};

// Loopback and cable: every octet `delay` later.
class CablePath : public Path {
public:
    using Path::Path;
    void began(const FramePtr &frame) override;
    void ended(const FramePtr &frame, uint64_t tick) override;
};

// Cross traffic of one queue.
class CrossTraffic {
public:
    // Octet time is `numerator / denominator` ticks.
    CrossTraffic(const WireSpec &spec, uint64_t load_ppb, uint64_t numerator, uint64_t denominator, uint64_t seed_stream);
    uint64_t next_tick() const { return mean_ ? static_cast<uint64_t>(next_ >> 32) : NEVER; }
    void step() { next_ += interval(); }

private:
    u128 interval() { return poisson_ ? (mean_ * (random_.exponential() >> 32)) >> 32 : mean_; }

    Random random_;
    u128 mean_ = 0;  // Ticks, 32 fractional bits.
    u128 next_ = 0;
    bool poisson_;
};

// An output queue with a server of one rate. Times inside are in ticks / denominator, so any rate is exact.
class Hop {
public:
    Hop(const WireSpec &spec, uint64_t rate, uint64_t load_ppb, uint64_t seed_stream);

    struct Service {
        bool accepted;
        uint64_t first_tick;  // First octet out; exact on a hop of the line's rate.
        uint64_t last_tick;   // All octets are out, rounded up.
    };
    // A frame of `octets` (preamble to FCS) reaches the queue; cross traffic up to then is served first.
    Service offer(uint64_t arrival, uint64_t octets);
    // The next cross frame, where it has to be delivered: it reaches the queue in next_cross().
    uint64_t next_cross() const { return cross_.next_tick(); }
    Service offer_cross();

private:
    Service serve(uint64_t arrival, uint64_t octets);

    uint64_t queue_, numerator_, denominator_, cross_octets_;
    CrossTraffic cross_;
    std::deque<u128> starts_;
    u128 free_ = 0;
};

class SwitchPath : public Path {
public:
    SwitchPath(const WireSpec &spec, unsigned from, Tap &in, Feeder &out);
    void ended(const FramePtr &frame, uint64_t tick) override;
    void advance(uint64_t tick) override;
    void close() override;

private:
    struct Arrival {
        uint64_t tick;
        uint64_t order;  // Ties: first come, first served.
        FramePtr frame;
        bool is_copy;
        bool operator>(const Arrival &other) const { return tick != other.tick ? tick > other.tick : order > other.order; }
    };
    using Heap = std::priority_queue<Arrival, std::vector<Arrival>, std::greater<Arrival>>;

    void at_first(const Arrival &arrival);
    void at_last(const Arrival &arrival);
    void deliver_cross(uint64_t tick);
    void drop(const Arrival &arrival);
    void update_due();

    std::unique_ptr<Hop> first_, last_;  // first_ only where there are two hops.
    Heap at_first_, at_last_;
    uint64_t order_ = 0;
};

std::unique_ptr<Path> make_path(const WireSpec &spec, unsigned from, Tap &in, Feeder &out);

}  // namespace liteprobe
