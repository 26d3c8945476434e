// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// What really happened at the pins, written to a truth file and to pcap files. Both are buffered.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "frame.h"

namespace liteprobe {

enum Direction : uint8_t { OUT, IN };

#pragma pack(push, 1)
struct TruthRow {
    uint64_t sfd_tick;
    uint32_t frame;
    uint32_t length;
    uint8_t port;
    uint8_t direction;
    uint8_t fate;
    uint8_t flags;
    uint32_t sequence;
    uint64_t origin_tick;
};
#pragma pack(pop)
static_assert(sizeof(TruthRow) == 32, "the truth file has rows of 32 octets");

class Truth {
public:
    ~Truth() { close(); }
    void open_rows(const std::string &path);
    void open_pcaps(const std::string &prefix, unsigned ports);
    bool wants_pcap() const { return !pcaps_.empty(); }
    void row(const TruthRow &row);
    // One packet without its FCS; `content` starts at the destination MAC.
    void packet(unsigned port, Direction direction, uint64_t sfd_tick, const uint8_t *content, size_t size);
    void flush();
    void close();

private:
    std::FILE *rows_ = nullptr;
    std::vector<std::FILE *> pcaps_;  // 2 * port + direction
};

}  // namespace liteprobe
