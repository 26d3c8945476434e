/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "servo/weights.h"

#include "near/near.h"

/* Nats that mean no weight. */
#define NONE (12 * LP_NAT)

unsigned int lp_shift_to_12(int64_t a)
{
	unsigned int shift = 0;

	for (; a >> 32 != 0; a >>= 16) {
		shift += 16;
	}
	for (uint32_t rest = (uint32_t)a; rest >= 4096; rest >>= 1) {
		shift++;
	}
	return shift;
}

LP_NEAR uint32_t lp_scaled(int64_t a, unsigned int shift, uint32_t most)
{
	int64_t small = a >> shift;

	return small > most ? most : (uint32_t)small;
}

void lp_nats(int32_t nats[LP_MEMBERS], const int64_t squares[LP_MEMBERS], uint32_t samples)
{
	int64_t least = squares[0];
	unsigned int shift;
	uint32_t base, most;

	if (samples == 0) {
		return;
	}
	for (int i = 1; i < LP_MEMBERS; i++) {
		least = squares[i] < least ? squares[i] : least;
	}
	shift = lp_shift_to_12(least);
	base = lp_scaled(least < 1 ? 1 : least, shift, 4096);
	most = base * 512 / samples;
	for (int i = 0; i < LP_MEMBERS; i++) {
		/* At most 256 nats: 2^12 * 2^9 * 2^7. */
		uint32_t above = lp_scaled(squares[i], shift, base + most) - base;

		nats[i] += (int32_t)(above * samples * (LP_NAT / 2) / base);
	}
}

void lp_weights(uint32_t weights[LP_MEMBERS], const int32_t nats[LP_MEMBERS])
{
	int32_t least = nats[0], rest = (int32_t)1 << LP_WEIGHT_BITS;
	uint32_t sum = 0;
	int best = 0;

	for (int i = 1; i < LP_MEMBERS; i++) {
		least = nats[i] < least ? nats[i] : least;
	}
	for (int i = 0; i < LP_MEMBERS; i++) {
		uint32_t against = (uint32_t)(nats[i] - least);

		weights[i] = 0;
		if (against < NONE) {
			/* exp(-x) = 2^-(x * 1.4427); the fraction of the power by a chord. */
			against = against * 369 >> 8;
			weights[i] =
				((2 * LP_NAT - (against & (LP_NAT - 1))) << 14) >> (against >> 8);
		}
		sum += weights[i];
	}
	sum >>= LP_WEIGHT_BITS;
	for (int i = 0; i < LP_MEMBERS; i++) {
		weights[i] /= sum;
		rest -= (int32_t)weights[i];
		best = weights[i] > weights[best] ? i : best;
	}
	weights[best] += (uint32_t)rest;
}
