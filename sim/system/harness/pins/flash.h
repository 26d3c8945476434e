// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// A NOR flash at the probe's pins, W25Q-like: read (03h), write enable (06h), status (05h), page program (02h) and sector
// erase (20h). It holds a file at the board's offset for firmware, and is busy for some looks at its status after a write.
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
    void shift_in(uint8_t mosi);
    void finish();  // Deselected: what was asked for is done.
    void write(uint32_t address, uint8_t octet);
    void erase(uint32_t address);

    std::vector<uint8_t> contents_;
    uint8_t was_clk_ = 0, was_cs_n_ = 1, miso_ = 1;
    unsigned bits_ = 0;     // Taken since the flash was selected.
    uint32_t taken_ = 0;    // Command and address.
    uint32_t address_ = 0;  // Of the octet that goes out.
    uint8_t command_ = 0;
    std::vector<uint8_t> data_;  // Behind the address of a page program.
    uint8_t octet_ = 0;
    bool may_write_ = false;
    unsigned busy_looks_ = 0;
};

}  // namespace liteprobe
