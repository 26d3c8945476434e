/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Feeds pulses and octets to the libraries that know the second and the quantisation error of a
 * pulse, as the application does. Arguments: TAI - UTC, until when it is sure, before when no date
 * can be (POSIX time), and the baud rate at which octets come; without one, those of a record come
 * at once. stdin: records of a kind, a time (ms), a length, then as many octets; stdout: what is
 * known after each.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "second/qerr.h"
#include "second/second.h"

enum kind {
	PULSE,
	OCTETS,   /* They come from then on. */
	ANNOUNCE, /* What a host knows: struct announcement. */
	RESTART,  /* Forget everything; the time is the baud rate from here on. */
};

struct record {
	uint64_t ms;
	uint32_t kind;
	uint32_t length;
};

struct announcement {
	int64_t until;
	int32_t tai_utc;
	int32_t leap;
};

struct answer {
	uint64_t tai;
	uint32_t is_known;
	int32_t tai_utc;
	uint32_t faults;
	uint32_t sentences;
	uint32_t unassigned;
	uint32_t wrong;
	uint32_t spurious;
	uint32_t corrections;
	uint32_t sound;
	uint32_t refused;
	uint32_t malformed;
	uint32_t times;
	uint32_t messages;
	uint32_t messages_refused;
	uint32_t pulses;
	uint32_t has_qerr;
	int32_t late_ps;
	uint32_t qerr_used;
	uint32_t qerr_refused;
	uint32_t qerr_waits;
	uint32_t rollovers;
	uint32_t unused;
};

static struct lp_second second;
static struct lp_nmea nmea;
static struct lp_ubx ubx;
static struct lp_qerr qerr;
static uint32_t times, pulses;
static uint64_t began_ms;
/* What is on the line: its octets come one after the other, from a moment (us) on. */
static uint8_t line[1 << 16];
static uint32_t line_first, line_end;
static uint64_t line_us, octet_us;

static void take(uint8_t octet, uint64_t ms)
{
	struct lp_nmea_time time;
	struct lp_ubx_pulse pulse;

	switch (lp_ubx_octet(&ubx, octet, &pulse)) {
	case LP_UBX_PULSE:
		pulses++;
		lp_qerr_message(&qerr, &pulse, ms);
		lp_second_pulse(&second, &pulse, ms);
		return;
	case LP_UBX_LEAP:
		lp_second_leap(&second, &ubx.leap);
		return;
	case LP_UBX_TAKEN:
		return;
	default:
		break;
	}
	if (octet == '$') {
		began_ms = ms;
	}
	if (lp_nmea_octet(&nmea, octet, &time)) {
		times++;
		lp_second_sentence(&second, &time, began_ms);
	}
}

/* Take what has come by a moment. */
static void listen(uint64_t ms)
{
	for (; line_first < line_end && line_us <= 1000 * ms; line_us += octet_us) {
		lp_second_heard(&second, line_us / 1000);
		take(line[line_first++], line_us / 1000);
	}
	if (line_first == line_end) {
		line_first = line_end = 0;
	}
}

/* Put octets on the line; return whether there are so many. */
static bool receive(const struct record *record)
{
	if (line_end + record->length > sizeof(line) ||
	    fread(line + line_end, 1, record->length, stdin) != record->length) {
		return false;
	}
	if (line_first == line_end && line_us < 1000 * record->ms) {
		line_us = 1000 * record->ms;
	}
	line_end += record->length;
	return true;
}

static void start(int32_t tai_utc, uint64_t baud)
{
	lp_ubx_clear(&ubx);
	lp_nmea_clear(&nmea);
	lp_qerr_init(&qerr);
	lp_second_init(&second, tai_utc);
	times = pulses = line_first = line_end = 0;
	line_us = 0;
	octet_us = baud == 0 ? 0 : 10000000 / baud;
}

/* With the arguments "enable" or "enable_leap": what the receiver is asked. */
static int show_enable(bool is_leap)
{
	uint8_t octets[LP_UBX_ENABLE_OCTETS];

	if (is_leap) {
		lp_ubx_enable_leap(octets);
	} else {
		lp_ubx_enable(octets);
	}
	return fwrite(octets, sizeof(octets), 1, stdout) == 1 ? 0 : 2;
}

int main(int argc, char **argv)
{
	int32_t tai_utc = argc > 1 ? atoi(argv[1]) : 37;
	struct record record;

	if (argc > 1 && strncmp(argv[1], "enable", 6) == 0) {
		return show_enable(strcmp(argv[1], "enable_leap") == 0);
	}
	start(tai_utc, argc > 4 ? strtoull(argv[4], NULL, 10) : 0);
	if (argc > 3) {
		lp_second_expect(&second, strtoll(argv[2], NULL, 10), strtoll(argv[3], NULL, 10));
	}
	while (fread(&record, sizeof(record), 1, stdin) == 1) {
		struct announcement given;
		struct answer answer;

		bool has_qerr = false;
		int32_t late_ps = 0;

		if (record.kind != RESTART) {
			listen(record.ms);
		}
		switch (record.kind) {
		case PULSE:
			has_qerr = lp_second_edge(&second, record.ms) &&
				   lp_qerr_edge(&qerr, &second, record.ms, &late_ps);
			break;
		case ANNOUNCE:
			if (fread(&given, sizeof(given), 1, stdin) != 1) {
				return 2;
			}
			lp_second_announce(&second, given.tai_utc, given.until, (int8_t)given.leap);
			break;
		case RESTART:
			start(tai_utc, record.ms);
			break;
		default:
			if (!receive(&record)) {
				return 2;
			}
			listen(record.ms);
			break;
		}
		answer = (struct answer){
			.tai = second.tai,
			.is_known = second.is_known,
			.tai_utc = second.tai_utc,
			.faults = lp_second_faults(&second, record.ms),
			.sentences = second.sentences,
			.unassigned = second.unassigned,
			.wrong = second.wrong,
			.spurious = second.spurious,
			.corrections = second.corrections,
			.sound = nmea.sentences,
			.refused = nmea.refused,
			.malformed = nmea.malformed,
			.times = times,
			.messages = ubx.messages,
			.messages_refused = ubx.refused,
			.pulses = pulses,
			.has_qerr = has_qerr,
			.late_ps = late_ps,
			.qerr_used = qerr.used,
			.qerr_refused = qerr.refused,
			.qerr_waits = qerr.has_pulse,
			.rollovers = second.rollovers,
		};
		fwrite(&answer, sizeof(answer), 1, stdout);
	}
	return 0;
}
