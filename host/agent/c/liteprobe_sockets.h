/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* The sockets of an agent: for requests, for values that are pushed, and one that says whose keys are good. */

#ifndef LITEPROBE_SOCKETS_H_
#define LITEPROBE_SOCKETS_H_

#include "liteprobe_message.h"

#define LPA_ADDRESS_SIZE 300
#define LPA_IDENTITY_MOST 255
#define LPA_TOPIC_MOST (LPA_NAME_MOST + 1)

struct lpa_identity {
	size_t length;
	uint8_t octets[LPA_IDENTITY_MOST];
};

struct lpa_sockets {
	void *context;
	void *requests;
	void *values;
	void *access;
	uint8_t (*clients)[32];
	size_t client_count;
	char address[LPA_ADDRESS_SIZE];
	uint16_t values_port;
	uint64_t denied;
	uint64_t unsent;
};

/** What lpa_sockets_poll found. */
struct lpa_ready {
	bool runner;
	bool requests;
	bool values;
};

int lpa_sockets_open(struct lpa_sockets *sockets, const struct lpa_config *config, char *why);
void lpa_sockets_close(struct lpa_sockets *sockets);

/** Wait, `wait_ms` at most (-1: for ever); answers who asks whose keys are good. Returns 0, or -1 when the sockets fail. */
int lpa_sockets_poll(struct lpa_sockets *sockets, int runner_fd, long wait_ms, bool with_requests,
		     struct lpa_ready *ready);

/** Take a message; returns the number of its frames that are kept, or -1: there is none. */
int lpa_sockets_receive(struct lpa_sockets *sockets, struct lpa_identity *identity,
			struct lpa_frame frames[LPA_FRAMES_KEPT]);

/** Send an answer. */
void lpa_sockets_send(struct lpa_sockets *sockets, const struct lpa_identity *identity, const struct lpa_packed *answer);

/** Send a value to all who watch it. */
void lpa_sockets_push(struct lpa_sockets *sockets, const struct lpa_packed *frames);

/** Take a topic that somebody began to watch, or that nobody watches any more; false: there is none. */
bool lpa_sockets_subscription(struct lpa_sockets *sockets, char topic[LPA_TOPIC_MOST + 1], bool *is_wanted);

#endif
