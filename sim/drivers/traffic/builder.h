// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// What a builder does with the descriptors of a source on the pins of ``top``: reads the headers of frames, and writes what it
// saw to ``frames``.

#pragma once

#include "../tools/harness.h"

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

static FILE *frames;
static uint64_t taken_frames;
static __int128 elapsed_256; // 2^-8 ticks

// Builder: as FrameBuild and Announcer, a descriptor stands until its frame is built, and some time more.

static uint32_t stall_256, rest_cycles, wait_cycles; // Of 256 words so many wait; cycles after a frame, and before one.
static frame present;
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
    f.shown = present.shown;
    f.elapsed = present.elapsed;
    memcpy(f.header, present.header, sizeof f.header);
    if (memcmp(&f, &present, sizeof f))
        fail("a descriptor changes");
}

// Set the builder's pins for this cycle; the outputs of the source don't depend on them within it.
static void build()
{
    top.source_ready = top.builds = top.header_re = 0;
    if (was_asked)
        present.header[asked] = top.header_dat;
    was_asked = false;
    if (!top.source_valid)
        return;
    if (!has_frame) {
        present = seen();
        present.shown = now;
        present.elapsed = (int64_t)(elapsed_256 >> 8);
        has_frame = true;
        beat = 0;
        words = (present.length + 3) / 4;
        if (words < present.header_words)
            words = present.header_words;
        if (words > 40)
            words = 40; // The fill takes no part in this.
        rest = draw(wait_cycles + 1);
        if (present.flags & 2)
            words = 0;
    } else {
        check_still();
    }
    if (rest && beat < words) { // Not due soon enough yet.
        rest--;
        return;
    }
    if (beat < words) {
        top.builds = beat < present.header_words;
        top.build_stream = present.stream;
        top.build_word = beat & 31;
        top.header_adr = present.stream << 5 | (beat & 31);
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

// The descriptor was taken; after the edge of the clock.
static void take_frame()
{
    present.taken = now;
    if (was_asked) // The last word of the header was the last of the frame.
        present.header[asked] = top.header_dat;
    was_asked = false;
    put(frames, present);
    has_frame = false;
    taken_frames++;
}
