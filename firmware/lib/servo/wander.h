/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * How far the receiver may wander, and the oscillator may shake between pulses, by the third
 * differences of means over 1, 2, 4 to 512 pulses. Both are errors that no filter sees; a slow
 * wander of the receiver looks like one of the oscillator, so all of it that there is at any of
 * these times is taken for the receiver's, as if it lasted five minutes: what is said is the most
 * that it can be.
 *
 * Source: third differences: R. A. Baugh, "Frequency modulation analysis with the Hadamard
 * variance", 25th Annual Frequency Control Symposium (1971), with means as in the modified Allan
 * variance.
 */

#ifndef LITEPROBE_WANDER_H
#define LITEPROBE_WANDER_H

#include <stdbool.h>
#include <stdint.h>

#define LP_LEVELS 10

struct lp_level {
	uint64_t mean; /* The last one of 2^level pulses, 2^-32 ns, wraps. */
	int64_t first; /* Its differences from those before it. */
	int64_t second;
	uint32_t count;   /* Means since the last break. */
	uint32_t samples; /* Third differences that were learned from. */
	int64_t square;   /* Mean of their squares, LP_VARIANCE_BITS. */
};

struct lp_wander {
	struct lp_level levels[LP_LEVELS];
	uint64_t phase; /* Of the last pulse. */
	bool is_white;
	/* Variances. */
	int64_t slow;   /* Of the receiver's wander, at most. */
	int64_t shaken; /* Of what the oscillator does between pulses. */
};

/**
 * Forget all: the worst is said until something is known. ``is_white``: pulses don't come in
 * steps.
 */
void lp_wander_init(struct lp_wander *w, bool is_white);

/** The phase has jumped: what comes doesn't follow from what was. */
void lp_wander_break(struct lp_wander *w);

/** Take the measured phase (2^-32 ns, wraps) of a pulse, ``periods`` after the last one. */
void lp_wander_pulse(struct lp_wander *w, uint64_t phase, uint32_t periods);

#endif
