/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

#include "wide.h"

#include <stdbool.h>

#define LOW32 0xffffffffu

struct lp_wide lp_wide_multiply(uint64_t a, uint64_t b)
{
	uint64_t a0 = a & LOW32, a1 = a >> 32;
	uint64_t b0 = b & LOW32, b1 = b >> 32;
	uint64_t low = a0 * b0;
	uint64_t middle = a1 * b0 + (low >> 32);
	uint64_t other = a0 * b1 + (middle & LOW32);

	return (struct lp_wide){
		.high = a1 * b1 + (middle >> 32) + (other >> 32),
		.low = (other << 32) | (low & LOW32),
	};
}

struct lp_wide lp_wide_add(struct lp_wide a, struct lp_wide b)
{
	struct lp_wide sum = {.high = a.high + b.high, .low = a.low + b.low};

	sum.high += sum.low < a.low;
	return sum;
}

struct lp_wide lp_wide_subtract(struct lp_wide a, struct lp_wide b)
{
	return (struct lp_wide){.high = a.high - b.high - (a.low < b.low), .low = a.low - b.low};
}

struct lp_wide lp_wide_left(struct lp_wide a, unsigned int bits)
{
	if (bits >= 64) {
		return (struct lp_wide){.high = a.low << (bits - 64), .low = 0};
	}
	if (bits == 0) {
		return a;
	}
	return (struct lp_wide){.high = (a.high << bits) | (a.low >> (64 - bits)), .low = a.low << bits};
}

struct lp_wide lp_wide_right(struct lp_wide a, unsigned int bits)
{
	if (bits >= 64) {
		return (struct lp_wide){.high = 0, .low = a.high >> (bits - 64)};
	}
	if (bits == 0) {
		return a;
	}
	return (struct lp_wide){.high = a.high >> bits, .low = (a.low >> bits) | (a.high << (64 - bits))};
}

int lp_wide_compare(struct lp_wide a, struct lp_wide b)
{
	if (a.high != b.high) {
		return a.high < b.high ? -1 : 1;
	}
	return (a.low > b.low) - (a.low < b.low);
}

struct lp_wide lp_wide_divide(struct lp_wide a, uint64_t divisor)
{
	struct lp_wide quotient = {.high = UINT64_MAX, .low = UINT64_MAX};
	uint64_t rest;

	if (divisor == 0) {
		return quotient;
	}
	quotient.high = a.high / divisor;
	rest = a.high % divisor;
	if (rest == 0) {
		quotient.low = a.low / divisor;
		return quotient;
	}
	/* Bit by bit: 64 steps of a shift and a comparison, far below a millisecond at 50 MHz. */
	quotient.low = 0;
	for (int bit = 63; bit >= 0; bit--) {
		bool carry = rest >> 63;

		rest = (rest << 1) | ((a.low >> bit) & 1);
		if (carry || rest >= divisor) {
			rest -= divisor;
			quotient.low |= (uint64_t)1 << bit;
		}
	}
	return quotient;
}

uint64_t lp_wide_root(struct lp_wide a)
{
	uint64_t root = 0;

	for (int bit = 63; bit >= 0; bit--) {
		uint64_t trial = root | ((uint64_t)1 << bit);

		if (lp_wide_compare(lp_wide_multiply(trial, trial), a) <= 0) {
			root = trial;
		}
	}
	return root;
}

static uint64_t magnitude(int64_t a)
{
	return a < 0 ? -(uint64_t)a : (uint64_t)a;
}

static int64_t with_sign(struct lp_wide a, bool is_negative)
{
	if (a.high != 0 || a.low > INT64_MAX) {
		return is_negative ? INT64_MIN : INT64_MAX;
	}
	return is_negative ? -(int64_t)a.low : (int64_t)a.low;
}

int64_t lp_scale(int64_t a, int64_t b, unsigned int shift)
{
	struct lp_wide product = lp_wide_multiply(magnitude(a), magnitude(b));

	if (shift > 0) {
		product = lp_wide_add(product, lp_wide_left((struct lp_wide){.low = 1}, shift - 1));
	}
	return with_sign(lp_wide_right(product, shift), (a < 0) != (b < 0));
}

int64_t lp_ratio(int64_t a, int64_t b, int64_t divisor)
{
	struct lp_wide product = lp_wide_multiply(magnitude(a), magnitude(b));

	return with_sign(lp_wide_divide(product, (uint64_t)divisor), (a < 0) != (b < 0));
}

int64_t lp_sum(int64_t a, int64_t b)
{
	if (b > 0 && a > INT64_MAX - b) {
		return INT64_MAX;
	}
	if (b < 0 && a < INT64_MIN - b) {
		return INT64_MIN;
	}
	return a + b;
}

int64_t lp_shift(int64_t a, int bits)
{
	if (bits < -63) {
		return 0;
	}
	if (bits < 0) {
		return (a >> -bits) + ((a >> (-bits - 1)) & 1);
	}
	if (a == 0) {
		return 0;
	}
	if (bits > 62 || a > (INT64_MAX >> bits) || a < (INT64_MIN >> bits)) {
		return a < 0 ? INT64_MIN : INT64_MAX;
	}
	return (int64_t)((uint64_t)a << bits);
}
