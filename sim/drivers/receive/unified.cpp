// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Sends frames through the unified parser and writes what comes out.
//
// Records of the file frames: {u32 length; u32 errors; octets}, errors: bit 0 FCS, bit 1 symbol, bit 2 overflow. The file headers
// gets the words of headers. Option ``spacing``: least cycles from the end of a frame to the next frame's end; a frame's words come
// one a cycle (at least 1) or with idle cycles between them, two in five as at 50 MHz (0: the ends as at 1 Gb/s, runts no closer
// than shortest frames). ``stall``: of 256 cycles, those in which nobody takes words (at random). The output: "<frames> <headers>
// <lost> <cycles>". Ends with 1 when ``last`` isn't on the last word of a header.

#include "../tools/harness.h"

static FILE *out;
static uint64_t words, lost, quiet;
static unsigned stall;

static void step()
{
    top.source_ready = !chance(stall);
    top.eval();
    if (top.source_valid && top.source_ready) {
        put(out, top.source_data);
        words++;
        quiet = 0;
        check(top.source_last == (words % 32 == 0), "last is on word %" PRIu64, words);
    }
    lost += top.lost;
    pulse(top.sys_clk);
    now++;
    quiet++;
}

static void idle(uint64_t count)
{
    top.sink_valid = 0;
    while (count--)
        step();
}

static void send(const std::vector<uint8_t> &octets, uint32_t errors, unsigned spacing)
{
    static uint64_t end; // Of the last frame.
    const size_t length = octets.size();
    const uint64_t count = length ? (length + 3) / 4 : 1;
    const uint64_t least = spacing ? spacing : (length < 60 ? 60 + 24 : length + 24) * 10 / 25;
    const uint64_t takes = spacing ? count : count + count / 5 * 2 + (count % 5 > 1);
    if (now + takes < end + least)
        idle(end + least - now - takes);
    size_t at = 0;
    unsigned phase = 0;
    do {
        if (spacing == 0 && (phase++ % 5 == 1 || phase % 5 == 0))
            idle(1);
        uint32_t word = 0x5a5a5a5a; // What is after the end must not matter.
        for (size_t k = 0; k < 4 && at + k < length; k++) {
            word &= ~(0xffu << 8 * k);
            word |= (uint32_t)octets[at + k] << 8 * k;
        }
        const bool last = at + 4 >= length;
        top.sink_valid = 1;
        top.sink_data = word;
        top.sink_last = last;
        top.sink_last_be = last && length ? 1 << (length - at - 1) : 0;
        top.sink_fcs_error = last ? errors & 1 : 0;
        top.sink_symbol_error = last ? errors >> 1 & 1 : 0;
        top.sink_overflow = last ? errors >> 2 & 1 : 0;
        step();
        at += 4;
    } while (at < length);
    top.sink_valid = 0;
    end = now;
}

static void bench()
{
    FILE *in = opened("frames", "rb");
    out = output("headers");
    const unsigned spacing = option("spacing");
    stall = option("stall");
    top.sys_rst = 1;
    idle(4);
    top.sys_rst = 0;
    idle(4);
    uint64_t frames = 0;
    std::vector<uint8_t> octets;
    for (struct { uint32_t length, errors; } head; get(in, head); frames++) {
        get(in, octets, head.length);
        send(octets, head.errors, spacing);
    }
    quiet = 0;
    while (quiet < 1000)
        idle(1);
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", frames, words / 32, lost, now);
}
