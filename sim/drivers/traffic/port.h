// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// A transmit port on the pins of ``top``: its clocks, the octets to its PHY, and how a program is started.
//
// The file ``frames`` gets, for each frame: tick of its SFD (64 bits), ``now`` in that tick (64), octets (32 bits) and, where option
// ``octets`` isn't 0, those octets from after the SFD to the end of TX_EN. A cycle of sys takes ``sys_ps`` ps; a tick 8000.

#pragma once

#include "../tools/harness.h"

static void step(); // A cycle of sys, with what is around the port.

// A tick: a bench whose PHY receives, too, has another clock in it.
#ifndef PULSE_TICK
#define PULSE_TICK() pulse(top.timebase_clk)
#endif

static uint64_t sys_ps, next_sys_ps = 1000, next_tick_ps, ticks, start_tick;
static FILE *frames;

static std::vector<uint8_t> octets;
static bool is_inside, with_octets, is_started;
static uint64_t sfd_tick, sfd_now, frame_count;

static void write_frame()
{
    put(frames, sfd_tick);
    put(frames, sfd_now);
    put(frames, (uint32_t)octets.size());
    if (with_octets)
        put(frames, octets);
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
    for (; next_sys_ps > next_tick_ps; look()) {
        PULSE_TICK();
        next_tick_ps += 8000;
        ticks++;
    }
    pulse(top.sys_clk);
    next_sys_ps += sys_ps;
    now++;
}

static void steps(uint32_t count)
{
    while (count--)
        step();
}

// Sets a pin for a cycle.
static void strobe(CData &pin)
{
    pin = 1;
    step();
    pin = 0;
}

static void reset()
{
    frames = output("frames");
    with_octets = option("octets", 1);
    sys_ps = option("sys_ps");
    top.sys_rst = top.timebase_rst = 1;
    steps(20);
    top.sys_rst = top.timebase_rst = 0;
    steps(20);
}

static void wait_until_ready()
{
    for (int k = 0; top.state != 2; k++) {
        check(k < 200000, "the port is not ready");
        step();
    }
}

static void start()
{
    start_tick = ticks;
    is_started = true;
    strobe(top.start_request);
    steps(50);
}

// Runs until the port is idle; it is stopped after ``most`` frames (0: never).
static void run(uint64_t most)
{
    while (top.state != 0) {
        top.stop = most && frame_count >= most;
        step();
    }
    steps(200);
}
