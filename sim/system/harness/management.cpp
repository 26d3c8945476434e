// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "management.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "packets.h"
#include "spec.h"

namespace liteprobe {

namespace {

constexpr uint16_t ETHERBONE_PORT = 1234, REPLAY_PORT = 1236;
constexpr uint16_t ARP_REQUEST = 1, ARP_REPLY = 2;
constexpr size_t LARGEST_PAYLOAD = 1472;
constexpr uint32_t BATCH_MAGIC = 0x4c504254;  // "LPBT"
constexpr unsigned MOST_CLIENTS = 64;
constexpr Mac BROADCAST = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
constexpr uint8_t CLIENT_PREFIX[5] = {0x02, 'L', 'P', 0, 0};  // Locally administered.

Mac mac_of(unsigned client) { return {0x02, 'L', 'P', 0, 0, static_cast<uint8_t>(client)}; }

void put(std::vector<uint8_t> &out, uint64_t value, int octets) {
    for (int i = octets - 1; i >= 0; i--)
        out.push_back(value >> (8 * i) & 0xff);
}

void put(std::vector<uint8_t> &out, const Mac &mac) { out.insert(out.end(), mac.begin(), mac.end()); }

// Etherbone: only a record that reads, and whose counts agree with its length, is answered. Source: CERN "Etherbone 1.0".
bool wants_reply(const std::vector<uint8_t> &payload) {
    constexpr size_t HEADERS = 12;
    if (payload.size() < HEADERS || get_number(payload.data(), 4) != 0x4e6f1044)
        return false;
    size_t writes = payload[10], reads = payload[11];
    return reads && payload.size() == HEADERS + 4 * (writes + (writes != 0) + reads + 1);
}

}  // namespace

bool is_for_client(const uint8_t *content, size_t size) {
    if (size < 14)
        return false;
    if (std::equal(BROADCAST.begin(), BROADCAST.end(), content))
        return get_number(content + 12, 2) == TYPE_ARP;
    return std::memcmp(content, CLIENT_PREFIX, sizeof(CLIENT_PREFIX)) == 0;
}

Management::Management(uint32_t probe_ip, uint16_t udp_port, Feeder &feeder, const NetworkSpec &network)
    : probe_ip_(probe_ip), feeder_(feeder), etherbone_(listen(udp_port)), replay_(listen(0)), to_probe_(network, 0), to_host_(network, 1) {}

// Port 0 picks one.
Management::Listener Management::listen(uint16_t udp_port) {
    int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(udp_port);
    socklen_t size = sizeof(address);
    if (socket < 0 || bind(socket, reinterpret_cast<sockaddr *>(&address), size) ||
        getsockname(socket, reinterpret_cast<sockaddr *>(&address), &size))
        throw UsageError("can't listen on UDP port " + std::to_string(udp_port) + " of 127.0.0.1 (" + std::strerror(errno) +
                         "): give another one, or 0 to pick one");
    return {socket, ntohs(address.sin_port)};
}

Management::~Management() {
    for (int socket : {etherbone_.socket, replay_.socket})
        if (socket >= 0)
            ::close(socket);
}

// A client keeps its station; beyond MOST_CLIENTS the one that came first loses its own.
unsigned Management::client_of(const sockaddr_in &address) {
    for (unsigned i = 0; i < clients_.size(); i++)
        if (clients_[i].address.sin_port == address.sin_port && clients_[i].address.sin_addr.s_addr == address.sin_addr.s_addr)
            return i;
    if (clients_.size() < MOST_CLIENTS) {
        clients_.push_back({address});
        return static_cast<unsigned>(clients_.size()) - 1;
    }
    unsigned client = oldest_++ % MOST_CLIENTS;
    clients_[client].address = address;
    return client;
}

// Stations count up from the probe's address, inside its /24: 50 + 1 + client, never 0 or 255.
static uint32_t ip_of(uint32_t probe_ip, unsigned client) {
    uint32_t host = ((probe_ip & 0xff) + client) % 254 + 1;
    return (probe_ip & 0xffffff00) | host;
}

std::vector<Management::Request> Management::receive() {
    while (arrived_.empty())
        if (!read() && !read_replay())
            return {};
    std::vector<Request> group;
    while (group.size() < BATCH && !arrived_.empty() && arrived_.front().is_replay) {
        group.push_back(std::move(arrived_.front()));
        arrived_.pop_front();
        if (arrived_.empty())
            read_replay();
    }
    if (!group.empty())
        return group;
    do {
        group.push_back(std::move(arrived_.front()));
        arrived_.pop_front();
    } while (group.back().is_in_batch && group.size() < BATCH && !arrived_.empty() && arrived_.front().is_in_batch);
    return group;
}

// Takes the next datagram, and those that it brings through the network. A batch is "LPBT", then the length (16 bits) and the
// octets of each datagram: it comes at once, so what is served together doesn't depend on who is faster.
bool Management::read() {
    std::vector<uint8_t> octets(65536);
    sockaddr_in from{};
    socklen_t from_size = sizeof(from);
    ssize_t size = recvfrom(etherbone_.socket, octets.data(), octets.size(), 0, reinterpret_cast<sockaddr *>(&from), &from_size);
    if (size < 0)
        return false;
    octets.resize(size);
    unsigned client = client_of(from);
    auto pass = [&](size_t first, size_t last, bool is_in_batch) {
        std::vector<uint8_t> payload(octets.begin() + first, octets.begin() + last);
        bool wants = wants_reply(payload);
        to_probe_.pass({client, is_in_batch, wants, false, std::move(payload)}, arrived_);
    };
    if (octets.size() < 4 || get_number(octets.data(), 4) != BATCH_MAGIC) {
        pass(0, octets.size(), false);
        return true;
    }
    for (size_t at = 4, next; at + 2 <= octets.size(); at = next) {
        next = std::min(octets.size(), at + 2 + get_number(octets.data() + at, 2));
        pass(at + 2, next, true);
    }
    return true;
}

// Takes the next datagram for REPLAY_PORT, if there is one.
bool Management::read_replay() {
    std::vector<uint8_t> octets(65536);
    sockaddr_in from{};
    socklen_t from_size = sizeof(from);
    ssize_t size = recvfrom(replay_.socket, octets.data(), octets.size(), 0, reinterpret_cast<sockaddr *>(&from), &from_size);
    if (size < 0)
        return false;
    octets.resize(size);
    to_probe_.pass({client_of(from), false, false, true, std::move(octets)}, arrived_);
    return true;
}

void Management::send_arp(uint16_t operation, unsigned client, const Mac &to, const Mac &target, uint32_t target_ip) {
    std::vector<uint8_t> out;
    put(out, to);
    put(out, mac_of(client));
    put(out, TYPE_ARP, 2);
    put(out, 0x0001'0800'0604ull << 16 | operation, 8);  // Ethernet, IPv4, 6 and 4 octets (RFC 826).
    put(out, mac_of(client));
    put(out, ip_of(probe_ip_, client), 4);
    put(out, target);
    put(out, target_ip, 4);
    feeder_.from_client(make_frame(std::move(out)));
}

void Management::ask_for_probe(unsigned client) { send_arp(ARP_REQUEST, client, BROADCAST, Mac{}, probe_ip_); }

void Management::send(const Request &request) {
    if (request.payload.size() > LARGEST_PAYLOAD) {
        std::fprintf(stderr, "liteprobe-sim: a datagram of %zu octets doesn't fit a frame and is dropped\n", request.payload.size());
        return;
    }
    std::vector<uint8_t> out;
    put(out, probe_mac_);
    put(out, mac_of(request.client));
    put(out, TYPE_IPV4, 2);
    size_t udp_size = 8 + request.payload.size();
    put(out, 0x4500, 2);
    put(out, 20 + udp_size, 2);
    put(out, 0, 4);
    put(out, 64 << 8 | PROTOCOL_UDP, 2);
    put(out, 0, 2);
    put(out, ip_of(probe_ip_, request.client), 4);
    put(out, probe_ip_, 4);
    uint16_t sum = checksum(out.data() + 14, 20);
    out[24] = sum >> 8;
    out[25] = sum & 0xff;
    // Who streams has a port of its own, which the answers go to.
    put(out, request.is_replay ? ntohs(clients_[request.client].address.sin_port) : ETHERBONE_PORT, 2);
    put(out, request.is_replay ? REPLAY_PORT : ETHERBONE_PORT, 2);
    put(out, udp_size, 2);
    put(out, 0, 2);  // No checksum, as RFC 768 allows.
    out.insert(out.end(), request.payload.begin(), request.payload.end());
    feeder_.from_client(make_frame(std::move(out)));
}

void Management::ended(const FramePtr &frame, uint64_t) {
    const uint8_t *content = frame->content();
    size_t size = frame->size();
    if (!fcs_is_right(content, size)) {
        std::fprintf(stderr, "liteprobe-sim: the probe sent a management frame with a bad FCS (%zu octets)\n", size);
        return;
    }
    size -= FCS;
    uint32_t type = size >= 14 ? get_number(content + 12, 2) : 0;
    if (type == TYPE_ARP)
        take_arp(content, size);
    else if (type == TYPE_IPV4)
        take_ipv4(content, size);
}

void Management::take_arp(const uint8_t *content, size_t size) {
    if (size < 42 || get_number(content + 28, 4) != probe_ip_)
        return;
    Mac sender;
    std::copy(content + 22, content + 28, sender.begin());
    uint32_t target_ip = get_number(content + 38, 4);
    for (unsigned client = 0; client < clients_.size(); client++) {
        if (ip_of(probe_ip_, client) != target_ip)
            continue;
        knows_probe_ = true;
        probe_mac_ = sender;
        if (get_number(content + 20, 2) == ARP_REQUEST)
            send_arp(ARP_REPLY, client, sender, sender, probe_ip_);
    }
}

void Management::take_ipv4(const uint8_t *content, size_t size) {
    if (size < 42 || content[14] != 0x45 || content[23] != PROTOCOL_UDP)
        return;
    size_t udp_size = get_number(content + 38, 2);
    if (checksum(content + 14, 20) != 0 || udp_size < 8 || 34 + udp_size > size) {
        std::fprintf(stderr, "liteprobe-sim: the probe sent an IPv4 header that is wrong\n");
        return;
    }
    for (unsigned client = 0; client < clients_.size(); client++) {
        if (ip_of(probe_ip_, client) != get_number(content + 30, 4))
            continue;
        // An answer goes to the port that asked; what comes to another port (captured blocks), to that port of the same host.
        uint16_t port = get_number(content + 36, 2);
        int socket = get_number(content + 34, 2) == REPLAY_PORT ? replay_.socket : etherbone_.socket;
        sockaddr_in to = clients_[client].address;
        if (port != ETHERBONE_PORT)
            to.sin_port = htons(port);
        std::deque<Answer> arrived;
        to_host_.pass({socket, to, {content + 42, content + 34 + udp_size}}, arrived);
        for (auto &answer : arrived)
            sendto(answer.socket, answer.payload.data(), answer.payload.size(), 0, reinterpret_cast<sockaddr *>(&answer.to), sizeof(answer.to));
        replies_ += port == ETHERBONE_PORT;
    }
}

}  // namespace liteprobe
