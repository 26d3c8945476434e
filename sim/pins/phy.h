// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// A PHY as its data sheet has it at power-up: registers behind MDIO, negotiation, Energy Efficient Ethernet, long frames.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace liteprobe {

constexpr uint64_t TICKS_PER_US = 125;

// What differs from desk to desk: environment variable LITEPROBE_PHY, such as "peer=100,eee=0,silent=1".
struct Desk {
    uint64_t peer = 1000;    // Mb/s that the other side of port 1 has at the most; 0: no cable.
    uint64_t eee = 1;        // The other side offers Energy Efficient Ethernet.
    uint64_t silent = 0;     // No PHY answers on MDIO.
    uint64_t id = 0;         // Registers 2 and 3 of an unknown kind; 0: those of the board's.
    uint64_t dead = 0;       // So many PHYs give no receive clock: 1, that of port 1; 2, both.
    uint64_t down_us = 0;    // When the cable of port 1 is pulled out, for 5 ms; 0: never.
    uint64_t skew_ps = 0;    // Of data against the clock on the board, and noise in the same place...
    uint64_t early_ps = 0;   // ...or the other way.
    static Desk from_environment();
};

class Phy {
public:
    // `peer` in Mb/s, 0 for no cable.
    Phy(const Desk &desk, uint32_t id, uint64_t peer, uint64_t down_us)
        : desk_(desk), id_(desk.id ? desk.id : id), peer_(peer), down_(down_us * TICKS_PER_US) { reset(); }

    void reset();
    uint16_t read(unsigned number);
    void write(unsigned number, uint16_t value);
    // A tick: the octet that the FPGA sends becomes the one that the wire gets.
    void transmit(uint8_t &valid, uint8_t &data);
    // Likewise, from the wire to the FPGA, as often as it is asked; `edge` counts those of the receive clock.
    void receive(uint8_t &valid, uint64_t edge);
    bool has_cable = true;
    bool is_up() const { return has_power() && has_cable && peer_ && !negotiating_ && !(down_ && ticks_ - down_ < 5000 * TICKS_PER_US); }
    bool has_power() const { return !(registers_[0] >> 11 & 1); }  // IEEE 802.3, 22.2.4.1.5.
    bool is_gigabit() const { return is_up() && peer_ >= 1000; }
    // RGMII 2.0, section 3.4.1.
    uint8_t in_band() const {
        return !tells() || !is_up() ? 0 : peer_ >= 1000 ? 0b1101 : peer_ >= 100 ? 0b1011 : 0b1001;
    }
    uint8_t slow() const { return is_up() && peer_ < 1000; }

private:
    bool is_broadcom() const { return id_ >> 16 == 0x0362; }
    bool tells() const { return !is_broadcom() || !(shadow_[7] & 1 << 5); }
    void set_sleep();
    bool takes_long(bool sent) const {
        return !is_broadcom() || (sent ? registers_[0x10] & 1 : shadow_[0] >> 14 & 1);
    }

    const Desk &desk_;
    uint32_t id_;
    uint64_t peer_, down_, ticks_ = 0;
    uint16_t registers_[32];
    uint16_t shadow_[8];  // Of register 18h.
    std::map<std::pair<unsigned, unsigned>, uint16_t> mmd_;
    uint16_t mmd_register_ = 0;
    uint64_t negotiating_ = 0;
    std::deque<uint16_t> waiting_;  // Octets while it wakes up, and after; bit 8: valid.
    uint64_t waking_ = 0, idle_ = 0, sent_ = 0, received_ = 0, received_at_ = 0;
    bool is_asleep_ = false, may_sleep_ = false;
};

// The two wires of MDIO, and all PHYs on them.
class MdioBus {
public:
    MdioBus(std::vector<Phy> &phys, const Desk &desk) : phys_(phys), desk_(desk) {}
    // `mdio` as the wire has it; returns what the PHYs drive: 0 or 1, or 2 for nothing.
    uint8_t step(bool mdc, bool mdio);

private:
    std::vector<Phy> &phys_;
    const Desk &desk_;
    bool was_mdc_ = false;
    unsigned ones_ = 0, count_ = 0;
    uint32_t bits_ = 0;
    uint16_t answer_ = 0;
    bool answers_ = false;
    uint8_t drive_ = 2;
};

}  // namespace liteprobe
