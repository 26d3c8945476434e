// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Simulated probes and the time that they share.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "node.h"

namespace liteprobe {

// Clocks of the receive side, against the timebase.
struct ReceiveClock {
    double ppm = 0;       // Faster than the timebase by this.
    uint64_t phase_ps = 0;
};

class Simulator {
public:
    virtual ~Simulator() = default;

    unsigned probes() const { return static_cast<unsigned>(nodes_.size()); }
    Node &node(unsigned probe) { return *nodes_[probe]; }
    virtual uint64_t time_ns() const = 0;
    uint64_t tick() const { return time_ns() / NS_PER_TICK; }  // Of true time.
    // Runs until `tick`, or until `is_done` says so after a step.
    void run_until(uint64_t tick) {
        while (this->tick() < tick)
            step();
    }
    template <class Done> bool run_until(uint64_t tick, Done is_done) {
        while (this->tick() < tick) {
            step();
            if (is_done())
                return true;
        }
        return false;
    }
    void close() {
        for (auto &node : nodes_)
            node->close();
    }

protected:
    virtual void step() = 0;  // A tick of a timebase, or less.

    std::vector<std::unique_ptr<Node>> nodes_;
};

// One probe, whose timebase is true time.
class Single : public Simulator {
public:
    Single(const WireSpec &spec, const std::array<ReceiveClock, PORTS> &clocks, Truth &truth);
    uint64_t time_ns() const override { return node_.tick * NS_PER_TICK; }

protected:
    void step() override { is_asynchronous_ ? step_asynchronous() : step_synchronous(); }

private:
    void step_synchronous();
    void step_asynchronous();

    Node &node_;
    bool is_asynchronous_ = false;
    struct Edge {
        uint64_t next_fs;
        uint64_t half_fs;
        bool level;
    };
    std::array<Edge, PORTS> edges_{};
};

// Two probes with an oscillator each; port n of one is joined to port n of the other.
class Pair : public Simulator {
public:
    // `peer`: the build of probe b.
    Pair(const WireSpec &spec, const Build &peer, const std::array<double, 2> &ppm, const std::array<uint64_t, 2> &phase_ps, Truth &truth);
    uint64_t time_ns() const override { return time_fs_ / 1'000'000; }

protected:
    void step() override;

private:
    struct Edges {
        uint64_t rise_fs, fall_fs;        // Of its timebase.
        uint64_t line_fs = NEVER;         // Of the line that it receives: the other's timebase, later by a phase.
        uint64_t line_tick = 0;
        uint64_t phase_fs = 0;
    };

    void rise(unsigned probe);
    void fall(unsigned probe);
    void line(unsigned probe);

    std::vector<std::unique_ptr<Truth>> views_;
    std::array<Edges, 2> edges_{};
    uint64_t time_fs_ = 0;
};

}  // namespace liteprobe
