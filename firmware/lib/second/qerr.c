/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "second/qerr.h"

#include <stddef.h>
#include <string.h>

#define SECOND_MS       1000u
#define WEEK_MS         604800000u
/* Seconds of 1970 at which the first week began, and what TAI is ahead by. */
#define GPS_EPOCH       315964800u
#define GPS_LESS_TAI    19
#define BEIDOU_LESS_TAI 33

void lp_qerr_init(struct lp_qerr *q)
{
	memset(q, 0, sizeof(*q));
}

void lp_qerr_message(struct lp_qerr *q, const struct lp_ubx_pulse *pulse, uint64_t ms)
{
	q->refused += q->has_pulse; /* The one before found no pulse. */
	q->pulse = *pulse;
	q->pulse_ms = ms;
	q->has_pulse = true;
}

/*
 * Return whether the message is about the pulse before, by any time that a receiver may count weeks
 * in.
 */
static bool is_behind(const struct lp_qerr *q, const struct lp_second *second)
{
	const uint64_t less_tai[] = {GPS_LESS_TAI, BEIDOU_LESS_TAI, (uint64_t)second->tai_utc};

	for (size_t i = 0; second->is_known && i < sizeof(less_tai) / sizeof(less_tai[0]); i++) {
		uint64_t before = second->tai - 1 - less_tai[i] - GPS_EPOCH;

		if (before * SECOND_MS % WEEK_MS == q->pulse.tow_ms % WEEK_MS) {
			return true;
		}
	}
	return false;
}

/* Return whether the message counts on from the last one. */
static bool is_next(struct lp_qerr *q, uint64_t ms)
{
	uint64_t seconds = (ms - q->last_ms + SECOND_MS / 2) / SECOND_MS;
	uint32_t tow = (uint32_t)((q->last_tow_ms + seconds * SECOND_MS) % WEEK_MS);
	bool is_good = q->has_last && tow == q->pulse.tow_ms % WEEK_MS;

	q->has_last = true;
	q->last_tow_ms = q->pulse.tow_ms % WEEK_MS;
	q->last_ms = ms;
	return is_good;
}

bool lp_qerr_edge(struct lp_qerr *q, const struct lp_second *second, uint64_t ms, int32_t *late_ps)
{
	int32_t qerr = q->pulse.qerr_ps;

	if (!q->has_pulse || q->pulse_ms > ms) {
		return false;
	}
	q->has_pulse = false;
	if (!is_next(q, ms) || is_behind(q, second) || ms - q->pulse_ms > SECOND_MS ||
	    !q->pulse.has_qerr || qerr > LP_QERR_MOST_PS || qerr < -LP_QERR_MOST_PS) {
		q->refused++;
		return false;
	}
	*late_ps = -qerr;
	q->used++;
	return true;
}
