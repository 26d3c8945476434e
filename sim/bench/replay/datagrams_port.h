// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// The memory of the rings, behind a port that takes bursts.

#pragma once

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "Vdatagram_bench.h"
#include "datagrams_wire.h"

constexpr unsigned RINGS = 2, WORDS = 2048, BASE = 0x40000;

static Vdatagram_bench top;
static uint64_t now;
static unsigned mode;

[[noreturn]] static void fail(const char *what)
{
    fprintf(stderr, "cycle %" PRIu64 ": %s\n", now, what);
    exit(1);
}

static uint32_t memory[RINGS*WORDS];
static uint64_t words_taken;

// Takes bursts; now and then it is busy with others for 300 cycles.
struct Port {
    unsigned busy = 0, left = 0, wait = 0, address = 0, run = 0;

    void before()
    {
        top.request_ready = !left && !busy;
        if (busy)
            busy--;
        top.takes = left && !wait;
    }
    void after(bool asked, uint32_t address_asked, uint32_t rest, uint32_t data, bool took)
    {
        if (took) {
            memory[address++ - BASE] = data;
            words_taken++;
            left--;
            run++;
            if (!left)
                busy = once_in(mode == 2 ? 0 : mode ? 100 : 40) ? 300 : mode ? 10 : below(8);
            else if (!mode && once_in(20))
                wait = 1 + below(12);
        } else if (wait) {
            wait--;
        }
        if (asked) {
            if (address_asked < BASE || address_asked + rest >= BASE + RINGS*WORDS || address_asked/64 != (address_asked + rest)/64)
                fail("a burst is out of its ring or its line");
            address = address_asked;
            left = rest + 1;
            wait = mode ? 0 : 1 + below(10);
        }
    }
};
static Port port;
