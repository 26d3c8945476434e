// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Reads and writes what devices need of packets: labels, ARP (RFC 826), neighbour discovery (RFC 4861), checksums.
// `content` starts at the destination MAC; frames that are written have neither preamble nor FCS.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace liteprobe {

using MacAddress = std::array<uint8_t, 6>;
using Ipv4 = std::array<uint8_t, 4>;
using Ipv6 = std::array<uint8_t, 16>;
using Octets = std::vector<uint8_t>;

constexpr MacAddress EVERYONE = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
enum Type : uint16_t { TYPE_IPV4 = 0x0800, TYPE_ARP = 0x0806, TYPE_VLAN = 0x8100, TYPE_IPV6 = 0x86DD, TYPE_SERVICE_VLAN = 0x88A8 };
constexpr size_t ETHERNET_HEADER = 14, IPV6_HEADER = 40;
constexpr uint8_t PROTOCOL_ICMP = 1, PROTOCOL_UDP = 17, PROTOCOL_ICMPV6 = 58;
enum Icmpv6 : uint8_t { ECHO_REQUEST6 = 128, ECHO_REPLY6 = 129, SOLICITATION = 135, ADVERTISEMENT = 136 };

uint32_t get_number(const uint8_t *at, size_t octets);
void put_number(uint8_t *at, size_t octets, uint32_t value);
template <size_t N> std::array<uint8_t, N> get_array(const uint8_t *at) {
    std::array<uint8_t, N> value;
    std::copy(at, at + N, value.begin());
    return value;
}

// What a service is known by; -1: the frame has none.
struct Labels {
    int vlan = -1, dscp = -1, udp_port = -1;  // Of the outer tag; of IPv4 and IPv6; destination, of a packet that isn't a fragment.
};
Labels labels_of(const uint8_t *content, size_t size);

// The sum of RFC 1071 over octets, 0 where their checksum is right; `with`: what comes on top (a pseudo header).
uint16_t checksum(const uint8_t *at, size_t octets, uint32_t with = 0);
// Of ICMPv6: RFC 8200, section 8.1.
uint16_t checksum6(const uint8_t *ipv6, const uint8_t *payload, size_t octets);
Ipv6 link_local(const MacAddress &mac);
Ipv6 solicited_node(const Ipv6 &address);
MacAddress group_mac(const Ipv6 &group);

struct Question {  // For a MAC: an ARP request, or a neighbour solicitation.
    bool is_ipv6 = false;
    Ipv4 target4{}, sender4{};
    Ipv6 target6{}, sender6{};  // The sender of a test for duplicates is ::.
    MacAddress sender{};
    std::optional<MacAddress> told;  // The sender's MAC as its packet says it.
};
// `packet` stands behind the tags of a frame, `type` tells what it is. Checks all that RFC 4861, 7.1.1 asks.
std::optional<Question> question_of(uint16_t type, const uint8_t *packet, size_t size);
// An answer: who it is, and its MAC. Checks all that RFC 4861, 7.1.2 asks.
struct Answer {
    bool is_ipv6 = false;
    Ipv4 address4{};
    Ipv6 address6{};
    MacAddress mac{};
};
std::optional<Answer> answer_of(uint16_t type, const uint8_t *packet, size_t size);

Octets arp(uint16_t operation, const MacAddress &from, const Ipv4 &sender, const MacAddress &to, const Ipv4 &target);
Octets advertisement(const MacAddress &from, const Question &question, bool is_router);
Octets solicitation(const MacAddress &from, const Ipv6 &sender, const Ipv6 &target);
// What a question gets for an answer: the asked address is at `from`.
Octets answer_to(const Question &question, const MacAddress &from, bool is_router);
// Adds a tag of IEEE 802.1Q behind the MACs; VLAN 0: none.
Octets tagged(Octets frame, unsigned vlan);

}  // namespace liteprobe
