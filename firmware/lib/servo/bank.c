/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "servo/bank.h"

#include "near/near.h"
#include "servo/gains.h"
#include "servo/weights.h"
#include "wide/wide.h"

#define GAIN_ONE ((uint32_t)1 << LP_GAIN_BITS)

/* A pulse that is further off than this many sigma is an outlier, for a member. */
#define GATE          5
/*
 * What was off by less than 20 ns may have been the beginning of a bend, however many sigma that
 * is.
 */
#define NO_OUTLIER    ((int64_t)400 << LP_VARIANCE_BITS)
/* Squares count up to so many times the least mean square: one pulse alone proves nothing. */
#define MOST_SQUARE   100
/*
 * A member that never was good can't be better than usual: no more than so many times the least is
 * taken for usual.
 */
#define USUAL_SQUARE  4
#define RELIEF        (6 * LP_NAT)
/*
 * Pulses that the mean squares remember, and those that learning begins with; both as powers of
 * two.
 */
#define LEARNED_SHIFT 9
#define PRIOR_SHIFT   4
/* Of the noise, and of what is recent. */
#define NOISE_SHIFT   8
#define RECENT_SHIFT  3
/*
 * Nats by which a member may be more surprised than others before it loses weight, and before it
 * takes their course.
 */
#define DOUBT         (10 * LP_NAT)
#define LOST          (16 * LP_NAT)

LP_NEAR int64_t lp_course_growth(const struct lp_course *c)
{
	return lp_sum(lp_shift(c->rate, LP_PHASE_BITS - LP_RATE_BITS),
		      lp_shift(c->drift, LP_PHASE_BITS - LP_DRIFT_BITS - 1));
}

LP_NEAR void lp_course_predict(struct lp_course *c)
{
	c->phase = lp_sum(c->phase, lp_course_growth(c));
	c->rate = lp_sum(c->rate, lp_shift(c->drift, LP_RATE_BITS - LP_DRIFT_BITS));
}

static uint32_t next_count(uint32_t number, uint32_t count)
{
	return count < lp_kinds[number].memory ? count + 1 : count;
}

static int64_t at_least_one(int64_t a)
{
	return a < 1 ? 1 : a;
}

/* Bank ----------------------------------------------------------------------------------------- */

/* 1 - gain, at least 1/16: what the noise of a pulse is of the square of a residual. */
static uint32_t noise_share(uint32_t gain)
{
	uint32_t rest = GAIN_ONE - (gain < GAIN_ONE ? gain : GAIN_ONE);

	return rest < GAIN_ONE / 16 ? GAIN_ONE / 16 : rest;
}

/* Mean square of the residuals of a prediction with this gain, by the noise alone. */
static int64_t by_noise(const struct lp_bank *b, uint32_t gain)
{
	return lp_ratio(b->noise, GAIN_ONE, noise_share(gain));
}

void lp_bank_init(struct lp_bank *b, int64_t noise, int64_t least, int64_t grid, int64_t drift)
{
	b->pulses = 0;
	b->noise = noise;
	b->usual = by_noise(b, b->gain);
	b->least = least;
	b->grid = grid;
	b->drift = drift;
	b->recent = noise;
	for (uint32_t i = 0; i < LP_MEMBERS; i++) {
		/* A straight line is the better guess, as long as nothing speaks against it. */
		b->members[i].loss = lp_kinds[i].has_drift ? lp_sum(noise, noise) : noise;
		b->members[i].expected = b->members[i].loss;
	}
}

LP_NEAR void lp_bank_predict(struct lp_bank *b)
{
	for (int i = 0; i < LP_MEMBERS; i++) {
		lp_course_predict(&b->members[i].course);
	}
}

LP_NEAR void lp_bank_shift(struct lp_bank *b, int64_t by)
{
	for (int i = 0; i < LP_MEMBERS; i++) {
		b->members[i].course.phase = lp_sum(b->members[i].course.phase, by);
	}
}

/* What to expect of a member's next pulse: as learned, or by the noise while it remembers few. */
static LP_NEAR void expect(struct lp_bank *b, uint32_t number)
{
	struct lp_member *m = &b->members[number];

	m->expected = m->loss;
	if (m->count < lp_kinds[number].memory) {
		int64_t square = by_noise(b, m->gains.phase);

		/* Two pulses say nothing of the drift. */
		square = lp_kinds[number].has_drift && m->count == 2 ? lp_sum(square, b->drift)
								     : square;
		m->expected = square > m->loss ? square : m->loss;
	}
}

/* Have a member follow a course of which ``count`` pulses are known. */
static void join(struct lp_bank *b, uint32_t number, const struct lp_course *course, uint32_t count)
{
	struct lp_member *m = &b->members[number];

	m->course = *course;
	if (!lp_kinds[number].has_drift) {
		m->course.drift = 0;
	}
	m->count = count < lp_kinds[number].memory ? count : lp_kinds[number].memory;
	m->gains = lp_gains_of(number, next_count(number, m->count));
	expect(b, number);
}

void lp_bank_start(struct lp_bank *b, const struct lp_course *course, uint32_t count)
{
	for (uint32_t i = 0; i < LP_MEMBERS; i++) {
		struct lp_member *m = &b->members[i];

		join(b, i, course, count);
		m->surprise = 0;
		m->weight = lp_kinds[i].has_drift ? 0 : ((uint32_t)1 << LP_WEIGHT_BITS) / 3;
	}
	b->last = 0;
	b->is_refused = false;
	b->memory = count;
	b->gain = b->members[LP_MEMBERS - 1].gains.phase;
	b->usual = by_noise(b, b->gain);
}

static int32_t residual_of(int64_t phase, int64_t predicted)
{
	int64_t residual = lp_sum(phase, -predicted) >> (LP_PHASE_BITS - 16);

	return residual > INT32_MAX    ? INT32_MAX
	       : residual < -INT32_MAX ? -INT32_MAX
				       : (int32_t)residual;
}

/* A residual's square, as a variance. */
static int64_t square_of(int32_t residual)
{
	return (int64_t)residual * residual >> (32 - LP_VARIANCE_BITS);
}

static int64_t least_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Times a small number, saturating: variances are below 2^62 / that. */
static int64_t times(int64_t variance, int32_t by)
{
	return variance > INT64_MAX / 128 ? INT64_MAX : variance * by;
}

static void learn(struct lp_bank *b, int32_t residual)
{
	int64_t square = square_of(residual);
	int64_t whole = b->usual;
	unsigned int shift = PRIOR_SHIFT;

	while (shift < LEARNED_SHIFT &&
	       (b->pulses + ((uint32_t)1 << PRIOR_SHIFT)) >> (shift + 1) != 0) {
		shift++;
	}
	b->recent += (least_of(square, times(whole, 25)) - b->recent) >> RECENT_SHIFT;
	/* While few pulses are known the noise hardly shows. */
	if (b->gain < GAIN_ONE - GAIN_ONE / 16) {
		int64_t seen = lp_scale(least_of(square, times(whole, 9)), noise_share(b->gain),
					LP_GAIN_BITS);

		b->noise += (seen - b->noise) >> (shift < NOISE_SHIFT ? shift : NOISE_SHIFT);
		b->noise = b->noise < b->least ? b->least : b->noise;
	}
	for (int i = 0; i < LP_MEMBERS; i++) {
		struct lp_member *m = &b->members[i];

		m->loss +=
			(least_of(square_of(m->residual), times(m->loss, MOST_SQUARE)) - m->loss) >>
			shift;
		m->loss = at_least_one(m->loss);
	}
	b->pulses += b->pulses < UINT32_MAX;
}

/*
 * Sum up by how much the last pulses missed each member's prediction, compared with what is usual
 * for it.
 */
static void be_surprised(struct lp_bank *b)
{
	int64_t least = INT64_MAX;
	unsigned int shift;
	uint32_t base;

	for (int i = 0; i < LP_MEMBERS; i++) {
		least = least_of(least, b->members[i].loss);
	}
	/* The steps can't be larger than all of the noise. */
	least = lp_sum(least, least_of(b->grid, 2 * b->noise));
	shift = lp_shift_to_12(least);
	base = (uint32_t)at_least_one(least >> shift);
	for (int i = 0; i < LP_MEMBERS; i++) {
		struct lp_member *m = &b->members[i];
		uint32_t most = MOST_SQUARE * base;
		uint32_t usual = lp_scaled(m->expected, shift, USUAL_SQUARE * base);
		int32_t more =
			(int32_t)lp_scaled(square_of(m->residual), shift, most) - (int32_t)usual;

		m->surprise += more * (LP_NAT / 2) / (int32_t)base - (m->surprise >> RECENT_SHIFT);
		m->surprise = m->surprise < -RELIEF ? -RELIEF : m->surprise;
	}
}

static int32_t least_surprise(const struct lp_bank *b)
{
	int32_t least = INT32_MAX;

	for (int i = 0; i < LP_MEMBERS; i++) {
		least = b->members[i].surprise < least ? b->members[i].surprise : least;
	}
	return least;
}

static void weigh(struct lp_bank *b)
{
	int32_t least = least_surprise(b);
	int32_t nats[LP_MEMBERS];
	int64_t squares[LP_MEMBERS];
	uint32_t weights[LP_MEMBERS];

	for (int i = 0; i < LP_MEMBERS; i++) {
		int32_t doubt = b->members[i].surprise - least - DOUBT;

		nats[i] = doubt > 0 ? doubt : 0;
		squares[i] = b->members[i].expected;
	}
	lp_nats(nats, squares, b->pulses + 16 < 512 ? b->pulses + 16 : 512);
	lp_weights(weights, nats);
	for (int i = 0; i < LP_MEMBERS; i++) {
		b->members[i].weight = weights[i];
	}
}

static int64_t part(int64_t difference, uint32_t weight)
{
	return lp_scale(difference, (int64_t)weight, LP_WEIGHT_BITS);
}

/* Put the members' courses, by their weights, around that of the one that has most. */
static void blend(struct lp_bank *b, struct lp_course *course)
{
	int best = 0;
	uint64_t gain = 0;
	uint32_t memory = 0;

	for (int i = 1; i < LP_MEMBERS; i++) {
		best = b->members[i].weight > b->members[best].weight ? i : best;
	}
	*course = b->members[best].course;
	for (int i = 0; i < LP_MEMBERS; i++) {
		const struct lp_member *m = &b->members[i];
		const struct lp_course *from = &b->members[best].course;

		if (m->weight == 0) {
			continue;
		}
		gain += (uint64_t)m->gains.phase * m->weight;
		memory += m->count * m->weight;
		if (i != best) {
			course->phase =
				lp_sum(course->phase,
				       part(lp_sum(m->course.phase, -from->phase), m->weight));
			course->rate = lp_sum(course->rate,
					      part(lp_sum(m->course.rate, -from->rate), m->weight));
			course->drift =
				lp_sum(course->drift,
				       part(lp_sum(m->course.drift, -from->drift), m->weight));
		}
	}
	b->gain = (uint32_t)(gain >> LP_WEIGHT_BITS);
	b->memory = memory >> LP_WEIGHT_BITS;
}

/* A slow member that lost its oscillator begins anew where the others are. */
static void catch_up(struct lp_bank *b, const struct lp_course *course)
{
	int32_t least = least_surprise(b);

	for (uint32_t i = 0; i < LP_MEMBERS; i++) {
		struct lp_member *m = &b->members[i];

		if (m->surprise - least > LOST && lp_kinds[i].memory > b->memory) {
			join(b, i, course,
			     m->count < b->memory ? m->count
			     : b->memory < 2      ? 2
						  : b->memory);
			m->surprise = least;
		}
	}
}

/*
 * Return whether a pulse is within a gate: that of any member, but no wider than that of the
 * prediction. After a refused pulse on the same side, the gate of the member with the shortest
 * memory takes the place of the prediction's. A rate that bends shows in two pulses: where the last
 * one, refused or not, was off to the same side by two sigma to twice the gate, this one may be off
 * by five times as much.
 */
static bool is_believed(const struct lp_bank *b, int32_t residual, int64_t excess)
{
	int64_t usual = b->usual;
	int64_t last = (residual < 0) == (b->last < 0) ? square_of(b->last) : 0;
	int64_t most = times(usual, 4 * GATE * GATE);
	int64_t reach = last >= times(usual, 4) && (last <= most || last <= NO_OUTLIER)
				? times(last, 25)
				: 0;

	if ((b->is_refused && last > 0) || b->memory < lp_kinds[0].memory) {
		usual = b->members[0].expected;
	}
	for (int i = 0; i < LP_MEMBERS; i++) {
		const struct lp_member *m = &b->members[i];
		int64_t square = square_of(m->residual);

		if (square <= reach ||
		    square <= times(lp_sum(least_of(m->expected, usual), excess), GATE * GATE)) {
			return true;
		}
	}
	return false;
}

static void follow(struct lp_bank *b, uint32_t number, int64_t excess)
{
	struct lp_member *m = &b->members[number];
	struct lp_gains gains = m->gains;
	int64_t residual = m->residual;

	if (excess > 0) {
		residual = lp_ratio(residual, b->noise, lp_sum(b->noise, excess));
	}
	/* A residual has 31 digits, a gain is at most 1.5. */
	m->course.phase = lp_sum(m->course.phase, lp_shift(residual * gains.phase,
							   LP_PHASE_BITS - 16 - LP_GAIN_BITS));
	m->course.rate = lp_sum(m->course.rate,
				lp_shift(residual * gains.rate, LP_RATE_BITS - 16 - LP_GAIN_BITS));
	m->course.drift = lp_sum(m->course.drift, lp_shift(residual * gains.drift,
							   LP_DRIFT_BITS - 16 - LP_GAIN_BITS));
	m->count = next_count(number, m->count);
	/* Those of a full memory stay. */
	if (m->count < lp_kinds[number].memory) {
		m->gains = lp_gains_of(number, m->count + 1);
	}
	expect(b, number);
}

bool lp_bank_update(struct lp_bank *b, struct lp_course *course, int64_t phase, int64_t excess)
{
	int32_t residual = residual_of(phase, course->phase);

	for (int i = 0; i < LP_MEMBERS; i++) {
		struct lp_member *m = &b->members[i];

		m->residual = residual_of(phase, m->course.phase);
	}
	b->is_refused = !is_believed(b, residual, excess);
	b->last = residual;
	if (b->is_refused) {
		return false;
	}
	if (excess == 0) {
		learn(b, residual);
		be_surprised(b);
	}
	for (uint32_t i = 0; i < LP_MEMBERS; i++) {
		follow(b, i, excess);
	}
	weigh(b);
	blend(b, course);
	b->usual = by_noise(b, b->gain);
	catch_up(b, course);
	return true;
}

int64_t lp_bank_square(const struct lp_bank *b)
{
	return b->usual > b->recent ? b->usual : b->recent;
}

int64_t lp_bank_variance(const struct lp_bank *b)
{
	return lp_scale(lp_bank_square(b), b->gain, LP_GAIN_BITS);
}
