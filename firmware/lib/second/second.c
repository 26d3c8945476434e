/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "second/second.h"

#include <string.h>

#define DAY 86400

/* An epoch belongs to the pulse before it if it begins within this time of it. */
#define EARLIEST_MS      10
#define LATEST_MS        800
/* A line that is silent for so long is idle: 10 octets at 4800 baud. */
#define IDLE_MS          20
/* So long may a burst of sentences last, and so long after its first may those of an epoch come. */
#define BURST_MS         1000
#define EPOCH_MS         2000
/* After so long without a pulse nobody knows any more when the next one is due. */
#define NO_PULSE_MS      10000
/* So far may a pulse be from a whole second after the last. */
#define GRID_MS          20
/* Longer gaps are not counted over: an oscillator of 50 ppm is off by 20 ms after 400 s. */
#define GAP_MS           300000
/*
 * Pulses in a row: to believe a second, to keep it when one contradicts, to believe a leap, to
 * believe that the known second was wrong.
 */
#define TO_KNOW          3
#define TO_KEEP          6
/* The same, once sentences have contradicted each other. */
#define TO_KNOW_AGAIN    10
#define TO_LEAP          3
/*
 * So many have to agree until no fault says so any more, where one contradicts before TO_KEEP have
 * agreed since the last, or a second was named among contradictions; and where the pulse of a
 * sentence isn't clear as often.
 */
#define TO_SETTLE        60
#define TO_SETTLE_AGAIN  10
#define TO_CORRECT       10
/* Without a second witness. */
#define TO_CORRECT_ALONE 600
/* A witness that was silent for so long is none. */
#define WITNESS_MS       3500
/* Messages in a row that say another TAI - UTC. */
#define TO_TELL          3
/* Seconds before the end of a half year within which a sentence has seen it. */
#define LEAP_NEAR        5
/* A month before, satellites have announced one. */
#define LEAP_SOON        (30 * DAY)
/* Seconds from there on within which sentences show a leap second. */
#define LEAP_SHOWS       60
/* So far may a receiver be off with the moment of a leap second (s). */
#define LEAP_ROUND       3
/*
 * GPS: its weeks count from this POSIX time, and TAI is so far ahead. The satellites send the week
 * modulo 1024.
 */
#define GPS_EPOCH        315964800
#define GPS_LESS_TAI     19
#define WEEK_S           604800
#define WRAP_S           (1024LL * WEEK_S)
/* Oftener no receiver's count of weeks has wrapped: the date is nonsense. */
#define WRAPS_MOST       2
/* After so long without: no PPS, no NMEA, no fix; none that reports a fix. */
#define PPS_MS           1500
#define NMEA_MS          3500
#define VOUCH_MS         10000
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

/* The next end of a quarter at which there may be a leap second: June or December, or any. */
static int64_t next_end(int64_t posix, int quarters)
{
	struct lp_nmea_time end = {.year = 1970, .month = 1, .day = 1};

	end.year = (uint16_t)(1970 + posix / (365 * DAY + DAY / 4));
	while (lp_nmea_posix(&end) <= posix) {
		end.month = (uint8_t)(end.month + 3 * quarters);
		end.year = (uint16_t)(end.year + end.month / 12);
		end.month %= 12;
	}
	return lp_nmea_posix(&end);
}

static int64_t posix_of(const struct lp_second *s)
{
	return (int64_t)s->tai - s->tai_utc;
}

static void be_sure(struct lp_second *s, int64_t posix)
{
	int64_t end = next_end(posix, 2);

	s->is_sure = true;
	if (s->leap == 0 && (s->sure_until == INT64_MAX || s->sure_until < end)) {
		s->sure_until = end;
	}
}

/* Do what was announced. The second 60 is the last with the TAI - UTC of before. */
static void pass_leap(struct lp_second *s)
{
	if (s->leap != 0 && (int64_t)s->tai >= s->sure_until + s->tai_utc + s->leap) {
		s->leap_tai = (uint64_t)(s->sure_until + s->tai_utc + s->leap);
		s->tai_utc += s->leap;
		s->leap = 0;
		s->is_leap = false;
		be_sure(s, posix_of(s));
	}
}

/* About a leap second receivers show all manner of seconds. */
static bool is_at_leap(const struct lp_second *s)
{
	return (s->leap != 0 && (int64_t)s->tai >= s->sure_until + s->tai_utc - 1) ||
	       (s->leap_tai != 0 && s->tai <= s->leap_tai + 2);
}

/*
 * TAI - UTC is another. Where sentences contradict by as much, UTC changed, and TAI is right;
 * where they agree, TAI was counted from a wrong difference.
 */
static void set_tai_utc(struct lp_second *s, int32_t tai_utc)
{
	int32_t by = tai_utc - s->tai_utc;
	bool is_utc = s->contradicted > 0 && s->contradiction == -by;

	if (by != 0 && s->is_known && !is_utc) {
		s->tai = (uint64_t)((int64_t)s->tai + by);
		s->corrections++;
	}
	if (by != 0) {
		s->agreed = s->is_known ? s->agreed : 0;
		s->contradicted = 0;
		s->is_leap = false;
		s->other = 0;
	}
	s->tai_utc = tai_utc;
	s->leap_reports = 0;
}

void lp_second_announce(struct lp_second *s, int32_t tai_utc, int64_t until, int8_t leap)
{
	set_tai_utc(s, tai_utc);
	s->sure_until = until;
	s->leap = leap;
	s->is_leap_listed = leap != 0;
	s->is_sure = s->is_known && posix_of(s) < until;
	if (s->is_known) {
		pass_leap(s);
	}
}

bool lp_second_wants_leap(const struct lp_second *s)
{
	return s->is_known && (!s->is_sure || s->sure_until - posix_of(s) < LEAP_SOON);
}

/* Take the event that a receiver announces, or withdraws. */
static void expect_leap(struct lp_second *s, const struct lp_ubx_leap *leap)
{
	int64_t at = posix_of(s) + leap->in_s;
	int64_t end = next_end(at - DAY, 1);
	bool is_coming = leap->in_s > LEAP_ROUND && (leap->change == 1 || leap->change == -1) &&
			 at - end <= LEAP_ROUND && end - at <= LEAP_ROUND;

	if (is_coming) {
		s->sure_until = end;
		s->leap = leap->change;
		s->is_leap_listed = false;
	} else if (leap->in_s > LEAP_ROUND && !s->is_leap_listed) {
		s->leap = 0;
	}
}

void lp_second_leap(struct lp_second *s, const struct lp_ubx_leap *leap)
{
	int32_t tai_utc = leap->current + GPS_LESS_TAI;

	if (!s->is_known || is_at_leap(s)) {
		return;
	}
	if (leap->has_current && tai_utc != s->tai_utc) {
		s->leap_reports = s->leap_report == leap->current ? s->leap_reports + 1 : 1;
		s->leap_report = leap->current;
		/* Until then there can be no other: one of the two is wrong. */
		if (s->leap_reports < TO_TELL || posix_of(s) < s->sure_until) {
			return;
		}
		set_tai_utc(s, tai_utc);
	}
	if (leap->has_current) {
		s->leap_reports = 0;
		be_sure(s, posix_of(s));
	}
	if (leap->has_event) {
		expect_leap(s, leap);
	}
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
 * Return how many seconds later than ``tai`` TIM-TP names the last pulse, in UTC by the TAI - UTC
 * that is believed. One that is a second behind is about the pulse before, as a busy line has it.
 */
static int64_t dissent(const struct lp_second *s, uint64_t tai)
{
	int64_t later = (int64_t)(s->opinion - tai) + (s->is_gps ? 0 : s->tai_utc);

	return s->has_opinion && later != -1 ? later : 0;
}

static void forget(struct lp_second *s)
{
	s->is_known = false;
	s->agreed = 0;
	s->agreed_posix = 0;
	s->contradicted = 0;
	s->mixed_ms = 0;
	s->is_leap = false;
	s->is_sure = false;
	s->other = 0;
	s->leap_reports = 0;
}

/* A sentence doesn't fit: doubt the second, unless enough have agreed since the last such one. */
static void unsettle(struct lp_second *s, uint32_t pulses)
{
	if (s->steady < TO_KEEP && s->unsettled < pulses) {
		s->unsettled = pulses;
	}
	s->steady = 0;
}

/* Other pulses: of what was said of the last ones nothing holds. */
static void begin_anew(struct lp_second *s)
{
	forget(s);
	s->is_doubted = false;
	s->unsettled = 0;
	s->steady = 0;
	s->epoch.is_open = false;
}

bool lp_second_edge(struct lp_second *s, uint64_t ms)
{
	uint64_t since = ms - s->edge_ms;
	uint64_t seconds = (since + 500) / 1000;
	int64_t off = (int64_t)(since - seconds * 1000);

	if (!s->has_edge || since > GAP_MS) {
		begin_anew(s);
	} else if (seconds == 0 || off > GRID_MS || off < -GRID_MS) {
		s->spurious++;
		if (++s->off_grid < NEW_GRID) {
			return false;
		}
		begin_anew(s);
	} else {
		s->tai += seconds;
		s->candidate += seconds;
		if (s->is_known) {
			pass_leap(s);
		}
	}
	s->off_grid = 0;
	s->has_edge = true;
	s->edge_ms = ms;
	hear(s, ms);
	return true;
}

void lp_second_heard(struct lp_second *s, uint64_t ms)
{
	if (s->heard_ms == 0 || ms > s->heard_ms + IDLE_MS) {
		s->burst_ms = ms;
	}
	s->heard_ms = ms > s->heard_ms ? ms : s->heard_ms;
}

/* Return the pulse before a moment, or where it should have been. */
static uint64_t edge_before(const struct lp_second *s, uint64_t ms)
{
	int64_t since = (int64_t)(ms - s->edge_ms);

	return s->edge_ms + (uint64_t)((since - (since < 0 ? 999 : 0)) / 1000 * 1000);
}

/* Find the pulse of an epoch that begins with this sentence. */
static void open_epoch(struct lp_second *s, uint64_t ms)
{
	struct lp_second_epoch *e = &s->epoch;
	uint64_t from = s->burst_ms < ms ? s->burst_ms : ms;
	bool is_behind = e->is_open && s->sentence_ms > from && s->sentence_ms < ms;
	uint64_t edge_ms;

	if (is_behind) {
		/* It began after a sentence of the one before, and no later than this. */
		edge_ms = edge_before(s, ms);
		e->is_clear = edge_before(s, s->sentence_ms) == edge_ms;
		from = ms;
	} else {
		edge_ms = edge_before(s, from);
		e->is_clear = ms - from <= BURST_MS;
	}
	e->is_clear = e->is_clear && from - edge_ms >= EARLIEST_MS && from - edge_ms <= LATEST_MS;
	e->is_open = true;
	e->edge_ms = edge_ms;
	e->ms = ms;
	e->kinds = 0;
}

/*
 * Return whether the pulse of a sentence is clear: ``ago`` is how many seconds before the last that
 * was.
 */
static bool place(struct lp_second *s, const struct lp_nmea_time *time, uint64_t ms, int64_t *ago)
{
	struct lp_second_epoch *e = &s->epoch;
	uint32_t of_day = time->hour * 3600u + time->minute * 60u + time->second;
	uint32_t kind = 1u << time->kind;
	bool is_same = e->is_open && e->of_day == of_day && ms - e->ms < EPOCH_MS;

	bool is_burst = s->burst_ms <= e->ms;

	/* After a pause another receiver may speak. */
	if (is_same && !is_burst) {
		is_same = memcmp(e->talker, time->talker, sizeof(e->talker)) == 0;
	}
	/* After the next pulse, a kind that came already, or a pause, begins another epoch. */
	if (is_same && edge_before(s, ms) != edge_before(s, e->ms)) {
		is_same = is_burst && (e->kinds & kind) == 0;
	}
	if (!is_same) {
		open_epoch(s, ms);
		memcpy(e->talker, time->talker, sizeof(e->talker));
	}
	e->of_day = of_day;
	e->kinds |= kind;
	*ago = (int64_t)(s->edge_ms - e->edge_ms) / 1000;
	return e->is_clear;
}

/* A first guess, then as many pulses as TO_KNOW whose sentences say what the pulses count. */
static void learn(struct lp_second *s, const struct lp_nmea_time *time, int64_t posix, int64_t ago)
{
	uint64_t tai = (uint64_t)(posix + s->tai_utc + ago);

	if (s->agreed == 0 || tai != s->candidate) {
		s->is_doubted = s->is_doubted || s->agreed > 0;
		s->unsettled = s->agreed > 0 ? TO_SETTLE : s->unsettled;
		s->agreed = 1;
	} else if (s->agreed_ms != s->epoch.edge_ms) {
		s->agreed++;
	}
	s->agreed_ms = s->epoch.edge_ms;
	s->candidate = tai;
	if (s->agreed < (s->is_doubted ? TO_KNOW_AGAIN : TO_KNOW)) {
		return;
	}
	s->is_known = true;
	s->is_doubted = false;
	s->tai = tai;
	s->contradicted = 0;
	if (time->second != 60 && s->leap != 0 && posix >= s->sure_until) {
		/* It was while nobody looked. */
		s->tai = (uint64_t)((int64_t)tai + s->leap);
		pass_leap(s);
	}
	if (posix < s->sure_until || (s->has_opinion && s->is_gps && s->opinion == s->tai)) {
		be_sure(s, posix);
	}
}

/*
 * Whether sentences go over the end of a half year in a way that a leap second explains, which
 * nobody has announced: it is reported. TAI less UTC changes where a receiver or a host says so.
 */
static bool may_be_leap(const struct lp_second *s, int64_t posix, int64_t difference)
{
	int64_t end = next_end(s->agreed_posix - 1, 2);

	return (difference == -1 || difference == 1) && s->agreed_posix != 0 &&
	       end >= s->sure_until && s->agreed_posix >= end - LEAP_NEAR && posix >= end - 1 &&
	       posix < end + LEAP_SHOWS;
}

static void contradict(struct lp_second *s, int64_t posix, int64_t difference)
{
	bool is_leap = may_be_leap(s, posix, difference);
	bool has_witness = s->opinion_ms != 0 && s->edge_ms - s->opinion_ms <= WITNESS_MS;
	bool is_against = s->has_opinion && dissent(s, s->tai) == difference;
	uint32_t enough = has_witness ? TO_CORRECT : TO_CORRECT_ALONE;

	s->wrong += !is_leap;
	if (!is_leap && s->contradicted == 0) {
		unsettle(s, TO_SETTLE);
	}
	if (s->agreed_ms == s->epoch.edge_ms) {
		s->mixed_ms = s->sentence_ms;
	}
	if (!is_leap && s->agreed < TO_KEEP) {
		forget(s);
		s->is_doubted = true;
		s->unsettled = TO_SETTLE;
		s->contradicted = 1;
		s->contradicted_ms = s->epoch.edge_ms;
		return;
	}
	if (s->contradicted == 0 || difference != s->contradiction) {
		s->contradicted = 1;
	} else if (s->contradicted_ms != s->epoch.edge_ms) {
		s->contradicted++;
	}
	s->contradicted_ms = s->epoch.edge_ms;
	s->contradiction = difference;
	s->is_leap = s->is_leap || (is_leap && s->contradicted >= TO_LEAP);
	if (s->contradicted >= enough && difference != -1 && !s->is_leap &&
	    (is_against || !has_witness)) {
		s->tai = (uint64_t)((int64_t)s->tai + difference);
		s->corrections++;
		s->contradicted = 0;
		s->unsettled = 0;
		s->steady = TO_KEEP;
	}
}

/* A sentence agrees. See whether TIM-TP does, too. */
static void agree(struct lp_second *s, const struct lp_nmea_time *time, int64_t posix)
{
	if (s->contradicted > 0 && s->contradicted_ms == s->epoch.edge_ms) {
		s->mixed_ms = s->sentence_ms;
		return;
	}
	s->contradicted = 0;
	s->unsettled -= s->unsettled > 0 && s->agreed_ms != s->epoch.edge_ms;
	s->steady += s->steady < TO_KEEP && s->agreed_ms != s->epoch.edge_ms;
	s->agreed += s->agreed < TO_KEEP && s->agreed_ms != s->epoch.edge_ms;
	s->agreed_ms = s->epoch.edge_ms;
	if (!time->has_date) {
		return;
	}
	s->agreed_posix = posix - (time->second == 60);
	s->other = dissent(s, s->tai) != 0 ? s->other + 1 : 0;
	s->is_sure = s->is_sure || (s->has_opinion && s->is_gps && s->opinion == s->tai);
	if (s->is_sure && s->other == 0) {
		/* Not while it may show that there was one. */
		be_sure(s, posix - LEAP_SHOWS);
	}
}

static void check(struct lp_second *s, const struct lp_nmea_time *time, int64_t posix, int64_t ago)
{
	int64_t named = posix + s->tai_utc + ago;
	int64_t difference = named - (int64_t)s->tai;

	if (!time->has_date) {
		/* A time of day says it to within a day. */
		difference = (difference % DAY + DAY + DAY / 2) % DAY - DAY / 2;
	}
	if (difference == 0) {
		agree(s, time, posix);
	} else {
		contradict(s, posix, difference);
	}
}

/*
 * Return the date and time of day in POSIX time, corrected where the receiver's count of weeks has
 * wrapped; without a date, that of the day.
 */
static int64_t dated(struct lp_second *s, const struct lp_nmea_time *time)
{
	int64_t given = lp_nmea_posix(time);
	int64_t posix = unwrapped(s, given);

	if (!time->has_date) {
		return time->hour * 3600 + time->minute * 60 + time->second;
	}
	s->rollovers += posix != given;
	return posix;
}

/* Whether a date may be that of a receiver whose count of weeks has wrapped, or is right. */
static bool is_date(const struct lp_second *s, const struct lp_nmea_time *time)
{
	int64_t given = time->has_date ? lp_nmea_posix(time) : s->not_before;
	int64_t off = given - unwrapped(s, given);

	return off >= -WRAPS_MOST * WRAP_S && off <= WRAPS_MOST * WRAP_S;
}

/*
 * Take what a sentence says of the fix; return whether it, or the others of its receiver, vouch for
 * the time. ZDA doesn't say: it is believed where no other does.
 */
static bool is_fixed(struct lp_second *s, const struct lp_nmea_time *time, uint64_t ms)
{
	bool is_reported = s->vouched_ms != 0 && ms - s->vouched_ms <= VOUCH_MS;

	if (time->kind != LP_NMEA_ZDA) {
		s->vouched_ms = ms;
		s->is_vouched = time->has_fix;
	}
	if (time->kind == LP_NMEA_ZDA ? time->has_fix && !is_reported : time->has_fix) {
		s->has_fix = true;
		s->fix_ms = ms;
		return true;
	}
	return time->has_fix && s->is_vouched && s->has_fix && ms - s->fix_ms <= NMEA_MS;
}

void lp_second_sentence(struct lp_second *s, const struct lp_nmea_time *time, uint64_t ms)
{
	bool has_fix = is_fixed(s, time, ms);
	bool has_pulse, is_clear;
	int64_t ago;

	lp_second_heard(s, ms);
	s->has_sentence = true;
	if (!has_fix) {
		s->sentence_ms = ms;
		return;
	}
	has_pulse = s->has_edge && (int64_t)(ms - s->edge_ms) < NO_PULSE_MS;
	is_clear = has_pulse && place(s, time, ms, &ago);
	s->sentence_ms = ms;
	if (has_pulse && !is_clear) {
		unsettle(s, TO_SETTLE_AGAIN);
	}
	if (!is_clear || !is_date(s, time)) {
		if (!s->is_known) {
			s->agreed = 0;
			s->is_doubted = true;
		}
		s->unassigned += !is_clear;
		s->wrong += is_clear;
		return;
	}
	/* Without a date, none before the second is known. */
	if (!s->is_known && !time->has_date) {
		return;
	}
	s->sentences++;
	s->is_leap = s->is_leap || (time->second == 60 && s->leap == 0);
	if (!s->is_known) {
		learn(s, time, dated(s, time), ago);
	} else if (!is_at_leap(s)) {
		check(s, time, dated(s, time), ago);
	}
}

uint32_t lp_second_faults(const struct lp_second *s, uint64_t ms)
{
	bool is_heard = s->has_sentence && ms - s->sentence_ms <= NMEA_MS;
	bool is_fixed = s->has_fix && ms - s->fix_ms <= NMEA_MS;
	bool is_mixed = s->mixed_ms != 0 && ms - s->mixed_ms <= NMEA_MS;
	bool is_unsettled = s->is_known && s->unsettled > 0;
	bool is_wrong = s->contradicted > 0 || s->other > 0 || is_mixed || is_unsettled;
	uint32_t faults = 0;

	faults |= !s->has_edge || ms - s->edge_ms > PPS_MS ? LP_SECOND_NO_PPS : 0;
	faults |= !is_heard ? LP_SECOND_NO_NMEA : 0;
	faults |= is_wrong ? LP_SECOND_WRONG : 0;
	/* Who hears nothing can't tell. */
	faults |= is_heard && !is_fixed ? LP_SECOND_NO_FIX : 0;
	faults |= !s->is_known ? LP_SECOND_UNKNOWN : 0;
	faults |= s->is_leap || s->leap_reports > 0 ? LP_SECOND_LEAP : 0;
	faults |= s->is_known && !s->is_sure ? LP_SECOND_UNSURE : 0;
	return faults;
}
