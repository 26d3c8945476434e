// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Sends frames through the MAC of 10 Gb/s, and lets a line come to its receiver; writes both sides, and judges nothing.
//
// The file frames holds structs frame, each followed by its octets; line holds struct xgmii, a cycle each. Written are: sent and
// flags, a struct xgmii and an octet a cycle (bit 0: sfd, 1: sfd_high); shown, the cycle in which each frame was first shown to the
// MAC; words, a struct word each; sfds, a struct sfd each; faults, a struct fault each time that the link's state changes. Output:
// the counters. It runs for ``cycles``, or until all was sent and received.

#include "../tools/harness.h"

struct [[gnu::packed]] xgmii {
    uint64_t data;
    uint8_t control;
};

struct frame {
    uint32_t length;
    uint32_t not_before; // Cycle in which it may be shown.
    uint16_t lane_4, error;
    uint32_t underrun; // This word doesn't come in time; 0: all do.
};

struct [[gnu::packed]] word {
    uint64_t data;
    uint8_t last_be, last, fcs_error, symbol_error, number;
};

struct sfd {
    uint32_t cycle, is_high;
};

struct fault {
    uint32_t cycle, kind;
};

static const xgmii IDLE = {0x0707070707070707, 0xff};

static void bench()
{
    FILE *frames = opened("frames", "rb"), *line = opened("line", "rb");
    FILE *sent = output("sent"), *flags = output("flags"), *shown = output("shown"), *words = output("words"),
         *sfds = output("sfds"), *faults = output("faults");
    const uint64_t cycles = option("cycles");
    frame head = {};
    std::vector<uint8_t> octets;
    size_t place = 0;
    bool has_frame = false, was_shown = false, has_starved = false, has_line = true;
    uint32_t state = 0;
    uint64_t quiet = 0, taken = 0;
    top.timebase_rst = top.eth_rx_rst = 1;
    top.rx_data = IDLE.data;
    top.rx_control = IDLE.control;
    for (int n = 0; n < 4; n++) {
        pulse(top.timebase_clk);
        pulse(top.eth_rx_clk);
    }
    top.timebase_rst = top.eth_rx_rst = 0;
    // What is in the MAC comes out within some cycles.
    for (; cycles ? now < cycles : quiet < 64; now++) {
        if (!has_frame && get(frames, head)) {
            get(frames, octets, head.length);
            octets.resize(head.length + 8);
            has_frame = true;
            was_shown = has_starved = false;
            place = 0;
        }
        const bool starves = has_frame && head.underrun && place == 8 * head.underrun && !has_starved;
        const bool shows = has_frame && !starves && (place || now >= head.not_before);
        top.sink_valid = shows;
        if (shows) {
            const size_t left = head.length - place;
            memcpy(&top.sink_data, &octets[place], 8);
            top.sink_last = left <= 8;
            top.sink_last_be = left <= 8 ? 1 << (left - 1) : 0;
            top.sink_error = head.error && left <= 8;
            top.sink_lane_4 = head.lane_4;
            if (!was_shown)
                put(shown, uint32_t(now));
            was_shown = true;
        }
        xgmii came = IDLE;
        has_line = has_line && get(line, came);
        top.rx_data = came.data;
        top.rx_control = came.control;
        top.eval();
        put(sent, xgmii{top.tx_data, top.tx_control});
        put(flags, uint8_t(top.tx_sfd | top.tx_sfd_high << 1));
        if (top.source_valid)
            put(words, word{top.source_data, top.source_last_be, top.source_last, top.source_fcs_error, top.source_symbol_error,
                            top.source_number});
        if (top.rx_sfd)
            put(sfds, sfd{uint32_t(now), top.rx_sfd_high});
        if (top.fault != state)
            put(faults, fault{uint32_t(now), state = top.fault});
        has_starved = has_starved || (starves && top.sink_ready);
        if (shows && top.sink_ready) {
            place += 8;
            taken = now;
            has_frame = place < head.length;
        }
        pulse(top.timebase_clk);
        pulse(top.eth_rx_clk);
        check(!has_frame || now < head.not_before + 100000 || now < taken + 100000, "a frame isn't taken");
        quiet = has_frame || has_line ? 0 : quiet + 1;
    }
    printf("%u %u %u %u %u %u %u %u %u %u %u\n", top.sent_count, top.lost_count, top.underrun_count, top.frame_count,
           top.fcs_error_count, top.symbol_error_count, top.runt_count, top.preamble_error_count, top.lane_error_count,
           top.local_fault_count, top.remote_fault_count);
}
