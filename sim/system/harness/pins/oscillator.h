// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// When each tick of a probe's timebase begins, in true time. Nominal: every 8 ns from 0 on.
#pragma once

#include <cstdint>
#include <vector>

namespace liteprobe {

constexpr uint64_t TICK_FS = 8'000'000;

class Oscillator {
public:
    explicit Oscillator(double ppm = 0, uint64_t start_ps = 0);

    // Fast by `ppm` from `tick` on, which must not be before an earlier change.
    void set_rate(double ppm, uint64_t tick);
    uint64_t fs_of(uint64_t tick) const;
    uint64_t ps_of(uint64_t tick) const { return fs_of(tick) / 1000; }
    // The last tick that begins at `ps` or before; 0 before the first.
    uint64_t tick_at(uint64_t ps) const { return part_at(ps, 1); }
    // Likewise of parts, so many a tick: part n of tick t is `parts` * t + n.
    uint64_t part_at(uint64_t ps, unsigned parts) const;

private:
    struct Stretch {
        uint64_t tick;
        unsigned __int128 start;  // fs, 32 fractional bits.
        uint64_t period;          // Likewise: a ppb of 8 ns is 8 fs.
    };
    static uint64_t period_of(double ppm);

    std::vector<Stretch> stretches_;
};

}  // namespace liteprobe
