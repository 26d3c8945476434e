// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Runs programs of trains on a port of 10 Gb/s, one after the other; writes what left, and judges nothing.
//
// The file programs holds structs program, header a list of 16 words of 64 bits. Written are sent, a struct xgmii a cycle, and sfds, a
// struct sfd for each. Output: a line "<sent> <late>" for each program.

#include "../tools/harness.h"

struct [[gnu::packed]] xgmii {
    uint64_t data;
    uint8_t control;
};

struct program {
    uint32_t count, repeats, interval, fraction, gap, length, header_words, fill;
    uint32_t stop_after; // Cycles; 0: never.
    uint32_t wait;       // Cycles before it starts.
};

struct [[gnu::packed]] sfd {
    uint64_t cycle, now;
    uint32_t fraction; // 2^-32 ns.
    uint32_t is_high;
};

static FILE *sent, *sfds;

static void step()
{
    top.eval();
    put(sent, xgmii{top.tx_data, top.tx_control});
    if (top.tx_sfd)
        put(sfds, sfd{now, top.now, uint32_t(top.fraction >> 8), top.tx_sfd_high});
    pulse(top.timebase_clk);
    top.start = top.stop = 0;
    now++;
}

static void bench()
{
    sent = output("sent");
    sfds = output("sfds");
    top.increment = option("increment");
    top.timebase_rst = 1;
    pulse(top.timebase_clk);
    pulse(top.timebase_clk);
    top.timebase_rst = 0;
    top.header_we = 1;
    for (const uint64_t word : load<uint64_t>("header")) {
        top.header_dat_w = word;
        step();
        top.header_adr++;
    }
    top.header_we = 0;
    top.set_time = option("time");
    top.set = 1;
    step();
    top.set = 0;
    for (const program &one : load<program>("programs")) {
        top.count = one.count;
        top.repeats = one.repeats;
        top.interval = one.interval;
        top.fraction_of_interval = one.fraction;
        top.gap = one.gap;
        top.length = one.length;
        top.header_words = one.header_words;
        top.fill = one.fill;
        for (uint32_t n = 0; n < one.wait + 8; n++)
            step();
        top.start = 1;
        step();
        const uint64_t begin = now;
        do {
            top.stop = one.stop_after && now - begin == one.stop_after;
            step();
            top.eval();
        } while (top.is_running);
        printf("%u %u\n", top.sent_count, top.late_count);
    }
    for (int n = 0; n < 64; n++)
        step();
}
