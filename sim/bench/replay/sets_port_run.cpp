// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Sends the frames of configuration sets and writes what is on the PHY's octets.
//
// Usage: Vsets_port_bench PROGRAM FRAMES MOST SYS_PS OCTETS. PROGRAM is one of sets.h, with ticks since the start; its headers are
// written by the bus. FRAMES, MOST, SYS_PS and OCTETS are as of port_run.cpp. The output's last line: sent, late, underruns,
// then of the sets: sets, repeats, underruns, first_underrun, error, words taken.

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "Vsets_port_bench.h"

static Vsets_port_bench top;
#include "../traffic/port.h"
#include "sets.h"

static bool is_started;
static uint64_t start_tick;

static void sets_cycle()
{
    give_words(is_started ? (int64_t)(ticks - start_tick) : -1);
    answer_table();
    top.eval();
    const bool is_taken = top.word_valid && top.word_ready;
    if (!ask_table()) {
        fprintf(stderr, "the table is asked for more than a word");
        exit(1);
    }
    cycle();
    if (is_taken)
        word_taken();
}

int main(int argc, char **argv)
{
    FILE *in = argc == 6 ? fopen(argv[1], "rb") : nullptr;
    frames = argc == 6 ? fopen(argv[2], "wb") : nullptr;
    if (!in || !frames)
        return 2;
    const uint64_t most = strtoull(argv[3], nullptr, 0);
    sys_ps = strtoull(argv[4], nullptr, 0);
    with_octets = strtoul(argv[5], nullptr, 0);
    reset();
    read(in, &p, sizeof p, 1);
    read_program(in);
    for (uint32_t n = 0; n < p.headers; n++)
        access(3u << 28 | n, header[n], true);
    set_settings();
    top.program_interval = p.interval;
    top.program_fraction = p.fraction;
    top.program_count = p.count;
    top.program_repeats = 1;
    top.program_length = p.length;
    top.sets_arm = 1;
    sets_cycle();
    top.sets_arm = 0;
    for (int k = 0; top.state != 2; k++) {
        if (k == 100000) {
            fprintf(stderr, "the port is not ready\n");
            return 1;
        }
        sets_cycle();
    }
    top.start_request = 1;
    sets_cycle();
    top.start_request = 0;
    is_started = true;
    start_tick = ticks;
    for (int k = 0; k < 50; k++)
        sets_cycle();
    while (top.state != 0) {
        top.stop = most && frame_count >= most;
        sets_cycle();
    }
    for (int k = 0; k < 200; k++)
        cycle();
    fclose(frames);
    printf("%u %u %u %u %u %u %u %u %zu\n", top.sent, top.late, top.underruns, top.sets_sets, top.sets_repeats,
        top.sets_underruns, top.sets_first_underrun, top.sets_error, given);
    return 0;
}
