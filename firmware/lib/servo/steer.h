/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* From the estimated oscillator to the increment of the clock, and to what is reported of it. Used by servo.c alone. */

#ifndef LITEPROBE_STEER_H
#define LITEPROBE_STEER_H

#include "servo/servo.h"

/** Return the oscillator's nanoseconds from the reference to a tick (digits of a phase); saturates at 2.1 s. */
int64_t lp_servo_local(const struct lp_servo *s, uint64_t ticks);

/** Return the process noise of a period at the present agility. */
struct lp_kalman_noise lp_servo_noise(const struct lp_servo *s);

/** Return the 95 % bound of the estimate until the next pulse, 2^-8 ns. */
int64_t lp_servo_bound(const struct lp_servo *s);

/**
 * Choose the increment so that `now` is right at the next pulse: dead beat on the estimate, which carries all the
 * filtering. Steps by ``out->adjust`` after a start, and when `now` is further off than a slew may take away.
 */
void lp_servo_steer(struct lp_servo *s, const struct lp_servo_stamp *stamp, uint32_t latency,
		    struct lp_servo_output *out);

/** Fill in what is reported of the estimate, ``s->bound`` among it. */
void lp_servo_report(const struct lp_servo *s, struct lp_servo_output *out);

#endif
