// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// A host that drains the ring: it frees blocks, asks again for what is missing, loses some, or goes away for a while.
#pragma once

#include "capture_parts.h"

namespace {

// Host ------------------------------------------------------------------------------------------------

struct Host {
    FILE *out;
    uint32_t expected[CHANNELS] = {}, written[CHANNELS] = {}, dropped[CHANNELS] = {}, taken[CHANNELS] = {}, free_[CHANNELS] = {};
    uint64_t asked_at[CHANNELS] = {}, looked_at = 0, blocks = 0, octets = 0, resent = 0, first_at = 0, last_at = 0;
    unsigned ignore, loss, lag;
    uint64_t away_from, away_to;
    bool knows = false; // ``written`` of all channels is known, and won't change.
    std::deque<std::pair<uint64_t, unsigned>> later;

    bool is_away() const { return now >= away_from && now < away_to; }

    void ask_again(unsigned channel)
    {
        if (asked_at[channel] && now - asked_at[channel] < 3000)
            return;
        asked_at[channel] = now;
        resent++;
        set(channel, SENT, expected[channel]);
    }

    void take(unsigned channel, const std::vector<uint32_t> &words)
    {
        blocks++;
        if (is_away() || chance(loss))
            return;
        if (words[0] != expected[channel]) {
            if ((int32_t)(words[0] - expected[channel]) > 0)
                ask_again(channel);
            return;
        }
        asked_at[channel] = 0;
        uint32_t head[2] = {channel, (uint32_t)words.size()};
        fwrite(head, 4, 2, out);
        fwrite(&now, 8, 1, out);
        fwrite(words.data(), 4, words.size(), out);
        if (!first_at)
            first_at = now;
        last_at = now;
        octets += 4 * words.size();
        expected[channel]++;
        if (!(ignore >> channel & 1))
            later.push_back({now + lag, channel});
    }

    void step()
    {
        while (!later.empty() && later.front().first <= now) {
            unsigned channel = later.front().second;
            later.pop_front();
            set(channel, READ, ++free_[channel]);
        }
        if (is_away() || now - looked_at < 5000 || !table.queue.empty())
            return;
        looked_at = now;
        for (unsigned channel = 0; channel < CHANNELS; channel++)
            get(channel, WRITTEN, [this, channel](uint32_t value) {
                // Nothing new since the last look: it got lost.
                if (value == written[channel] && value != expected[channel])
                    ask_again(channel);
                written[channel] = value;
            });
    }

    bool has_all() const { return knows && memcmp(expected, written, sizeof(written)) == 0; }
};

Host host;

} // namespace
