// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// liteprobe-sim: the simulated probe as a process. Contract: docs/design/interfaces.md, "The simulated probe".
#include <dlfcn.h>
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
#include "options.h"

namespace liteprobe {

namespace {

constexpr uint64_t SERVE_TICKS = 2'500'000;  // 20 ms: a datagram without an answer is given up.
constexpr uint64_t SETTLE_TICKS = 512;       // A write has reached its register, whatever its place in a burst.
constexpr uint64_t FREE_RUN_TICKS = 2'000;   // Between two looks at the socket.
constexpr int IDLE_MS = 1000;
const char *NAMES[] = {"a", "b"};            // Of the probes of a pair, in commands.

unsigned parse_port(const std::string &text) { return static_cast<unsigned>(parse_count("port", text, 0, PORTS - 1)); }

uint64_t parse_start(const std::string &ns) { return parse_count("start", ns, 0, 1'000'000'000'000) / NS_PER_TICK; }

double parse_rate(const std::string &text) {
    char *end = nullptr;
    double ppm = std::strtod(text.c_str(), &end);
    if (text.empty() || *end || !(ppm >= -200 && ppm <= 200))
        throw UsageError("rate " + text + " is not understood: give ppm, from -200 to 200");
    return ppm;
}

}  // namespace

class Session {
public:
    explicit Session(const Options &options);
    int run();

private:
    void serve(unsigned probe, const std::vector<Management::Request> &group);
    void settle(unsigned probe);
    void serve_all();
    void serve_uart();
    void introduce(unsigned probe, unsigned client);
    bool read_commands();  // False when it is time to end.
    bool obey(const std::string &line);
    std::string execute(unsigned probe, const std::string &command, std::istringstream &words);
    void inject(Node &node, unsigned port, const std::string &hex);
    size_t play(Node &node, const std::string &port, const std::string &start, const std::string &repeats, const std::string &path);
    std::string seen(const Node &node, uint64_t port) const;
    void start_receivers();
    void fill_flashes();
    void wait(int milliseconds);
    int benchmark();

    Options options_;
    Truth truth_;
    std::unique_ptr<Simulator> simulator_;
    std::vector<std::unique_ptr<Management>> managements_;  // One a probe; none with a UART.
    std::string input_;
    bool has_input_ = true, has_datagrams_ = false;
};

namespace {

// The build in a shared library, which stays loaded.
const Build &load_peer(const std::string &path) {
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    auto *build = library ? static_cast<const Build *>(dlsym(library, "liteprobe_build")) : nullptr;
    if (!build)
        throw UsageError("--peer " + path + " is no simulated probe (" + dlerror() + "): give the liteprobe-sim.so of a build");
    if (!build->is_own_link || !liteprobe_build.is_own_link)
        throw UsageError("probes of two builds are both reached by a port of their own: build them with --link own");
    return *build;
}

std::vector<std::string> pcap_names(const Options &options) {
    std::vector<std::string> names;
    for (unsigned probe = 0; probe < options.probes(); probe++)
        for (unsigned port = 0; port < PORTS; port++)
            names.push_back((options.is_pair ? std::string(NAMES[probe]) + "." : "") + "port" + std::to_string(port));
    return names;
}

}  // namespace

Session::Session(const Options &options) : options_(options) {
    WireSpec spec = parse_wire(options.wire, MANAGEMENT_PORT < TEST_PORTS);
    if (!options.truth.empty())
        truth_.open_rows(options.truth);
    if (!options.pcap.empty())
        truth_.open_pcaps(options.pcap, pcap_names(options));
    if (!options.is_pair)
        simulator_ = std::make_unique<Single>(spec, options.clocks, truth_);
    else if (spec.kind != WireKind::CABLE && spec.kind != WireKind::SWITCH)
        throw UsageError("a pair is joined by a cable or a switch: write --wire cable?delay=1us");
    else
        simulator_ = std::make_unique<Pair>(
            spec, options.peer.empty() ? liteprobe_build : load_peer(options.peer), options.oscillators, std::array<uint64_t, 2>{options.clocks[0].phase_ps, options.clocks[1].phase_ps}, truth_);
    start_receivers();
    fill_flashes();
    if (WITH_UART)
        return;
    for (unsigned probe = 0; probe < simulator_->probes(); probe++) {
        Node &node = simulator_->node(probe);
        uint16_t port = options.port ? options.port + probe : 0;
        managements_.push_back(std::make_unique<Management>(PROBE_IP, port, node.feeders[MANAGEMENT_PORT], options.network));
        node.taps[MANAGEMENT_PORT].management = managements_.back().get();
    }
}

void Session::start_receivers() {
    for (unsigned probe = 0; probe < simulator_->probes(); probe++) {
        Timing &timing = simulator_->node(probe).timing;
        if (!options_.receivers.empty())
            timing.read(options_.receivers[std::min<size_t>(probe, options_.receivers.size() - 1)]);
        if (!options_.pps.empty())
            timing.generate(options_.pps[std::min<size_t>(probe, options_.pps.size() - 1)]);
    }
}

void Session::fill_flashes() {
    for (unsigned probe = 0; probe < simulator_->probes() && !options_.flash.empty(); probe++)
        simulator_->node(probe).flash.load(options_.flash);
}

int Session::run() {
    if (options_.benchmark)
        return benchmark();
    std::string ports;
    for (auto &management : managements_)
        ports += " " + std::to_string(management->udp_port());
    std::printf("listening%s\n", WITH_UART ? " 0" : ports.c_str());
    if (WITH_UART)
        std::printf("uart %s\n", simulator_->node(0).uart->path().c_str());
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
    std::vector<pollfd> descriptors;
    for (auto &management : managements_)
        for (int socket : {management->socket(), management->replay_socket()})
            descriptors.push_back({socket, POLLIN, 0});
    if (WITH_UART)
        descriptors.push_back({simulator_->node(0).uart->descriptor(), POLLIN, 0});
    if (has_input_)
        descriptors.push_back({STDIN_FILENO, POLLIN, 0});
    poll(descriptors.data(), descriptors.size(), milliseconds);
}

void Session::serve_all() {
    if (WITH_UART)
        return serve_uart();
    for (unsigned probe = 0; probe < managements_.size(); probe++) {
        bool is_streaming = false;
        for (auto group = managements_[probe]->receive(); !group.empty(); group = managements_[probe]->receive()) {
            is_streaming |= group.front().is_replay;
            serve(probe, group);
        }
        if (is_streaming && !options_.free_run)
            settle(probe);
    }
}

// What was sent has arrived, and is answered.
void Session::settle(unsigned probe) {
    Feeder &feeder = simulator_->node(probe).feeders[MANAGEMENT_PORT];
    if (simulator_->run_until(simulator_->tick() + SERVE_TICKS, [&] { return feeder.client_is_empty(); }))
        simulator_->run_until(simulator_->tick() + SETTLE_TICKS);
}

// The first datagram of all finds the probe's MAC by ARP, as any station does.
void Session::introduce(unsigned probe, unsigned client) {
    Management &management = *managements_[probe];
    uint64_t end = simulator_->tick() + SERVE_TICKS;
    management.ask_for_probe(client);
    if (!simulator_->run_until(end, [&] { return management.knows_probe(); }))
        std::fprintf(stderr, "liteprobe-sim: no answer to ARP within 20 ms of simulated time\n");
}

void Session::serve(unsigned probe, const std::vector<Management::Request> &group) {
    Management &management = *managements_[probe];
    if (!management.knows_probe())
        introduce(probe, group.front().client);
    uint64_t replies = management.replies();
    uint64_t end = simulator_->tick() + SERVE_TICKS;
    Feeder &feeder = simulator_->node(probe).feeders[MANAGEMENT_PORT];
    bool wants_all = true;
    for (auto &request : group) {
        management.send(request);
        replies += request.wants_reply;
        wants_all &= request.wants_reply;
    }
    if (options_.free_run)
        return;
    if (group.front().is_replay) {  // The next ones follow without a gap, if they are there.
        simulator_->run_until(end, [&] { return feeder.client_waiting() == 0; });
        return;
    }
    bool is_answered = simulator_->run_until(end, [&] { return management.replies() >= replies; });
    if (!wants_all && is_answered)
        settle(probe);
}

void Session::serve_uart() {
    Uart &uart = *simulator_->node(0).uart;
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
    unsigned probe = 0;
    if (command == NAMES[0] || (command == NAMES[1] && simulator_->probes() == 2)) {
        probe = command == NAMES[1];
        words >> command;
    }
    std::string reply;
    try {
        reply = execute(probe, command, words);
    } catch (const UsageError &error) {
        reply = std::string("error ") + error.what();
    }
    std::printf("%s%s\n", number.c_str(), reply.c_str());
    std::fflush(stdout);
    return true;
}

std::string Session::execute(unsigned probe, const std::string &command, std::istringstream &words) {
    Node &node = simulator_->node(probe);
    std::string first, second, third;
    words >> first >> second >> third;
    if (command == "run") {
        uint64_t ns = parse_count("run", first, 0, 1'000'000'000'000);
        simulator_->run_until(simulator_->tick() + (ns + NS_PER_TICK - 1) / NS_PER_TICK);
        return "ok " + std::to_string(simulator_->time_ns());
    }
    if (command == "time")
        return "ok " + std::to_string(simulator_->time_ns());
    if (command == "network" && !managements_.empty())
        return "ok " + managements_[0]->counts();
    if (command == "replay" && !managements_.empty())
        return "ok " + std::to_string(managements_[probe]->replay_port());
    if (command == "sync") {
        truth_.flush();
        return "ok";
    }
    if (command == "link") {
        unsigned port = parse_port(first);
        if (second != "up" && second != "down")
            throw UsageError("link " + first + " " + second + " is not understood: write link <port> up|down");
        node.set_link(port, second == "up");
        return "ok";
    }
    if (command == "inject") {
        inject(node, parse_port(first), second);
        return "ok";
    }
    if (command == "play") {
        std::string path;  // Last, because it may hold spaces.
        std::getline(words >> std::ws, path);
        return "ok " + std::to_string(play(node, first, second, third, path));
    }
    if (command == "station") {
        StationSetup setup = parse_station(third, words);
        setup.start_tick = std::max(node.tick + 1, parse_start(second));
        node.stations[parse_count("port", first, 0, TEST_PORTS - 1)]->put(setup);
        return "ok";
    }
    if (command == "seen")
        return "ok " + seen(node, parse_count("port", first, 0, TEST_PORTS - 1));
    if (command == "pps") {
        node.timing.add_pulse(first, second, node.tick);
        return "ok";
    }
    if (command == "gnss") {
        if (first.empty())
            return "ok " + node.timing.take_octets();
        node.timing.add_octets(first, second, node.tick);
        return "ok";
    }
    if (command == "rate" && options_.is_pair) {
        node.set_rate(parse_rate(first));
        return "ok";
    }
    throw UsageError("command '" + command + "' is unknown: run, time, link, inject, play, pps, station, seen, gnss, network, replay, rate (of a pair), sync or quit");
}

// The octets go to the pins as they are; only the gap before them is kept.
void Session::inject(Node &node, unsigned port, const std::string &hex) {
    auto frame = std::make_shared<Frame>();
    frame->octets = parse_octets("inject", hex);
    for (size_t i = 0; i < frame->octets.size() && frame->sfd == NO_SFD; i++)
        if (frame->octets[i] == 0xD5)
            frame->sfd = static_cast<uint32_t>(i);
    frame->complete = true;
    node.feeders[port].from_client(frame);
}

size_t Session::play(Node &node, const std::string &port, const std::string &start, const std::string &repeats, const std::string &path) {
    uint64_t number = parse_count("port", port, 0, TEST_PORTS - 1);
    uint64_t rounds = parse_count("repeats", repeats, 0, 1'000'000'000);
    return node.players[number].play(path, std::max(node.tick + PREAMBLE, parse_start(start)), rounds);
}

// Of a test port's line: frames played into it, whether more are to come, and what the station there says.
std::string Session::seen(const Node &node, uint64_t port) const {
    return std::to_string(node.players[port].played()) + (node.players[port].due() == NEVER ? " 0 " : " 1 ") + node.stations[port]->seen();
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
