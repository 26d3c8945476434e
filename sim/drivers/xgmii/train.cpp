// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Runs programs of trains on a port of 10 Gb/s, one after the other, whose frames come back over a line; writes what happened, and
// judges nothing.
//
// The file programs holds structs program, header 16 words of 64 bits. Written are sent, a struct xgmii for each cycle of timebase;
// sfds, a struct sfd for each that left, came, a struct sfd for each that stood at the receiver's pins; records, a struct record each; asked, the time at
// which each program was to start.
// Output: a line "<sent> <late>" for each program, then "<lost>". What the file before holds, a struct xgmii a cycle, comes to the
// receiver before all that is sent. The line takes ``delay`` cycles; the receiver's clock has a period
// of ``rx_fs``, where it isn't 6.4 ns the line inserts and deletes words of idle.

#include "../tools/harness.h"

struct [[gnu::packed]] xgmii {
    uint64_t data;
    uint8_t control;
};

struct program {
    uint32_t count, repeats, interval, fraction, gap, length, header_words, fill;
    uint32_t stop_after; // Cycles; 0: never.
    uint32_t wait;       // Cycles before it starts.
    uint32_t ahead;      // Nanoseconds, at the start, until its first SFD; 0: at once.
};

struct [[gnu::packed]] sfd {
    uint64_t cycle, now;
    uint32_t fraction; // 2^-32 ns.
    uint32_t is_high;
};

struct [[gnu::packed]] record {
    uint64_t sent, arrival;
    uint32_t sequence;
    uint16_t stream, length, flags;
    uint8_t is_probe;
};

static const xgmii IDLE = {0x0707070707070707, 0xff};
static const uint64_t CYCLE_FS = 6400000;

static FILE *sent, *sfds, *came, *records, *asked;
static std::deque<xgmii> line;
static uint64_t rx_fs, tx_at, rx_at, delay, left_at;

static bool is_idle(const xgmii &word) { return word.control == IDLE.control && word.data == IDLE.data; }

// What comes to the receiver in its next cycle.
static xgmii arrived()
{
    if (line.size() < delay)
        return IDLE;
    const xgmii word = line.front();
    if (line.size() < delay + 4 && is_idle(word) && rx_fs < CYCLE_FS)
        return IDLE; // It is faster: once more.
    line.pop_front();
    if (line.size() > delay + 4 && is_idle(word) && rx_fs > CYCLE_FS && is_idle(line.front()))
        line.pop_front();
    return word;
}

static void receive()
{
    static bool is_begun; // A frame started in lane 4 of the word before.
    const xgmii word = arrived();
    top.rx_data = word.data;
    top.rx_control = word.control;
    top.eval();
    const bool in_lane_0 = (word.control & 1) && (word.data & 0xff) == 0xfb;
    if (in_lane_0 || is_begun) {
        // It stands there since an edge ago: that is so much before, or after, the present cycle of timebase began.
        const int64_t passed = int64_t(rx_at - rx_fs - (tx_at - CYCLE_FS)) * 4294.967296;
        const int64_t part = int64_t(top.fraction >> 8) + passed;
        put(came, sfd{now, top.now + (part >> 32), uint32_t(part), in_lane_0});
    }
    is_begun = (word.control & 16) && (word.data >> 32 & 0xff) == 0xfb;
    pulse(top.eth_rx_clk);
}

static void step()
{
    // A word is taken at the end of the cycle in which it stands at the pins, by both sides.
    for (; rx_at < tx_at; rx_at += rx_fs)
        receive();
    top.eval();
    const xgmii word = {top.tx_data, top.tx_control};
    put(sent, word);
    line.push_back(word);
    if (top.tx_sfd)
        left_at = now;
    if (top.tx_sfd)
        put(sfds, sfd{now, top.now, uint32_t(top.fraction >> 8), top.tx_sfd_high});
    if (top.record_valid)
        put(records, record{top.record_tx_stamp, top.record_arrival, top.record_sequence, top.record_stream_id, top.record_length,
                            top.record_flags, top.record_is_probe});
    pulse(top.timebase_clk);
    tx_at += CYCLE_FS;
    top.start = top.stop = 0;
    now++;
}

static void bench()
{
    sent = output("sent");
    sfds = output("sfds");
    came = output("came");
    records = output("records");
    asked = output("asked");
    delay = option("delay", 1);
    rx_fs = option("rx_fs", CYCLE_FS);
    tx_at = rx_at = CYCLE_FS;
    const std::vector<xgmii> before = load<xgmii>("before");
    top.increment = option("increment");
    top.rx_data = IDLE.data;
    top.rx_control = IDLE.control;
    top.timebase_rst = top.eth_rx_rst = 1;
    step();
    step();
    top.timebase_rst = top.eth_rx_rst = 0;
    top.header_we = 1;
    for (const uint64_t word : load<uint64_t>("header")) {
        top.header_dat_w = word;
        step();
        top.header_adr++;
    }
    top.header_we = 0;
    top.set_time = option("time");
    top.set = 1;
    step();
    top.set = 0;
    for (int n = 0; n < 8; n++) // The clock has that time by then.
        step();
    line.insert(line.end(), before.begin(), before.end());
    for (const program &one : load<program>("programs")) {
        top.count = one.count;
        top.repeats = one.repeats;
        top.interval = one.interval;
        top.fraction_of_interval = one.fraction;
        top.gap = one.gap;
        top.length = one.length;
        top.header_words = one.header_words;
        top.fill = one.fill;
        for (uint32_t n = 0; n < one.wait + 8; n++)
            step();
        top.timed = one.ahead != 0;
        top.start_time = top.now + one.ahead;
        top.start = 1;
        put(asked, uint64_t(top.start_time));
        step();
        const uint64_t begin = left_at = now;
        do {
            top.stop = one.stop_after && now - begin == one.stop_after;
            step();
            check(now < left_at + 100000, "nothing leaves");
            top.eval();
        } while (top.is_running);
        printf("%u %u\n", top.sent_count, top.late_count);
    }
    for (uint64_t n = 0; n < 2 * delay + before.size() + 100; n++)
        step();
    printf("%u\n", top.lost_count + top.dropped_count);
}
