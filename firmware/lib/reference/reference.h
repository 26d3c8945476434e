/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Watches the reference of a servo. Where the servo refuses pulses, they are false or the reference
 * has moved; it takes several pulses to see which. Until then the bound covers both cases, and a
 * jump is reported.
 *
 * A single refused pulse nearby (LP_REFERENCE_NEAR_NS) widens the bound by its distance; two in a
 * row are reported as a jump. Where the servo then starts anew from the refused pulses, the bound
 * covers the old place as well, until LP_REFERENCE_JUDGED pulses have agreed with the new one.
 */

#ifndef LITEPROBE_REFERENCE_H
#define LITEPROBE_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "servo/servo.h"

/*
 * A refused pulse that is further off is false, unless another one follows: no receiver moves so
 * far.
 */
#define LP_REFERENCE_NEAR_NS 1000000u
#define LP_REFERENCE_JUDGED  60u

/** All zero: at the start. */
struct lp_reference {
	bool is_tracking; /* The servo was locked, or in holdover. */
	uint32_t row;     /* Refused pulses in a row. */
	uint32_t size;    /* How far off the furthest of them was, 2^-8 ns. */
	uint32_t left;    /* Pulses until the new place of the pulses is believed. */
	uint32_t jumps;   /* So far: may be read. */
};

/**
 * Take what the servo made of a pulse, and widen its bound; return whether the reference has
 * jumped, or seems to.
 */
bool lp_reference_edge(struct lp_reference *r, struct lp_servo_output *out);

/** Take what the servo said of a silence, likewise. */
bool lp_reference_silence(struct lp_reference *r, struct lp_servo_output *out);

#endif
