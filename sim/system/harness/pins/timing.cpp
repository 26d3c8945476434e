// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "timing.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "spec.h"
#include "variant.h"

namespace liteprobe {

namespace {

constexpr uint64_t TICK_PS = 1000 * NS_PER_TICK;
constexpr uint64_t FS_PER_PS = 1000;
constexpr uint64_t LONGEST_PS = 1'000'000'000'000'000;  // 1000 s.
constexpr uint64_t PULSE_PS = 10'000'000;               // 10 us, where no width is given.
constexpr unsigned SAMPLES = 4;                         // Of a tick: sim/system/board.py.
constexpr uint8_t ALL_SAMPLES = (1 << SAMPLES) - 1;
constexpr uint64_t RANDOM_STREAM = 16 * TIMING_PORT;

// Nanoseconds with up to three digits after the point, to picoseconds.
uint64_t parse_ps(const std::string &name, const std::string &text) {
    std::string digits = text;
    size_t point = text.find('.');
    size_t places = point == std::string::npos ? 0 : text.size() - point - 1;
    if (point != std::string::npos)
        digits.erase(point, 1);
    if (places > 3 || (point != std::string::npos && places == 0))
        throw UsageError(name + "=" + text + " is not understood: give nanoseconds with up to three decimals, such as 1000000.125");
    digits.append(3 - places, '0');
    return parse_count(name, digits, 0, LONGEST_PS);
}

// A time with its unit, as in a wire's spec.
uint64_t parse_time_ps(const std::string &name, const std::string &text) {
    static const std::pair<const char *, uint64_t> units[] = {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
    size_t end = text.find_first_not_of("0123456789.");
    for (auto &[unit, factor] : units)
        if (end != std::string::npos && text.substr(end) == unit) {
            uint64_t ps = parse_ps(name, text.substr(0, end)) * factor;
            if (ps <= LONGEST_PS)
                return ps;
        }
    throw UsageError("pps option " + name + "=" + text + " is not understood: give a time such as 500ns, 1us, 2.5ms (1000 s at most)");
}

double parse_ppm(const std::string &text) {
    char *end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end || !(value >= -1000 && value <= 1000))
        throw UsageError("pps option ppm=" + text + " is not understood: give a number from -1000 to 1000");
    return value;
}

}  // namespace

std::vector<uint8_t> parse_octets(const std::string &name, const std::string &text) {
    std::vector<uint8_t> octets;
    if (text.empty() || text.size() % 2)
        throw UsageError(name + " wants an even number of hex digits");
    for (size_t i = 0; i < text.size(); i += 2) {
        char *end = nullptr;
        std::string pair = text.substr(i, 2);
        octets.push_back(static_cast<uint8_t>(std::strtoul(pair.c_str(), &end, 16)));
        if (end != pair.c_str() + 2 || !std::isxdigit(static_cast<unsigned char>(pair[0])))
            throw UsageError(name + " wants hex digits, not '" + pair + "'");
    }
    return octets;
}

Timing::Timing(Truth &truth, const Oscillator &oscillator) : truth_(truth), oscillator_(oscillator), serial_(GNSS_BAUD) {}

void Timing::generate(const std::string &spec) {
    uint64_t period = 0, first = 0, width = PULSE_PS, seed = 1;
    double ppm = 0;
    bool has_first = false;
    std::stringstream options(spec);
    std::string option;
    while (std::getline(options, option, '&')) {
        size_t equals = option.find('=');
        std::string name = option.substr(0, equals), value = equals == std::string::npos ? "" : option.substr(equals + 1);
        if (name == "period")
            period = parse_time_ps(name, value);
        else if (name == "first") {
            first = parse_time_ps(name, value);
            has_first = true;
        } else if (name == "width")
            width = parse_time_ps(name, value);
        else if (name == "jitter")
            jitter_ps_ = parse_time_ps(name, value);
        else if (name == "ppm")
            ppm = parse_ppm(value);
        else if (name == "seed")
            seed = parse_count(name, value, 0, ~0ull);
        else
            throw UsageError("pps option '" + name + "' is unknown: choose from first, jitter, period, ppm, seed, width");
    }
    if (width < TICK_PS || period < 2 * (width + jitter_ps_) || (has_first && first < jitter_ps_))
        throw UsageError("pps=" + spec + " makes no pulses: give a period of at least twice width and jitter, a width of at least 8ns");
    period_fs_ = static_cast<uint64_t>(std::llround(static_cast<double>(period * FS_PER_PS) * (1 + ppm * 1e-6)));
    next_fs_ = has_first ? first * FS_PER_PS : period_fs_;
    generated_width_ps_ = width;
    random_ = Random(seed, RANDOM_STREAM);
    refill();
    wake_ = 0;
}

void Timing::refill() {
    uint64_t shift = jitter_ps_ ? random_.below(2 * jitter_ps_ + 1) : 0;
    pulses_.push_back({next_fs_ / FS_PER_PS + shift - jitter_ps_, generated_width_ps_});
    next_fs_ += period_fs_;
}

void Timing::read(const std::string &path) {
    std::ifstream file(path);
    if (!file)
        throw UsageError("can't read " + path + ": give a file with lines such as 'pps 1000000 10000'");
    std::string line;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string command, first, second;
        words >> command >> first >> second;
        if (command.empty() || command[0] == '#')
            continue;
        if (command == "pps")
            add_pulse(first, second, 0);
        else if (command == "gnss")
            add_octets(first, second, 0);
        else
            throw UsageError(path + ": '" + line + "' is not understood: lines begin with pps, gnss or #");
    }
}

void Timing::add_pulse(const std::string &time, const std::string &width, uint64_t tick) {
    uint64_t rise = parse_ps("pps", time), length = width.empty() ? PULSE_PS : parse_ps("pps", width);
    if (period_fs_)
        throw UsageError("pps " + time + " comes beside the pulses of --pps: use one or the other");
    if (length < TICK_PS)
        throw UsageError("pps " + time + " " + width + " is too short: give a width of 8 ns or more");
    if (rise < last_end_ps_ || oscillator_.tick_at(rise) <= tick)
        throw UsageError("pps " + time + " is not after the pulse before, or not in the future (" + std::to_string(oscillator_.ps_of(tick) / 1000) + " ns)");
    last_end_ps_ = rise + length + TICK_PS;  // The pin is low for a tick at least.
    pulses_.push_back({rise, length});
    wake_ = std::min(wake_, oscillator_.tick_at(rise));
}

void Timing::add_octets(const std::string &time, const std::string &hex, uint64_t tick) {
    uint64_t start = std::max(oscillator_.tick_at(parse_ps("gnss", time)), tick);
    if (!octets_.empty() && start < octets_.back().tick)
        throw UsageError("gnss " + time + " is before the octets given last");
    octets_.push_back({start, parse_octets("gnss", hex)});
    wake_ = std::min(wake_, start);
}

std::string Timing::take_octets() {
    static const char *digits = "0123456789abcdef";
    std::string text;
    for (uint8_t octet : received_) {
        text += digits[octet >> 4];
        text += digits[octet & 15];
    }
    received_.clear();
    return text;
}

// What is due in this tick, and when to look again.
void Timing::change(uint64_t tick) {
    pps = samples(tick);
    if (is_high_ && tick >= fall_) {
        is_high_ = false;
        row(risen_, count_++, tick - risen_, IN, risen_ps_);
    }
    if (!is_high_ && !pulses_.empty() && oscillator_.tick_at(pulses_.front().rise_ps) <= tick) {
        rise(tick);
        pps |= samples(tick);
    }
    while (!octets_.empty() && octets_.front().tick <= tick) {
        for (uint8_t octet : octets_.front().octets)
            serial_.send(octet);
        octets_.pop_front();
    }
    if (pps && pps != ALL_SAMPLES)
        wake_ = tick + 1;
    else
        wake_ = is_high_ ? fall_ : pulses_.empty() ? ~0ull : oscillator_.tick_at(pulses_.front().rise_ps);
    if (!octets_.empty())
        wake_ = std::min(wake_, octets_.front().tick);
}

void Timing::rise(uint64_t tick) {
    Pulse pulse = pulses_.front();
    pulses_.pop_front();
    if (period_fs_)
        refill();
    is_high_ = true;
    risen_ = tick;
    risen_ps_ = pulse.rise_ps;
    first_ = oscillator_.part_at(pulse.rise_ps, SAMPLES);
    end_ = std::max(SAMPLES * (tick + 1), oscillator_.part_at(pulse.rise_ps + pulse.width_ps, SAMPLES));
    fall_ = end_ / SAMPLES;
}

// A sample is taken as its part of the tick ends, and sees what came in it.
uint8_t Timing::samples(uint64_t tick) const {
    uint8_t word = 0;
    for (unsigned n = 0; n < SAMPLES; n++)
        word |= (first_ <= SAMPLES * tick + n && SAMPLES * tick + n < end_) << n;
    return word;
}

void Timing::watch(uint64_t tick, uint8_t pps_out) {
    was_out_ = pps_out;
    if (pps_out)
        out_risen_ = tick;
    else
        row(out_risen_, out_count_++, tick - out_risen_, OUT, 0);
}

void Timing::row(uint64_t tick, uint32_t number, uint64_t width, Direction direction, uint64_t time_ps) {
    TruthRow row{};
    row.sfd_tick = tick;
    row.frame = number;
    row.length = static_cast<uint32_t>(width);
    row.port = TIMING_PORT;
    row.direction = direction;
    row.flags = FOREIGN;
    row.sequence = NO_SEQUENCE;
    row.origin_tick = time_ps;
    truth_.row(row);
}

void Timing::close(uint64_t tick) {
    if (is_high_)
        row(risen_, count_, tick - risen_, IN, risen_ps_);
    if (was_out_)
        row(out_risen_, out_count_, tick - out_risen_, OUT, 0);
}

}  // namespace liteprobe
