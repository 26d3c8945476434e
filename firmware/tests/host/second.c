/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Feeds pulses and octets to the library that knows the second. Argument: TAI - UTC. stdin: records of a kind (0 pulse,
 * 1 octets), a time (ms), a length, then the octets; stdout: what is known after each.
 */

#include <stdio.h>
#include <stdlib.h>

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
};

int main(int argc, char **argv)
{
	struct lp_second second;
	struct lp_nmea nmea;
	struct lp_nmea_time time;
	struct record record;
	uint32_t times = 0;

	lp_second_init(&second, argc > 1 ? atoi(argv[1]) : 37);
	lp_nmea_clear(&nmea);
	while (fread(&record, sizeof(record), 1, stdin) == 1) {
		struct answer answer;

		if (record.kind == 0) {
			lp_second_edge(&second, record.ms);
		}
		for (uint32_t i = 0; i < record.length; i++) {
			int octet = getchar();

			if (octet == EOF) {
				return 2;
			}
			if (lp_nmea_octet(&nmea, (uint8_t)octet, &time)) {
				times++;
				lp_second_sentence(&second, &time, record.ms);
			}
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
		};
		fwrite(&answer, sizeof(answer), 1, stdout);
	}
	return 0;
}
