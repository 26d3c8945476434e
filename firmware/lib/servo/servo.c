/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

#include "servo/servo.h"

#include <errno.h>
#include <string.h>

#include "servo/steer.h"
#include "wide/wide.h"

#define NS ((int64_t)1 << LP_PHASE_BITS)

/* A pulse further off than this many sigma is an outlier. */
#define GATE 5
/* So many rejected pulses in a row that agree with each other are a new truth. */
#define ROW_AGREED LP_SERVO_ROW
/* So many that don't: start anew, whatever comes. */
#define ROW_LOST 32
/* Rejected pulses without a used one between them, until that is called holdover; silence is at once. */
#define HOLDOVER_PERIODS 8
/* Longer gaps are not bridged. */
#define LONGEST_GAP 100000u

/* Agility. */
#define AGILITY_START 4
#define AGILITY_MOST  8
#define BIAS_LIMIT    (int32_t)(1.25 * 256)
#define CALM_EDGES    24

void lp_servo_defaults(struct lp_servo_config *config)
{
	*config = (struct lp_servo_config){
		.increment = (uint64_t)8 << 40,
		.period_ns = 1000000000,
		.quantum_ps = 8000,
		.noise_ps = 2000,
		.sawtooth_ps = 25000,
		.wander_ps = 1500,
		.phase_walk_ps = 300,
		.rate_walk_ppq = 60000,
		.drift_walk_ppq = 14000,
		.jerk_ppq = 2500,
		.rate_limit_ppm = 200,
		.lock_ns = 60,
		.jump_ns = 2000,
		.lost_ns = 1000000,
	};
}

/* Return the variance of a deviation of ``sigma`` * 10^-decimals, with ``digits``. */
static int64_t variance(uint32_t sigma, unsigned int decimals, unsigned int digits)
{
	int64_t unit = 1;

	while (decimals-- > 0) {
		unit *= 100;
	}
	return lp_ratio((int64_t)sigma * sigma, (int64_t)1 << digits, unit);
}

/* Return ``per_second`` to the ``power`` of the time unit (in s, 32 digits), for one period. */
static int64_t per_period(int64_t per_second, int64_t unit, unsigned int power, unsigned int shift)
{
	while (power-- > 0) {
		per_second = lp_scale(per_second, unit, 32);
	}
	return lp_shift(per_second, -(int)shift);
}

static unsigned int time_shift(uint32_t period_ns)
{
	unsigned int shift = 0;

	/* The power of two of periods that comes nearest to a second. */
	while (((uint64_t)period_ns << (shift + 1)) * 5 <= 7000000000u) {
		shift++;
	}
	return shift;
}

int lp_servo_init(struct lp_servo *s, const struct lp_servo_config *config)
{
	const struct lp_servo_config *c = config;
	unsigned int shift;
	int64_t unit;

	if (c->period_ns < 1000000 || c->period_ns > 1400000000 || c->increment < (uint64_t)1 << 40 ||
	    c->increment >= (uint64_t)1 << 47 || c->quantum_ps > 1000000 || c->noise_ps > 10000000 ||
	    c->sawtooth_ps > 10000000 || c->wander_ps > 10000000 || c->phase_walk_ps > 1000000 ||
	    c->rate_walk_ppq > 1000000000 || c->drift_walk_ppq > 1000000000 || c->rate_limit_ppm > 1000 ||
	    c->lost_ns > 1000000 || c->jump_ns > 1000000000) {
		return -EINVAL;
	}
	memset(s, 0, sizeof(*s));
	s->config = *c;
	shift = time_shift(c->period_ns);
	unit = lp_ratio((int64_t)c->period_ns << shift, (int64_t)1 << 32, 1000000000);
	s->filter.shift = shift;
	s->noise.phase = per_period(variance(c->phase_walk_ps, 3, LP_VARIANCE_BITS), unit, 1, shift);
	s->noise.rate = per_period(variance(c->rate_walk_ppq, 6, 2 * LP_RATE_DIGITS), unit, 3, shift);
	s->noise.drift = per_period(variance(c->drift_walk_ppq, 6, 2 * LP_DRIFT_DIGITS), unit, 5, shift);
	/* 20 ppb a second: a crystal in its first minute. */
	s->wide_drift = per_period(variance(20, 0, 2 * LP_DRIFT_DIGITS), unit, 4, 0);
	s->capture = variance(c->quantum_ps, 3, LP_VARIANCE_BITS) / 12;
	s->white = variance(c->noise_ps, 3, LP_VARIANCE_BITS);
	s->sawtooth = variance(c->sawtooth_ps, 3, LP_VARIANCE_BITS) / 12;
	s->wander = variance(c->wander_ps, 3, LP_VARIANCE_BITS);
	s->period_ticks = (uint32_t)lp_ratio(c->period_ns, (int64_t)1 << 40, (int64_t)c->increment);
	s->increment = c->increment;
	s->state = LP_SERVO_FREE_RUNNING;
	return 0;
}

void lp_servo_reacquire(struct lp_servo *s)
{
	s->state = LP_SERVO_FREE_RUNNING;
	s->has_reference = false;
	s->has_rate = false;
	s->accepted = 0;
	s->row = 0;
}

/* Time -------------------------------------------------------------------------------------------- */

static int64_t period_of(const struct lp_servo *s)
{
	return (int64_t)s->config.period_ns << LP_PHASE_BITS;
}

/* Move the reference to the tick before the phase, which stays small so. */
static void recentre(struct lp_servo *s)
{
	int64_t increment = (int64_t)s->config.increment;
	int64_t ticks = lp_ratio(s->filter.phase, (int64_t)1 << (40 - LP_PHASE_BITS), increment);

	s->reference += (uint64_t)ticks;
	s->filter.phase -= lp_scale(ticks, increment, 40 - LP_PHASE_BITS);
}

static void next_period(struct lp_servo *s)
{
	struct lp_kalman_noise noise = lp_servo_noise(s);

	lp_kalman_predict(&s->filter, &noise);
	s->filter.phase = lp_sum(s->filter.phase, period_of(s));
	recentre(s);
	s->period++;
	s->silent++;
}

/* Predict until a tick is less than ``before`` after the filter's period began; return whether that makes sense. */
static bool advance(struct lp_servo *s, uint64_t ticks, int64_t before)
{
	for (uint32_t steps = 0; steps < LONGEST_GAP; steps++) {
		if (lp_sum(lp_servo_local(s, ticks), -s->filter.phase) < before) {
			return true;
		}
		next_period(s);
	}
	return false;
}

/* A pulse is believed or not ---------------------------------------------------------------------- */

static bool is_within(int64_t residual, int64_t variance_, int64_t gate)
{
	int64_t small = lp_shift(residual, LP_PHASE_DIGITS - LP_PHASE_BITS);
	struct lp_wide square = lp_wide_multiply((uint64_t)(small < 0 ? -small : small),
						 (uint64_t)(small < 0 ? -small : small));

	return lp_wide_compare(square, lp_wide_multiply((uint64_t)variance_, (uint64_t)(gate * gate))) <= 0;
}

static int64_t magnitude(int64_t a)
{
	return a < 0 ? -a : a;
}

/* Start the filter from two pulses, a period apart. */
static void start(struct lp_servo *s, int64_t phase, int64_t growth, int64_t measured)
{
	lp_kalman_start(&s->filter, phase, lp_shift(growth, LP_RATE_BITS - LP_PHASE_BITS + (int)s->filter.shift), measured,
			s->wide_drift);
	recentre(s);
	s->state = LP_SERVO_ACQUIRING;
	s->has_rate = true;
	s->accepted = 2;
	s->row = 0;
	s->silent = 0;
	s->bias = 0;
	s->calm = 0;
	s->agility = AGILITY_START;
}

static bool is_plausible(const struct lp_servo *s, int64_t growth)
{
	return magnitude(growth) <= lp_ratio(period_of(s), s->config.rate_limit_ppm, 1000000);
}

/* The first pulse gives the phase, the second the rate. */
static void acquire(struct lp_servo *s, uint64_t ticks, int64_t late, int64_t measured)
{
	int64_t phase = lp_sum(lp_servo_local(s, ticks), -late);
	int64_t growth = lp_sum(phase, -(s->filter.phase + period_of(s)));

	if (s->has_reference && ticks - s->reference < (uint64_t)1 << 40 && is_plausible(s, growth)) {
		start(s, phase, growth, measured);
		s->period++;
		return;
	}
	s->reference = ticks;
	s->filter.phase = -late;
	s->filter.rate = 0;
	s->filter.drift = 0;
	s->has_reference = true;
	s->state = LP_SERVO_ACQUIRING;
	s->accepted = 1;
}

/* Whether the last ``count`` rejected pulses came a period apart and lie on a straight line. */
static bool is_line(const struct lp_servo *s, uint32_t count, int64_t measured)
{
	const struct lp_servo_rejected *h = s->history;

	for (uint32_t i = 0; i + 1 < count; i++) {
		if (h[i].period != h[i + 1].period + 1 || !is_plausible(s, h[i].phase - h[i + 1].phase)) {
			return false;
		}
	}
	for (uint32_t i = 0; i + 2 < count; i++) {
		/* Three measured values, weighted 1, -2, 1. */
		if (!is_within(h[i].phase - 2 * h[i + 1].phase + h[i + 2].phase, 6 * measured, GATE)) {
			return false;
		}
	}
	return true;
}

static void reject(struct lp_servo *s, int64_t residual, int64_t measured)
{
	uint32_t enough = s->state == LP_SERVO_ACQUIRING ? 2 : ROW_AGREED;

	s->rejected++;
	s->row++;
	memmove(&s->history[1], &s->history[0], sizeof(s->history[0]) * (LP_SERVO_ROW - 1));
	s->history[0] = (struct lp_servo_rejected){.period = s->period, .phase = residual};
	if (s->row < enough) {
		return;
	}
	if (is_line(s, enough, measured)) {
		/* The residuals are against a prediction that grows by itself. */
		start(s, s->filter.phase + residual,
		      lp_kalman_growth(&s->filter) + residual - s->history[1].phase, measured);
	} else if (s->row >= ROW_LOST) {
		lp_servo_reacquire(s);
	}
}

/* A filter that is too slow for its oscillator (warming up, a draught) leaves residuals of one sign. */
static void adapt(struct lp_servo *s, int64_t residual, int64_t total)
{
	int64_t sigma = (int64_t)lp_wide_root((struct lp_wide){.low = (uint64_t)total});
	int64_t normalised =
		lp_ratio(lp_shift(residual, LP_PHASE_DIGITS - LP_PHASE_BITS), 256, sigma < 1 ? 1 : sigma);

	normalised = normalised > 3 * 256 ? 3 * 256 : normalised < -3 * 256 ? -3 * 256 : normalised;
	s->bias += ((int32_t)normalised - s->bias) / 8;
	s->calm++;
	if (s->bias > BIAS_LIMIT || s->bias < -BIAS_LIMIT) {
		s->agility += s->agility < AGILITY_MOST ? 1 : 0;
		s->bias = s->bias / 2;
		s->calm = 0;
	} else if (s->calm >= CALM_EDGES && s->agility > 0) {
		s->agility--;
		s->calm = 0;
	}
}

static bool take(struct lp_servo *s, uint64_t ticks, int64_t late, int64_t measured)
{
	int64_t residual = lp_sum(lp_servo_local(s, ticks), -(late + s->filter.phase));
	int64_t total = lp_sum(s->filter.pp, measured);

	if (!is_within(residual, total, GATE)) {
		reject(s, residual, measured);
		return false;
	}
	adapt(s, residual, total);
	lp_kalman_update(&s->filter, residual, measured);
	s->row = 0;
	s->silent = 0;
	s->accepted += s->accepted < UINT32_MAX;
	return true;
}

/* Calls ------------------------------------------------------------------------------------------- */

static void settle_state(struct lp_servo *s)
{
	int64_t bound;

	if (!s->has_rate) {
		return;
	}
	s->bound = lp_servo_bound(s);
	bound = s->bound >> 8;
	if (s->silent == 0) {
		if (s->state != LP_SERVO_ACQUIRING || (s->accepted > 2 && bound <= s->config.lock_ns)) {
			s->state = LP_SERVO_LOCKED;
		}
	} else if (bound > s->config.lost_ns) {
		lp_servo_reacquire(s);
	} else if (s->state == LP_SERVO_LOCKED && s->silent >= HOLDOVER_PERIODS) {
		s->state = LP_SERVO_HOLDOVER;
	}
}

static int32_t narrow(int64_t a)
{
	return a > INT32_MAX ? INT32_MAX : a < INT32_MIN ? INT32_MIN : (int32_t)a;
}

/* What `now` showed at the pulse, against the pulse. */
static void compare(const struct lp_servo *s, const struct lp_servo_edge *edge, int64_t late,
		    struct lp_servo_output *out)
{
	uint64_t number = (edge->stamp.now + s->config.period_ns / 2) / s->config.period_ns;
	int64_t offset = (int64_t)(edge->stamp.now - number * s->config.period_ns);

	out->offset = narrow(lp_shift(lp_sum(offset * NS, (int64_t)edge->stamp.fraction - late), 8 - LP_PHASE_BITS));
	if (edge->has_second && out->is_used) {
		out->behind = (int64_t)(edge->second - number);
	}
}

void lp_servo_edge(struct lp_servo *s, const struct lp_servo_edge *edge, struct lp_servo_output *out)
{
	/* The stamp is early by a tick, but for what lies between the edge and the end of it. */
	int64_t tick_ps = (int64_t)(s->config.increment * 1000 >> 40);
	int64_t early_ps = tick_ps - (int64_t)(s->config.quantum_ps / 2) - edge->early_ps;
	int64_t late_ps = (edge->has_qerr ? edge->qerr_ps : 0) - early_ps;
	int64_t late = lp_ratio(late_ps, NS, 1000);
	int64_t measured = s->capture + s->white + (edge->has_qerr ? 0 : s->sawtooth);
	bool is_used = true;

	memset(out, 0, sizeof(*out));
	if (s->has_rate && !advance(s, edge->stamp.ticks, period_of(s) / 2)) {
		lp_servo_reacquire(s);
	}
	if (s->has_rate) {
		is_used = take(s, edge->stamp.ticks, late, measured);
	} else {
		acquire(s, edge->stamp.ticks, late, measured);
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
	out->offset = narrow(lp_shift(s->error, 8 - LP_PHASE_BITS));
}
