// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Plays captures into a port: frames at the times of a pcap file, or as soon after them as the line is free.
#pragma once

#include <string>
#include <vector>

#include "pins.h"

namespace liteprobe {

class Player {
public:
    explicit Player(Feeder &out) : out_(out) {}

    // Plays `path` from `start` on, `repeats` times (0: without end); the SFD of the first frame is `start`, at the earliest.
    // What it played before is forgotten. Returns the frames of the file. Throws UsageError.
    size_t play(const std::string &path, uint64_t start, uint64_t repeats);
    uint64_t due() const { return due_; }
    uint64_t played() const { return played_; }  // Frames, of all files.
    void advance(uint64_t tick);

private:
    struct Packet {
        uint64_t tick;  // Of its SFD, after that of the first.
        FramePtr frame;
    };

    static std::vector<Packet> read(const std::string &path);
    void next();

    Feeder &out_;
    std::vector<Packet> packets_;
    size_t index_ = 0;
    uint64_t start_ = 0, left_ = 0;  // Rounds still to play; NEVER: without end.
    uint64_t due_ = NEVER;
    uint64_t played_ = 0;
};

}  // namespace liteprobe
