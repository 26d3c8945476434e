/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Runs the servo in virtual time. stdin: the configuration, then events in the order of their
 * ticks; stdout: an answer an event. All are structures of host words, without padding;
 * sim/drivers/clock/virtual_time.py writes and reads them.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference/reference.h"
#include "servo/servo.h"
#include "wide/wide.h"

enum kind {
	EVENT_EDGE = 0,    /* A pulse, captured in this tick. */
	EVENT_SILENCE = 1, /* The firmware's timer found no pulse. */
	EVENT_TRUTH = 2,   /* What is `now` at this instant? */
	EVENT_STEP = 3,    /* Somebody adds `value` ns to `now`. */
};

#define FLAG_QERR   1u
#define FLAG_SECOND 2u
#define FLAG_BUSY   4u /* A train runs: the clock is not stepped. */

struct event {
	uint32_t kind;
	uint32_t flags;
	uint64_t ticks;
	uint32_t fraction; /* Of the tick, 2^-32; of an edge: how early it was captured, ps. */
	int32_t qerr_ps;
	uint32_t latency;      /* Ticks until the output takes effect: what the servo gets, */
	uint32_t latency_true; /* and what is true. */
	int64_t value; /* True time (ns); of a step, ns; of an edge with FLAG_SECOND, its number. */
};

struct answer {
	int64_t error; /* now - true time, 2^-16 ns. */
	uint64_t increment;
	int64_t behind;
	uint32_t state;
	uint32_t is_used;
	uint32_t uncertainty;
	int32_t offset;
	int32_t rate;
	int32_t drift;
	uint32_t rejected;
	uint32_t has_adjust;
	uint32_t jumps;
	uint32_t has_jumped;
};

/* The timebase: now has 40 digits of fraction, as in the gateware. */
struct clock {
	struct lp_wide now;
	uint64_t ticks;
	uint64_t increment;
	uint64_t due; /* Tick at which what is pending takes effect. */
	uint64_t next_increment;
	int64_t next_adjust;
	int is_pending;
};

static void run(struct clock *c, uint64_t ticks)
{
	c->now = lp_wide_add(c->now, lp_wide_multiply(ticks - c->ticks, c->increment));
	c->ticks = ticks;
}

/* Add 2^-32 ns. */
static void adjust(struct clock *c, int64_t value)
{
	struct lp_wide wide = {.high = value < 0 ? UINT64_MAX : 0, .low = (uint64_t)value};

	c->now = lp_wide_add(c->now, lp_wide_left(wide, 8));
}

static void run_to(struct clock *c, uint64_t ticks)
{
	if (c->is_pending && c->due <= ticks) {
		run(c, c->due);
		c->increment = c->next_increment;
		adjust(c, c->next_adjust);
		c->is_pending = 0;
	}
	run(c, ticks);
}

static struct lp_servo_stamp latch(const struct clock *c)
{
	return (struct lp_servo_stamp){
		.now = lp_wide_right(c->now, 40).low,
		.fraction = (uint32_t)(c->now.low >> 8),
		.ticks = c->ticks,
	};
}

/* As a capture stamps what comes in the tick that ends now: by its beginning. */
static struct lp_servo_stamp latch_before(const struct clock *c)
{
	struct clock before = *c;

	before.now = lp_wide_subtract(c->now, (struct lp_wide){.low = c->increment});
	before.ticks--;
	return latch(&before);
}

/* now - true time, with the part of the tick that has passed. */
static int64_t error_of(const struct clock *c, const struct event *event)
{
	struct lp_wide part = lp_wide_right(lp_wide_multiply(event->fraction, c->increment), 32);
	struct lp_wide truth = lp_wide_left((struct lp_wide){.low = (uint64_t)event->value}, 40);
	struct lp_wide error = lp_wide_subtract(lp_wide_add(c->now, part), truth);

	return (int64_t)((error.low >> 24) | (error.high << 40));
}

static void serve(struct clock *c, struct lp_servo *servo, const struct event *event,
		  struct answer *answer)
{
	static struct lp_servo_output out;
	static struct lp_reference reference;
	static uint32_t has_jumped;
	struct lp_servo_edge edge = {
		.stamp = latch_before(c),
		.early_ps = event->fraction,
		.latency = event->latency + 1,
		.has_qerr = (event->flags & FLAG_QERR) != 0,
		.qerr_ps = event->qerr_ps,
		.has_second = (event->flags & FLAG_SECOND) != 0,
		.second = (uint64_t)event->value,
	};

	if (event->kind == EVENT_TRUTH) {
		answer->error = error_of(c, event);
		out.has_adjust = 0;
	} else if (event->kind == EVENT_STEP) {
		adjust(c, (int64_t)((uint64_t)event->value << 32));
	} else {
		struct lp_servo_stamp now = latch(c);

		if (event->kind == EVENT_EDGE) {
			lp_servo_edge(servo, &edge, &out);
		} else {
			lp_servo_silence(servo, &now, event->latency, &out);
		}
		if ((event->flags & FLAG_BUSY) != 0) {
			lp_servo_refuse(servo, &out);
		}
		has_jumped = event->kind == EVENT_EDGE ? lp_reference_edge(&reference, &out)
						       : lp_reference_silence(&reference, &out);
		c->due = event->ticks + event->latency_true;
		c->next_increment = out.increment;
		c->next_adjust = out.has_adjust ? out.adjust : 0;
		c->is_pending = 1;
	}
	answer->increment = c->increment;
	answer->behind = out.behind;
	answer->state = out.state;
	answer->is_used = event->kind == EVENT_EDGE && out.is_used;
	answer->uncertainty = out.uncertainty;
	answer->offset = out.offset;
	answer->rate = out.rate;
	answer->drift = out.drift;
	answer->rejected = out.rejected;
	answer->has_adjust = out.has_adjust;
	answer->jumps = reference.jumps;
	answer->has_jumped = has_jumped;
}

static int read_config(struct lp_servo_config *config, uint64_t *start_ns)
{
	uint64_t words[18];

	if (fread(words, sizeof(words), 1, stdin) != 1) {
		return -EIO;
	}
	*config = (struct lp_servo_config){
		.increment = words[1],
		.period_ns = (uint32_t)words[2],
		.quantum_ps = (uint32_t)words[3],
		.noise_ps = (uint32_t)words[4],
		.sawtooth_ps = (uint32_t)words[5],
		.wander_ps = (uint32_t)words[6],
		.phase_walk_ps = (uint32_t)words[7],
		.rate_walk_ppq = (uint32_t)words[8],
		.drift_walk_ppq = (uint32_t)words[9],
		.jerk_ppq = (uint32_t)words[10],
		.rate_limit_ppm = (uint32_t)words[11],
		.lock_ns = (uint32_t)words[12],
		.jump_ns = (uint32_t)words[13],
		.lost_ns = (uint32_t)words[14],
	};
	*start_ns = words[0];
	return 0;
}

int main(void)
{
	struct lp_servo_config config;
	struct lp_servo servo;
	struct clock clock = {0};
	struct event event;
	uint64_t start_ns;

	if (read_config(&config, &start_ns) != 0 || lp_servo_init(&servo, &config) != 0) {
		fprintf(stderr, "virtual_time: the configuration is refused\n");
		return 2;
	}
	clock.now = lp_wide_left((struct lp_wide){.low = start_ns}, 40);
	clock.increment = config.increment;
	while (fread(&event, sizeof(event), 1, stdin) == 1) {
		struct answer answer;

		memset(&answer, 0, sizeof(answer));
		if (event.ticks < clock.ticks) {
			fprintf(stderr, "virtual_time: an event goes back in time\n");
			return 2;
		}
		run_to(&clock, event.ticks);
		serve(&clock, &servo, &event, &answer);
		fwrite(&answer, sizeof(answer), 1, stdout);
	}
	return 0;
}
