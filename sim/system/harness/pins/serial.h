// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Octets on a pair of serial pins: start bit, 8 data bits from the least, stop bit; a call of each side a tick.
#pragma once

#include <cstdint>
#include <deque>

namespace liteprobe {

class SerialPins {
public:
    explicit SerialPins(uint64_t baud);
    void send(uint8_t octet) { to_send_.push_back(octet); }
    bool is_idle() const { return to_send_.empty() && !shifting_; }

    // The level of the probe's RX pin.
    uint8_t drive();
    // Takes the level of the probe's TX pin; true when an octet is complete.
    bool sample(uint8_t tx, uint8_t &octet);

private:
    uint64_t bit_ticks_;  // 32 fractional bits.

    std::deque<uint8_t> to_send_;
    bool shifting_ = false;
    uint32_t shift_ = 0;
    uint64_t drive_left_ = 0;
    int drive_bits_ = 0;

    bool was_idle_ = false;  // A line that was never high, before the first clock, has no start bit.
    bool sampling_ = false;
    uint32_t sampled_ = 0;
    uint64_t sample_left_ = 0;
    int sample_bits_ = 0;
};

}  // namespace liteprobe
