// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Takes programs of configuration sets through their source, builds their frames, and writes what came.
//
// The file programs is a list of programs (sets.h). The file frames gets a struct frame for each descriptor that is taken, results
// for each program a struct result, a struct decision for each frame that the source chose, and the cycle in which each word was
// taken (64 bits). It ends with 1 where the source breaks a rule.

#include "../traffic/builder.h"
#include "sets.h"

struct decision {
    uint64_t cycle;
    int64_t elapsed;
    uint64_t is_repeat;
};

struct result {
    uint64_t cycles, frames, decisions, words, starved;
    uint32_t sets, repeats, underruns, first_underrun, error, is_over;
};

static const int64_t LEAD_TICKS = 2070; // Of the start of a program before its tick 0.

static std::vector<decision> decisions;
static std::vector<uint64_t> taken_words;
static bool is_running;
static uint64_t starved;

static int64_t elapsed() { return (int64_t)(elapsed_256 >> 8); }

static void clock_cycle()
{
    top.elapsed = (uint64_t)elapsed();
    top.source_ready = top.builds = top.header_re = 0;
    give_words(elapsed());
    answer_table();
    top.eval();
    build();
    top.eval();
    check(!top.collides, "a word of a header is written as it is read");
    const bool is_taken = top.source_valid && top.source_ready;
    if (top.word_valid && top.word_ready) {
        taken_words.push_back(now);
        word_taken();
    }
    ask_table();
    if (top.shows)
        decisions.push_back({now, elapsed(), top.is_repeat});
    starved += top.is_starved;
    pulse(top.sys_clk);
    if (is_taken)
        take_frame();
    top.arm = 0;
    is_running = is_running || top.is_primed;
    if (is_running)
        elapsed_256 += p.rate_256;
    now++;
}

static void begin(FILE *in)
{
    read_program(in);
    taken_words.clear();
    decisions.clear();
    starved = 0;
    is_running = false;
    stall_256 = rest_cycles = wait_cycles = 0;
    elapsed_256 = -((__int128)LEAD_TICKS << 8);
    for (uint32_t n = 0; n < p.headers; n++)
        access(top, n, true, header[n], clock_cycle);
    for (uint32_t n = 0; p.table_on_bus && n < p.entries; n++)
        access(top, 1 << 16 | n, true, table[n], clock_cycle);
    set_settings();
    top.template_length = p.length;
    top.interval = p.interval;
    top.fraction = p.fraction;
    top.count = p.count;
    for (int n = 0; n < 3; n++) // The intervals follow.
        clock_cycle();
    stall_256 = p.build_stall_256;
    rest_cycles = p.build_rest;
    wait_cycles = p.build_wait;
    top.arm = 1;
    clock_cycle();
}

static void run(FILE *results)
{
    const uint64_t begun = now, frames_before = taken_frames;
    bool final = false;
    while (now - begun < p.limit && !final) {
        top.stop = p.stop_at > -LEAD_TICKS && elapsed() >= p.stop_at;
        const uint64_t before = taken_frames;
        clock_cycle();
        final = taken_frames > before && present.flags & 1;
    }
    result r = {};
    r.cycles = now - begun;
    r.frames = taken_frames - frames_before;
    r.decisions = decisions.size();
    r.words = taken_words.size();
    r.starved = starved;
    r.sets = top.sets;
    r.repeats = top.repeats;
    r.underruns = top.underruns;
    r.first_underrun = top.first_underrun;
    r.error = top.error;
    r.is_over = final;
    // What is left over is stopped.
    top.stop = 1;
    for (int n = 0; n < 10000 && !final; n++) {
        const uint64_t before = taken_frames;
        clock_cycle();
        final = taken_frames > before && present.flags & 1;
    }
    check(!top.is_active && final, "the program does not stop");
    top.stop = 0;
    r.frames = taken_frames - frames_before;
    put(results, r);
    put(results, decisions);
    put(results, taken_words);
}

static void bench()
{
    FILE *in = opened("programs", "rb"), *results = output("results");
    frames = output("frames");
    top.sys_rst = 1;
    for (int k = 0; k < 4; k++)
        clock_cycle();
    top.sys_rst = 0;
    while (get(in, p)) {
        begin(in);
        run(results);
    }
}
