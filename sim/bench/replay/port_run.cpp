// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Replays traces on a port, one program after the other, and writes what is on the PHY's octets.
//
// Usage: Vreplay_bench PROGRAMS CHUNKS WORDS FRAMES ARRIVED SYS_PS SEED. PROGRAMS is a list of struct program; each has so many
// of CHUNKS, a list of struct chunk, and these so many of WORDS. FRAMES gets all frames as port_meter.h says; ARRIVED the tick in
// which each chunk came into the ring (64 bits). SEED is of the memory's stalls. A line for each program: frames on the PHY; tick
// of the start; what was written when it was ready; sent, late, first_late, underruns; then frames, errors, underruns,
// first_underrun, is_starved of the source.

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <vector>

#include "Vreplay_bench.h"

static Vreplay_bench top;

#include "../traffic/port_meter.h"

static const uint32_t RING_ADDRESS = 0x50040, RING_WORDS = 1 << 13;
static const uint64_t QUIET_CYCLES = 4000000;

struct program {
    uint32_t opens; // A new session.
    uint32_t prime, loops;
    uint32_t chunks;
    uint32_t most;     // Frames, then in the midst of the next one it is stopped; 0: it is not.
    uint32_t turn;     // Cycles of sys from burst to burst, at the mean.
    uint64_t stop_tick; // Ticks after the start at which it is stopped; 0: it is not.
};

struct chunk {
    int64_t tick; // After the start; 0 or less: before it.
    uint32_t words, padding;
};

template <class T> static std::vector<T> load(const char *name)
{
    std::vector<T> all;
    T one;
    FILE *in = fopen(name, "rb");
    if (!in) {
        perror(name);
        exit(2);
    }
    while (fread(&one, sizeof one, 1, in) == 1)
        all.push_back(one);
    fclose(in);
    return all;
}

static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 20) % below;
}

// Memory: one burst after the other.

static uint32_t ring[RING_WORDS];
static uint32_t turn = 80, burst_at, burst_left, cycles_to_next, cycles_to_word;

static void memory()
{
    top.gives = 0;
    if (burst_left && !cycles_to_word) {
        top.gives = 1;
        top.word = ring[burst_at++ % RING_WORDS];
        burst_left--;
        if (!draw(40))
            cycles_to_word = draw(8); // The bus, or a refresh.
    } else if (cycles_to_word) {
        cycles_to_word--;
    }
    if (cycles_to_next)
        cycles_to_next--;
    top.takes = !burst_left && !cycles_to_next;
    top.eval();
    if (!top.asks || !top.takes)
        return;
    const uint32_t address = top.address - RING_ADDRESS;
    if (address >= RING_WORDS || address / 64 != (address + top.rest) / 64) {
        fprintf(stderr, "burst of %u words at %05x\n", top.rest + 1, top.address);
        exit(1);
    }
    burst_at = address;
    burst_left = top.rest + 1;
    cycles_to_word = 4 + draw(8);
    cycles_to_next = turn / 2 + draw(turn);
}

// What fills the ring.

static std::vector<uint32_t> words;
static std::vector<chunk> chunks;
static size_t next_word, next_chunk, end_chunk;
static uint64_t start_tick;
static bool is_started;
static FILE *arrived;

static void fill()
{
    if (next_chunk == end_chunk)
        return;
    const chunk &c = chunks[next_chunk];
    if (c.tick > (is_started ? (int64_t)(ticks - start_tick) : 0))
        return;
    const uint32_t used = !top.replay_keeps ? top.replay_written - top.replay_fetched : top.replay_written;
    if (used + c.words > RING_WORDS)
        return;
    for (uint32_t k = 0; k < c.words; k++)
        ring[(top.replay_written + k) % RING_WORDS] = words[next_word++];
    top.replay_written += c.words;
    fwrite(&ticks, 8, 1, arrived);
    next_chunk++;
}

static void step()
{
    memory();
    fill();
    cycle();
}

static void pulse(uint8_t &pin)
{
    pin = 1;
    step();
    pin = 0;
}

// As DatagramReceiver: what came before is in the memory by then.
static void open()
{
    for (uint32_t k = draw(30); k; k--)
        step();
    pulse(top.replay_restart);
    top.replay_written = 0;
    step();
    while (!top.replay_is_restarted)
        step();
}

static void run(const program &p)
{
    const size_t first_chunk = next_chunk;
    const uint64_t first_frame = frame_count;
    top.replay_prime = p.prime;
    top.replay_loops = p.loops;
    turn = p.turn;
    const bool is_armed = draw(2); // Before its session is there.
    end_chunk = first_chunk; // Nothing comes meanwhile.
    if (p.opens) {
        pulse(top.replay_open);
        if (is_armed)
            pulse(top.replay_arm);
        open();
    }
    end_chunk = first_chunk + p.chunks;
    if (!p.opens || !is_armed)
        pulse(top.replay_arm);
    for (int k = 0; top.state != 2; k++) {
        if (k == 200000) {
            fprintf(stderr, "the port is not ready\n");
            exit(1);
        }
        step();
    }
    const uint32_t primed = top.replay_written;
    for (uint32_t k = draw(300); k; k--)
        step();
    start_tick = ticks;
    is_started = true;
    pulse(top.start_request);
    for (int k = 0; k < 50; k++)
        step();
    uint64_t seen = frame_count, quiet = 0;
    while (top.state != 0) {
        quiet = seen == frame_count ? quiet + 1 : 0;
        seen = frame_count;
        if (quiet == QUIET_CYCLES) {
            fprintf(stderr, "the program does not end: no frame for %" PRIu64 " cycles\n", quiet);
            exit(1);
        }
        const bool is_midst = is_inside && octets.size() > 20;
        if ((p.most && frame_count - first_frame >= p.most && is_midst) || (p.stop_tick && ticks - start_tick >= p.stop_tick))
            top.stop = 1;
        step();
        top.stop = 0;
    }
    for (int k = 0; k < 200; k++)
        step();
    is_started = false;
    for (; next_chunk < end_chunk; next_chunk++) { // They never came.
        const uint64_t never = UINT64_MAX >> 1;
        fwrite(&never, 8, 1, arrived);
        next_word += chunks[next_chunk].words;
    }
    printf("%" PRIu64 " %" PRIu64 " %u %u %u %u %u", frame_count - first_frame, start_tick, primed, top.sent, top.late,
        top.first_late, top.underruns);
    printf(" %u %u %u %u %u\n", top.replay_frames, top.replay_errors, top.replay_underruns, top.replay_first_underrun,
        top.replay_is_starved);
}

int main(int argc, char **argv)
{
    if (argc != 8)
        return 2;
    const std::vector<program> programs = load<program>(argv[1]);
    chunks = load<chunk>(argv[2]);
    words = load<uint32_t>(argv[3]);
    frames = fopen(argv[4], "wb");
    arrived = fopen(argv[5], "wb");
    with_octets = true;
    sys_ps = strtoull(argv[6], nullptr, 0);
    state += strtoull(argv[7], nullptr, 0) * 0x9e3779b97f4a7c15ull;
    next_sys_ps = 1000;
    top.replay_loops = 1;
    top.sys_rst = top.timebase_rst = 1;
    for (int k = 0; k < 20; k++)
        step();
    top.sys_rst = top.timebase_rst = 0;
    for (int k = 0; k < 20; k++)
        step();
    for (const program &p : programs)
        run(p);
    fclose(frames);
    fclose(arrived);
    return 0;
}
