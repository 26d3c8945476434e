// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Takes words of XGMII through the PCS of 10 Gb/s to the blocks of its gearbox, and a line of bits to its words; judges nothing.
//
// Files: xgmii holds struct word, one a cycle, idle after the last; bits the line that comes in, bit 0 of an octet first, from bit
// ``offset`` on. Written are: blocks, a struct block for each that leaves, as the line has it; words, a struct word for each cycle
// of eth_rx; slips, the block before each slip. Output: counters, and whether it is locked. The clocks have one source, of which
// ``rx_ppm`` less 1000 is how much faster that of the line is. It ends with the line, or with xgmii where there is none.

#include "../tools/harness.h"

struct [[gnu::packed]] word {
    uint64_t data;
    uint8_t control;
};

struct [[gnu::packed]] block {
    uint64_t payload;
    uint8_t header;
};

static const word IDLE = {0x0707070707070707, 0xff};
static const unsigned CYCLES = 33; // Of a gearbox, in which 32 blocks go.

static uint64_t bits_at(const std::vector<uint8_t> &octets, uint64_t at, unsigned count)
{
    uint64_t found = 0;
    for (unsigned n = 0; n < count; n++, at++)
        found |= uint64_t(octets[at / 8] >> at % 8 & 1) << n;
    return found;
}

static void bench()
{
    FILE *xgmii = opened("xgmii", "rb");
    FILE *blocks = output("blocks"), *words = output("words"), *slips = output("slips");
    const std::vector<uint8_t> octets = load<uint8_t>("bits");
    uint64_t at = option("offset"), came = 0;
    const double ppm = double(option("rx_ppm")) - 1000;
    double next[4] = {0, 1.1, 2.3, 3.7};                // timebase, gt_tx, eth_rx, gt_rx.
    const double period[4] = {33, 32, 33 / (1 + ppm / 1e6), 32 / (1 + ppm / 1e6)};
    top.timebase_rst = top.eth_rx_rst = top.gt_tx_rst = top.gt_rx_rst = 1;
    for (int n = 0; n < 4; n++) {
        pulse(top.timebase_clk);
        pulse(top.gt_tx_clk);
        pulse(top.eth_rx_clk);
        pulse(top.gt_rx_clk);
    }
    top.timebase_rst = top.eth_rx_rst = top.gt_tx_rst = top.gt_rx_rst = 0;
    unsigned sequence = 0, phase = 0, left = 200;
    bool was_taken = false;
    unsigned missed = 0; // Until the line ends.
    while (left) {
        int which = 0;
        for (int n = 1; n < 4; n++)
            if (next[n] < next[which])
                which = n;
        next[which] += period[which];
        if (which == 0) {
            word sent = IDLE;
            const bool has_more = get(xgmii, sent);
            top.tx_data = sent.data;
            top.tx_control = sent.control;
            pulse(top.timebase_clk);
            now++;
            if (!has_more && octets.empty())
                left--;
        } else if (which == 1) {
            if (was_taken)
                put(blocks, block{top.tx_payload, top.tx_header});
            was_taken = top.tx_take = sequence != CYCLES - 1;
            sequence = (sequence + 1) % CYCLES;
            pulse(top.gt_tx_clk);
        } else if (which == 2) {
            put(words, word{top.rx_data, top.rx_control});
            pulse(top.eth_rx_clk);
        } else {
            const bool has_block = at + 66 <= 8 * octets.size();
            if (top.slip) {
                put(slips, uint32_t(came));
                at++;
            }
            top.rx_valid = phase != CYCLES - 1 && has_block;
            phase = (phase + 1) % CYCLES;
            if (top.rx_valid) {
                top.rx_header = bits_at(octets, at, 2);
                top.rx_payload = bits_at(octets, at + 2, 64);
                at += 66;
                came++;
            }
            if (has_block)
                missed = top.rx_missed;
            else if (!octets.empty())
                left--;
            pulse(top.gt_rx_clk);
        }
    }
    printf("%u %u %u %u %u %u\n", top.tx_lost, top.tx_missed, top.rx_lost, missed,
           top.rx_error_count, top.is_locked);
}
