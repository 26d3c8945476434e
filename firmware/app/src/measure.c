/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "measure.h"

#include <errno.h>

#include <zephyr/device.h>
#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>

#include <liteprobe/meter.h>
#include <liteprobe/timebase.h>
#include <liteprobe/train.h>

#include "clock_set.h"
#include "discipline.h"
#include "frame.h"
#include "keep.h"
#include "statistics/statistics.h"

LOG_MODULE_REGISTER(measure, LOG_LEVEL_INF);

#define NS_PER_S        1000000000ULL
#define STREAM_ID       0xfffe /* Not the host's. */
#define READY_MS        100
#define ARRIVAL_MS      20
#define START_MARGIN_NS 5000000
#define STACK           1536
#define PRIORITY        6

static const struct device *const timebase = DEVICE_DT_GET(DT_NODELABEL(timebase));
static K_MUTEX_DEFINE(lock);
static K_SEM_DEFINE(changed, 0, 1);

/* Under the lock. */
static struct measure_plan single; /* Asked for; count 0: none. */
static struct measure_plan repeated;
/* Number n in place n % CONFIG_LITEPROBE_RESULTS. */
static __noinit struct measure_result results[CONFIG_LITEPROBE_RESULTS];
static uint32_t trains;
static bool is_running;
static bool is_stopping;

static bool must_stop(void)
{
	k_mutex_lock(&lock, K_FOREVER);
	bool found = is_stopping;

	k_mutex_unlock(&lock);

	return found;
}

/* The clock while something is measured. */
struct look {
	struct lp_status first;
	struct lp_status last;
};

static uint32_t counted(const struct look *look, uint32_t bit)
{
	return ((look->last.error >> bit) - (look->first.error >> bit)) & LP_CLOCK_COUNT_MASK;
}

/* A greater state is better, except that holdover, the greatest, is worse than locked. */
static uint32_t rank(uint32_t state)
{
	return state == LP_CLOCK_HOLDOVER ? 2 * LP_CLOCK_LOCKED - 1 : 2 * state;
}

static void look(struct look *at, struct measure_result *result)
{
	struct discipline_view view;

	discipline_view(&view);
	at->last = view.status;
	if (result->clock_state == LP_CLOCK_UNKNOWN ||
	    rank(view.status.state) < rank(result->clock_state)) {
		result->clock_state = view.status.state;
	}
	result->uncertainty = MAX(result->uncertainty, view.status.uncertainty);
	result->steps = counted(at, LP_CLOCK_STEPS_BIT);
	result->jumps = counted(at, LP_CLOCK_JUMPS_BIT);
	result->rejected = at->last.rejected - at->first.rejected;
}

static int wait_for(const struct device *train, enum lp_train_state state, int64_t ms,
		    struct look *at, struct measure_result *result)
{
	int64_t end = k_uptime_get() + ms;

	while (lp_train_state(train) != state) {
		if (must_stop() && !result->is_stopped) {
			result->is_stopped = true;
			lp_train_stop(train);
			state = LP_TRAIN_IDLE;
		}
		if (k_uptime_get() > end) {
			lp_train_stop(train);
			return -ETIMEDOUT;
		}
		look(at, result);
		k_msleep(1);
	}

	return 0;
}

static void compute(const struct measure_plan *plan, const struct lp_meter_totals *totals,
		    struct measure_result *result)
{
	const struct lp_wide squares = {.high = totals->delay_squares_high,
					.low = totals->delay_squares_low};
	struct lp_summary summary = {0};

	result->received = totals->frames;
	result->duplicated = totals->duplicated;
	result->reordered = totals->reordered;
	/* Those at the end, too, which no later frame shows to be missing. */
	result->lost = result->sent - MIN(result->sent, totals->frames - totals->duplicated);
	(void)lp_statistics_of_sums(totals->frames, totals->delay_sum, squares, &summary);
	result->delay_min = totals->frames != 0 ? totals->delay_min : 0;
	result->delay_max = totals->frames != 0 ? totals->delay_max : 0;
	/* The fraction of the mean is rounded: the deviation says more. */
	result->delay_mean = summary.mean + (summary.fraction >> 7);
	result->delay_deviation = summary.deviation;
	result->rate =
		frame_rate(totals->frames, plan->length, totals->last_stamp - totals->first_stamp);
}

static int arm(const struct measure_plan *plan, uint64_t start_ns, const struct device *train)
{
	static struct lp_train_program program;
	struct keep_values kept;

	program = (struct lp_train_program){
		.length = plan->length,
		.count = plan->count,
		.repeats = 1,
		.start_time = start_ns,
		.is_timed = start_ns != 0,
		.payload_offset = LP_PROBE_PAYLOAD_IPV4,
	};
	frame_header(program.header, plan->length, STREAM_ID);
	keep_read(&kept);
	if (kept.has_addresses != 0) {
		frame_address(program.header, &kept.addresses);
	}
	frame_interval(plan->interval_ns, lp_timebase_increment(timebase), &program.interval_ticks,
		       &program.interval_fraction);

	return lp_train_arm(train, &program);
}

/* Start what is armed, and wait until it has been sent and has had time to come. */
static int run(const struct measure_plan *plan, uint64_t start_ns, const struct device *train,
	       struct look *at, struct measure_result *result)
{
	uint64_t slot_ns = MAX(plan->interval_ns, 8u * (plan->length + 24u));
	uint64_t left_ns = (uint64_t)plan->count * slot_ns;
	struct lp_time now;
	int ret = lp_timebase_read(timebase, &now);

	if (ret < 0) {
		lp_train_stop(train);
		return ret;
	}
	lp_train_start(BIT(plan->transmit));
	left_ns += start_ns > now.now ? start_ns - now.now : 0;
	result->start_ns = start_ns != 0 ? start_ns : now.now;
	ret = wait_for(train, LP_TRAIN_IDLE, (int64_t)(left_ns / 1000000u) + READY_MS, at, result);
	if (ret == 0) {
		k_msleep(ARRIVAL_MS);
		look(at, result);
	}

	return ret;
}

static int send(const struct measure_plan *plan, uint64_t start_ns, struct measure_result *result)
{
	const struct device *train = lp_train_port(plan->transmit);
	const struct device *meter = lp_meter_port(plan->receive);
	struct discipline_view view;
	struct lp_meter_totals totals;
	struct lp_train_counters counters;
	struct look at;
	int ret;

	discipline_view(&view);
	at.first = view.status;
	look(&at, result);
	ret = arm(plan, start_ns, train);
	if (ret < 0) {
		return ret;
	}
	lp_meter_start(meter, STREAM_ID);
	ret = wait_for(train, LP_TRAIN_READY, READY_MS, &at, result);
	if (ret == 0 && !result->is_stopped) {
		ret = run(plan, start_ns, train, &at, result);
	}
	if (ret < 0) {
		return ret;
	}
	lp_train_counters(train, &counters);
	result->sent = counters.sent;
	result->late = counters.late;
	ret = lp_meter_read(meter, &totals);
	if (ret == 0) {
		compute(plan, &totals, result);
	}

	return ret;
}

static void measure(const struct measure_plan *plan, uint64_t start_ns)
{
	static struct measure_result result;

	k_mutex_lock(&lock, K_FOREVER);
	result = (struct measure_result){.number = trains + 1};
	k_mutex_unlock(&lock);
	result.error = send(plan, start_ns, &result);
	if (result.error < 0) {
		LOG_ERR("train %u failed: %d", result.number, result.error);
	}
	k_mutex_lock(&lock, K_FOREVER);
	results[result.number % CONFIG_LITEPROBE_RESULTS] = result;
	trains = result.number;
	is_running = false;
	k_mutex_unlock(&lock);
}

static int check(const struct measure_plan *plan)
{
	if (plan->length < LP_TRAIN_LENGTH_MIN || plan->length > LP_TRAIN_LENGTH_MAX ||
	    plan->count == 0) {
		LOG_ERR("%u frames of %u octets can't be sent: give 1 or more of %u to %u",
			plan->count, plan->length, LP_TRAIN_LENGTH_MIN, LP_TRAIN_LENGTH_MAX);
		return -EINVAL;
	}
	if (lp_train_port(plan->transmit) == NULL || lp_meter_port(plan->receive) == NULL) {
		LOG_ERR("port %u or port %u does not exist: give test ports of this probe",
			plan->transmit, plan->receive);
		return -ENODEV;
	}

	return 0;
}

/* What was sent again and again before the reset. */
static void resume(void)
{
	struct measure_plan plan;

	keep_read_plan(&plan);
	if (plan.every_s != 0 && check(&plan) == 0) {
		k_mutex_lock(&lock, K_FOREVER);
		repeated = plan;
		k_mutex_unlock(&lock);
	}
}

int measure_begin(const struct measure_plan *plan)
{
	int ret = check(plan);

	if (ret < 0) {
		return ret;
	}
	k_mutex_lock(&lock, K_FOREVER);
	if (plan->every_s != 0) {
		repeated = *plan;
	} else if (is_running || single.count != 0) {
		ret = -EBUSY;
	} else {
		single = *plan;
	}
	is_stopping = false;
	k_mutex_unlock(&lock);
	k_sem_give(&changed);
	if (plan->every_s != 0) {
		keep_plan(plan);
	}

	return ret;
}

void measure_end(void)
{
	bool was_repeated;

	k_mutex_lock(&lock, K_FOREVER);
	was_repeated = repeated.every_s != 0;
	repeated.every_s = 0;
	single.count = 0;
	is_stopping = true;
	k_mutex_unlock(&lock);
	k_sem_give(&changed);
	if (was_repeated) {
		keep_plan(&(struct measure_plan){0});
	}
}

void measure_status(struct measure_status *status)
{
	k_mutex_lock(&lock, K_FOREVER);
	*status = (struct measure_status){
		.is_running = is_running || single.count != 0,
		.trains = trains,
		.repeated = repeated,
	};
	k_mutex_unlock(&lock);
}

bool measure_past(uint32_t age, struct measure_result *result)
{
	bool is_known;

	k_mutex_lock(&lock, K_FOREVER);
	is_known = age < trains && age < CONFIG_LITEPROBE_RESULTS;
	if (is_known) {
		*result = results[(trains - age) % CONFIG_LITEPROBE_RESULTS];
	}
	k_mutex_unlock(&lock);

	return is_known;
}

/*
 * Take what is to be sent next; return whether it is sent immediately, otherwise at whole seconds
 * of the clock.
 */
static bool next(struct measure_plan *plan)
{
	bool is_single;

	k_mutex_lock(&lock, K_FOREVER);
	is_single = single.count != 0;
	*plan = is_single ? single : repeated;
	single.count = 0;
	is_running = is_single;
	k_mutex_unlock(&lock);

	return is_single;
}

/* The clock was stepped: a train that waits for its start must wait anew. */
static void on_step(void)
{
	k_sem_give(&changed);
}

/* Send a train at the next whole number of its seconds, unless something changes before. */
static void send_in_time(const struct measure_plan *plan)
{
	struct lp_time now;

	if (lp_timebase_read(timebase, &now) < 0) {
		k_msleep(READY_MS);
		return;
	}

	/* The same on every probe whose clock is right. */
	uint64_t step = plan->every_s * NS_PER_S;
	uint64_t start = (now.now / step + 1) * step;
	uint64_t left_ms = (start - now.now) / 1000000u;

	/* Armed shortly before, so that the port and the clock are free until then. */
	if (left_ms > 2 * READY_MS && k_sem_take(&changed, K_MSEC(left_ms - 2 * READY_MS)) == 0) {
		return;
	}
	if (lp_timebase_read(timebase, &now) < 0 || now.now + START_MARGIN_NS > start ||
	    start - now.now > step) {
		return;
	}
	k_mutex_lock(&lock, K_FOREVER);
	is_running = true;
	k_mutex_unlock(&lock);
	measure(plan, start);
}

static void work(void *p1, void *p2, void *p3)
{
	struct measure_plan plan;

	ARG_UNUSED(p1);
	ARG_UNUSED(p2);
	ARG_UNUSED(p3);
	if (!device_is_ready(timebase)) {
		LOG_ERR("%s isn't ready: no train is sent", timebase->name);
		return;
	}
	clock_set_on_step(on_step);
	resume();
	for (;;) {
		if (next(&plan)) {
			measure(&plan, 0);
		} else if (plan.every_s != 0) {
			send_in_time(&plan);
		} else {
			k_sem_take(&changed, K_FOREVER);
		}
	}
}

K_THREAD_DEFINE(measure_thread, STACK, work, NULL, NULL, NULL, PRIORITY, 0, 0);
