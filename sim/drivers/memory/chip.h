// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// A SDRAM that knows its times, at the pins of a bench's DFI; check() says what is wrong.

#pragma once

#include <cmath>

#include "../tools/harness.h"

namespace {

// Times of the slowest grade but two (cores/memory/sdram.py), a row open in each bank; a cycle after CL the controller has a word.
struct SdramChip {
    static constexpr int64_t NEVER = -100000;
    struct Bank {
        int64_t activated = NEVER, precharged = NEVER, written = NEVER, read = NEVER;
        bool is_open = false;
        uint32_t row = 0;
    };
    int64_t RCD, RP, RAS, RC, RRD, WR, RFC, MRD, REFRESH, CL, TURN;
    std::vector<uint32_t> words = std::vector<uint32_t>(1 << 20);
    std::vector<Bank> banks;
    int64_t activated = NEVER, refreshed = NEVER, read = NEVER, mode = NEVER;
    std::deque<uint32_t> pipeline;
    uint64_t reads = 0, writes = 0, refreshes = 0;

    // `slack_cycles`: how late a refresh may be, because an access is under way; `turn`: cycles from a read to a write, at least.
    SdramChip(double mhz, int64_t slack_cycles = 40, unsigned count = 2, int64_t cl = 2, int64_t turn = 3)
        : CL(cl), TURN(turn), banks(count), pipeline(cl)
    {
        auto cycles = [mhz](double ns) { return (int64_t)std::ceil(ns * mhz / 1000 - 1e-6); };
        RCD = cycles(20), RP = cycles(20), RAS = cycles(49), RC = cycles(70), RRD = cycles(14), WR = cycles(30), RFC = cycles(80);
        MRD = cycles(40), REFRESH = cycles(64e6 / 4096) + slack_cycles;
    }

    void precharge(int64_t t, Bank &bank)
    {
        check(t - bank.activated >= RAS && t - bank.written >= WR && t - bank.read >= CL - 1, "precharge too soon");
        bank.is_open = false, bank.precharged = t;
    }

    void check_closed(int64_t t, const char *what)
    {
        for (const Bank &bank : banks)
            check(!bank.is_open && t - bank.precharged >= RP, "%s with a row open, or too soon", what);
        check(t - refreshed >= RFC, "%s too soon after a refresh", what);
    }

    // A cycle, number t, before its rising edge.
    void clock(int64_t t)
    {
        uint32_t given = 0xdeadbeef, at = top.dfi_bank % banks.size();
        Bank &bank = banks[at];
        unsigned command = top.dfi_ras_n << 2 | top.dfi_cas_n << 1 | top.dfi_we_n;
        check(top.dfi_wrdata_en == (command == 4), "wrdata_en is %d with command %u", top.dfi_wrdata_en, command);
        check(command == 7 || t - mode >= MRD, "a command too soon after the mode");
        if (command == 3) { // Activate.
            bool is_closed = !bank.is_open && t - bank.precharged >= RP && t - bank.activated >= RC;
            check(is_closed && t - refreshed >= RFC && t - activated >= RRD, "activate too soon");
            activated = bank.activated = t, bank.row = top.dfi_address, bank.is_open = true;
        } else if (command == 4 || command == 5) {
            check(bank.is_open && t - bank.activated >= RCD && top.dfi_address < 256, "column too soon, or of another bank");
            uint32_t &word = words.at((bank.row * banks.size() + at) << 8 | top.dfi_address);
            if (command == 4) {
                check(t - read >= TURN, "write while read data are on the pins");
                word = top.dfi_wrdata, bank.written = t, writes++;
            } else {
                given = word, read = bank.read = t, reads++;
            }
        } else if (command == 2) {
            if (top.dfi_address >> 10 & 1)
                for (Bank &one : banks)
                    precharge(t, one);
            else
                precharge(t, bank);
        } else if (command == 1) {
            check_closed(t, "refresh");
            // After the start there is a longer pause.
            refreshes += top.sdram_ready;
            check(refreshes < 2 || t - refreshed < REFRESH, "refresh %ld cycles after the last", (long)(t - refreshed));
            refreshed = t;
        } else if (command == 0) {
            check_closed(t, "mode");
            check(top.dfi_address == CL << 4, "mode %x", top.dfi_address);
            mode = t;
        }
        pipeline.push_back(given);
        top.dfi_rddata = pipeline.front();
        pipeline.pop_front();
    }
};

} // namespace
