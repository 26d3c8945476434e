/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Predicts when the next pulse comes, by the oscillator: a bank of filters of different memory,
 * each the polynomial that fits best (least squares) to the pulses that it remembers, and a weight
 * for each by how well it predicted. Nothing has to be known of the oscillator or of the receiver:
 * both are seen in which member predicts best, and how well.
 *
 * Units: a phase is 2^-32 ns, a rate 2^-40 ns a period, a drift 2^-48 ns a period squared, a
 * variance 2^-22 ns^2.
 *
 * Source: gains.h and weights.h name theirs.
 */

#ifndef LITEPROBE_BANK_H
#define LITEPROBE_BANK_H

#include <stdbool.h>
#include <stdint.h>

#include "servo/gains.h"
#include "servo/weights.h"

/* Binary digits of the fraction. */
#define LP_PHASE_BITS    32
#define LP_RATE_BITS     40
#define LP_DRIFT_BITS    48
#define LP_VARIANCE_BITS 22

/** Where the oscillator is, and where it goes. */
struct lp_course {
	int64_t phase;
	int64_t rate;
	int64_t drift;
};

struct lp_member {
	struct lp_course course;
	uint32_t count;        /* Pulses that it remembers. */
	struct lp_gains gains; /* Of the next pulse. */
	int32_t residual;      /* Of this pulse, 2^-16 ns. */
	int64_t loss;          /* Mean square of its residuals: a variance. */
	int64_t expected;      /* Square of the next one. */
	int32_t surprise;      /* By which the squares of late were above that, in 2^-8 of a nat. */
	uint32_t weight;       /* 15 digits. */
};

struct lp_bank {
	struct lp_member members[LP_MEMBERS];
	uint32_t pulses; /* Learned from. */
	uint32_t gain;   /* Of the phase: the members' by their weights, 30 digits. */
	uint32_t memory; /* Pulses: the same. */
	int32_t last;    /* By which the last pulse was off, 2^-16 ns. */
	bool is_refused; /* That one. */
	/* Variances. */
	int64_t noise; /* Of a pulse, as learned. */
	int64_t usual; /* Of the prediction's residuals, by that noise. */
	int64_t least; /* Of the capture. */
	int64_t grid; /* Twice that of the steps of a receiver's clock, in which pulses may come. */
	int64_t drift;  /* That one makes of a phase in a period when nothing is known of it. */
	int64_t recent; /* Mean square of the last residuals of the prediction. */
};

/** Return how much the phase grows in a period. */
int64_t lp_course_growth(const struct lp_course *course);

/** Go on by a period; the drift stays. */
void lp_course_predict(struct lp_course *course);

/** Forget all that was learned; ``noise`` of a pulse is only what learning begins with. */
void lp_bank_init(struct lp_bank *b, int64_t noise, int64_t least, int64_t grid, int64_t drift);

/**
 * Have all members follow a course of which ``count`` pulses (2 or more) are known; keep what was
 * learned.
 */
void lp_bank_start(struct lp_bank *b, const struct lp_course *course, uint32_t count);

void lp_bank_predict(struct lp_bank *b);

/** Move the origin of the phases. */
void lp_bank_shift(struct lp_bank *b, int64_t by);

/**
 * Take a pulse at ``phase``, where ``course`` was predicted, and put the new prediction there.
 *
 * ``excess``: variance that this pulse has beyond that of others; nothing is learned from such a
 * pulse. Returns whether the pulse was within the gate; otherwise nothing changes.
 */
bool lp_bank_update(struct lp_bank *b, struct lp_course *course, int64_t phase, int64_t excess);

/** Return the mean square of the prediction's residuals, of late if that is more. */
int64_t lp_bank_square(const struct lp_bank *b);

/** Return the variance of the present prediction, what no filter sees not counted. */
int64_t lp_bank_variance(const struct lp_bank *b);

#endif
