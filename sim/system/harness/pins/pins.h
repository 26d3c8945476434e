// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Both sides of a GMII port, octet by octet: a Tap watches what the probe sends, a Feeder drives what it gets.
#pragma once

#include <cstdint>
#include <deque>

#include "frame.h"
#include "truth.h"

namespace liteprobe {

constexpr uint64_t NEVER = ~0ull;

// Who gets the frames of a Tap.
class Sink {
public:
    virtual ~Sink() = default;
    virtual void began(const FramePtr &) {}  // First octet on the pins (in band: its type is known).
    virtual void ended(const FramePtr &, uint64_t first_idle_tick) = 0;
};

class Tap {
public:
    Tap(unsigned port, Truth &truth) : port_(port), truth_(truth) {}

    Sink *sink = nullptr;        // The wire.
    Sink *management = nullptr;  // In band or own port: frames for the management client.
    bool link_up = true;
    bool rows = true;            // False on a port of its own for management: it is not a test port.

    // `data` stands on the pins in `tick`, with `valid` (TX_EN).
    inline void step(uint64_t tick, bool valid, uint8_t data) {
        if (valid) {
            if (!frame_)
                begin(tick);
            if (frame_->sfd == NO_SFD && data == 0xD5)
                frame_->sfd = static_cast<uint32_t>(frame_->octets.size());
            frame_->octets.push_back(data);
            if (!announced_ && frame_->size() >= 14)
                announce();
        } else if (frame_) {
            end(tick);
        }
    }
    // A link that drops in mid-frame ends the frame on the wire there, for good.
    void set_link(bool is_up);
    // The fate is known: write the row.
    void record(const Frame &frame);
    bool busy() const { return frame_ != nullptr; }

private:
    void begin(uint64_t tick);
    void announce();
    void end(uint64_t tick);
    bool is_management(const Frame &frame) const;

    unsigned port_;
    Truth &truth_;
    FramePtr frame_;
    bool announced_ = false;
    uint32_t count_ = 0;
};

struct Delivery {
    FramePtr frame;
    uint64_t earliest;         // Tick of the first octet of the preamble, at the earliest.
    Fate fate = DELIVERED;
    bool foreign = false;      // Didn't leave the probe: management, injected or cross traffic.
    uint32_t cut = NO_CUT;     // Octets that came before the receiver's link dropped.
    bool cut_through = false;  // On its tick it may follow the frame before with any gap: a cable changes none.
};

class Feeder {
public:
    Feeder(unsigned port, Truth &truth) : port_(port), truth_(truth) {}

    bool link_up = true;
    bool rows = true;
    bool asynchronous = false;  // The receive clock is not the timebase: cut through needs room for drift.
    uint8_t valid = 0;
    uint8_t data = 0;

    void set_link(bool is_up);
    void from_wire(Delivery delivery);
    void from_client(const FramePtr &frame);  // Management or injected: leaves when the line is free.
    size_t waiting() const { return wire_.size(); }  // Frames of the wire that have not begun.
    size_t client_waiting() const { return client_.size(); }  // Of those of clients, likewise.
    bool client_is_empty() const { return client_.empty() && !(current_.frame && current_.foreign); }

    // Sets `valid` and `data` for the clock period that begins in `tick` of the timebase.
    inline void step(uint64_t tick) {
        own_tick_++;
        if (!current_.frame) {
            valid = 0;
            data = 0;
            if (tick >= wake_)
                choose(tick);
        } else {
            emit(tick);
        }
    }
    void close();  // Rows for what has not arrived.

private:
    void emit(uint64_t tick);
    void choose(uint64_t tick);
    bool is_free_for(const Delivery &delivery, uint64_t tick) const;
    // `octets`: those that stood on the pins, of the preamble and of the frame.
    void finish(const Delivery &delivery, uint64_t sfd_tick, Fate fate, size_t octets);
    void update_wake();

    unsigned port_;
    Truth &truth_;
    std::deque<Delivery> wire_, client_;
    Delivery current_{};
    size_t index_ = 0;
    uint64_t sfd_tick_ = 0;
    uint64_t own_tick_ = 0;
    uint64_t idle_since_ = 0;  // In own ticks.
    uint64_t wake_ = NEVER;
    bool client_was_last_ = false;
    uint32_t count_ = 0;
};

}  // namespace liteprobe
