// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "router.h"

#include <algorithm>

namespace liteprobe {

namespace {

constexpr uint8_t ECHO_REQUEST = 8;

bool is_within(const std::vector<uint8_t> &address, const uint8_t *network, unsigned prefix) {
    for (unsigned bit = 0; bit < prefix; bit++)
        if ((address[bit / 8] ^ network[bit / 8]) >> (7 - bit % 8) & 1)
            return false;
    return true;
}

template <class Array> std::vector<uint8_t> octets_of(const Array &array) { return {array.begin(), array.end()}; }

}  // namespace

// What comes in ------------------------------------------------------------------------------------

std::optional<Router::Packet> Router::unwrap(unsigned port, const FramePtr &frame, uint64_t tick) const {
    const uint8_t *content = frame->content();
    size_t size = frame->size() - FCS, at = 12;
    const MacAddress to = get_array<6>(content);
    const bool is_for_me = to == mac(port) || to == EVERYONE || (to[0] == 0x33 && to[1] == 0x33);
    const unsigned vlan = spec_.router.interfaces[port].vlan;
    if (!is_for_me || size < ETHERNET_HEADER + (vlan ? 4 : 0))
        return std::nullopt;
    if (vlan) {
        if (get_number(content + at, 2) != TYPE_VLAN || (get_number(content + at + 2, 2) & 0xfff) != vlan)
            return std::nullopt;
        at += 4;
    }
    return Packet{port, frame, static_cast<uint16_t>(get_number(content + at, 2)), Octets(content + at + 2, content + size), tick};
}

void Router::forward(unsigned port, const FramePtr &frame, uint64_t tick) {
    auto packet = unwrap(port, frame, tick);
    if (!packet)
        return settle(port, frame, REFUSED);
    if (take_neighbour_message(*packet))
        return settle(port, frame, TAKEN);
    if (get_array<6>(frame->content()) != mac(port))
        return settle(port, frame, REFUSED);
    if (packet->type == TYPE_IPV4)
        return forward4(std::move(*packet));
    if (packet->type == TYPE_IPV6)
        return forward6(std::move(*packet));
    settle(port, frame, REFUSED);
}

// ARP and neighbour discovery: what is asked is answered, what is answered is learnt (RFC 826; RFC 4861, 7.2).
bool Router::take_neighbour_message(const Packet &packet) {
    const unsigned port = packet.port;
    const InterfaceSpec &at = spec_.router.interfaces[port];
    if (auto question = question_of(packet.type, packet.octets.data(), packet.octets.size())) {
        const bool is_asked = question->is_ipv6 ? question->target6 == at.ipv6 || question->target6 == link_local(mac(port))
                                                : question->target4 == at.ipv4;
        if (!is_asked)
            return true;
        question->sender = question->told.value_or(get_array<6>(packet.frame->content() + 6));
        send_own(port, tagged(answer_to(*question, mac(port), true), at.vlan), packet.tick);
        const Address sender = question->is_ipv6 ? octets_of(question->sender6) : octets_of(question->sender4);
        const bool is_somebody = std::any_of(sender.begin(), sender.end(), [](uint8_t octet) { return octet != 0; });
        if (question->told && is_somebody)
            learn(port, sender, *question->told, packet.tick);
        return true;
    }
    if (auto answer = answer_of(packet.type, packet.octets.data(), packet.octets.size())) {
        const Address address = answer->is_ipv6 ? octets_of(answer->address6) : octets_of(answer->address4);
        if (neighbours_[port].count(address))
            learn(port, address, answer->mac, packet.tick);
        return true;
    }
    return packet.type == TYPE_ARP;
}

bool Router::is_mine(const Address &address) const {
    for (unsigned port = 0; port < DEVICE_PORTS; port++) {
        const InterfaceSpec &at = spec_.router.interfaces[port];
        if (address == octets_of(at.ipv4) || address == octets_of(at.ipv6) || address == octets_of(link_local(mac(port))))
            return true;
    }
    return false;
}

// RFC 1812, 5.2.2: what isn't sound is dropped.
void Router::forward4(Packet packet) {
    Octets &ip = packet.octets;
    const size_t header = ip.size() < 20 ? 0 : 4 * (ip[0] & 15);
    const size_t length = header ? get_number(ip.data() + 2, 2) : 0;
    if (header < 20 || ip[0] >> 4 != 4 || length < header || length > ip.size() || checksum(ip.data(), header))
        return settle(packet.port, packet.frame, REFUSED);
    const Address destination(ip.begin() + 16, ip.begin() + 20);
    if (is_mine(destination))
        return answer_echo4(std::move(packet));
    auto hop = next_hop(packet.port, destination);
    if (ip[8] <= 1 || !hop)
        return settle(packet.port, packet.frame, REFUSED);
    ip[8]--;
    put_number(ip.data() + 10, 2, 0);
    put_number(ip.data() + 10, 2, checksum(ip.data(), header));
    send_to(1 - packet.port, *hop, std::move(packet));
}

void Router::forward6(Packet packet) {
    Octets &ip = packet.octets;
    if (ip.size() < IPV6_HEADER || ip[0] >> 4 != 6 || IPV6_HEADER + get_number(ip.data() + 4, 2) > ip.size())
        return settle(packet.port, packet.frame, REFUSED);
    const Address destination(ip.begin() + 24, ip.begin() + 40);
    if (is_mine(destination))
        return answer_echo6(std::move(packet));
    auto hop = next_hop(packet.port, destination);
    const bool is_link_local = ip[8] == 0xfe && (ip[9] & 0xc0) == 0x80;
    if (ip[7] <= 1 || is_link_local || !hop)
        return settle(packet.port, packet.frame, REFUSED);
    ip[7]--;
    send_to(1 - packet.port, *hop, std::move(packet));
}

void Router::answer_echo4(Packet packet) {
    Octets &ip = packet.octets;
    const size_t header = 4 * (ip[0] & 15), length = get_number(ip.data() + 2, 2);
    settle(packet.port, packet.frame, TAKEN);
    if (ip[9] != PROTOCOL_ICMP || length < header + 8 || ip[header] != ECHO_REQUEST || (get_number(ip.data() + 6, 2) & 0x3fff))
        return;
    if (checksum(ip.data() + header, length - header))
        return;
    std::swap_ranges(ip.begin() + 12, ip.begin() + 16, ip.begin() + 16);
    ip[8] = 64;
    ip[header] = 0;
    for (auto [at, from, octets] : {std::tuple<size_t, size_t, size_t>{10, 0, header}, {header + 2, header, length - header}}) {
        put_number(ip.data() + at, 2, 0);
        put_number(ip.data() + at, 2, checksum(ip.data() + from, octets));
    }
    transmit(packet.port, get_array<6>(packet.frame->content() + 6), packet, packet.tick);
}

void Router::answer_echo6(Packet packet) {
    Octets &ip = packet.octets;
    const size_t length = get_number(ip.data() + 4, 2);
    uint8_t *message = ip.data() + IPV6_HEADER;
    settle(packet.port, packet.frame, TAKEN);
    if (ip[6] != PROTOCOL_ICMPV6 || length < 8 || message[0] != ECHO_REQUEST6 || checksum6(ip.data(), message, length))
        return;
    std::swap_ranges(ip.begin() + 8, ip.begin() + 24, ip.begin() + 24);
    ip[7] = 64;
    message[0] = ECHO_REPLY6;
    put_number(message + 2, 2, 0);
    put_number(message + 2, 2, checksum6(ip.data(), message, length));
    transmit(packet.port, get_array<6>(packet.frame->content() + 6), packet, packet.tick);
}

// What goes out --------------------------------------------------------------------------------------

// On the other port: the destination itself where it is at that port's network, else the hop that is set there.
std::optional<Router::Address> Router::next_hop(unsigned port, const Address &destination) const {
    const InterfaceSpec &out = spec_.router.interfaces[1 - port], &in = spec_.router.interfaces[port];
    const bool is_ipv4 = destination.size() == 4;
    const uint8_t first = destination[0];
    if (is_ipv4 ? first == 0 || first == 127 || first >= 224 : first == 0xff || first == 0)
        return std::nullopt;  // RFC 1122, 3.2.1.3: no destination of a host.
    auto within = [&](const InterfaceSpec &at) {
        return is_ipv4 ? is_within(destination, at.ipv4.data(), at.prefix4) : is_within(destination, at.ipv6.data(), at.prefix6);
    };
    if (within(out))
        return destination;
    if (within(in) || !(is_ipv4 ? out.has_next_hop4 : out.has_next_hop6))
        return std::nullopt;
    return is_ipv4 ? octets_of(out.next_hop4) : octets_of(out.next_hop6);
}

void Router::send_to(unsigned port, const Address &hop, Packet packet) {
    Neighbour &neighbour = neighbours_[port][hop];
    if (neighbour.mac && packet.tick >= neighbour.until) {
        neighbour.mac.reset();
        neighbour.until = NEVER;
    }
    if (neighbour.mac)
        return transmit(port, *neighbour.mac, packet, packet.tick);
    const uint64_t tick = packet.tick;
    neighbour.held.push_back(std::move(packet));
    if (neighbour.held.size() > spec_.router.hold) {  // The latest are kept: RFC 1122, 2.3.2.2.
        settle(neighbour.held.front().port, neighbour.held.front().frame, REFUSED);
        neighbour.held.pop_front();
    }
    if (neighbour.ask_again == NEVER)
        ask(port, hop, neighbour, tick);
}

void Router::ask(unsigned port, const Address &hop, Neighbour &neighbour, uint64_t tick) {
    const InterfaceSpec &at = spec_.router.interfaces[port];
    Octets question = hop.size() == 4 ? arp(1, mac(port), at.ipv4, EVERYONE, get_array<4>(hop.data()))
                                      : solicitation(mac(port), at.ipv6, get_array<16>(hop.data()));
    neighbour.asked++;
    neighbour.ask_again = tick + spec_.router.retry;
    send_own(port, tagged(std::move(question), at.vlan), tick);
}

void Router::learn(unsigned port, const Address &address, const MacAddress &mac, uint64_t tick) {
    Neighbour &neighbour = neighbours_[port][address];
    neighbour.mac = mac;
    neighbour.until = spec_.router.life ? tick + spec_.router.life : NEVER;
    neighbour.ask_again = NEVER;
    neighbour.asked = 0;
    for (auto &packet : neighbour.held)
        transmit(port, mac, packet, tick);
    neighbour.held.clear();
    update_due();
}

void Router::transmit(unsigned port, const MacAddress &to, const Packet &packet, uint64_t tick) {
    const MacAddress from = mac(port);
    Octets content(to.begin(), to.end());
    content.insert(content.end(), from.begin(), from.end());
    content.push_back(static_cast<uint8_t>(packet.type >> 8));
    content.push_back(static_cast<uint8_t>(packet.type));
    content.insert(content.end(), packet.octets.begin(), packet.octets.end());
    content = tagged(std::move(content), spec_.router.interfaces[port].vlan);
    const bool is_answer = packet.frame->settled;
    if (is_answer)
        return send_own(port, std::move(content), tick);
    FramePtr frame = make_frame(std::move(content));
    frame->number = packet.frame->number;
    frame->fate = packet.frame->fate;
    frame->corrupt_octet = packet.frame->corrupt_octet;
    frame->corrupt_bit = packet.frame->corrupt_bit;
    frame->first_tick = packet.frame->sfd_tick() - frame->sfd;  // Its origin.
    send(port, frame, tick, packet.port, packet.frame);
}

// Time -----------------------------------------------------------------------------------------------

uint64_t Router::own_due() const {
    uint64_t due = NEVER;
    for (auto &side : neighbours_)
        for (auto &[address, neighbour] : side)
            due = std::min(due, neighbour.ask_again);
    return due;
}

void Router::advance(uint64_t tick) {
    for (unsigned port = 0; port < DEVICE_PORTS; port++)
        for (auto &[address, neighbour] : neighbours_[port]) {
            if (neighbour.ask_again > tick)
                continue;
            if (neighbour.asked < spec_.router.tries && !neighbour.held.empty()) {
                ask(port, address, neighbour, tick);
                continue;
            }
            for (auto &packet : neighbour.held)
                settle(packet.port, packet.frame, REFUSED);
            neighbour.held.clear();
            neighbour.ask_again = NEVER;
            neighbour.asked = 0;
        }
    Device::advance(tick);
}

// It has forgotten whom it knew, and what it held.
void Router::rebooted() {
    for (auto &side : neighbours_) {
        for (auto &[address, neighbour] : side)
            for (auto &packet : neighbour.held)
                settle(packet.port, packet.frame, LOST);
        side.clear();
    }
}

void Router::close() {
    for (auto &side : neighbours_)
        for (auto &[address, neighbour] : side) {
            for (auto &packet : neighbour.held)
                settle(packet.port, packet.frame, IN_FLIGHT);
            neighbour.held.clear();
        }
    Device::close();
}

}  // namespace liteprobe
