/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "rate/rate.h"

#include <errno.h>
#include <string.h>

#define ONE       ((uint64_t)1 << 52)
/* Exponents of numbers from 1 to 2, and from 1/2 to 1. */
#define FROM_1    1023
#define FROM_HALF 1022
/* 2^31 * 2^-40: 0.195 %. */
#define MOST      ((int64_t)1 << 31)

int lp_rate_apply(uint64_t *increment, double ratio)
{
	uint64_t bits;
	int64_t less_one;

	memcpy(&bits, &ratio, sizeof(bits));

	uint64_t digits = (bits & (ONE - 1)) | ONE;
	uint64_t exponent = bits >> 52;

	if (exponent != FROM_1 && exponent != FROM_HALF) {
		return -EINVAL;
	}
	/* In 2^-40. */
	less_one = exponent == FROM_1 ? (int64_t)(digits - ONE) >> 12
				      : ((int64_t)digits - (int64_t)(2 * ONE)) >> 13;
	if (less_one >= MOST || less_one <= -MOST) {
		return -EINVAL;
	}
	*increment += (uint64_t)(less_one * (int64_t)(*increment >> 13) >> 27);
	return 0;
}
