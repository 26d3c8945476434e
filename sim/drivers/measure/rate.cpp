// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Drives a clock and the rate meter of two ports by a script and writes what they did.
//
// The file script is a list of struct step, in the order of their cycles of sys (20 ns); timebase ticks each 8 ns, beside it. The
// file ticks gets a struct tick for each tick, shown a struct shown for each change of the number. It runs for ``cycles``.

#include "../tools/harness.h"

enum kind : uint32_t { FRAME, SET, ADJUST, INCREMENT, INTERVAL };

struct step {
    uint64_t cycle;
    uint64_t value;
    uint32_t kind;
    uint32_t port;
};

struct tick {
    uint64_t now;
    uint32_t is_tick;
    uint32_t is_stepped;
};

struct shown {
    uint64_t cycle;
    uint32_t number;
    uint32_t is_whole;
    uint32_t frames[2];
    uint32_t octets[2];
};

static void bench()
{
    FILE *ticks = output("ticks"), *shows = output("shown");
    const uint64_t cycles = option("cycles");
    uint64_t sys_ns = 3, timebase_ns = 0;
    uint32_t number = 0;
    bool sets = false, adjusts = false, stepped = false;
    const std::vector<step> steps = load<step>("script");
    auto next = steps.begin();
    top.increment = 8ull << 40;
    top.interval = 1000000000;
    top.sys_rst = top.timebase_rst = 1;
    while (now < cycles) {
        if (timebase_ns < sys_ns) {
            top.set = sets;
            top.adjust_apply = adjusts;
            stepped = sets || adjusts;
            sets = adjusts = false;
            top.eval();
            put(ticks, tick{top.now, top.tick, stepped});
            pulse(top.timebase_clk);
            timebase_ns += 8;
            continue;
        }
        if (now == 10)
            top.sys_rst = top.timebase_rst = 0;
        top.valid0 = top.valid1 = top.restart = 0;
        for (; next != steps.end() && next->cycle <= now; next++) {
            if (next->kind == FRAME && next->port == 0) {
                top.valid0 = 1;
                top.length0 = next->value;
            } else if (next->kind == FRAME) {
                top.valid1 = 1;
                top.length1 = next->value;
            } else if (next->kind == SET) {
                top.set_time = next->value;
                sets = true;
            } else if (next->kind == ADJUST) {
                top.adjust = next->value;
                adjusts = true;
            } else if (next->kind == INCREMENT) {
                top.increment = next->value;
            } else {
                top.interval = next->value;
                top.restart = 1;
            }
        }
        top.eval();
        if (top.number != number) {
            number = top.number;
            put(shows, shown{now, number, top.is_whole, {top.frames0, top.frames1}, {top.octets0, top.octets1}});
        }
        pulse(top.sys_clk);
        sys_ns += 20;
        now++;
    }
}
