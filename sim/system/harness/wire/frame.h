// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// A frame as it stood on the pins, and what the bench must know of its content.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace liteprobe {

constexpr uint32_t NO_SFD = 0xffffffff;
constexpr uint32_t NO_CUT = 0xffffffff;
constexpr uint32_t NO_SEQUENCE = 0xffffffff;
constexpr uint32_t IFG = 12;      // Octets, IEEE 802.3 4.4.2.
constexpr uint32_t PREAMBLE = 8;  // With the SFD.
constexpr uint32_t FCS = 4;

// Values of the truth file (docs/design/interfaces.md).
enum Fate : uint8_t { DELIVERED, LOST, QUEUE_DROP, DUPLICATE, CORRUPTED, CUT, IN_FLIGHT, REFUSED, TAKEN };
enum Flags : uint8_t { BAD_FCS = 1, MISSING_SFD = 2, FOREIGN = 4 };

struct Frame {
    std::vector<uint8_t> octets;  // All octets with TX_EN, from the preamble to the FCS.
    uint32_t sfd = NO_SFD;        // Index of the SFD in octets.
    uint64_t first_tick = 0;      // Tick of octets[0], where the frame left the probe.
    bool complete = false;        // No more octets will come.
    bool management = false;      // Belongs to the management client, not to the test.
    bool settled = false;         // A device has decided its fate, maybe before it was complete.
    uint32_t number = 0;          // Of its port and direction.
    Fate fate = DELIVERED;
    uint8_t corrupt_bit = 0;
    uint32_t corrupt_octet = NO_SFD;  // Counted from the octet after the SFD.
    uint32_t cut = NO_CUT;        // Octets that left before the sender's link dropped.

    uint64_t sfd_tick() const { return first_tick + (sfd == NO_SFD ? 0 : sfd); }
    // Octets after the SFD, FCS included.
    uint32_t size() const { return sfd == NO_SFD ? 0 : static_cast<uint32_t>(octets.size()) - sfd - 1; }
    const uint8_t *content() const { return octets.data() + (sfd == NO_SFD ? octets.size() : sfd + 1); }
};

using FramePtr = std::shared_ptr<Frame>;

uint32_t crc32(const uint8_t *data, size_t size);
// True when the last four octets are the FCS of those before.
bool fcs_is_right(const uint8_t *content, size_t size);
// Sequence of a probe frame, else NO_SEQUENCE. `content` starts at the destination MAC.
uint32_t probe_sequence(const uint8_t *content, size_t size);
// A whole frame for the pins: preamble, SFD, content padded to 60 octets, FCS.
FramePtr make_frame(std::vector<uint8_t> content);

}  // namespace liteprobe
