// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// A device with two ports whose throughput, buffer, delay and faults are known exactly: docs/simulation.md, "Devices".
// sim/models/device.py says the same in plain Python, written apart; the tests hold them against each other.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "addresses.h"
#include "packets.h"
#include "policer.h"
#include "wire.h"

namespace liteprobe {

constexpr unsigned DEVICE_PORTS = 2;

// What leaves a port: a queue, a server that paces, the line. Times inside are in parts of a tick, so any rate is exact.
class Output {
public:
    enum class Outcome { SENT, FULL, REBOOTED };
    struct Service {
        Outcome outcome;
        uint64_t first_tick;  // Of its first octet.
    };

    Output(const WireSpec &spec, Feeder &feeder);
    // A frame that reaches the queue at `arrival`; calls are in the order of time.
    Service serve(uint64_t arrival, const FramePtr &frame);
    Feeder &feeder;

private:
    struct Waiting {
        u128 until;
        uint64_t octets;
    };

    u128 first_free() const;

    const WireSpec &spec_;
    uint64_t rate_numerator_, rate_denominator_, packet_numerator_, packet_denominator_;
    u128 parts_;  // Of a tick.
    std::deque<Waiting> waiting_;
    uint64_t octets_ = 0;  // That wait.
    u128 last_start_ = 0;
    FramePtr last_;
    uint64_t reboots_ = 0;
};

class Device {
public:
    using SetLink = std::function<void(unsigned port, bool is_up)>;

    Device(const WireSpec &spec, SetLink set_link);
    virtual ~Device() = default;
    void attach(unsigned port, Tap &in, Feeder &out);  // Frames come by `in`; those for the other port leave by `out`.
    bool cuts_through() const { return spec_.device.cuts_through; }
    // A frame whose fate chance has decided: at its end, or at its beginning where it is cut through.
    void take(unsigned port, const FramePtr &frame, uint64_t tick);
    void settle(unsigned port, const FramePtr &frame, Fate fate);
    void record(unsigned port, const FramePtr &frame);  // It is settled, and complete.
    uint64_t due() const { return due_; }
    virtual void advance(uint64_t tick);
    virtual void close();

protected:
    // A frame that is whole and sound, and that no fault has taken.
    virtual void forward(unsigned port, const FramePtr &frame, uint64_t tick);
    virtual void rebooted() { addresses_.clear(); }
    virtual uint64_t own_due() const { return NEVER; }

    // `frame` reaches the queue of `port` `latency` ticks after `tick`; `from`: whose fate this decides, NOBODY: a copy, or
    // a frame of the device's own.
    static constexpr unsigned NOBODY = DEVICE_PORTS;
    void send(unsigned port, const FramePtr &frame, uint64_t tick, unsigned from, FramePtr original = nullptr);
    void send_own(unsigned port, Octets content, uint64_t tick);
    void update_due();
    static MacAddress mac(unsigned port) { return {0x02, 0, 0, 0, 0x44, static_cast<uint8_t>(port)}; }

    const WireSpec spec_;

private:
    struct Arrival {
        uint64_t tick;
        uint64_t order;  // Ties: first come, first served.
        unsigned port, from;
        FramePtr frame, original;  // As it leaves, and as it came.
        bool is_own;
        bool operator>(const Arrival &other) const { return tick != other.tick ? tick > other.tick : order > other.order; }
    };

    bool is_storm(unsigned port, uint64_t tick);
    bool is_above_load(unsigned port, const Frame &frame, uint64_t tick);
    void leave(const Arrival &arrival);
    void flap(uint64_t tick);
    void answer_for_others(unsigned port, const Frame &frame, uint64_t tick);

    SetLink set_link_;
    Tap *taps_[DEVICE_PORTS] = {};
    std::unique_ptr<Output> outputs_[DEVICE_PORTS];
    std::vector<Policer> policers_;
    AddressTable addresses_;
    u128 load_full_[DEVICE_PORTS] = {}, storm_free_[DEVICE_PORTS] = {};
    std::priority_queue<Arrival, std::vector<Arrival>, std::greater<Arrival>> arrivals_;
    uint64_t order_ = 0, reboots_ = 0;
    bool is_flapped_ = false;
    uint64_t flap_due_ = NEVER;
    uint64_t due_ = NEVER;
};

// What comes into one port of a device. The path of port 0 lets the device have its time.
class DevicePath : public Path {
public:
    DevicePath(const WireSpec &spec, unsigned port, Tap &in, Feeder &out, std::shared_ptr<Device> device);
    uint64_t due() const override { return port_ ? NEVER : device_->due(); }
    void began(const FramePtr &frame) override;
    void ended(const FramePtr &frame, uint64_t tick) override;
    void advance(uint64_t tick) override { device_->advance(tick); }
    void close() override;

private:
    void take(const FramePtr &frame, uint64_t tick, uint32_t corruptible);

    unsigned port_;
    std::shared_ptr<Device> device_;
};

std::shared_ptr<Device> make_device(const WireSpec &spec, Device::SetLink set_link);

}  // namespace liteprobe
