/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * What stands in a probe frame before its sequence, and intervals in ticks. Plain C, no Zephyr:
 * tested on the host.
 */

#ifndef LITEPROBE_APP_FRAME_H_
#define LITEPROBE_APP_FRAME_H_

#include <stdbool.h>
#include <stdint.h>

#include <liteprobe/generated/formats.h>

/** Octets of the headers, up to and with the stream id: IPv4, no VLAN tag. */
#define FRAME_HEADER (LP_PROBE_PAYLOAD_IPV4 + LP_PROBE_SEQUENCE)

/**
 * Write the headers of a frame of `length` octets (without FCS), as the host's do: IPv4, UDP
 * without checksum, addresses of the network of benchmarks (RFC 2544, C.2.2).
 */
void frame_header(uint8_t header[FRAME_HEADER], uint16_t length, uint16_t stream_id);

/** Of both ends, in the order of the wire. */
struct frame_addresses {
	uint8_t source_mac[6];
	uint8_t target_mac[6];
	uint8_t source_ip[4];
	uint8_t target_ip[4];
};

/** Put other addresses into headers of frame_header(). */
void frame_address(uint8_t header[FRAME_HEADER], const struct frame_addresses *addresses);

/** Read `aa:bb:cc:dd:ee:ff`; return whether it is that. */
bool frame_read_mac(const char *text, uint8_t mac[6]);

/** Read `a.b.c.d`; return whether it is that. */
bool frame_read_ip(const char *text, uint8_t ip[4]);

/**
 * Turn an interval of disciplined time into ticks and 2^-32 ticks, rounded down; `increment` is ns
 * a tick, 8.40.
 */
void frame_interval(uint32_t interval_ns, uint64_t increment, uint32_t *ticks, uint32_t *fraction);

/**
 * Return the rate (b/s) at which `frames` of `length` octets came, first to last SFD in `span_ns`;
 * 0 when it is none.
 */
uint64_t frame_rate(uint32_t frames, uint16_t length, uint64_t span_ns);

#endif
