// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "player.h"

#include <cstdio>
#include <cstring>
#include <memory>

#include "spec.h"

namespace liteprobe {

namespace {

constexpr uint32_t MICROSECONDS = 0xa1b2c3d4, NANOSECONDS = 0xa1b23c4d, ETHERNET = 1;
constexpr uint32_t LONGEST = 16'384;     // Octets of a frame; jabber is not a capture.
constexpr size_t AHEAD = 64;             // Frames that wait at the port: a file may be denser than the line.
constexpr uint64_t LOOK_TICKS = 64;      // Until it looks again whether they are fewer.

struct Close {
    void operator()(std::FILE *file) const { std::fclose(file); }
};

[[noreturn]] void refuse(const std::string &path, const std::string &why) {
    throw UsageError("can't play " + path + " (" + why + "): give a little-endian pcap of Ethernet frames (editcap -F nsecpcap makes one)");
}

}  // namespace

std::vector<Player::Packet> Player::read(const std::string &path) {
    std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
    if (!file)
        refuse(path, "it can't be opened");
    uint32_t header[6], record[4];
    if (std::fread(header, sizeof(header), 1, file.get()) != 1 || (header[0] != MICROSECONDS && header[0] != NANOSECONDS))
        refuse(path, "it is none");
    if (header[5] != ETHERNET)
        refuse(path, "its link type is " + std::to_string(header[5]));
    std::vector<Packet> packets;
    uint64_t first = 0;
    while (std::fread(record, sizeof(record), 1, file.get()) == 1) {
        if (record[2] > LONGEST || record[3] > LONGEST)
            refuse(path, "frame " + std::to_string(packets.size()) + " has " + std::to_string(record[3]) + " octets");
        std::vector<uint8_t> content(record[2]);
        if (!content.empty() && std::fread(content.data(), content.size(), 1, file.get()) != 1)
            refuse(path, "it ends within frame " + std::to_string(packets.size()));
        content.resize(std::max(record[2], record[3]));  // What was cut away is zero.
        uint64_t ns = record[0] * 1'000'000'000ull + record[1] * (header[0] == MICROSECONDS ? 1'000ull : 1ull);
        if (packets.empty())
            first = ns;
        packets.push_back({ns > first ? (ns - first) / NS_PER_TICK : 0, make_frame(std::move(content))});
    }
    if (packets.empty())
        refuse(path, "it has no frames");
    return packets;
}

size_t Player::play(const std::string &path, uint64_t start, uint64_t repeats) {
    packets_ = read(path);
    index_ = 0;
    start_ = start;
    left_ = repeats ? repeats : NEVER;
    next();
    return packets_.size();
}

// The next frame goes to the port as soon as its first octet may stand there.
void Player::next() {
    uint64_t sfd = start_ + packets_[index_].tick;
    due_ = sfd < PREAMBLE ? 0 : sfd - (PREAMBLE - 1);
}

void Player::advance(uint64_t tick) {
    while (due_ <= tick) {
        if (out_.waiting() >= AHEAD) {
            due_ = tick + LOOK_TICKS;
            return;
        }
        Delivery delivery{packets_[index_].frame, 0};
        delivery.foreign = true;
        out_.from_wire(std::move(delivery));
        played_++;
        if (++index_ == packets_.size()) {
            index_ = 0;
            start_ = tick + packets_.back().frame->octets.size() + IFG + PREAMBLE;
            if (left_ != NEVER && --left_ == 0) {
                due_ = NEVER;
                return;
            }
        }
        next();
    }
}

}  // namespace liteprobe
