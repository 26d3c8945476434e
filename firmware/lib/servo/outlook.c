/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "servo/outlook.h"

#include <string.h>

#include "wide/wide.h"

#define NEAR 1
#define FAR  2

/*
 * What nobody has seen yet still counts: the prior, but no more than what the nearer horizon has
 * seen, grown with the square of time, or with time where this one has seen something. Powers of
 * two.
 */
#define UNSEEN_SHIFT 12
#define SEEN_SHIFT   7
/*
 * The drift of a holdover fades over so many periods; from half of that on the rate goes back in
 * that half.
 */
#define FADE_SHIFT   9
#define BACK_SHIFT   7
#define BACK         256u

/* Of the scale, 16 digits: at least 2, at most 10. */
#define SCALE_LEAST (2 * 65536)
#define SCALE_MOST  (10 * 65536)
#define SCALE_MISS  (6 * 65536 / 10)
#define SCALE_HIT   (6 * 65536 / 1000)

/*
 * Powers of two: the periods ahead, and how many errors are remembered; mean of a fading drift
 * until then, 8 digits; where the scale begins.
 */
static const struct {
	uint8_t ahead;
	uint8_t memory;
	uint16_t drift;
	uint32_t scale;
} spans[LP_HORIZONS] = {
	{4, 8, 2027, 24 * 65536 / 10}, {7, 6, 15094, 24 * 65536 / 10}, {10, 5, 0, 32 * 65536 / 10}};

void lp_outlook_init(struct lp_outlook *o, const int64_t priors[LP_HORIZONS])
{
	memset(o, 0, sizeof(*o));
	for (int i = 0; i < LP_HORIZONS; i++) {
		o->horizons[i].prior = priors[i];
		o->horizons[i].scale = spans[i].scale;
	}
	lp_outlook_break(o);
}

void lp_outlook_break(struct lp_outlook *o)
{
	for (int i = 0; i < LP_HORIZONS; i++) {
		for (int j = 0; j < LP_FORECASTS; j++) {
			o->horizons[i].forecasts[j].period = UINT64_MAX;
		}
	}
	o->is_followed = false;
}

/* Samples that a horizon's mean squares have in them. */
static uint32_t samples_of(const struct lp_outlook *o, uint32_t number)
{
	uint32_t most = (uint32_t)1 << spans[number].memory;

	return o->horizons[number].samples < most ? o->horizons[number].samples : most;
}

/*
 * By the nearest horizon alone as long as the others have seen nothing; by the bank's own weights
 * before that.
 */
static void weights_of(const struct lp_outlook *o, const struct lp_bank *b, uint32_t number,
		       uint32_t weights[LP_MEMBERS])
{
	int32_t nats[LP_MEMBERS] = {0};

	if (o->horizons[0].samples == 0) {
		for (int i = 0; i < LP_MEMBERS; i++) {
			weights[i] = b->members[i].weight;
		}
		return;
	}
	if (o->horizons[NEAR].samples == 0) {
		lp_nats(nats, o->horizons[0].squares, (samples_of(o, 0) + 3) / 4);
	} else if (number <= NEAR) {
		lp_nats(nats, o->horizons[NEAR].squares, (samples_of(o, NEAR) + 1) / 2);
	} else {
		lp_nats(nats, o->horizons[NEAR].squares, (samples_of(o, NEAR) + 7) / 8);
		lp_nats(nats, o->horizons[FAR].squares, (samples_of(o, FAR) + 1) / 2);
	}
	lp_weights(weights, nats);
}

static int64_t weighed(const int64_t values[LP_MEMBERS], const uint32_t weights[LP_MEMBERS])
{
	int64_t sum = 0;

	for (int i = 0; i < LP_MEMBERS; i++) {
		if (weights[i] > 0) {
			sum = lp_sum(sum, lp_scale(values[i], weights[i], LP_WEIGHT_BITS));
		}
	}
	return sum;
}

/* Square of the error to be expected over a horizon. */
static int64_t square_of(const struct lp_outlook *o, uint32_t number,
			 const uint32_t weights[LP_MEMBERS])
{
	const struct lp_horizon *h = &o->horizons[number];
	int64_t square = h->samples == 0 ? 0 : weighed(h->squares, weights);
	int64_t prior = h->prior;

	if (samples_of(o, number) == 1u << spans[number].memory) {
		return square;
	}
	if (number > 0 && h[-1].samples > 0) {
		int64_t most = lp_shift(weighed(h[-1].squares, weights),
					h->samples == 0 ? UNSEEN_SHIFT : SEEN_SHIFT);

		prior = most < prior ? most : prior;
	}
	return lp_sum(square, lp_ratio(prior, 1, (int64_t)(h->samples + 1) * (h->samples + 1)));
}

static int32_t narrow(int64_t a)
{
	return a > INT32_MAX ? INT32_MAX : a < -INT32_MAX ? -INT32_MAX : (int32_t)a;
}

/* Hold a forecast against what came. */
static void judge(struct lp_horizon *h, uint32_t number, const struct lp_forecast *f,
		  uint64_t phase)
{
	int64_t missed = (int64_t)(phase - f->phase - (uint64_t)f->change);
	int32_t error =
		narrow(lp_shift(missed, LP_ERROR_BITS - LP_PHASE_BITS - spans[number].ahead));
	bool is_miss = (error < 0 ? -(int64_t)error : error) > lp_scale(f->sigma, h->scale, 16);
	unsigned int shift = 0;

	h->scale = is_miss ? h->scale + SCALE_MISS : h->scale - SCALE_HIT;
	h->scale = h->scale < SCALE_LEAST  ? SCALE_LEAST
		   : h->scale > SCALE_MOST ? SCALE_MOST
					   : h->scale;
	h->samples += h->samples < UINT32_MAX;
	while (shift < spans[number].memory && h->samples >> (shift + 1) != 0) {
		shift++;
	}
	for (int i = 0; i < LP_MEMBERS; i++) {
		int64_t own = narrow((int64_t)error - f->members[i]);
		int64_t square = own * own;

		h->squares[i] += (square - h->squares[i]) >> shift;
		h->squares[i] = h->squares[i] < 1 ? 1 : h->squares[i];
	}
}

/* Mean rate of a member until the horizon, LP_RATE_BITS. */
static int64_t mean_rate(const struct lp_member *m, uint32_t number)
{
	return lp_sum(m->course.rate, lp_scale(m->course.drift, spans[number].drift,
					       LP_DRIFT_BITS - LP_RATE_BITS + 8));
}

static void forecast(const struct lp_outlook *o, const struct lp_bank *b, uint32_t number,
		     struct lp_forecast *f, int64_t variance)
{
	uint32_t weights[LP_MEMBERS];
	int64_t rates[LP_MEMBERS];
	int64_t rate, square;

	weights_of(o, b, number, weights);
	for (int i = 0; i < LP_MEMBERS; i++) {
		rates[i] = mean_rate(&b->members[i], number);
	}
	rate = weighed(rates, weights);
	for (int i = 0; i < LP_MEMBERS; i++) {
		f->members[i] =
			narrow(lp_shift(lp_sum(rates[i], -rate), LP_ERROR_BITS - LP_RATE_BITS));
	}
	f->change = lp_shift(rate, LP_PHASE_BITS - LP_RATE_BITS + spans[number].ahead);
	square = lp_shift(variance, 2 * LP_ERROR_BITS - LP_VARIANCE_BITS - 2 * spans[number].ahead);
	square = lp_sum(square, square_of(o, number, weights));
	f->sigma = (int64_t)lp_wide_root((struct lp_wide){.low = (uint64_t)square});
}

void lp_outlook_pulse(struct lp_outlook *o, const struct lp_bank *b, uint64_t period,
		      uint64_t phase, int64_t variance)
{
	o->is_followed = false;
	o->periods += o->periods < UINT32_MAX;
	for (uint32_t number = 0; number < LP_HORIZONS; number++) {
		struct lp_horizon *h = &o->horizons[number];
		unsigned int step = spans[number].ahead - 2u;
		struct lp_forecast *f = &h->forecasts[(period >> step) % LP_FORECASTS];

		if ((period & (((uint64_t)1 << step) - 1)) != 0) {
			/* Nor of a farther horizon. */
			break;
		}
		if (f->period != UINT64_MAX &&
		    period - f->period == (uint64_t)1 << spans[number].ahead) {
			judge(h, number, f, phase);
		}
		f->period = period;
		f->phase = phase;
		forecast(o, b, number, f, variance);
	}
}

void lp_outlook_follow(struct lp_outlook *o, const struct lp_bank *b, struct lp_course *course)
{
	uint32_t weights[LP_MEMBERS];
	int64_t rates[LP_MEMBERS], drifts[LP_MEMBERS];

	o->is_followed = true;
	for (int i = 0; i < LP_MEMBERS; i++) {
		rates[i] = b->members[i].course.rate;
		drifts[i] = b->members[i].course.drift;
	}
	weights_of(o, b, FAR, weights);
	o->far = weighed(rates, weights);
	o->squares[FAR] = square_of(o, FAR, weights);
	weights_of(o, b, NEAR, weights);
	course->rate = weighed(rates, weights);
	course->drift = weighed(drifts, weights);
	o->squares[NEAR] = square_of(o, NEAR, weights);
	o->squares[0] = square_of(o, 0, weights);
}

void lp_outlook_predict(const struct lp_outlook *o, struct lp_course *course, uint32_t silent)
{
	lp_course_predict(course);
	if (silent < BACK) {
		course->drift -= lp_shift(course->drift, -FADE_SHIFT);
	} else {
		course->drift = 0;
		course->rate += lp_shift(lp_sum(o->far, -course->rate), -BACK_SHIFT);
	}
}

/*
 * A square times (periods / 2^ahead)^4: an error of a rate that grows with the square of time, up
 * to ``most``.
 */
static int64_t grown(int64_t square, uint32_t periods, unsigned int ahead, int64_t most)
{
	int64_t by = (int64_t)periods * periods;

	square = lp_scale(lp_scale(square, by, 2 * ahead), by, 2 * ahead);
	return square < most ? square : most;
}

static int64_t greater(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int64_t lp_outlook_square(const struct lp_outlook *o, uint32_t silent)
{
	const int64_t *squares = o->squares;

	if (silent <= (uint32_t)1 << spans[0].ahead) {
		/* Between a rate that is off and one that walks at random. */
		return lp_ratio(squares[0], silent + 8, 24);
	}
	if (silent <= (uint32_t)1 << spans[NEAR].ahead) {
		return grown(squares[0], silent, spans[0].ahead,
			     greater(squares[0], squares[NEAR]));
	}
	if (silent <= (uint32_t)1 << spans[FAR].ahead) {
		return grown(squares[NEAR], silent, spans[NEAR].ahead,
			     greater(squares[NEAR], squares[FAR]));
	}
	/* Beyond what was ever seen: as with a drift. */
	return lp_scale(squares[FAR], (int64_t)silent * silent, 2 * spans[FAR].ahead);
}

uint32_t lp_outlook_scale(const struct lp_outlook *o, uint32_t silent)
{
	uint32_t near = o->horizons[NEAR].scale, far = o->horizons[FAR].scale;

	if (silent <= (uint32_t)1 << spans[NEAR].ahead) {
		return silent <= (uint32_t)1 << spans[0].ahead ? o->horizons[0].scale : near;
	}
	return silent < (uint32_t)1 << (spans[FAR].ahead - 1) && near > far ? near : far;
}
