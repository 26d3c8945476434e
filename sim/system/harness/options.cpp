// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "options.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace liteprobe {

namespace {

constexpr uint64_t LATEST_PHASE_PS = 7900;  // Of a pair's lines: before the next tick of the fastest sender.

const char *HELP = R"(usage: liteprobe-sim [--port UDPPORT] [--wire SPEC] [--truth FILE] [--pcap PREFIX] [--free-run]
                     [--pps SPEC] [--receiver FILE] [--flash FILE] [--ppm PPM,PPM,PPM] [--phase PS,PS,PS] [--oscillators PPM,PPM]
                     [--peer FILE] [--network SPEC] [--benchmark TICKS]
  --port UDPPORT     Etherbone on 127.0.0.1 (0, the default, picks one; of a pair the second is the next, or picked)
  --wire SPEC        loopback | cable?delay=1us&... | switch?latency=3us&rate=1G&queue=64&... |
                     device?rate=600M&buffer=64000&... | router?ipv4_0=10.0.1.1/24&... (docs/simulation.md)
  --truth FILE       what was on the pins, rows of 32 octets     --pcap PREFIX   the same as pcap files
  --free-run         let time flow, for clients that don't know lock-step
  --pps SPEC         pulses on the PPS input: period=1ms&first=1ms&width=10us&jitter=5ns&ppm=0&seed=1
  --receiver FILE    a GNSS receiver's doings: lines 'pps <ns> [<width ns>]' and 'gnss <ns> <hex octets>'
                     (both of a pair: given twice for each probe its own, once for both)
  --network SPEC     what datagrams meet, both ways: loss=5%,duplicate=5%,reorder=5%,seed=1
  --flash FILE       what is in the SPI flash at the place of firmware (nothing: it is erased)
  --ppm A,B,C        receive clocks of the ports against the timebase (parts in a million)
  --phase A,B,C      their first edge, later by this (ps); of a pair: A, B add to the delay of the lines to each probe
  --oscillators A,B  two probes, a and b, whose oscillators are fast by so much (ppm), joined port by port
  --peer FILE        liteprobe-sim.so of another build: probe b of a pair is of that one
  --benchmark TICKS  run this many ticks, print the speed and end
)";

const std::vector<std::string> KNOWN = {"--port", "--wire", "--truth", "--pcap", "--pps", "--receiver", "--flash", "--network", "--ppm", "--phase", "--oscillators", "--peer", "--benchmark"};

template <size_t N> std::array<double, N> parse_list(const std::string &name, const std::string &text, double least, double most) {
    std::array<double, N> values{};
    std::stringstream parts(text);
    std::string part;
    unsigned count = 0;
    while (std::getline(parts, part, ',')) {
        char *end = nullptr;
        double value = std::strtod(part.c_str(), &end);
        if (count == N || part.empty() || *end || !(value >= least && value <= most))
            throw UsageError(name + "=" + text + " is not understood: give up to " + std::to_string(N) + " numbers from " +
                             std::to_string(static_cast<int>(least)) + " to " + std::to_string(static_cast<int>(most)) + ", such as 0,100,-100");
        values[count++] = value;
    }
    return values;
}

void set(Options &options, const std::string &name, const std::string &value) {
    if (name == "--port")
        options.port = parse_count(name, value, 0, 65535);
    else if (name == "--wire")
        options.wire = value;
    else if (name == "--truth")
        options.truth = value;
    else if (name == "--pcap")
        options.pcap = value;
    else if (name == "--pps")
        options.pps.push_back(value);
    else if (name == "--receiver")
        options.receivers.push_back(value);
    else if (name == "--network")
        options.network = parse_network(value);
    else if (name == "--peer")
        options.peer = value;
    else if (name == "--flash")
        options.flash = value;
    else if (name == "--benchmark")
        options.benchmark = parse_count(name, value, 1, 1'000'000'000'000);
    else if (name == "--oscillators") {
        options.oscillators = parse_list<2>(name, value, -200, 200);
        options.is_pair = true;
    } else if (name == "--ppm") {
        auto values = parse_list<PORTS>(name, value, -200, 200);
        for (unsigned port = 0; port < PORTS; port++)
            options.clocks[port].ppm = values[port];
    } else {
        auto values = parse_list<PORTS>(name, value, 0, 7999);
        for (unsigned port = 0; port < PORTS; port++)
            options.clocks[port].phase_ps = static_cast<uint64_t>(values[port]);
    }
}

void check(const Options &options) {
    for (auto *given : {&options.pps, &options.receivers})
        if (given->size() > options.probes())
            throw UsageError("--pps and --receiver are given for more probes than there are: leave one out, or ask for a pair (--oscillators)");
    if (!options.is_pair && !options.peer.empty())
        throw UsageError("--peer is the build of probe b, and there is no pair: add --oscillators 0,0");
    if (!options.is_pair)
        return;
    if (WITH_UART)
        throw UsageError("a pair is not reached through a UART: build it with --link own or shared");
    for (auto &clock : options.clocks)
        if (clock.ppm != 0 || clock.phase_ps > LATEST_PHASE_PS)
            throw UsageError("the lines of a pair follow the other probe's oscillator: leave --ppm out, give --phase up to 7900");
}

}  // namespace

Options parse_options(int argc, char **argv) {
    Options options;
    for (int i = 1; i < argc; i++) {
        std::string name = argv[i];
        if (name == "--free-run") {
            options.free_run = true;
            continue;
        }
        if (name == "--help") {
            std::fputs(HELP, stdout);
            std::exit(0);
        }
        if (std::find(KNOWN.begin(), KNOWN.end(), name) == KNOWN.end())
            throw UsageError("option " + name + " is unknown: see --help");
        if (++i == argc)
            throw UsageError("option " + name + " has no value: see --help");
        set(options, name, argv[i]);
    }
    check(options);
    return options;
}

}  // namespace liteprobe
