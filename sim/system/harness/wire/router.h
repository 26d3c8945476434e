// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// A router with an IPv4 and an IPv6 address at each port, which must be spoken to: it takes what is for its MAC, and asks
// for the MAC of the next hop before it forwards. docs/simulation.md, "Router".
#pragma once

#include <deque>
#include <map>
#include <optional>

#include "device.h"

namespace liteprobe {

class Router : public Device {
public:
    using Device::Device;
    void advance(uint64_t tick) override;
    void close() override;
    static MacAddress mac(unsigned port) { return {0x02, 0, 0, 0, 0x52, static_cast<uint8_t>(port)}; }

protected:
    void forward(unsigned port, const FramePtr &frame, uint64_t tick) override;
    void rebooted() override;
    uint64_t own_due() const override;

private:
    // A frame without its tag: what stands at `packet` is of `type`.
    struct Packet {
        unsigned port;
        FramePtr frame;
        uint16_t type;
        Octets octets;  // From the IP header on; longer than its length field where the frame was padded.
        uint64_t tick;
    };
    struct Neighbour {
        std::optional<MacAddress> mac;
        uint64_t until = NEVER;  // It is known.
        uint64_t ask_again = NEVER;
        uint64_t asked = 0;
        std::deque<Packet> held;
    };
    using Address = std::vector<uint8_t>;  // 4 or 16 octets.

    std::optional<Packet> unwrap(unsigned port, const FramePtr &frame, uint64_t tick) const;
    bool take_neighbour_message(const Packet &packet);
    void forward4(Packet packet);
    void forward6(Packet packet);
    void answer_echo4(Packet packet);
    void answer_echo6(Packet packet);
    std::optional<Address> next_hop(unsigned port, const Address &destination) const;
    bool is_mine(const Address &address) const;
    void send_to(unsigned port, const Address &hop, Packet packet);
    void transmit(unsigned port, const MacAddress &to, const Packet &packet, uint64_t tick);
    void ask(unsigned port, const Address &hop, Neighbour &neighbour, uint64_t tick);
    void learn(unsigned port, const Address &address, const MacAddress &mac, uint64_t tick);

    std::map<Address, Neighbour> neighbours_[DEVICE_PORTS];
};

}  // namespace liteprobe
