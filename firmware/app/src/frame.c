/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "frame.h"

#include <stdlib.h>
#include <string.h>

#define IPV4          14
#define IPV4_CHECKSUM (IPV4 + 10)
#define IPV4_LENGTH   20
#define UDP           (IPV4 + IPV4_LENGTH)
#define NS_PER_S      1000000000u

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* RFC 1071, section 1. */
static uint16_t checksum(const uint8_t *octets, uint32_t count)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < count; i += 2) {
		sum += (uint32_t)octets[i] << 8 | octets[i + 1];
	}
	while (sum > 0xffff) {
		sum = (sum & 0xffff) + (sum >> 16);
	}

	return (uint16_t)~sum;
}

void frame_header(uint8_t header[FRAME_HEADER], uint16_t length, uint16_t stream_id)
{
	static const uint8_t fixed[FRAME_HEADER] = {
		/* MACs, type. */
		0x02, 0x4c, 0x50, 0x54, 0x00, 0x02, 0x02, 0x4c, 0x50, 0x54, 0x00, 0x01, 0x08, 0x00,
		/* IPv4, not to be cut; from, to. */
		0x45, 0x00, 0x00, 0x00, 0x00, 0x00, 0x40, 0x00, 64, 17, 0x00, 0x00, 198, 18, 0, 1,
		198, 18, 0, 2,
		/* UDP. */
		0xc0, 0x20, 0xc0, 0x21, 0x00, 0x00, 0x00, 0x00,
	};

	memcpy(header, fixed, FRAME_HEADER);
	put16(&header[IPV4 + 2], (uint16_t)(length - IPV4));
	put16(&header[IPV4_CHECKSUM], checksum(&header[IPV4], IPV4_LENGTH));
	put16(&header[UDP + 4], (uint16_t)(length - UDP));
	put16(&header[LP_PROBE_PAYLOAD_IPV4], LP_PROBE_SIGNATURE >> 16);
	put16(&header[LP_PROBE_PAYLOAD_IPV4 + 2], LP_PROBE_SIGNATURE & 0xffff);
	put16(&header[LP_PROBE_PAYLOAD_IPV4 + LP_PROBE_STREAM_ID], stream_id);
}

void frame_address(uint8_t header[FRAME_HEADER], const struct frame_addresses *addresses)
{
	memcpy(&header[0], addresses->target_mac, 6);
	memcpy(&header[6], addresses->source_mac, 6);
	memcpy(&header[IPV4 + 12], addresses->source_ip, 4);
	memcpy(&header[IPV4 + 16], addresses->target_ip, 4);
	put16(&header[IPV4_CHECKSUM], 0);
	put16(&header[IPV4_CHECKSUM], checksum(&header[IPV4], IPV4_LENGTH));
}

/* ``count`` numbers below 256 with a separator between them. */
static bool read_octets(const char *text, uint8_t *octets, int count, char separator, int base)
{
	for (int i = 0; i < count; i++) {
		char *end;
		unsigned long value = strtoul(text, &end, base);

		if (end == text || value > 255 || *end != (i < count - 1 ? separator : '\0')) {
			return false;
		}
		octets[i] = (uint8_t)value;
		text = end + 1;
	}
	return true;
}

bool frame_read_mac(const char *text, uint8_t mac[6])
{
	return read_octets(text, mac, 6, ':', 16);
}

bool frame_read_ip(const char *text, uint8_t ip[4])
{
	return read_octets(text, ip, 4, '.', 10);
}

void frame_interval(uint32_t interval_ns, uint64_t increment, uint32_t *ticks, uint32_t *fraction)
{
	/* Both without their 8 lowest bits, 2^-32 ns: the quotient is right to 2^-32 of itself. */
	uint64_t divisor = increment >> 8;
	uint64_t dividend = (uint64_t)interval_ns << 32;
	uint64_t rest = dividend % divisor;

	*ticks = (uint32_t)(dividend / divisor);
	*fraction = (uint32_t)((rest << 28) / (divisor >> 4));
}

uint64_t frame_rate(uint32_t frames, uint16_t length, uint64_t span_ns)
{
	if (frames < 2 || span_ns == 0) {
		return 0;
	}
	uint64_t bits = (uint64_t)(frames - 1) * 8 * (length + LP_WIRE_OVERHEAD);

	/*
	 * Both without low digits, of which 2^-33 of the rate is left out, until the product fits.
	 */
	while (bits > UINT64_MAX / NS_PER_S) {
		bits >>= 1;
		span_ns >>= 1;
	}

	return span_ns == 0 ? 0 : bits * NS_PER_S / span_ns;
}
