// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// What really happened at the pins, written to a truth file and to pcap files. Both are buffered.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
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
    virtual ~Truth() { close(); }
    void open_rows(const std::string &path);
    void open_pcaps(const std::string &prefix, const std::vector<std::string> &ports);
    bool wants_pcap() const { return !pcaps_.empty(); }
    virtual void row(const TruthRow &row);
    // One packet without its FCS; `content` starts at the destination MAC.
    virtual void packet(unsigned port, Direction direction, uint64_t sfd_tick, const uint8_t *content, size_t size);
    void packet_at(unsigned port, Direction direction, uint64_t ns, const uint8_t *content, size_t size);
    void flush();
    void close();

private:
    std::FILE *rows_ = nullptr;
    std::vector<std::FILE *> pcaps_;  // 2 * port + direction
};

// What one probe of several writes into a truth that they share: moments in picoseconds of true time in the place of
// ticks, and ports that follow those of the probes before.
class TruthView : public Truth {
public:
    using Time = std::function<uint64_t(uint64_t tick)>;  // ps

    // `late_ps`: how much later than the ticks of the line its octets are here.
    TruthView(Truth &whole, unsigned probe, Time time, uint64_t late_ps = 0)
        : whole_(whole), probe_(probe), time_(std::move(time)), late_ps_(late_ps) {}
    void row(const TruthRow &row) override;
    void packet(unsigned port, Direction direction, uint64_t sfd_tick, const uint8_t *content, size_t size) override;

private:
    Truth &whole_;
    unsigned probe_;
    Time time_;
    uint64_t late_ps_;
};

}  // namespace liteprobe
