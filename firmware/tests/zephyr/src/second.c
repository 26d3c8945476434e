/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include <string.h>

#include <zephyr/ztest.h>

#include "second/second.h"

/* 2026-03-04 12:00:00 UTC. */
#define POSIX   1772625600
#define TAI_UTC 37

static int take(const char *sentence, struct lp_nmea_time *time)
{
	static struct lp_nmea nmea;
	int times = 0;

	lp_nmea_clear(&nmea);
	for (const char *c = sentence; *c != '\0'; c++) {
		times += lp_nmea_octet(&nmea, (uint8_t)*c, time);
	}

	return times;
}

ZTEST_SUITE(second, NULL, NULL, NULL, NULL, NULL);

ZTEST(second, test_sentence_names_the_second_after_three_that_agree)
{
	static const char *const sentences[] = {
		"$GPRMC,120000.00,A,,,,,,,040326,,*08\r\n",
		"$GPRMC,120001.00,A,,,,,,,040326,,*09\r\n",
		"$GPRMC,120002.00,A,,,,,,,040326,,*0A\r\n",
	};
	struct lp_second second;
	struct lp_nmea_time time;

	lp_second_init(&second, TAI_UTC);
	for (uint32_t n = 0; n < ARRAY_SIZE(sentences); n++) {
		zassert_false(second.is_known);
		zassert_true(lp_second_edge(&second, 1000 * n));
		zassert_equal(take(sentences[n], &time), 1);
		lp_second_sentence(&second, &time, 1000 * n + 150);
	}
	zassert_true(second.is_known);
	zassert_equal(second.tai, POSIX + 2 + TAI_UTC);
	zassert_equal(lp_second_faults(&second, 2150), 0);
	zassert_true(lp_second_faults(&second, 6000) & LP_SECOND_NO_NMEA);
}

ZTEST(second, test_a_wrong_checksum_names_nothing)
{
	struct lp_nmea_time time;

	zassert_equal(take("$GPRMC,120000.00,A,,,,,,,040326,,*09\r\n", &time), 0);
}
