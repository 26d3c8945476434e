/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "wide.h"

#include <stdbool.h>

#include "near/near.h"

#define LOW32 0xffffffffu

/*
 * The product of two words; the processor takes as long for one as for some forty additions, so
 * none is wasted on 0.
 */
static uint64_t times(uint32_t a, uint32_t b)
{
	return a == 0 || b == 0 ? 0 : (uint64_t)a * b;
}

static inline struct lp_wide multiply(uint64_t a, uint64_t b)
{
	uint32_t a0 = (uint32_t)a, a1 = (uint32_t)(a >> 32);
	uint32_t b0 = (uint32_t)b, b1 = (uint32_t)(b >> 32);
	uint64_t low = times(a0, b0);
	uint64_t middle = times(a1, b0) + (low >> 32);
	uint64_t other = times(a0, b1) + (middle & LOW32);

	return (struct lp_wide){
		.high = times(a1, b1) + (middle >> 32) + (other >> 32),
		.low = (other << 32) | (low & LOW32),
	};
}

struct lp_wide lp_wide_multiply(uint64_t a, uint64_t b)
{
	return multiply(a, b);
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
	return (struct lp_wide){.high = (a.high << bits) | (a.low >> (64 - bits)),
				.low = a.low << bits};
}

struct lp_wide lp_wide_right(struct lp_wide a, unsigned int bits)
{
	if (bits >= 64) {
		return (struct lp_wide){.high = 0, .low = a.high >> (bits - 64)};
	}
	if (bits == 0) {
		return a;
	}
	return (struct lp_wide){.high = a.high >> bits,
				.low = (a.low >> bits) | (a.high << (64 - bits))};
}

int lp_wide_compare(struct lp_wide a, struct lp_wide b)
{
	if (a.high != b.high) {
		return a.high < b.high ? -1 : 1;
	}
	return (a.low > b.low) - (a.low < b.low);
}

/*
 * (high * 2^32 + low) / divisor, by halves of words: the divisor has its highest bit, and is above
 * ``high``.
 */
static uint32_t divide_word(uint32_t high, uint32_t low, uint32_t divisor, uint32_t *rest)
{
	const uint32_t halves[2] = {low >> 16, low & 0xffff};
	uint32_t d1 = divisor >> 16, d0 = divisor & 0xffff;
	uint32_t quotient = 0;

	for (int i = 0; i < 2; i++) {
		uint32_t digit = high / d1;
		uint32_t product = digit * d0;

		high = ((high - digit * d1) << 16) | halves[i];
		if (high < product) {
			digit--;
			high += divisor;
			if (high >= divisor && high < product) {
				digit--;
				high += divisor;
			}
		}
		high -= product;
		quotient = (quotient << 16) + digit;
	}
	*rest = high;
	return quotient;
}

/*
 * A digit of 32 bits: (rest * 2^32 + next) / divisor, and what is left; the divisor is normalised,
 * and above the rest.
 */
static LP_NEAR uint32_t divide_digit(uint64_t *rest, uint32_t next, uint64_t divisor)
{
	uint32_t d1 = (uint32_t)(divisor >> 32);
	uint32_t high = (uint32_t)(*rest >> 32), low = (uint32_t)*rest;
	uint32_t digit = UINT32_MAX, left;
	uint64_t product;

	if (high < d1) {
		digit = divide_word(high, low, d1, &left);
	} else {
		left = low + d1;
		if (left < low) {
			/* What is left of so many d1 is above any product of d0. */
			*rest = (((uint64_t)left << 32) | next) - times(digit, (uint32_t)divisor);
			return digit;
		}
	}
	*rest = ((uint64_t)left << 32) | next;
	product = times(digit, (uint32_t)divisor);
	while (*rest < product) {
		digit--;
		*rest += divisor;
		if (*rest < divisor) {
			break;
		}
	}
	*rest -= product;
	return digit;
}

/*
 * (high * 2^64 + low) / divisor; ``high`` is below the divisor. Source: Knuth, TAOCP volume
 * 2, 4.3.1, algorithm D.
 */
static LP_NEAR uint64_t divide(uint64_t high, uint64_t low, uint64_t divisor)
{
	uint32_t top = (uint32_t)(divisor >> 32);
	uint32_t digit = 0;
	unsigned int bits = 0;

	if (high == 0 && (low | divisor) <= LOW32) {
		return (uint32_t)low / (uint32_t)divisor;
	}
	if (top == 0) {
		top = (uint32_t)divisor;
		divisor <<= 32;
		high = (high << 32) | (low >> 32);
		low <<= 32;
	}
	while (top >> 31 == 0) {
		top += top;
		bits++;
	}
	if (bits > 0) {
		divisor <<= bits;
		high = (high << bits) | ((uint32_t)(low >> 32) >> (32 - bits));
		low <<= bits;
	}
	if (high > LOW32 || ((high << 32) | (low >> 32)) >= divisor) {
		digit = divide_digit(&high, (uint32_t)(low >> 32), divisor);
	} else {
		high = (high << 32) | (low >> 32);
	}
	return ((uint64_t)digit << 32) | divide_digit(&high, (uint32_t)low, divisor);
}

struct lp_wide lp_wide_divide(struct lp_wide a, uint64_t divisor)
{
	struct lp_wide quotient = {.high = 0};

	if (divisor == 0) {
		return (struct lp_wide){.high = UINT64_MAX, .low = UINT64_MAX};
	}
	if (a.high >= divisor) {
		quotient.high = divide(0, a.high, divisor);
		a.high -= quotient.high * divisor;
	}
	quotient.low = divide(a.high, a.low, divisor);
	return quotient;
}

/* Digit by digit, from the highest that the number has. */
static uint32_t root32(uint32_t a)
{
	uint32_t root = 0, bit = (uint32_t)1 << 30;

	while (bit > a) {
		bit >>= 2;
	}
	for (; bit != 0; bit >>= 2) {
		uint32_t trial = root + bit;

		root >>= 1;
		if (a >= trial) {
			a -= trial;
			root += bit;
		}
	}
	return root;
}

static uint64_t root64(uint64_t a)
{
	uint64_t root = 0, bit = (uint64_t)1 << 62;

	while (bit > a) {
		bit >>= 2;
	}
	for (; bit != 0; bit >>= 2) {
		uint64_t trial = root + bit;

		root >>= 1;
		if (a >= trial) {
			a -= trial;
			root += bit;
		}
	}
	return root;
}

uint64_t lp_wide_root(struct lp_wide a)
{
	uint64_t root = 0;

	if (a.high == 0) {
		return a.low <= LOW32 ? root32((uint32_t)a.low) : root64(a.low);
	}
	for (int bit = 63; bit >= 0; bit--) {
		uint64_t trial = root | ((uint64_t)1 << bit);

		if (lp_wide_compare(multiply(trial, trial), a) <= 0) {
			root = trial;
		}
	}
	return root;
}

static uint64_t magnitude(int64_t a)
{
	return a < 0 ? -(uint64_t)a : (uint64_t)a;
}

static int64_t with_sign(uint64_t size, bool is_negative)
{
	if (size > INT64_MAX) {
		return is_negative ? INT64_MIN : INT64_MAX;
	}
	return is_negative ? -(int64_t)size : (int64_t)size;
}

LP_NEAR int64_t lp_scale(int64_t a, int64_t b, unsigned int shift)
{
	struct lp_wide product = multiply(magnitude(a), magnitude(b));
	bool is_negative = (a < 0) != (b < 0);
	uint32_t dropped = 0;
	uint64_t size;

	/* Whole words first: the processor shifts by a bit a cycle. */
	for (; shift >= 32; shift -= 32) {
		dropped = (uint32_t)product.low;
		product.low = (product.low >> 32) | (product.high << 32);
		product.high >>= 32;
	}
	if (shift == 0) {
		size = product.low;
		dropped >>= 31;
	} else {
		size = product.low >> (shift - 1);
		dropped = size & 1;
		size = (size >> 1) | (product.high << (64 - shift));
		product.high >>= shift;
	}
	if (product.high != 0 || size == UINT64_MAX) {
		return with_sign(UINT64_MAX, is_negative);
	}
	return with_sign(size + dropped, is_negative);
}

LP_NEAR int64_t lp_ratio(int64_t a, int64_t b, int64_t divisor)
{
	struct lp_wide product = multiply(magnitude(a), magnitude(b));
	bool is_negative = (a < 0) != (b < 0);

	if (product.high >= (uint64_t)divisor) {
		return with_sign(UINT64_MAX, is_negative);
	}
	return with_sign(divide(product.high, product.low, (uint64_t)divisor), is_negative);
}

LP_NEAR int64_t lp_shift(int64_t a, int bits)
{
	int64_t shifted;
	uint32_t dropped;

	if (bits < -63) {
		return 0;
	}
	if (bits < 0) {
		dropped = (uint32_t)(bits < -32 ? a >> 32 : a);
		return (a >> -bits) + ((dropped >> ((-bits - 1) & 31)) & 1);
	}
	if (a == 0) {
		return 0;
	}
	shifted = bits > 62 ? 0 : (int64_t)((uint64_t)a << bits);
	if (bits > 62 || shifted >> bits != a) {
		return a < 0 ? INT64_MIN : INT64_MAX;
	}
	return shifted;
}
