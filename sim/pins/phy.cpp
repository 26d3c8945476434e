// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "phy.h"

#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace liteprobe {

namespace {

constexpr uint64_t WAKE_TICKS = 2063;         // 16.5 us, Tw_sys of 1000BASE-T (IEEE 802.3, table 78-4).
constexpr uint64_t SLEEP_TICKS = 2500;        // Idle before it goes to sleep.
constexpr uint64_t NEGOTIATION_TICKS = 2500;  // Seconds on a desk; 20 us here.
constexpr uint64_t LONGEST = 4608;            // Octets, without the settings for long frames.
constexpr unsigned IFG = 12;

}  // namespace

Desk Desk::from_environment() {
    Desk desk;
    const std::map<std::string, uint64_t *> options = {
        {"peer", &desk.peer}, {"eee", &desk.eee}, {"silent", &desk.silent}, {"id", &desk.id},
        {"dead", &desk.dead}, {"down_us", &desk.down_us}, {"skew_ps", &desk.skew_ps}, {"early_ps", &desk.early_ps},
    };
    const char *text = std::getenv("LITEPROBE_PHY");
    std::stringstream words(text ? text : "");
    for (std::string word; std::getline(words, word, ',');) {
        size_t equals = word.find('=');
        auto option = options.find(word.substr(0, equals));
        if (option == options.end() || equals == std::string::npos)
            throw std::runtime_error("LITEPROBE_PHY has '" + word + "': give peer, eee, silent, id, dead, down_us, skew_ps or early_ps=NUMBER");
        *option->second = std::stoull(word.substr(equals + 1), nullptr, 0);
    }
    return desk;
}

void Phy::reset() {
    for (auto &value : registers_)
        value = 0;
    for (auto &value : shadow_)
        value = 0;
    shadow_[0] = 0x0400;
    shadow_[7] = 0x0127;  // In-band status off, skew of RXC on.
    registers_[0x18] = 7;
    mmd_ = {{{7, 60}, 6}, {{7, 0x803D}, 0x8000}};
    set_sleep();
}

uint16_t Phy::read(unsigned number) {
    std::pair<unsigned, unsigned> place(registers_[13] & 31, mmd_register_);
    switch (number) {
    case 1: return 0x7949 | (is_up() ? 1 << 2 | 1 << 5 : 0);
    case 2: return id_ >> 16;
    case 3: return id_ & 0xFFFF;
    case 5: return is_up() ? 0x4001 | (peer_ >= 100 ? 1 << 8 : 0) | 1 << 6 : 0;
    case 10: return is_gigabit() ? 1 << 11 : 0;
    case 14:
        if (place == std::make_pair(7u, 61u))
            return desk_.eee ? 6 : 0;
        return mmd_.count(place) ? mmd_[place] : 0;
    case 0x18: return is_broadcom() ? shadow_[registers_[0x18]] : registers_[0x18];
    default: return registers_[number];
    }
}

void Phy::write(unsigned number, uint16_t value) {
    if (number == 14) {
        if (registers_[13] >> 14)
            mmd_[{registers_[13] & 31, mmd_register_}] = value;
        else
            mmd_register_ = value;
    } else if (number == 0x18 && is_broadcom()) {
        unsigned shadow = value & 7;
        if (shadow != 7 || value >> 15)
            shadow_[shadow] = value & 0x7FFF;
        if (shadow == 7 && !(value >> 15))
            registers_[0x18] = value >> 12 & 7;
    } else {
        registers_[number] = value;
        if (number == 0 && value & 1 << 9)
            negotiating_ = NEGOTIATION_TICKS;
    }
    set_sleep();
}

void Phy::set_sleep() {
    may_sleep_ = peer_ >= 1000 && desk_.eee && mmd_.at({7, 60}) & 4 && (!is_broadcom() || mmd_.at({7, 0x803D}) >> 15);
    is_asleep_ &= may_sleep_;
}

void Phy::transmit(uint8_t &valid, uint8_t &data) {
    ticks_++;
    if (negotiating_)
        negotiating_--;
    sent_ = valid ? sent_ + 1 : 0;
    if (!is_gigabit() || (sent_ > LONGEST && !takes_long(true)))
        valid = 0;
    idle_ = valid ? 0 : idle_ + 1;
    if (valid && is_asleep_) {
        is_asleep_ = false;
        waking_ = WAKE_TICKS;
    }
    if (waking_ || !waiting_.empty()) {
        if (idle_ <= IFG)
            waiting_.push_back(valid << 8 | data);
        if (waking_ && --waking_) {
            valid = 0;
            return;
        }
        valid = waiting_.front() >> 8;
        data = waiting_.front() & 0xFF;
        waiting_.pop_front();
    } else if (idle_ > SLEEP_TICKS) {
        is_asleep_ = may_sleep_;
    }
}

void Phy::receive(uint8_t &valid, uint64_t edge) {
    if (edge != received_at_ && edge & 1)
        received_ = valid ? received_ + 1 : 0;
    received_at_ = edge;
    if (!is_gigabit() || (received_ > LONGEST && !takes_long(false)))
        valid = 0;
}

uint8_t MdioBus::step(bool mdc, bool mdio) {
    if (mdc == was_mdc_)
        return drive_;
    was_mdc_ = mdc;
    if (!mdc)
        return drive_;
    if (!count_) {
        // Clause 22: a start is 01, after 32 ones.
        if (mdio)
            ones_++;
        else if (ones_ >= 32)
            count_ = 1, bits_ = 0;
        else
            ones_ = 0;
        return drive_;
    }
    ones_ = 0;
    bits_ = bits_ << 1 | mdio;
    count_++;
    unsigned address = bits_ >> 5 & 31, number = bits_ & 31;
    if (count_ == 14) {  // Start, code and both numbers have come.
        answers_ = !desk_.silent && (bits_ >> 10 & 3) == 2 && address < phys_.size();
        if (answers_)
            answer_ = phys_[address].read(number);
    }
    if (answers_ && count_ >= 15)
        drive_ = count_ == 15 ? 0 : answer_ >> (31 - count_) & 1;
    if (count_ == 32) {
        address = bits_ >> 23 & 31;
        if ((bits_ >> 28 & 3) == 1 && !desk_.silent && address < phys_.size())
            phys_[address].write(bits_ >> 18 & 31, bits_ & 0xFFFF);
        count_ = 0;
        answers_ = false;
        drive_ = 2;
    }
    return drive_;
}

}  // namespace liteprobe
