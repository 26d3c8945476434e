/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * What servo.c is made of: settings, and the way from the estimated oscillator to the clock's
 * increment and report.
 */

#ifndef LITEPROBE_STEER_H
#define LITEPROBE_STEER_H

#include "servo/servo.h"

/** Begin to learn of pulses with a qErr, or without, from what is configured. */
void lp_servo_learn_of(struct lp_servo *s, bool has_qerr);

/** Return the absolute value. */
int64_t lp_servo_magnitude(int64_t a);

/** Return a value in 32 bits; saturates. */
int32_t lp_servo_narrow(int64_t a);

/**
 * Return the oscillator's nanoseconds from the reference to a tick (digits of a phase); saturates
 * at 2.1 s.
 */
int64_t lp_servo_local(const struct lp_servo *s, uint64_t ticks);

/**
 * Return the variance of the phase until the next pulse (LP_VARIANCE_BITS), what no filter sees not
 * counted.
 */
int64_t lp_servo_variance(const struct lp_servo *s);

/** Return the 95 % bound of the estimate until the next pulse, 2^-8 ns. */
int64_t lp_servo_bound(const struct lp_servo *s);

/**
 * Choose the increment so that `now` is right at the next pulse: dead beat on the estimate, which
 * carries all the filtering. Steps by ``out->adjust`` after a start, and when `now` is further off
 * than a slew may take away.
 */
void lp_servo_steer(struct lp_servo *s, const struct lp_servo_stamp *stamp, uint32_t latency,
		    struct lp_servo_output *out);

/** Fill in what is reported of the estimate, ``s->bound`` among it. */
void lp_servo_report(const struct lp_servo *s, struct lp_servo_output *out);

#endif
