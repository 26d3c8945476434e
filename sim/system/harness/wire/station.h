// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// What sits at the other end of a test port's line: it counts what the probe sends there and, where it is given a TCP/IP stack
// (a library, as sim/drivers/emulator/stations builds it), takes part. The stack's clock is the simulation's.
// sim/drivers/emulator/stations/network.py keeps the same time in plain Python; the tests hold both against each other.
#pragma once

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "pins.h"

namespace liteprobe {

// The stack of one station; the calls are those of stations/station.c.
class Stack {
public:
    // Throws UsageError where the library can't be loaded.
    explicit Stack(const std::string &library);
    ~Stack();
    Stack(const Stack &) = delete;
    Stack &operator=(const Stack &) = delete;

    int (*start)(unsigned number, uint64_t seed, const uint32_t *lengths, uint32_t count, int is_kept);
    int (*take_in)(uint64_t time_ns, const uint8_t *octets, uint16_t length);
    void (*run_timers)(uint64_t time_ns);
    uint64_t (*next_timer)();
    unsigned (*take_out)(uint8_t *octets);
    void (*read_progress)(uint32_t *words);

private:
    void *handle_ = nullptr;
};

struct StationSetup {
    uint64_t start_tick = 0;
    unsigned number = 1;  // 2 serves, 1 fetches.
    uint64_t seed = 1;
    bool is_kept = false;
    std::vector<uint32_t> lengths;  // Of the files.
    std::string library;
};

// Reads what comes behind the number, `seed is_kept lengths library`: the library is last, because it may hold spaces.
// Throws UsageError.
StationSetup parse_station(const std::string &number, std::istringstream &words);

class Station : public Sink {
public:
    // `out`: into the probe; `behind`: where all that comes goes on to.
    Station(Feeder &out, Sink &behind) : out_(out), behind_(behind) {}

    // Puts a stack here, in the place of the one that there was. Its tick 0 is `start_tick`. Throws UsageError.
    void put(const StationSetup &setup);
    uint64_t due() const { return due_; }
    void advance(uint64_t tick);
    void began(const FramePtr &frame) override { behind_.began(frame); }
    // A frame whose last octet came at tick T: what is answered has its first octet on the pins at T + 1, its SFD at T + PREAMBLE.
    void ended(const FramePtr &frame, uint64_t first_idle_tick) override;
    // Frames that it sent; frames, octets and wrong frames that came; of a stack the tick, counted from its start, at which it had
    // all files (0: it hasn't), and its progress.
    std::string seen() const;

private:
    void go_on(uint64_t tick);

    Feeder &out_;
    Sink &behind_;
    std::unique_ptr<Stack> stack_;
    StationSetup setup_;
    bool is_started_ = false;
    uint64_t due_ = NEVER;
    uint64_t done_tick_ = 0;
    uint64_t sent_ = 0, frames_ = 0, octets_ = 0, wrong_ = 0;
};

}  // namespace liteprobe
