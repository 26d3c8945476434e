/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Measures with packet trains, without a host: now, or again and again at whole seconds of the
 * clock.
 */

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
	/** It was stopped before its end: `sent` says where. */
	bool is_stopped;
	/** Of the clock, when the train was started. */
	uint64_t start_ns;
	/**
	 * Of the clock while the train lasted: its worst state, and its greatest bound (2^-8 ns;
	 * UINT32_MAX: not known),
	 */
	uint32_t clock_state;
	uint32_t uncertainty;
	/**
	 * and how often it was stepped, refused a pulse, and found that its reference had jumped.
	 */
	uint32_t steps;
	uint32_t rejected;
	uint32_t jumps;
	uint32_t sent;
	uint32_t late;
	uint32_t received;
	uint32_t lost;
	uint32_t duplicated;
	uint32_t reordered;
	/**
	 * Network parameters: of the delay (ns; the deviation 2^-8 ns), and the rate at which the
	 * train came (b/s).
	 */
	int64_t delay_min;
	int64_t delay_max;
	int64_t delay_mean;
	uint64_t delay_deviation;
	uint64_t rate;
};

/** What goes on. */
struct measure_status {
	/** A train is being measured now, or waits for its time. */
	bool is_running;
	uint32_t trains;
	/** What is sent again and again; `every_s` 0: nothing. */
	struct measure_plan repeated;
};

/**
 * Begin to measure with a train, or to do so again and again; doesn't wait for the result.
 *
 * @retval 0 on success: the result is the last one, once it is done.
 * @retval -EINVAL when the plan can't be.
 * @retval -ENODEV when a port doesn't exist.
 * @retval -EBUSY when a train is being sent, and every_s is 0: it is one at a time.
 */
int measure_begin(const struct measure_plan *plan);

/** Stop the train that is being sent, and what goes on again and again. */
void measure_end(void);

/** Copy what goes on. */
void measure_status(struct measure_status *status);

/**
 * Copy a result; `age` 0 is the last one, CONFIG_LITEPROBE_RESULTS are kept.
 *
 * @return whether there is one.
 */
bool measure_past(uint32_t age, struct measure_result *result);

#endif
