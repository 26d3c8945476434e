/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Mean and deviation without rounding errors: sums are kept exactly, and divided when somebody
 * asks.
 */

#ifndef LITEPROBE_STATISTICS_H
#define LITEPROBE_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

#include "wide/wide.h"

/** Sums of values less the first of them, so that a large common part (a time) costs no digits. */
struct lp_statistics {
	uint32_t count;
	/* Values left out: more than 2^31 - 1 from the first, or above 2^32 - 1 values. */
	uint32_t beyond;
	int64_t first;
	int64_t least;
	int64_t most;
	int64_t sum;
	struct lp_wide squares;
};

struct lp_summary {
	int64_t mean;      /* Whole units, rounded down, */
	uint32_t fraction; /* and what is left, 2^-8, rounded down. */
	/* Of a sample (n - 1), 2^-8 of the unit, rounded down; 0 for one value. */
	uint64_t deviation;
};

void lp_statistics_clear(struct lp_statistics *s);

void lp_statistics_add(struct lp_statistics *s, int64_t value);

/**
 * Work out mean and deviation.
 *
 * @retval true on success
 * @retval false when there is no value
 */
bool lp_statistics_summary(const struct lp_statistics *s, struct lp_summary *summary);

/**
 * The same from the accumulators of a meter: ``sum`` of values and ``squares``, the sum of their
 * squares (96 bits). False, too, when no values have such sums (squares * count below the square of
 * the sum).
 */
bool lp_statistics_of_sums(uint32_t count, int64_t sum, struct lp_wide squares,
			   struct lp_summary *summary);

#endif
