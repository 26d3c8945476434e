// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// What is around a source of configuration sets on the pins of ``top``: a reader of the ring that gives words when they are there,
// and a port of the SDRAM that answers for the table.

#pragma once

#include "../tools/harness.h"

// After it in a file: its header words, table words and arrivals.
struct program {
    uint64_t places;
    int64_t stop_at; // Tick; less than the first one: never.
    uint64_t limit;  // Cycles.
    uint32_t described[4];
    uint32_t length, fields, repeats_allowed, prime, interval, fraction, count;
    uint32_t rate_256;  // Ticks a cycle, 2^-8.
    uint32_t stall_256; // Of 256 cycles so many have no word.
    uint32_t build_stall_256, build_rest, build_wait;
    uint32_t latency, slow_256, slow_latency; // Of the table, cycles at most; of 256 answers so many are slow.
    uint32_t headers, entries, words;
    uint32_t table_on_bus;
    uint32_t address; // Of the table at the port.
};

struct arrival {
    int64_t tick;
    uint32_t word, unused;
};

static program p;
static std::vector<uint32_t> header, table, entries; // ``entries``: of the SDRAM, until others are written.
static std::vector<arrival> arrivals;
static bool word_shown, asked_table;
static size_t there, given;
static uint32_t asked_entry, answer_in;

// ``p`` was read.
static void read_program(FILE *in)
{
    get(in, header, p.headers);
    get(in, table, p.entries);
    get(in, arrivals, p.words);
    if (p.entries && !p.table_on_bus)
        entries = table;
    there = given = 0;
    word_shown = false;
}

static void set_settings()
{
    top.template_0 = p.described[0];
    top.template_1 = p.described[1];
    top.template_2 = p.described[2];
    top.template_3 = p.described[3];
    top.places = p.places;
    top.fields = p.fields;
    top.first_repeats_allowed = p.repeats_allowed;
    top.prime = p.prime;
}

static void give_words(int64_t tick)
{
    while (there < arrivals.size() && arrivals[there].tick <= tick)
        there++;
    top.written = there;
    if (!word_shown)
        word_shown = given < there && draw(256) >= p.stall_256;
    top.word_valid = word_shown;
    top.word_data = word_shown ? arrivals[given].word : draw(0x7fffffff);
}

static void word_taken()
{
    given++;
    word_shown = false;
}

// One request at a time.
static void answer_table()
{
    top.gives = 0;
    top.read_data = draw(0x7fffffff);
    top.request_ready = !asked_table && draw(4) != 0;
    if (asked_table && --answer_in == 0) {
        top.gives = 1;
        top.read_data = asked_entry < entries.size() ? entries[asked_entry] : 0;
        asked_table = false;
    }
}

// Takes a request before the edge of the clock.
static void ask_table()
{
    if (!top.request_valid || !top.request_ready)
        return;
    check(!top.request_rest && !top.request_write, "the table is asked for more than a word");
    asked_table = true;
    asked_entry = top.request_address - p.address;
    answer_in = 4 + draw(draw(256) < p.slow_256 ? p.slow_latency : p.latency);
}
