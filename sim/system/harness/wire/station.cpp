// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "station.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "spec.h"

namespace liteprobe {

namespace {

constexpr size_t FRAME_MOST = 1514;
constexpr size_t PROGRESS_WORDS = 6;  // stations/client.h

template <class Call> void look_up(void *handle, const char *name, Call &call) {
    call = reinterpret_cast<Call>(dlsym(handle, name));
    if (!call)
        throw UsageError(std::string("the stack of a station has no ") + name + ": build it anew");
}

}  // namespace

StationSetup parse_station(const std::string &number, std::istringstream &words) {
    std::string seed, is_kept, lengths;
    StationSetup setup;
    words >> seed >> is_kept >> lengths;
    std::getline(words >> std::ws, setup.library);
    setup.number = static_cast<unsigned>(parse_count("number", number, 1, 254));
    setup.seed = parse_count("seed", seed, 1, ~0ull);
    setup.is_kept = parse_count("is_kept", is_kept, 0, 1) != 0;
    std::istringstream each(lengths);
    for (std::string length; std::getline(each, length, ',');)
        setup.lengths.push_back(static_cast<uint32_t>(parse_count("lengths", length, 0, 0xffffffff)));
    return setup;
}

// A library has one stack: each station loads a copy of its own.
Stack::Stack(const std::string &library) {
    char name[] = "/tmp/liteprobe-station-XXXXXX";
    int file = mkstemp(name);
    if (file < 0)
        throw UsageError("a station can't be loaded: /tmp can't be written");
    close(file);
    {
        std::ifstream from(library, std::ios::binary);
        std::ofstream(name, std::ios::binary) << from.rdbuf();
    }
    handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    std::string why = handle_ ? "" : dlerror();
    unlink(name);
    if (!handle_)
        throw UsageError("the stack of a station can't be loaded from " + library + ": " + why);
    look_up(handle_, "station_start", start);
    look_up(handle_, "station_take_in", take_in);
    look_up(handle_, "station_run_timers", run_timers);
    look_up(handle_, "station_next_timer", next_timer);
    look_up(handle_, "station_take_out", take_out);
    look_up(handle_, "station_read_progress", read_progress);
}

Stack::~Stack() {
    if (handle_)
        dlclose(handle_);
}

void Station::put(const StationSetup &setup) {
    stack_ = std::make_unique<Stack>(setup.library);
    setup_ = setup;
    is_started_ = false;
    done_tick_ = 0;
    due_ = setup.start_tick;
}

void Station::advance(uint64_t tick) {
    if (!is_started_) {
        is_started_ = true;
        auto count = static_cast<uint32_t>(setup_.lengths.size());
        if (stack_->start(setup_.number, setup_.seed, setup_.lengths.data(), count, setup_.is_kept))
            throw std::runtime_error("a station doesn't start: give at most 65536 files and a seed that isn't 0");
    } else {
        stack_->run_timers((tick - setup_.start_tick) * NS_PER_TICK);
    }
    go_on(tick);
}

void Station::ended(const FramePtr &frame, uint64_t first_idle_tick) {
    uint32_t size = frame->size();
    bool is_right = size > FCS && fcs_is_right(frame->content(), size);
    if (is_right) {
        frames_++;
        octets_ += size - FCS;
    } else {
        wrong_++;
    }
    if (is_started_ && is_right && size - FCS <= FRAME_MOST) {
        uint64_t tick = first_idle_tick - 1;
        if (stack_->take_in((tick - setup_.start_tick) * NS_PER_TICK, frame->content(), static_cast<uint16_t>(size - FCS)))
            throw std::runtime_error("a station has no memory for a frame");
        go_on(tick);
    }
    behind_.ended(frame, first_idle_tick);
}

// Lets leave what the stack has to send, and sees when it wants to be called.
void Station::go_on(uint64_t tick) {
    for (;;) {
        std::array<uint8_t, FRAME_MOST> octets;
        while (unsigned length = stack_->take_out(octets.data())) {
            Delivery delivery{make_frame({octets.begin(), octets.begin() + length}), tick + 1};
            delivery.foreign = true;
            out_.from_wire(std::move(delivery));
            sent_++;
        }
        uint64_t next = stack_->next_timer();
        due_ = next == NEVER ? NEVER : setup_.start_tick + (next + NS_PER_TICK - 1) / NS_PER_TICK;
        if (due_ > tick)
            break;
        stack_->run_timers((tick - setup_.start_tick) * NS_PER_TICK);
    }
    std::array<uint32_t, PROGRESS_WORDS> progress;
    stack_->read_progress(progress.data());
    if (!done_tick_ && progress[0] == setup_.lengths.size())
        done_tick_ = tick - setup_.start_tick;
}

std::string Station::seen() const {
    std::string text = std::to_string(sent_) + " " + std::to_string(frames_) + " " + std::to_string(octets_) + " " + std::to_string(wrong_);
    if (!stack_)
        return text;
    std::array<uint32_t, PROGRESS_WORDS> progress{};
    if (is_started_)
        stack_->read_progress(progress.data());
    text += " " + std::to_string(done_tick_);
    for (uint32_t word : progress)
        text += " " + std::to_string(word);
    return text;
}

}  // namespace liteprobe
