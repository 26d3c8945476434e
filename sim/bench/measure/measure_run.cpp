// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Drives a measure_bench by a script and writes what the bus reads.
//
// Usage: Vmeasure_bench SCRIPT WORDS SLOTS. The script is a list of struct step, in the order of their cycles; a step later than
// its turn ends the run with 1. WORDS gets what each READ reads, in their order: of each slot 32 words of accumulators, or 128
// of bins; and behind bins a word that says whether they are saturated. The last line of the output is the number of cycles.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>

#include "Vmeasure_bench.h"

enum kind : uint32_t { FRAME, LATCH, CLEAR, SET, READ_STREAMS, READ_BINS };
enum is : uint8_t { PROBE = 1, PASSED = 2, BARE = 4 };

struct step {
    uint64_t cycle;
    uint64_t stamp;
    uint64_t tx_stamp;
    uint32_t kind;
    uint32_t sequence;
    uint16_t length;
    uint16_t flags;
    uint16_t stream_id;
    uint16_t is;
    uint32_t bit_errors;
    uint32_t unused;
    // SET: stamp is the origin of delays, sequence that of arrivals, length that of lengths, flags the shifts (5 bits each,
    // length lowest), stream_id the base, PASSED measure_passed, bit_errors the slots of prbs.
};

static Vmeasure_bench top;
static FILE *out;
static uint64_t cycle;
static uint32_t slots;
static std::deque<uint32_t> asked;
static const uint32_t SATURATED = 0xffffffff;

static void clock_cycle()
{
    if (!asked.empty() && asked.front() == SATURATED) {
        const uint32_t word = top.saturated;
        fwrite(&word, 4, 1, out);
        asked.pop_front();
    }
    top.stb = !asked.empty();
    if (top.stb)
        top.adr = asked.front();
    top.eval();
    if (top.stb && top.ack) {
        const uint32_t word = top.dat_r;
        fwrite(&word, 4, 1, out);
        asked.pop_front();
    }
    top.sys_clk = 1;
    top.eval();
    top.sys_clk = 0;
    top.eval();
    top.frame_valid = top.latch = top.clear = 0;
    cycle++;
}

static void apply(const step &s)
{
    switch (s.kind) {
    case FRAME:
        top.frame_valid = 1;
        top.frame_stamp = s.stamp;
        top.frame_tx_stamp = s.tx_stamp;
        top.frame_sequence = s.sequence;
        top.frame_length = s.length;
        top.frame_flags = s.flags;
        top.frame_stream_id = s.stream_id;
        top.frame_is_probe = !!(s.is & PROBE);
        top.frame_passed = !!(s.is & PASSED);
        top.frame_is_bare = !!(s.is & BARE);
        top.frame_bit_errors = s.bit_errors;
        break;
    case LATCH:
        top.latch = 1;
        break;
    case CLEAR:
        top.clear = 1;
        break;
    case SET:
        top.delay_origin = s.stamp;
        top.arrival_origin = s.sequence;
        top.length_origin = s.length;
        top.length_shift = s.flags & 31;
        top.delay_shift = s.flags >> 5 & 31;
        top.arrival_shift = s.flags >> 10 & 31;
        top.stream_base = s.stream_id;
        top.measure_passed = !!(s.is & PASSED);
        top.prbs = s.bit_errors;
        break;
    case READ_STREAMS:
        for (uint32_t k = 0; k < 32 * slots; k++)
            asked.push_back(k);
        break;
    case READ_BINS:
        for (uint32_t k = 0; k < 128 * slots; k++)
            asked.push_back(1 << 16 | k);
        asked.push_back(SATURATED);
        break;
    default:
        fprintf(stderr, "step of kind %u\n", s.kind);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    FILE *in = argc == 4 ? fopen(argv[1], "rb") : nullptr;
    out = argc == 4 ? fopen(argv[2], "wb") : nullptr;
    if (!in || !out)
        return 2;
    slots = atoi(argv[3]);
    top.sys_rst = 1;
    for (int k = 0; k < 4; k++)
        clock_cycle();
    top.sys_rst = 0;
    cycle = 0;
    step s;
    while (fread(&s, sizeof s, 1, in) == 1) {
        if (s.cycle < cycle) {
            fprintf(stderr, "step of cycle %lu comes at %lu\n", (unsigned long)s.cycle, (unsigned long)cycle);
            return 1;
        }
        while (cycle < s.cycle)
            clock_cycle();
        apply(s);
    }
    for (uint64_t end = cycle + 1000000; !asked.empty() && cycle < end;)
        clock_cycle();
    fclose(out);
    printf("%lu\n", (unsigned long)cycle);
    return asked.empty() ? 0 : 1;
}
