/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "reference/reference.h"

static bool is_tracking(const struct lp_servo_output *out)
{
	return out->state == LP_SERVO_LOCKED || out->state == LP_SERVO_HOLDOVER;
}

/* Refused pulses: one by one, and then so many that the servo begins anew from them. */
static void refused(struct lp_reference *r, const struct lp_servo_output *out)
{
	if (!r->is_tracking) {
		return;
	}
	uint32_t size = (uint32_t)(out->offset < 0 ? -(int64_t)out->offset : out->offset);

	/* Each has its noise: the furthest of a row has it on the safe side. */
	r->size = r->row++ == 0 || size > r->size ? size : r->size;
	if (out->state == LP_SERVO_ACQUIRING) {
		r->jumps++;
		r->left = LP_REFERENCE_JUDGED;
		r->row = 0;
	}
}

static bool widen(const struct lp_reference *r, struct lp_servo_output *out)
{
	bool is_jump = r->row >= 2 || r->left > 0;

	if (is_jump || (r->row == 1 && r->size <= LP_REFERENCE_NEAR_NS << 8)) {
		uint64_t bound = (uint64_t)out->uncertainty + r->size;

		out->uncertainty = bound > UINT32_MAX ? UINT32_MAX : (uint32_t)bound;
	}
	return is_jump;
}

bool lp_reference_edge(struct lp_reference *r, struct lp_servo_output *out)
{
	if (out->state == LP_SERVO_FREE_RUNNING) {
		r->row = 0;
		r->left = 0;
	} else if (!out->is_used) {
		refused(r, out);
	} else {
		r->row = 0;
		r->left -= r->left > 0;
	}
	r->is_tracking = is_tracking(out);
	return widen(r, out);
}

bool lp_reference_silence(struct lp_reference *r, struct lp_servo_output *out)
{
	r->is_tracking = is_tracking(out);
	return widen(r, out);
}
