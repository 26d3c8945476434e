// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Sends the streams of a port and writes what is on the PHY's octets.
//
// Usage: Vport_bench WORDS FRAMES MASK MOST SYS_PS OCTETS. WORDS is a list of pairs of 32-bit numbers, address and word, that the
// bus writes before the start, and reads back. FRAMES gets, for each frame: tick of its SFD (64 bits), ``now`` in that tick (64),
// octets (32 bits) and those octets from behind the SFD to the end of TX_EN. With OCTETS 0 no octets
// follow. It ends when the port is idle, or stops the port after MOST frames (0: never). A cycle of sys takes SYS_PS ps; a tick 8000. The output's last line: sent, late,
// underruns, then sent, late, first_late of each stream, as the bus reads them at the end.

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "Vport_bench.h"

static Vport_bench top;
static uint64_t sys_ps, next_sys_ps, next_tick_ps, ticks;
static FILE *frames;

static std::vector<uint8_t> octets;
static bool is_inside, with_octets;
static uint64_t sfd_tick, sfd_now, frame_count;

static void write_frame()
{
    const uint32_t length = octets.size();
    fwrite(&sfd_tick, 8, 1, frames);
    fwrite(&sfd_now, 8, 1, frames);
    fwrite(&length, 4, 1, frames);
    if (with_octets)
        fwrite(octets.data(), 1, length, frames);
    frame_count++;
}

// What stands on the pins in the tick that begins.
static void look()
{
    if (!top.tx_valid) {
        if (is_inside)
            write_frame();
        is_inside = false;
        return;
    }
    if (is_inside) {
        octets.push_back(top.tx_data);
    } else if (top.tx_data == 0xd5) {
        is_inside = true;
        octets.clear();
        sfd_tick = ticks;
        sfd_now = top.now;
    }
}

// Runs until sys has had one more cycle.
static void cycle()
{
    while (true) {
        if (next_sys_ps <= next_tick_ps) {
            top.sys_clk = 1;
            top.eval();
            top.sys_clk = 0;
            top.eval();
            next_sys_ps += sys_ps;
            return;
        }
        top.timebase_clk = 1;
        top.eval();
        top.timebase_clk = 0;
        top.eval();
        next_tick_ps += 8000;
        ticks++;
        look();
    }
}

static uint32_t access(uint32_t address, uint32_t word, bool is_write)
{
    top.adr = address;
    top.dat_w = word;
    top.we = is_write;
    top.stb = 1;
    top.eval();
    for (int k = 0; !top.ack; k++) {
        if (k == 10000) {
            fprintf(stderr, "no answer of the bus at %08x\n", address);
            exit(1);
        }
        cycle();
        top.eval();
    }
    const uint32_t found = top.dat_r;
    cycle();
    top.stb = 0;
    top.we = 0;
    cycle();
    return found;
}

static void load(const char *name)
{
    FILE *in = fopen(name, "rb");
    uint32_t pair[2];
    std::vector<std::pair<uint32_t, uint32_t>> words;
    while (in && fread(pair, 8, 1, in) == 1)
        words.push_back({pair[0], pair[1]});
    for (auto &[address, word] : words)
        access(address, word, true);
    for (auto &[address, word] : words) {
        const uint32_t found = access(address, 0, false);
        if (found != word) {
            fprintf(stderr, "%08x reads %08x, not %08x\n", address, found, word);
            exit(1);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 7)
        return 2;
    frames = fopen(argv[2], "wb");
    const uint64_t most = strtoull(argv[4], nullptr, 0);
    with_octets = strtoul(argv[6], nullptr, 0);
    sys_ps = strtoull(argv[5], nullptr, 0);
    next_sys_ps = 1000;
    top.sys_rst = top.timebase_rst = 1;
    for (int k = 0; k < 20; k++)
        cycle();
    top.sys_rst = top.timebase_rst = 0;
    for (int k = 0; k < 20; k++)
        cycle();
    load(argv[1]);
    top.streams_mask = strtoul(argv[3], nullptr, 0);
    top.streams_arm = 1;
    cycle();
    top.streams_arm = 0;
    for (int k = 0; top.state != 2; k++) {
        if (k == 100000) {
            fprintf(stderr, "the port is not ready\n");
            return 1;
        }
        cycle();
    }
    top.start_request = 1;
    cycle();
    top.start_request = 0;
    for (int k = 0; k < 50; k++)
        cycle();
    while (top.state != 0) {
        top.stop = most && frame_count >= most;
        cycle();
    }
    for (int k = 0; k < 200; k++)
        cycle();
    fclose(frames);
    printf("%u %u %u", top.sent, top.late, top.underruns);
    for (uint32_t stream = 0; stream < 16; stream++) {
        const uint64_t low = access(4u << 28 | (4*stream), 0, false), high = access(4u << 28 | (4*stream + 1), 0, false);
        const uint32_t late = access(4u << 28 | (4*stream + 2), 0, false), first = access(4u << 28 | (4*stream + 3), 0, false);
        printf(" %" PRIu64 " %u %u", high << 32 | low, late, first);
    }
    printf("\n");
    return 0;
}
