// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Replays traces on a port, one program after the other, and writes what is on the PHY's octets.
//
// The file programs is a list of struct program; each has so many of the file chunks, a list of struct chunk, and these so many of
// words. ``frames`` gets all frames as port.h says; ``arrived`` the tick in which each chunk came into the ring (64 bits). Options:
// those of port.h, and ``seed`` of the memory's stalls. A line for each program: frames on the PHY; tick of the start; what was
// written when it was ready; sent, late, first_late, underruns; then frames, errors, underruns, first_underrun, is_starved of the
// source.

#include "../traffic/port.h"

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
    const bool is_right = address < RING_WORDS && address / 64 == (address + top.rest) / 64;
    check(is_right, "burst of %u words at %05x", top.rest + 1, top.address);
    burst_at = address;
    burst_left = top.rest + 1;
    cycles_to_word = 4 + draw(8);
    cycles_to_next = turn / 2 + draw(turn);
}

// What fills the ring.

static std::vector<uint32_t> words;
static std::vector<chunk> chunks;
static size_t next_word, next_chunk, end_chunk;
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
    put(arrived, ticks);
    next_chunk++;
}

static void step()
{
    memory();
    fill();
    cycle();
}

// As DatagramReceiver: what came before is in the memory by then.
static void open()
{
    steps(draw(30));
    strobe(top.replay_restart);
    top.replay_written = 0;
    step();
    while (!top.replay_is_restarted)
        step();
}

static void replay(const program &p)
{
    const size_t first_chunk = next_chunk;
    const uint64_t first_frame = frame_count;
    top.replay_prime = p.prime;
    top.replay_loops = p.loops;
    turn = p.turn;
    const bool is_armed = draw(2); // Before its session is there.
    end_chunk = first_chunk; // Nothing comes meanwhile.
    if (p.opens) {
        strobe(top.replay_open);
        if (is_armed)
            strobe(top.replay_arm);
        open();
    }
    end_chunk = first_chunk + p.chunks;
    if (!p.opens || !is_armed)
        strobe(top.replay_arm);
    wait_until_ready();
    const uint32_t primed = top.replay_written;
    steps(draw(300));
    start();
    uint64_t seen = frame_count, quiet = 0;
    while (top.state != 0) {
        quiet = seen == frame_count ? quiet + 1 : 0;
        seen = frame_count;
        check(quiet < QUIET_CYCLES, "the program does not end: no frame for %" PRIu64 " cycles", quiet);
        const bool is_midst = is_inside && octets.size() > 20;
        if ((p.most && frame_count - first_frame >= p.most && is_midst) || (p.stop_tick && ticks - start_tick >= p.stop_tick))
            top.stop = 1;
        step();
        top.stop = 0;
    }
    steps(200);
    is_started = false;
    for (; next_chunk < end_chunk; next_chunk++) { // They never came.
        put(arrived, UINT64_MAX >> 1);
        next_word += chunks[next_chunk].words;
    }
    printf("%" PRIu64 " %" PRIu64 " %u %u %u %u %u", frame_count - first_frame, start_tick, primed, top.sent, top.late,
        top.first_late, top.underruns);
    printf(" %u %u %u %u %u\n", top.replay_frames, top.replay_errors, top.replay_underruns, top.replay_first_underrun,
        top.replay_is_starved);
}

static void bench()
{
    chunks = load<chunk>("chunks");
    words = load<uint32_t>("words");
    arrived = output("arrived");
    noise = 1 + option("seed") * 0x9e3779b97f4a7c15u;
    top.replay_loops = 1;
    reset();
    for (const program &p : load<program>("programs"))
        replay(p);
}
