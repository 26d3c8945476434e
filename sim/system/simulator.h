// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// The Verilated SoC, its clocks and its pins. The macros come from sim/system/build.py:
// LINK_OWN, LINK_SHARED or LINK_UART; PROBE_IP; UART_BAUD; GNSS_BAUD; MANAGEMENT_PORT.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "Vliteprobe_sim.h"
#include "pins.h"
#include "timing.h"
#include "uart.h"
#include "wire.h"

namespace liteprobe {

constexpr unsigned PORTS = 3;       // GMII ports of the simulated board.
constexpr unsigned TEST_PORTS = 2;  // 0 and 1; 2 is for management of its own.

#ifdef LINK_UART
constexpr bool WITH_UART = true;
#else
constexpr bool WITH_UART = false;
#endif
#ifdef LINK_SHARED
constexpr unsigned MANAGEMENT_PORT = 0;
#else
constexpr unsigned MANAGEMENT_PORT = 2;
#endif

// Clocks of the receive side, against the timebase.
struct ReceiveClock {
    double ppm = 0;       // Faster than the timebase by this.
    uint64_t phase_ps = 0;
};

class Simulator {
public:
    Simulator(const WireSpec &spec, const std::array<ReceiveClock, PORTS> &clocks, Truth &truth);
    ~Simulator();

    uint64_t tick() const { return tick_; }
    uint64_t time_ns() const { return tick_ * NS_PER_TICK; }
    Tap &tap(unsigned port) { return taps_[port]; }
    Feeder &feeder(unsigned port) { return feeders_[port]; }
    Uart *uart() { return uart_.get(); }
    Timing &timing() { return timing_; }
    void set_link(unsigned port, bool is_up);
    // Runs until `tick`, or until `is_done` says so after a tick.
    void run_until(uint64_t tick);
    template <class Done> bool run_until(uint64_t tick, Done is_done) {
        while (tick_ < tick) {
            step();
            if (is_done())
                return true;
        }
        return false;
    }
    void close();  // Rows of truth for all that is under way.

private:
    void step() { is_asynchronous_ ? step_asynchronous() : step_synchronous(); }
    void step_synchronous();
    void step_asynchronous();
    void start_tick();
    void after_edge();
    void put(unsigned port);
    void raise_receive_clock(unsigned port);

    Truth &truth_;
    VerilatedContext context_;
    Vliteprobe_sim top_;
    std::vector<Tap> taps_;
    std::vector<Feeder> feeders_;
    std::vector<std::unique_ptr<Path>> paths_;
    std::unique_ptr<Uart> uart_;
    Timing timing_;
    uint64_t tick_ = 0;

    bool is_asynchronous_ = false;
    struct Edge {
        uint64_t next_fs;
        uint64_t half_fs;
        bool level;
    };
    std::array<Edge, PORTS> edges_{};
};

}  // namespace liteprobe
