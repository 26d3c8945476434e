// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Random numbers, the same in each run.

#pragma once

#include <cstdint>

static uint64_t state = 88172645463325252ull;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return below ? (uint32_t)(state >> 16) % below : 0;
}
