// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// What stands around a capture_bench: staging of the ports, buses, the SDRAM chip.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "Vcapture_bench.h"

namespace {

constexpr unsigned PORTS = 2, CHANNELS = 8, CHANNEL_WORDS = 16, BLOCK = 368, REST = 28;
enum Word { BASE, BLOCKS, READ, SENT, WRITTEN, DROPPED, TAKEN };
constexpr uint64_t QUIET = 400000;

Vcapture_bench top;
uint64_t now; // Cycles of sys.

#include "../memory/checks.h" // It uses now.

uint32_t noise = 1;

bool chance(unsigned of_256)
{
    noise ^= noise << 13;
    noise ^= noise >> 17;
    noise ^= noise << 5;
    return (noise >> 8 & 255) < of_256;
}

} // namespace

#include "../memory/chip.h" // It uses check().

namespace {

// Staging of a port -----------------------------------------------------------------------------------

FILE *order; // Gets the number of each record in RECORDS, in the order in which they were taken; not of those that a capture that ends throws away.

struct Record {
    uint64_t cycle;
    uint32_t number, flags, head[4];
    std::vector<uint32_t> header, words;
};

// The pins of one port.
struct Pins {
    CData &valid, &ready, &has_header, &lost, &skip, &header_valid, &header_ready, &header_last, &data_valid, &data_ready, &data_last;
    SData &words;
    IData &head0, &head1, &head2, &head3, &header, &data;
};

#define PINS(p) {top.p##_descriptor_valid, top.p##_descriptor_ready, top.p##_descriptor_has_header, top.p##_descriptor_lost, top.p##_skip, \
    top.p##_header_valid, top.p##_header_ready, top.p##_header_last, top.p##_data_valid, top.p##_data_ready, top.p##_data_last, \
    top.p##_descriptor_words, top.p##_descriptor_head0, top.p##_descriptor_head1, top.p##_descriptor_head2, top.p##_descriptor_head3, \
    top.p##_header_data, top.p##_data_data}

struct Staging {
    Pins pins;
    std::deque<Record> records, waiting;
    size_t used = 0, header_at = 0, data_at = 0;
    bool is_open = false; // A descriptor was taken.
    unsigned pause = 0;
    uint64_t missed = 0, overflowed = 0;
    bool stalls_header = false, stalls_data = false;

    void arrive(size_t room, size_t places)
    {
        while (!records.empty() && records.front().cycle <= now) {
            Record &record = records.front();
            if (waiting.size() >= places) {
                missed++;
            } else {
                if (used + record.words.size() > room && !(record.flags & 2)) {
                    record.flags |= 2;
                    overflowed++;
                }
                if (record.flags & 2)
                    record.words.clear();
                used += record.words.size();
                waiting.push_back(std::move(record));
            }
            records.pop_front();
        }
    }

    void drive(unsigned stall)
    {
        bool has = !waiting.empty();
        pins.valid = has && !is_open && !pause;
        if (has) {
            const Record &record = waiting.front();
            pins.has_header = record.flags & 1;
            pins.lost = record.flags >> 1 & 1;
            pins.words = record.words.size();
            pins.head0 = record.head[0];
            pins.head1 = record.head[1];
            pins.head2 = record.head[2];
            pins.head3 = record.head[3];
            // A word that was shown stays.
            stalls_header = stalls_header && chance(stall);
            stalls_data = stalls_data && chance(stall);
            pins.header_valid = is_open && header_at < record.header.size() && !stalls_header;
            pins.data_valid = is_open && data_at < record.words.size() && !stalls_data;
            pins.header = pins.header_valid ? record.header[header_at] : 0xbad0bad0;
            pins.data = pins.data_valid ? record.words[data_at] : 0xbad1bad1;
            pins.header_last = header_at + 1 == record.header.size();
            pins.data_last = data_at + 1 == record.words.size();
        } else {
            pins.header_valid = pins.data_valid = 0;
        }
    }

    void pop()
    {
        if (order && !top.discards)
            fwrite(&waiting.front().number, 4, 1, order);
        used -= waiting.front().words.size();
        waiting.pop_front();
        is_open = false;
        header_at = data_at = 0;
    }

    void sample()
    {
        if (pause)
            pause--;
        if (pins.valid && pins.ready) {
            check(!pins.lost || pins.skip, "a lost record was taken without skip");
            if (pins.skip) {
                pop();
                pause = 2;
                return;
            }
            is_open = true;
        }
        if (pins.header_valid && pins.header_ready) {
            header_at++;
            stalls_header = true;
        }
        if (pins.data_valid && pins.data_ready) {
            check(header_at == waiting.front().header.size(), "octets were taken before the header");
            data_at++;
            stalls_data = true;
        }
        if (is_open && header_at == waiting.front().header.size() && data_at == waiting.front().words.size())
            pop();
    }
};

Staging staging[PORTS] = {{PINS(p0), {}, {}}, {PINS(p1), {}, {}}};

// A bus -----------------------------------------------------------------------------------------------

struct Access {
    uint32_t address, data;
    bool write;
    std::function<void(uint32_t)> then;
};

struct Bus {
    IData &address, &dat_w;
    CData &we, &stb, &ack;
    IData &dat_r;
    std::deque<Access> queue;
    uint64_t began = 0, worst = 0, total = 0, count = 0;

    void drive()
    {
        if (queue.empty()) {
            stb = 0;
            return;
        }
        if (!stb)
            began = now;
        stb = 1;
        we = queue.front().write;
        address = queue.front().address;
        dat_w = queue.front().data;
    }

    void sample()
    {
        if (!stb || !ack)
            return;
        uint64_t took = now - began;
        worst = std::max(worst, took);
        total += took;
        count++;
        Access access = std::move(queue.front());
        queue.pop_front();
        if (access.then)
            access.then(dat_r);
        began = now + 1;
    }
};

#define BUS(p) {top.p##_adr, top.p##_dat_w, top.p##_we, top.p##_stb, top.p##_ack, top.p##_dat_r, {}}

Bus table = BUS(table), ring = BUS(ring), cpu = BUS(cpu);

void set(unsigned channel, Word word, uint32_t value) { table.queue.push_back({channel * CHANNEL_WORDS + word, value, true, nullptr}); }

void get(unsigned channel, Word word, std::function<void(uint32_t)> then)
{
    table.queue.push_back({channel * CHANNEL_WORDS + word, 0, false, std::move(then)});
}

// The chip --------------------------------------------------------------------------------------------

SdramChip<Vcapture_bench> *chip;

} // namespace
