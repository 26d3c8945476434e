// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "spec.h"

#include <arpa/inet.h>

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

// From nothing to the line's rate.
uint64_t parse_bits(const std::string &name, const std::string &text) {
    static const std::map<std::string, uint64_t> units = {{"", 1}, {"k", 1'000}, {"M", 1'000'000}, {"G", 1'000'000'000}};
    Number number = parse_number(name, text, "a rate up to 1G, such as 50M");
    auto unit = units.find(number.unit);
    auto rate = unit == units.end() ? ~static_cast<unsigned __int128>(0) : static_cast<unsigned __int128>(number.scaled) * unit->second / PPB;
    if (rate > LINE_RATE)
        refuse(name, text, "a rate up to 1G, such as 50M");
    return static_cast<uint64_t>(rate);
}

// vlan:100,cir:50M,cbs:12000,eir:20M,ebs:12000,couple:1
ServiceSpec parse_service(const std::string &name, const std::string &text) {
    static const std::string wanted =
        "words such as vlan:100,cir:50M,cbs:12000,eir:20M,ebs:12000,couple:1 (vlan, dscp, port, or all:0; rates in bits a second, bursts in octets)";
    ServiceSpec service;
    std::stringstream words(text);
    bool matches = false;
    for (std::string word; std::getline(words, word, ',');) {
        size_t colon = word.find(':');
        std::string key = word.substr(0, colon), value = colon == std::string::npos ? "" : word.substr(colon + 1);
        auto match = [&](ServiceSpec::Match kind, uint64_t most) {
            service.match = kind;
            service.value = parse_count(name + ":" + key, value, 0, most);
            matches = true;
        };
        if (key == "all")
            match(ServiceSpec::ALL, 0);
        else if (key == "vlan")
            match(ServiceSpec::VLAN, 4095);
        else if (key == "dscp")
            match(ServiceSpec::DSCP, 63);
        else if (key == "port")
            match(ServiceSpec::UDP_PORT, 65535);
        else if (key == "cir")
            service.cir = parse_bits(name + ":cir", value);
        else if (key == "eir")
            service.eir = parse_bits(name + ":eir", value);
        else if (key == "cbs")
            service.cbs = parse_count(name + ":cbs", value, 0, 100'000'000);
        else if (key == "ebs")
            service.ebs = parse_count(name + ":ebs", value, 0, 100'000'000);
        else if (key == "couple")
            service.couples = parse_count(name + ":couple", value, 0, 1) != 0;
        else
            refuse(name, text, wanted);
    }
    if (!matches)
        refuse(name, text, wanted);
    return service;
}

// An address, and its prefix where `prefix` wants one.
template <size_t N> void parse_address(const std::string &name, const std::string &text, std::array<uint8_t, N> &address, unsigned *prefix) {
    const std::string wanted = N == 4 ? (prefix ? "an address and its prefix, such as 10.0.1.1/24" : "an address such as 10.0.1.2")
                                      : (prefix ? "an address and its prefix, such as fd00:1::1/64" : "an address such as fd00:1::2");
    size_t slash = text.find('/');
    if ((slash != std::string::npos) != (prefix != nullptr) ||
        inet_pton(N == 4 ? AF_INET : AF_INET6, text.substr(0, slash).c_str(), address.data()) != 1)
        refuse(name, text, wanted);
    if (prefix)
        *prefix = static_cast<unsigned>(parse_count(name, text.substr(slash + 1), 1, 8 * N - 1));
}

using Setter = std::function<void(const std::string &, const std::string &)>;

void add_router(std::map<std::string, Setter> &setters, RouterSpec &router) {
    for (unsigned port = 0; port < 2; port++) {
        InterfaceSpec &at = router.interfaces[port];
        const std::string end = std::to_string(port);
        at.ipv4 = {10, 0, static_cast<uint8_t>(port + 1), 1};
        at.ipv6 = {0xfd, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(port + 1), 0, 0, 0, 0, 0, 0, 0, 1};
        setters["ipv4_" + end] = [&at](auto &n, auto &t) { parse_address(n, t, at.ipv4, &at.prefix4); };
        setters["ipv6_" + end] = [&at](auto &n, auto &t) { parse_address(n, t, at.ipv6, &at.prefix6); };
        setters["next_hop4_" + end] = [&at](auto &n, auto &t) { parse_address(n, t, at.next_hop4, nullptr); at.has_next_hop4 = true; };
        setters["next_hop6_" + end] = [&at](auto &n, auto &t) { parse_address(n, t, at.next_hop6, nullptr); at.has_next_hop6 = true; };
        setters["vlan" + end] = [&at](auto &n, auto &t) { at.vlan = static_cast<unsigned>(parse_count(n, t, 0, 4094)); };
    }
    setters["arp_life"] = [&router](auto &n, auto &t) { router.life = parse_ticks(n, t, 0); };
    setters["arp_retry"] = [&router](auto &n, auto &t) { router.retry = parse_ticks(n, t, 1); };
    setters["arp_tries"] = [&router](auto &n, auto &t) { router.tries = parse_count(n, t, 1, 100); };
    setters["arp_hold"] = [&router](auto &n, auto &t) { router.hold = parse_count(n, t, 0, 10'000); };
}

std::vector<std::pair<std::string, Window *>> windows_of(DeviceSpec &device) {
    return {{"pause", &device.pause}, {"reboot", &device.reboot}, {"flap", &device.flap}};
}

void add_device(std::map<std::string, Setter> &setters, WireSpec &spec) {
    DeviceSpec &device = spec.device;
    auto ticks = [](uint64_t &field, uint64_t least) { return [&field, least](auto &n, auto &t) { field = parse_ticks(n, t, least); }; };
    auto count = [](uint64_t &field, uint64_t least, uint64_t most) {
        return [&field, least, most](auto &n, auto &t) { field = parse_count(n, t, least, most); };
    };
    spec.queue = 0;  // As many as the buffer holds, where one is given.
    setters["latency"] = ticks(spec.latency, SHARED_DELAY_TICKS);
    setters["rate"] = [&spec](auto &n, auto &t) { spec.rate = parse_rate(n, t); };
    setters["queue"] = count(spec.queue, 1, 10'000'000);
    setters["buffer"] = count(device.buffer, 64, 1'000'000'000);
    setters["pps"] = [&device](auto &n, auto &t) { device.packets = parse_bits(n, t); };
    setters["fault_size"] = count(device.fault_size, 64, 16'384);
    setters["load"] = [&device](auto &n, auto &t) { device.load = parse_part(n, t, PPB); };
    setters["load_burst"] = count(device.load_burst, 0, 100'000'000);
    for (auto &[name, window] : windows_of(device)) {
        uint64_t least = name == "pause" ? 1 : 12'500;  // Longer than what is on the line.
        setters[name] = ticks(window->length, least);
        setters[name + "_at"] = ticks(window->at, 0);
        setters[name + "_every"] = ticks(window->every, 0);
    }
    setters["flap_port"] = [&device](auto &n, auto &t) { device.flap_port = static_cast<unsigned>(parse_count(n, t, 0, 1)); };
    if (spec.kind == WireKind::ROUTER)
        return add_router(setters, spec.router);
    setters["mode"] = [&device](auto &n, auto &t) {
        if (t != "store" && t != "cut")
            refuse(n, t, "store or cut");
        device.cuts_through = t == "cut";
    };
    setters["does"] = [&device](auto &n, auto &t) {
        static const std::map<std::string, Does> does = {
            {"forward", Does::FORWARD}, {"drop", Does::DROP}, {"return", Does::RETURN}, {"flood", Does::FLOOD}};
        auto found = does.find(t);
        if (found == does.end())
            refuse(n, t, "forward, drop, return or flood");
        device.does = found->second;
    };
    setters["table"] = count(device.table, 1, 10'000'000);
    setters["learn"] = [&device](auto &n, auto &t) { device.learn = parse_bits(n, t); };
    setters["age"] = ticks(device.age, 1);
    setters["largest"] = count(device.largest, 64, 16'384);
    setters["storm"] = [&device](auto &n, auto &t) { device.storm = parse_bits(n, t); };
    setters["copies"] = count(device.copies, 1, 16);
    setters["answers"] = [&device](auto &n, auto &t) {
        if (t != "none" && t != "all")
            refuse(n, t, "none or all");
        device.answers_all = t == "all";
    };
    device.services.reserve(SERVICES);
    for (unsigned number = 0; number < SERVICES; number++)
        setters["service" + std::to_string(number)] = [&device](auto &n, auto &t) {
            device.services.push_back(parse_service(n, t));
        };
}

void check_device(WireSpec &spec) {
    DeviceSpec &device = spec.device;
    if (!spec.queue)
        spec.queue = device.buffer ? 1'000'000'000 : 64;
    for (auto &[name, window] : windows_of(device))
        if (window->every && window->every <= window->length)
            throw UsageError("wire option " + name + "_every leaves no time between two: give more than " + name);
    if (device.cuts_through && (device.buffer || device.fault_size || device.table || device.largest || device.storm || device.does != Does::FORWARD || device.answers_all || !device.services.empty()))
        throw UsageError("wire option mode=cut knows no frame's length in time: leave out buffer (give queue), fault_size, service, table, largest, "
                         "storm, does and answers");
}

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
    if (spec.is_device()) {
        add_device(setters, spec);
        return setters;
    }
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
        {"loopback", WireKind::LOOPBACK}, {"cable", WireKind::CABLE}, {"switch", WireKind::SWITCH},
        {"device", WireKind::DEVICE},     {"router", WireKind::ROUTER}};
    size_t question = text.find('?');
    std::string name = text.substr(0, question);
    auto kind = kinds.find(name);
    if (kind == kinds.end())
        throw UsageError("wire '" + name + "' is unknown: choose loopback, cable, switch, device or router");
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
    if (spec.is_device())
        check_device(spec);
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
