// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Takes the frames of a direction through an engine_bench, and writes what became of them.
//
// The file script is a list of struct item, in any order but that a WRITE after a SWITCH is done before that one. The file verdicts
// gets a struct verdict for each frame, departures a struct departure, counts the words of the counters at the end. The output is the
// number of cycles. It ends with 1 where the emulation breaks a rule: it hands a frame on too early, or stands still.
//
// Time goes on when the engine has done all that it can (rate 0), up to step_ticks at once, so that what becomes of a frame can't
// depend on when the engine came to it; or by a rate, whatever the engine does. With AGAIN all begins anew after so many cycles,
// whatever is under way.

#include "../tools/harness.h"

enum kind : uint32_t { SET, WRITE, FRAME, OPPORTUNITY, SWITCH, END };
enum parameter : uint32_t { STEP_TICKS, LAG_TICKS, STALL_256, RATE_256, ARRIVAL_TICKS, LEAD_TICKS, MEMORY_CYCLES, MEMORY_256, AGAIN, PARAMETERS };

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
    uint8_t lane, number, twice, corrupt, mended, marked;
    uint32_t ip;
};

struct frame {
    uint64_t time;
    uint32_t length, number, lag, ecn;
};

struct change {
    uint64_t at;
    std::vector<item> writes;
};

struct freed {
    uint32_t lane, words;
};

struct burst {
    bool write;
    uint32_t address, left;
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

static uint64_t now_256, line_free, quiet_since, last_progress;
static size_t next_frame, next_opportunity, next_change, next_write, decided;
static std::deque<freed> to_free;
static std::deque<lateness> late;
static uint32_t idle;
static std::vector<uint32_t> memory(1 << 20);
static std::deque<burst> bursts;
static uint64_t burst_at;
static bool was_freed, asks, is_started;

static uint64_t tick() { return now_256 >> 8; }

// Memory: bursts one after the other, each after a while, and with gaps.

static void drive_memory()
{
    const bool may = !bursts.empty() && now >= burst_at && !chance(parameters[MEMORY_256]);
    top.memory_takes = may && bursts.front().write;
    top.memory_gives = may && !bursts.front().write;
    top.memory_ready = bursts.size() < 8 && (bursts.empty() || !bursts.back().write);
    top.memory_read_data = may ? memory.at(bursts.front().address) : draw();
}

static void clock_memory()
{
    if (top.memory_takes)
        memory.at(bursts.front().address) = top.memory_write_data;
    if (top.memory_takes || top.memory_gives) {
        bursts.front().address++;
        if (bursts.front().left-- == 0) {
            bursts.pop_front();
            burst_at = now + draw(parameters[MEMORY_CYCLES]);
        }
    }
    if (top.memory_valid && top.memory_ready) {
        check(top.memory_address / 256 == (top.memory_address + top.memory_rest) / 256, "a burst goes beyond a row");
        if (bursts.empty())
            burst_at = now + draw(parameters[MEMORY_CYCLES]);
        bursts.push_back({top.memory_write != 0, top.memory_address, top.memory_rest});
    }
}

// Before the edge.

static bool frame_may_come()
{
    if (next_frame == frames.size())
        return false;
    const frame &f = frames[next_frame];
    const bool is_described = next_change == changes.size() || f.time < changes[next_change].at;
    return is_described && tick() >= f.time + f.lag;
}

static void drive()
{
    top.now = tick();
    top.arrivals_valid = is_started && frame_may_come();
    if (next_frame < frames.size()) {
        const frame &f = frames[next_frame];
        top.arrivals_time = f.time;
        top.arrivals_length = f.length;
        top.arrivals_number = f.number;
        top.arrivals_ect = f.ecn & 1;
        top.arrivals_ip = f.ecn >> 1;
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
    top.late_valid = !late.empty();
    if (!late.empty()) {
        top.late_number = late.front().number;
        top.late_ticks = late.front().ticks;
        top.late_waited = late.front().waited;
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
    const uint64_t ready = parameters[RATE_256] && tick() > due ? tick() : due;
    const uint64_t start = ready > line_free ? ready : line_free;
    if (start > due)
        late.push_back({number, (uint32_t)(start - due), start > ready});
    line_free = start + length + 24;
}

static void take_departure()
{
    const int32_t ahead = (int32_t)(top.departures_due - (uint32_t)tick());
    check(ahead <= (int64_t)parameters[LEAD_TICKS], "a frame is handed on too early");
    departure d{};
    d.now = tick();
    d.due = top.departures_due;
    d.position = top.departures_position;
    d.bit = top.departures_bit;
    d.length = top.departures_length;
    d.lane = top.departures_lane;
    d.number = top.departures_number;
    d.twice = top.departures_twice;
    d.corrupt = top.departures_corrupt;
    d.mended = top.departures_mended;
    d.marked = top.departures_marked;
    d.ip = top.departures_ip;
    to_free.push_back({d.lane, (d.length + 3u) / 4});
    if (top.departures_gone) { // It was dropped at its turn.
        last_progress = now;
        return;
    }
    put(departures, d);
    for (int n = 0; n <= d.twice; n++)
        release(tick() + ahead, d.length, d.number);
    quiet_since = last_progress = now;
}

static void take_verdict()
{
    const verdict v = {top.verdicts_position, top.verdicts_keep, top.verdicts_lane, top.counted_outcome, top.counted_number};
    check(top.counted_arrives, "a verdict that is not counted");
    put(verdicts, v);
    decided++;
    last_progress = now;
}

static void go_on()
{
    if (parameters[RATE_256]) {
        if (next_frame < frames.size() && tick() > frames[next_frame].time + parameters[ARRIVAL_TICKS] - 8)
            fail("frames come faster than they are taken");
        if (tick() < end_tick)
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
    if (tick() >= most)
        return;
    uint64_t step = 1 + draw((uint32_t)parameters[STEP_TICKS]);
    if (step > most - tick())
        step = most - tick();
    now_256 += step << 8;
    idle = 0;
    quiet_since = last_progress = now;
}

static void clock_cycle()
{
    drive();
    drive_memory();
    top.eval();
    const bool comes = top.arrivals_valid && top.arrivals_ready;
    if (top.verdicts_valid && top.verdicts_ready)
        take_verdict();
    if (top.departures_valid && top.departures_ready)
        take_departure();
    if (top.opportunities_valid && top.opportunities_ready)
        next_opportunity = (next_opportunity + 1) % opportunities.size();
    if (top.late_valid && top.late_ready)
        late.pop_front();
    if (top.stb && top.ack)
        next_write++;
    if (top.switch_ask) {
        next_change++;
        next_write = 0;
    }
    idle = top.is_empty && !comes && !top.switch_ask ? idle + top.is_idle : 0;
    clock_memory();
    pulse(top.sys_clk);
    top.start = 0;
    next_frame += comes;
    now++;
}

static void still() { pulse(top.sys_clk); } // A cycle in which no time passes.

static void read_script()
{
    for (const item &i : load<item>("script")) {
        switch (i.kind) {
        case SET: parameters[i.a] = i.b; break;
        case WRITE: (changes.empty() ? writes : changes.back().writes).push_back(i); break;
        case FRAME:
            frames.push_back(
                {i.b, i.a & 0xffff, i.a >> 16 & 15, draw((uint32_t)parameters[LAG_TICKS]), i.a >> 20});
            break;
        case OPPORTUNITY: opportunities.push_back(i); break;
        case SWITCH: changes.push_back({i.b, {}}); break;
        case END: end_tick = i.b; break;
        default: fail("an item of no kind");
        }
    }
}

static void begin()
{
    drive_memory();
    top.start = 1;
    top.arrivals_valid = top.verdicts_ready = top.departures_ready = top.freed = 0;
    top.eval();
    clock_memory();
    pulse(top.sys_clk);
    top.start = 0;
    now++;
    for (FILE *file : {verdicts, departures})
        if (file)
            fclose(file);
    verdicts = output("verdicts");
    departures = output("departures");
    now_256 = line_free = next_frame = next_opportunity = decided = 0;
    to_free.clear();
    late.clear();
    is_started = was_freed = false;
    for (int k = 0; k < 1000; k++)
        clock_cycle();
    is_started = true;
    idle = 0;
    last_progress = quiet_since = now;
}

static void bench()
{
    read_script();
    top.sys_rst = 1;
    for (int k = 0; k < 4; k++)
        still();
    top.sys_rst = 0;
    for (const item &i : writes)
        access(top, i.a, true, (uint32_t)i.b, still);
    if (parameters[AGAIN]) {
        begin();
        for (uint64_t k = 0; k < parameters[AGAIN]; k++) {
            clock_cycle();
            go_on();
        }
    }
    begin();
    const uint64_t quiet = 1000 + 16 * parameters[MEMORY_CYCLES];
    while (tick() < end_tick || next_frame < frames.size() || decided < frames.size() || idle < 3 || now - quiet_since < quiet) {
        check(now - last_progress <= 200000, "it stands still");
        clock_cycle();
        go_on();
    }
    while (!late.empty())
        clock_cycle();
    for (int k = 0; k < 100; k++)
        clock_cycle();
    top.freed = 0;
    FILE *counts = output("counts");
    for (uint32_t word = 0; word < 512; word++)
        put(counts, access(top, 1 << 16 | word, false, 0, still));
    printf("%" PRIu64 "\n", now);
}
