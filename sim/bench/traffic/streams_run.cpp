// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Drives a streams_bench by a script, builds its frames, and writes what came.
//
// Usage: Vstreams_bench SCRIPT FRAMES READS. The script is a list of struct command, obeyed in their order; those that take
// time let the clock run. FRAMES gets a struct frame for each descriptor that is taken, READS the words that READ reads. The
// last line of the output is the number of cycles. It ends with 1 where the source breaks a rule: a descriptor that changes
// while it waits, a header that is written as it is read.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "Vstreams_bench.h"

enum kind : uint32_t {
    WRITE, READ, ARM, PRIMED, CLOCK, STOP, HOLD, BEGIN, END, CYCLES, FRAMES, BUILDER, BACKGROUND, FOREVER, IDLE,
};

struct command {
    uint32_t kind;
    uint32_t a;
    uint64_t b;
};

struct frame {
    uint64_t shown; // Cycle in which it was there.
    uint64_t taken;
    int64_t elapsed; // When it was there.
    int64_t due;
    uint32_t sequence;
    uint32_t seed; // checksum_seed
    uint16_t length;
    uint8_t stream, flags, header_words, with_probe, fill, payload_offset; // flags: 1 final, 2 empty
    uint8_t checksum_enable, stamp_enable, stamp_offset, stamp_octets, stamp_shift, stamp_nibble, stamp_mend, padding;
    uint32_t header[32];
};

struct bus_access { // Of the bus, in the background.
    uint32_t adr;
    uint32_t data;    // What is there.
    bool may_change; // To anything.
};

static Vstreams_bench top;
static FILE *frames, *reads;
static uint64_t cycle, taken_frames;
static __int128 elapsed_256; // 2^-8 ticks
static uint64_t rate_256;
static uint64_t state = 88172645463325252ull;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return below ? (uint32_t)(state >> 16) % below : 0;
}

static void fail(const char *what)
{
    fprintf(stderr, "%s in cycle %lu\n", what, (unsigned long)cycle);
    exit(1);
}

// Builder: as FrameBuild and Announcer, a descriptor stands until its frame is built, and some time more.

static uint32_t stall_256, rest_cycles, wait_cycles; // Of 256 words so many wait; cycles after a frame, and before one.
static frame now;
static bool has_frame, was_asked;
static uint32_t beat, words, rest, asked;

static frame seen()
{
    frame f;
    memset(&f, 0, sizeof f);
    f.due = top.source_due;
    f.sequence = top.source_sequence;
    f.seed = top.source_checksum_seed;
    f.length = top.source_length;
    f.stream = top.source_stream;
    f.flags = top.source_final | top.source_empty << 1;
    f.header_words = top.source_header_words;
    f.with_probe = top.source_with_probe;
    f.fill = top.source_fill;
    f.payload_offset = top.source_payload_offset;
    f.checksum_enable = top.source_checksum_enable;
    f.stamp_enable = top.source_stamp_enable;
    f.stamp_offset = top.source_stamp_offset;
    f.stamp_octets = top.source_stamp_octets;
    f.stamp_shift = top.source_stamp_shift;
    f.stamp_nibble = top.source_stamp_nibble;
    f.stamp_mend = top.source_stamp_mend;
    return f;
}

static void check_still()
{
    frame f = seen();
    f.shown = now.shown;
    f.elapsed = now.elapsed;
    memcpy(f.header, now.header, sizeof f.header);
    if (memcmp(&f, &now, sizeof f))
        fail("a descriptor changes");
}

// Set the builder's pins for this cycle; the outputs of the source don't depend on them within it.
static void build()
{
    top.source_ready = top.builds = top.header_re = 0;
    if (was_asked)
        now.header[asked] = top.header_dat;
    was_asked = false;
    if (!top.source_valid)
        return;
    if (!has_frame) {
        now = seen();
        now.shown = cycle;
        now.elapsed = (int64_t)(elapsed_256 >> 8);
        has_frame = true;
        beat = 0;
        words = (now.length + 3) / 4;
        if (words < now.header_words)
            words = now.header_words;
        if (words > 40)
            words = 40; // The fill takes no part in this.
        rest = draw(wait_cycles + 1);
        if (now.flags & 2)
            words = 0;
    } else {
        check_still();
    }
    if (rest && beat < words) { // Not due soon enough yet.
        rest--;
        return;
    }
    if (beat < words) {
        top.builds = beat < now.header_words;
        top.build_stream = now.stream;
        top.build_word = beat & 31;
        top.header_adr = now.stream << 5 | (beat & 31);
        if (draw(256) < stall_256)
            return;
        if (top.builds) {
            top.header_re = 1;
            was_asked = true;
            asked = beat;
        }
        if (++beat < words)
            return;
        rest = draw(rest_cycles + 1);
        if (rest)
            return;
    }
    if (rest && --rest)
        return;
    top.source_ready = 1;
}

// Bus.

static std::vector<bus_access> background;
static uint32_t background_256;
static bool bus_busy, bus_answers;
static uint32_t bus_word;
static const bus_access *checked; // What the bus reads, where that is known.

static void use_bus(uint32_t adr, bool we, uint32_t data)
{
    bus_busy = true;
    top.stb = 1;
    top.we = we;
    top.adr = adr;
    top.dat_w = data;
}

static void clock_cycle()
{
    if (!bus_busy && draw(256) < background_256) {
        checked = nullptr;
        if (background.empty() || !draw(4)) {
            use_bus(draw(4) << 16 | draw(512), false, 0);
        } else {
            bus_access &a = background[draw(background.size())];
            const bool we = draw(2);
            if (we && a.may_change)
                a.data = (uint32_t)state;
            use_bus(a.adr, we, a.data);
            checked = we ? nullptr : &a;
        }
    }
    top.elapsed = (uint64_t)(elapsed_256 >> 8);
    top.source_ready = top.builds = top.header_re = 0;
    top.eval();
    build();
    top.eval();
    if (top.collides)
        fail("a word of a header is written as it is read");
    const bool is_taken = top.source_valid && top.source_ready;
    const bool is_acknowledged = top.stb && top.ack;
    if (is_acknowledged) {
        bus_word = top.dat_r;
        if (checked && bus_word != checked->data) {
            fprintf(stderr, "at %05x %08x, not %08x: ", checked->adr, bus_word, checked->data);
            fail("the bus reads another word than it wrote");
        }
        checked = nullptr;
    }
    top.sys_clk = 1;
    top.eval();
    top.sys_clk = 0;
    top.eval();
    if (is_taken) {
        now.taken = cycle;
        if (was_asked) // The last word of the header was the last of the frame.
            now.header[asked] = top.header_dat;
        was_asked = false;
        fwrite(&now, sizeof now, 1, frames);
        has_frame = false;
        taken_frames++;
    }
    if (is_acknowledged) {
        top.stb = 0;
        bus_busy = false;
    }
    bus_answers = is_acknowledged;
    top.arm = 0;
    top.begin_ = top.end_ = 0;
    elapsed_256 += rate_256;
    cycle++;
}

static void access_bus(uint32_t adr, bool we, uint32_t data)
{
    while (bus_busy)
        clock_cycle();
    use_bus(adr, we, data);
    const uint32_t kept = background_256;
    background_256 = 0;
    for (uint32_t n = 0; !n || !bus_answers; n++) {
        if (n > 100000)
            fail("no answer on the bus");
        clock_cycle();
    }
    background_256 = kept;
}

static void run(uint64_t cycles, uint64_t count)
{
    const uint64_t last = taken_frames + count;
    for (uint64_t n = 0; n < cycles && taken_frames < last && top.is_active; n++)
        clock_cycle();
}

static void obey(const command &c)
{
    switch (c.kind) {
    case WRITE:
        access_bus(c.a, true, c.b);
        break;
    case READ:
        access_bus(c.a, false, 0);
        fwrite(&bus_word, 4, 1, reads);
        break;
    case ARM:
        top.arm = 1;
        top.mask = c.a;
        clock_cycle();
        break;
    case PRIMED: // Within so many cycles.
        for (uint32_t n = 0; !top.is_primed; n++) {
            if (n == c.a)
                fail("not primed");
            clock_cycle();
        }
        break;
    case CLOCK: // Ticks a cycle (2^-8), and from which tick on; a rate of 0 stands still.
        rate_256 = c.a;
        elapsed_256 = (__int128)(int64_t)c.b << 8;
        break;
    case STOP:
        top.stop = c.a;
        break;
    case HOLD:
        top.hold = c.a;
        break;
    case BEGIN:
        top.begin_ = c.a;
        clock_cycle();
        break;
    case END:
        top.end_ = c.a;
        clock_cycle();
        break;
    case CYCLES:
        for (uint64_t n = 0; n < c.b; n++)
            clock_cycle();
        break;
    case FRAMES: // At most; within so many cycles.
        run(c.b, c.a);
        break;
    case BUILDER:
        stall_256 = c.a & 0xff;
        rest_cycles = c.a >> 8 & 0xfff;
        wait_cycles = c.a >> 20;
        break;
    case BACKGROUND: // Accesses of 256 cycles, most of what FOREVER gives.
        background_256 = c.a;
        break;
    case FOREVER: // A word that may be written at any time, to what it is or (bit 32) to anything.
        background.push_back({c.a, (uint32_t)c.b, (c.b >> 32 & 1) != 0});
        break;
    case IDLE: // Within so many cycles.
        run(c.b, UINT64_MAX / 2);
        if (top.is_active)
            fail("the program does not end");
        break;
    default:
        fprintf(stderr, "command of kind %u\n", c.kind);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    FILE *in = argc == 4 ? fopen(argv[1], "rb") : nullptr;
    frames = argc == 4 ? fopen(argv[2], "wb") : nullptr;
    reads = argc == 4 ? fopen(argv[3], "wb") : nullptr;
    if (!in || !frames || !reads)
        return 2;
    top.sys_rst = 1;
    for (int k = 0; k < 4; k++)
        clock_cycle();
    top.sys_rst = 0;
    cycle = 0;
    command c;
    while (fread(&c, sizeof c, 1, in) == 1)
        obey(c);
    fclose(frames);
    fclose(reads);
    printf("%lu\n", (unsigned long)cycle);
    return 0;
}
