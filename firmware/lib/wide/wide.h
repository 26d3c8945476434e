/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/* 128-bit arithmetic in plain C, for a 32-bit processor whose compiler has no __int128. */

#ifndef LITEPROBE_WIDE_H
#define LITEPROBE_WIDE_H

#include <stdint.h>

/** Unsigned 128 bits: high * 2^64 + low. Sums and differences wrap. */
struct lp_wide {
	uint64_t high;
	uint64_t low;
};

/** Return a * b, exactly. */
struct lp_wide lp_wide_multiply(uint64_t a, uint64_t b);

struct lp_wide lp_wide_add(struct lp_wide a, struct lp_wide b);

struct lp_wide lp_wide_subtract(struct lp_wide a, struct lp_wide b);

/** Return a * 2^bits, 0 to 127 bits; what leaves at the top is lost. */
struct lp_wide lp_wide_left(struct lp_wide a, unsigned int bits);

/** Return floor(a / 2^bits), 0 to 127 bits. */
struct lp_wide lp_wide_right(struct lp_wide a, unsigned int bits);

/** Return -1, 0 or 1: a is below, equal to or above b. */
int lp_wide_compare(struct lp_wide a, struct lp_wide b);

/** Return floor(a / divisor); all ones when the divisor is 0. */
struct lp_wide lp_wide_divide(struct lp_wide a, uint64_t divisor);

/** Return floor(sqrt(a)). */
uint64_t lp_wide_root(struct lp_wide a);

/**
 * Return a * b / 2^shift, rounded to the nearest (half away from zero), 0 to 127 bits.
 * Saturates at the ends of int64_t.
 */
int64_t lp_scale(int64_t a, int64_t b, unsigned int shift);

/** Return a * b / divisor, rounded toward zero; saturates. The divisor is above 0. */
int64_t lp_ratio(int64_t a, int64_t b, int64_t divisor);

/** Return a + b, saturating at the ends of int64_t. */
static inline int64_t lp_sum(int64_t a, int64_t b)
{
	uint64_t sum = (uint64_t)a + (uint64_t)b;

	/* Both of one sign, and the sum of the other. */
	if ((((uint64_t)a ^ sum) & ((uint64_t)b ^ sum)) >> 63 != 0) {
		return a < 0 ? INT64_MIN : INT64_MAX;
	}
	return (int64_t)sum;
}

/**
 * Return a * 2^bits, saturated, for positive bits; a / 2^-bits, rounded to the nearest, half up,
 * for negative ones.
 */
int64_t lp_shift(int64_t a, int bits);

#endif
