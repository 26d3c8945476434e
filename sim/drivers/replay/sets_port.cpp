// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Sends the frames of configuration sets and writes what is on the PHY's octets.
//
// The file program is one of sets.h, with ticks since the start; its headers are written by the bus. ``frames`` and options are as of
// ../traffic/port.cpp. The output: sent, late, underruns, then of the sets: sets, repeats, underruns, first_underrun, error, words
// taken.

#include "../traffic/port.h"
#include "sets.h"

static void step()
{
    give_words(is_started ? (int64_t)(ticks - start_tick) : -1);
    answer_table();
    top.eval();
    const bool is_taken = top.word_valid && top.word_ready;
    ask_table();
    cycle();
    if (is_taken)
        word_taken();
}

static void bench()
{
    reset();
    FILE *in = opened("program", "rb");
    get(in, p);
    read_program(in);
    for (uint32_t n = 0; n < p.headers; n++)
        access(top, 3u << 16 | n, true, header[n], step);
    set_settings();
    top.program_interval = p.interval;
    top.program_fraction = p.fraction;
    top.program_count = p.count;
    top.program_repeats = 1;
    top.program_length = p.length;
    strobe(top.sets_arm);
    wait_until_ready();
    start();
    run(option("most"));
    printf("%u %u %u %u %u %u %u %u %zu\n", top.sent, top.late, top.underruns, top.sets_sets, top.sets_repeats,
        top.sets_underruns, top.sets_first_underrun, top.sets_error, given);
}
