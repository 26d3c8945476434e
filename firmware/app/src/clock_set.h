/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Does to the clock what the servo says: rate, steps, and the second. Nothing is stepped while
 * frames of a train leave; a train that waits for its time has sent none yet, and gets the right
 * one.
 */

#ifndef LITEPROBE_APP_CLOCK_SET_H_
#define LITEPROBE_APP_CLOCK_SET_H_

#include <stdbool.h>
#include <stdint.h>

#include "servo/servo.h"

/**
 * Write the rate, step, and set the second where the pulse has a number; steps that can't be are
 * refused, which changes `out`, and its bound.
 *
 * @return what could not be done, a sum of LP_CLOCK_ERROR_*.
 */
uint32_t clock_set_obey(struct lp_servo *servo, struct lp_servo_output *out, bool has_second);

/** Return how often the clock was stepped or set. */
uint32_t clock_set_steps(void);

/**
 * Have `callback` called after each step, by the clock's thread: what waits for a time of the clock
 * waits anew.
 */
void clock_set_on_step(void (*callback)(void));

#endif
