/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "servo/steer.h"
#include "wide/wide.h"

/* Of a crystal that nothing is known of (ppb a second). */
#define START_DRIFT 20

void lp_servo_defaults(struct lp_servo_config *config)
{
	*config = (struct lp_servo_config){
		.increment = (uint64_t)8 << 40,
		.period_ns = 1000000000,
		.quantum_ps = 8000,
		.noise_ps = 2000,
		.sawtooth_ps = 25000,
		.wander_ps = 700,
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

static int64_t root_of(int64_t a)
{
	return (int64_t)lp_wide_root((struct lp_wide){.low = (uint64_t)a});
}

/*
 * Square of a rate's error (2 * LP_ERROR_BITS digits, ns a period) after so many periods, of what
 * is configured.
 */
static int64_t prior(const struct lp_servo_config *c, uint32_t periods)
{
	int64_t time_us = lp_ratio(periods, c->period_ns, 1000);
	int64_t ps = lp_ratio(c->phase_walk_ps, 1000000, root_of(time_us));
	int64_t rate = lp_ratio(c->rate_walk_ppq, root_of(time_us / 3), 1000);
	int64_t drift = lp_ratio(c->drift_walk_ppq, root_of(time_us / 20), 1000);
	int64_t turned = lp_ratio(lp_ratio(c->jerk_ppq, time_us, 6000000), time_us, 1000000);
	int64_t sum = 0;

	/*
	 * All in 10^-6 ppb: what a walk of phase, rate and drift and a steady turn make of the mean
	 * rate.
	 */
	drift = lp_ratio(drift, time_us, 1000000);

	const int64_t parts[] = {ps, rate, drift, turned};

	for (int i = 0; i < 4; i++) {
		int64_t part = parts[i];

		part = lp_ratio(lp_ratio(part, c->period_ns, 1000000000),
				(int64_t)1 << LP_ERROR_BITS, 1000000);
		sum = lp_sum(sum, lp_scale(part, part, 0));
	}
	return sum;
}

/* What is learned of pulses with or without a qErr begins with what is configured. */
void lp_servo_learn_of(struct lp_servo *s, bool has_qerr)
{
	int64_t noise = s->capture + s->white + (has_qerr ? 0 : s->sawtooth);

	lp_bank_init(&s->bank, noise, s->capture, has_qerr ? 0 : 2 * s->sawtooth, s->drift);
	lp_wander_init(&s->seen, has_qerr);
	s->has_qerr = has_qerr;
	s->other_kind = 0;
}

#define RANGE(name, least, most)                                                                   \
	{#name, least, most, offsetof(struct lp_servo_config, name),                               \
	 sizeof(((struct lp_servo_config *)0)->name)}

static const struct lp_servo_range ranges[] = {
	RANGE(period_ns, 1000000, 1400000000),
	RANGE(increment, (uint64_t)1 << 40, ((uint64_t)1 << 47) - 1),
	RANGE(quantum_ps, 0, 1000000),
	RANGE(noise_ps, 0, 10000000),
	RANGE(sawtooth_ps, 0, 10000000),
	RANGE(wander_ps, 0, 10000000),
	RANGE(phase_walk_ps, 0, 1000000),
	RANGE(rate_walk_ppq, 0, 1000000000),
	RANGE(drift_walk_ppq, 0, 1000000000),
	RANGE(jerk_ppq, 0, 1000000000),
	RANGE(rate_limit_ppm, 0, 1000),
	RANGE(lock_ns, 1, 1000000),
	RANGE(jump_ns, 0, 1000000000),
	RANGE(lost_ns, 0, 1000000),
};

const struct lp_servo_range *lp_servo_refused(const struct lp_servo_config *config)
{
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		const struct lp_servo_range *range = &ranges[i];
		uint64_t value = 0;

		/* All machines that this is for are little-endian. */
		memcpy(&value, (const uint8_t *)config + range->offset, range->octets);
		if (value < range->least || value > range->most) {
			return range;
		}
	}
	return NULL;
}

int lp_servo_init(struct lp_servo *s, const struct lp_servo_config *config)
{
	const struct lp_servo_config *c = config;
	int64_t priors[LP_HORIZONS];
	int64_t period_ms = config->period_ns / 1000000;

	if (lp_servo_refused(c) != NULL) {
		return -EINVAL;
	}
	memset(s, 0, sizeof(*s));
	s->config = *c;
	s->capture = variance(c->quantum_ps, 3, LP_VARIANCE_BITS) / 12;
	s->white = variance(c->noise_ps, 3, LP_VARIANCE_BITS);
	s->sawtooth = variance(c->sawtooth_ps, 3, LP_VARIANCE_BITS) / 12;
	s->wander = variance(c->wander_ps, 3, LP_VARIANCE_BITS);
	/* Edges may stay at one place of the capture for long. */
	s->wander = s->wander < s->capture ? s->capture : s->wander;
	/* A crystal in its first minute. */
	s->drift = lp_ratio(lp_ratio(variance(START_DRIFT, 0, LP_VARIANCE_BITS), period_ms, 1000),
			    period_ms, 1000);
	s->drift = lp_ratio(lp_ratio(s->drift, period_ms, 1000), period_ms, 1000);
	for (uint32_t i = 0; i < LP_HORIZONS; i++) {
		priors[i] = prior(c, 16u << (3 * i));
	}
	lp_outlook_init(&s->outlook, priors);
	lp_servo_learn_of(s, false);
	s->period_ticks = (uint32_t)lp_ratio(c->period_ns, (int64_t)1 << 40, (int64_t)c->increment);
	s->increment = c->increment;
	s->state = LP_SERVO_FREE_RUNNING;
	return 0;
}
