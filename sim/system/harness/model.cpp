// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "model.h"

#include "Vliteprobe_sim.h"

namespace liteprobe {

namespace {

struct Design {
    VerilatedContext context;
    Vliteprobe_sim top{&context};
};

#define GMII(port) \
    top.gmii##port##_tx_en, top.gmii##port##_tx_data, top.gmii##port##_rx_dv, top.gmii##port##_rx_data, top.gmii##port##_link_up

class Verilated final : Design, public Model {  // The design comes first: the pins are references into it.
public:
    Verilated()
        : Model({top.clk_timebase, top.clk_sys, top.rst_sys, top.clk_eth_rx0, top.clk_eth_rx1, top.clk_eth_rx2,
                GMII(0), GMII(1), GMII(2), top.pps, top.pps_out, top.gnss_rx, top.gnss_tx, top.serial_rx, top.serial_tx,
                top.flash_cs_n, top.flash_clk, top.flash_mosi, top.flash_miso}) {}
    ~Verilated() override { top.final(); }
    void eval() override { top.eval(); }
};

}  // namespace

std::unique_ptr<Model> make_model() { return std::make_unique<Verilated>(); }

}  // namespace liteprobe
