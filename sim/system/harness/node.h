// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// One Verilated probe with all that sits at its pins.
#pragma once

#include <memory>
#include <vector>

#include "device.h"
#include "flash.h"
#include "model.h"
#include "oscillator.h"
#include "pins.h"
#include "player.h"
#include "station.h"
#include "timing.h"
#include "uart.h"
#include "variant.h"
#include "wire.h"

namespace liteprobe {

constexpr unsigned PORTS = 3;       // GMII ports of the simulated board.
constexpr unsigned TEST_PORTS = 2;  // 0 and 1; 2 is for management of its own.
constexpr uint64_t RESET_TICKS = 64;  // Of sys only: the timebase counts from the first edge.

struct Pins {
    uint8_t &clk_rx, &tx_en, &tx_data, &rx_dv, &rx_data, &link_up;
};

class Node {
public:
    // `own`: rows in the ticks of this probe; `line`: in those of the line that its test ports receive.
    Node(const Build &build, const Oscillator &clock, Truth &own, Truth &line);

    const unsigned sys_half_ticks;
    std::unique_ptr<Model> model;
    Model &top = *model;
    Oscillator oscillator;
    uint64_t tick = 0;  // The last edge of its timebase.
    std::vector<Tap> taps;
    std::vector<Feeder> feeders;
    std::vector<Player> players;  // One a test port.
    std::vector<std::unique_ptr<Path>> paths;  // That lead away from it.
    std::shared_ptr<Device> device;            // That joins its ports, where the wire is one.
    std::vector<std::unique_ptr<Station>> stations;  // One a test port.
    std::unique_ptr<Uart> uart;
    Timing timing;
    Flash flash;

    void connect(const WireSpec &spec, unsigned port, Feeder &to);
    void set_rate(double ppm);
    void set_link(unsigned port, bool is_up);
    void end_reset();
    Pins pins(unsigned port);
    // Raises the clocks of the timebase and of sys; the model is not evaluated yet.
    void start_tick() {
        tick++;
        top.clk_timebase = 1;
        top.clk_sys = 2 * tick % sys_half_ticks < 2;
    }
    // What the probe sends in this tick, what the wires do with it, and the pins of the receiver.
    void after_edge();
    void put(unsigned port) {
        Pins at = pins(port);
        at.rx_dv = feeders[port].valid;
        at.rx_data = feeders[port].data;
    }
    void close();  // Rows of truth for all that is under way.
};

}  // namespace liteprobe
