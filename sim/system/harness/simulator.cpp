// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "simulator.h"

#include <cmath>

namespace liteprobe {

namespace {

std::unique_ptr<Node> lone_node(Truth &truth) { return std::make_unique<Node>(liteprobe_build, Oscillator(), truth, truth); }

}  // namespace

// Single ----------------------------------------------------------------------------------------------

Single::Single(const WireSpec &spec, const std::array<ReceiveClock, PORTS> &clocks, Truth &truth)
    : node_((nodes_.push_back(lone_node(truth)), *nodes_.back())) {
    for (unsigned port = 0; port < TEST_PORTS; port++)
        node_.connect(spec, port, node_.feeders[spec.kind == WireKind::LOOPBACK ? port : 1 - port]);
    for (unsigned port = 0; port < PORTS; port++)
        is_asynchronous_ |= clocks[port].ppm != 0 || clocks[port].phase_ps != 0;
    for (unsigned port = 0; port < PORTS; port++) {
        node_.feeders[port].asynchronous = is_asynchronous_;
        auto half = static_cast<uint64_t>(std::llround(TICK_FS / 2 / (1 + clocks[port].ppm * 1e-6)));
        edges_[port] = {TICK_FS + clocks[port].phase_ps * 1000, half, false};
    }
    run_until(RESET_TICKS);
    node_.end_reset();
    run_until(START_TICKS);
}

// All clocks change in step, so a tick costs two evaluations. Inputs set between two rising edges are
// sampled at the second: what the pins carry in tick t, the probe takes into its registers in tick t + 1.
void Single::step_synchronous() {
    auto &top = node_.top;
    node_.start_tick();
    top.clk_eth_rx0 = top.clk_eth_rx1 = top.clk_eth_rx2 = 1;
    top.eval();
    node_.after_edge();
    for (unsigned port = 0; port < PORTS; port++) {
        node_.feeders[port].step(node_.tick);
        node_.put(port);
    }
    top.clk_timebase = top.clk_eth_rx0 = top.clk_eth_rx1 = top.clk_eth_rx2 = 0;
    top.eval();
}

// Receive clocks apart: each edge on its own, in order of time; the timebase first where they coincide.
void Single::step_asynchronous() {
    for (uint64_t half = 0; half < 2; half++) {
        uint64_t until = (node_.tick + 1) * TICK_FS + half * TICK_FS / 2 - half * TICK_FS;
        for (;;) {
            unsigned first = 0;
            for (unsigned port = 1; port < PORTS; port++)
                if (edges_[port].next_fs < edges_[first].next_fs)
                    first = port;
            Edge &edge = edges_[first];
            if (edge.next_fs >= until)
                break;
            edge.level = !edge.level;
            edge.next_fs += edge.half_fs;
            node_.pins(first).clk_rx = edge.level;
            node_.top.eval();
            if (edge.level) {
                node_.feeders[first].step(node_.tick);
                node_.put(first);
            }
        }
        if (half == 0)
            node_.start_tick();
        else
            node_.top.clk_timebase = 0;
        node_.top.eval();
        if (half == 0)
            node_.after_edge();
    }
}

// Pair ------------------------------------------------------------------------------------------------

Pair::Pair(const WireSpec &spec, const Build &peer, const std::array<double, 2> &ppm, const std::array<uint64_t, 2> &phase_ps, Truth &truth) {
    for (unsigned probe = 0; probe < 2; probe++)
        for (bool is_line : {false, true}) {
            unsigned source = is_line ? 1 - probe : probe;
            auto time = [this, source](uint64_t tick) { return nodes_[source]->oscillator.ps_of(tick); };
            views_.push_back(std::make_unique<TruthView>(truth, probe, time, is_line ? phase_ps[probe] : 0));
        }
    for (unsigned probe = 0; probe < 2; probe++) {
        const Build &build = probe == 0 ? liteprobe_build : peer;
        nodes_.push_back(std::make_unique<Node>(build, Oscillator(ppm[probe]), *views_[2 * probe], *views_[2 * probe + 1]));
        edges_[probe].rise_fs = nodes_[probe]->oscillator.fs_of(1);
        edges_[probe].fall_fs = NEVER;
        edges_[probe].phase_fs = phase_ps[probe] * 1000;
    }
    for (unsigned probe = 0; probe < 2; probe++)
        for (unsigned port = 0; port < TEST_PORTS; port++)
            nodes_[probe]->connect(spec, port, nodes_[1 - probe]->feeders[port]);
    while (nodes_[0]->tick < RESET_TICKS || nodes_[1]->tick < RESET_TICKS)
        step();
    for (auto &node : nodes_)
        node->end_reset();
}

// The next edge of all, the timebase first where several coincide: what comes of it on a line is due no earlier.
void Pair::step() {
    unsigned probe = 0;
    void (Pair::*act)(unsigned) = nullptr;
    uint64_t first = NEVER;
    for (unsigned each = 0; each < 2; each++) {
        const Edges &edges = edges_[each];
        if (edges.rise_fs < first || (edges.rise_fs == first && act != &Pair::rise))
            first = edges.rise_fs, act = &Pair::rise, probe = each;
        if (edges.line_fs < first)
            first = edges.line_fs, act = &Pair::line, probe = each;
        if (edges.fall_fs < first)
            first = edges.fall_fs, act = &Pair::fall, probe = each;
    }
    time_fs_ = first;
    (this->*act)(probe);
}

// The clock of a line falls with the next edge of the timebase: nothing samples it, and an evaluation is saved.
void Pair::rise(unsigned probe) {
    Node &node = *nodes_[probe];
    Edges &edges = edges_[probe];
    node.start_tick();
    node.top.clk_eth_rx2 = 1;
    node.top.clk_eth_rx0 = node.top.clk_eth_rx1 = 0;
    node.top.eval();
    node.after_edge();
    node.feeders[2].step(node.tick);
    node.put(2);
    edges.rise_fs = node.oscillator.fs_of(node.tick + 1);
    edges.fall_fs = time_fs_ + (edges.rise_fs - time_fs_) / 2;
    edges_[1 - probe].line_fs = time_fs_ + edges_[1 - probe].phase_fs;
    edges_[1 - probe].line_tick = node.tick;
}

void Pair::fall(unsigned probe) {
    auto &top = nodes_[probe]->top;
    top.clk_timebase = top.clk_eth_rx2 = top.clk_eth_rx0 = top.clk_eth_rx1 = 0;
    top.eval();
    edges_[probe].fall_fs = NEVER;
}

void Pair::line(unsigned probe) {
    Node &node = *nodes_[probe];
    node.top.clk_eth_rx0 = node.top.clk_eth_rx1 = 1;
    node.top.eval();
    for (unsigned port = 0; port < TEST_PORTS; port++) {
        node.feeders[port].step(edges_[probe].line_tick);
        node.put(port);
    }
    edges_[probe].line_fs = NEVER;
}

}  // namespace liteprobe
