/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Which second does a pulse begin? A sentence that follows a pulse names it in UTC; TAI seconds are
 * counted, so that a leap second moves nothing. A single sentence is never believed, and once a
 * second is known the count of the pulses goes before: TAI moves only where NMEA and UBX-TIM-TP, by
 * week and time of week, agree on another one for ten pulses, or where a receiver without TIM-TP
 * contradicts for ten minutes.
 *
 * TAI less UTC is known until the next leap second may be, the end of June or December. From there
 * on it is sure where sentences and pulses went over that end together, or where TIM-TP counts in
 * GPS time, which has no leap seconds.
 */

#ifndef LITEPROBE_SECOND_H
#define LITEPROBE_SECOND_H

#include <stdbool.h>
#include <stdint.h>

#include "second/nmea.h"
#include "second/ubx.h"

/*
 * 2026-07-01 00:00:00 UTC: until then there is no leap second after that of 2017 (IERS Bulletin C
 * 70).
 */
#define LP_SECOND_SURE_UNTIL 1782864000
/*
 * 2026-01-01 00:00:00 UTC, before any firmware: a date is taken for the one within 1024 weeks of
 * GPS from here.
 */
#define LP_SECOND_NOT_BEFORE 1767225600

/** Faults; the numbers are bits of the register clock_error. */
enum lp_second_fault {
	LP_SECOND_NO_PPS = 1 << 0,
	LP_SECOND_NO_NMEA = 1 << 1, /* No sentence that tells the time. */
	LP_SECOND_WRONG = 1 << 2,   /* Sentences contradict the count of the pulses. */
	LP_SECOND_NO_FIX = 1 << 3,  /* Sentences come, but the receiver doesn't vouch for them. */
	LP_SECOND_UNKNOWN = 1 << 4, /* No second is known yet. */
	LP_SECOND_LEAP = 1 << 5,    /* A leap second was seen and isn't confirmed yet. */
	LP_SECOND_UNSURE = 1
		<< 6, /* A leap second may have passed unseen: TAI may be a second off. */
};

/** All state; private to second.c, but for what is said of a field. */
struct lp_second {
	int32_t tai_utc; /* TAI - UTC (s): may be read, and set by lp_second_init() alone. */
	/* Second that the last pulse began, since 1970-01-01 TAI; right if is_known. */
	uint64_t tai;
	bool is_known; /* May be read. */
	bool has_edge;
	bool has_sentence;
	uint64_t edge_ms;
	uint64_t sentence_ms;
	uint64_t fix_ms; /* Of the last sentence with a fix. */
	bool has_fix;
	bool is_vouched; /* Sentences of a kind that reports a fix were seen. */
	uint64_t named;  /* Pulse whose second a sentence has named already. */
	bool has_named;
	uint64_t candidate; /* What a sentence said, carried on pulse by pulse. */
	uint32_t agreed;    /* Sentences in a row that said the candidate. */
	/* Pulses in a row that were no whole number of seconds after the last. */
	uint32_t off_grid;
	int64_t contradiction; /* Seconds by which the last sentences disagreed, */
	uint32_t contradicted; /* and how many in a row. */
	bool is_leap;          /* A second 60 was seen. */
	uint32_t sentences;    /* May be read: used, */
	uint32_t unassigned; /* came at no time after a pulse at which its second would be clear, */
	uint32_t wrong;      /* contradicted, */
	uint32_t spurious;   /* pulses off the grid, */
	uint32_t corrections; /* and times that the second was changed once it was known. */
	int64_t sure_until;   /* POSIX time from which on a leap second may have been. */
	bool is_sure;
	int64_t not_before;
	/* May be read: sentences whose date was off by 1024 weeks, or several times that. */
	uint32_t rollovers;
	int32_t month; /* Of the last sentence that agreed: 12 * year + month; 0: none. */
	struct lp_ubx_pulse reported; /* What TIM-TP said of the next pulse, */
	uint64_t reported_ms;         /* when it came, */
	bool is_reported;             /* and whether there is one. */
	bool has_opinion;             /* TIM-TP named the second of the last pulse: */
	bool is_gps;                  /* in GPS time, which has no leap seconds; else in UTC. */
	uint64_t opinion;             /* That second, of TAI; in UTC it is POSIX time. */
	uint64_t opinion_ms;          /* When it last named one. */
	/* Sentences in a row that agreed while TIM-TP named a second later than they did. */
	uint32_t later;
};

/** Start anew. ``tai_utc``: seconds, 37 since 2017. */
void lp_second_init(struct lp_second *s, int32_t tai_utc);

/**
 * Say until when ``tai_utc`` is known to hold (POSIX time; INT64_MAX: until the next end of June or
 * December), and before which moment (POSIX time) no date can be. lp_second_init() takes
 * LP_SECOND_SURE_UNTIL and LP_SECOND_NOT_BEFORE.
 */
void lp_second_expect(struct lp_second *s, int64_t sure_until, int64_t not_before);

/**
 * Take what UBX-TIM-TP says of the next pulse, by a message that was complete at ``ms`` of the same
 * clock.
 */
void lp_second_pulse(struct lp_second *s, const struct lp_ubx_pulse *pulse, uint64_t ms);

/**
 * Take a pulse that came at ``ms`` of any clock that never stops or steps; return false for one off
 * the grid.
 */
bool lp_second_edge(struct lp_second *s, uint64_t ms);

/** Take a sentence whose first octet came at ``ms`` of the same clock. */
void lp_second_sentence(struct lp_second *s, const struct lp_nmea_time *time, uint64_t ms);

/** Return the faults as of ``ms``, a sum of lp_second_fault. */
uint32_t lp_second_faults(const struct lp_second *s, uint64_t ms);

#endif
