// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Hosts that stream to the rings, the network between, and what reads the rings.

#pragma once

#include <deque>
#include <utility>

#include "datagrams_port.h"

constexpr unsigned LARGEST = 365, HOSTS = 4;

static uint32_t first; // Position at which a session begins.

// The rings: of their readers, and of the hosts. --------------------------------------------------------

struct Ring {
    // Of the reader.
    uint32_t fetched = 0;
    unsigned sleep = 0, restarting = 0;
    uint16_t opened = 0; // The session that was asked for last.
    // Of the host.
    bool is_open = false;
    uint16_t session = 0;
    uint32_t next = 0, accepted = 0, limit = 0;
    uint64_t progress = 0;
    unsigned host = 0;

    void begin(uint16_t number)
    {
        session = opened = number;
        next = accepted = first;
        limit = first + WORDS;
        progress = now;
        host = below(HOSTS);
        is_open = true;
    }
};
static Ring rings[RINGS];
static bool draining;

static uint32_t written(unsigned n) { return n ? top.written1 : top.written0; }

// Reads a ring up to what is written; each word must be the session's.
static void read_ring(unsigned n)
{
    Ring &ring = rings[n];
    if (!(top.is_open >> n & 1) || ring.restarting)
        return;
    if (ring.sleep && !draining) {
        ring.sleep--;
        return;
    }
    uint32_t most = mode ? 2 : below(4);
    while (most-- && ring.fetched != written(n)) {
        if (memory[n*WORDS + ring.fetched%WORDS] != word_of(n, ring.opened, ring.fetched))
            fail("a wrong word in the ring");
        ring.fetched++;
    }
    if (!mode && once_in(2000))
        ring.sleep = 4000;
}

// The network. ---------------------------------------------------------------------------------------

static std::deque<Octets> to_probe;
static std::deque<std::pair<uint64_t, Octets>> to_host;
static uint16_t lease = 7, loss; // Of 1000.
static bool is_held = true;

static void carry(Octets frame)
{
    if (mode) {
        to_probe.push_back(std::move(frame));
        return;
    }
    if (below(1000) < loss)
        return;
    if (once_in(25))
        spoil(frame);
    if (once_in(40))
        to_probe.push_back(frame);
    const size_t back = once_in(30) ? below(4) : 0;
    to_probe.insert(to_probe.end() - std::min(back, to_probe.size()), std::move(frame));
    while (once_in(8))
        to_probe.push_back(other_frame());
}

static unsigned length()
{
    if (mode)
        return LARGEST;
    switch (below(8)) {
    case 0: return below(3);
    case 1: return LARGEST - below(3);
    case 2: return below(LARGEST + 1);
    default: return 1 + below(40);
    }
}

// One datagram of a host, if it may send one.
static void send(unsigned n)
{
    Ring &ring = rings[n];
    if (!ring.is_open)
        return;
    bool asks = !mode && once_in(50);
    if (now - ring.progress > 6000) {
        ring.next = ring.accepted;
        ring.progress = now;
        asks = true;
    }
    const unsigned words = length();
    const bool lies = !mode && once_in(100);
    if (!mode && !lies && ring.next - first + words > ring.limit - first)
        return;
    const uint16_t session = !mode && once_in(200) ? ring.session + 1 : ring.session;
    const uint16_t its_lease = !mode && once_in(100) ? (once_in(2) ? 0 : lease - 1) : !is_held && once_in(2) ? 0 : lease;
    carry(datagram(ring.host, n, asks, session, its_lease, ring.next, words));
    if (!lies)
        ring.next += words;
    if (!mode && once_in(10))
        ring.host = below(HOSTS);
}

static void take_answer(const Octets &frame)
{
    const unsigned n = frame[42];
    if (n >= RINGS || frame.size() != 66)
        fail("an answer of another kind");
    Ring &ring = rings[n];
    const uint16_t session = frame[48] | frame[49] << 8;
    const uint32_t accepted = get_word(&frame[50]), limit = get_word(&frame[54]);
    if ((frame[43] & 2) || session != ring.session)
        return;
    if (accepted - ring.accepted < 0x80000000) {
        if (accepted != ring.accepted)
            ring.progress = now;
        ring.accepted = accepted;
        ring.limit = limit;
        if (ring.next - accepted >= 0x80000000 || (frame[43] & 1))
            ring.next = accepted;
    }
}
