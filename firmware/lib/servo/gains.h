/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * The members of the bank, and their gains: least squares over a memory that grows with each pulse
 * until it is full.
 *
 * Source: E. Brookner, "Tracking and Kalman Filtering Made Easy", 1998, chapter 6.
 */

#ifndef LITEPROBE_GAINS_H
#define LITEPROBE_GAINS_H

#include <stdbool.h>
#include <stdint.h>

#include "servo/weights.h"

#define LP_GAIN_BITS 30

struct lp_kind {
	uint16_t memory; /* Pulses. */
	bool has_drift;  /* A parabola; otherwise a straight line. */
};

extern const struct lp_kind lp_kinds[LP_MEMBERS];

struct lp_gains {
	uint32_t phase, rate, drift;
};

/** Return the gains of the n-th pulse of a member, from the third (parabola) or second one on. */
struct lp_gains lp_gains_of(uint32_t number, uint32_t n);

#endif
