// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "packets.h"

#include <algorithm>
#include <cstring>

namespace liteprobe {

namespace {

constexpr size_t ARP_SIZE = 28, NEIGHBOUR_SIZE = 24;  // ND: type to target.
constexpr uint8_t HOP_LIMIT = 255;
constexpr uint8_t SOURCE_LINK_ADDRESS = 1, TARGET_LINK_ADDRESS = 2;

void append(Octets &to, std::initializer_list<uint8_t> octets) { to.insert(to.end(), octets); }
template <class Array> void append_all(Octets &to, const Array &octets) { to.insert(to.end(), octets.begin(), octets.end()); }

Octets header(const MacAddress &to, const MacAddress &from, uint16_t type) {
    Octets frame;
    append_all(frame, to);
    append_all(frame, from);
    append(frame, {static_cast<uint8_t>(type >> 8), static_cast<uint8_t>(type)});
    return frame;
}

// A neighbour message with one option of a link address.
Octets neighbour(const MacAddress &to, const MacAddress &from, const Ipv6 &source, const Ipv6 &destination, Octets message, uint8_t option) {
    append(message, {option, 1});
    append_all(message, from);
    Octets frame = header(to, from, TYPE_IPV6);
    append(frame, {0x60, 0, 0, 0, 0, static_cast<uint8_t>(message.size()), PROTOCOL_ICMPV6, HOP_LIMIT});
    append_all(frame, source);
    append_all(frame, destination);
    append_all(frame, message);
    uint8_t *payload = frame.data() + ETHERNET_HEADER + IPV6_HEADER;
    put_number(payload + 2, 2, checksum6(frame.data() + ETHERNET_HEADER, payload, message.size()));
    return frame;
}

// A neighbour message whose checksum, hop limit, code and options are right: its option of this kind, where it has one.
struct Neighbour {
    const uint8_t *message;
    std::optional<MacAddress> link;
};
std::optional<Neighbour> neighbour_of(uint8_t type, uint8_t option, const uint8_t *packet, size_t size) {
    if (size < IPV6_HEADER + NEIGHBOUR_SIZE || packet[0] >> 4 != 6 || packet[6] != PROTOCOL_ICMPV6 || packet[7] != HOP_LIMIT)
        return std::nullopt;
    size_t octets = get_number(packet + 4, 2);
    const uint8_t *message = packet + IPV6_HEADER;
    if (octets < NEIGHBOUR_SIZE || IPV6_HEADER + octets > size || message[0] != type || message[1] != 0 || message[8] == 0xff ||
        checksum6(packet, message, octets))
        return std::nullopt;
    Neighbour found{message, std::nullopt};
    for (size_t at = NEIGHBOUR_SIZE; at < octets; at += 8 * message[at + 1]) {
        if (at + 8 > octets || !message[at + 1] || at + 8 * message[at + 1] > octets)
            return std::nullopt;
        if (message[at] == option && message[at + 1] == 1)
            found.link = get_array<6>(message + at + 2);
    }
    return found;
}

}  // namespace

uint32_t get_number(const uint8_t *at, size_t octets) {
    uint32_t value = 0;
    for (size_t i = 0; i < octets; i++)
        value = value << 8 | at[i];
    return value;
}

void put_number(uint8_t *at, size_t octets, uint32_t value) {
    for (size_t i = 0; i < octets; i++)
        at[i] = static_cast<uint8_t>(value >> (8 * (octets - 1 - i)));
}

Labels labels_of(const uint8_t *content, size_t size) {
    Labels labels;
    size_t at = 12;
    for (int tags = 0; tags < 2 && at + 4 <= size; tags++, at += 4) {
        uint32_t type = get_number(content + at, 2);
        if (type != TYPE_VLAN && type != TYPE_SERVICE_VLAN)
            break;
        if (labels.vlan < 0)
            labels.vlan = static_cast<int>(get_number(content + at + 2, 2) & 0xfff);
    }
    if (at + 2 > size)
        return labels;
    uint32_t type = get_number(content + at, 2);
    const uint8_t *packet = content + at + 2;
    size_t left = size - at - 2;
    if (type == TYPE_IPV4 && left >= 20) {
        labels.dscp = packet[1] >> 2;
        size_t header = 4 * (packet[0] & 15);
        if (packet[9] == PROTOCOL_UDP && !(get_number(packet + 6, 2) & 0x1fff) && left >= header + 4)
            labels.udp_port = static_cast<int>(get_number(packet + header + 2, 2));
    } else if (type == TYPE_IPV6 && left >= IPV6_HEADER) {
        labels.dscp = static_cast<int>(get_number(packet, 2) >> 6 & 63);
        if (packet[6] == PROTOCOL_UDP && left >= IPV6_HEADER + 4)
            labels.udp_port = static_cast<int>(get_number(packet + IPV6_HEADER + 2, 2));
    }
    return labels;
}

uint16_t checksum(const uint8_t *at, size_t octets, uint32_t with) {
    uint64_t sum = with;
    for (size_t i = 0; i + 1 < octets; i += 2)
        sum += get_number(at + i, 2);
    if (octets % 2)
        sum += static_cast<uint64_t>(at[octets - 1]) << 8;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<uint16_t>(~sum);
}

uint16_t checksum6(const uint8_t *ipv6, const uint8_t *payload, size_t octets) {
    uint32_t sum = PROTOCOL_ICMPV6 + static_cast<uint32_t>(octets);
    for (size_t i = 8; i < IPV6_HEADER; i += 2)
        sum += get_number(ipv6 + i, 2);
    return checksum(payload, octets, sum);
}

Ipv6 link_local(const MacAddress &mac) {
    return {0xfe, 0x80, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(mac[0] ^ 2), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
}

Ipv6 solicited_node(const Ipv6 &address) {
    return {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, address[13], address[14], address[15]};
}

MacAddress group_mac(const Ipv6 &group) { return {0x33, 0x33, group[12], group[13], group[14], group[15]}; }

std::optional<Question> question_of(uint16_t type, const uint8_t *packet, size_t size) {
    Question question;
    if (type == TYPE_ARP && size >= ARP_SIZE && get_number(packet, 4) == 0x00010800 && get_number(packet + 4, 4) == 0x06040001) {
        question.sender = get_array<6>(packet + 8);
        question.told = question.sender;
        question.sender4 = get_array<4>(packet + 14);
        question.target4 = get_array<4>(packet + 24);
        return question;
    }
    auto found = type == TYPE_IPV6 ? neighbour_of(SOLICITATION, SOURCE_LINK_ADDRESS, packet, size) : std::nullopt;
    if (!found)
        return std::nullopt;
    question.is_ipv6 = true;
    question.sender6 = get_array<16>(packet + 8);
    question.target6 = get_array<16>(found->message + 8);
    question.told = found->link;
    const Ipv6 nobody{};
    if (question.sender6 == nobody && (found->link || get_array<16>(packet + 24) != solicited_node(question.target6)))
        return std::nullopt;
    return question;
}

std::optional<Answer> answer_of(uint16_t type, const uint8_t *packet, size_t size) {
    if (type == TYPE_ARP && size >= ARP_SIZE && get_number(packet, 4) == 0x00010800 && get_number(packet + 4, 4) == 0x06040002)
        return Answer{false, get_array<4>(packet + 14), {}, get_array<6>(packet + 8)};
    auto found = type == TYPE_IPV6 ? neighbour_of(ADVERTISEMENT, TARGET_LINK_ADDRESS, packet, size) : std::nullopt;
    if (!found || !found->link)
        return std::nullopt;
    return Answer{true, {}, get_array<16>(found->message + 8), *found->link};
}

Octets arp(uint16_t operation, const MacAddress &from, const Ipv4 &sender, const MacAddress &to, const Ipv4 &target) {
    const bool is_request = operation == 1;
    Octets frame = header(is_request ? EVERYONE : to, from, TYPE_ARP);
    append(frame, {0, 1, 8, 0, 6, 4, 0, static_cast<uint8_t>(operation)});
    append_all(frame, from);
    append_all(frame, sender);
    append_all(frame, is_request ? MacAddress{} : to);
    append_all(frame, target);
    return frame;
}

Octets advertisement(const MacAddress &from, const Question &question, bool is_router) {
    const Ipv6 nobody{}, all_nodes = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    const bool is_test = question.sender6 == nobody;  // For duplicates: all hear the answer.
    Octets message = {ADVERTISEMENT, 0, 0, 0, static_cast<uint8_t>((is_router ? 0x80 : 0) | (is_test ? 0 : 0x40) | 0x20), 0, 0, 0};
    append_all(message, question.target6);
    return neighbour(is_test ? group_mac(all_nodes) : question.told.value_or(question.sender), from, question.target6,
                     is_test ? all_nodes : question.sender6, message, TARGET_LINK_ADDRESS);
}

Octets solicitation(const MacAddress &from, const Ipv6 &sender, const Ipv6 &target) {
    Octets message = {SOLICITATION, 0, 0, 0, 0, 0, 0, 0};
    append_all(message, target);
    const Ipv6 group = solicited_node(target);
    return neighbour(group_mac(group), from, sender, group, message, SOURCE_LINK_ADDRESS);
}

Octets answer_to(const Question &question, const MacAddress &from, bool is_router) {
    return question.is_ipv6 ? advertisement(from, question, is_router)
                            : arp(2, from, question.target4, question.sender, question.sender4);
}

Octets tagged(Octets frame, unsigned vlan) {
    if (vlan) {
        const uint8_t tag[] = {TYPE_VLAN >> 8, TYPE_VLAN & 0xff, static_cast<uint8_t>(vlan >> 8), static_cast<uint8_t>(vlan)};
        frame.insert(frame.begin() + 12, tag, tag + 4);
    }
    return frame;
}

}  // namespace liteprobe
