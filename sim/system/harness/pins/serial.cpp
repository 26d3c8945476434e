// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "serial.h"

namespace liteprobe {

namespace {

constexpr uint64_t TICKS_PER_SECOND = 125'000'000;
constexpr uint64_t ONE = 1ull << 32;
constexpr int BITS = 10;  // Start, 8 data, stop.

}  // namespace

SerialPins::SerialPins(uint64_t baud) : bit_ticks_((TICKS_PER_SECOND << 32) / baud) {}

uint8_t SerialPins::drive() {
    if (!shifting_) {
        if (to_send_.empty())
            return 1;
        shift_ = 1u << (BITS - 1) | static_cast<uint32_t>(to_send_.front()) << 1;
        to_send_.pop_front();
        drive_bits_ = BITS;
        drive_left_ += bit_ticks_;
        shifting_ = true;
    }
    uint8_t level = shift_ & 1;
    drive_left_ -= ONE;
    if (drive_left_ < ONE) {
        shift_ >>= 1;
        if (--drive_bits_ == 0)
            shifting_ = false;
        else
            drive_left_ += bit_ticks_;
    }
    return level;
}

bool SerialPins::sample(uint8_t tx, uint8_t &octet) {
    if (!sampling_) {
        was_idle_ |= tx != 0;
        if (tx || !was_idle_)
            return false;
        sampling_ = true;
        sampled_ = 0;
        sample_bits_ = 0;
        sample_left_ = bit_ticks_ / 2;  // The middle of the start bit.
    }
    if (sample_left_ >= ONE) {
        sample_left_ -= ONE;
        return false;
    }
    sampled_ |= static_cast<uint32_t>(tx) << sample_bits_;
    sample_left_ += bit_ticks_ - ONE;
    if (++sample_bits_ < BITS)
        return false;
    sampling_ = false;
    octet = sampled_ >> 1 & 0xff;
    return true;
}

}  // namespace liteprobe
