/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "statistics/statistics.h"

#define UNIT 256

void lp_statistics_clear(struct lp_statistics *s)
{
	*s = (struct lp_statistics){0};
}

void lp_statistics_add(struct lp_statistics *s, int64_t value)
{
	/* Unsigned: the difference of any two values is right if it is small. */
	int64_t away = (int64_t)((uint64_t)value - (uint64_t)s->first);
	bool overflows = (value < s->first) != (away < 0);
	uint64_t size;

	if (s->count == 0) {
		s->first = s->least = s->most = value;
		s->count = 1;
		return;
	}
	if (overflows || away > INT32_MAX || away < -INT32_MAX || s->count == UINT32_MAX) {
		s->beyond += s->beyond < UINT32_MAX;
		return;
	}
	size = (uint64_t)(away < 0 ? -away : away);
	s->count++;
	s->sum += away;
	s->squares = lp_wide_add(s->squares, lp_wide_multiply(size, size));
	s->least = value < s->least ? value : s->least;
	s->most = value > s->most ? value : s->most;
}

static uint64_t magnitude(int64_t a)
{
	return a < 0 ? -(uint64_t)a : (uint64_t)a;
}

/* a * b for a of 96 bits and b of 32. */
static struct lp_wide times(struct lp_wide a, uint32_t b)
{
	struct lp_wide high = lp_wide_multiply(a.high, b);

	return lp_wide_add(lp_wide_multiply(a.low, b), lp_wide_left(high, 64));
}

static void set_mean(uint32_t count, int64_t sum, struct lp_summary *summary)
{
	int64_t rest = sum % count;

	summary->mean = sum / count;
	if (rest < 0) {
		rest += count;
		summary->mean--;
	}
	summary->fraction = (uint32_t)((uint64_t)rest * UNIT / count);
}

bool lp_statistics_of_sums(uint32_t count, int64_t sum, struct lp_wide squares,
			   struct lp_summary *summary)
{
	struct lp_wide all, common, spread;
	uint64_t divisor = (uint64_t)count * (count - 1);

	if (count == 0 || squares.high > UINT32_MAX) {
		return false;
	}
	all = times(squares, count);
	common = lp_wide_multiply(magnitude(sum), magnitude(sum));
	if (lp_wide_compare(all, common) < 0) {
		return false;
	}
	set_mean(count, sum, summary);
	summary->deviation = 0;
	if (count == 1) {
		return true;
	}
	/* The root of the variance in 2^-16, with as many digits as there is room for. */
	spread = lp_wide_subtract(all, common);
	if (spread.high >> 48 == 0) {
		spread = lp_wide_divide(lp_wide_left(spread, 16), divisor);
	} else {
		spread = lp_wide_left(lp_wide_divide(spread, divisor), 16);
	}
	summary->deviation = lp_wide_root(spread);
	return true;
}

bool lp_statistics_summary(const struct lp_statistics *s, struct lp_summary *summary)
{
	if (!lp_statistics_of_sums(s->count, s->sum, s->squares, summary)) {
		return false;
	}
	summary->mean = lp_sum(summary->mean, s->first);
	return true;
}
