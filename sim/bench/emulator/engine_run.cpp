// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Takes the frames of a direction through an engine_bench, and writes what became of them.
//
// Usage: Vengine_bench SCRIPT VERDICTS DEPARTURES COUNTS. SCRIPT is a list of struct item, in any order but that a WRITE behind
// a SWITCH is done before that one. VERDICTS gets a struct verdict for each frame, DEPARTURES a struct departure, COUNTS the words
// of the counters at the end. The last line of the output is the number of cycles. It ends with 1 where the emulation breaks a
// rule: it hands a frame on too early, or stands still.
//
// Time goes on when the engine has done all that it can (rate 0), up to step_ticks at once, so that what becomes of a frame can't
// depend on when the engine came to it; or by a rate, whatever the engine does.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <vector>

#include "Vengine_bench.h"

static Vengine_bench top;
#include "../traffic/draw.h"

enum kind : uint32_t { SET, WRITE, FRAME, OPPORTUNITY, SWITCH, END };
enum parameter : uint32_t { STEP_TICKS, LAG_TICKS, STALL_256, RATE_256, ARRIVAL_TICKS, LEAD_TICKS, PARAMETERS };

struct item {
    uint32_t kind, a;
    uint64_t b;
};

struct verdict {
    uint32_t position;
    uint8_t keep, lane, outcome, number;
};

struct departure {
    uint64_t now;
    uint32_t due, position, bit;
    uint16_t length;
    uint8_t lane, number, twice, corrupt, mended, padding;
    uint32_t padding_end;
};

struct frame {
    uint64_t time;
    uint32_t length, number, lag;
};

struct change {
    uint64_t at;
    std::vector<item> writes;
};

struct freed {
    uint32_t lane, words;
};

struct lateness {
    uint32_t number, ticks;
    bool waited;
};

static uint64_t parameters[PARAMETERS];
static std::vector<item> writes, opportunities;
static std::vector<frame> frames;
static std::vector<change> changes;
static uint64_t end_tick;
static FILE *verdicts, *departures;

static uint64_t cycle, now_256, line_free, quiet_since, last_progress;
static size_t next_frame, next_opportunity, next_change, next_write, decided;
static std::deque<freed> to_free;
static std::deque<lateness> to_tell;
static uint32_t idle;
static bool was_freed, asks, is_started;

static uint64_t now() { return now_256 >> 8; }

[[noreturn]] static void fail(const char *what)
{
    fprintf(stderr, "cycle %lu, tick %lu: %s\n", (unsigned long)cycle, (unsigned long)now(), what);
    exit(1);
}

// Before the edge.

static bool frame_may_come()
{
    if (next_frame == frames.size())
        return false;
    const frame &f = frames[next_frame];
    const bool is_described = next_change == changes.size() || f.time < changes[next_change].at;
    return is_described && now() >= f.time + f.lag;
}

static void drive()
{
    top.now = now();
    top.arrivals_valid = is_started && frame_may_come();
    if (next_frame < frames.size()) {
        const frame &f = frames[next_frame];
        top.arrivals_time = f.time;
        top.arrivals_length = f.length;
        top.arrivals_number = f.number;
    }
    top.opportunities_valid = is_started && !opportunities.empty();
    if (!opportunities.empty()) {
        top.opportunities_ticks = opportunities[next_opportunity].a;
        top.opportunities_octets = (uint32_t)opportunities[next_opportunity].b;
    }
    top.verdicts_ready = draw(256) >= parameters[STALL_256];
    top.departures_ready = draw(256) >= parameters[STALL_256];
    top.freed = !was_freed && !to_free.empty();
    if (top.freed) {
        top.freed_lane = to_free.front().lane;
        top.freed_words = to_free.front().words;
        to_free.pop_front();
    }
    was_freed = top.freed;
    top.late_valid = !to_tell.empty();
    if (!to_tell.empty()) {
        top.late_number = to_tell.front().number;
        top.late_ticks = to_tell.front().ticks;
        top.late_waited = to_tell.front().waited;
    }
    top.switch_ask = 0;
    top.stb = 0;
    if (is_started && next_change < changes.size() && !top.switch_pending && !asks) {
        const change &c = changes[next_change];
        if (next_write < c.writes.size()) {
            top.stb = top.we = 1;
            top.adr = c.writes[next_write].a;
            top.dat_w = (uint32_t)c.writes[next_write].b;
        } else {
            top.switch_at = c.at;
            top.switch_ask = 1;
            asks = true;
        }
    } else {
        asks = false;
    }
}

// At the edge.

static void release(uint64_t due, uint32_t length, uint32_t number)
{
    // Only by a rate does the time pass while the engine works.
    const uint64_t ready = parameters[RATE_256] && now() > due ? now() : due;
    const uint64_t start = ready > line_free ? ready : line_free;
    if (start > due)
        to_tell.push_back({number, (uint32_t)(start - due), start > ready});
    line_free = start + length + 24;
}

static void take_departure()
{
    const int32_t ahead = (int32_t)(top.departures_due - (uint32_t)now());
    if (ahead > (int64_t)parameters[LEAD_TICKS])
        fail("a frame is handed on too early");
    departure d{};
    d.now = now();
    d.due = top.departures_due;
    d.position = top.departures_position;
    d.bit = top.departures_bit;
    d.length = top.departures_length;
    d.lane = top.departures_lane;
    d.number = top.departures_number;
    d.twice = top.departures_twice;
    d.corrupt = top.departures_corrupt;
    d.mended = top.departures_mended;
    fwrite(&d, sizeof d, 1, departures);
    to_free.push_back({d.lane, (d.length + 3u) / 4});
    for (int n = 0; n <= d.twice; n++)
        release(now() + ahead, d.length, d.number);
    quiet_since = last_progress = cycle;
}

static void take_verdict()
{
    const verdict v = {top.verdicts_position, top.verdicts_keep, top.verdicts_lane, top.counted_outcome, top.counted_number};
    if (!top.counted_arrives)
        fail("a verdict that is not counted");
    fwrite(&v, sizeof v, 1, verdicts);
    decided++;
    last_progress = cycle;
}

static void go_on()
{
    if (parameters[RATE_256]) {
        if (next_frame < frames.size() && now() > frames[next_frame].time + parameters[ARRIVAL_TICKS] - 8)
            fail("frames come faster than they are taken");
        if (now() < end_tick)
            now_256 += parameters[RATE_256];
        return;
    }
    if (idle < 3)
        return;
    uint64_t most = end_tick;
    if (next_frame < frames.size()) {
        const uint64_t at = frames[next_frame].time + frames[next_frame].lag;
        most = most < at ? most : at;
    }
    if (next_change < changes.size() && changes[next_change].at - 1 < most)
        most = changes[next_change].at - 1;
    if (now() >= most)
        return;
    uint64_t step = 1 + draw((uint32_t)parameters[STEP_TICKS]);
    if (step > most - now())
        step = most - now();
    now_256 += step << 8;
    idle = 0;
    quiet_since = last_progress = cycle;
}

static void clock_cycle()
{
    drive();
    top.eval();
    const bool comes = top.arrivals_valid && top.arrivals_ready;
    if (top.verdicts_valid && top.verdicts_ready)
        take_verdict();
    if (top.departures_valid && top.departures_ready)
        take_departure();
    if (top.opportunities_valid && top.opportunities_ready)
        next_opportunity = (next_opportunity + 1) % opportunities.size();
    if (top.late_valid && top.late_ready)
        to_tell.pop_front();
    if (top.stb && top.ack)
        next_write++;
    if (top.switch_ask) {
        next_change++;
        next_write = 0;
    }
    idle = top.is_empty && !comes && !top.switch_ask ? idle + top.is_idle : 0;
    top.sys_clk = 1;
    top.eval();
    top.sys_clk = 0;
    top.eval();
    top.start = 0;
    next_frame += comes;
    cycle++;
}

static uint32_t access_bus(uint32_t adr, bool we, uint32_t data)
{
    top.adr = adr;
    top.we = we;
    top.dat_w = data;
    top.stb = 1;
    top.eval();
    for (int n = 0; !top.ack; n++) {
        if (n == 10000)
            fail("no answer on the bus");
        top.sys_clk = 1;
        top.eval();
        top.sys_clk = 0;
        top.eval();
    }
    const uint32_t found = top.dat_r;
    top.sys_clk = 1;
    top.eval();
    top.stb = 0;
    top.sys_clk = 0;
    top.eval();
    return found;
}

static void read_script(FILE *script)
{
    item i;
    while (fread(&i, sizeof i, 1, script) == 1) {
        switch (i.kind) {
        case SET: parameters[i.a] = i.b; break;
        case WRITE: (changes.empty() ? writes : changes.back().writes).push_back(i); break;
        case FRAME:
            frames.push_back({i.b, i.a & 0xffff, i.a >> 16, draw((uint32_t)parameters[LAG_TICKS])});
            break;
        case OPPORTUNITY: opportunities.push_back(i); break;
        case SWITCH: changes.push_back({i.b, {}}); break;
        case END: end_tick = i.b; break;
        default: fail("an item of no kind");
        }
    }
}

int main(int argc, char **argv)
{
    FILE *script = argc == 5 ? fopen(argv[1], "rb") : nullptr;
    verdicts = argc == 5 ? fopen(argv[2], "wb") : nullptr;
    departures = argc == 5 ? fopen(argv[3], "wb") : nullptr;
    FILE *counts = argc == 5 ? fopen(argv[4], "wb") : nullptr;
    if (!script || !verdicts || !departures || !counts)
        return 2;
    read_script(script);
    top.sys_rst = 1;
    for (int k = 0; k < 4; k++) {
        top.sys_clk = 1;
        top.eval();
        top.sys_clk = 0;
        top.eval();
    }
    top.sys_rst = 0;
    for (const item &i : writes)
        access_bus(i.a, true, (uint32_t)i.b);
    top.start = 1;
    for (int k = 0; k < 1000; k++)
        clock_cycle();
    is_started = true;
    idle = 0;
    last_progress = quiet_since = cycle;
    while (now() < end_tick || next_frame < frames.size() || decided < frames.size() || idle < 3 || cycle - quiet_since < 1000) {
        if (cycle - last_progress > 200000)
            fail("it stands still");
        clock_cycle();
        go_on();
    }
    while (!to_tell.empty())
        clock_cycle();
    for (int k = 0; k < 100; k++)
        clock_cycle();
    top.freed = 0;
    for (uint32_t word = 0; word < 512; word++) {
        const uint32_t found = access_bus(1 << 16 | word, false, 0);
        fwrite(&found, 4, 1, counts);
    }
    printf("%lu\n", (unsigned long)cycle);
    return 0;
}
