/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Serves EDGES pulses, some of them outliers, some missing, so that the instructions of the servo
 * can be counted on its processor. Needs no C library: `_start` and the end are Linux's, the four
 * functions that gcc may call are here.
 */

#include <stddef.h>

#include "servo/servo.h"

void *memset(void *to, int value, size_t count)
{
	unsigned char *octet = to;

	while (count-- > 0) {
		*octet++ = (unsigned char)value;
	}
	return to;
}

void *memcpy(void *to, const void *from, size_t count)
{
	unsigned char *octet = to;
	const unsigned char *source = from;

	while (count-- > 0) {
		*octet++ = *source++;
	}
	return to;
}

void *memmove(void *to, const void *from, size_t count)
{
	unsigned char *octet = to;
	const unsigned char *source = from;

	if (octet <= source) {
		return memcpy(to, from, count);
	}
	while (count-- > 0) {
		octet[count] = source[count];
	}
	return to;
}

static void leave(int status)
{
	register int number __asm__("a7") = 93;
	register int value __asm__("a0") = status;

	__asm__ volatile("ecall" : : "r"(number), "r"(value));
}

void _start(void)
{
	struct lp_servo_config config;
	struct lp_servo servo;
	struct lp_servo_output out = {.state = LP_SERVO_LOCKED};
	uint32_t noise = 1;
	uint64_t ticks = 0;

	lp_servo_defaults(&config);
	if (lp_servo_init(&servo, &config) != 0) {
		leave(2);
	}
	for (int number = 1; number <= EDGES; number++) {
		struct lp_servo_edge edge = {.latency = 100000};
		uint32_t late;

		noise = noise * 1664525u + 1013904223u;
		ticks += 125002500;
		late = (noise >> 31) + (number % 25 == 24 ? 100 : 0);
		edge.stamp.ticks = ticks + late;
		/* As if the clock were right already. */
		edge.stamp.now = (uint64_t)number * 1000000000u + late * 8;
		if (number % 20 == 19) {
			edge.stamp.ticks += 62501250;
			edge.stamp.now += 500000000;
			lp_servo_silence(&servo, &edge.stamp, edge.latency, &out);
		} else {
			lp_servo_edge(&servo, &edge, &out);
		}
	}
	/* A run that didn't do the work must not count. */
	leave(EDGES > 0 && out.state != LP_SERVO_LOCKED ? 1 : 0);
}
