// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// What a GNSS receiver does at the probe's pins: pulses at exact times, and octets on the UART. The probe's own PPS
// output is watched here, too. Every pulse is a row of the truth.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "oscillator.h"
#include "random.h"
#include "serial.h"
#include "truth.h"

namespace liteprobe {

constexpr uint8_t TIMING_PORT = 255;  // Of rows in the truth.

// Throws UsageError, naming `name`, for anything but hex digits, two an octet.
std::vector<uint8_t> parse_octets(const std::string &name, const std::string &text);

class Timing {
public:
    Timing(Truth &truth, const Oscillator &oscillator);

    uint8_t pps = 0;      // Samples of the PPS input in this tick, the earliest in bit 0.
    uint8_t gnss_rx = 1;  // Level.

    // Pulses without end: period=1ms&first=1ms&width=10us&jitter=0ns&ppm=0&seed=1. Throws UsageError.
    void generate(const std::string &spec);
    // Lines `pps <ns> [<width ns>]` and `gnss <ns> <hex octets>`, in the order of time. Throws UsageError.
    void read(const std::string &path);
    void add_pulse(const std::string &time, const std::string &width, uint64_t tick);
    void add_octets(const std::string &time, const std::string &hex, uint64_t tick);
    std::string take_octets();  // What the probe has sent to the receiver since the last call, as hex.

    // One tick: takes the levels of the probe's outputs, sets those of its inputs.
    inline void step(uint64_t tick, uint8_t pps_out, uint8_t gnss_tx) {
        if (tick >= wake_)
            change(tick);
        if (!serial_.is_idle())
            gnss_rx = serial_.drive();
        uint8_t octet;
        if (serial_.sample(gnss_tx, octet))
            received_.push_back(octet);
        if (pps_out != was_out_)
            watch(tick, pps_out);
    }
    void reschedule() { wake_ = 0; }  // The oscillator has another rate.
    void close(uint64_t tick);  // Rows of pulses under way.

private:
    struct Pulse {
        uint64_t rise_ps, width_ps;
    };
    struct Octets {
        uint64_t tick;
        std::vector<uint8_t> octets;
    };

    void change(uint64_t tick);
    void rise(uint64_t tick);
    uint8_t samples(uint64_t tick) const;
    void refill();
    void watch(uint64_t tick, uint8_t pps_out);
    void row(uint64_t tick, uint32_t number, uint64_t width, Direction direction, uint64_t time_ps);

    Truth &truth_;
    const Oscillator &oscillator_;
    uint64_t wake_ = ~0ull;

    std::deque<Pulse> pulses_;
    uint64_t last_end_ps_ = 0;  // Of the last pulse that was given.
    bool is_high_ = false;
    uint64_t fall_ = 0, risen_ = 0, risen_ps_ = 0;   // Ticks of the pulse under way, and when it rose.
    uint64_t first_ = 0, end_ = 0;                   // Its samples, counted since tick 0.
    uint32_t count_ = 0;

    uint64_t period_fs_ = 0, next_fs_ = 0, generated_width_ps_ = 0, jitter_ps_ = 0;  // 0: no generator.
    Random random_{1, 0};

    SerialPins serial_;
    std::deque<Octets> octets_;
    std::deque<uint8_t> received_;

    uint8_t was_out_ = 0;
    uint64_t out_risen_ = 0;
    uint32_t out_count_ = 0;
};

}  // namespace liteprobe
