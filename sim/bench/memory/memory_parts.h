// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// What a bench of a memory_bench stands on: the model, options, checks, random numbers, spans of time.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "Vmemory_bench.h"

namespace {

Vmemory_bench top;
uint64_t now, memory_now; // Cycles of sys, and of the chip's clock.

#include "checks.h" // It uses now.

uint64_t noise = 1;

uint32_t draw()
{
    noise ^= noise << 13;
    noise ^= noise >> 7;
    noise ^= noise << 17;
    return noise >> 16;
}

bool chance(unsigned of_256) { return (draw() & 255) < of_256; }

struct Span {
    uint64_t worst = 0, total = 0, count = 0;
    void add(uint64_t took)
    {
        worst = took > worst ? took : worst;
        total += took;
        count++;
    }
};

} // namespace
