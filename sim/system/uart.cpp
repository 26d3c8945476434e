// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "uart.h"

#include <fcntl.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <stdexcept>

namespace liteprobe {

namespace {

constexpr uint64_t TICKS_PER_SECOND = 125'000'000;
constexpr unsigned HEADER = 6;  // Command, words, address.

}  // namespace

Uart::Uart(uint64_t baud) : bit_ticks_((TICKS_PER_SECOND << 32) / baud) {
    master_ = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (master_ < 0 || grantpt(master_) || unlockpt(master_))
        throw std::runtime_error("can't open a pseudo-terminal: is /dev/ptmx there?");
    path_ = ptsname(master_);
    // Held open, so that a client that leaves is no hang-up for the next.
    slave_ = open(path_.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
    termios mode;
    if (slave_ < 0 || tcgetattr(slave_, &mode))
        throw std::runtime_error("can't open " + path_);
    cfmakeraw(&mode);
    tcsetattr(slave_, TCSANOW, &mode);
}

Uart::~Uart() {
    close(slave_);
    close(master_);
}

bool Uart::receive() {
    uint8_t buffer[4096];
    ssize_t size = read(master_, buffer, sizeof(buffer));
    for (ssize_t i = 0; i < size; i++) {
        to_probe_.push_back(buffer[i]);
        follow(buffer[i]);
    }
    return size > 0;
}

// UARTBone: 1 and 3 write, 2 and 4 read (incrementing and fixed address), 32-bit words.
void Uart::follow(uint8_t octet) {
    if (position_ == 0)
        command_ = octet;
    else if (position_ == 1)
        words_ = octet;
    position_++;
    bool is_write = command_ == 1 || command_ == 3, is_read = command_ == 2 || command_ == 4;
    if (position_ < HEADER + (is_write ? 4u * words_ : 0u))
        return;
    position_ = 0;
    if (is_read)
        expected_ += 4 * words_;
}

uint8_t Uart::drive() {
    constexpr uint64_t ONE = 1ull << 32;
    if (!shifting_) {
        if (to_probe_.empty())
            return 1;
        // Start bit, 8 data bits from the least, stop bit.
        shift_ = 1u << 9 | static_cast<uint32_t>(to_probe_.front()) << 1;
        to_probe_.pop_front();
        drive_bits_ = 10;
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

void Uart::sample(uint8_t tx) {
    constexpr uint64_t ONE = 1ull << 32;
    if (!sampling_) {
        if (tx)
            return;
        sampling_ = true;
        sampled_ = 0;
        sample_bits_ = 0;
        sample_left_ = bit_ticks_ / 2;  // The middle of the start bit.
    }
    if (sample_left_ >= ONE) {
        sample_left_ -= ONE;
        return;
    }
    sampled_ |= static_cast<uint32_t>(tx) << sample_bits_;
    sample_left_ += bit_ticks_ - ONE;
    if (++sample_bits_ < 10)
        return;
    sampling_ = false;
    uint8_t octet = sampled_ >> 1 & 0xff;
    if (write(master_, &octet, 1) == 1)
        expected_--;
}

}  // namespace liteprobe
