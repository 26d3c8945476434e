// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "node.h"

namespace liteprobe {

Node::Node(const Build &build, const Oscillator &clock, Truth &own, Truth &line)
    : sys_half_ticks(build.sys_half_ticks), model(build.make()), oscillator(clock), timing(own, oscillator) {
    taps.reserve(PORTS);
    feeders.reserve(PORTS);
    for (unsigned port = 0; port < PORTS; port++) {
        taps.emplace_back(port, own);
        feeders.emplace_back(port, port < TEST_PORTS ? line : own);
        taps[port].rows = feeders[port].rows = port < TEST_PORTS;
        pins(port).link_up = 1;
    }
    top.serial_rx = 1;
    for (unsigned port = 0; port < TEST_PORTS; port++)
        players.emplace_back(feeders[port]);
    top.gnss_rx = 1;
    // Tick 0 is the state after the first edge: `now` is still 0 there, and 8 ns times the tick from then on.
    top.rst_sys = 1;
    for (int level : {0, 1, 0}) {
        top.clk_timebase = level;
        top.eval();
    }
}

void Node::connect(const WireSpec &spec, unsigned port, Feeder &to) {
    if (spec.is_device() && !device)
        device = make_device(spec, [this](unsigned at, bool is_up) { set_link(at, is_up); });
    if (device)
        paths.push_back(std::make_unique<DevicePath>(spec, port, taps[port], to, device));
    else
        paths.push_back(make_path(spec, port, taps[port], to));
    stations.push_back(std::make_unique<Station>(feeders[port], *paths.back()));
    taps[port].sink = stations.back().get();
}

void Node::end_reset() {
    top.rst_sys = 0;
    if (WITH_UART)  // Not earlier: before its first clock the TX pin is low, as if a start bit.
        uart = std::make_unique<Uart>(UART_BAUD);
}

void Node::set_rate(double ppm) {
    oscillator.set_rate(ppm, tick + 1);
    timing.reschedule();
}

void Node::set_link(unsigned port, bool is_up) {
    taps[port].set_link(is_up);
    feeders[port].set_link(is_up);
    pins(port).link_up = is_up;
}

Pins Node::pins(unsigned port) {
    switch (port) {
    case 0: return {top.clk_eth_rx0, top.gmii0_tx_en, top.gmii0_tx_data, top.gmii0_rx_dv, top.gmii0_rx_data, top.gmii0_link_up};
    case 1: return {top.clk_eth_rx1, top.gmii1_tx_en, top.gmii1_tx_data, top.gmii1_rx_dv, top.gmii1_rx_data, top.gmii1_link_up};
    default: return {top.clk_eth_rx2, top.gmii2_tx_en, top.gmii2_tx_data, top.gmii2_rx_dv, top.gmii2_rx_data, top.gmii2_link_up};
    }
}

void Node::after_edge() {
    taps[0].step(tick, top.gmii0_tx_en, top.gmii0_tx_data);
    taps[1].step(tick, top.gmii1_tx_en, top.gmii1_tx_data);
    taps[2].step(tick, top.gmii2_tx_en, top.gmii2_tx_data);
    for (auto &path : paths)
        if (path->due() <= tick)
            path->advance(tick);
    for (auto &player : players)
        if (player.due() <= tick)
            player.advance(tick);
    for (auto &station : stations)
        if (station->due() <= tick)
            station->advance(tick);
    timing.step(tick, top.pps_out, top.gnss_tx);
    top.pps = timing.pps;
    top.gnss_rx = timing.gnss_rx;
    top.flash_miso = flash.step(top.flash_cs_n, top.flash_clk, top.flash_mosi);
    if (uart)
        top.serial_rx = uart->step(top.serial_tx);
}

void Node::close() {
    for (auto &path : paths)
        path->close();
    for (auto &feeder : feeders)
        feeder.close();
    timing.close(tick);
}

}  // namespace liteprobe
