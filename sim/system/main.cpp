// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// liteprobe-sim: the simulated probe as a process. Contract: docs/design/interfaces.md, "The simulated probe".
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "management.h"
#include "simulator.h"

namespace liteprobe {

namespace {

constexpr uint64_t SERVE_TICKS = 2'500'000;  // 20 ms: a datagram without an answer is given up.
constexpr uint64_t SETTLE_TICKS = 512;       // A write has reached its register, whatever its place in a burst.
constexpr uint64_t FREE_RUN_TICKS = 2'000;   // Between two looks at the socket.
constexpr int IDLE_MS = 1000;

const char *HELP = R"(usage: liteprobe-sim [--port UDPPORT] [--wire SPEC] [--truth FILE] [--pcap PREFIX] [--free-run]
                     [--pps SPEC] [--receiver FILE] [--ppm PPM,PPM,PPM] [--phase PS,PS,PS] [--benchmark TICKS]
  --port UDPPORT     Etherbone on 127.0.0.1 (0, the default, picks one)
  --wire SPEC        loopback | cable?delay=1us&... | switch?latency=3us&rate=1G&queue=64&... (docs/simulation.md)
  --truth FILE       what was on the pins, rows of 32 octets     --pcap PREFIX   the same as pcap files
  --free-run         let time flow, for clients that don't know lock-step
  --pps SPEC         pulses on the PPS input: period=1ms&first=1ms&width=10us&jitter=5ns&ppm=0&seed=1
  --receiver FILE    a GNSS receiver's doings: lines 'pps <ns> [<width ns>]' and 'gnss <ns> <hex octets>'
  --ppm A,B,C        receive clocks of the ports against the timebase (parts in a million)
  --phase A,B,C      their first edge, later by this (ps)
  --benchmark TICKS  run this many ticks, print the speed and end
)";

struct Options {
    uint16_t port = 0;
    std::string wire = "loopback", truth, pcap, pps, receiver;
    bool free_run = false;
    std::array<ReceiveClock, PORTS> clocks{};
    uint64_t benchmark = 0;
};

std::array<double, PORTS> parse_list(const std::string &name, const std::string &text, double least, double most) {
    std::array<double, PORTS> values{};
    std::stringstream parts(text);
    std::string part;
    unsigned count = 0;
    while (std::getline(parts, part, ',')) {
        char *end = nullptr;
        double value = std::strtod(part.c_str(), &end);
        if (count == PORTS || part.empty() || *end || !(value >= least && value <= most))
            throw UsageError(name + "=" + text + " is not understood: give up to 3 numbers from " +
                             std::to_string(static_cast<int>(least)) + " to " + std::to_string(static_cast<int>(most)) + ", such as 0,100,-100");
        values[count++] = value;
    }
    return values;
}

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
        static const std::vector<std::string> known = {"--port", "--wire", "--truth", "--pcap", "--pps", "--receiver", "--ppm", "--phase", "--benchmark"};
        if (std::find(known.begin(), known.end(), name) == known.end())
            throw UsageError("option " + name + " is unknown: see --help");
        if (++i == argc)
            throw UsageError("option " + name + " has no value: see --help");
        std::string value = argv[i];
        if (name == "--port")
            options.port = parse_count(name, value, 0, 65535);
        else if (name == "--wire")
            options.wire = value;
        else if (name == "--truth")
            options.truth = value;
        else if (name == "--pcap")
            options.pcap = value;
        else if (name == "--pps")
            options.pps = value;
        else if (name == "--receiver")
            options.receiver = value;
        else if (name == "--benchmark")
            options.benchmark = parse_count(name, value, 1, 1'000'000'000'000);
        else if (name == "--ppm") {
            auto values = parse_list(name, value, -200, 200);
            for (unsigned port = 0; port < PORTS; port++)
                options.clocks[port].ppm = values[port];
        } else {
            auto values = parse_list(name, value, 0, 7999);
            for (unsigned port = 0; port < PORTS; port++)
                options.clocks[port].phase_ps = static_cast<uint64_t>(values[port]);
        }
    }
    return options;
}

unsigned parse_port(const std::string &text) { return static_cast<unsigned>(parse_count("port", text, 0, PORTS - 1)); }

}  // namespace

class Session {
public:
    explicit Session(const Options &options);
    int run();

private:
    void serve(const Management::Request &request);
    void serve_all();
    void serve_uart();
    void introduce(unsigned client);
    bool read_commands();  // False when it is time to end.
    bool obey(const std::string &line);
    std::string answer(std::istringstream &words, const std::string &command);
    void inject(unsigned port, const std::string &hex);
    void wait(int milliseconds);
    int benchmark();

    Options options_;
    Truth truth_;
    std::unique_ptr<Simulator> simulator_;
    std::unique_ptr<Management> management_;
    std::string input_;
    bool has_input_ = true, has_datagrams_ = false;
};

Session::Session(const Options &options) : options_(options) {
#ifdef LINK_SHARED
    constexpr bool shared = true;
#else
    constexpr bool shared = false;
#endif
    WireSpec spec = parse_wire(options.wire, shared);
    if (!options.truth.empty())
        truth_.open_rows(options.truth);
    if (!options.pcap.empty())
        truth_.open_pcaps(options.pcap, PORTS);
    simulator_ = std::make_unique<Simulator>(spec, options.clocks, truth_);
    if (!options.receiver.empty())
        simulator_->timing().read(options.receiver);
    if (!options.pps.empty())
        simulator_->timing().generate(options.pps);
    if (WITH_UART)
        return;
    management_ = std::make_unique<Management>(PROBE_IP, options.port, simulator_->feeder(MANAGEMENT_PORT));
    simulator_->tap(MANAGEMENT_PORT).management = management_.get();
}

int Session::run() {
    if (options_.benchmark)
        return benchmark();
    std::printf("listening %u\n", management_ ? management_->udp_port() : 0);
    if (WITH_UART)
        std::printf("uart %s\n", simulator_->uart()->path().c_str());
    std::fflush(stdout);
    for (;;) {
        wait(options_.free_run ? 0 : IDLE_MS);
        // A datagram sent before a command is in the socket by now: serve it first.
        serve_all();
        if (!read_commands())
            break;
        if (options_.free_run)
            simulator_->run_until(simulator_->tick() + FREE_RUN_TICKS);
    }
    simulator_->close();
    truth_.close();
    return 0;
}

void Session::wait(int milliseconds) {
    pollfd descriptors[2] = {{management_ ? management_->socket() : simulator_->uart()->descriptor(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    poll(descriptors, has_input_ ? 2 : 1, milliseconds);
}

void Session::serve_all() {
    if (WITH_UART)
        return serve_uart();
    for (auto request = management_->receive(); request.got; request = management_->receive())
        serve(request);
}

// The first datagram of all finds the probe's MAC by ARP, as any station does.
void Session::introduce(unsigned client) {
    uint64_t end = simulator_->tick() + SERVE_TICKS;
    management_->ask_for_probe(client);
    if (!simulator_->run_until(end, [&] { return management_->knows_probe(); }))
        std::fprintf(stderr, "liteprobe-sim: no answer to ARP within 20 ms of simulated time\n");
}

void Session::serve(const Management::Request &request) {
    if (!management_->knows_probe())
        introduce(request.client);
    uint64_t replies = management_->replies(request.client);
    uint64_t end = simulator_->tick() + SERVE_TICKS;
    Feeder &feeder = simulator_->feeder(MANAGEMENT_PORT);
    management_->send(request);
    if (options_.free_run)
        return;
    if (request.wants_reply) {
        simulator_->run_until(end, [&] { return management_->replies(request.client) != replies; });
    } else if (simulator_->run_until(end, [&] { return feeder.client_is_empty(); })) {
        simulator_->run_until(simulator_->tick() + SETTLE_TICKS);
    }
}

void Session::serve_uart() {
    Uart &uart = *simulator_->uart();
    while (uart.receive()) {
        if (options_.free_run)
            continue;
        // A UART is slow: the time of an answer counts from its command.
        uint64_t end = simulator_->tick() + 40 * SERVE_TICKS;
        if (!simulator_->run_until(end, [&] { return uart.is_done(); }))
            uart.forget();
        simulator_->run_until(simulator_->tick() + SETTLE_TICKS);
    }
}

bool Session::read_commands() {
    pollfd descriptor = {STDIN_FILENO, POLLIN, 0};
    if (!has_input_ || poll(&descriptor, 1, 0) <= 0)
        return true;
    serve_all();
    char buffer[65536];
    ssize_t size = read(STDIN_FILENO, buffer, sizeof(buffer));
    if (size <= 0) {
        // Whoever started a lock-step probe holds its stdin; a free-running one may live without.
        has_input_ = false;
        return options_.free_run;
    }
    input_.append(buffer, size);
    for (size_t end; (end = input_.find('\n')) != std::string::npos;) {
        std::string line = input_.substr(0, end);
        input_.erase(0, end + 1);
        if (!obey(line))
            return false;
    }
    return true;
}

bool Session::obey(const std::string &line) {
    std::istringstream words(line);
    std::string command, number;
    words >> command;
    if (command[0] == '#') {  // A number of the client's, which comes back with the answer.
        number = command + " ";
        command.clear();
        words >> command;
    }
    if (command == "quit")
        return false;
    std::string reply;
    try {
        reply = answer(words, command);
    } catch (const UsageError &error) {
        reply = std::string("error ") + error.what();
    }
    std::printf("%s%s\n", number.c_str(), reply.c_str());
    std::fflush(stdout);
    return true;
}

std::string Session::answer(std::istringstream &words, const std::string &command) {
    std::string first, second;
    words >> first >> second;
    if (command == "run") {
        uint64_t ns = parse_count("run", first, 0, 1'000'000'000'000);
        simulator_->run_until(simulator_->tick() + (ns + NS_PER_TICK - 1) / NS_PER_TICK);
        return "ok " + std::to_string(simulator_->time_ns());
    }
    if (command == "time")
        return "ok " + std::to_string(simulator_->time_ns());
    if (command == "sync") {
        truth_.flush();
        return "ok";
    }
    if (command == "link") {
        unsigned port = parse_port(first);
        if (second != "up" && second != "down")
            throw UsageError("link " + first + " " + second + " is not understood: write link <port> up|down");
        simulator_->set_link(port, second == "up");
        return "ok";
    }
    if (command == "inject") {
        inject(parse_port(first), second);
        return "ok";
    }
    if (command == "pps") {
        simulator_->timing().add_pulse(first, second, simulator_->tick());
        return "ok";
    }
    if (command == "gnss") {
        if (first.empty())
            return "ok " + simulator_->timing().take_octets();
        simulator_->timing().add_octets(first, second, simulator_->tick());
        return "ok";
    }
    throw UsageError("command '" + command + "' is unknown: run, time, link, inject, pps, gnss, sync or quit");
}

// The octets go to the pins as they are; only the gap before them is kept.
void Session::inject(unsigned port, const std::string &hex) {
    auto frame = std::make_shared<Frame>();
    frame->octets = parse_octets("inject", hex);
    for (size_t i = 0; i < frame->octets.size() && frame->sfd == NO_SFD; i++)
        if (frame->octets[i] == 0xD5)
            frame->sfd = static_cast<uint32_t>(i);
    frame->complete = true;
    simulator_->feeder(port).from_client(frame);
}

int Session::benchmark() {
    auto start = std::chrono::steady_clock::now();
    uint64_t first = simulator_->tick();
    simulator_->run_until(first + options_.benchmark);
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("%llu ticks in %.3f s: %.0f ticks/s\n", static_cast<unsigned long long>(options_.benchmark), seconds.count(),
                options_.benchmark / seconds.count());
    return 0;
}

}  // namespace liteprobe

int main(int argc, char **argv) {
    std::signal(SIGPIPE, SIG_IGN);
    try {
        liteprobe::Session session(liteprobe::parse_options(argc, argv));
        return session.run();
    } catch (const liteprobe::UsageError &error) {
        std::fprintf(stderr, "liteprobe-sim: %s\n", error.what());
        return 2;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "liteprobe-sim: %s\n", error.what());
        return 1;
    }
}
