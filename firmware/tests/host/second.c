/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Feeds pulses and octets to the libraries that know the second and the quantisation error of a
 * pulse, as the application does. Arguments: TAI - UTC, until when it is sure, and before when no
 * date can be (POSIX time). stdin: records of a kind (0 pulse, 1 octets), a time (ms), a length,
 * then the octets; stdout: what is known after each.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "second/qerr.h"
#include "second/second.h"

struct record {
	uint64_t ms;
	uint32_t kind;
	uint32_t length;
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
	case LP_UBX_TAKEN:
		return;
	default:
		break;
	}
	if (lp_nmea_octet(&nmea, octet, &time)) {
		times++;
		lp_second_sentence(&second, &time, ms);
	}
}

/* With the argument "enable": what the receiver is asked. */
static int show_enable(void)
{
	uint8_t octets[LP_UBX_ENABLE_OCTETS];

	lp_ubx_enable(octets);
	return fwrite(octets, sizeof(octets), 1, stdout) == 1 ? 0 : 2;
}

int main(int argc, char **argv)
{
	struct record record;

	if (argc > 1 && strcmp(argv[1], "enable") == 0) {
		return show_enable();
	}
	lp_ubx_clear(&ubx);
	lp_qerr_init(&qerr);
	lp_second_init(&second, argc > 1 ? atoi(argv[1]) : 37);
	if (argc > 3) {
		lp_second_expect(&second, strtoll(argv[2], NULL, 10), strtoll(argv[3], NULL, 10));
	}
	lp_nmea_clear(&nmea);
	while (fread(&record, sizeof(record), 1, stdin) == 1) {
		struct answer answer;

		bool has_qerr = false;
		int32_t late_ps = 0;

		if (record.kind == 0 && lp_second_edge(&second, record.ms)) {
			has_qerr = lp_qerr_edge(&qerr, &second, record.ms, &late_ps);
		}
		for (uint32_t i = 0; i < record.length; i++) {
			int octet = getchar();

			if (octet == EOF) {
				return 2;
			}
			take((uint8_t)octet, record.ms);
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
