// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "flash.h"

#include <fstream>
#include <iterator>

#include "spec.h"
#include "variant.h"

namespace liteprobe {

namespace {

constexpr unsigned COMMAND_BITS = 32;  // READ and its address.
constexpr uint8_t READ = 0x03;

}  // namespace

void Flash::load(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw UsageError("--flash: can't read " + path + ": give a file of 'liteprobe firmware pack'");
    contents_.assign(std::istreambuf_iterator<char>(file), {});
}

uint8_t Flash::at(uint32_t address) const {
    uint32_t place = address - FLASH_OFFSET;
    return place < contents_.size() ? contents_[place] : 0xFF;  // Erased.
}

void Flash::change(uint8_t cs_n, uint8_t clk, uint8_t mosi) {
    if (cs_n) {
        bits_ = 0;
        miso_ = 1;
    } else if (clk && !was_clk_) {
        if (bits_ < COMMAND_BITS)
            taken_ = taken_ << 1 | mosi;
        bits_++;
        if (bits_ == COMMAND_BITS)
            address_ = taken_ & 0xFFFFFF;
        else if (bits_ > COMMAND_BITS && bits_ % 8 == 0)
            address_++;
    } else if (!clk && was_clk_ && bits_ >= COMMAND_BITS && taken_ >> 24 == READ) {
        miso_ = at(address_) >> (7 - bits_ % 8) & 1;
    }
    was_clk_ = clk;
    was_cs_n_ = cs_n;
}

}  // namespace liteprobe
