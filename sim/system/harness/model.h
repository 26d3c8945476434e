// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// The Verilated probe behind its pins. Only model.cpp sees what Verilator wrote: all other sources are the same in every build.
#pragma once

#include <cstdint>
#include <memory>

namespace liteprobe {

struct ModelPins {
    uint8_t &clk_timebase, &clk_sys, &rst_sys, &clk_eth_rx0, &clk_eth_rx1, &clk_eth_rx2;
    uint8_t &gmii0_tx_en, &gmii0_tx_data, &gmii0_rx_dv, &gmii0_rx_data, &gmii0_link_up;
    uint8_t &gmii1_tx_en, &gmii1_tx_data, &gmii1_rx_dv, &gmii1_rx_data, &gmii1_link_up;
    uint8_t &gmii2_tx_en, &gmii2_tx_data, &gmii2_rx_dv, &gmii2_rx_data, &gmii2_link_up;
    uint8_t &pps, &pps_out, &gnss_rx, &gnss_tx, &serial_rx, &serial_tx;
    uint8_t &flash_cs_n, &flash_clk, &flash_mosi, &flash_miso;
};

struct Model : ModelPins {
    explicit Model(const ModelPins &pins) : ModelPins(pins) {}
    virtual ~Model() = default;  // Ends the model, too.
    virtual void eval() = 0;     // Brings all that follows from the pins.
};

std::unique_ptr<Model> make_model();

// What a build brings to a simulation. The executable has its own; that of the other probe of a pair may come from the
// shared library of another build (--peer), which exports it.
struct Build {
    std::unique_ptr<Model> (*make)();
    unsigned sys_half_ticks;  // Of a cycle of sys.
    bool is_own_link;         // Etherbone on a port of its own.
};

}  // namespace liteprobe

extern "C" const liteprobe::Build liteprobe_build;
