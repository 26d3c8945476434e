/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Kalman filter of an oscillator against a reference pulse: phase (ns), rate (ns a time unit), drift (ns a time unit
 * squared), in fixed point. The time unit is 2^shift periods of the pulse, about a second, so that a pulse of 1 kHz
 * and one of 1 Hz use the same scales.
 *
 * Source: R. G. Brown, P. Y. C. Hwang, "Introduction to Random Signals and Applied Kalman Filtering", 4th ed. 2012,
 * section 9.3 (clock model), with drift as third state.
 */

#ifndef LITEPROBE_KALMAN_H
#define LITEPROBE_KALMAN_H

#include <stdint.h>

/* Binary digits of the fraction of each state. */
#define LP_PHASE_BITS 32
#define LP_RATE_BITS  40
#define LP_DRIFT_BITS 48

/* Variances: their fraction has the sum of these digits of the two states that they belong to. */
#define LP_PHASE_DIGITS 11
#define LP_RATE_DIGITS  17
#define LP_DRIFT_DIGITS 23
#define LP_VARIANCE_BITS (2 * LP_PHASE_DIGITS)

/** Process noise of a period, and of the states at a start: variances in the digits above. */
struct lp_kalman_noise {
	int64_t phase;
	int64_t rate;
	int64_t drift;
};

struct lp_kalman {
	unsigned int shift;
	int64_t phase;
	int64_t rate;
	int64_t drift;
	/* Covariances: p phase, r rate, d drift. */
	int64_t pp, pr, pd, rr, rd, dd;
};

/** Set the states; the rate is known from two pulses of variance ``measured``, the drift not at all (``drift``). */
void lp_kalman_start(struct lp_kalman *k, int64_t phase, int64_t rate, int64_t measured, int64_t drift);

/** Go on by a period: ``phase`` grows by what the rate and the drift make of it, not by the period itself. */
void lp_kalman_predict(struct lp_kalman *k, const struct lp_kalman_noise *noise);

/** Return the variance that the phase will have when a period has gone by. */
int64_t lp_kalman_ahead(const struct lp_kalman *k, const struct lp_kalman_noise *noise);

/** Return how much the phase grows in a period (digits of a phase). */
int64_t lp_kalman_growth(const struct lp_kalman *k);

/** Take a pulse that came ``residual`` (digits of a phase) after the prediction and has variance ``measured``. */
void lp_kalman_update(struct lp_kalman *k, int64_t residual, int64_t measured);

#endif
