// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Streams words to the rings of a datagram receiver over a hostile network, and writes what happened.
//
// Usage: Vdatagram_bench LOG SEED DATAGRAMS MODE FIRST. MODE 0: hostile. 1: datagrams of 365 words back to back at 1 Gb/s and 50 MHz.
// 2: as fast as they are taken. It ends when so many datagrams were accepted, and all of them are in the rings.
//
// LOG is a list of records: kind (32 bits), cycle (32), octets that follow (32). F: a frame's last word was taken (fetched 0, 1,
// keeps, held, lease, then the frame). O, C: ring, words of the frame that were taken, session. P: a frame of ``source``. S: the
// first word of an answer is shown. A: an answer (fetched 0, 1, keeps, then the frame). Z: 16 counts, written 0, 1, rings.
// The output's last line: cycles, datagrams accepted, frames that the store lost, words taken by the memory.

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "datagrams_hosts.h"

constexpr uint64_t FRAME_OCTETS = 8 + 42 + 12 + 4*LARGEST + 4 + 12; // On the line, with preamble, FCS and gap.

static FILE *out;

static void record(char kind, const Octets &octets)
{
    const uint32_t head[3] = {uint32_t(kind), uint32_t(now), uint32_t(octets.size())};
    fwrite(head, 4, 3, out);
    fwrite(octets.data(), 1, octets.size(), out);
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
    top.sys_clk = 0;
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
    if (asked && !top.request_write)
        fail("a burst that reads");
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
    top.sys_clk = 1;
    top.eval();
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

static uint32_t read_count(unsigned place)
{
    top.adr = place;
    top.stb = 1;
    do
        cycle();
    while (!top.ack);
    const uint32_t found = top.dat_r;
    top.stb = 0;
    cycle();
    return found;
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    out = fopen(argv[1], "wb");
    generator.seed(strtoull(argv[2], nullptr, 0));
    const uint64_t wanted = strtoull(argv[3], nullptr, 0);
    mode = strtoul(argv[4], nullptr, 0);
    first = strtoul(argv[5], nullptr, 0);
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
        if (now > limit)
            fail("it takes for ever");
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
        if (!to_probe.empty() || !feeder.frame.empty() || rings[n].fetched != written(n))
            fail("something is stuck");
    Octets what;
    for (unsigned n = 0; n < 16; n++)
        put_word(what, read_count(n));
    put_word(what, top.written0), put_word(what, top.written1);
    for (uint32_t word : memory)
        put_word(what, word);
    record('Z', what);
    fclose(out);
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", end - begin, accepted, feeder.lost, taken);
    return 0;
}
