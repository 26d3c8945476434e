// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Two clocks, and the meter of what is on a PHY's octets: for a bench whose ``top`` has the pins sys_clk, timebase_clk, tx_valid,
// tx_data and now. Include it behind the definition of ``top``.
//
// The file ``frames`` gets, for each frame: tick of its SFD (64 bits), ``now`` in that tick (64), octets (32 bits) and, where
// ``with_octets``, those octets from behind the SFD to the end of TX_EN. A cycle of sys takes ``sys_ps`` ps; a tick 8000.

#pragma once

#include <cstdint>
#include <cstdio>
#include <vector>

static uint64_t sys_ps, next_sys_ps, next_tick_ps, ticks;
static FILE *frames;

static std::vector<uint8_t> octets;
static bool is_inside, with_octets;
static uint64_t sfd_tick, sfd_now, frame_count;

static void write_frame()
{
    const uint32_t length = octets.size();
    fwrite(&sfd_tick, 8, 1, frames);
    fwrite(&sfd_now, 8, 1, frames);
    fwrite(&length, 4, 1, frames);
    if (with_octets)
        fwrite(octets.data(), 1, length, frames);
    frame_count++;
}

// What stands on the pins in the tick that begins.
static void look()
{
    if (!top.tx_valid) {
        if (is_inside)
            write_frame();
        is_inside = false;
        return;
    }
    if (is_inside) {
        octets.push_back(top.tx_data);
    } else if (top.tx_data == 0xd5) {
        is_inside = true;
        octets.clear();
        sfd_tick = ticks;
        sfd_now = top.now;
    }
}

// Runs until sys has had one more cycle.
static void cycle()
{
    while (true) {
        if (next_sys_ps <= next_tick_ps) {
            top.sys_clk = 1;
            top.eval();
            top.sys_clk = 0;
            top.eval();
            next_sys_ps += sys_ps;
            return;
        }
        top.timebase_clk = 1;
        top.eval();
        top.timebase_clk = 0;
        top.eval();
        next_tick_ps += 8000;
        ticks++;
        look();
    }
}
