/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Which pulse does a receiver's quantisation error belong to? TIM-TP comes before the pulse that it
 * describes, and names its time of week: a message is believed when it came since the pulse before,
 * and its pulse is as many seconds after the last one that was named as pulses say. Where the
 * second of the pulse is known, a message about the one before is refused: a receiver that talks
 * too much is late with each of them.
 *
 * Sign: u-blox doesn't tell it. Measured with a ZED-F9T, the true second is at the pulse *plus*
 * qErr (A. Wallin, "uBlox F9T qErr correction", 2019, anderswallin.net), and so it is used in
 * Orolia's oscillatord (mRo50_oscillator.c).
 */

#ifndef LITEPROBE_QERR_H
#define LITEPROBE_QERR_H

#include <stdbool.h>
#include <stdint.h>

#include "second/second.h"
#include "second/ubx.h"

/* More is not an error of a receiver's clock, whose period it is at most. */
#define LP_QERR_MOST_PS 100000

/** All state; the counters may be read. */
struct lp_qerr {
	struct lp_ubx_pulse pulse; /* The last that the receiver reported. */
	uint64_t pulse_ms;         /* When. */
	bool has_pulse;            /* It waits for its pulse. */
	bool has_last;             /* There was one: its time of week and moment. */
	uint32_t last_tow_ms;
	uint64_t last_ms;
	uint32_t used;
	uint32_t refused; /* Messages that didn't fit their pulse, or said nothing, or too much. */
};

void lp_qerr_init(struct lp_qerr *q);

/** Take a message that was complete at ``ms`` of any clock that never stops or steps. */
void lp_qerr_message(struct lp_qerr *q, const struct lp_ubx_pulse *pulse, uint64_t ms);

/**
 * Take a pulse that came at ``ms`` of the same clock, and that ``second`` has taken; return whether
 * ``late_ps`` is known: how much later than the receiver's own second it came.
 */
bool lp_qerr_edge(struct lp_qerr *q, const struct lp_second *second, uint64_t ms, int32_t *late_ps);

#endif
