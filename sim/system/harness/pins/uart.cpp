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

constexpr unsigned HEADER = 6;  // Command, words, address.

}  // namespace

Uart::Uart(uint64_t baud) : pins_(baud) {
    master_ = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (master_ < 0 || grantpt(master_) || unlockpt(master_))
        throw std::runtime_error("can't open a pseudo-terminal: is /dev/ptmx there?");
    path_ = ptsname(master_);
    // Held open, so that a client that leaves is not a hang-up for the next.
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
        pins_.send(buffer[i]);
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

void Uart::give(uint8_t octet) {
    if (::write(master_, &octet, 1) == 1)
        expected_--;
}

}  // namespace liteprobe
