// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Drives a rate_bench by a script and writes what it did.
//
// Usage: Vrate_bench SCRIPT TICKS SHOWN CYCLES. The script is a list of struct step, in the order of their cycles of sys (20 ns);
// timebase ticks each 8 ns, beside it. TICKS gets struct tick for each tick, SHOWN struct shown for each change of the number.

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "Vrate_bench.h"

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

static Vrate_bench top;

int main(int argc, char **argv)
{
    FILE *in = argc == 5 ? fopen(argv[1], "rb") : nullptr;
    FILE *ticks = argc == 5 ? fopen(argv[2], "wb") : nullptr;
    FILE *shows = argc == 5 ? fopen(argv[3], "wb") : nullptr;
    if (!in || !ticks || !shows)
        return 2;
    const uint64_t cycles = strtoull(argv[4], nullptr, 10);
    uint64_t sys_ns = 3, timebase_ns = 0, cycle = 0;
    uint32_t number = 0;
    bool sets = false, adjusts = false, stepped = false;
    step next;
    bool more = fread(&next, sizeof next, 1, in) == 1;
    top.pin_increment = 8ull << 40;
    top.pin_interval = 1000000000;
    top.sys_rst = top.timebase_rst = 1;
    while (cycle < cycles) {
        if (timebase_ns < sys_ns) {
            top.pin_set = sets;
            top.pin_adjust_apply = adjusts;
            stepped = sets || adjusts;
            sets = adjusts = false;
            top.eval();
            const tick t = {top.pin_now, top.pin_tick, stepped};
            fwrite(&t, sizeof t, 1, ticks);
            top.timebase_clk = 1;
            top.eval();
            top.timebase_clk = 0;
            top.eval();
            timebase_ns += 8;
            continue;
        }
        if (cycle == 10)
            top.sys_rst = top.timebase_rst = 0;
        top.pin_valid0 = top.pin_valid1 = top.pin_restart = 0;
        for (; more && next.cycle <= cycle; more = fread(&next, sizeof next, 1, in) == 1) {
            if (next.kind == FRAME && next.port == 0) {
                top.pin_valid0 = 1;
                top.pin_length0 = next.value;
            } else if (next.kind == FRAME) {
                top.pin_valid1 = 1;
                top.pin_length1 = next.value;
            } else if (next.kind == SET) {
                top.pin_set_time = next.value;
                sets = true;
            } else if (next.kind == ADJUST) {
                top.pin_adjust = next.value;
                adjusts = true;
            } else if (next.kind == INCREMENT) {
                top.pin_increment = next.value;
            } else {
                top.pin_interval = next.value;
                top.pin_restart = 1;
            }
        }
        top.eval();
        if (top.pin_number != number) {
            number = top.pin_number;
            const shown s = {cycle, number, top.pin_is_whole, {top.pin_frames0, top.pin_frames1},
                             {top.pin_octets0, top.pin_octets1}};
            fwrite(&s, sizeof s, 1, shows);
        }
        top.sys_clk = 1;
        top.eval();
        top.sys_clk = 0;
        top.eval();
        sys_ns += 20;
        cycle++;
    }
    fclose(ticks);
    fclose(shows);
    return 0;
}
