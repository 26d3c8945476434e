// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Sends frames through the parser and the rules of an emulator, and writes the class of each.
//
// Records of the file work: {u32 kind; u32 a; u32 b}. Kind 0: word a of the rules' memory is b. Kind 1: rule_words is a; before
// that these words are written, and read again. Kind 2: a frame of a octets follows, which are whole words. Frames come as at
// 1 Gb/s with sys at 50 MHz, the shortest ones back to back; where ``spacing`` is given, their ends are so many cycles apart at
// least, and a word comes in each. Words of the file classes: the class of each frame. The output: cycles from the end of a frame to
// its class, least and most.

#include "../tools/harness.h"

static FILE *out;
static std::deque<uint64_t> ends;
static uint64_t least = UINT64_MAX, most;

static void step()
{
    top.eval();
    if (top.done) {
        check(!ends.empty(), "a class of no frame");
        const uint64_t took = now - ends.front();
        ends.pop_front();
        least = std::min(least, took);
        most = std::max(most, took);
        put(out, (uint32_t)top.number);
    }
    pulse(top.sys_clk);
    now++;
}

static void idle(uint64_t count)
{
    top.sink_valid = 0;
    while (count--)
        step();
}

static void send(const std::vector<uint8_t> &octets, uint32_t length, unsigned spacing)
{
    static uint64_t end; // Of the last frame.
    const uint64_t count = octets.size() / 4;
    const uint64_t apart = spacing ? spacing : (length + 24) * 10 / 25;
    const uint64_t takes = spacing ? count : count + count / 5 * 2 + (count % 5 > 1);
    if (now + takes < end + apart)
        idle(end + apart - now - takes);
    for (size_t at = 0, phase = 0; at < count; at++) {
        if (!spacing && (phase++ % 5 == 1 || phase % 5 == 0))
            idle(1);
        memcpy(&top.sink_data, &octets[4 * at], 4);
        top.sink_valid = 1;
        top.sink_last = at + 1 == count;
        top.sink_last_be = top.sink_last ? 1 << ((length - 1) & 3) : 0;
        if (top.sink_last)
            ends.push_back(now);
        step();
    }
    top.sink_valid = 0;
    end = now;
}

static void bench()
{
    FILE *in = opened("work", "rb");
    out = output("classes");
    const unsigned spacing = option("spacing");
    top.sys_rst = 1;
    idle(4);
    top.sys_rst = 0;
    idle(4);
    std::vector<uint8_t> octets;
    std::map<uint32_t, uint32_t> written;
    for (struct { uint32_t kind, a, b; } one; get(in, one);) {
        if (one.kind < 2)
            while (!ends.empty()) // Rules are still while frames come.
                idle(1);
        if (one.kind == 0)
            written[one.a] = one.b;
        else if (one.kind == 1) {
            top.looks = 0;
            for (const auto &[address, word] : written)
                access(top, address, true, word, step);
            for (const auto &[address, word] : written) {
                const uint32_t found = access(top, address, false, 0, step);
                check(found == word, "word %u is %08x, not %08x", address, found, word);
            }
            written.clear();
            top.looks = one.a;
        }
        else {
            get(in, octets, (one.a + 3) / 4 * 4);
            send(octets, one.a, spacing);
        }
    }
    while (!ends.empty())
        idle(1);
    printf("%" PRIu64 " %" PRIu64 "\n", least, most);
}
