// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "simulator.h"

#include <cmath>

namespace liteprobe {

namespace {

constexpr uint64_t TICK_FS = 8'000'000;
constexpr uint64_t RESET_TICKS = 64;  // Of sys only: the timebase counts from the first edge.

struct Pins {
    CData &clk_rx, &tx_en, &tx_data, &rx_dv, &rx_data, &link_up;
};

inline Pins pins_of(Vliteprobe_sim &top, unsigned port) {
    switch (port) {
    case 0: return {top.clk_eth_rx0, top.gmii0_tx_en, top.gmii0_tx_data, top.gmii0_rx_dv, top.gmii0_rx_data, top.gmii0_link_up};
    case 1: return {top.clk_eth_rx1, top.gmii1_tx_en, top.gmii1_tx_data, top.gmii1_rx_dv, top.gmii1_rx_data, top.gmii1_link_up};
    default: return {top.clk_eth_rx2, top.gmii2_tx_en, top.gmii2_tx_data, top.gmii2_rx_dv, top.gmii2_rx_data, top.gmii2_link_up};
    }
}

}  // namespace

Simulator::Simulator(const WireSpec &spec, const std::array<ReceiveClock, PORTS> &clocks, Truth &truth)
    : truth_(truth), top_(&context_), timing_(truth) {
    taps_.reserve(PORTS);
    feeders_.reserve(PORTS);
    for (unsigned port = 0; port < PORTS; port++) {
        taps_.emplace_back(port, truth);
        feeders_.emplace_back(port, truth);
        taps_[port].rows = feeders_[port].rows = port < TEST_PORTS;
    }
    for (unsigned port = 0; port < TEST_PORTS; port++) {
        unsigned to = spec.kind == WireKind::LOOPBACK ? port : 1 - port;
        paths_.push_back(make_path(spec, port, taps_[port], feeders_[to]));
        taps_[port].sink = paths_.back().get();
    }
    for (unsigned port = 0; port < PORTS; port++)
        is_asynchronous_ |= clocks[port].ppm != 0 || clocks[port].phase_ps != 0;
    for (unsigned port = 0; port < PORTS; port++) {
        feeders_[port].asynchronous = is_asynchronous_;
        auto half = static_cast<uint64_t>(std::llround(TICK_FS / 2 / (1 + clocks[port].ppm * 1e-6)));
        edges_[port] = {TICK_FS + clocks[port].phase_ps * 1000, half, false};
    }
#ifdef LINK_UART  // The pins exist only there.
    top_.serial_rx = 1;
#endif
    for (unsigned port = 0; port < PORTS; port++)
        pins_of(top_, port).link_up = 1;
    top_.gnss_rx = 1;
    // Tick 0 is the state after the first edge: `now` is still 0 there, and 8 ns times the tick from then on.
    top_.rst_sys = 1;
    for (int level : {0, 1, 0}) {
        top_.clk_timebase = level;
        top_.eval();
    }
    run_until(RESET_TICKS);
    top_.rst_sys = 0;
#ifdef LINK_UART  // Not earlier: before its first clock the TX pin is low, as if a start bit.
    uart_ = std::make_unique<Uart>(UART_BAUD);
#endif
}

Simulator::~Simulator() { top_.final(); }

void Simulator::set_link(unsigned port, bool is_up) {
    taps_[port].link_up = feeders_[port].link_up = is_up;
    pins_of(top_, port).link_up = is_up;
}

void Simulator::run_until(uint64_t tick) {
    while (tick_ < tick)
        step();
}

// All clocks change in step, so a tick costs two evaluations. Inputs set between two rising edges are
// sampled at the second: what the pins carry in tick t, the probe takes into its registers in tick t + 1.
void Simulator::step_synchronous() {
    start_tick();
    top_.clk_eth_rx0 = top_.clk_eth_rx1 = top_.clk_eth_rx2 = 1;
    top_.eval();
    after_edge();
    for (unsigned port = 0; port < PORTS; port++) {
        feeders_[port].step(tick_);
        put(port);
    }
    top_.clk_timebase = top_.clk_eth_rx0 = top_.clk_eth_rx1 = top_.clk_eth_rx2 = 0;
    top_.eval();
}

inline void Simulator::start_tick() {
    tick_++;
    top_.clk_timebase = 1;
    top_.clk_sys = !(tick_ & 1);
}

// What the probe sends in this tick, and what the wires do with it.
inline void Simulator::after_edge() {
    taps_[0].step(tick_, top_.gmii0_tx_en, top_.gmii0_tx_data);
    taps_[1].step(tick_, top_.gmii1_tx_en, top_.gmii1_tx_data);
    taps_[2].step(tick_, top_.gmii2_tx_en, top_.gmii2_tx_data);
    for (auto &path : paths_)
        if (path->due() <= tick_)
            path->advance(tick_);
    timing_.step(tick_, top_.pps_out, top_.gnss_tx);
    top_.pps = timing_.pps;
    top_.gnss_rx = timing_.gnss_rx;
#ifdef LINK_UART
    if (uart_)
        top_.serial_rx = uart_->step(top_.serial_tx);
#endif
}

inline void Simulator::put(unsigned port) {
    Pins pins = pins_of(top_, port);
    pins.rx_dv = feeders_[port].valid;
    pins.rx_data = feeders_[port].data;
}

// Receive clocks apart: each edge on its own, in order of time; the timebase first where they coincide.
void Simulator::step_asynchronous() {
    for (uint64_t half = 0; half < 2; half++) {
        uint64_t until = (tick_ + 1) * TICK_FS + half * TICK_FS / 2 - half * TICK_FS;
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
            pins_of(top_, first).clk_rx = edge.level;
            top_.eval();
            if (edge.level) {
                feeders_[first].step(tick_);
                put(first);
            }
        }
        if (half == 0)
            start_tick();
        else
            top_.clk_timebase = 0;
        top_.eval();
        if (half == 0)
            after_edge();
    }
}

void Simulator::close() {
    for (auto &path : paths_)
        path->close();
    for (auto &feeder : feeders_)
        feeder.close();
    timing_.close(tick_);
}

}  // namespace liteprobe
