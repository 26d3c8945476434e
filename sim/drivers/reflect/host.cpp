// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Plays octets into a port with a host, lets a program run beside it, and writes what leaves.
//
// Files: ``wire``, records {u32 idle octet times before; u32 count; octets}; ``settings``, words {enable, rate, time of two words};
// ``memory``, pairs {u32 address, u32 word} that the bus writes before
// the start (bit 31 of the address: into send, later, after so many octets of ``wire`` as the word says in its upper 24 bits).
// Written: ``arrivals``, {u64 tick; u64 now} of each SFD that came; ``left``, the words of the memory at the end; and those of
// port.h. Options: ``length``, ``count``, ``interval`` of a train that is sent (count 0: none), ``tail``, ticks after the last octet.

#define PULSE_TICK() pulse_both()
static void pulse_both();

#include "../traffic/port.h"

static std::vector<uint8_t> content;
static size_t place;
static uint32_t idle, left_octets;
static bool plays, has_sfd;
static FILE *arrivals;

static void play()
{
    while (!idle && !left_octets) {
        if (place == content.size()) {
            plays = false;
            break;
        }
        uint32_t head[2];
        memcpy(head, &content[place], 8);
        place += 8;
        idle = head[0];
        left_octets = head[1];
        has_sfd = false;
    }
    top.rx_valid = 0;
    if (!plays)
        return;
    if (idle) {
        idle--;
        return;
    }
    const uint8_t octet = content[place++];
    left_octets--;
    top.rx_valid = 1;
    top.rx_data = octet;
    if (!has_sfd && octet == 0xd5) {
        has_sfd = true;
        put(arrivals, ticks);
        put(arrivals, (uint64_t)top.now);
    }
}

// Both clocks are one.
static void pulse_both()
{
    if (plays)
        play();
    top.eval();
    top.eth_rx_clk = top.timebase_clk = 1;
    top.eval();
    top.eth_rx_clk = top.timebase_clk = 0;
    top.eval();
}

static void step() { cycle(); }

struct pair {
    uint32_t address, word;
};

static void bench()
{
    content = load<uint8_t>("wire");
    arrivals = output("arrivals");
    top.eth_rx_rst = 1;
    reset();
    top.eth_rx_rst = 0;
    steps(300); // The clock of the seconds has divided.
    const std::vector<uint32_t> s = load<uint32_t>("settings");
    top.enable = s[0];
    top.rate = s[1];
    top.set_time = (uint64_t)s[2] << 32 | s[3];
    top.set_clock = 1;
    steps(4);
    top.set_clock = 0;
    steps(300);
    std::vector<pair> sends;
    for (const pair &p : load<pair>("memory"))
        if (p.address >> 31)
            sends.push_back(p);
        else
            access(top, p.address, true, p.word, step);
    const uint32_t count = option("count");
    if (count) {
        top.program_length = option("length");
        top.program_count = count;
        top.program_interval = option("interval");
        steps(2);
        strobe(top.arm);
        wait_until_ready();
        start();
    }
    plays = true;
    size_t sent = 0;
    while (plays) {
        if (sent < sends.size() && place >= sends[sent].address - (1u << 31)) {
            top.send_octets = sends[sent++].word;
            strobe(top.send);
        }
        step();
    }
    steps(option("tail", 4000));
    for (int k = 0; count && top.state != 0; k++)
        step();
    steps(2000);
    FILE *left = output("left");
    for (uint32_t n = 0; n < 1024; n++)
        put(left, access(top, n, false, 0, step));
    printf("%u %u %u %u", top.sent, top.late, top.underruns, top.management_dropped);
}
