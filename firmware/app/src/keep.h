/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * What outlives a reset, in the board's flash: TAI - UTC, the profile of the clock, the plan of
 * trains, their addresses. Without a flash that can be written, settings are lost at the next
 * reset, and the shell says so.
 */

#ifndef LITEPROBE_APP_KEEP_H_
#define LITEPROBE_APP_KEEP_H_

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"
#include "measure.h"

/** As it is in the flash: no holes, and new fields go to the end. */
struct keep_values {
	int64_t sure_until;
	int32_t tai_utc;
	uint32_t receiver;
	uint32_t oscillator;
	/**
	 * Of the trains that are sent again and again, as in struct measure_plan; every_s 0: none.
	 */
	uint32_t count;
	uint32_t length;
	uint32_t interval_ns;
	uint32_t every_s;
	uint8_t transmit;
	uint8_t receive;
	uint8_t has_addresses;
	uint8_t reserved;
	struct frame_addresses addresses;
};

/** Copy what is kept; before the first change, the defaults of Kconfig. */
void keep_read(struct keep_values *values);

/**
 * Change what is kept: `change` is called under a lock, and a write into the flash follows soon, by
 * another thread.
 */
void keep_change(void (*change)(struct keep_values *values, const void *what), const void *what);

/** Keep TAI - UTC (s), and until when it is sure (POSIX time). */
void keep_second(int32_t tai_utc, int64_t sure_until);

/** Keep what is sent again and again; every_s 0: nothing. */
void keep_plan(const struct measure_plan *plan);

/** Copy what was sent again and again. */
void keep_read_plan(struct measure_plan *plan);

/** Go back to the defaults. */
void keep_forget(void);

/**
 * Return what the last read or write of the flash said: 0, -ENOENT (nothing was kept), or another
 * negative errno.
 */
int keep_state(void);

#endif
