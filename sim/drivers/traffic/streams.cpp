// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Drives a source of streams by a script, builds its frames, and writes what came.
//
// The file script is a list of struct command, obeyed in their order; those that take time let the clock run. The file frames gets
// a struct frame for each descriptor that is taken, reads the words that READ reads. The output is the number of cycles. It ends
// with 1 where the source breaks a rule: a descriptor that changes while it waits, a header that is written as it is read.

#include "builder.h"

enum kind : uint32_t {
    WRITE, READ, ARM, PRIMED, CLOCK, STOP, HOLD, BEGIN, END, CYCLES, FRAMES, BUILDER, BACKGROUND, FOREVER, IDLE,
};

struct command {
    uint32_t kind;
    uint32_t a;
    uint64_t b;
};

struct bus_access { // Of the bus, in the background.
    uint32_t adr;
    uint32_t data;    // What is there.
    bool may_change; // To anything.
};

static FILE *reads;
static uint64_t rate_256;

// Bus.

static std::vector<bus_access> background;
static uint32_t background_256;
static bool bus_busy, bus_answers;
static uint32_t bus_word;
static const bus_access *checked; // What the bus reads, where that is known.

static void use_bus(uint32_t adr, bool we, uint32_t data)
{
    bus_busy = true;
    top.stb = 1;
    top.we = we;
    top.adr = adr;
    top.dat_w = data;
}

static void clock_cycle()
{
    if (!bus_busy && draw(256) < background_256) {
        checked = nullptr;
        if (background.empty() || !draw(4)) {
            use_bus(draw(4) << 16 | draw(512), false, 0);
        } else {
            bus_access &a = background[draw(background.size())];
            const bool we = draw(2);
            if (we && a.may_change)
                a.data = (uint32_t)noise;
            use_bus(a.adr, we, a.data);
            checked = we ? nullptr : &a;
        }
    }
    top.elapsed = (uint64_t)(elapsed_256 >> 8);
    top.source_ready = top.builds = top.header_re = 0;
    top.eval();
    build();
    top.eval();
    check(!top.collides, "a word of a header is written as it is read");
    const bool is_taken = top.source_valid && top.source_ready;
    const bool is_acknowledged = top.stb && top.ack;
    if (is_acknowledged) {
        bus_word = top.dat_r;
        if (checked)
            check(bus_word == checked->data, "the bus reads another word than it wrote: at %05x %08x, not %08x", checked->adr, bus_word,
                checked->data);
        checked = nullptr;
    }
    pulse(top.sys_clk);
    if (is_taken)
        take_frame();
    if (is_acknowledged) {
        top.stb = 0;
        bus_busy = false;
    }
    bus_answers = is_acknowledged;
    top.arm = 0;
    top.begin_ = top.end_ = 0;
    elapsed_256 += rate_256;
    now++;
}

static void access_bus(uint32_t adr, bool we, uint32_t data)
{
    while (bus_busy)
        clock_cycle();
    use_bus(adr, we, data);
    const uint32_t before = background_256;
    background_256 = 0;
    for (uint32_t n = 0; !n || !bus_answers; n++) {
        check(n <= 100000, "no answer on the bus");
        clock_cycle();
    }
    background_256 = before;
}

static void run(uint64_t cycles, uint64_t count)
{
    const uint64_t last = taken_frames + count;
    for (uint64_t n = 0; n < cycles && taken_frames < last && top.is_active; n++)
        clock_cycle();
}

static void obey(const command &c)
{
    switch (c.kind) {
    case WRITE:
        access_bus(c.a, true, c.b);
        break;
    case READ:
        access_bus(c.a, false, 0);
        put(reads, bus_word);
        break;
    case ARM:
        top.arm = 1;
        top.mask = c.a;
        clock_cycle();
        break;
    case PRIMED: // Within so many cycles.
        for (uint32_t n = 0; !top.is_primed; n++) {
            check(n < c.a, "not primed");
            clock_cycle();
        }
        break;
    case CLOCK: // Ticks a cycle (2^-8), and from which tick on; a rate of 0 stands still.
        rate_256 = c.a;
        elapsed_256 = (__int128)(int64_t)c.b << 8;
        break;
    case STOP:
        top.stop = c.a;
        break;
    case HOLD:
        top.hold = c.a;
        break;
    case BEGIN:
        top.begin_ = c.a;
        clock_cycle();
        break;
    case END:
        top.end_ = c.a;
        clock_cycle();
        break;
    case CYCLES:
        for (uint64_t n = 0; n < c.b; n++)
            clock_cycle();
        break;
    case FRAMES: // At most; within so many cycles.
        run(c.b, c.a);
        break;
    case BUILDER:
        stall_256 = c.a & 0xff;
        rest_cycles = c.a >> 8 & 0xfff;
        wait_cycles = c.a >> 20;
        break;
    case BACKGROUND: // Accesses of 256 cycles, most of what FOREVER gives.
        background_256 = c.a;
        break;
    case FOREVER: // A word that may be written at any time, to what it is or (bit 32) to anything.
        background.push_back({c.a, (uint32_t)c.b, (c.b >> 32 & 1) != 0});
        break;
    case IDLE: // Within so many cycles.
        run(c.b, UINT64_MAX / 2);
        check(!top.is_active, "the program does not end");
        break;
    default:
        fail("a command of kind %u", c.kind);
    }
}

static void bench()
{
    frames = output("frames");
    reads = output("reads");
    top.sys_rst = 1;
    for (int k = 0; k < 4; k++)
        clock_cycle();
    top.sys_rst = 0;
    now = 0;
    for (const command &c : load<command>("script"))
        obey(c);
    printf("%" PRIu64 "\n", now);
}
