// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Sends frames that are due at any times; writes where they start on the line.
//
// The file frames holds structs frame in the order of their times. The file starts gets the place of each start, in octets (64 bits).
// Output: "<sent> <late>".

#include "../tools/harness.h"

struct [[gnu::packed]] frame {
    uint64_t due;
    uint32_t length;
};

static void bench()
{
    const std::vector<frame> frames = load<frame>("frames");
    FILE *starts = output("starts");
    uint64_t moved = 0;
    size_t next = 0, seen = 0;
    top.timebase_rst = 1;
    pulse(top.timebase_clk);
    pulse(top.timebase_clk);
    top.timebase_rst = 0;
    top.descriptor_header_words = 12;
    top.runs = 1;
    for (; seen < frames.size(); now++) {
        top.descriptor_valid = next < frames.size();
        if (top.descriptor_valid) {
            top.descriptor_due = frames[next].due;
            top.descriptor_length = frames[next].length;
            top.descriptor_sequence = next;
        }
        top.eval();
        for (int lane = 0; lane < 8; lane += 4)
            if ((top.tx_control >> lane & 1) && (top.tx_data >> 8 * lane & 0xff) == 0xfb) {
                put(starts, uint64_t(8 * now + lane));
                moved = now;
                seen++;
            }
        if (top.descriptor_valid && top.descriptor_ready)
            next++;
        check(now < moved + 10000000, "nothing leaves");
        pulse(top.timebase_clk);
    }
    printf("%u %u\n", top.sent_count, top.late_count);
}
