// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Frames as a host and others send them to a probe that takes datagrams.

#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

using Octets = std::vector<uint8_t>;

constexpr uint64_t PROBE_MAC = 0x10e2d5000001, HOST_MAC = 0x02aabbccdd00;
constexpr uint32_t PROBE_IP = 0xc0a80132, HOST_IP = 0xc0a80110;
constexpr uint16_t REPLAY_PORT = 1236;
constexpr uint32_t MAGIC = 0x4c52;

static std::mt19937_64 generator;

static uint32_t below(uint32_t count) { return generator() % count; }
static bool once_in(uint32_t count) { return count && below(count) == 0; }

static void put(Octets &to, uint64_t value, int octets)
{
    for (int n = octets - 1; n >= 0; n--)
        to.push_back(value >> 8*n);
}

static void put_word(Octets &to, uint32_t word)
{
    for (int n = 0; n < 4; n++)
        to.push_back(word >> 8*n);
}

static uint32_t get_word(const uint8_t *from) { return from[0] | from[1] << 8 | from[2] << 16 | uint32_t(from[3]) << 24; }

static uint16_t ip_sum(const uint8_t *header)
{
    uint32_t sum = 0;
    for (int n = 0; n < 20; n += 2)
        sum += header[n] << 8 | header[n + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return ~sum;
}

// What a session's word is: the ring that is read must have it.
static uint32_t word_of(unsigned ring, uint16_t session, uint32_t position)
{
    uint64_t x = (uint64_t(position) << 20 ^ uint64_t(session) << 3 ^ ring)*0x9e3779b97f4a7c15u;
    return (x ^ x >> 29)*0xbf58476d1ce4e5b9u >> 32;
}

// A UDP datagram in a frame of at least 60 octets; host: which of several at one address.
static Octets udp_frame(unsigned host, uint16_t port, const Octets &payload)
{
    Octets frame;
    put(frame, PROBE_MAC, 6);
    put(frame, HOST_MAC + host, 6);
    put(frame, 0x0800, 2);
    put(frame, 0x4500, 2);
    put(frame, 28 + payload.size(), 2);
    put(frame, below(65536), 2);
    put(frame, once_in(2) ? 0x4000 : 0, 2);
    put(frame, 0x4011, 2);
    put(frame, 0, 2);
    put(frame, HOST_IP + host, 4);
    put(frame, PROBE_IP, 4);
    const uint16_t sum = ip_sum(&frame[14]);
    frame[24] = sum >> 8;
    frame[25] = sum;
    put(frame, 50000 + host, 2);
    put(frame, port, 2);
    put(frame, 8 + payload.size(), 2);
    put(frame, 0, 2);
    frame.insert(frame.end(), payload.begin(), payload.end());
    while (frame.size() < 60)
        frame.push_back(generator());
    return frame;
}

static Octets datagram(unsigned host, unsigned ring, bool asks, uint16_t session, uint16_t lease, uint32_t position, unsigned words)
{
    Octets payload;
    put_word(payload, MAGIC << 16 | asks << 8 | ring);
    put_word(payload, uint32_t(session) << 16 | lease);
    put_word(payload, position);
    for (unsigned n = 0; n < words; n++)
        put_word(payload, word_of(ring, session, position + n));
    return udp_frame(host, REPLAY_PORT, payload);
}

// A frame with something wrong in it, whose FCS is right.
static void spoil(Octets &frame)
{
    static const uint8_t heads[] = {0, 5, 12, 13, 14, 16, 17, 20, 21, 23, 30, 33, 36, 37, 38, 39, 42, 43, 44, 45, 46, 47, 48, 49};
    static unsigned bit = generator();
    switch (below(8)) {
    case 0: // Cut short, down to a whole header; or by little.
        if (frame.size() > 68)
            frame.resize(once_in(2) ? 60 + below(frame.size() - 60) : frame.size() - 1 - below(6));
        break;
    case 1: // One of the lengths lies.
        frame[once_in(2) ? 17 : 39] += 1 + below(255);
        break;
    case 2: // Both do, and agree.
        {
            const int more = int(below(40)) - (frame.size() > 60 ? 20 : 40); // Padding is never taken for words.
            const int ip = (frame[16] << 8 | frame[17]) + more, udp = (frame[38] << 8 | frame[39]) + more;
            frame[16] = ip >> 8, frame[17] = ip, frame[38] = udp >> 8, frame[39] = udp;
        }
        break;
    case 3:
        frame.resize(frame.size() + 1 + below(20), 0x55); // Longer than its datagram: that is right.
        break;
    default: // A bit of the head, one after the other.
        frame[heads[bit/8 % sizeof(heads)]] ^= 1 << bit%8;
        bit++;
    }
}

// A frame for the stack, or for nobody; now and then one that is nearly a datagram.
static Octets other_frame()
{
    Octets frame(60 + (once_in(3) ? below(1455) : below(60)));
    for (auto &octet : frame)
        octet = generator();
    switch (below(4)) {
    case 0:
        return udp_frame(below(4), once_in(2) ? 1234 : 1237, frame);
    case 1:
        frame = datagram(below(4), 0, false, 1, 1, 0, below(20));
        frame[30 + below(4)] ^= 1 << below(8);
        return frame;
    case 2:
        std::fill(frame.begin(), frame.begin() + 6, 0xff);
        frame[12] = 8, frame[13] = 6;
        return frame;
    default:
        return frame;
    }
}
