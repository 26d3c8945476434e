// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// A SDRAM that knows its times, at the pins of a bench's DFI; check() says what is wrong.

#pragma once

#include <cmath>

#include "../tools/harness.h"

namespace {

// Times of the slowest grade but two (cores/memory/sdram.py), CL 2, and a cycle more until the controller has a word.
struct SdramChip {
    static constexpr int64_t NEVER = -100000;
    int64_t RCD, RP, RAS, RC, WR, RFC, MRD, TURN = 3, REFRESH;
    std::vector<uint32_t> words = std::vector<uint32_t>(1 << 20);
    int64_t activated = NEVER, precharged = NEVER, refreshed = NEVER, written = NEVER, read = NEVER, mode = NEVER;
    bool is_open = false;
    uint32_t row = 0, bank = 0, pipeline[3] = {};
    uint64_t reads = 0, writes = 0, refreshes = 0;

    // `slack_cycles`: how late a refresh may be, because an access is under way.
    SdramChip(double mhz, int64_t slack_cycles = 40)
    {
        auto cycles = [mhz](double ns) { return (int64_t)std::ceil(ns * mhz / 1000 - 1e-6); };
        RCD = cycles(20), RP = cycles(20), RAS = cycles(49), RC = cycles(70), WR = cycles(30), RFC = cycles(80), MRD = cycles(40);
        REFRESH = cycles(64e6 / 4096) + slack_cycles;
    }

    // A cycle, number t, before its rising edge.
    void clock(int64_t t)
    {
        uint32_t given = 0xdeadbeef;
        unsigned command = top.dfi_ras_n << 2 | top.dfi_cas_n << 1 | top.dfi_we_n;
        check(top.dfi_wrdata_en == (command == 4), "wrdata_en is %d with command %u", top.dfi_wrdata_en, command);
        check(command == 7 || t - mode >= MRD, "a command too soon after the mode");
        if (command == 3) { // Activate.
            check(!is_open && t - precharged >= RP && t - activated >= RC && t - refreshed >= RFC, "activate too soon");
            activated = t, row = top.dfi_address, bank = top.dfi_bank, is_open = true;
        } else if (command == 4 || command == 5) {
            check(is_open && bank == top.dfi_bank && t - activated >= RCD && top.dfi_address < 256, "column too soon, or of another bank");
            uint32_t &word = words[row << 9 | bank << 8 | top.dfi_address];
            if (command == 4) {
                check(t - read >= TURN, "write while read data are on the pins");
                word = top.dfi_wrdata, written = t, writes++;
            } else {
                given = word, read = t, reads++;
            }
        } else if (command == 2) {
            check(t - activated >= RAS && t - written >= WR, "precharge too soon");
            is_open = false, precharged = t;
        } else if (command == 1) {
            check(!is_open && t - precharged >= RP && t - refreshed >= RFC, "refresh too soon");
            // After the start there is a longer pause.
            refreshes += top.sdram_ready;
            check(refreshes < 2 || t - refreshed < REFRESH, "refresh %ld cycles after the last", (long)(t - refreshed));
            refreshed = t;
        } else if (command == 0) {
            check(!is_open && t - refreshed >= RFC && top.dfi_address == 2 << 4, "mode %x, or too soon", top.dfi_address);
            mode = t;
        }
        top.dfi_rddata = pipeline[1];
        pipeline[1] = pipeline[0];
        pipeline[0] = given;
    }
};

} // namespace
