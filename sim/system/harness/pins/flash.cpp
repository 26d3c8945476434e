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
constexpr uint8_t READ = 0x03, WRITE_ENABLE = 0x06, STATUS = 0x05, PROGRAM = 0x02, ERASE = 0x20;
constexpr uint32_t PAGE = 256, SECTOR = 4096, SIZE = 0x100000;  // From the offset on.
constexpr unsigned LOOKS_TO_PROGRAM = 3, LOOKS_TO_ERASE = 20;

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

void Flash::write(uint32_t address, uint8_t octet) {
    uint32_t place = address - FLASH_OFFSET;
    if (place >= SIZE)
        return;
    if (place >= contents_.size())
        contents_.resize(place + 1, 0xFF);
    contents_[place] &= octet;  // Bits only fall.
}

void Flash::erase(uint32_t address) {
    uint32_t first = (address & ~(SECTOR - 1)) - FLASH_OFFSET;
    for (uint32_t place = first; place < first + SECTOR && place < contents_.size(); place++)
        contents_[place] = 0xFF;
}

void Flash::finish() {
    bool is_whole = bits_ % 8 == 0;
    if (command_ == WRITE_ENABLE && bits_ == 8 && !busy_looks_) {
        may_write_ = true;
    } else if (command_ == PROGRAM && is_whole && may_write_ && !busy_looks_) {
        for (size_t n = 0; n < data_.size(); n++)
            write((address_ & ~(PAGE - 1)) | ((address_ + n) & (PAGE - 1)), data_[n]);
        may_write_ = false;
        busy_looks_ = LOOKS_TO_PROGRAM;
    } else if (command_ == ERASE && bits_ == COMMAND_BITS && may_write_ && !busy_looks_) {
        erase(address_);
        may_write_ = false;
        busy_looks_ = LOOKS_TO_ERASE;
    }
    command_ = 0;
    data_.clear();
}

void Flash::shift_in(uint8_t mosi) {
    if (bits_ < COMMAND_BITS)
        taken_ = taken_ << 1 | mosi;
    octet_ = octet_ << 1 | mosi;
    bits_++;
    if (bits_ == 8) {
        command_ = octet_;
        if (command_ == STATUS)
            busy_looks_ -= busy_looks_ > 0;
    }
    if (bits_ == COMMAND_BITS)
        address_ = taken_ & 0xFFFFFF;
    else if (bits_ > COMMAND_BITS && bits_ % 8 == 0 && command_ == READ)
        address_++;
    else if (bits_ > COMMAND_BITS && bits_ % 8 == 0 && command_ == PROGRAM)
        data_.push_back(octet_);
}

void Flash::change(uint8_t cs_n, uint8_t clk, uint8_t mosi) {
    if (cs_n) {
        if (!was_cs_n_)
            finish();
        bits_ = 0;
        miso_ = 1;
    } else if (clk && !was_clk_) {
        shift_in(mosi);
    } else if (!clk && was_clk_ && bits_ >= 8 && command_ == STATUS) {
        uint8_t status = (busy_looks_ > 0) | may_write_ << 1;
        miso_ = status >> (7 - bits_ % 8) & 1;
    } else if (!clk && was_clk_ && bits_ >= COMMAND_BITS && command_ == READ && !busy_looks_) {
        miso_ = at(address_) >> (7 - bits_ % 8) & 1;
    }
    was_clk_ = clk;
    was_cs_n_ = cs_n;
}

}  // namespace liteprobe
