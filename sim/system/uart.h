// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// The UARTBone's pins on a pseudo-terminal.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

namespace liteprobe {

class Uart {
public:
    explicit Uart(uint64_t baud);
    ~Uart();
    const std::string &path() const { return path_; }
    int descriptor() const { return master_; }

    // Takes what the host wrote; false when there was nothing.
    bool receive();
    // All octets are in the probe, and the answer to every whole command is out.
    bool is_done() const { return to_probe_.empty() && !shifting_ && expected_ <= 0; }
    void forget() { expected_ = 0; }  // The answer didn't come in time.

    // One tick; `tx` is the probe's pin. Returns the level of its RX pin.
    inline uint8_t step(uint8_t tx) {
        sample(tx);
        return drive();
    }

private:
    void follow(uint8_t octet);
    void sample(uint8_t tx);
    uint8_t drive();

    int master_ = -1, slave_ = -1;
    std::string path_;
    uint64_t bit_ticks_;  // 32 fractional bits.

    std::deque<uint8_t> to_probe_;
    bool shifting_ = false;
    uint32_t shift_ = 0;
    uint64_t drive_left_ = 0;
    int drive_bits_ = 0;

    bool sampling_ = false;
    uint32_t sampled_ = 0;
    uint64_t sample_left_ = 0;
    int sample_bits_ = 0;

    // Where in a UARTBone command the host is: it tells whether an answer is due.
    unsigned position_ = 0;
    uint8_t command_ = 0, words_ = 0;
    int64_t expected_ = 0;
};

}  // namespace liteprobe
