/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "servo/wander.h"

#include <string.h>

#include "servo/bank.h"
#include "wide/wide.h"

/* What is said while nothing is known, and at most: 14 ns. */
#define WORST           ((int64_t)196 << LP_VARIANCE_BITS)
/* Without so many nothing is known. */
#define ENOUGH          4
/* Squares count up to so many times their mean. */
#define MOST_SQUARE     25
/* Levels that show the noise of a pulse; that show what shakes; the first that shows wander. */
#define NOISE_LEVELS    4
#define SHAKEN_LEVELS   4
#define FIRST_LEVEL     2
/* Every 16 pulses, when this one has a pair, is often enough. */
#define ESTIMATED_LEVEL 3
/* Of a third difference of white noise: 1, 3, 3, 1 squared. */
#define WHITE           20
/* A longer gap isn't bridged. */
#define BRIDGED         8

/*
 * share: variance of a wander over the mean square of its third difference, 8 digits: of a Gauss-
 * Markov process with a time constant of 400 periods, of 240 and 210 (16 pulses) for the shorter
 * means.
 * learned: third differences that a mean square remembers, as a power of two.
 * doubt: few squares may be small by chance: they count as if there were so many more, as large as
 * their mean.
 */
static const struct {
	uint16_t share;
	uint8_t learned;
	uint8_t doubt;
} levels[LP_LEVELS] = {
	{5133, 9, 24}, {4404, 8, 24}, {2669, 7, 24}, {1408, 7, 24}, {590, 8, 8},
	{590, 7, 12},  {302, 7, 12},  {150, 7, 12},  {77, 7, 12},   {51, 7, 12},
};

void lp_wander_init(struct lp_wander *w, bool is_white)
{
	memset(w, 0, sizeof(*w));
	w->slow = WORST;
	w->is_white = is_white;
}

void lp_wander_break(struct lp_wander *w)
{
	for (int i = 0; i < LP_LEVELS; i++) {
		w->levels[i].count = 0;
	}
}

static void learn(struct lp_level *l, int64_t third, unsigned int most)
{
	/* In 2^-16 ns: 32 us at most. */
	int64_t small = lp_shift(third, -16);
	unsigned int shift = 0;
	int64_t square;

	small = small > INT32_MAX ? INT32_MAX : small < -INT32_MAX ? -INT32_MAX : small;
	square = (small * small) >> (32 - LP_VARIANCE_BITS);
	while (shift < most && (l->samples + 1) >> (shift + 1) != 0) {
		shift++;
	}
	/* One alone proves nothing. */
	square = l->samples >= ENOUGH && square > MOST_SQUARE * l->square ? MOST_SQUARE * l->square
									  : square;
	l->square += (square - l->square) >> shift;
	l->samples += l->samples < UINT32_MAX;
}

/* Take a mean; return whether it is the second one of a pair. */
static bool take(struct lp_level *l, uint64_t mean, unsigned int most)
{
	int64_t first = (int64_t)(mean - l->mean);
	int64_t second = lp_sum(first, -l->first);

	if (l->count > 2) {
		learn(l, lp_sum(second, -l->second), most);
	}
	l->mean = mean;
	l->first = first;
	l->second = second;
	l->count++;
	return (l->count & 1) == 0;
}

static int64_t least_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/*
 * All of the squares over those of white noise, were there nothing else: smallest where there is
 * little else.
 */
static void estimate(struct lp_wander *w)
{
	int64_t noise = INT64_MAX;
	int64_t white, next;

	if (w->levels[0].samples < ENOUGH) {
		return;
	}
	for (unsigned int i = 0; i < NOISE_LEVELS; i++) {
		if (w->levels[i].samples >= ENOUGH << 2) {
			noise = least_of(noise, lp_shift(w->levels[i].square, (int)i));
		}
	}
	/* Steps of a receiver's clock aren't white: less of them is sure to be noise. */
	white = noise == INT64_MAX ? 0 : noise - noise / (w->is_white ? 32 : 4);
	w->slow = next = WORST;
	for (unsigned int i = FIRST_LEVEL; i < LP_LEVELS && w->levels[i].samples >= ENOUGH; i++) {
		const struct lp_level *l = &w->levels[i];
		uint32_t samples =
			l->samples >> levels[i].learned == 0 ? l->samples : 1u << levels[i].learned;
		int64_t square = l->square + lp_ratio(l->square, levels[i].doubt, samples);

		square -= white >> i;
		square = square < 0 ? 0 : square;
		square = lp_scale(square, levels[i].share, 8);
		next = least_of(next, square > w->slow ? square : w->slow);
		w->slow = least_of(w->slow, square);
	}
	/* Where several agree the least of them is so by chance. */
	w->slow = least_of(WORST, w->slow + (next < w->slow + w->slow / 4 ? w->slow / 8 : 0));
	w->shaken = 0;
	for (unsigned int i = 0; i < SHAKEN_LEVELS && noise != INT64_MAX; i++) {
		int64_t more = w->levels[i].square - ((noise + noise / 4) >> i);

		w->shaken = more > w->shaken ? more : w->shaken;
	}
	w->shaken /= WHITE;
}

static void add(struct lp_wander *w, uint64_t phase)
{
	for (unsigned int i = 0; i < LP_LEVELS; i++) {
		struct lp_level *l = &w->levels[i];
		uint64_t before = l->mean;

		if (!take(l, phase, levels[i].learned)) {
			return;
		}
		if (i == ESTIMATED_LEVEL) {
			estimate(w);
		}
		phase = before + (uint64_t)((int64_t)(phase - before) / 2);
	}
}

void lp_wander_pulse(struct lp_wander *w, uint64_t phase, uint32_t periods)
{
	int64_t change = (int64_t)(phase - w->phase);

	if (periods > BRIDGED) {
		lp_wander_break(w);
		periods = 1;
	}
	/* Pulses that are missing are put on a line between their neighbours. */
	while (--periods > 0) {
		change -= change / (int64_t)(periods + 1);
		add(w, phase - (uint64_t)change);
	}
	add(w, phase);
	w->phase = phase;
}
