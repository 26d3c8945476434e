/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Disciplines the clock of a probe by a pulse a period (PPS). Plain C, integers only, no
 * allocation.
 *
 * What is estimated is the free-running oscillator, in ticks; what is steered is `now`. So neither
 * the moment at which an increment takes effect nor a step of `now` by somebody else can mislead
 * the filter.
 */

#ifndef LITEPROBE_SERVO_H
#define LITEPROBE_SERVO_H

#include <stdbool.h>
#include <stdint.h>

#include "servo/bank.h"
#include "servo/outlook.h"
#include "servo/wander.h"

/** States; the numbers are those of the register clock_state. */
enum lp_servo_state {
	LP_SERVO_FREE_RUNNING =
		1, /* No rate is known, or it is too old to say where the time is. */
	LP_SERVO_ACQUIRING =
		2, /* Pulses come, but are not trusted yet; `adjust` may step the clock. */
	LP_SERVO_LOCKED = 3,
	LP_SERVO_HOLDOVER =
		4, /* Was locked; no pulse, or none to believe, for more than a period. */
};

/** Where learning of the receiver and the oscillator begins. Start from lp_servo_defaults(). */
struct lp_servo_config {
	uint64_t increment;  /* Nominal ns a tick, 8.40 fixed point. */
	uint32_t period_ns;  /* Between two pulses, 1 ms to 1.4 s. */
	uint32_t quantum_ps; /* Of the capture, at most a tick: what is known of an edge. */
	/* Receiver: noise is learned, from this on. */
	uint32_t noise_ps; /* White, one sigma, once qErr is applied. */
	/* Steps that edges without qErr may come in, peak to peak. 0: none. */
	uint32_t sawtooth_ps;
	uint32_t wander_ps; /* Slow, one sigma, at least this. It is in the bound alone. */
	/*
	 * Oscillator, one sigma after a second of random walk: for the bound of a holdover of
	 * lengths not seen yet.
	 */
	uint32_t phase_walk_ps;  /* ps = 10^-12: white frequency noise. */
	uint32_t rate_walk_ppq;  /* 10^-15. */
	uint32_t drift_walk_ppq; /* 10^-15 a second. */
	uint32_t jerk_ppq;       /* 10^-15 a second squared, of the temperature's turning. */
	/* Policy. */
	uint32_t rate_limit_ppm; /* An oscillator that is further off is taken for a wrong pulse. */
	uint32_t lock_ns;        /* Locked below this uncertainty. */
	uint32_t jump_ns;        /* An error above this is stepped, not slewed. */
	/* Above this uncertainty holdover ends in free-running; at most 1000000. */
	uint32_t lost_ns;
};

/** Counter and time of one tick, as the timebase latches them together. */
struct lp_servo_stamp {
	uint64_t now;      /* ns */
	uint32_t fraction; /* 2^-32 ns */
	uint64_t ticks;    /* Free-running. */
};

/** A pulse. */
struct lp_servo_edge {
	struct lp_servo_stamp stamp; /* The beginning of the tick that the edge came in. */
	/* From the end of its quantum to that of its tick, where the capture is finer; else 0. */
	uint32_t early_ps;
	uint32_t latency; /* Ticks from the stamp until the output will take effect. */
	bool has_qerr;
	int32_t qerr_ps; /* How much later than the receiver's own second the edge came. */
	bool has_second;
	/* Number of the period that begins with this edge, since the epoch of `now`. */
	uint64_t second;
};

/** What to do, and what to report. */
struct lp_servo_output {
	enum lp_servo_state state;
	bool is_used;       /* The pulse agreed and was taken. */
	uint64_t increment; /* Write it each time (8.40). */
	bool has_adjust;
	int64_t adjust; /* Add once, after the increment is written: signed 32.32 ns. */
	/* Periods that `now` is behind the number of this pulse: set the clock, when not 0. */
	int64_t behind;
	uint32_t uncertainty; /* 95 %, until the next pulse, 2^-8 ns; saturates. */
	int32_t offset;       /* Of the clock from this pulse, 2^-8 ns; saturates. */
	int32_t rate;         /* Of the oscillator, 2^-8 ppb; positive: fast. */
	int32_t drift;        /* 2^-8 ppt a second. */
	uint32_t edges;       /* Used so far. */
	uint32_t rejected;    /* So far. */
	uint32_t holdover;    /* Periods since the last used pulse. */
};

/* How many rejected pulses are remembered, to see whether they agree with each other. */
#define LP_SERVO_ROW 4

struct lp_servo_rejected {
	uint64_t period;
	int64_t phase;
};

/** All state; its fields are private to servo.c. */
struct lp_servo {
	struct lp_servo_config config;
	struct lp_bank bank;
	struct lp_outlook outlook;
	struct lp_wander seen;
	struct lp_course course; /* Of the oscillator, as the clock is steered by it. */
	enum lp_servo_state state;
	uint64_t increment; /* In force. */
	/* Of `now` against the estimate, still to be slewed away (digits of a phase). */
	int64_t error;
	int64_t left;       /* Until the next pulse that leaves time to act: by the oscillator, */
	int64_t wanted;     /* and as `now` shall show it (digits of a phase). */
	uint64_t reference; /* Tick that phases count from. */
	uint64_t period;    /* Number of the present period. */
	bool has_reference;
	bool has_rate;
	uint32_t accepted; /* Since the last start. */
	uint32_t silent;   /* Periods since the last used pulse. */
	uint32_t row;      /* Rejected pulses in a row. */
	struct lp_servo_rejected history[LP_SERVO_ROW];
	/* Variance of the rate of a period, after a holdover, until the second pulse. */
	int64_t doubt;
	/* Pulses in a row with a qErr where that is not learned of, or without. */
	uint32_t other_kind;
	bool has_qerr;         /* Kind of pulse that is learned of. */
	int64_t bound;         /* Of the estimate until the next pulse, 95 %, 2^-8 ns. */
	uint32_t period_ticks; /* Nominal. */
	int64_t wander;        /* Variances, in LP_VARIANCE_BITS. */
	int64_t drift;         /* What one that isn't known makes of a phase in a period. */
	int64_t capture;
	int64_t white;
	int64_t sawtooth;
	uint32_t edges;
	uint32_t rejected;
};

/** What a setting may be, and where it is in struct lp_servo_config. */
struct lp_servo_range {
	const char *name;
	uint64_t least;
	uint64_t most;
	uint16_t offset;
	uint16_t octets;
};

/** Fill in what fits a timing receiver, a plain crystal, and a capture by ticks of 8 ns. */
void lp_servo_defaults(struct lp_servo_config *config);

/** Return the first setting that is out of its range; NULL: there is none. */
const struct lp_servo_range *lp_servo_refused(const struct lp_servo_config *config);

/**
 * Start anew, free-running at the nominal increment.
 *
 * @retval 0 on success
 * @retval -EINVAL when a value of the configuration is out of its range
 */
int lp_servo_init(struct lp_servo *s, const struct lp_servo_config *config);

/** Forget pulses and rate, keep the clock as it runs, and acquire again. */
void lp_servo_reacquire(struct lp_servo *s);

/** Take a pulse. */
void lp_servo_edge(struct lp_servo *s, const struct lp_servo_edge *edge,
		   struct lp_servo_output *out);

/**
 * Say that there was no pulse: call it once a period, half a period after a pulse was due,
 * to within a quarter of a period.
 * ``stamp`` is a latch of now, ``latency`` as of an edge.
 */
void lp_servo_silence(struct lp_servo *s, const struct lp_servo_stamp *stamp, uint32_t latency,
		      struct lp_servo_output *out);

/**
 * Say that the step of ``out`` was not made: it stays in the error and in the bound, and is slewed
 * away, at 1000 ppm at most. Changes ``out``, whose increment is to be written then. Does nothing
 * where ``out`` asks for no step.
 */
void lp_servo_refuse(struct lp_servo *s, struct lp_servo_output *out);

#endif
