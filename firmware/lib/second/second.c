/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "second/second.h"

#include <string.h>

#define DAY 86400

/* A sentence belongs to the pulse before it if it comes within this time of it. */
#define EARLIEST_MS      10
#define LATEST_MS        900
/* So far may a pulse be from a whole second after the last. */
#define GRID_MS          20
/* Longer gaps are not counted over: an oscillator of 50 ppm is off by 20 ms after 400 s. */
#define GAP_MS           300000
/*
 * Sentences in a row: to believe a second, to believe a leap, to believe that the known second was
 * wrong.
 */
#define TO_KNOW          3
#define TO_LEAP          3
#define TO_CORRECT       10
/* Without a second witness. */
#define TO_CORRECT_ALONE 600
/* A witness that was silent for so long is none. */
#define WITNESS_MS       3500
/* More leap seconds between two looks are none. */
#define LEAPS_MOST       3
/*
 * GPS: its weeks count from this POSIX time, and TAI is so far ahead. The satellites send the week
 * modulo 1024.
 */
#define GPS_EPOCH        315964800
#define GPS_LESS_TAI     19
#define WEEK_S           604800
#define WRAP_S           (1024LL * WEEK_S)
/* After so long without: no PPS, no NMEA, no fix. */
#define PPS_MS           1500
#define NMEA_MS          3500
/* Off-grid pulses in a row that make a new grid. */
#define NEW_GRID         4

void lp_second_init(struct lp_second *s, int32_t tai_utc)
{
	memset(s, 0, sizeof(*s));
	s->tai_utc = tai_utc;
	lp_second_expect(s, LP_SECOND_SURE_UNTIL, LP_SECOND_NOT_BEFORE);
}

void lp_second_expect(struct lp_second *s, int64_t sure_until, int64_t not_before)
{
	s->sure_until = sure_until;
	s->not_before = not_before;
}

/* Take a moment for the one within 1024 weeks from the earliest that can be. */
static int64_t unwrapped(const struct lp_second *s, int64_t posix)
{
	int64_t since = (posix - s->not_before) % WRAP_S;

	return s->not_before + (since < 0 ? since + WRAP_S : since);
}

/* The next end of June or December, from which on there may have been a leap second. */
static int64_t next_end(int64_t posix)
{
	struct lp_nmea_time end = {.year = 1970, .month = 1, .day = 1};

	end.year = (uint16_t)(1970 + posix / (365 * DAY + DAY / 4));
	while (lp_nmea_posix(&end) <= posix) {
		end.year = (uint16_t)(end.year + (end.month == 7));
		end.month = end.month == 7 ? 1 : 7;
	}
	return lp_nmea_posix(&end);
}

static void be_sure(struct lp_second *s, int64_t posix)
{
	int64_t end = next_end(posix);

	s->is_sure = true;
	s->sure_until = s->sure_until == INT64_MAX || s->sure_until < end ? end : s->sure_until;
}

void lp_second_pulse(struct lp_second *s, const struct lp_ubx_pulse *pulse, uint64_t ms)
{
	s->reported = *pulse;
	s->reported_ms = ms;
	s->is_reported = true;
}

/* Take what TIM-TP reported of the pulse that has come now. */
static void hear(struct lp_second *s, uint64_t ms)
{
	int64_t second = GPS_EPOCH + (int64_t)s->reported.week * WEEK_S + s->reported.tow_ms / 1000;

	s->has_opinion = s->is_reported && ms >= s->reported_ms && ms - s->reported_ms <= 1000 &&
			 s->reported.tow_ms % 1000 == 0 &&
			 (s->reported.is_gps || s->reported.is_utc);
	s->is_reported = false;
	if (s->has_opinion) {
		s->is_gps = s->reported.is_gps;
		s->opinion = (uint64_t)(unwrapped(s, second) + (s->is_gps ? GPS_LESS_TAI : 0));
		s->opinion_ms = ms;
	}
}

/*
 * Return the second of TAI that TIM-TP named, as far as UTC is wanted by the TAI - UTC that is
 * believed.
 */
static uint64_t named_tai(const struct lp_second *s)
{
	return s->is_gps ? s->opinion : s->opinion + (uint64_t)s->tai_utc;
}

static void forget(struct lp_second *s)
{
	s->is_known = false;
	s->agreed = 0;
	s->contradicted = 0;
	s->has_named = false;
	s->is_leap = false;
	s->is_sure = false;
	s->month = 0;
	s->later = 0;
}

bool lp_second_edge(struct lp_second *s, uint64_t ms)
{
	uint64_t since = ms - s->edge_ms;
	uint64_t seconds = (since + 500) / 1000;
	int64_t off = (int64_t)(since - seconds * 1000);

	if (!s->has_edge || since > GAP_MS) {
		forget(s);
	} else if (seconds == 0 || off > GRID_MS || off < -GRID_MS) {
		s->spurious++;
		if (++s->off_grid < NEW_GRID) {
			return false;
		}
		forget(s);
	} else {
		s->tai += seconds;
		s->candidate += seconds;
	}
	s->off_grid = 0;
	s->has_edge = true;
	s->edge_ms = ms;
	hear(s, ms);
	return true;
}

/*
 * Return whether TIM-TP counts in GPS time, which shows how many leap seconds UTC has had that TAI
 * - UTC lacks.
 */
static bool leaps_of(const struct lp_second *s, int64_t posix, int64_t *leaps)
{
	*leaps = (int64_t)s->opinion - posix - s->tai_utc;
	return s->has_opinion && s->is_gps && *leaps >= 0 && *leaps <= LEAPS_MOST;
}

/* A first guess, then as many sentences as TO_KNOW that say what the pulses count. */
static void learn(struct lp_second *s, int64_t posix)
{
	int64_t leaps;
	bool has_leaps = leaps_of(s, posix, &leaps);
	uint64_t tai;

	if (has_leaps && leaps > 0 && posix < s->sure_until) {
		has_leaps = false; /* There can have been none: one of the two is wrong. */
	}
	tai = (uint64_t)(posix + s->tai_utc + (has_leaps ? leaps : 0));
	s->agreed = s->agreed > 0 && tai == s->candidate ? s->agreed + 1 : 1;
	s->candidate = tai;
	if (s->agreed >= TO_KNOW) {
		s->is_known = true;
		s->tai = tai;
		s->contradicted = 0;
		s->tai_utc += has_leaps ? (int32_t)leaps : 0;
		if (has_leaps || posix < s->sure_until) {
			be_sure(s, posix);
		}
	}
}

/*
 * Leap seconds come at the end of a month: it may be one within the first minute of a month, or
 * after an outage over it.
 */
static bool may_be_leap(const struct lp_second *s, const struct lp_nmea_time *time,
			int64_t difference)
{
	bool is_month_new = s->month != 0 && s->month != 12 * time->year + time->month;

	return (difference == -1 || difference == 1) && time->has_date &&
	       ((time->day == 1 && time->hour == 0 && time->minute == 0) || is_month_new);
}

static void contradict(struct lp_second *s, const struct lp_nmea_time *time, int64_t difference)
{
	bool is_leap = may_be_leap(s, time, difference);
	bool has_witness = s->opinion_ms != 0 && s->edge_ms - s->opinion_ms <= WITNESS_MS;
	bool is_against =
		s->has_opinion && named_tai(s) == (uint64_t)((int64_t)s->tai + difference);

	s->contradicted =
		s->contradicted > 0 && difference == s->contradiction ? s->contradicted + 1 : 1;
	s->contradiction = difference;
	if (is_leap && s->contradicted >= TO_LEAP) {
		s->tai_utc -= (int32_t)difference;
		s->contradicted = 0;
		s->is_leap = false;
	} else if (s->contradicted >= (has_witness ? TO_CORRECT : TO_CORRECT_ALONE) &&
		   (is_against || !has_witness)) {
		s->tai = (uint64_t)((int64_t)s->tai + difference);
		s->corrections++;
		s->contradicted = 0;
	}
	s->wrong += !is_leap;
}

/*
 * A sentence agrees. See whether TAI is right as well, where TIM-TP counts in GPS time, which has
 * no leap seconds.
 */
static void agree(struct lp_second *s, const struct lp_nmea_time *time, int64_t posix)
{
	int64_t leaps;

	s->contradicted = 0;
	if (!time->has_date) {
		return;
	}
	s->month = 12 * time->year + time->month;
	if (!leaps_of(s, posix, &leaps)) {
		s->later = 0;
	} else if (leaps == 0) {
		s->later = 0;
		s->is_sure = true;
	} else if (++s->later >= TO_CORRECT && !s->is_sure) {
		s->tai += (uint64_t)leaps;
		s->tai_utc += (int32_t)leaps;
		s->corrections++;
		s->later = 0;
		s->is_sure = true;
	}
	if (s->is_sure && s->later == 0) {
		be_sure(s, posix);
	}
}

static void check(struct lp_second *s, const struct lp_nmea_time *time, int64_t posix)
{
	int64_t difference;

	if (time->has_date) {
		difference = posix + s->tai_utc - (int64_t)s->tai;
	} else {
		/* A time of day says it to within a day. */
		int64_t day = time->hour * 3600 + time->minute * 60 + time->second + s->tai_utc -
			      (int64_t)(s->tai % DAY);

		difference = (day % DAY + DAY + DAY / 2) % DAY - DAY / 2;
	}
	if (difference == 0) {
		agree(s, time, posix);
	} else {
		contradict(s, time, difference);
	}
}

/*
 * Return the date and time of day in POSIX time, corrected where the receiver's count of weeks has
 * wrapped.
 */
static int64_t dated(struct lp_second *s, const struct lp_nmea_time *time)
{
	int64_t given = time->has_date ? lp_nmea_posix(time) : 0;
	int64_t posix = time->has_date ? unwrapped(s, given) : 0;

	s->rollovers += posix != given;
	return posix;
}

void lp_second_sentence(struct lp_second *s, const struct lp_nmea_time *time, uint64_t ms)
{
	uint64_t since = ms - s->edge_ms;

	s->has_sentence = true;
	s->sentence_ms = ms;
	/*
	 * ZDA doesn't say whether there is a fix: the others of the same receiver do, if it sends
	 * them.
	 */
	s->is_vouched = s->is_vouched || time->kind != LP_NMEA_ZDA;
	if (time->has_fix && (time->kind != LP_NMEA_ZDA || !s->is_vouched)) {
		s->has_fix = true;
		s->fix_ms = ms;
	}
	if (!time->has_fix || !s->has_fix || ms - s->fix_ms > NMEA_MS) {
		return;
	}
	if (!s->has_edge || since < EARLIEST_MS || since > LATEST_MS) {
		s->unassigned++;
		return;
	}
	/* One vote a second; without a date, none before the second is known. */
	if ((s->has_named && s->named == s->edge_ms) || (!s->is_known && !time->has_date)) {
		return;
	}
	s->sentences++;
	s->is_leap = s->is_leap || time->second == 60;
	if (s->is_known) {
		check(s, time, dated(s, time));
	} else {
		learn(s, dated(s, time));
	}
	s->has_named = true;
	s->named = s->edge_ms;
}

uint32_t lp_second_faults(const struct lp_second *s, uint64_t ms)
{
	bool is_heard = s->has_sentence && ms - s->sentence_ms <= NMEA_MS;
	bool is_fixed = s->has_fix && ms - s->fix_ms <= NMEA_MS;
	uint32_t faults = 0;

	faults |= !s->has_edge || ms - s->edge_ms > PPS_MS ? LP_SECOND_NO_PPS : 0;
	faults |= !is_heard ? LP_SECOND_NO_NMEA : 0;
	faults |= s->contradicted > 0 || s->later > 0 ? LP_SECOND_WRONG : 0;
	/* Who hears nothing can't tell. */
	faults |= is_heard && !is_fixed ? LP_SECOND_NO_FIX : 0;
	faults |= !s->is_known ? LP_SECOND_UNKNOWN : 0;
	faults |= s->is_leap ? LP_SECOND_LEAP : 0;
	faults |= s->is_known && !s->is_sure ? LP_SECOND_UNSURE : 0;
	return faults;
}
