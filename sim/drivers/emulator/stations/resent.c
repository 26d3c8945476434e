/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

#include "resent.h"

#include "site.h"

#define ETHERNET 14
#define IPV4     20
#define TCP      6
#define FIN      0x01
#define SYN      0x02

uint32_t resent_segments;

/* What comes next on each connection, by the client's port, since its SYN. */
static uint32_t next_sequence[65536];
static uint8_t is_known[65536];

static uint32_t read(const uint8_t *octets, unsigned int count)
{
	uint32_t value = 0;

	for (unsigned int i = 0; i < count; i++) {
		value = value << 8 | octets[i];
	}

	return value;
}

void resent_look(const uint8_t *frame, unsigned int length)
{
	const uint8_t *packet = frame + ETHERNET, *segment = packet + IPV4;
	uint32_t source, port, sequence, end;

	if (length < ETHERNET + IPV4 + 20 || read(frame + 12, 2) != 0x0800 || packet[9] != TCP) {
		return;
	}
	source = read(segment, 2);
	port = source == HTTP_PORT ? read(segment + 2, 2) : source;
	sequence = read(segment + 4, 4);
	end = sequence + read(packet + 2, 2) - IPV4 - 4 * (segment[12] >> 4) + !!(segment[13] & SYN) + !!(segment[13] & FIN);
	if (end == sequence) {
		return; /* An acknowledgement alone. */
	}
	if (segment[13] & SYN && (!is_known[port] || next_sequence[port] != end)) {
		is_known[port] = 1;
		next_sequence[port] = sequence;
	} else if (segment[13] & SYN) {
		resent_segments++;
		return;
	}
	if ((int32_t)(sequence - next_sequence[port]) < 0) {
		resent_segments++;
	}
	if ((int32_t)(end - next_sequence[port]) > 0) {
		next_sequence[port] = end;
	}
}
