// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// The wire spec: what stands after sim:// in a probe's URL.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "network.h"

namespace liteprobe {

constexpr uint64_t NS_PER_TICK = 8;
constexpr uint64_t LINE_RATE = 1'000'000'000;
constexpr uint64_t TICKS_A_SECOND = 125'000'000;
constexpr uint64_t PPB = 1'000'000'000;
// In band, a frame's destination and type must be known before it goes on: preamble, two MACs, type, margin.
constexpr uint64_t SHARED_DELAY_TICKS = 24;

// Bad arguments: reported on stderr, exit code 2.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

enum class WireKind { LOOPBACK, CABLE, SWITCH, DEVICE, ROUTER };

// A part of time that comes once, or again every `every` ticks: [at, at + length).
struct Window {
    uint64_t at = 0, length = 0, every = 0;

    bool contains(uint64_t tick) const { return length && tick >= at && since(tick) < length; }
    // Of the window that `tick` is in: the first tick after it.
    uint64_t end(uint64_t tick) const { return tick - since(tick) + length; }
    // Of the first window that begins after `tick`; all ones: there is none.
    uint64_t next(uint64_t tick) const {
        if (!length || (tick >= at && !every))
            return ~0ull;
        return tick < at ? at : tick - since(tick) + every;
    }
    // Windows that have begun by `tick`.
    uint64_t begun(uint64_t tick) const { return !length || tick < at ? 0 : every ? (tick - at) / every + 1 : 1; }

private:
    uint64_t since(uint64_t tick) const { return every ? (tick - at) % every : tick - at; }
};

// A bandwidth profile of one service (MEF 10.3, section 12.1): two buckets, frames with their FCS.
struct ServiceSpec {
    enum Match { ALL, VLAN, DSCP, UDP_PORT } match = ALL;
    uint64_t value = 0;
    uint64_t cir = 0, eir = 0;  // Bits a second.
    uint64_t cbs = 0, ebs = 0;  // Octets.
    bool couples = false;       // What overflows the committed bucket goes to the excess one.
};

constexpr size_t SERVICES = 16;
enum class Does { FORWARD, DROP, RETURN, FLOOD };

// An interface of a router.
struct InterfaceSpec {
    std::array<uint8_t, 4> ipv4{}, next_hop4{};
    std::array<uint8_t, 16> ipv6{}, next_hop6{};
    unsigned prefix4 = 24, prefix6 = 64;
    bool has_next_hop4 = false, has_next_hop6 = false;
    unsigned vlan = 0;  // 0: untagged.
};

struct RouterSpec {
    std::array<InterfaceSpec, 2> interfaces;
    uint64_t life = 0;         // Ticks that a neighbour's MAC is known; 0: for ever.
    uint64_t retry = 125'000;  // Ticks between two questions for it.
    uint64_t tries = 3;
    uint64_t hold = 3;         // Packets that wait for it, for each next hop.
};

struct DeviceSpec {
    bool cuts_through = false;
    uint64_t packets = 0;      // A second, at most; 0: any.
    uint64_t buffer = 0;       // Octets (MAC to FCS) that may wait; 0: any.
    uint64_t fault_size = 0;   // Octets with FCS; frames of this size are lost. 0: none.
    uint64_t load = 0;         // Share of the line (ppb) above which frames are lost; 0: none.
    uint64_t load_burst = 3076;  // Octets of the line that may come at once.
    Window pause, reboot, flap;
    unsigned flap_port = 1;
    Does does = Does::FORWARD;
    uint64_t copies = 1;       // That flooding sends out of each port.
    uint64_t table = 0;        // Addresses that it can know; 0: it knows none, and forwards all.
    uint64_t learn = 0;        // A second, at most; 0: any.
    uint64_t age = 0;          // Ticks that it knows one; 0: for ever.
    uint64_t largest = 0;      // Octets with FCS; larger frames are lost. 0: none are.
    uint64_t storm = 0;        // Frames to groups, a second, at most; 0: any.
    bool answers_all = false;  // ARP and neighbour solicitations for any address.
    std::vector<ServiceSpec> services;
};

struct WireSpec {
    WireKind kind = WireKind::LOOPBACK;
    uint64_t delay = 1;           // Ticks (loopback, cable).
    uint64_t latency = 375;       // Ticks from the last octet in to the first octet out (switch).
    uint64_t latency2 = 0;        // Ticks, of the second hop.
    uint64_t rate = LINE_RATE;    // Bits a second of the first hop.
    uint64_t queue = 64;          // Frames waiting in each queue.
    uint64_t loss = 0, corrupt = 0, duplicate = 0, reorder = 0;  // Probabilities (ppb).
    uint64_t reorder_by = 250;    // Ticks.
    uint64_t cross = 0, cross2 = 0;  // Load of cross traffic, of its hop's rate (ppb).
    uint64_t cross_size = 1514;   // Octets without FCS.
    bool cross_poisson = true;
    bool cross_deliver = false;
    uint64_t cut_after = 0;       // Frames in each direction; 0: never.
    uint64_t seed = 1;
    DeviceSpec device;
    RouterSpec router;

    bool is_device() const { return kind == WireKind::DEVICE || kind == WireKind::ROUTER; }
    bool two_hops() const { return rate != LINE_RATE || cross2 != 0; }
};

// Throws UsageError on anything unknown or out of range. `shared`: management is in band on port 0.
WireSpec parse_wire(const std::string &text, bool shared);
// As `loss=5%,duplicate=1%,reorder=1%,seed=7`.
NetworkSpec parse_network(const std::string &text);
uint64_t parse_count(const std::string &name, const std::string &text, uint64_t least, uint64_t most);

}  // namespace liteprobe
