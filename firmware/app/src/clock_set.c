/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "clock_set.h"

#include <zephyr/device.h>
#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>

#include <liteprobe/generated/formats.h>
#include <liteprobe/timebase.h>
#include <liteprobe/train.h>

LOG_MODULE_REGISTER(clock_set, LOG_LEVEL_INF);

static const struct device *const timebase = DEVICE_DT_GET(DT_NODELABEL(timebase));
static uint32_t steps;
static bool is_second_wrong;
static void (*stepped)(void);

uint32_t clock_set_steps(void)
{
	return steps;
}

void clock_set_on_step(void (*callback)(void))
{
	stepped = callback;
}

static void count_step(void)
{
	steps++;
	if (stepped != NULL) {
		stepped();
	}
}

/*
 * Put the clock ahead by whole periods, keeping its phase: what the set takes is measured, and put
 * back.
 */
static int step_periods(int64_t periods, uint32_t period_ns)
{
	struct lp_time before, after;
	int64_t ahead = periods * (int64_t)period_ns;
	uint64_t increment = lp_timebase_increment(timebase);
	int ret = lp_timebase_read(timebase, &before);

	if (ret < 0) {
		return ret;
	}
	ret = lp_timebase_set(timebase, before.now + (uint64_t)ahead);
	if (ret < 0) {
		return ret;
	}
	count_step();
	k_busy_wait(2);
	ret = lp_timebase_read(timebase, &after);
	if (ret < 0) {
		/* The clock is late by some microseconds, which the next pulse shows. */
		return ret;
	}

	/* 2^-40 ns, of some microseconds. */
	uint64_t due = (after.ticks - before.ticks) * increment + ((uint64_t)before.fraction << 8);
	uint64_t is = ((after.now - before.now - (uint64_t)ahead) << 40) +
		      ((uint64_t)after.fraction << 8);

	ret = lp_timebase_step(timebase, ((int64_t)(due - is)) >> 8);
	LOG_INF("set by %lld periods", (long long)periods);

	return ret;
}

/* Set the second where it is wrong and nothing is in the way; return what could not be done. */
static uint32_t set_second(const struct lp_servo *servo, const struct lp_servo_output *out,
			   bool is_sending)
{
	is_second_wrong = out->behind != 0;
	if (!is_second_wrong) {
		return 0;
	}
	if (is_sending) {
		return LP_CLOCK_ERROR_STEP_REFUSED;
	}
	if (step_periods(out->behind, servo->config.period_ns) < 0) {
		LOG_ERR("the second was not set: a host reads the clock without end");
		return 0;
	}
	is_second_wrong = false;

	return 0;
}

static uint32_t step(struct lp_servo *servo, struct lp_servo_output *out)
{
	if (lp_timebase_step(timebase, out->adjust) == 0) {
		count_step();
		return 0;
	}
	lp_servo_refuse(servo, out);
	(void)lp_timebase_set_increment(timebase, out->increment);

	return LP_CLOCK_ERROR_STEP_REFUSED;
}

uint32_t clock_set_obey(struct lp_servo *servo, struct lp_servo_output *out, bool has_second)
{
	bool is_sending = (out->has_adjust || out->behind != 0) && lp_train_any_running();
	uint32_t error = 0;

	if (out->has_adjust && is_sending) {
		/* Its frames would leave at another time than they were asked to. */
		lp_servo_refuse(servo, out);
		error = LP_CLOCK_ERROR_STEP_REFUSED;
	}
	if (lp_timebase_set_increment(timebase, out->increment) < 0) {
		LOG_ERR("the clock can't be steered: acquiring again");
		lp_servo_reacquire(servo);
		out->state = LP_SERVO_FREE_RUNNING;
	}
	if (out->has_adjust) {
		error |= step(servo, out);
	}
	if (has_second && out->is_used) {
		error |= set_second(servo, out, is_sending);
	}
	if (is_second_wrong) {
		/* By how many is not known until it is set. */
		error |= LP_CLOCK_ERROR_WRONG_SECOND;
		out->uncertainty = UINT32_MAX;
	}

	return error;
}
