// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Drives the meters of a port by a script and writes what the bus reads.
//
// The file script is a list of struct step, in the order of their cycles; a step later than its turn ends the run with 1. The file
// words gets what each READ reads, in their order: of each of the option ``slots`` 32 words of accumulators, or 128 of bins; and
// after bins a word that says whether they are saturated. The output is the number of cycles.

#include "../tools/harness.h"

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

static FILE *out;
static uint32_t slots;
static std::deque<uint32_t> asked;
static const uint32_t SATURATED = 0xffffffff;

static void clock_cycle()
{
    if (!asked.empty() && asked.front() == SATURATED) {
        put(out, (uint32_t)top.saturated);
        asked.pop_front();
    }
    top.stb = !asked.empty();
    if (top.stb)
        top.adr = asked.front();
    top.eval();
    if (top.stb && top.ack) {
        put(out, top.dat_r);
        asked.pop_front();
    }
    pulse(top.sys_clk);
    top.frame_valid = top.latch = top.clear = 0;
    now++;
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
        fail("a step of kind %u", s.kind);
    }
}

static void bench()
{
    out = output("words");
    slots = option("slots");
    top.sys_rst = 1;
    for (int k = 0; k < 4; k++)
        clock_cycle();
    top.sys_rst = 0;
    now = 0;
    for (const step &s : load<step>("script")) {
        check(s.cycle >= now, "the step of cycle %" PRIu64 " comes late", s.cycle);
        while (now < s.cycle)
            clock_cycle();
        apply(s);
    }
    for (const uint64_t end = now + 1000000; !asked.empty();) {
        check(now < end, "words are left");
        clock_cycle();
    }
    printf("%" PRIu64 "\n", now);
}
