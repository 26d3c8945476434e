/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include <zephyr/ztest.h>

#include "frame.h"

ZTEST_SUITE(frame, NULL, NULL, NULL, NULL, NULL);

ZTEST(frame, test_header_has_its_lengths_and_a_right_checksum)
{
	uint8_t header[FRAME_HEADER];
	uint32_t sum = 0;

	frame_header(header, 1514, 0xfffe);
	for (int n = 14; n < 34; n += 2) {
		sum += (uint32_t)header[n] << 8 | header[n + 1];
	}
	zassert_equal((sum & 0xffff) + (sum >> 16), 0xffff);
	zassert_equal(header[16] << 8 | header[17], 1500);
	zassert_equal(header[38] << 8 | header[39], 1480);
	zassert_equal(header[FRAME_HEADER - 2] << 8 | header[FRAME_HEADER - 1], 0xfffe);
}

ZTEST(frame, test_interval_is_in_ticks_of_the_disciplined_clock)
{
	uint32_t ticks, fraction;

	frame_interval(20000, 8ULL << 40, &ticks, &fraction);
	zassert_equal(ticks, 2500);
	zassert_equal(fraction, 0);
	/* A tick of 10 ns less 2^-40: a hair above 2000 of them. */
	frame_interval(20000, (10ULL << 40) - 256, &ticks, &fraction);
	zassert_equal(ticks, 2000);
	zassert_within(fraction, 200, 8);
}

ZTEST(frame, test_rate_counts_all_octets_on_the_wire)
{
	zassert_equal(frame_rate(101, 1514, 2000000), 615200000);
	zassert_equal(frame_rate(1, 1514, 2000000), 0);
	/* Bits times 10^9 don't fit 64 bits. */
	zassert_equal(frame_rate(5000001, 1514, 100000000000ULL), 615200000);
}

/* The sum of all words of an IPv4 header, its checksum among them, is 0xffff (RFC 1071). */
static uint32_t header_sum(const uint8_t *header)
{
	uint32_t sum = 0;

	for (int i = 14; i < 34; i += 2) {
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	}
	while (sum > 0xffff) {
		sum = (sum & 0xffff) + (sum >> 16);
	}

	return sum;
}

ZTEST(frame, test_addresses_are_put_in_and_summed)
{
	static const uint8_t target[] = {2, 0, 0, 0, 0, 0x0b, 2, 0, 0, 0, 0, 0x0a};
	static const uint8_t ips[] = {10, 1, 2, 3, 10, 1, 2, 250};
	struct frame_addresses addresses;
	uint8_t header[FRAME_HEADER];

	frame_header(header, 60, 1);
	zassert_equal(header_sum(header), 0xffff);
	zassert_true(frame_read_mac("02:00:00:00:00:0a", addresses.source_mac));
	zassert_true(frame_read_mac("2:0:0:0:0:B", addresses.target_mac));
	zassert_true(frame_read_ip("10.1.2.3", addresses.source_ip));
	zassert_true(frame_read_ip("10.1.2.250", addresses.target_ip));
	frame_address(header, &addresses);
	zassert_mem_equal(header, target, sizeof(target));
	zassert_mem_equal(&header[26], ips, sizeof(ips));
	zassert_equal(header_sum(header), 0xffff);
}

ZTEST(frame, test_what_is_no_address_is_refused)
{
	static const char *const macs[] = {
		"", "02", "02:00:00:00:00", "02:00:00:00:00:0a:", "02:00:00:00:00:100", "x"};
	static const char *const ips[] = {"",           "10.1.2",   "10.1.2.256",
					  "10.1.2.3.4", "10,1,2,3", "10.1.2.-"};
	uint8_t octets[6];

	for (size_t i = 0; i < ARRAY_SIZE(macs); i++) {
		zassert_false(frame_read_mac(macs[i], octets), "%s", macs[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(ips); i++) {
		zassert_false(frame_read_ip(ips[i], octets), "%s", ips[i]);
	}
}
