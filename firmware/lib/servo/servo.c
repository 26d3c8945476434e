/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "servo/servo.h"

#include <string.h>

#include "servo/steer.h"
#include "wide/wide.h"

#define NS ((int64_t)1 << LP_PHASE_BITS)

/* A pulse further off than this many sigma is an outlier. */
#define GATE             5
/* So many rejected pulses in a row that agree with each other are a new truth. */
#define ROW_AGREED       LP_SERVO_ROW
/* So many that don't: start anew, whatever comes. */
#define ROW_LOST         32
/* So many rejected pulses without a used one are a holdover; a missing pulse is one immediately. */
#define HOLDOVER_PERIODS 8
/* Longer gaps are not bridged. */
#define LONGEST_GAP      100000u
/* Pulses after which the gate is sure. */
#define SURE_PULSES      12
/* Periods without a used pulse that the bank's members bridge, each by itself. */
#define BRIDGED          8
/* After so many pulses of the other kind (qErr or none) that is learned of. */
#define KIND_CHANGES     8

void lp_servo_reacquire(struct lp_servo *s)
{
	s->state = LP_SERVO_FREE_RUNNING;
	s->has_reference = false;
	s->has_rate = false;
	s->accepted = 0;
	s->row = 0;
	s->doubt = 0;
	lp_outlook_break(&s->outlook);
}

/* Time ----------------------------------------------------------------------------------------- */

static int64_t period_of(const struct lp_servo *s)
{
	return (int64_t)s->config.period_ns << LP_PHASE_BITS;
}

/* Move the reference to the tick before the phase, which stays small so. */
static void recentre(struct lp_servo *s)
{
	int64_t increment = (int64_t)s->config.increment;
	int64_t ticks = lp_ratio(s->course.phase, (int64_t)1 << (40 - LP_PHASE_BITS), increment);
	int64_t moved = lp_scale(ticks, increment, 40 - LP_PHASE_BITS);

	s->reference += (uint64_t)ticks;
	s->course.phase -= moved;
	lp_bank_shift(&s->bank, -moved);
}

static void next_period(struct lp_servo *s)
{
	if (s->outlook.is_followed) {
		lp_outlook_predict(&s->outlook, &s->course, s->silent);
	} else {
		lp_course_predict(&s->course);
	}
	if (s->silent < BRIDGED) {
		lp_bank_predict(&s->bank);
	}
	s->course.phase = lp_sum(s->course.phase, period_of(s));
	lp_bank_shift(&s->bank, period_of(s));
	recentre(s);
	s->period++;
	s->silent++;
}

/* Where the oscillator is, less the time of the periods: 2^-32 ns, wraps. */
static uint64_t travelled(const struct lp_servo *s, int64_t phase)
{
	struct lp_wide local = lp_wide_multiply(s->reference, s->config.increment);

	return lp_wide_right(local, 40 - LP_PHASE_BITS).low + (uint64_t)phase -
	       s->period * (uint64_t)period_of(s);
}

/*
 * Predict until a tick is less than ``before`` after the filter's period began; return whether that
 * makes sense.
 */
static bool advance(struct lp_servo *s, uint64_t ticks, int64_t before)
{
	for (uint32_t steps = 0; steps < LONGEST_GAP; steps++) {
		if (lp_sum(lp_servo_local(s, ticks), -s->course.phase) < before) {
			return true;
		}
		next_period(s);
	}
	return false;
}

/* A pulse is believed or not ------------------------------------------------------------------- */

static bool is_within(int64_t residual, int64_t variance_, int64_t gate)
{
	int64_t small = lp_shift(residual, LP_VARIANCE_BITS / 2 - LP_PHASE_BITS);
	struct lp_wide square = lp_wide_multiply((uint64_t)(small < 0 ? -small : small),
						 (uint64_t)(small < 0 ? -small : small));

	return lp_wide_compare(square,
			       lp_wide_multiply((uint64_t)variance_, (uint64_t)(gate * gate))) <= 0;
}

/* Follow a phase and a growth that are known from two pulses, a period apart. */
static void follow(struct lp_servo *s, int64_t phase, int64_t growth)
{
	s->course = (struct lp_course){.phase = phase,
				       .rate = lp_shift(growth, LP_RATE_BITS - LP_PHASE_BITS)};
	lp_bank_start(&s->bank, &s->course, 2);
	lp_outlook_break(&s->outlook);
	lp_wander_break(&s->seen);
	recentre(s);
	s->row = 0;
	s->silent = 0;
	s->doubt = 0;
}

static void start(struct lp_servo *s, int64_t phase, int64_t growth)
{
	follow(s, phase, growth);
	s->state = LP_SERVO_ACQUIRING;
	s->has_rate = true;
	s->accepted = 2;
}

static bool is_plausible(const struct lp_servo *s, int64_t growth)
{
	return lp_servo_magnitude(growth) <=
	       lp_ratio(period_of(s), s->config.rate_limit_ppm, 1000000);
}

/* The first pulse gives the phase, the second the rate. */
static void acquire(struct lp_servo *s, uint64_t ticks, int64_t late)
{
	int64_t phase = lp_sum(lp_servo_local(s, ticks), -late);
	int64_t growth = lp_sum(phase, -(s->course.phase + period_of(s)));

	if (s->has_reference && ticks - s->reference < (uint64_t)1 << 40 &&
	    is_plausible(s, growth)) {
		start(s, phase, growth);
		s->period++;
		return;
	}
	s->reference = ticks;
	s->course = (struct lp_course){.phase = -late};
	s->has_reference = true;
	s->state = LP_SERVO_ACQUIRING;
	s->accepted = 1;
}

/* Whether the last ``count`` rejected pulses came a period apart and lie on a straight line. */
static bool is_line(const struct lp_servo *s, uint32_t count, int64_t measured)
{
	const struct lp_servo_rejected *h = s->history;

	for (uint32_t i = 0; i + 1 < count; i++) {
		if (h[i].period != h[i + 1].period + 1 ||
		    !is_plausible(s, h[i].phase - h[i + 1].phase)) {
			return false;
		}
	}
	for (uint32_t i = 0; i + 2 < count; i++) {
		/* Three measured values, weighted 1, -2, 1. */
		if (!is_within(h[i].phase - 2 * h[i + 1].phase + h[i + 2].phase, 6 * measured,
			       GATE)) {
			return false;
		}
	}
	return true;
}

static void reject(struct lp_servo *s, int64_t residual, int64_t measured)
{
	uint32_t enough = s->state == LP_SERVO_ACQUIRING ? 2 : ROW_AGREED;
	/* The residuals are against a prediction that grows by itself. */
	int64_t phase = s->course.phase + residual;
	int64_t growth = lp_course_growth(&s->course) + residual - s->history[0].phase;

	s->rejected++;
	s->row++;
	memmove(&s->history[1], &s->history[0], sizeof(s->history[0]) * (LP_SERVO_ROW - 1));
	s->history[0] = (struct lp_servo_rejected){.period = s->period, .phase = residual};
	if (s->row < enough) {
		return;
	}
	if (is_line(s, enough, measured)) {
		start(s, phase, growth);
	} else if (s->row >= ROW_LOST) {
		lp_servo_reacquire(s);
	}
}

/*
 * The first pulse after a holdover: it gives the phase, and the holdover's rate is kept for what it
 * is worth.
 */
static bool come_back(struct lp_servo *s, int64_t residual, int64_t measured)
{
	int64_t variance = lp_servo_variance(s);
	int64_t rate = lp_shift(lp_outlook_square(&s->outlook, s->silent),
				LP_VARIANCE_BITS - 2 * LP_ERROR_BITS);
	uint32_t count = 2;

	if (!is_within(residual, lp_sum(variance, measured), GATE)) {
		return false;
	}
	s->course.phase =
		lp_sum(s->course.phase, lp_ratio(residual, variance, lp_sum(variance, measured)));
	/* As many pulses as would give the rate as well: its variance is 12 measured / count^3. */
	while (count < 256 && 12 * measured > lp_scale(rate, (int64_t)count * count * count, 0)) {
		count += count / 2;
	}
	lp_bank_start(&s->bank, &s->course, count);
	s->doubt = count == 2 ? rate : 0;
	return true;
}

/* The second: with it the rate is known anew. */
static bool come_back_again(struct lp_servo *s, int64_t residual, int64_t measured)
{
	if (!is_within(residual, lp_sum(s->doubt, 2 * measured), GATE)) {
		return false;
	}
	follow(s, s->course.phase + residual,
	       lp_course_growth(&s->course) + residual / (int32_t)s->silent);
	return true;
}

static bool take(struct lp_servo *s, uint64_t ticks, int64_t late, int64_t measured, int64_t excess)
{
	int64_t phase = lp_sum(lp_servo_local(s, ticks), -late);
	int64_t residual = lp_sum(phase, -s->course.phase);
	uint64_t measured_at = travelled(s, phase);
	uint32_t periods = s->silent;
	bool is_taken;

	if (s->silent > BRIDGED) {
		is_taken = come_back(s, residual, measured);
	} else if (s->doubt > 0) {
		is_taken = come_back_again(s, residual, measured);
	} else {
		is_taken = lp_bank_update(&s->bank, &s->course, phase, excess);
	}
	if (!is_taken) {
		reject(s, residual, measured);
		return false;
	}
	/* While few pulses are known an outlier may have passed. */
	if (excess == 0 && s->bank.pulses > SURE_PULSES) {
		lp_wander_pulse(&s->seen, measured_at, periods);
	}
	s->row = 0;
	s->silent = 0;
	s->accepted += s->accepted < UINT32_MAX;
	lp_outlook_pulse(&s->outlook, &s->bank, s->period, travelled(s, s->course.phase),
			 lp_bank_variance(&s->bank));
	return true;
}

/* Return the variance that a pulse has beyond those that are learned of. */
static int64_t excess_of(struct lp_servo *s, bool has_qerr)
{
	s->other_kind = has_qerr == s->has_qerr ? 0 : s->other_kind + 1;
	if (s->other_kind > 0 && (s->other_kind >= KIND_CHANGES || s->bank.pulses == 0)) {
		lp_servo_learn_of(s, has_qerr);
	}
	return s->has_qerr && !has_qerr ? s->sawtooth : 0;
}

/* Calls ---------------------------------------------------------------------------------------- */

static void settle_state(struct lp_servo *s)
{
	int64_t bound;

	if (!s->has_rate) {
		return;
	}
	if (s->silent > 0 && !s->outlook.is_followed) {
		lp_outlook_follow(&s->outlook, &s->bank, &s->course);
	}
	s->bound = lp_servo_bound(s);
	bound = s->bound >> 8;
	if (s->silent == 0) {
		if (s->state != LP_SERVO_ACQUIRING ||
		    (s->accepted > 2 && bound <= s->config.lock_ns)) {
			s->state = LP_SERVO_LOCKED;
		}
	} else if (bound > s->config.lost_ns) {
		lp_servo_reacquire(s);
	} else if (s->state == LP_SERVO_LOCKED && s->silent >= HOLDOVER_PERIODS) {
		s->state = LP_SERVO_HOLDOVER;
	}
}

/* What `now` showed at the pulse, against the pulse. */
static void compare(const struct lp_servo *s, const struct lp_servo_edge *edge, int64_t late,
		    struct lp_servo_output *out)
{
	uint64_t number = (edge->stamp.now + s->config.period_ns / 2) / s->config.period_ns;
	int64_t offset = (int64_t)(edge->stamp.now - number * s->config.period_ns);

	out->offset = lp_servo_narrow(lp_shift(
		lp_sum(offset * NS, (int64_t)edge->stamp.fraction - late), 8 - LP_PHASE_BITS));
	if (edge->has_second && out->is_used) {
		out->behind = (int64_t)(edge->second - number);
	}
}

void lp_servo_edge(struct lp_servo *s, const struct lp_servo_edge *edge,
		   struct lp_servo_output *out)
{
	/* The stamp is early by a tick, but for what lies between the edge and the end of it. */
	int64_t tick_ps = (int64_t)(s->config.increment * 1000 >> 40);
	int64_t early_ps = tick_ps - (int64_t)(s->config.quantum_ps / 2) - edge->early_ps;
	int64_t late_ps = (edge->has_qerr ? edge->qerr_ps : 0) - early_ps;
	int64_t late = lp_ratio(late_ps, NS, 1000);
	int64_t excess = excess_of(s, edge->has_qerr);
	int64_t measured = lp_sum(s->bank.noise, excess);
	bool is_used = true;

	memset(out, 0, sizeof(*out));
	if (s->has_rate && !advance(s, edge->stamp.ticks, period_of(s) / 2)) {
		lp_servo_reacquire(s);
	}
	if (s->has_rate) {
		is_used = take(s, edge->stamp.ticks, late, measured, excess);
	} else {
		acquire(s, edge->stamp.ticks, late);
	}
	s->edges += is_used;
	settle_state(s);
	out->is_used = is_used;
	lp_servo_steer(s, &edge->stamp, edge->latency, out);
	lp_servo_report(s, out);
	compare(s, edge, late, out);
}

void lp_servo_silence(struct lp_servo *s, const struct lp_servo_stamp *stamp, uint32_t latency,
		      struct lp_servo_output *out)
{
	memset(out, 0, sizeof(*out));
	if (s->has_rate && !advance(s, stamp->ticks, period_of(s))) {
		lp_servo_reacquire(s);
	}
	if (s->has_rate && s->silent > 0 && s->state == LP_SERVO_LOCKED) {
		s->state = LP_SERVO_HOLDOVER;
	}
	if (!s->has_rate && s->state == LP_SERVO_ACQUIRING) {
		lp_servo_reacquire(s);
	}
	settle_state(s);
	lp_servo_steer(s, stamp, latency, out);
	lp_servo_report(s, out);
	out->offset = lp_servo_narrow(lp_shift(s->error, 8 - LP_PHASE_BITS));
}
