// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Sends the streams of a port and writes what is on the PHY's octets.
//
// The file words is a list of pairs of 32-bit numbers, address and word, that the bus writes before the start, and reads back.
// Options: ``mask`` of streams, ``most`` frames (0: until the port is idle), and those of port.h, whose ``frames`` it writes. The
// output: sent, late, underruns, then sent, late, first_late of each stream, as the bus reads them at the end.

#include "port.h"

static void step() { cycle(); }

struct pair {
    uint32_t address, word;
};

static uint32_t read(uint32_t address) { return access(top, address, false, 0, step); }

static void bench()
{
    reset();
    const std::vector<pair> words = load<pair>("words");
    for (const pair &p : words)
        access(top, p.address, true, p.word, step);
    for (const pair &p : words) {
        const uint32_t found = read(p.address);
        check(found == p.word, "%08x reads %08x, not %08x", p.address, found, p.word);
    }
    top.streams_mask = option("mask");
    strobe(top.streams_arm);
    wait_until_ready();
    start();
    run(option("most"));
    printf("%u %u %u", top.sent, top.late, top.underruns);
    for (uint32_t stream = 0; stream < 16; stream++) {
        const uint32_t at = 4u << 16 | 4*stream;
        const uint64_t low = read(at), high = read(at + 1);
        printf(" %" PRIu64, high << 32 | low);
        for (uint32_t place = 2; place < 4; place++)
            printf(" %u", read(at + place));
    }
}
