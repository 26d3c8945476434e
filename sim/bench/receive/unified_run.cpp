// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Sends frames through a unified_bench and writes what comes out.
//
// Usage: Vunified_bench FRAMES HEADERS SPACING STALL. Records of FRAMES: {u32 length; u32 errors; octets}, errors: bit 0 FCS,
// bit 1 symbol, bit 2 overflow. SPACING: least cycles from the end of a frame to the next frame's end; a frame's words come
// one a cycle (SPACING at least 1) or with idle cycles between them, two in five as at 50 MHz (0: the ends as at 1 Gb/s, runts
// no closer than shortest frames). STALL: of 256 cycles,
// those in which nobody takes words (at random). HEADERS gets their words. The last line of the output: "<frames> <headers>
// <lost> <cycles>". Ends with 1 when nothing has come out for 100000 cycles.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "Vunified_bench.h"

static Vunified_bench top;
static FILE *out;
static uint64_t cycles, words, lost, quiet;
static unsigned stall;
static uint32_t noise = 1;

static void step()
{
    noise ^= noise << 13;
    noise ^= noise >> 17;
    noise ^= noise << 5;
    top.source_ready = (noise & 255) >= stall;
    top.eval();
    if (top.source_valid && top.source_ready) {
        const uint32_t word = top.source_data;
        fwrite(&word, 4, 1, out);
        words++;
        quiet = 0;
        if (top.source_last != (words % 32 == 0)) {
            fprintf(stderr, "last is on word %lu\n", (unsigned long)words);
            exit(1);
        }
    }
    lost += top.lost;
    top.sys_clk = 1;
    top.eval();
    top.sys_clk = 0;
    top.eval();
    cycles++;
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
    if (cycles + takes < end + least)
        idle(end + least - cycles - takes);
    size_t at = 0;
    unsigned phase = 0;
    do {
        if (spacing == 0 && (phase++ % 5 == 1 || phase % 5 == 0))
            idle(1);
        uint32_t word = 0x5a5a5a5a; // What is behind the end must not matter.
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
    end = cycles;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    FILE *in = fopen(argv[1], "rb");
    out = fopen(argv[2], "wb");
    if (!in || !out)
        return 2;
    const unsigned spacing = atoi(argv[3]);
    stall = atoi(argv[4]);
    top.sys_rst = 1;
    idle(4);
    top.sys_rst = 0;
    idle(4);
    uint64_t frames = 0;
    uint32_t head[2];
    std::vector<uint8_t> octets;
    while (fread(head, 4, 2, in) == 2) {
        octets.resize(head[0]);
        if (head[0] && fread(octets.data(), 1, head[0], in) != head[0])
            return 2;
        send(octets, head[1], spacing);
        frames++;
    }
    quiet = 0;
    while (quiet < 1000)
        idle(1);
    fclose(out);
    printf("%lu %lu %lu %lu\n", (unsigned long)frames, (unsigned long)words / 32, (unsigned long)lost, (unsigned long)cycles);
    return 0;
}
