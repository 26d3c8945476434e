/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Reads the time out of a receiver's NMEA sentences (RMC, ZDA, GGA), octet by octet. Whatever comes
 * in, it never reads or writes outside its own structure, and takes nothing whose checksum or form
 * is wrong.
 *
 * Source: IEC 61162-1 (NMEA 0183).
 */

#ifndef LITEPROBE_NMEA_H
#define LITEPROBE_NMEA_H

#include <stdbool.h>
#include <stdint.h>

/* From '$' to the checksum; longer ones are dropped. */
#define LP_NMEA_MOST 82

/*
 * A year before this is none of a receiver's that has a fix; one that lost count of the GPS weeks
 * comes out later.
 */
#define LP_NMEA_FIRST_YEAR 1999

enum lp_nmea_kind {
	LP_NMEA_RMC,
	LP_NMEA_ZDA,
	LP_NMEA_GGA,
};

/**
 * A second of UTC; without a fix only ``kind`` means anything, as receivers leave the rest empty.
 */
struct lp_nmea_time {
	enum lp_nmea_kind kind;
	bool has_fix;  /* The receiver vouches for it; always true of ZDA, which doesn't say. */
	bool has_date; /* GGA has none. */
	uint16_t year;
	uint8_t month;
	uint8_t day;
	uint8_t hour;
	uint8_t minute;
	uint8_t second; /* 60 in a leap second, which is the last of a UTC day. */
};

struct lp_nmea {
	char text[LP_NMEA_MOST + 1];
	uint8_t length;
	bool is_inside;
	uint32_t sentences; /* With a good checksum, of any kind. */
	uint32_t refused;   /* Bad checksum, too long, or cut short. */
	uint32_t malformed; /* Good checksum, but a time that can't be, or none with a fix. */
};

void lp_nmea_clear(struct lp_nmea *n);

/**
 * Take an octet; return whether it completes a sentence with a whole second of UTC, which goes to
 * ``time``, or one that says that there is no fix.
 */
bool lp_nmea_octet(struct lp_nmea *n, uint8_t octet, struct lp_nmea_time *time);

/**
 * Return the seconds from 1970-01-01 UTC to a date and time of day, leap seconds not counted
 * (POSIX).
 */
int64_t lp_nmea_posix(const struct lp_nmea_time *time);

#endif
