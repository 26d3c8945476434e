/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Named sets of the servo's settings: what a receiver's pulses are like, and what an oscillator
 * does by itself.
 */

#ifndef LITEPROBE_PROFILE_H
#define LITEPROBE_PROFILE_H

#include <stdint.h>

#include "servo/servo.h"

/** Receivers; the numbers are kept in flash and named in Kconfig. */
enum lp_profile_receiver {
	/* u-blox LEA-6T, M8T, F9T at a known position: 2 ns, sawtooth of 21 ns, or qErr. */
	LP_RECEIVER_TIMING = 0,
	LP_RECEIVER_NAVIGATION = 1, /* Without a position hold: 7 ns, and it wanders. */
	LP_RECEIVER_IDEAL = 2,      /* A generator, or another clock by a cable. */
	LP_RECEIVERS,
};

enum lp_profile_oscillator {
	LP_OSCILLATOR_XO = 0,   /* A plain crystal, as on these boards. */
	LP_OSCILLATOR_TCXO = 1, /* Compensated: some ppb over minutes. */
	LP_OSCILLATOR_OCXO = 2, /* In an oven. */
	LP_OSCILLATORS,
};

/** Return the name of a receiver or of an oscillator; NULL when there is none of this number. */
const char *lp_profile_receiver_name(uint32_t receiver);
const char *lp_profile_oscillator_name(uint32_t oscillator);

/**
 * Write what both are like into the servo's configuration, and nothing else of it.
 *
 * @retval 0 on success
 * @retval -EINVAL when there is no such receiver or oscillator: nothing is written
 */
int lp_profile_apply(struct lp_servo_config *config, uint32_t receiver, uint32_t oscillator);

#endif
