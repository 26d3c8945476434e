/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An agent at a device under test, in C on libzmq: the same protocol as the Python one (docs/agent.md).
 *
 * Settings and values have callbacks, which run one at a time in a thread of the library. One that does not return in time
 * is answered for with an error; another thread then takes the next, and the item of that callback is refused until it
 * returns. Functions return 0, or -1 with the reason in `why`.
 */

#ifndef LITEPROBE_AGENT_H_
#define LITEPROBE_AGENT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LPA_OCTETS_MOST 1024
#define LPA_WHY_MOST 256
#define LPA_NAME_MOST 63
/* The agent's own counters included. */
#define LPA_ITEMS_MOST 256
#define LPA_KEY_SIZE 41

enum lpa_type {
	LPA_INT = 1,
	LPA_FLOAT = 2,
	LPA_BOOL = 3,
	LPA_TEXT = 4,
	LPA_OCTETS = 5,
};

/** A value of one of the types. */
struct lpa_value {
	enum lpa_type type;
	int64_t integer;
	double real;
	bool truth;
	/** Octets of a text (UTF-8, no NUL in it; a NUL follows it here) or of octets. */
	size_t length;
	uint8_t octets[LPA_OCTETS_MOST + 1];
};

/**
 * Set a setting to `value`, and write to `value` what the device took of it; or write a value that is read to `value`,
 * whose type is set already.
 *
 * @retval 0 done
 * @retval -1 refused; `why` (LPA_WHY_MOST + 1 octets, empty before) says why, in UTF-8
 */
typedef int (*lpa_callback)(void *context, struct lpa_value *value, char *why);

/** A setting, or a value. What it points to must last as long as the agent. */
struct lpa_item {
	const char *name;
	enum lpa_type type;
	bool is_setting;
	lpa_callback call;
	void *context;
	/** Range of a setting of type LPA_INT or LPA_FLOAT, if it has one. */
	bool has_range;
	int64_t integer_minimum;
	int64_t integer_maximum;
	double real_minimum;
	double real_maximum;
	/** A value is read and pushed so often (ms) where somebody watches it; 0: it can't be watched. */
	uint32_t interval_ms;
};

struct lpa_config {
	/** Of the device, as scripts see it. */
	const char *name;
	/** tcp://HOST:PORT; port 0: a free one. Anything but loopback needs keys. */
	const char *address;
	/** Time limit of a callback, waiting for others included (ms): 1 to 3600000. */
	uint32_t limit_ms;
	/** The agent's secret key (Z85), and the public keys of those who may talk to it; NULL and 0: no keys. */
	const char *secret_key;
	const char *const *clients;
	size_t client_count;
};

struct lpa_agent;

/** Return an agent that listens, or NULL. `why`: LPA_WHY_MOST + 1 octets. */
struct lpa_agent *lpa_open(const struct lpa_config *config, char *why);

/** Offer an item; before lpa_run. */
int lpa_add(struct lpa_agent *agent, const struct lpa_item *item, char *why);

/** Return where it listens, with the port that was taken. */
const char *lpa_address(const struct lpa_agent *agent);

/** Serve until lpa_stop; returns 0, or -1 when the sockets fail. */
int lpa_run(struct lpa_agent *agent);

/** End lpa_run; may be called from any thread, and from the handler of a signal. */
void lpa_stop(struct lpa_agent *agent);

/** Free everything; a callback that hangs keeps its own thread, and what that needs, until it returns. */
void lpa_close(struct lpa_agent *agent);

/** Read a key of a file that `liteprobe agent keys` wrote; `which`: "public-key" or "secret-key". */
int lpa_read_key(const char *path, const char *which, char key[LPA_KEY_SIZE], char *why);

#endif
