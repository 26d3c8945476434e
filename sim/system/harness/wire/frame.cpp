// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "frame.h"

#include <array>

#include "packets.h"

namespace liteprobe {

namespace {

std::array<uint32_t, 256> make_crc_table() {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = (value >> 1) ^ (value & 1 ? 0xEDB88320u : 0);
        table[i] = value;
    }
    return table;
}

}  // namespace

uint32_t crc32(const uint8_t *data, size_t size) {
    static const auto table = make_crc_table();
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; i++)
        crc = (crc >> 8) ^ table[(crc ^ data[i]) & 0xff];
    return ~crc;
}

bool fcs_is_right(const uint8_t *content, size_t size) {
    if (size < FCS)
        return false;
    const uint8_t *fcs = content + size - FCS;
    uint32_t told = fcs[0] | fcs[1] << 8 | fcs[2] << 16 | static_cast<uint32_t>(fcs[3]) << 24;
    return crc32(content, size - FCS) == told;
}

uint32_t probe_sequence(const uint8_t *content, size_t size) {
    constexpr uint32_t SIGNATURE = 0x4C50524F;
    size_t at = 12;
    for (int tags = 0; tags < 2 && at + 2 <= size; tags++) {
        uint32_t type = get_number(content + at, 2);
        if (type != 0x8100 && type != 0x88A8)
            break;
        at += 4;
    }
    if (at + 2 > size)
        return NO_SEQUENCE;
    uint32_t type = get_number(content + at, 2);
    size_t payload = type == 0x0800 ? at + 30 : type == 0x86DD ? at + 50 : size;
    if (payload + 10 > size || get_number(content + payload, 4) != SIGNATURE)
        return NO_SEQUENCE;
    return get_number(content + payload + 6, 4);
}

FramePtr make_frame(std::vector<uint8_t> content) {
    if (content.size() < 60)
        content.resize(60, 0);
    uint32_t fcs = crc32(content.data(), content.size());
    auto frame = std::make_shared<Frame>();
    frame->octets.assign(PREAMBLE - 1, 0x55);
    frame->octets.push_back(0xD5);
    frame->octets.insert(frame->octets.end(), content.begin(), content.end());
    for (int i = 0; i < 4; i++)
        frame->octets.push_back(fcs >> (8 * i) & 0xff);
    frame->sfd = PREAMBLE - 1;
    frame->complete = true;
    return frame;
}

}  // namespace liteprobe
