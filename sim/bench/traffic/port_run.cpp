// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Sends the streams of a port and writes what is on the PHY's octets.
//
// Usage: Vport_bench WORDS FRAMES MASK MOST SYS_PS OCTETS. WORDS is a list of pairs of 32-bit numbers, address and word, that the
// bus writes before the start, and reads back. FRAMES gets all frames as port_meter.h says, with OCTETS 0 without their octets.
// It ends when the port is idle, or stops the port after MOST frames (0: never). A cycle of sys takes SYS_PS ps; a tick 8000. The output's last line: sent, late,
// underruns, then sent, late, first_late of each stream, as the bus reads them at the end.

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "Vport_bench.h"

static Vport_bench top;
#include "port.h"

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
    reset();
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
