// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// The random generator of the wires: SplitMix64, one state for each purpose, so that every departure can be
// worked out again by sim/models/switch.py. Source: Steele, Lea, Flood, "Fast splittable pseudorandom
// number generators", OOPSLA 2014. Only integers: no libm, no rounding that differs between machines.
#pragma once

#include <cstdint>

namespace liteprobe {

using u128 = unsigned __int128;

class Random {
public:
    // `stream` tells apart the directions and purposes of one seed: 16 * port + purpose.
    Random(uint64_t seed, uint64_t stream) : state_(seed ^ (stream + 1) * 0xD1B54A32D192ED03ull) { next(); }

    uint64_t next() {
        uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return z ^ (z >> 31);
    }

    // 0 to bound - 1.
    uint64_t below(uint64_t bound) { return static_cast<uint64_t>((static_cast<u128>(next()) * bound) >> 64); }

    // True in `ppb` of 10^9 cases; always draws once.
    bool happens(uint64_t ppb) { return below(1'000'000'000) < ppb; }

    // Exponential with mean 1, as a fixed-point number with 64 fractional bits (integer part, fraction).
    // Von Neumann's method: a descending run of uniforms that has odd length accepts its first.
    u128 exponential() {
        for (uint64_t whole = 0;; whole++) {
            uint64_t first = next(), previous = first, length = 1;
            for (uint64_t value = next(); value < previous; value = next()) {
                previous = value;
                length++;
            }
            if (length & 1)
                return (static_cast<u128>(whole) << 64) | first;
        }
    }

private:
    uint64_t state_;
};

}  // namespace liteprobe
