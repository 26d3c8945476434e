/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Reads the GNSS receiver: octets to sentences and messages, sentences to the second of a pulse,
 * messages to the quantisation error of the next one.
 */

#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>

#include "discipline.h"
#include "second/nmea.h"
#include "second/ubx.h"

LOG_MODULE_REGISTER(receiver, LOG_LEVEL_INF);

/*
 * At 115200 baud the FIFO of 64 octets lasts 5.5 ms, of which the servo may take 4. No interrupt:
 * Zephyr's driver may lose an octet in its own.
 */
#define POLL_MS  1
#define STACK    1536
/*
 * So often a receiver that is silent about its pulses is asked to speak. Others than u-blox's don't
 * mind.
 */
#define ASK_MS   10000
#define PRIORITY 2

static const struct device *const uart = DEVICE_DT_GET(DT_NODELABEL(gnss));
static struct lp_nmea nmea;
static struct lp_ubx ubx;
/* When the sentence began that is coming in. */
static uint64_t began_ms;

/* When to ask it next. */
static uint64_t ask_ms;

static void take(uint8_t octet)
{
	struct lp_nmea_time time;
	struct lp_ubx_pulse pulse;

	switch (lp_ubx_octet(&ubx, octet, &pulse)) {
	case LP_UBX_PULSE:
		discipline_pulse(&pulse, discipline_ms());
		ask_ms = discipline_ms() + ASK_MS;
		return;
	case LP_UBX_TAKEN:
		return;
	default:
		break;
	}
	if (octet == '$') {
		began_ms = discipline_ms();
	}
	if (lp_nmea_octet(&nmea, octet, &time)) {
		discipline_sentence(&time, began_ms);
	}
}

/* The FIFO towards the receiver takes all of it. */
static void ask(void)
{
	uint8_t octets[LP_UBX_ENABLE_OCTETS];

	lp_ubx_enable(octets);
	for (size_t i = 0; i < sizeof(octets); i++) {
		uart_poll_out(uart, octets[i]);
	}
}

static void receive(void *p1, void *p2, void *p3)
{
	uint32_t refused = 0;
	unsigned char octet;

	ARG_UNUSED(p1);
	ARG_UNUSED(p2);
	ARG_UNUSED(p3);
	if (!device_is_ready(uart)) {
		LOG_ERR("%s isn't ready: no second is known", uart->name);
		return;
	}
	lp_nmea_clear(&nmea);
	lp_ubx_clear(&ubx);
	for (;;) {
		while (uart_poll_in(uart, &octet) == 0) {
			take(octet);
		}
		if (nmea.refused + ubx.refused != refused) {
			refused = nmea.refused + ubx.refused;
			discipline_garbage(discipline_ms());
		}
		if (IS_ENABLED(CONFIG_LITEPROBE_UBX) && discipline_ms() >= ask_ms) {
			ask_ms = discipline_ms() + ASK_MS;
			ask();
		}
		k_msleep(POLL_MS);
	}
}

K_THREAD_DEFINE(receiver_thread, STACK, receive, NULL, NULL, NULL, PRIORITY, 0, 0);
