/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "second/ubx.h"

#include <string.h>

#define SYNC_1   0xb5
#define SYNC_2   0x62
#define HEADER   6
#define CHECKSUM 2

#define CLASS_TIM         0x0d
#define TIM_TP            0x01
#define CLASS_CFG         0x06
#define CFG_MSG           0x01
#define FLAG_BASE_UTC     0x01
#define FLAG_QERR_INVALID 0x10
#define REFERENCE_MASK    0x0f
#define REFERENCE_GPS     0

void lp_ubx_clear(struct lp_ubx *u)
{
	memset(u, 0, sizeof(*u));
}

static uint32_t little(const uint8_t *octets, int count)
{
	uint32_t value = 0;

	while (count-- > 0) {
		value = value << 8 | octets[count];
	}
	return value;
}

/* The 8-bit Fletcher algorithm of RFC 1145, over all but the two first octets. */
static void add(struct lp_ubx *u, uint8_t octet)
{
	u->sum_a = (uint8_t)(u->sum_a + octet);
	u->sum_b = (uint8_t)(u->sum_b + u->sum_a);
}

/* An octet of the header; return whether it can be one. */
static bool take_header(struct lp_ubx *u, uint8_t octet)
{
	switch (u->position) {
	case 0:
		return octet == SYNC_1;
	case 1:
		u->sum_a = 0;
		u->sum_b = 0;
		u->taken = 0;
		return octet == SYNC_2;
	case 2:
		u->class_id = octet;
		break;
	case 3:
		u->message = octet;
		break;
	case 4:
		u->length = octet;
		break;
	default:
		u->length = (uint16_t)(u->length | octet << 8);
		if (u->length > LP_UBX_MOST) {
			u->refused++;
			return false;
		}
		break;
	}
	add(u, octet);
	return true;
}

static void read_pulse(const struct lp_ubx *u, struct lp_ubx_pulse *pulse)
{
	pulse->tow_ms = little(&u->payload[0], 4);
	pulse->qerr_ps = (int32_t)little(&u->payload[8], 4);
	pulse->week = (uint16_t)little(&u->payload[12], 2);
	pulse->has_qerr = (u->payload[14] & FLAG_QERR_INVALID) == 0;
	pulse->is_utc = (u->payload[14] & FLAG_BASE_UTC) != 0;
	pulse->is_gps = !pulse->is_utc && (u->payload[15] & REFERENCE_MASK) == REFERENCE_GPS;
}

/* The second octet of the checksum. */
static enum lp_ubx_result finish(struct lp_ubx *u, uint8_t octet, struct lp_ubx_pulse *pulse)
{
	u->position = 0;
	if (octet != u->sum_b) {
		u->refused++;
		return LP_UBX_TAKEN;
	}
	u->messages++;
	if (u->class_id != CLASS_TIM || u->message != TIM_TP || u->length != LP_UBX_TIM_TP_OCTETS) {
		return LP_UBX_TAKEN;
	}
	read_pulse(u, pulse);
	return LP_UBX_PULSE;
}

enum lp_ubx_result lp_ubx_octet(struct lp_ubx *u, uint8_t octet, struct lp_ubx_pulse *pulse)
{
	if (u->position < HEADER) {
		if (take_header(u, octet)) {
			u->position++;
			return LP_UBX_TAKEN;
		}
		/* What was no header may be followed by one at once. */
		u->position = octet == SYNC_1;
		return octet == SYNC_1 ? LP_UBX_TAKEN : LP_UBX_FOREIGN;
	}
	if (u->taken < u->length) {
		if (u->taken < sizeof(u->payload)) {
			u->payload[u->taken] = octet;
		}
		add(u, octet);
		u->taken++;
		return LP_UBX_TAKEN;
	}
	if (u->taken == u->length) {
		u->taken++;
		if (octet != u->sum_a) {
			u->refused++;
			u->position = 0;
		}
		return LP_UBX_TAKEN;
	}
	return finish(u, octet, pulse);
}

void lp_ubx_enable(uint8_t octets[LP_UBX_ENABLE_OCTETS])
{
	static const uint8_t head[] = {SYNC_1, SYNC_2,    CLASS_CFG, CFG_MSG, 3,
				       0,      CLASS_TIM, TIM_TP,    1};
	struct lp_ubx sums = {0};

	_Static_assert(sizeof(head) + CHECKSUM == LP_UBX_ENABLE_OCTETS, "two octets of checksum");
	memcpy(octets, head, sizeof(head));
	for (unsigned int i = 2; i < sizeof(head); i++) {
		add(&sums, head[i]);
	}
	octets[sizeof(head)] = sums.sum_a;
	octets[sizeof(head) + 1] = sums.sum_b;
}
