/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

#include "second/qerr.h"

#include <string.h>

#define SECOND_MS 1000u
#define WEEK_MS 604800000u

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

bool lp_qerr_edge(struct lp_qerr *q, uint64_t ms, int32_t *late_ps)
{
	int32_t qerr = q->pulse.qerr_ps;

	if (!q->has_pulse || q->pulse_ms > ms) {
		return false;
	}
	q->has_pulse = false;
	if (!is_next(q, ms) || ms - q->pulse_ms > SECOND_MS || !q->pulse.has_qerr || qerr > LP_QERR_MOST_PS ||
	    qerr < -LP_QERR_MOST_PS) {
		q->refused++;
		return false;
	}
	*late_ps = -qerr;
	q->used++;
	return true;
}
