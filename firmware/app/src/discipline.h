/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Keeps the clock on the PPS: one thread that takes the edges, asks the servo, writes what it says
 * and publishes it.
 */

#ifndef LITEPROBE_APP_DISCIPLINE_H_
#define LITEPROBE_APP_DISCIPLINE_H_

#include <stdbool.h>
#include <stdint.h>

#include <liteprobe/status.h>

#include "second/nmea.h"
#include "second/ubx.h"

/** What the shell shows. */
struct discipline_view {
	struct lp_status status;
	uint64_t increment;
	uint32_t period;
	/** Edges that came while the last ones were still waiting for the servo. */
	uint32_t edges_lost;
	/**
	 * CPU time that the last edge took, from the interrupt's message to the publication, and
	 * the longest (us).
	 */
	uint32_t work_us;
	uint32_t work_us_max;
	/**
	 * Edges whose quantisation error the receiver reported, and messages that fitted no edge.
	 */
	uint32_t qerr_used;
	uint32_t qerr_refused;
	/** From the first instructions to the first publication (us). */
	uint32_t boot_us;
};

/** Copy what was published last. */
void discipline_view(struct discipline_view *view);

/**
 * Return the time of a clock that never stops or steps (ms; 1/1000 of a period of the pulses, where
 * that is not a second).
 */
uint64_t discipline_ms(void);

/** Take what a sentence of the receiver says, whose first octet came at `ms` of discipline_ms(). */
void discipline_sentence(const struct lp_nmea_time *time, uint64_t ms);

/**
 * Take what the receiver says of the next pulse, by a message that was complete at `ms` of
 * discipline_ms().
 */
void discipline_pulse(const struct lp_ubx_pulse *pulse, uint64_t ms);

/** A sentence or message came at `ms` whose checksum or form is wrong. */
void discipline_garbage(uint64_t ms);

/** TAI - UTC as of now (s); the second is then learned anew. */
void discipline_set_tai_utc(uint32_t seconds);

#endif
