/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * The servo under Zephyr's compiler options: an oscillator that is 50.4 ppm fast, pulses without
 * noise.
 */

#include <stdlib.h>

#include <zephyr/ztest.h>

#include "servo/servo.h"

#define PERIOD_NS 10000000u
#define TICKS     1250063u
#define RATE_PPB  50400

struct model {
	struct lp_servo servo;
	struct lp_servo_output out;
	uint64_t ticks;
	uint64_t now;
	uint64_t part; /* 2^-40 ns. */
	uint64_t increment;
};

static void advance(struct model *m)
{
	/* Below 2^64: 1.25 million ticks of 8 * 2^40. */
	m->part += TICKS * m->increment;
	m->now += m->part >> 40;
	m->part &= (1ULL << 40) - 1;
	m->ticks += TICKS;
}

static void obey(struct model *m)
{
	m->increment = m->out.increment;
	if (m->out.has_adjust) {
		int64_t sum = (int64_t)(m->part >> 8) + (m->out.adjust & 0xffffffff);

		m->now += (uint64_t)((m->out.adjust >> 32) + (sum >> 32));
		m->part = ((uint64_t)sum & 0xffffffff) << 8;
	}
}

static struct lp_servo_stamp stamp_of(const struct model *m)
{
	return (struct lp_servo_stamp){
		.now = m->now, .fraction = (uint32_t)(m->part >> 8), .ticks = m->ticks};
}

static void pulse(struct model *m)
{
	struct lp_servo_edge edge;

	advance(m);
	edge = (struct lp_servo_edge){.stamp = stamp_of(m)};
	lp_servo_edge(&m->servo, &edge, &m->out);
	obey(m);
}

static void begin(struct model *m)
{
	struct lp_servo_config config;

	*m = (struct model){.increment = 8ULL << 40};
	lp_servo_defaults(&config);
	config.period_ns = PERIOD_NS;
	zassert_ok(lp_servo_init(&m->servo, &config));
}

ZTEST_SUITE(servo, NULL, NULL, NULL, NULL, NULL);

ZTEST(servo, test_locks_by_the_third_pulse_and_stays_within_a_tick)
{
	static struct model m;

	begin(&m);
	for (int n = 1; n <= 40; n++) {
		pulse(&m);
		zassert_equal(m.out.state, n < 3 ? LP_SERVO_ACQUIRING : LP_SERVO_LOCKED,
			      "state %d at pulse %d", m.out.state, n);
		if (n > 10) {
			uint64_t off = (m.now + PERIOD_NS / 2) % PERIOD_NS;

			zassert_within((int64_t)off, PERIOD_NS / 2, 8, "%lld ns at pulse %d",
				       (long long)off, n);
		}
	}
	zassert_within(m.out.rate / 256, RATE_PPB, 20);
	zassert_equal(m.out.rejected, 0);
}

ZTEST(servo, test_holds_over_with_a_growing_bound)
{
	static struct model m;
	uint32_t uncertainty;

	begin(&m);
	for (int n = 0; n < 20; n++) {
		pulse(&m);
	}
	uncertainty = m.out.uncertainty;
	for (int n = 0; n < 5; n++) {
		struct lp_servo_stamp stamp;

		advance(&m);
		stamp = stamp_of(&m);
		lp_servo_silence(&m.servo, &stamp, 0, &m.out);
		obey(&m);
		zassert_true(m.out.uncertainty >= uncertainty);
		uncertainty = m.out.uncertainty;
	}
	zassert_equal(m.out.state, LP_SERVO_HOLDOVER);
}

ZTEST(servo, test_refuses_a_period_that_it_cannot_follow)
{
	static struct lp_servo servo;
	struct lp_servo_config config;

	lp_servo_defaults(&config);
	config.period_ns = 999999;
	zassert_true(lp_servo_init(&servo, &config) < 0);
}
