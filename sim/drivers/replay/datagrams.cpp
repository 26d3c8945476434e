// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Streams words to the rings of a datagram receiver over a hostile network, and writes what happened.
//
// Options: ``seed``, ``datagrams`` to be accepted, ``mode`` and the ``first`` position of a session. Mode 0: hostile. 1: datagrams of
// 365 words back to back at 1 Gb/s and 50 MHz. 2: as fast as they are taken. It ends when so many datagrams were accepted, and all of
// them are in the rings.
//
// The file log is a list of records: kind (32 bits), cycle (32), octets that follow (32). F: a frame's last word was taken (fetched 0, 1,
// keeps, held, lease, then the frame). O, C: ring, words of the frame that were taken, session. P: a frame of ``source``. S: the
// first word of an answer is shown. A: an answer (fetched 0, 1, keeps, then the frame). Z: 16 counts, written 0, 1, rings.
// The output: cycles, datagrams accepted, frames that the store lost, words taken by the memory.

#include <random>

#include "../tools/harness.h"

// Frames as hosts and others send them ------------------------------------------------------------------

using Octets = std::vector<uint8_t>;

constexpr uint64_t PROBE_MAC = 0x10e2d5000001, HOST_MAC = 0x02aabbccdd00;
constexpr uint32_t PROBE_IP = 0xc0a80132, HOST_IP = 0xc0a80110;
constexpr uint16_t REPLAY_PORT = 1236;
constexpr uint32_t MAGIC = 0x4c52;

static std::mt19937_64 generator;

static uint32_t below(uint32_t count) { return generator() % count; }
static bool once_in(uint32_t count) { return count && below(count) == 0; }

static void add(Octets &to, uint64_t value, int octets)
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
    add(frame, PROBE_MAC, 6);
    add(frame, HOST_MAC + host, 6);
    add(frame, 0x0800, 2);
    add(frame, 0x4500, 2);
    add(frame, 28 + payload.size(), 2);
    add(frame, below(65536), 2);
    add(frame, once_in(2) ? 0x4000 : 0, 2);
    add(frame, 0x4011, 2);
    add(frame, 0, 2);
    add(frame, HOST_IP + host, 4);
    add(frame, PROBE_IP, 4);
    const uint16_t sum = ip_sum(&frame[14]);
    frame[24] = sum >> 8;
    frame[25] = sum;
    add(frame, 50000 + host, 2);
    add(frame, port, 2);
    add(frame, 8 + payload.size(), 2);
    add(frame, 0, 2);
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

// The memory of the rings, after a port that takes bursts -----------------------------------------------

constexpr unsigned RINGS = 2, WORDS = 2048, BASE = 0x40000;

static unsigned mode;

static uint32_t memory[RINGS*WORDS];
static uint64_t words_taken;

// Takes bursts; now and then it is busy with others for 300 cycles.
struct Port {
    unsigned busy = 0, left = 0, wait = 0, address = 0, run = 0;

    void before()
    {
        top.request_ready = !left && !busy;
        if (busy)
            busy--;
        top.takes = left && !wait;
    }
    void after(bool asked, uint32_t address_asked, uint32_t rest, uint32_t data, bool took)
    {
        if (took) {
            memory[address++ - BASE] = data;
            words_taken++;
            left--;
            run++;
            if (!left)
                busy = once_in(mode == 2 ? 0 : mode ? 100 : 40) ? 300 : mode ? 10 : below(8);
            else if (!mode && once_in(20))
                wait = 1 + below(12);
        } else if (wait) {
            wait--;
        }
        if (asked) {
            if (address_asked < BASE || address_asked + rest >= BASE + RINGS*WORDS || address_asked/64 != (address_asked + rest)/64)
                fail("a burst is out of its ring or its line");
            address = address_asked;
            left = rest + 1;
            wait = mode ? 0 : 1 + below(10);
        }
    }
};
static Port port;

// Hosts that stream to the rings, the network between, and what reads the rings ---------------------------

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
        check(memory[n*WORDS + ring.fetched%WORDS] == word_of(n, ring.opened, ring.fetched), "a wrong word in the ring");
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

// may_spoil: not what says another session than it is of, or a bit more makes it the present one's, with other words.
static void carry(Octets frame, bool may_spoil = true)
{
    if (mode) {
        to_probe.push_back(std::move(frame));
        return;
    }
    if (below(1000) < loss)
        return;
    if (once_in(25) && may_spoil)
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
    carry(datagram(ring.host, n, asks, session, its_lease, ring.next, words), session == ring.session);
    if (!lies)
        ring.next += words;
    if (!mode && once_in(10))
        ring.host = below(HOSTS);
}

static void take_answer(const Octets &frame)
{
    const unsigned n = frame[42];
    check(n < RINGS && frame.size() == 66, "an answer of another kind");
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

// The bench -----------------------------------------------------------------------------------------------

constexpr uint64_t FRAME_OCTETS = 8 + 42 + 12 + 4*LARGEST + 4 + 12; // On the line, with preamble, FCS and gap.

static FILE *out;

static void record(char kind, const Octets &octets)
{
    put(out, std::vector<uint32_t>{uint32_t(kind), uint32_t(now), uint32_t(octets.size())});
    put(out, octets);
}

// The pins. --------------------------------------------------------------------------------------------

// Words into ``sink``: as from a store, or as from a line of 1 Gb/s with one of 1024 words behind it.
struct Feeder {
    Octets frame;
    size_t place = 0; // Words that were taken.
    bool is_shown = false;
    uint64_t arrives = 0, lost = 0; // Of modes 1: octet times; frames.
    std::deque<Octets> store;

    size_t words() const { return (frame.size() + 3)/4; }
    bool is_judging() const { return place >= 8; }
    void from_line()
    {
        // 50 MHz: 2.5 octets a cycle.
        while (!to_probe.empty() && arrives + FRAME_OCTETS <= now*5/2) {
            arrives += FRAME_OCTETS;
            if (store.size() >= 2)
                lost++;
            else
                store.push_back(to_probe.front());
            to_probe.pop_front();
        }
    }
    void before()
    {
        if (mode == 1)
            from_line();
        auto &from = mode == 1 ? store : to_probe;
        if (frame.empty() && !from.empty()) {
            frame = from.front();
            from.pop_front();
            place = 0;
        }
        if (!is_shown)
            is_shown = !frame.empty() && (mode || !once_in(12));
        top.sink_valid = is_shown;
        uint32_t data = 0;
        for (size_t n = 0; n < 4 && 4*place + n < frame.size(); n++)
            data |= uint32_t(frame[4*place + n]) << 8*n;
        top.sink_data = data;
        top.sink_last = is_shown && place + 1 == words();
        top.sink_last_be = top.sink_last ? 1 << (frame.size() - 1)%4 : 0;
    }
    void after(bool took)
    {
        if (!took)
            return;
        is_shown = false;
        if (++place < words())
            return;
        Octets what;
        put_word(what, rings[0].fetched), put_word(what, rings[1].fetched);
        put_word(what, top.keeps), put_word(what, is_held), put_word(what, lease);
        what.insert(what.end(), frame.begin(), frame.end());
        record('F', what);
        frame.clear();
        place = 0;
    }
};
static Feeder feeder;

static void add_octets(Octets &to, uint32_t data, bool last, uint32_t last_be)
{
    const int octets = !last ? 4 : last_be == 1 ? 1 : last_be == 2 ? 2 : last_be == 4 ? 3 : last_be == 8 ? 4 : 0;
    if (!octets)
        fail("a frame without an end");
    for (int n = 0; n < octets; n++)
        to.push_back(data >> 8*n);
}

static Octets passed, answer;
static bool is_answering;
static unsigned source_rest, status_rest;

static void give(char kind, const Octets &frame)
{
    Octets what;
    if (kind == 'A') {
        put_word(what, rings[0].fetched), put_word(what, rings[1].fetched);
        put_word(what, top.keeps);
        if (below(1000) >= loss || mode)
            to_host.push_back({now + 20 + below(400), frame});
    }
    what.insert(what.end(), frame.begin(), frame.end());
    record(kind, what);
}

static unsigned pulse_open, pulse_close;

static void cycle()
{
    port.before();
    feeder.before();
    if (source_rest)
        source_rest--;
    else if (!mode && once_in(3000))
        source_rest = 2000; // The stack is working.
    if (status_rest)
        status_rest--;
    else if (!mode && once_in(300))
        status_rest = 200;
    top.source_ready = !source_rest && (mode || !once_in(4));
    top.status_ready = !status_rest && (mode || !once_in(8));
    top.lease = lease;
    top.is_held = is_held;
    if (mode || !feeder.is_judging())
        top.fetched0 = rings[0].fetched, top.fetched1 = rings[1].fetched;
    top.is_restarted = !rings[0].restarting | !rings[1].restarting << 1;
    top.open = pulse_open;
    top.close = pulse_close;
    top.eval();
    const bool took = top.sink_valid && top.sink_ready, passes = top.source_valid && top.source_ready;
    const bool answers_ = top.status_valid && top.status_ready, asked = top.request_valid && top.request_ready, takes = top.takes;
    const uint32_t address = top.request_address, rest = top.request_rest, data = top.write_data, restart = top.restart;
    check(!asked || top.request_write, "a burst that reads");
    if (passes) {
        add_octets(passed, top.source_data, top.source_last, top.source_last_be);
        if (top.source_last)
            give('P', passed), passed.clear();
    }
    if (top.status_valid && !is_answering) {
        is_answering = true;
        record('S', {});
    }
    if (answers_) {
        add_octets(answer, top.status_data, top.status_last, top.status_last_be);
        if (top.status_last)
            give('A', answer), answer.clear(), is_answering = false;
    }
    pulse(top.sys_clk);
    now++;
    port.after(asked, address, rest, data, takes);
    feeder.after(took);
    for (unsigned n = 0; n < RINGS; n++) {
        Octets what;
        put_word(what, n);
        put_word(what, feeder.place);
        put_word(what, n ? top.session1 : top.session0);
        if (pulse_open >> n & 1)
            record('O', what);
        if (pulse_close >> n & 1)
            record('C', what);
        if (restart >> n & 1)
            rings[n].fetched = first, rings[n].restarting = 1 + below(mode ? 2 : 60);
        else if (rings[n].restarting)
            rings[n].restarting--;
        // What is released stands still while a datagram is judged, so that the model knows it.
        if (mode || !feeder.is_judging())
            read_ring(n);
    }
    pulse_open = pulse_close = 0;
}

// What the host and its user do. -----------------------------------------------------------------------

static void open_ring(unsigned n)
{
    const uint16_t session = generator();
    rings[n].begin(session);
    (n ? top.session1 : top.session0) = session;
    if (!mode)
        top.keeps = (top.keeps & ~(1u << n)) | unsigned(!draining && once_in(6)) << n;
    pulse_open |= 1 << n;
}

// A ring is opened between frames, so that a change of ``keeps`` meets no judgement.
static bool is_between() { return feeder.frame.empty() || feeder.place < 8; }

static void step(bool may_change)
{
    if (to_probe.size() < 4) {
        if (mode)
            send(0);
        else
            send(below(RINGS));
        if (!mode && once_in(200))
            carry(other_frame());
    }
    for (size_t n = 0; n < to_host.size(); n++)
        if (to_host[n].first <= now) {
            take_answer(to_host[n].second);
            to_host.erase(to_host.begin() + n--);
        }
    if (may_change && once_in(15000)) {
        const unsigned n = below(RINGS);
        if (once_in(3)) {
            pulse_close |= 1 << n;
            rings[n].is_open = false;
        } else if (is_between()) {
            open_ring(n);
        }
    }
    if (may_change && feeder.frame.empty() && once_in(4000)) {
        is_held = !once_in(4);
        lease = 0x8000 | below(4);
        loss = below(60);
    }
    cycle();
}

static void bench()
{
    out = output("log");
    generator.seed(option("seed"));
    const uint64_t wanted = option("datagrams");
    mode = option("mode");
    first = option("first");
    top.frames0 = 0x11223344, top.frames1 = 0x55667788, top.underruns0 = 0x99aa, top.underruns1 = 0xbbcc;
    top.is_running = 1, top.is_starved = 2;
    top.sys_rst = 1;
    for (int n = 0; n < 10; n++)
        cycle();
    top.sys_rst = 0;
    open_ring(0);
    open_ring(1);
    cycle();
    uint64_t accepted = 0, begin = 0;
    uint32_t last[RINGS] = {first, first};
    for (uint64_t limit = now + wanted*4000 + 100000; accepted < wanted; ) {
        step(!mode);
        if (!begin && mode && words_taken)
            begin = now, words_taken = 0;
        check(now <= limit, "it takes for ever");
        for (unsigned n = 0; n < RINGS; n++)
            if (rings[n].accepted != last[n])
                accepted += rings[n].accepted == first ? 0 : std::max(1u, (rings[n].accepted - last[n])/LARGEST), last[n] = rings[n].accepted;
    }
    const uint64_t end = now, taken = words_taken;
    draining = true;
    if (!mode)
        for (unsigned n = 0; n < RINGS; n++) {
            while (!is_between())
                cycle();
            open_ring(n);
            cycle();
        }
    for (uint64_t until = now + 100000; now < until; )
        step(false);
    rings[0].is_open = rings[1].is_open = false;
    for (uint64_t until = now + 30000; now < until; )
        cycle();
    for (unsigned n = 0; n < RINGS; n++)
        check(to_probe.empty() && feeder.frame.empty() && rings[n].fetched == written(n), "something is stuck");
    Octets what;
    for (unsigned n = 0; n < 16; n++)
        put_word(what, access(top, n, false, 0, cycle));
    put_word(what, top.written0), put_word(what, top.written1);
    for (uint32_t word : memory)
        put_word(what, word);
    record('Z', what);
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", end - begin, accepted, feeder.lost, taken);
}
