// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "spec.h"

#include <cctype>
#include <functional>
#include <map>
#include <sstream>

namespace liteprobe {

namespace {

struct Number {
    uint64_t scaled;  // Value * 10^9, exact.
    std::string unit;
};

[[noreturn]] void refuse(const std::string &name, const std::string &text, const std::string &wanted) {
    throw UsageError("wire option " + name + "=" + text + " is not understood: give " + wanted);
}

// Reads digits, at most nine of them after the point, then a unit.
Number parse_number(const std::string &name, const std::string &text, const std::string &wanted) {
    uint64_t whole = 0, fraction = 0, place = PPB;
    size_t at = 0, digits = 0;
    for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])); at++, digits++) {
        if (whole > 1'000'000'000)
            refuse(name, text, wanted);
        whole = whole * 10 + (text[at] - '0');
    }
    if (at < text.size() && text[at] == '.')
        for (at++; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])); at++, digits++) {
            if (place == 1)
                refuse(name, text, wanted);
            place /= 10;
            fraction += place * (text[at] - '0');
        }
    if (!digits || whole > 10'000'000'000)
        refuse(name, text, wanted);
    return {whole * PPB + fraction, text.substr(at)};
}

// Nearest tick, half a tick upwards.
uint64_t parse_ticks(const std::string &name, const std::string &text, uint64_t least) {
    static const std::string wanted = "a time such as 8ns, 1us, 2.5ms (10 s at most)";
    static const std::map<std::string, uint64_t> units = {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
    Number number = parse_number(name, text, wanted);
    auto unit = units.find(number.unit);
    if (unit == units.end())
        refuse(name, text, wanted);
    auto ns = static_cast<unsigned __int128>(number.scaled) * unit->second;  // 10^-9 ns
    auto ticks = (ns + NS_PER_TICK * PPB / 2) / (NS_PER_TICK * PPB);
    if (ticks > 1'250'000'000)
        refuse(name, text, wanted);
    if (ticks < least)
        refuse(name, text, "at least " + std::to_string(least * NS_PER_TICK) + "ns");
    return static_cast<uint64_t>(ticks);
}

uint64_t parse_rate(const std::string &name, const std::string &text) {
    static const std::string wanted = "a rate from 1M to 1G, such as 100M";
    static const std::map<std::string, uint64_t> units = {{"", 1}, {"k", 1'000}, {"M", 1'000'000}, {"G", 1'000'000'000}};
    Number number = parse_number(name, text, wanted);
    auto unit = units.find(number.unit);
    if (unit == units.end())
        refuse(name, text, wanted);
    auto rate = static_cast<unsigned __int128>(number.scaled) * unit->second / PPB;
    if (rate < 1'000'000 || rate > LINE_RATE)
        refuse(name, text, wanted);
    return static_cast<uint64_t>(rate);
}

// A part of one, as 0.01 or 1%, in ppb.
uint64_t parse_part(const std::string &name, const std::string &text, uint64_t most) {
    const std::string wanted = most == PPB ? "a part of one, 0 to 1 (or 0% to 100%)" : "a load from 0 to 4 (or 0% to 400%)";
    Number number = parse_number(name, text, wanted);
    if (number.unit != "" && number.unit != "%")
        refuse(name, text, wanted);
    uint64_t ppb = number.unit == "%" ? number.scaled / 100 : number.scaled;
    if (ppb > most)
        refuse(name, text, wanted);
    return ppb;
}

bool parse_model(const std::string &name, const std::string &text) {
    if (text != "poisson" && text != "cbr")
        refuse(name, text, "poisson or cbr");
    return text == "poisson";
}

using Setter = std::function<void(const std::string &, const std::string &)>;

std::map<std::string, Setter> setters_of(WireSpec &spec, bool shared) {
    auto part = [](uint64_t &field) { return [&field](auto &n, auto &t) { field = parse_part(n, t, PPB); }; };
    auto load = [](uint64_t &field) { return [&field](auto &n, auto &t) { field = parse_part(n, t, 4 * PPB); }; };
    auto ticks = [](uint64_t &field, uint64_t least) { return [&field, least](auto &n, auto &t) { field = parse_ticks(n, t, least); }; };
    auto count = [](uint64_t &field, uint64_t least, uint64_t most) {
        return [&field, least, most](auto &n, auto &t) { field = parse_count(n, t, least, most); };
    };
    std::map<std::string, Setter> setters = {
        {"loss", part(spec.loss)},
        {"corrupt", part(spec.corrupt)},
        {"cut_after", count(spec.cut_after, 0, 0xffffffff)},
        {"seed", count(spec.seed, 0, 0xffffffffffffffff)},
    };
    if (spec.kind != WireKind::SWITCH) {
        setters["delay"] = ticks(spec.delay, shared ? SHARED_DELAY_TICKS : 1);
        return setters;
    }
    setters["latency"] = ticks(spec.latency, 1);
    setters["latency2"] = ticks(spec.latency2, 0);
    setters["rate"] = [&spec](auto &n, auto &t) { spec.rate = parse_rate(n, t); };
    setters["queue"] = count(spec.queue, 1, 1'000'000);
    setters["duplicate"] = part(spec.duplicate);
    setters["reorder"] = part(spec.reorder);
    setters["reorder_by"] = ticks(spec.reorder_by, 1);
    setters["cross"] = load(spec.cross);
    setters["cross2"] = load(spec.cross2);
    setters["cross_size"] = count(spec.cross_size, 60, 9014);
    setters["cross_model"] = [&spec](auto &n, auto &t) { spec.cross_poisson = parse_model(n, t); };
    setters["cross_deliver"] = [&spec](auto &n, auto &t) { spec.cross_deliver = parse_count(n, t, 0, 1) != 0; };
    return setters;
}

}  // namespace

uint64_t parse_count(const std::string &name, const std::string &text, uint64_t least, uint64_t most) {
    unsigned __int128 value = 0;
    bool right = !text.empty() && text.size() <= 20;
    for (char c : text) {
        right = right && std::isdigit(static_cast<unsigned char>(c));
        value = value * 10 + (c - '0');
    }
    if (!right || value < least || value > most)
        throw UsageError("option " + name + "=" + text + " is not understood: give a whole number from " +
                         std::to_string(least) + " to " + std::to_string(most));
    return static_cast<uint64_t>(value);
}

WireSpec parse_wire(const std::string &text, bool shared) {
    static const std::map<std::string, WireKind> kinds = {
        {"loopback", WireKind::LOOPBACK}, {"cable", WireKind::CABLE}, {"switch", WireKind::SWITCH}};
    size_t question = text.find('?');
    std::string name = text.substr(0, question);
    auto kind = kinds.find(name);
    if (kind == kinds.end())
        throw UsageError("wire '" + name + "' is unknown: choose loopback, cable or switch");
    WireSpec spec;
    spec.kind = kind->second;
    if (shared)
        spec.delay = SHARED_DELAY_TICKS;
    auto setters = setters_of(spec, shared);
    std::string rest = question == std::string::npos ? "" : text.substr(question + 1);
    while (!rest.empty()) {
        size_t end = rest.find('&');
        std::string option = rest.substr(0, end);
        rest = end == std::string::npos ? "" : rest.substr(end + 1);
        size_t equals = option.find('=');
        auto setter = setters.find(option.substr(0, equals));
        if (setter == setters.end()) {
            std::string known;
            for (auto &entry : setters)
                known += (known.empty() ? "" : ", ") + entry.first;
            throw UsageError("wire option '" + option.substr(0, equals) + "' is unknown for " + name + ": choose from " + known);
        }
        if (equals == std::string::npos)
            throw UsageError("wire option '" + option + "' has no value: write " + option + "=...");
        setter->second(setter->first, option.substr(equals + 1));
    }
    return spec;
}

NetworkSpec parse_network(const std::string &text) {
    NetworkSpec spec;
    std::stringstream options(text);
    for (std::string option; std::getline(options, option, ',');) {
        size_t equals = option.find('=');
        std::string name = option.substr(0, equals), value = equals == std::string::npos ? "" : option.substr(equals + 1);
        if (name == "loss")
            spec.loss = parse_part(name, value, PPB);
        else if (name == "duplicate")
            spec.duplicate = parse_part(name, value, PPB);
        else if (name == "reorder")
            spec.reorder = parse_part(name, value, PPB);
        else if (name == "seed")
            spec.seed = parse_count(name, value, 0, ~0ull);
        else
            throw UsageError("network option '" + name + "' is unknown: choose from duplicate, loss, reorder, seed");
    }
    return spec;
}

}  // namespace liteprobe
