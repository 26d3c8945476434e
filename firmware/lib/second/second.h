/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Which second does a pulse begin? Sentences that follow a pulse name it in UTC; TAI seconds are
 * counted, so that a leap second moves nothing. A single sentence is never believed, and once a
 * second is known the count of the pulses goes before: TAI moves only where NMEA and UBX-TIM-TP, by
 * week and time of week, agree on another one for ten pulses, or where a receiver without TIM-TP
 * contradicts for ten minutes. What is one second behind may only be late: it moves nothing.
 *
 * All sentences that name the same second are an epoch, and it belongs to the pulse before its
 * first octet: a slow line may take until after the next pulse to bring the rest. Where an epoch
 * begins is clear when the line was idle before it, or brought a sentence of the epoch before that
 * since the last pulse. Its first octet comes 10 to 800 ms after the pulse: others may be late, or
 * early, or the pulse is taken at its falling edge, and name nothing.
 *
 * TAI less UTC changes only where UBX-NAV-TIMELS or a host announces it. It is known until the next
 * end of June or December. From there on it is sure where TIM-TP counts in GPS time, which has no
 * leap seconds, and agrees, or where NAV-TIMELS or a host says so.
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
	LP_SECOND_WRONG = 1 << 2,   /* Sentences contradict the pulses, each other, or TIM-TP. */
	LP_SECOND_NO_FIX = 1 << 3,  /* Sentences come, but the receiver doesn't vouch for them. */
	LP_SECOND_UNKNOWN = 1 << 4, /* No second is known yet. */
	LP_SECOND_LEAP = 1 << 5,    /* A leap second was seen and isn't confirmed yet. */
	LP_SECOND_UNSURE = 1 << 6,  /* A leap second may have passed unseen. */
};

/** Sentences that name the same second. */
struct lp_second_epoch {
	bool is_open;
	bool is_clear;    /* Its pulse is known: */
	uint64_t edge_ms; /* that, or where it should have been. */
	uint64_t ms;      /* When its first sentence began. */
	uint32_t of_day;  /* What they name. */
	uint32_t kinds;   /* Bits of enum lp_nmea_kind that came. */
	char talker[2];   /* Of the first. */
};

/** All state; private to second.c, but for what is said of a field. */
struct lp_second {
	int32_t tai_utc; /* TAI - UTC (s): may be read, and set by lp_second_init() alone. */
	/* Second that the last pulse began, since 1970-01-01 TAI; right if is_known. */
	uint64_t tai;
	bool is_known; /* May be read. */
	bool has_edge;
	bool has_sentence;
	bool has_fix;
	bool is_vouched;      /* The last sentence of a kind that reports a fix had one. */
	uint64_t edge_ms;
	uint64_t sentence_ms; /* Of the last sentence of a kind that tells the time, */
	uint64_t vouched_ms;  /* of one that reports whether there is a fix; 0: none, */
	uint64_t fix_ms;      /* and of the last with a fix. */
	uint64_t heard_ms;    /* When the line brought something last, 0: never, */
	uint64_t burst_ms;    /* and since when without a pause. */
	struct lp_second_epoch epoch;
	uint64_t candidate;    /* What a sentence said, carried on pulse by pulse. */
	uint32_t agreed;       /* Pulses whose sentences said so; not counted on for ever. */
	bool is_doubted;       /* Sentences have contradicted each other, or said nothing clear. */
	uint32_t unsettled;    /* Pulses that have to agree until no fault says so any more, */
	uint32_t steady;       /* and those that did since the last contradiction. */
	uint64_t agreed_ms;    /* The last such pulse, */
	int64_t agreed_posix;  /* and its date; 0: none. */
	uint32_t off_grid;     /* Pulses in a row that were no whole seconds after the last. */
	int64_t contradiction; /* Seconds by which the last sentences disagreed, */
	uint32_t contradicted; /* for how many pulses in a row, */
	uint64_t contradicted_ms; /* the last such pulse, */
	uint64_t mixed_ms;        /* and the last with sentences of both kinds. */
	bool is_leap;             /* A second 60 was seen. */
	uint32_t sentences;       /* May be read: used, */
	uint32_t unassigned;      /* whose pulse isn't clear, */
	uint32_t wrong;           /* contradicted, */
	uint32_t spurious;        /* pulses off the grid, */
	uint32_t corrections;     /* and times that the second was changed once it was known. */
	int64_t sure_until; /* POSIX time at which a leap second may be; is, if leap isn't 0. */
	bool is_sure;
	int8_t leap;         /* What is announced: 0 or, for TAI - UTC, 1 or -1, */
	bool is_leap_listed; /* by a host. */
	uint64_t leap_tai;   /* When the last one was; 0: none. */
	int8_t leap_report;    /* What NAV-TIMELS said of TAI - UTC that is another, */
	uint32_t leap_reports; /* in how many messages in a row. */
	int64_t not_before;
	/* May be read: sentences whose date was off by 1024 weeks, or twice that. */
	uint32_t rollovers;
	struct lp_ubx_pulse reported; /* What TIM-TP said of the next pulse, */
	uint64_t reported_ms;         /* when it came, */
	bool is_reported;             /* and whether there is one. */
	bool has_opinion;             /* TIM-TP named the second of the last pulse: */
	bool is_gps;                  /* in GPS time, which has no leap seconds; else in UTC. */
	uint64_t opinion;             /* That second, of TAI; in UTC it is POSIX time. */
	uint64_t opinion_ms;          /* When it last named one. */
	uint32_t other;               /* Times in a row that it named another. */
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
 * Take what a host knows: TAI - UTC is ``tai_utc`` until a moment (POSIX time), and differs by
 * ``leap`` (-1 to 1) from then on. What was announced before is withdrawn.
 */
void lp_second_announce(struct lp_second *s, int32_t tai_utc, int64_t until, int8_t leap);

/** Return whether a receiver is to be asked: TAI - UTC is not sure, or may be another soon. */
bool lp_second_wants_leap(const struct lp_second *s);

/** Take what UBX-NAV-TIMELS says of leap seconds, as of now. */
void lp_second_leap(struct lp_second *s, const struct lp_ubx_leap *leap);

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

/**
 * The receiver's line brings something, whatever it is, at ``ms`` of the same clock. Without these
 * calls the line is idle between sentences.
 */
void lp_second_heard(struct lp_second *s, uint64_t ms);

/** Take a sentence whose first octet came at ``ms`` of the same clock. */
void lp_second_sentence(struct lp_second *s, const struct lp_nmea_time *time, uint64_t ms);

/** Return the faults as of ``ms``, a sum of lp_second_fault. */
uint32_t lp_second_faults(const struct lp_second *s, uint64_t ms);

#endif
