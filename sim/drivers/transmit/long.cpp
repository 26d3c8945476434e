// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Runs one program on both ports at once, for trains too long for cocotb; the clocks are asynchronous, a tick is 8 ns.
//
// Options: length, count, repeats, ticks, fraction, gap, and sys_half_ps, half a period of ``sys``. The file starts<n> of port n gets
// the ticks at which TX_EN rose and fell (64 bits each). Output: a line "<sent> <late> <underruns>" for each port.

#include "../tools/harness.h"

static uint64_t sys_half_ps, next_sys_ps, next_tick_ps = 4000, ticks;
static FILE *starts[2];
static bool was_valid[2];

static void look(int port, bool is_valid)
{
    if (is_valid != was_valid[port])
        put(starts[port], ticks);
    was_valid[port] = is_valid;
}

static void step()
{
    for (; next_tick_ps <= next_sys_ps; next_tick_ps += 8000, ticks++) {
        pulse(top.timebase_clk);
        look(0, top.p0_tx_valid);
        look(1, top.p1_tx_valid);
    }
    pulse(top.sys_clk);
    next_sys_ps += 2 * sys_half_ps;
    now++;
}

static void steps(int count)
{
    while (count--)
        step();
}

#define SET(n) \
    top.p##n##_length = option("length"); \
    top.p##n##_count = option("count"); \
    top.p##n##_repeats = option("repeats"); \
    top.p##n##_interval_ticks = option("ticks"); \
    top.p##n##_interval_fraction = option("fraction"); \
    top.p##n##_gap_ticks = option("gap"); \
    top.p##n##_fill = 2; \
    top.p##n##_payload_offset = 42; \
    starts[n] = output("starts" #n);

static void bench()
{
    sys_half_ps = option("sys_half_ps");
    SET(0)
    SET(1)
    top.start_mask = 3;
    top.increment = 8ull << 40;
    top.sys_rst = top.timebase_rst = 1;
    steps(20);
    top.sys_rst = top.timebase_rst = 0;
    steps(10);
    top.p0_arm = top.p1_arm = 1;
    step();
    top.p0_arm = top.p1_arm = 0;
    steps(100);
    top.start_request = 1;
    step();
    top.start_request = 0;
    while (top.p0_state || top.p1_state)
        step();
    steps(100);
    printf("%u %u %u\n%u %u %u\n", top.p0_sent, top.p0_late, top.p0_underruns, top.p1_sent, top.p1_late, top.p1_underruns);
}
