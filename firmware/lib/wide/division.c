/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * What a compiler for a 32-bit processor calls for quotients and remainders of 64 bits, by wide.c's
 * division. The compiler's own library has four copies of another, of 1 KiB each.
 */

#include "wide.h"

uint64_t __udivdi3(uint64_t a, uint64_t b);
uint64_t __umoddi3(uint64_t a, uint64_t b);
int64_t __divdi3(int64_t a, int64_t b);
int64_t __moddi3(int64_t a, int64_t b);

static uint64_t magnitude(int64_t a)
{
	return a < 0 ? -(uint64_t)a : (uint64_t)a;
}

uint64_t __udivdi3(uint64_t a, uint64_t b)
{
	return lp_wide_divide((struct lp_wide){.low = a}, b).low;
}

uint64_t __umoddi3(uint64_t a, uint64_t b)
{
	return a - __udivdi3(a, b) * b;
}

int64_t __divdi3(int64_t a, int64_t b)
{
	uint64_t size = __udivdi3(magnitude(a), magnitude(b));

	return (int64_t)((a < 0) != (b < 0) ? -size : size);
}

int64_t __moddi3(int64_t a, int64_t b)
{
	uint64_t size = __umoddi3(magnitude(a), magnitude(b));

	return (int64_t)(a < 0 ? -size : size);
}
