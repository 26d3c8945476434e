/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads the GNSS receiver: octets to sentences, sentences to the second of a pulse. */

#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>

#include "discipline.h"
#include "second/nmea.h"

/* At 115200 baud the FIFO of 64 octets lasts 5.5 ms, of which the servo may take 4. No interrupt: Zephyr's driver may
 * lose an octet in its own.
 */
#define POLL_MS 1
#define STACK 1024
#define PRIORITY 2

static void receive(void *p1, void *p2, void *p3)
{
	const struct device *uart = DEVICE_DT_GET(DT_NODELABEL(gnss));
	static struct lp_nmea parser;
	struct lp_nmea_time time;
	uint64_t began_ms = 0;
	uint32_t refused = 0;
	unsigned char octet;

	ARG_UNUSED(p1);
	ARG_UNUSED(p2);
	ARG_UNUSED(p3);
	lp_nmea_clear(&parser);
	for (;;) {
		while (uart_poll_in(uart, &octet) == 0) {
			if (octet == '$') {
				began_ms = discipline_ms();
			}
			if (lp_nmea_octet(&parser, octet, &time)) {
				discipline_sentence(&time, began_ms);
			}
		}
		if (parser.refused != refused) {
			refused = parser.refused;
			discipline_garbage(discipline_ms());
		}
		k_msleep(POLL_MS);
	}
}

K_THREAD_DEFINE(receiver_thread, STACK, receive, NULL, NULL, NULL, PRIORITY, 0, 0);
