// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Sends frames over a line of 10 Gb/s to the receiver and the parser after it, and writes the headers in the order of the frames.
//
// Records of the file frames: {u32 length; u32 bad_fcs; octets}. The file headers gets the words of headers. Options: ``gap``,
// octets of idle and terminate on the average; ``stall``: of 256 cycles, those in which nobody takes results, and up to 60 of them
// headers (at random). The output: "<frames> <headers> <lost> <cycles>". Ends with 1 when a header isn't of the frame whose result says so.

#include "../tools/harness.h"

static const int PARSERS = 4, WORDS = 32;

struct lane {
    CData &valid, &ready, &last;
    IData &data;
    std::deque<uint32_t> words;
};

struct result {
    unsigned parser, length, flags;
};

static std::vector<lane> lanes = {
    {top.header0_valid, top.header0_ready, top.header0_last, top.header0_data, {}},
    {top.header1_valid, top.header1_ready, top.header1_last, top.header1_data, {}},
    {top.header2_valid, top.header2_ready, top.header2_last, top.header2_data, {}},
    {top.header3_valid, top.header3_ready, top.header3_last, top.header3_data, {}},
};
static FILE *out;
static uint64_t words, lost, quiet, octets;
static unsigned stall;
static std::deque<result> results;

// Writes the headers whose turn it is.
static void write()
{
    while (!results.empty() && lanes[results.front().parser].words.size() >= WORDS) {
        auto &from = lanes[results.front().parser].words;
        check((from[2] & 0xffff) == results.front().length && (from[3] & 0xfff) == results.front().flags,
              "header of %u octets, result of %u", from[2] & 0xffff, results.front().length);
        for (int n = 0; n < WORDS; n++, words++) {
            put(out, from.front());
            from.pop_front();
        }
        results.pop_front();
    }
}

static void step()
{
    top.parsed_ready = !chance(stall);
    for (lane &one : lanes)
        one.ready = !chance(std::min(stall, 60u)); // So that headers are read as fast as they come.
    top.eval();
    if (top.parsed_valid && top.parsed_ready)
        results.push_back({top.parsed_number, top.parsed_length, top.parsed_flags});
    for (lane &one : lanes)
        if (one.valid && one.ready) {
            one.words.push_back(one.data);
            quiet = 0;
            check(one.last == (one.words.size() % WORDS == 0), "last is on word %zu", one.words.size());
        }
    write();
    lost += __builtin_popcount(top.lost);
    pulse(top.sys_clk);
    now++;
    quiet++;
}

static void put_octet(uint8_t octet, bool is_control)
{
    const int lane = octets++ % 8;
    if (lane == 0)
        top.rx_data = top.rx_control = 0;
    top.rx_data |= uint64_t(octet) << 8 * lane;
    top.rx_control |= is_control << lane;
    if (lane == 7)
        step();
}

static void idle(uint64_t count)
{
    while (count--)
        put_octet(0x07, true);
}

static void send(const std::vector<uint8_t> &frame, bool is_bad, unsigned gap)
{
    static uint64_t due; // Octet in which the next one may start, but for its column.
    due = std::max(due, octets);
    idle(due / 4 * 4 > octets ? due / 4 * 4 - octets : (4 - octets % 4) % 4);
    uint32_t crc = ~0u;
    put_octet(0xfb, true);
    for (int n = 0; n < 7; n++)
        put_octet(n < 6 ? 0x55 : 0xd5, false);
    for (const uint8_t octet : frame) {
        put_octet(octet, false);
        crc ^= octet;
        for (int n = 0; n < 8; n++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    crc = ~crc ^ (is_bad ? 0x100 : 0);
    for (int n = 0; n < 4; n++)
        put_octet(crc >> 8 * n, false);
    put_octet(0xfd, true);
    due += 8 + frame.size() + 4 + gap;
}

static void bench()
{
    FILE *in = opened("frames", "rb");
    out = output("headers");
    stall = option("stall");
    const unsigned gap = option("gap", 12);
    top.sys_rst = 1;
    idle(64);
    top.sys_rst = 0;
    idle(1024);
    const uint64_t begin = now;
    uint64_t frames = 0;
    std::vector<uint8_t> octets;
    for (struct { uint32_t length, is_bad; } head; get(in, head); frames++) {
        get(in, octets, head.length);
        send(octets, head.is_bad, gap);
    }
    const uint64_t end = now;
    quiet = 0;
    while (quiet < 1000)
        idle(8);
    check(results.empty() || lost, "%zu headers are missing", results.size());
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", frames, words / WORDS, lost, end - begin);
}
