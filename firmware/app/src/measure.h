/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* Measures with packet trains, without a host: now, or again and again at whole seconds of the clock. */

#ifndef LITEPROBE_APP_MEASURE_H_
#define LITEPROBE_APP_MEASURE_H_

#include <stdbool.h>
#include <stdint.h>

struct measure_plan {
	uint32_t count;
	uint16_t length;
	/** Start to start (ns); 0: back to back. */
	uint32_t interval_ns;
	uint8_t transmit;
	uint8_t receive;
	/** Seconds from one train to the next, at whole seconds of the clock; 0: once, now. */
	uint32_t every_s;
};

struct measure_result {
	/** Number of the train, from 1. */
	uint32_t number;
	/** 0, or a negative errno: what follows is then not valid. */
	int error;
	/** Of the clock, when the train was started. */
	uint64_t start_ns;
	uint32_t clock_state;
	uint32_t uncertainty;
	uint32_t sent;
	uint32_t late;
	uint32_t received;
	uint32_t lost;
	uint32_t duplicated;
	uint32_t reordered;
	/** Network parameters: of the delay (ns; the deviation 2^-8 ns), and the rate at which the train came (b/s). */
	int64_t delay_min;
	int64_t delay_max;
	int64_t delay_mean;
	uint64_t delay_deviation;
	uint64_t rate;
};

/**
 * Send a train and measure it, or begin to do so again and again.
 *
 * @retval 0 on success: of a single train, `result` is filled in.
 * @retval -EINVAL when the plan can't be.
 * @retval -ENODEV when there is no such port.
 * @retval negative errno of the train: link down, busy, or not done in time.
 */
int measure_begin(const struct measure_plan *plan, struct measure_result *result);

/** End what goes on again and again. */
void measure_end(void);

/** Copy the last result; return false when there is none. */
bool measure_last(struct measure_result *result);

#endif
