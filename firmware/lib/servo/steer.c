/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "servo/steer.h"

#include "near/near.h"
#include "wide/wide.h"

/* 1.96^2, the square of what holds 95 % of a normal distribution, with 16 digits. */
#define SQUARE_95 251763
#define NS_PER_S  1000000000

LP_NEAR int64_t lp_servo_local(const struct lp_servo *s, uint64_t ticks)
{
	return lp_scale((int64_t)(ticks - s->reference), (int64_t)s->config.increment,
			40 - LP_PHASE_BITS);
}

int64_t lp_servo_magnitude(int64_t a)
{
	return a < 0 ? -a : a;
}

int32_t lp_servo_narrow(int64_t a)
{
	return a > INT32_MAX ? INT32_MAX : a < INT32_MIN ? INT32_MIN : (int32_t)a;
}

static int64_t variance_of(int64_t square, uint32_t periods)
{
	/*
	 * To the digits of a variance of the phase: the square of a rate, times that of the
	 * periods.
	 */
	return lp_scale(square, (int64_t)periods * periods, 2 * LP_ERROR_BITS - LP_VARIANCE_BITS);
}

/*
 * Of a straight line through the pulses that are remembered, a whole memory of which is 4 / memory
 * of their noise.
 */
static int64_t extrapolated(const struct lp_servo *s)
{
	int64_t variance = lp_sum(lp_bank_variance(&s->bank), s->doubt);
	int64_t memory = s->bank.memory, silent = s->silent;

	if (silent == 0) {
		return variance;
	}
	return lp_sum(variance,
		      lp_ratio(lp_ratio(variance, 3 * silent, memory), silent + memory, memory));
}

int64_t lp_servo_variance(const struct lp_servo *s)
{
	if (s->silent == 0) {
		return extrapolated(s);
	}
	return lp_sum(extrapolated(s),
		      variance_of(lp_outlook_square(&s->outlook, s->silent + 1), s->silent + 1));
}

int64_t lp_servo_bound(const struct lp_servo *s)
{
	int64_t slow = s->seen.slow > s->wander ? s->seen.slow : s->wander;
	/* What shakes shows in the residuals. */
	int64_t most = lp_bank_square(&s->bank);
	int64_t shaken = s->seen.shaken < most ? s->seen.shaken : most;
	int64_t unseen = lp_sum(lp_sum(extrapolated(s), slow), shaken);
	struct lp_wide square = lp_wide_multiply((uint64_t)unseen, SQUARE_95);

	square = lp_wide_right(square,
			       LP_VARIANCE_BITS); /* 16 digits: those of the square of 2^-8 ns. */
	if (s->silent > 0) {
		int64_t rate = lp_outlook_square(&s->outlook, s->silent + 1);
		uint64_t deviation = lp_wide_root((struct lp_wide){.low = (uint64_t)rate}) *
				     ((uint64_t)s->silent + 1);
		int64_t bound =
			lp_scale((int64_t)deviation, lp_outlook_scale(&s->outlook, s->silent + 1),
				 LP_ERROR_BITS + 16 - 8);

		square = lp_wide_add(square, lp_wide_multiply((uint64_t)bound, (uint64_t)bound));
	}
	return (int64_t)lp_wide_root(square);
}

/* Where the clock stands; all in digits of a phase. */
struct standing {
	int64_t period;  /* Of the pulse, true. */
	int64_t local;   /* Of the pulse, by the oscillator. */
	int64_t since;   /* Oscillator's time since the filter's period began. */
	int64_t elapsed; /* True time since then. */
	int64_t error;   /* Of `now`, within half a period. */
};

static struct standing stand(const struct lp_servo *s, const struct lp_servo_stamp *stamp)
{
	struct standing at;
	int64_t growth = lp_course_growth(&s->course);

	at.period = (int64_t)s->config.period_ns << LP_PHASE_BITS;
	at.local = at.period + growth;
	at.since = lp_sum(lp_servo_local(s, stamp->ticks), -s->course.phase);
	at.elapsed = at.since - lp_ratio(at.since, growth, at.local);
	at.error = ((int64_t)(stamp->now % s->config.period_ns) << LP_PHASE_BITS) + stamp->fraction;
	at.error -= at.elapsed;
	/* Hardly ever, and a division takes long. */
	if (lp_servo_magnitude(at.error) >= at.period) {
		at.error %= at.period;
	}
	if (at.error > at.period / 2) {
		at.error -= at.period;
	} else if (at.error < -at.period / 2) {
		at.error += at.period;
	}
	return at;
}

/* Let `now` reach what it shall show at the next pulse, but for what no slew takes away in time. */
static void slew(struct lp_servo *s, struct lp_servo_output *out)
{
	int64_t nominal = (int64_t)s->config.increment;
	int64_t excess = s->wanted - s->error - s->left;
	int64_t most = s->left >> 10; /* 1000 ppm: more than any crystal and any slew. */

	excess = excess > most ? most : excess < -most ? -most : excess;
	s->increment = (uint64_t)(nominal + lp_ratio(nominal, excess, s->left));
	out->increment = s->increment;
}

void lp_servo_refuse(struct lp_servo *s, struct lp_servo_output *out)
{
	if (!out->has_adjust) {
		return;
	}
	s->error = -out->adjust;
	out->has_adjust = false;
	out->adjust = 0;
	slew(s, out);
	lp_servo_report(s, out);
}

void lp_servo_steer(struct lp_servo *s, const struct lp_servo_stamp *stamp, uint32_t latency,
		    struct lp_servo_output *out)
{
	int64_t nominal = (int64_t)s->config.increment;
	struct standing at;
	int64_t waiting, waited, shown;

	if (!s->has_rate) {
		out->increment = s->increment;
		return;
	}
	at = stand(s, stamp);
	/* Later than a period is too late to matter. */
	latency = latency > s->period_ticks ? s->period_ticks : latency;
	/* Until the output takes effect: by the oscillator, truly, and as `now` shows it. */
	waiting = lp_scale(latency, nominal, 40 - LP_PHASE_BITS);
	waited = waiting - lp_ratio(waiting, at.local - at.period, at.local);
	shown = lp_scale(latency, (int64_t)s->increment, 40 - LP_PHASE_BITS);
	at.error += shown - waited;
	if ((s->state == LP_SERVO_ACQUIRING && s->accepted == 2) ||
	    lp_servo_magnitude(at.error) > (int64_t)s->config.jump_ns << LP_PHASE_BITS) {
		s->state = LP_SERVO_ACQUIRING;
		out->has_adjust = true;
		out->adjust = -at.error;
		at.error = 0;
	}
	/*
	 * To the next pulse that leaves time enough to act: by the oscillator, and as `now` shall
	 * show it.
	 */
	s->left = at.local - at.since - waiting;
	s->wanted = at.period - at.elapsed - waited;
	while (s->left < at.period / 4) {
		s->left += at.local;
		s->wanted += at.period;
	}
	s->error = at.error;
	slew(s, out);
}

/* A value for each period, for each second. */
static int64_t per_second(int64_t value, uint32_t period_ns)
{
	return period_ns == NS_PER_S ? value : lp_ratio(value, NS_PER_S, period_ns);
}

void lp_servo_report(const struct lp_servo *s, struct lp_servo_output *out)
{
	uint32_t period_ns = s->config.period_ns;
	int64_t bound;

	out->state = s->state;
	out->edges = s->edges;
	out->rejected = s->rejected;
	out->holdover = s->silent;
	out->uncertainty = UINT32_MAX;
	if (!s->has_rate) {
		return;
	}
	bound = s->bound + lp_servo_magnitude(lp_shift(s->error, 8 - LP_PHASE_BITS));
	out->uncertainty = bound > UINT32_MAX ? UINT32_MAX : (uint32_t)bound;
	out->rate =
		lp_servo_narrow(lp_shift(per_second(s->course.rate, period_ns), 8 - LP_RATE_BITS));
	out->drift = lp_servo_narrow(
		lp_scale(per_second(per_second(s->course.drift, period_ns), period_ns), 1000,
			 LP_DRIFT_BITS - 8));
}
