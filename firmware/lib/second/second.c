/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

#include "second/second.h"

#include <string.h>

#define DAY 86400

/* A sentence belongs to the pulse before it if it comes within this time of it. */
#define EARLIEST_MS 10
#define LATEST_MS   900
/* So far may a pulse be from a whole second after the last. */
#define GRID_MS     20
/* Longer gaps are not counted over: an oscillator of 50 ppm is off by 20 ms after 400 s. */
#define GAP_MS      300000
/* Sentences in a row: to believe a second, to believe a leap, to believe that the known second was wrong. */
#define TO_KNOW     3
#define TO_LEAP     3
#define TO_CORRECT  10
/* After so long without: no PPS, no NMEA, no fix. */
#define PPS_MS      1500
#define NMEA_MS     3500
/* Off-grid pulses in a row that make a new grid. */
#define NEW_GRID    4

void lp_second_init(struct lp_second *s, int32_t tai_utc)
{
	memset(s, 0, sizeof(*s));
	s->tai_utc = tai_utc;
}

static void forget(struct lp_second *s)
{
	s->is_known = false;
	s->agreed = 0;
	s->contradicted = 0;
	s->has_named = false;
	s->is_leap = false;
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
	return true;
}

/* A first guess, then as many sentences as TO_KNOW that say what the pulses count. */
static void learn(struct lp_second *s, uint64_t tai)
{
	s->agreed = s->agreed > 0 && tai == s->candidate ? s->agreed + 1 : 1;
	s->candidate = tai;
	if (s->agreed >= TO_KNOW) {
		s->is_known = true;
		s->tai = tai;
		s->contradicted = 0;
	}
}

/* Leap seconds come at the end of a month; a change that shows within the first minute of one is a leap. */
static bool is_after_month_end(const struct lp_nmea_time *time)
{
	return time->day == 1 && time->hour == 0 && time->minute == 0;
}

static void contradict(struct lp_second *s, const struct lp_nmea_time *time, int64_t difference)
{
	bool is_leap = (difference == -1 || difference == 1) && time->has_date && is_after_month_end(time);

	s->contradicted = s->contradicted > 0 && difference == s->contradiction ? s->contradicted + 1 : 1;
	s->contradiction = difference;
	if (is_leap && s->contradicted >= TO_LEAP) {
		s->tai_utc -= (int32_t)difference;
		s->contradicted = 0;
		s->is_leap = false;
	} else if (s->contradicted >= TO_CORRECT) {
		s->tai = (uint64_t)((int64_t)s->tai + difference);
		s->corrections++;
		s->contradicted = 0;
	}
	s->wrong += !is_leap;
}

static void check(struct lp_second *s, const struct lp_nmea_time *time)
{
	int64_t difference;

	if (time->has_date) {
		difference = lp_nmea_posix(time) + s->tai_utc - (int64_t)s->tai;
	} else {
		/* A time of day says it to within a day. */
		int64_t day = time->hour * 3600 + time->minute * 60 + time->second + s->tai_utc - (int64_t)(s->tai % DAY);

		difference = (day % DAY + DAY + DAY / 2) % DAY - DAY / 2;
	}
	if (difference == 0) {
		s->contradicted = 0;
	} else {
		contradict(s, time, difference);
	}
}

void lp_second_sentence(struct lp_second *s, const struct lp_nmea_time *time, uint64_t ms)
{
	uint64_t since = ms - s->edge_ms;

	s->has_sentence = true;
	s->sentence_ms = ms;
	/* ZDA doesn't say whether there is a fix: the others of the same receiver do, if it sends them. */
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
		check(s, time);
	} else {
		learn(s, (uint64_t)(lp_nmea_posix(time) + s->tai_utc));
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
	faults |= s->contradicted > 0 ? LP_SECOND_WRONG : 0;
	/* Who hears nothing can't tell. */
	faults |= is_heard && !is_fixed ? LP_SECOND_NO_FIX : 0;
	faults |= !s->is_known ? LP_SECOND_UNKNOWN : 0;
	faults |= s->is_leap ? LP_SECOND_LEAP : 0;
	return faults;
}
