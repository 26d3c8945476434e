/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "profile/profile.h"

#include <errno.h>
#include <stddef.h>

struct receiver {
	const char *name;
	uint32_t noise_ps;
	uint32_t sawtooth_ps;
	uint32_t wander_ps;
};

struct oscillator {
	const char *name;
	uint32_t phase_walk_ps;
	uint32_t rate_walk_ppq;
	uint32_t drift_walk_ppq;
	uint32_t jerk_ppq;
};

static const struct receiver receivers[LP_RECEIVERS] = {
	[LP_RECEIVER_TIMING] = {"timing", 2000, 21000, 700},
	[LP_RECEIVER_NAVIGATION] = {"navigation", 7000, 21000, 5500},
	[LP_RECEIVER_IDEAL] = {"ideal", 0, 0, 0},
};

/* A crystal's are lp_servo_defaults()'. */
static const struct oscillator oscillators[LP_OSCILLATORS] = {
	[LP_OSCILLATOR_XO] = {"xo", 300, 60000, 14000, 2500},
	[LP_OSCILLATOR_TCXO] = {"tcxo", 100, 6000, 300, 30},
	[LP_OSCILLATOR_OCXO] = {"ocxo", 30, 600, 10, 1},
};

const char *lp_profile_receiver_name(uint32_t receiver)
{
	return receiver < LP_RECEIVERS ? receivers[receiver].name : NULL;
}

const char *lp_profile_oscillator_name(uint32_t oscillator)
{
	return oscillator < LP_OSCILLATORS ? oscillators[oscillator].name : NULL;
}

int lp_profile_apply(struct lp_servo_config *config, uint32_t receiver, uint32_t oscillator)
{
	if (receiver >= LP_RECEIVERS || oscillator >= LP_OSCILLATORS) {
		return -EINVAL;
	}
	config->noise_ps = receivers[receiver].noise_ps;
	config->sawtooth_ps = receivers[receiver].sawtooth_ps;
	config->wander_ps = receivers[receiver].wander_ps;
	config->phase_walk_ps = oscillators[oscillator].phase_walk_ps;
	config->rate_walk_ppq = oscillators[oscillator].rate_walk_ppq;
	config->drift_walk_ppq = oscillators[oscillator].drift_walk_ppq;
	config->jerk_ppq = oscillators[oscillator].jerk_ppq;
	return 0;
}
