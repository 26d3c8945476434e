/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A small device with an agent: settings and values of each type, one that refuses and one that hangs. Tests talk to it.
 *
 *   gcc -o device example_device.c liteprobe_*.c -lzmq -lpthread -lm
 *   ./device tcp://127.0.0.1:5580 [LIMIT_MS [SECRET_KEY_FILE CLIENT_KEY_FILE...]]
 *
 * It prints the address at which it listens, and ends at SIGTERM or SIGINT.
 */

#include "liteprobe_agent.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CLIENTS_MOST 16
#define USUAL_LIMIT_MS 5000
#define GAIN_STEP 0.5

static struct lpa_agent *agent;
static atomic_llong sets;
static atomic_llong reads;

static void stop(int number)
{
	(void)number;
	lpa_stop(agent);
}

/* Settings ------------------------------------------------------------------------------------- */

static int take(void *context, struct lpa_value *value, char *why)
{
	(void)context;
	(void)value;
	(void)why;
	sets++;

	return 0;
}

/* A device that has steps of 0.5, and says what it took. */
static int take_gain(void *context, struct lpa_value *value, char *why)
{
	value->real = nearbyint(value->real / GAIN_STEP) * GAIN_STEP;

	return take(context, value, why);
}

static int refuse(void *context, struct lpa_value *value, char *why)
{
	(void)context;
	snprintf(why, LPA_WHY_MOST + 1, "the fuse is blown (%lld)", (long long)value->integer);

	return -1;
}

static int hang(void *context, struct lpa_value *value, char *why)
{
	struct timespec wait = {value->integer / 1000, value->integer % 1000 * 1000000};

	nanosleep(&wait, NULL);

	return take(context, value, why);
}

/* Values --------------------------------------------------------------------------------------- */

static int count_sets(void *context, struct lpa_value *value, char *why)
{
	(void)context;
	(void)why;
	value->integer = sets;

	return 0;
}

/* 1, 2, 3, ...: one more each time it is read. */
static int count_reads(void *context, struct lpa_value *value, char *why)
{
	(void)context;
	(void)why;
	value->integer = ++reads;

	return 0;
}

static int not_finite(void *context, struct lpa_value *value, char *why)
{
	(void)context;
	(void)why;
	value->real = NAN;

	return 0;
}

static const struct lpa_item items[] = {
	{.name = "queue_length", .type = LPA_INT, .is_setting = true, .call = take, .has_range = true,
	 .integer_minimum = 1, .integer_maximum = 1000},
	{.name = "gain", .type = LPA_FLOAT, .is_setting = true, .call = take_gain, .has_range = true,
	 .real_minimum = -10, .real_maximum = 10},
	{.name = "enabled", .type = LPA_BOOL, .is_setting = true, .call = take},
	{.name = "label", .type = LPA_TEXT, .is_setting = true, .call = take},
	{.name = "blob", .type = LPA_OCTETS, .is_setting = true, .call = take},
	{.name = "any", .type = LPA_INT, .is_setting = true, .call = take},
	{.name = "fuse", .type = LPA_INT, .is_setting = true, .call = refuse},
	{.name = "hang_ms", .type = LPA_INT, .is_setting = true, .call = hang, .has_range = true,
	 .integer_minimum = 0, .integer_maximum = 60000},
	{.name = "sets", .type = LPA_INT, .call = count_sets},
	{.name = "reads", .type = LPA_INT, .call = count_reads, .interval_ms = 20},
	{.name = "broken", .type = LPA_FLOAT, .call = not_finite},
};

static int give_up(const char *why)
{
	fprintf(stderr, "%s\n", why);

	return 1;
}

int main(int count, char **words)
{
	static char keys[1 + CLIENTS_MOST][LPA_KEY_SIZE];
	const char *clients[CLIENTS_MOST];
	char why[LPA_WHY_MOST + 1] = "";
	struct lpa_config config = {.name = "example", .limit_ms = USUAL_LIMIT_MS, .clients = clients};
	int result;

	if (count < 2 || count > 4 + CLIENTS_MOST) {
		return give_up("usage: device ADDRESS [LIMIT_MS [SECRET_KEY_FILE CLIENT_KEY_FILE...]]");
	}
	config.address = words[1];
	if (count > 2) {
		config.limit_ms = (uint32_t)strtoul(words[2], NULL, 10);
	}
	for (int n = 3; n < count; n++) {
		if (lpa_read_key(words[n], n == 3 ? "secret-key" : "public-key", keys[n - 3], why)) {
			return give_up(why);
		}
		if (n == 3) {
			config.secret_key = keys[0];
		} else {
			clients[config.client_count++] = keys[n - 3];
		}
	}
	agent = lpa_open(&config, why);
	if (!agent) {
		return give_up(why);
	}
	for (size_t n = 0; n < sizeof(items) / sizeof(items[0]); n++) {
		if (lpa_add(agent, &items[n], why)) {
			return give_up(why);
		}
	}
	signal(SIGTERM, stop);
	signal(SIGINT, stop);
	printf("%s\n", lpa_address(agent));
	fflush(stdout);
	result = lpa_run(agent);
	lpa_close(agent);
	agent = NULL;

	return result ? 1 : 0;
}
