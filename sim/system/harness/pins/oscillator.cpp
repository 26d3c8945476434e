// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "oscillator.h"

#include <cmath>

namespace liteprobe {

namespace {

constexpr int FRACTION = 32;

}  // namespace

uint64_t Oscillator::period_of(double ppm) {
    return static_cast<uint64_t>(std::llround(std::ldexp(static_cast<double>(TICK_FS) / (1 + ppm * 1e-6), FRACTION)));
}

Oscillator::Oscillator(double ppm, uint64_t start_ps) {
    stretches_.push_back({0, static_cast<unsigned __int128>(start_ps) * 1000 << FRACTION, period_of(ppm)});
}

void Oscillator::set_rate(double ppm, uint64_t tick) {
    const Stretch &last = stretches_.back();
    unsigned __int128 start = last.start + static_cast<unsigned __int128>(tick - last.tick) * last.period;
    stretches_.push_back({tick, start, period_of(ppm)});
}

uint64_t Oscillator::fs_of(uint64_t tick) const {
    size_t number = stretches_.size() - 1;  // Mostly the last one is meant.
    while (number && stretches_[number].tick > tick)
        number--;
    const Stretch &found = stretches_[number];
    return static_cast<uint64_t>((found.start + static_cast<unsigned __int128>(tick - found.tick) * found.period) >> FRACTION);
}

uint64_t Oscillator::part_at(uint64_t ps, unsigned parts) const {
    unsigned __int128 time = static_cast<unsigned __int128>(ps) * 1000 << FRACTION;
    size_t number = stretches_.size() - 1;
    while (number && stretches_[number].start > time)
        number--;
    const Stretch &found = stretches_[number];
    return time < found.start ? 0 : parts * found.tick + static_cast<uint64_t>(parts * (time - found.start) / found.period);
}

}  // namespace liteprobe
