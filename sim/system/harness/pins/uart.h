// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// The UARTBone's pins on a pseudo-terminal.
#pragma once

#include <cstdint>
#include <string>

#include "serial.h"

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
    bool is_done() const { return pins_.is_idle() && expected_ <= 0; }
    void forget() { expected_ = 0; }  // The answer didn't come in time.

    // One tick; `tx` is the probe's pin. Returns the level of its RX pin.
    inline uint8_t step(uint8_t tx) {
        uint8_t octet;
        if (pins_.sample(tx, octet))
            give(octet);
        return pins_.drive();
    }

private:
    void follow(uint8_t octet);
    void give(uint8_t octet);

    int master_ = -1, slave_ = -1;
    std::string path_;
    SerialPins pins_;

    // Where in a UARTBone command the host is: it tells whether an answer is due.
    unsigned position_ = 0;
    uint8_t command_ = 0, words_ = 0;
    int64_t expected_ = 0;
};

}  // namespace liteprobe
