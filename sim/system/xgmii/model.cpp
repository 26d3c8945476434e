// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// The Verilated probe of 10 Gb/s behind the pins of the harness, which knows GMII alone: an octet a tick.
//
// A tick of the harness is an octet of the line of 10 Gb/s, 0.8 ns, though it says 8 ns: ten of its nanoseconds are one of the
// probe's, and its gigabit is ten (host/device/link/sim10g.py). The probe's clocks have every eighth tick; the octets of so many
// ticks are a word of XGMII. A frame comes to the probe in lane 0 or 4, so up to three octets later than it came on the wire, as
// a receiver's PCS would have it; a gap of 12 octets or more may be cut by so many.

#include <array>
#include <deque>

#include "Vliteprobe_sim.h"
#include "model.h"

namespace liteprobe {

namespace {

constexpr unsigned LANES = 8, COLUMN = 4, PORTS = 3, TEST_PORTS = 2, FALLS = 4;
constexpr uint8_t IDLE = 0x07, SEQUENCE = 0x9c, START = 0xfb, TERMINATE = 0xfd, ERROR = 0xfe, PREAMBLE = 0x55;
constexpr uint64_t IDLES = 0x0707070707070707, LOCAL_FAULTS = 0x0100009c0100009c;

struct Design {
    VerilatedContext context;
    Vliteprobe_sim top{&context};
};

// What the harness sees.
struct Gmii {
    uint8_t tx_en = 0, tx_data = 0, rx_dv = 0, rx_data = 0, link_up = 0, clock = 0;
};

struct HarnessPins {
    std::array<Gmii, PORTS> gmii;
    uint8_t timebase = 0, sys = 0;
};

struct XgmiiPins {
    uint64_t &tx_data;
    uint8_t &tx_control;
    uint64_t &rx_data;
    uint8_t &rx_control, &clk_rx;
};

// From words to octets: which of them are a frame.
class Sender {
public:
    void step(const XgmiiPins &pins, unsigned lane, Gmii &out) {
        const uint8_t octet = pins.tx_data >> 8 * lane & 0xff;
        const bool is_control = pins.tx_control >> lane & 1;
        if (is_control)
            in_frame_ = octet == START || (in_frame_ && octet == ERROR);
        out.tx_en = in_frame_;
        out.tx_data = !in_frame_ ? 0 : is_control && octet == START ? PREAMBLE : octet;
    }

private:
    bool in_frame_ = false;
};

// From octets to words.
class Receiver {
public:
    // Takes the octet of a tick; true with the last one of a word.
    bool step(const Gmii &in, XgmiiPins &pins) {
        const unsigned lane = ticks_ % LANES;
        if (in.rx_dv && !was_valid_)
            shift_ = (COLUMN - lane % COLUMN) % COLUMN;
        was_valid_ = in.rx_dv;
        late_[ticks_ % COLUMN] = {in.rx_dv != 0, in.rx_data};
        const Octet now = late_[(ticks_ + COLUMN - shift_) % COLUMN];
        ticks_++;
        const bool starts = now.valid && !in_frame_, ends = in_frame_ && !now.valid;
        in_frame_ = now.valid;
        put(lane, !now.valid || starts, starts ? START : ends ? TERMINATE : now.valid ? now.data : IDLE);
        if (lane != LANES - 1)
            return false;
        pins.rx_data = in.link_up ? data_ : LOCAL_FAULTS;
        pins.rx_control = in.link_up ? control_ : 0x11;
        return true;
    }

private:
    struct Octet {
        bool valid = false;
        uint8_t data = 0;
    };

    void put(unsigned lane, bool is_control, uint8_t octet) {
        if (!lane)
            data_ = control_ = 0;
        data_ |= uint64_t(octet) << 8 * lane;
        control_ |= is_control << lane;
    }

    std::array<Octet, COLUMN> late_;
    uint64_t ticks_ = 0, data_ = IDLES;
    uint8_t control_ = 0xff;
    unsigned shift_ = 0;
    bool was_valid_ = false, in_frame_ = false;
};

// Management has a line of GMII, whose octets take a cycle each: its frames wait here on their way in, and until they are whole on
// their way out.
class Management {
public:
    // A tick of the harness's receive clock.
    void take(const Gmii &in) {
        if (in.rx_dv || !is_idle_)
            received_.push_back({in.rx_dv, in.rx_data});
        idles_ = in.rx_dv ? 0 : idles_ + 1;
        is_idle_ = idles_ >= GAP;
    }

    // A cycle of the probe's clocks; before it rises, and after.
    void before(Vliteprobe_sim &top) {
        const Octet now = received_.empty() ? Octet{0, 0} : received_.front();
        if (!received_.empty())
            received_.pop_front();
        top.gmii2_rx_dv = now.valid;
        top.gmii2_rx_data = now.data;
    }
    void after(const Vliteprobe_sim &top) {
        if (top.gmii2_tx_en)
            frame_.push_back({1, top.gmii2_tx_data});
        else if (!frame_.empty()) {
            frame_.insert(frame_.end(), GAP, Octet{0, 0});
            sent_.insert(sent_.end(), frame_.begin(), frame_.end());
            frame_.clear();
        }
    }

    // A tick of the harness.
    void give(Gmii &out) {
        const Octet now = sent_.empty() ? Octet{0, 0} : sent_.front();
        if (!sent_.empty())
            sent_.pop_front();
        out.tx_en = now.valid;
        out.tx_data = now.data;
    }

private:
    static constexpr unsigned GAP = 12;
    struct Octet {
        uint8_t valid, data;
    };
    std::deque<Octet> received_, frame_, sent_;
    unsigned idles_ = GAP;
    bool is_idle_ = true;
};

#define GMII(port) gmii[port].tx_en, gmii[port].tx_data, gmii[port].rx_dv, gmii[port].rx_data, gmii[port].link_up
#define XGMII(port) \
    top.xgmii##port##_tx_data, top.xgmii##port##_tx_control, top.xgmii##port##_rx_data, top.xgmii##port##_rx_control, top.clk_eth_rx##port

class Verilated final : Design, HarnessPins, public Model {  // What the pins refer to comes first.
public:
    Verilated()
        : Model({timebase, sys, top.rst_sys, gmii[0].clock, gmii[1].clock, gmii[2].clock, GMII(0), GMII(1), GMII(2), top.pps,
                top.pps_out, top.gnss_rx, top.gnss_tx, top.serial_rx, top.serial_tx, top.flash_cs_n, top.flash_clk, top.flash_mosi,
                top.flash_miso}) {
        for (XgmiiPins &port : xgmii_) {
            port.rx_data = IDLES;
            port.rx_control = 0xff;
        }
        top.gmii2_link_up = 1;
    }
    ~Verilated() override { top.final(); }

    // The probe is evaluated where a clock of its own changes.
    void eval() override {
        const bool has_tick = timebase && !was_timebase_;
        bool has_changed = has_tick && tick();
        was_timebase_ = timebase;
        for (unsigned port = 0; port < PORTS; port++) {
            if (gmii[port].clock && !was_rx_[port]) {
                if (port < TEST_PORTS)
                    has_changed |= receive(port);
                else
                    management_.take(gmii[port]);
            }
            was_rx_[port] = gmii[port].clock;
        }
        if (has_changed)
            top.eval();
        if (!has_tick)
            return;
        if (lane_ == 0)
            management_.after(top);
        management_.give(gmii[TEST_PORTS]);
        for (unsigned port = 0; port < TEST_PORTS; port++)
            senders_[port].step(xgmii_[port], lane_, gmii[port]);
    }

private:
    // A rising edge of the harness's timebase; true where a clock of the probe changes.
    bool tick() {
        lane_ = ticks_++ % LANES;
        if (lane_ == 0) {
            management_.before(top);
            top.clk_timebase = top.clk_eth_rx2 = 1;
            top.clk_sys = sys;
            return true;
        }
        if (lane_ != FALLS)
            return false;
        top.clk_timebase = top.clk_eth_rx2 = top.clk_sys = 0;
        return true;
    }

    // A rising edge of a receive clock of the harness, likewise. What is taken stands at the probe's pins when its clock rises.
    bool receive(unsigned port) {
        const bool falls = rx_ticks_[port]++ % LANES == FALLS, rises = receivers_[port].step(gmii[port], xgmii_[port]);
        if (falls || rises)
            xgmii_[port].clk_rx = rises;
        return falls || rises;
    }

    std::array<XgmiiPins, TEST_PORTS> xgmii_{{{XGMII(0)}, {XGMII(1)}}};
    std::array<Sender, TEST_PORTS> senders_;
    std::array<Receiver, TEST_PORTS> receivers_;
    Management management_;
    std::array<uint64_t, TEST_PORTS> rx_ticks_{};
    std::array<bool, PORTS> was_rx_{};
    uint64_t ticks_ = 0;
    unsigned lane_ = 0;
    bool was_timebase_ = false;
};

}  // namespace

std::unique_ptr<Model> make_model() { return std::make_unique<Verilated>(); }

}  // namespace liteprobe
