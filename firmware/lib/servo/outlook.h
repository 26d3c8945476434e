/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * How well each member of the bank would have predicted the oscillator over the next 16, 128 and
 * 1024 periods: what a holdover follows, and what its bound is made of. Each forecast is held
 * against what came.
 *
 * Source: weights as in weights.h, over a horizon; the bound's scale follows its own misses: I.
 * Gibbs, E. Candes, "Adaptive conformal inference under distribution shift", NeurIPS 2021,
 * section 2.
 */

#ifndef LITEPROBE_OUTLOOK_H
#define LITEPROBE_OUTLOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "servo/bank.h"

#define LP_HORIZONS   3
/* Forecasts on their way for each horizon. */
#define LP_FORECASTS  4
/* Digits of the errors of rates, ns a period; their squares have twice as many. */
#define LP_ERROR_BITS 20

struct lp_forecast {
	uint64_t period;             /* When it was made; all ones: none. */
	uint64_t phase;              /* Where the oscillator was then, 2^-32 ns, wraps. */
	int64_t change;              /* Where the phase was to go. */
	int64_t sigma;               /* Of the mean rate, LP_ERROR_BITS. */
	int32_t members[LP_MEMBERS]; /* Their mean rates less the one that was forecast. */
};

struct lp_horizon {
	struct lp_forecast forecasts[LP_FORECASTS];
	int64_t squares[LP_MEMBERS]; /* Mean squares of the errors. */
	int64_t prior;               /* Square of an error, as long as nothing is learned. */
	uint32_t samples;
	uint32_t scale; /* Of the bound over the deviation, 16 digits. */
};

struct lp_outlook {
	struct lp_horizon horizons[LP_HORIZONS];
	uint32_t periods; /* Learned from. */
	/* In a holdover. */
	bool is_followed;
	int64_t far; /* Rate that is returned to. */
	int64_t squares[LP_HORIZONS];
};

/**
 * Forget all; ``priors``: squares of the error of a rate over each horizon, 2 * LP_ERROR_BITS
 * digits.
 */
void lp_outlook_init(struct lp_outlook *o, const int64_t priors[LP_HORIZONS]);

/** The phase has jumped: the forecasts that are on their way are void. */
void lp_outlook_break(struct lp_outlook *o);

/** Note that a pulse was taken in a period; ``variance`` of the phase that is known now. */
void lp_outlook_pulse(struct lp_outlook *o, const struct lp_bank *b, uint64_t period,
		      uint64_t phase, int64_t variance);

/** Begin a holdover: put rate and drift of ``course`` to what predicts best from here. */
void lp_outlook_follow(struct lp_outlook *o, const struct lp_bank *b, struct lp_course *course);

/** Go on by a period of a holdover, after ``silent`` others. */
void lp_outlook_predict(const struct lp_outlook *o, struct lp_course *course, uint32_t silent);

/**
 * Return the variance of the rate (LP_ERROR_BITS twice) that a holdover of so many periods has had
 * on the mean.
 */
int64_t lp_outlook_square(const struct lp_outlook *o, uint32_t silent);

/** Return what the deviation is to be multiplied by for the bound, 16 digits. */
uint32_t lp_outlook_scale(const struct lp_outlook *o, uint32_t silent);

#endif
