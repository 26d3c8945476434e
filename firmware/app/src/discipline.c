/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "discipline.h"

#include <zephyr/device.h>
#include <zephyr/init.h>
#include <zephyr/kernel.h>
#include <zephyr/linker/sections.h>
#include <zephyr/logging/log.h>

#include <liteprobe/image.h>
#include <liteprobe/pps.h>
#include <liteprobe/timebase.h>

#include "clock_set.h"
#include "keep.h"
#include "profile/profile.h"
#include "reference/reference.h"
#include "second/qerr.h"
#include "second/second.h"
#include "servo/servo.h"

LOG_MODULE_REGISTER(clock, LOG_LEVEL_INF);

#define NS_PER_S      1000000000u
/*
 * Half a second is as long as a host should wait for news: half a period where that is shorter, as
 * in simulation.
 */
#define PUBLISH_MS    500
#define EDGES_WAITING 4
/* So long a garbled sentence is reported. */
#define BAD_NMEA_MS   10000

/*
 * What is used for each edge is in the processor's own RAM, which answers sooner than a SDRAM.
 * Nothing else is there: the stack takes a quarter of it. Named as in the linker's script: Zephyr's
 * names are ARM's alone, and nothing zeroes theirs.
 */
#if DT_HAS_CHOSEN(zephyr_dtcm)
#define NEAR       __attribute__((__section__(".dtcm_bss")))
#define NEAR_STACK __attribute__((__section__(".dtcm_noinit")))
#else
#define NEAR
#define NEAR_STACK __noinit
#endif

/* The servo, plain C for any clock, has states of its own; hosts read those of the register. */
BUILD_ASSERT((int)LP_SERVO_FREE_RUNNING == LP_CLOCK_FREE_RUNNING &&
		     (int)LP_SERVO_ACQUIRING == LP_CLOCK_ACQUIRING &&
		     (int)LP_SERVO_LOCKED == LP_CLOCK_LOCKED &&
		     (int)LP_SERVO_HOLDOVER == LP_CLOCK_HOLDOVER,
	     "the servo's states are not those of cores/formats/clock.py");

static const struct device *const timebase = DEVICE_DT_GET(DT_NODELABEL(timebase));
static const struct device *const pps = DEVICE_DT_GET(DT_NODELABEL(pps));
static const struct device *const status_dev = DEVICE_DT_GET(DT_NODELABEL(clock));

K_MSGQ_DEFINE(edges, sizeof(struct lp_pps_edge), EDGES_WAITING, 8);

/*
 * What others read and write, with the scheduler locked. The clock's thread can't be preempted by
 * them, so it needs no lock, and never waits for theirs while a pulse waits for it.
 */
BUILD_ASSERT(CONFIG_LITEPROBE_CLOCK_PRIORITY < 0, "the clock's thread is to be cooperative");
static struct discipline_view shown;
static struct lp_second second;
static struct lp_qerr qerr;
static uint64_t bad_ms;
static bool is_bad;
/* Of the receiver, whose second is a period of its pulses: in simulation both are shorter. */
static uint32_t ticks_per_ms = NS_PER_S / LP_TICK_NS / 1000;

/* The thread's own. */
static NEAR struct lp_servo servo;
static NEAR struct lp_servo_output out;
static struct lp_reference reference;
static uint32_t edges_lost;
static uint32_t servo_ticks;
static uint64_t last_silence;
static uint32_t last_qerr;
/* Counts of the last pulse, and of the last that lasted for more than half a period; 0: none. */
static uint32_t last_pulse;
static uint32_t long_pulse;
/* What the servo asked for last and was not done: bits of clock_error, until it asks again. */
static uint32_t undone;
static bool is_alone;

static void on_edge(const struct device *dev, const struct lp_pps_edge *edge, void *user)
{
	ARG_UNUSED(dev);
	ARG_UNUSED(user);
	if (k_msgq_put(&edges, edge, K_NO_WAIT) != 0) {
		edges_lost++;
	}
}

void discipline_view(struct discipline_view *view)
{
	k_sched_lock();
	*view = shown;
	k_sched_unlock();
}

uint64_t discipline_ms(void)
{
	static uint64_t last;
	struct lp_time now;

	/* It never goes back, and stands still where a host leaves no reading of one moment. */
	if (lp_timebase_read(timebase, &now) == 0) {
		last = now.ticks / ticks_per_ms;
	}

	return last;
}

void discipline_sentence(const struct lp_nmea_time *time, uint64_t ms)
{
	k_sched_lock();
	lp_second_sentence(&second, time, ms);
	k_sched_unlock();
}

void discipline_pulse(const struct lp_ubx_pulse *pulse, uint64_t ms)
{
	k_sched_lock();
	lp_qerr_message(&qerr, pulse, ms);
	lp_second_pulse(&second, pulse, ms);
	k_sched_unlock();
}

void discipline_heard(uint64_t ms)
{
	k_sched_lock();
	lp_second_heard(&second, ms);
	k_sched_unlock();
}

bool discipline_wants_leap(void)
{
	bool is_wanted;

	k_sched_lock();
	is_wanted = lp_second_wants_leap(&second);
	k_sched_unlock();

	return is_wanted;
}

void discipline_leap(const struct lp_ubx_leap *leap)
{
	k_sched_lock();
	lp_second_leap(&second, leap);
	k_sched_unlock();
}

void discipline_announce(int32_t tai_utc, uint32_t until, int8_t leap)
{
	k_sched_lock();
	lp_second_announce(&second, tai_utc, until, leap);
	k_sched_unlock();
}

void discipline_garbage(uint64_t ms)
{
	k_sched_lock();
	bad_ms = ms;
	is_bad = true;
	k_sched_unlock();
}

void discipline_set_tai_utc(uint32_t seconds)
{
	k_sched_lock();
	lp_second_init(&second, (int32_t)seconds);
	lp_second_expect(&second, INT64_MAX, CONFIG_LITEPROBE_NOT_BEFORE);
	k_sched_unlock();
}

/* Pulses last longer than the pauses between them, as those do that are taken at their end. */
static bool is_inverted(void)
{
	return long_pulse != 0 && last_pulse - long_pulse <= 1;
}

/* What is wrong with the receiver, as bits of clock_error. */
static uint32_t faults(void)
{
	uint64_t ms = discipline_ms();
	uint32_t found = lp_second_faults(&second, ms);
	uint32_t error = lp_pps_is_present(pps) ? 0 : LP_CLOCK_ERROR_NO_PPS;

	error |= (found & LP_SECOND_NO_NMEA) != 0 ? LP_CLOCK_ERROR_NO_NMEA : 0;
	error |= (found & LP_SECOND_WRONG) != 0 ? LP_CLOCK_ERROR_WRONG_SECOND : 0;
	error |= (found & (LP_SECOND_UNSURE | LP_SECOND_LEAP)) != 0 ? LP_CLOCK_ERROR_LEAP_UNSURE
								    : 0;
	error |= (found & LP_SECOND_UNKNOWN) != 0 ? LP_CLOCK_ERROR_SECOND_UNKNOWN : 0;
	error |= is_inverted() ? LP_CLOCK_ERROR_PPS_INVERTED : 0;
	error |= (found & LP_SECOND_NO_FIX) != 0 ? LP_CLOCK_ERROR_NO_FIX : 0;
	is_bad = is_bad && ms - bad_ms < BAD_NMEA_MS;

	return error | (is_bad ? LP_CLOCK_ERROR_BAD_NMEA : 0);
}

/* The period is another, the rest is known as before. */
static void forget_second(void)
{
	int64_t sure_until = second.sure_until;
	int8_t leap = second.leap;

	lp_second_init(&second, second.tai_utc);
	lp_second_expect(&second, sure_until, CONFIG_LITEPROBE_NOT_BEFORE);
	second.leap = leap;
}

static int start_servo(void)
{
	const struct lp_pps_config input = {.min_width = CONFIG_LITEPROBE_PPS_MIN_WIDTH};
	struct lp_servo_config config;
	const struct lp_servo_range *range;
	struct keep_values kept;

	lp_servo_defaults(&config);
	/* Of another period in simulation, where a host writes it before the firmware starts. */
	config.period_ns = lp_pps_period(pps);
	config.quantum_ps = lp_pps_quantum_ps(pps);
	keep_read(&kept);
	if (lp_profile_apply(&config, kept.receiver, kept.oscillator) < 0) {
		LOG_ERR("no such profile: a timing receiver and a crystal are taken");
	}
	if (lp_servo_init(&servo, &config) < 0) {
		range = lp_servo_refused(&config);
		LOG_ERR("the servo's %s is out of range: give %llu to %llu", range->name,
			range->least, range->most);
		return -EINVAL;
	}
	out = (struct lp_servo_output){0};
	undone = 0;
	if (ticks_per_ms != config.period_ns / LP_TICK_NS / 1000) {
		ticks_per_ms = config.period_ns / LP_TICK_NS / 1000;
		forget_second();
		lp_qerr_init(&qerr);
	}
	k_msgq_purge(&edges);

	return lp_pps_start(pps, &input, on_edge, NULL);
}

/* Do what the servo says of a pulse or of a silence. */
static void obey(bool is_edge, bool has_second)
{
	undone = clock_set_obey(&servo, &out, has_second);
	/* After what was refused is in the bound. */
	if (is_edge ? lp_reference_edge(&reference, &out)
		    : lp_reference_silence(&reference, &out)) {
		undone |= LP_CLOCK_ERROR_REFERENCE_JUMPED;
	}
}

static void publish(void)
{
	static int64_t kept_until;
	static uint32_t kept_tai_utc;
	int64_t sure_until;
	struct lp_status status = {
		.state = (enum lp_clock_state)out.state,
		.uncertainty = out.uncertainty,
		.offset = out.offset,
		.rate = out.rate,
		.drift = out.drift,
		.edges = out.edges,
		.rejected = out.rejected,
		.qerr = last_qerr,
		.holdover = (uint32_t)((uint64_t)out.holdover * servo.config.period_ns / NS_PER_S),
	};

	if (is_alone || out.state == 0) {
		status.state = LP_CLOCK_FREE_RUNNING;
		status.uncertainty = UINT32_MAX;
	}
	status.tai_utc = (uint32_t)second.tai_utc;
	status.error = undone | faults() |
		       (reference.jumps & LP_CLOCK_COUNT_MASK) << LP_CLOCK_JUMPS_BIT |
		       (clock_set_steps() & LP_CLOCK_COUNT_MASK) << LP_CLOCK_STEPS_BIT;
	sure_until = second.is_known && second.is_sure ? second.sure_until : 0;
	shown.status = status;
	shown.increment = lp_timebase_increment(timebase);
	shown.period = servo.config.period_ns;
	shown.edges_lost = edges_lost;
	shown.qerr_used = qerr.used;
	shown.qerr_refused = qerr.refused;
	lp_status_publish(status_dev, &status);
	/*
	 * TAI - UTC outlives a reset, once it is sure: some times a year it is another, or is so
	 * for longer.
	 */
	if (sure_until != 0 && (sure_until != kept_until || status.tai_utc != kept_tai_utc)) {
		kept_until = sure_until;
		kept_tai_utc = status.tai_utc;
		keep_second((int32_t)status.tai_utc, sure_until);
	}
}

/*
 * The receiver names a second after it began: so this one's number is counted on from the last that
 * was named. Of the pulse itself it speaks before.
 */
static void number(const struct lp_pps_edge *edge, struct lp_servo_edge *given)
{
	uint64_t ms = edge->ticks / ticks_per_ms;

	if (lp_second_edge(&second, ms)) {
		given->has_second = second.is_known;
		given->second = second.tai;
		given->has_qerr = lp_qerr_edge(&qerr, &second, ms, &given->qerr_ps);
	}
	last_qerr = given->has_qerr ? lp_status_qerr(edge->count, given->qerr_ps) : 0;
}

static void take(const struct lp_pps_edge *edge)
{
	struct lp_servo_edge given = {
		.stamp = {.now = edge->now, .fraction = edge->fraction, .ticks = edge->ticks},
		.early_ps = edge->early_ps,
	};
	struct lp_time now;
	uint32_t start = k_cycle_get_32();

	if ((edge->flags & LP_PPS_SPURIOUS) != 0 || lp_timebase_read(timebase, &now) < 0) {
		return;
	}
	/* What the servo takes hardly changes from edge to edge. */
	given.latency = (uint32_t)(now.ticks - edge->ticks) + servo_ticks;
	number(edge, &given);
	last_pulse = edge->count;
	lp_servo_edge(&servo, &given, &out);
	obey(true, given.has_second);

	uint32_t cycles = k_cycle_get_32() - start;

	servo_ticks = (uint32_t)((uint64_t)cycles * (NS_PER_S / LP_TICK_NS) /
				 CONFIG_SYS_CLOCK_HW_CYCLES_PER_SEC);
	last_silence = 0;
}

/*
 * Tell the servo of each period without an edge, half a period after it was due; return whether
 * there was one.
 */
static bool miss(void)
{
	struct lp_time now;
	struct lp_pps_edge edge;
	uint64_t period = servo.config.period_ns / LP_TICK_NS;

	if (lp_timebase_read(timebase, &now) < 0 || lp_pps_read(pps, &edge) < 0) {
		return false;
	}

	long_pulse = edge.width > period / 2 ? edge.count : long_pulse;

	uint64_t since = MAX(edge.ticks, last_silence);

	/* From the last edge 1.5 periods, from the last silence one. */
	if (now.ticks - since < (since == edge.ticks ? period + period / 2 : period)) {
		return false;
	}
	const struct lp_servo_stamp stamp = {
		.now = now.now, .fraction = now.fraction, .ticks = now.ticks};

	lp_servo_silence(&servo, &stamp, servo_ticks, &out);
	last_silence = now.ticks;
	obey(false, false);

	return true;
}

/* Obey the host: return whether the servo runs. */
static bool follow_mode(void)
{
	switch (lp_status_mode(status_dev)) {
	case LP_CLOCK_LEAVE_ALONE:
		if (!is_alone) {
			LOG_INF("left alone, by the host");
			lp_pps_stop(pps);
			undone = 0;
			is_alone = true;
		}
		return false;
	case LP_CLOCK_REACQUIRE:
		LOG_INF("acquiring again, by the host");
		is_alone = start_servo() < 0;
		lp_status_set_mode(status_dev, LP_CLOCK_DISCIPLINE);
		return !is_alone;
	default:
		if (is_alone) {
			is_alone = start_servo() < 0;
		}
		return !is_alone;
	}
}

static k_timeout_t patience(void)
{
	/* A quarter of a period: the servo wants to hear of a missing pulse to within that. */
	return K_USEC(MIN(servo.config.period_ns / 4000, PUBLISH_MS * 1000));
}

static int64_t publish_ms(void)
{
	return MIN(servo.config.period_ns / 2000000, PUBLISH_MS);
}

static void count_work(uint32_t cycles)
{
	shown.work_us = k_cyc_to_us_near32(cycles);
	shown.work_us_max = MAX(shown.work_us_max, shown.work_us);
}

static void discipline(void *p1, void *p2, void *p3)
{
	struct lp_pps_edge edge;
	struct keep_values kept;
	int64_t published = 0;

	ARG_UNUSED(p1);
	ARG_UNUSED(p2);
	ARG_UNUSED(p3);
	servo.config.period_ns = NS_PER_S;
	keep_read(&kept);
	lp_second_init(&second, kept.tai_utc);
	lp_second_expect(&second, kept.sure_until, CONFIG_LITEPROBE_NOT_BEFORE);
	is_alone = start_servo() < 0;
	publish();
	shown.boot_us = k_cyc_to_us_near32(k_cycle_get_32() - lp_image_started);
	for (;;) {
		bool is_edge = k_msgq_get(&edges, &edge, patience()) == 0;
		bool was_alone = is_alone;
		bool is_news = is_edge;
		uint32_t start = k_cycle_get_32();

		if (follow_mode()) {
			if (is_edge) {
				take(&edge);
			} else {
				is_news = miss();
			}
		}
		if (is_news || is_alone != was_alone ||
		    k_uptime_get() - published >= publish_ms()) {
			publish();
			published = k_uptime_get();
		}
		if (is_edge) {
			count_work(k_cycle_get_32() - start);
		}
	}
}

/* K_THREAD_DEFINE would leave its stack in main RAM. */
static NEAR_STACK struct {
	K_KERNEL_STACK_MEMBER(stack, CONFIG_LITEPROBE_CLOCK_STACK);
} room;
static struct k_thread thread;

static int begin(void)
{
	const struct device *const devices[] = {timebase, pps, status_dev};

	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		if (!device_is_ready(devices[i])) {
			LOG_ERR("%s isn't ready: the clock is not disciplined", devices[i]->name);
			return -ENODEV;
		}
	}
	(void)k_thread_create(&thread, room.stack, K_KERNEL_STACK_SIZEOF(room.stack), discipline,
			      NULL, NULL, NULL, CONFIG_LITEPROBE_CLOCK_PRIORITY, 0, K_NO_WAIT);
	(void)k_thread_name_set(&thread, "discipline_thread");

	return 0;
}

/* Behind what it needs; the application's other threads begin later. */
SYS_INIT(begin, APPLICATION, 99);
