// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// A board's own top level behind the pins of the simulated board: clocks as its PLL makes them, PHYs at its RGMII pins.
#include "model.h"

#include <random>

#include "Vliteprobe_sim.h"
#include "board.h"
#include "phy.h"

namespace liteprobe {

namespace {

// What the harness sees: it may change any pin at any time, the board only sees it at the next edge.
struct Seen {
    uint8_t timebase = 0, sys = 0, reset = 0, rx[3] = {};
    uint8_t tx_en[3] = {}, tx_data[3] = {}, rx_dv[3] = {}, rx_data[3] = {}, link_up[3] = {};
    uint8_t pps = 0, pps_out = 0, gnss_rx = 1, gnss_tx = 1, serial_rx = 1, serial_tx = 1;
    uint8_t flash_cs_n = 1, flash_clk = 0, flash_mosi = 0, flash_miso = 0;
};

struct Design {
    Seen seen;
    const Desk desk = Desk::from_environment();
    std::vector<Phy> phys = {Phy(desk, PHY_ID, 1000, 0), Phy(desk, PHY_ID, desk.peer, desk.down_us)};  // Management comes in on port 0.
    MdioBus mdio{phys, desk};
    VerilatedContext context;
    Vliteprobe_sim top{&context};
};

constexpr unsigned TICK_NS = 8, STEP_NS = 2;

#define GMII(port) seen.tx_en[port], seen.tx_data[port], seen.rx_dv[port], seen.rx_data[port], seen.link_up[port]

class Verilated final : Design, public Model {  // The design comes first: the pins are references into it.
public:
    Verilated()
        : Model({seen.timebase, seen.sys, seen.reset, seen.rx[0], seen.rx[1], seen.rx[2], GMII(0), GMII(1), GMII(2),
                 seen.pps, seen.pps_out, seen.gnss_rx, seen.gnss_tx, seen.serial_rx, seen.serial_tx,
                 seen.flash_cs_n, seen.flash_clk, seen.flash_mosi, seen.flash_miso}) {}
    ~Verilated() override { top.final(); }

    void eval() override {
        bool is_edge = seen.timebase != was_timebase_;
        if (is_edge) {
            was_timebase_ = seen.timebase;
            step();
            step();
        }
        put();
        top.eval();
        top.half = seen.timebase;
        top.rx_half = top.rx_clk;
        top.eval();
        top.mdio_drive = mdio.step(top.mdc, top.mdio);
        if (!top.phy_reset_n)
            for (auto &phy : phys)
                phy.reset();
        take(is_edge && seen.timebase);
    }

private:
    // Two nanoseconds on: the PPS as the step before it shows it, and the clocks of the PLL.
    void step() {
        top.pps = seen.pps >> time_ns_ / STEP_NS % 4 & 1;
        time_ns_ += STEP_NS;
        top.pll = levels(PLL, sizeof PLL / sizeof *PLL);
        if (MEMORY_PLL[0].period_ns)
            top.memory_pll = levels(MEMORY_PLL, sizeof MEMORY_PLL / sizeof *MEMORY_PLL);
        if (time_ns_ % (TICK_NS / 2))
            top.eval();
    }
    uint8_t levels(const Clock *clocks, unsigned count) const {
        uint8_t found = 0;
        for (unsigned n = 0; n < count; n++) {
            const Clock &clock = clocks[n];
            if (clock.period_ns)
                found |= ((time_ns_ + clock.period_ns - clock.late_ns) % clock.period_ns < clock.period_ns / 2) << n;
        }
        return found;
    }
    void put() {
        top.valid = top.rx_clk = 0;
        for (unsigned n = 0; n < 2; n++) {
            Phy &phy = phys[n];
            const unsigned port = PORT_OF_PHY[n];
            phy.has_cable = seen.link_up[port];
            uint8_t valid = seen.rx_dv[port];
            if (seen.rx[port] != was_rx_[n]) {
                was_rx_[n] = seen.rx[port];
                edges_[n]++;
            }
            phy.receive(valid, edges_[n]);
            top.valid |= valid << n;
            // 25 MHz at 100 Mb/s; then no frame is understood.
            top.rx_clk |= (n + desk.dead > 1 ? 0 : phy.slow() ? edges_[n] % 10 < 5 : seen.rx[port]) << n;
        }
        top.in_band0 = phys[0].in_band();
        top.in_band1 = phys[1].in_band();
        top.noise = random_();
        top.skew_ps = static_cast<int16_t>(desk.skew_ps) - static_cast<int16_t>(desk.early_ps);
        top.data0 = seen.rx_data[PORT_OF_PHY[0]];
        top.data1 = seen.rx_data[PORT_OF_PHY[1]];
        top.gnss_rx = seen.gnss_rx;
        top.serial_rx = seen.serial_rx;
        top.flash_miso = seen.flash_miso;
    }
    void take(bool is_tick) {
        if (is_tick)
            for (unsigned n = 0; n < 2; n++) {
                const unsigned port = PORT_OF_PHY[n];
                seen.tx_en[port] = top.sent_valid >> n & 1;
                seen.tx_data[port] = n ? top.sent_data1 : top.sent_data0;
                phys[n].transmit(seen.tx_en[port], seen.tx_data[port]);
            }
        seen.pps_out = top.pps_out;
        seen.gnss_tx = top.gnss_tx;
        seen.serial_tx = top.serial_tx;
        seen.flash_cs_n = top.flash_cs_n;
        seen.flash_clk = top.flash_clk;
        seen.flash_mosi = top.flash_mosi;
    }

    uint64_t time_ns_ = TICK_NS / 2;  // The timebase rises at whole ticks.
    uint8_t was_timebase_ = 0;
    uint8_t was_rx_[2] = {};
    uint64_t edges_[2] = {};
    std::minstd_rand random_;
};

}  // namespace

std::unique_ptr<Model> make_model() { return std::make_unique<Verilated>(); }

}  // namespace liteprobe
