// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// A SPI flash at the probe's pins, read with command 03h; it holds a file at the board's offset for firmware.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace liteprobe {

class Flash {
public:
    // Throws UsageError when the file can't be read.
    void load(const std::string &path);

    // One tick: takes the levels of the probe's outputs, returns that of its input. SPI mode 0.
    inline uint8_t step(uint8_t cs_n, uint8_t clk, uint8_t mosi) {
        if (clk != was_clk_ || cs_n != was_cs_n_)
            change(cs_n, clk, mosi);
        return miso_;
    }

private:
    void change(uint8_t cs_n, uint8_t clk, uint8_t mosi);
    uint8_t at(uint32_t address) const;

    std::vector<uint8_t> contents_;
    uint8_t was_clk_ = 0, was_cs_n_ = 1, miso_ = 1;
    unsigned bits_ = 0;     // Taken since the flash was selected.
    uint32_t taken_ = 0;    // Command and address.
    uint32_t address_ = 0;  // Of the octet that goes out.
};

}  // namespace liteprobe
