// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// A line that blocks leave by as datagrams, beside answers; the host gets the blocks.
#pragma once

#include "capture_host.h"

namespace {

// Line ------------------------------------------------------------------------------------------------

struct Line {
    std::vector<uint8_t> octets;
    uint64_t frames = 0, answers = 0, worst_answer = 0;
    uint16_t port;
    std::deque<uint64_t> asked; // When each answer was given to the probe.

    uint32_t get(size_t at, int count) const
    {
        uint32_t value = 0;
        while (count--)
            value = value << 8 | octets[at++];
        return value;
    }

    void clock()
    {
        if (top.gmii_valid) {
            octets.push_back(top.gmii_data);
            return;
        }
        if (!octets.empty())
            end();
        octets.clear();
    }

    void end()
    {
        check(octets.size() >= 72 && octets[7] == 0xd5, "a frame of %zu octets", octets.size());
        uint32_t crc = ~0u;
        for (size_t at = 8; at < octets.size(); at++) {
            crc ^= octets[at];
            for (int bit = 0; bit < 8; bit++)
                crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
        }
        check(crc == 0xdebb20e3, "a frame with a wrong FCS");
        octets.erase(octets.begin(), octets.begin() + 8);
        size_t size = octets.size() - 4;
        if (get(12, 2) != 0x0800) {
            answers++;
            worst_answer = std::max(worst_answer, now - asked.front());
            asked.pop_front();
            return;
        }
        frames++;
        uint32_t sum = 0;
        for (size_t at = 14; at < 34; at += 2)
            sum += get(at, 2);
        check((sum & 0xffff) + (sum >> 16) == 0xffff, "a wrong checksum of IP");
        check(get(0, 2) == 0x024c && get(2, 4) == 0x50000007 && get(6, 2) == 0x10e2 && get(8, 4) == 0xd5000000, "wrong MAC addresses");
        check(get(14, 2) == 0x4500 && get(16, 2) == size - 14 && get(23, 1) == 17, "not an IP datagram as it should be");
        check(get(26, 4) == 0xc0a80132 && get(30, 4) == 0xc0a80163, "wrong IP addresses");
        check(get(34, 2) == 1235 && get(38, 2) == size - 34 && get(40, 2) == 0, "a wrong header of UDP");
        std::vector<uint32_t> words((size - 42) / 4);
        memcpy(words.data(), octets.data() + 42, 4 * words.size());
        unsigned channel = get(36, 2) - port;
        check(channel < CHANNELS && channel == (words[3] >> 8 & 15), "a block of channel %u on the port of %u", words[3] >> 8 & 15, channel);
        host.take(channel, words);
    }
};

} // namespace
