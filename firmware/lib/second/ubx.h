/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Finds the messages of u-blox's binary protocol among the octets of a receiver, and reads what
 * TIM-TP says of a pulse. NMEA may share the line. Whatever comes in, it never reads or writes
 * outside its own structure, and takes nothing whose checksum is wrong.
 *
 * Source: u-blox ZED-F9T Interface description (UBX-20033631), "UBX frame structure", "UBX
 * checksum", "UBX-TIM-TP".
 */

#ifndef LITEPROBE_UBX_H
#define LITEPROBE_UBX_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Longest payload that is believed: a length that garbage makes up must not swallow sentences for
 * long.
 */
#define LP_UBX_MOST 1024

/* Payload of TIM-TP. */
#define LP_UBX_TIM_TP_OCTETS 16

enum lp_ubx_result {
	LP_UBX_FOREIGN, /* The octet belongs to no message: it may be NMEA's. */
	LP_UBX_TAKEN,   /* It is part of a message. */
	LP_UBX_PULSE,   /* It completes a TIM-TP. */
};

/** What TIM-TP says of the next pulse. */
struct lp_ubx_pulse {
	uint32_t tow_ms; /* Time of week of the pulse. */
	uint16_t week;
	/** How much earlier than the receiver's own second the pulse comes (ps). */
	int32_t qerr_ps;
	bool has_qerr; /* The receiver says that qerr_ps is valid. */
	bool is_gps;   /* Week and time of week are of GPS, which has no leap seconds, */
	bool is_utc;   /* or of UTC; of another time where neither is. */
};

struct lp_ubx {
	uint8_t position; /* In the header. */
	uint8_t class_id;
	uint8_t message;
	uint16_t length;
	uint16_t taken; /* Octets of payload and checksum. */
	uint8_t sum_a;
	uint8_t sum_b;
	uint8_t payload[LP_UBX_TIM_TP_OCTETS];
	uint32_t messages; /* With a good checksum, of any kind. */
	uint32_t refused;  /* Bad checksum, or too long. */
};

void lp_ubx_clear(struct lp_ubx *u);

/** Take an octet; a pulse goes to ``pulse``. */
enum lp_ubx_result lp_ubx_octet(struct lp_ubx *u, uint8_t octet, struct lp_ubx_pulse *pulse);

/* Of a message that lp_ubx_enable() writes. */
#define LP_UBX_ENABLE_OCTETS 11

/** Write the message that has a receiver send TIM-TP once a pulse (UBX-CFG-MSG). */
void lp_ubx_enable(uint8_t octets[LP_UBX_ENABLE_OCTETS]);

#endif
