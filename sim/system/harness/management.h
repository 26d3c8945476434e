// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// UDP clients of the host, as stations on the management port: each has a MAC and an IP address of its own,
// because LiteEth's Etherbone answers to its own UDP port number, whatever port the request came from.
#pragma once

#include <netinet/in.h>

#include <array>
#include <deque>
#include <string>
#include <vector>

#include "network.h"
#include "pins.h"

namespace liteprobe {

using Mac = std::array<uint8_t, 6>;

// True for what belongs to a management client: its MAC, or a broadcast ARP.
bool is_for_client(const uint8_t *content, size_t size);

class Management : public Sink {
public:
    // Opens the socket on 127.0.0.1; port 0 picks one. `probe_ip` in host order.
    Management(uint32_t probe_ip, uint16_t udp_port, Feeder &feeder, const NetworkSpec &network);
    ~Management() override;

    int socket() const { return etherbone_.socket; }
    uint16_t udp_port() const { return etherbone_.port; }
    // What comes here goes to REPLAY_PORT of the probe, and what comes from there leaves here.
    int replay_socket() const { return replay_.socket; }
    uint16_t replay_port() const { return replay_.port; }

    static constexpr size_t BATCH = 4;  // What a probe keeps while it answers.
    struct Request {
        unsigned client = 0;
        bool is_in_batch = false;
        bool wants_reply = false;
        bool is_replay = false;
        std::vector<uint8_t> payload;
    };
    // What is served together: the next datagram that waits, or those of the next batch, or that are for REPLAY_PORT, at most
    // BATCH; never blocks.
    std::vector<Request> receive();
    bool knows_probe() const { return knows_probe_; }
    void ask_for_probe(unsigned client);   // ARP request.
    void send(const Request &request);     // As a frame, to the feeder.
    std::string counts() const { return to_probe_.counts() + " " + to_host_.counts(); }
    uint64_t replies() const { return replies_; }

    void ended(const FramePtr &frame, uint64_t tick) override;  // A frame of the probe.

private:
    struct Client {
        sockaddr_in address;
    };
    struct Listener {
        int socket = -1;
        uint16_t port = 0;
    };
    struct Answer {
        int socket = -1;
        sockaddr_in to{};
        std::vector<uint8_t> payload;
    };
    static Listener listen(uint16_t udp_port);
    bool read();
    bool read_replay();
    unsigned client_of(const sockaddr_in &address);
    void take_arp(const uint8_t *content, size_t size);
    void take_ipv4(const uint8_t *content, size_t size);
    void send_arp(uint16_t operation, unsigned client, const Mac &to, const Mac &target, uint32_t target_ip);

    uint32_t probe_ip_;
    Feeder &feeder_;
    Listener etherbone_, replay_;
    bool knows_probe_ = false;
    Mac probe_mac_{};
    std::vector<Client> clients_;
    unsigned oldest_ = 0;
    uint64_t replies_ = 0;
    Network<Request> to_probe_;
    Network<Answer> to_host_;
    std::deque<Request> arrived_;
};

}  // namespace liteprobe
