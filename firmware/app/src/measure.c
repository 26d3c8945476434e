/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

#include "measure.h"

#include <errno.h>

#include <zephyr/device.h>
#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>

#include <liteprobe/meter.h>
#include <liteprobe/timebase.h>
#include <liteprobe/train.h>

#include "discipline.h"
#include "frame.h"
#include "statistics/statistics.h"

LOG_MODULE_REGISTER(measure, LOG_LEVEL_INF);

#define NS_PER_S 1000000000ULL
#define STREAM_ID 0xfffe /* Not the host's. */
#define READY_MS 100
#define ARRIVAL_MS 20
#define START_MARGIN_NS 5000000
#define STACK 1536
#define PRIORITY 6

static const struct device *const timebase = DEVICE_DT_GET(DT_NODELABEL(timebase));
static K_MUTEX_DEFINE(one_at_a_time);
static K_MUTEX_DEFINE(lock);
static K_SEM_DEFINE(changed, 0, 1);
static struct measure_plan repeated;
static struct measure_result last;
static uint32_t trains;

static int wait_for(const struct device *train, enum lp_train_state state, int64_t ms)
{
	int64_t end = k_uptime_get() + ms;

	while (lp_train_state(train) != state) {
		if (k_uptime_get() > end) {
			lp_train_stop(train);
			return -ETIMEDOUT;
		}
		k_msleep(1);
	}

	return 0;
}

static void compute(const struct measure_plan *plan, const struct lp_meter_totals *totals, struct measure_result *result)
{
	const struct lp_wide squares = {.high = totals->delay_squares_high, .low = totals->delay_squares_low};
	struct lp_summary summary = {0};

	result->received = totals->frames;
	result->duplicated = totals->duplicated;
	result->reordered = totals->reordered;
	/* Those at the end, too, which no later frame shows to be missing. */
	result->lost = result->sent - MIN(result->sent, totals->frames - totals->duplicated);
	(void)lp_statistics_of_sums(totals->frames, totals->delay_sum, squares, &summary);
	result->delay_min = totals->frames != 0 ? totals->delay_min : 0;
	result->delay_max = totals->frames != 0 ? totals->delay_max : 0;
	/* The deviation tells more than the mean's part of a nanosecond. */
	result->delay_mean = summary.mean + (summary.fraction >> 7);
	result->delay_deviation = summary.deviation;
	result->rate = frame_rate(totals->frames, plan->length, totals->last_stamp - totals->first_stamp);
}

static int send(const struct measure_plan *plan, uint64_t start_ns, struct measure_result *result)
{
	const struct device *train = lp_train_port(plan->transmit);
	const struct device *meter = lp_meter_port(plan->receive);
	static struct lp_train_program program;
	struct lp_meter_totals totals;
	struct lp_train_counters counters;
	struct discipline_view view;
	struct lp_time now;
	int ret;

	if (train == NULL || meter == NULL) {
		LOG_ERR("there is no port %u, or no port %u", plan->transmit, plan->receive);
		return -ENODEV;
	}
	program = (struct lp_train_program){
		.length = plan->length,
		.count = plan->count,
		.repeats = 1,
		.start_time = start_ns,
		.is_timed = start_ns != 0,
		.payload_offset = LP_PROBE_PAYLOAD_IPV4,
	};
	frame_header(program.header, plan->length, STREAM_ID);
	frame_interval(plan->interval_ns, lp_timebase_increment(timebase), &program.interval_ticks,
		       &program.interval_fraction);
	ret = lp_train_arm(train, &program);
	if (ret < 0) {
		return ret;
	}
	lp_meter_start(meter, STREAM_ID);
	ret = wait_for(train, LP_TRAIN_READY, READY_MS);
	if (ret < 0) {
		return ret;
	}
	discipline_view(&view);
	result->clock_state = view.status.state;
	result->uncertainty = view.status.uncertainty;
	lp_train_start(BIT(plan->transmit));

	uint64_t slot_ns = MAX(plan->interval_ns, 8u * (plan->length + 24u));
	uint64_t left_ns = (uint64_t)plan->count * slot_ns;

	ret = lp_timebase_read(timebase, &now);
	left_ns += (ret == 0 && start_ns > now.now) ? start_ns - now.now : 0;
	result->start_ns = start_ns != 0 ? start_ns : now.now;
	ret = wait_for(train, LP_TRAIN_IDLE, (int64_t)(left_ns / 1000000u) + READY_MS);
	if (ret < 0) {
		return ret;
	}
	k_msleep(ARRIVAL_MS);
	lp_train_counters(train, &counters);
	result->sent = counters.sent;
	result->late = counters.late;
	ret = lp_meter_read(meter, &totals);
	if (ret == 0) {
		compute(plan, &totals, result);
	}

	return ret;
}

static int measure(const struct measure_plan *plan, uint64_t start_ns, struct measure_result *result)
{
	k_mutex_lock(&one_at_a_time, K_FOREVER);
	*result = (struct measure_result){.number = ++trains};
	result->error = send(plan, start_ns, result);
	k_mutex_lock(&lock, K_FOREVER);
	last = *result;
	k_mutex_unlock(&lock);
	k_mutex_unlock(&one_at_a_time);

	return result->error;
}

int measure_begin(const struct measure_plan *plan, struct measure_result *result)
{
	if (plan->length < LP_TRAIN_LENGTH_MIN || plan->length > LP_TRAIN_LENGTH_MAX || plan->count == 0) {
		LOG_ERR("%u frames of %u octets can't be sent: give 1 or more of %u to %u", plan->count, plan->length,
			LP_TRAIN_LENGTH_MIN, LP_TRAIN_LENGTH_MAX);
		return -EINVAL;
	}
	if (plan->every_s == 0) {
		return measure(plan, 0, result);
	}
	k_mutex_lock(&lock, K_FOREVER);
	repeated = *plan;
	k_mutex_unlock(&lock);
	k_sem_give(&changed);

	return 0;
}

void measure_end(void)
{
	k_mutex_lock(&lock, K_FOREVER);
	repeated.every_s = 0;
	k_mutex_unlock(&lock);
	k_sem_give(&changed);
}

bool measure_last(struct measure_result *result)
{
	k_mutex_lock(&lock, K_FOREVER);
	*result = last;
	k_mutex_unlock(&lock);

	return result->number != 0;
}

static void repeat(void *p1, void *p2, void *p3)
{
	static struct measure_result result;
	struct measure_plan plan;
	struct lp_time now;

	ARG_UNUSED(p1);
	ARG_UNUSED(p2);
	ARG_UNUSED(p3);
	for (;;) {
		k_mutex_lock(&lock, K_FOREVER);
		plan = repeated;
		k_mutex_unlock(&lock);
		if (plan.every_s == 0 || lp_timebase_read(timebase, &now) < 0) {
			k_sem_take(&changed, K_FOREVER);
			continue;
		}

		/* The next whole number of them: the same on every probe whose clock is right. */
		uint64_t step = plan.every_s * NS_PER_S;
		uint64_t start = (now.now / step + 1) * step;
		uint64_t left_ms = (start - now.now) / 1000000u;

		/* Armed shortly before, so that the port and the clock are free until then. */
		if (left_ms > 2 * READY_MS && k_sem_take(&changed, K_MSEC(left_ms - 2 * READY_MS)) == 0) {
			continue;
		}
		if (lp_timebase_read(timebase, &now) < 0 || now.now + START_MARGIN_NS > start ||
		    start - now.now > step) {
			continue;
		}
		if (measure(&plan, start, &result) < 0) {
			LOG_ERR("train %u failed: %d", result.number, result.error);
		}
	}
}

K_THREAD_DEFINE(measure_thread, STACK, repeat, NULL, NULL, NULL, PRIORITY, 0, 0);
