// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Replays programs of records from a ring in a memory on a port of 10 Gb/s; writes what happened, and judges nothing.
//
// The file programs holds structs program, words what is streamed in all of them, chunks how much of it comes when. Written are
// frames (a struct head each, then the octets with the FCS), given (the cycle of each pair that the memory gave, 64 bits), arrived
// (that of each chunk). Output, a line a program: "<frames on the line> <start> <sent> <late> <frames> <underruns>
// <first underrun> <bad> <starved> <primed> <due>", of the first frame.

#include "../tools/harness.h"

struct program {
    uint32_t opens, loops, chunks, prime, stop_after, stop_frames; // Cycles after the start, frames; 0: never.
    uint32_t latency, turn;  // Of the memory: cycles at least from what is asked to the pair; of 256 cycles so many take nothing.
    uint32_t stall_every, stall; // Pairs from stall to stall, and its cycles at most; 0: never.
};

struct chunk {
    uint64_t cycle; // After the start at the soonest; 0: at once.
    uint64_t words;
};

struct [[gnu::packed]] head {
    uint64_t place; // Of the start, in octets.
    uint32_t length;
};

static const uint32_t RING_ADDRESS = 0x50040, RING_WORDS = 1 << 15;

static std::vector<uint32_t> words, ring;
static std::vector<chunk> chunks;
static std::deque<std::pair<uint64_t, uint64_t>> asked; // When a pair may come, and the pair.
static size_t next_word, next_chunk, end_chunk;
static uint64_t start_at, given_count, stalled_until, frame_count;
static bool is_started, in_frame;
static uint64_t place;
static std::vector<uint8_t> octets;
static FILE *frames, *given, *arrived;
static program now_of;

static uint64_t pair_at(uint32_t address)
{
    const uint32_t at = 2 * (address - RING_ADDRESS);
    check(at < ring.size(), "pair %u is not of the ring", address);
    return ring[at] | uint64_t(ring[at + 1]) << 32;
}

// A cycle of the memory: what it gives, and whether it takes.
static void memory()
{
    top.port_gives = 0;
    if (!asked.empty() && asked.front().first <= now && stalled_until <= now) {
        top.port_gives = 1;
        top.port_data = asked.front().second;
        asked.pop_front();
        put(given, now);
        if (now_of.stall_every && ++given_count % now_of.stall_every == 0)
            stalled_until = now + draw(now_of.stall);
    }
    top.port_takes = asked.size() < 64 && !chance(now_of.turn);
}

static void ask()
{
    if (top.port_asks && top.port_takes)
        asked.push_back({now + now_of.latency, pair_at(top.port_address)});
}

static void fill()
{
    if (next_chunk == end_chunk)
        return;
    const chunk &one = chunks[next_chunk];
    if (one.cycle && !(is_started && now - start_at >= one.cycle))
        return;
    const uint32_t used = now_of.loops == 1 ? top.written - top.fetched : top.written;
    if (used + one.words > ring.size())
        return;
    for (uint64_t n = 0; n < one.words; n++)
        ring[(top.written + n) % ring.size()] = words[next_word++];
    top.written += one.words;
    put(arrived, now);
    next_chunk++;
}

static void line()
{
    for (unsigned lane = 0; lane < 8; lane++) {
        const uint8_t octet = top.tx_data >> 8 * lane & 0xff;
        const bool is_control = top.tx_control >> lane & 1;
        if (is_control && octet == 0xfb) {
            check(!in_frame && lane % 4 == 0, "a start in lane %u", lane);
            in_frame = true;
            place = 8 * now + lane;
            octets.clear();
        } else if (is_control && in_frame) {
            check(octet == 0xfd, "%02x in a frame", octet);
            in_frame = false;
            put(frames, head{place, uint32_t(octets.size() - 7)});
            fwrite(&octets[7], 1, octets.size() - 7, frames);
            frame_count++;
        } else if (in_frame) {
            octets.push_back(octet);
        } else {
            check(is_control && octet == 0x07, "%02x between frames", octet);
        }
    }
}

static void step()
{
    memory();
    fill();
    top.eval();
    ask();
    line();
    pulse(top.timebase_clk);
    top.begins = top.start = top.stop = 0;
    now++;
}

static void replay(const program &one)
{
    now_of = one;
    top.loops = one.loops;
    end_chunk = next_chunk;
    if (one.opens) {
        top.restart = 1;
        top.wraps = 0;
        do
            step();
        while (!top.is_restarted);
        top.written = 0;
        step();
        top.restart = 0;
    }
    end_chunk = next_chunk + one.chunks;
    for (int n = 0; top.written < one.prime; n++) {
        check(n < 10000000, "only %u words come", top.written);
        step();
    }
    top.wraps = one.loops != 1;
    top.begins = 1;
    step();
    for (int n = 0; !top.is_primed; n++) {
        check(n < 100000, "nothing is primed");
        step();
    }
    const uint32_t primed = top.written;
    const uint64_t due = top.due;
    for (uint32_t n = draw(200); n; n--)
        step();
    const uint64_t before = frame_count;
    top.start = 1;
    start_at = now;
    is_started = true;
    step();
    uint64_t moved = now, seen = frame_count;
    do {
        if (seen != frame_count) {
            seen = frame_count;
            moved = now;
        }
        const bool is_midst = in_frame && octets.size() > 20;
        top.stop = (one.stop_after && now - start_at == one.stop_after)
            || (one.stop_frames && frame_count - before >= one.stop_frames && is_midst);
        step();
        check(top.is_primed || !top.is_active, "the program is not primed while it runs");
        check(now < moved + 10000000, "the program does not end: %" PRIu64 " frames", frame_count - before);
        top.eval();
    } while (top.is_running);
    for (int n = 0; n < 100; n++)
        step();
    is_started = false;
    for (; next_chunk < end_chunk; next_chunk++) { // They never came.
        put(arrived, UINT64_MAX >> 1);
        next_word += chunks[next_chunk].words;
    }
    printf("%" PRIu64 " %" PRIu64 " %u %u %u %u %u %u %u %u %" PRIu64 "\n", frame_count - before, start_at, top.sent_count, top.late_count,
        top.frames, top.underruns, top.first_underrun, top.is_bad, top.is_starved, primed, due);
}

static void bench()
{
    frames = output("frames");
    given = output("given");
    arrived = output("arrived");
    noise = 1 + option("seed") * 0x9e3779b97f4a7c15u;
    words = load<uint32_t>("words");
    chunks = load<chunk>("chunks");
    ring.resize(RING_WORDS);
    top.is_chosen = 1;
    top.timebase_rst = 1;
    step();
    step();
    top.timebase_rst = 0;
    for (const program &one : load<program>("programs"))
        replay(one);
}
