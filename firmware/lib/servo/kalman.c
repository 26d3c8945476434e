/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

#include "kalman.h"

#include "wide/wide.h"

#define GAIN_BITS 40

/* What one digit more of a state is worth in a covariance. */
#define PR_OVER_PP (LP_RATE_DIGITS - LP_PHASE_DIGITS)
#define PD_OVER_PP (LP_DRIFT_DIGITS - LP_PHASE_DIGITS)
#define RD_OVER_PR PD_OVER_PP
#define RD_OVER_RR (LP_DRIFT_DIGITS - LP_RATE_DIGITS)

void lp_kalman_start(struct lp_kalman *k, int64_t phase, int64_t rate, int64_t measured, int64_t drift)
{
	int up = (int)k->shift;

	k->phase = phase;
	k->rate = rate;
	k->drift = 0;
	/* The rate is the difference of two measured phases, a period apart; the drift adds half of itself. */
	k->pp = measured;
	k->pr = lp_shift(measured, PR_OVER_PP + up);
	k->rr = lp_sum(lp_shift(measured, 2 * PR_OVER_PP + 2 * up + 1), lp_shift(drift, -2 * RD_OVER_RR - 2 * up - 2));
	k->pd = 0;
	k->rd = lp_shift(drift, -RD_OVER_RR - up - 1);
	k->dd = drift;
}

int64_t lp_kalman_growth(const struct lp_kalman *k)
{
	int down = -(int)k->shift;

	return lp_sum(lp_shift(k->rate, LP_PHASE_BITS - LP_RATE_BITS + down),
		      lp_shift(k->drift, LP_PHASE_BITS - LP_DRIFT_BITS + 2 * down - 1));
}

/*
 * A covariance is brought to the digits of another by a shift; a step of 2^-shift time units is a shift, too. Always
 * downwards: less work than lp_shift, on a processor that shifts by a bit a cycle.
 */
static __attribute__((noinline)) int64_t step(int64_t covariance, unsigned int bits)
{
	if (bits > 63) {
		return 0;
	}
	return (covariance >> bits) + ((covariance >> (bits - 1)) & 1);
}

int64_t lp_kalman_ahead(const struct lp_kalman *k, const struct lp_kalman_noise *noise)
{
	unsigned int s = k->shift;
	int64_t pp = k->pp;

	pp = lp_sum(pp, step(k->pr, PR_OVER_PP - 1 + s));
	pp = lp_sum(pp, step(k->rr, 2 * PR_OVER_PP + 2 * s));
	pp = lp_sum(pp, step(k->pd, PD_OVER_PP + 2 * s));
	return lp_sum(pp, lp_sum(lp_sum(step(k->rd, PR_OVER_PP + PD_OVER_PP + 3 * s),
					step(k->dd, 2 * PD_OVER_PP + 2 + 4 * s)),
				 noise->phase));
}

void lp_kalman_predict(struct lp_kalman *k, const struct lp_kalman_noise *noise)
{
	unsigned int s = k->shift;
	int64_t rd_pr = step(k->rd, PD_OVER_PP + 2 * s);

	k->phase = lp_sum(k->phase, lp_kalman_growth(k));
	k->rate = lp_sum(k->rate, step(k->drift, LP_DRIFT_BITS - LP_RATE_BITS + s));

	k->pp = lp_kalman_ahead(k, noise);

	k->pr = lp_sum(k->pr, step(k->rr, PR_OVER_PP + s));
	k->pr = lp_sum(k->pr, step(k->pd, RD_OVER_RR + s));
	k->pr = lp_sum(k->pr, lp_sum(lp_sum(rd_pr, lp_shift(rd_pr, -1)),
				     step(k->dd, PD_OVER_PP + RD_OVER_RR + 1 + 3 * s)));

	k->pd = lp_sum(k->pd, step(k->rd, PR_OVER_PP + s));
	k->pd = lp_sum(k->pd, step(k->dd, PD_OVER_PP + 1 + 2 * s));

	k->rr = lp_sum(k->rr, step(k->rd, RD_OVER_RR - 1 + s));
	k->rr = lp_sum(k->rr, lp_sum(step(k->dd, 2 * RD_OVER_RR + 2 * s), noise->rate));

	k->rd = lp_sum(k->rd, step(k->dd, RD_OVER_RR + s));

	k->dd = lp_sum(k->dd, noise->drift);
}

static int64_t gain(int64_t covariance, int digits, int64_t total)
{
	/* Both have digits; the gain has GAIN_BITS and the unit of the state. */
	return lp_ratio(covariance, (int64_t)1 << (GAIN_BITS - digits), total);
}

static int64_t at_least_one(int64_t variance)
{
	return variance < 1 ? 1 : variance;
}

void lp_kalman_update(struct lp_kalman *k, int64_t residual, int64_t measured)
{
	int64_t total = lp_sum(k->pp, measured);
	int64_t gain_p = gain(k->pp, 0, total);
	int64_t gain_r = gain(k->pr, PR_OVER_PP, total);
	int64_t gain_d = gain(k->pd, PD_OVER_PP, total);

	k->phase = lp_sum(k->phase, lp_scale(gain_p, residual, GAIN_BITS));
	k->rate = lp_sum(k->rate, lp_scale(gain_r, residual, GAIN_BITS + LP_PHASE_BITS - LP_RATE_BITS));
	k->drift = lp_sum(k->drift, lp_scale(gain_d, residual, GAIN_BITS + LP_PHASE_BITS - LP_DRIFT_BITS));

	k->dd = at_least_one(k->dd - lp_scale(gain_d, k->pd, GAIN_BITS - PD_OVER_PP));
	k->rd = k->rd - lp_scale(gain_r, k->pd, GAIN_BITS - PR_OVER_PP);
	k->rr = at_least_one(k->rr - lp_scale(gain_r, k->pr, GAIN_BITS - PR_OVER_PP));
	k->pd = k->pd - lp_scale(gain_p, k->pd, GAIN_BITS);
	k->pr = k->pr - lp_scale(gain_p, k->pr, GAIN_BITS);
	k->pp = at_least_one(k->pp - lp_scale(gain_p, k->pp, GAIN_BITS));
}
