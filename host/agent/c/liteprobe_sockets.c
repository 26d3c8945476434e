/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

#include "liteprobe_sockets.h"

#include "liteprobe_items.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

#define DOMAIN "liteprobe"
#define HANDSHAKE_MS 10000
#define QUEUE 10000
#define LINGER_MS 200
#define ACCESS_FRAMES 7
#define ACCESS_FRAME 512

/* Addresses ------------------------------------------------------------------------------------ */

static bool is_loopback(const char *host)
{
	struct in_addr four;
	struct in6_addr six;

	if (inet_pton(AF_INET, host, &four) == 1) {
		return ntohl(four.s_addr) >> 24 == 127;
	}
	if (inet_pton(AF_INET6, host, &six) == 1) {
		return IN6_IS_ADDR_LOOPBACK(&six);
	}

	return !strcmp(host, "localhost");
}

/* Split tcp://HOST:PORT; the host is without brackets. */
static int split(const char *address, char host[LPA_ADDRESS_SIZE], bool *is_ipv6)
{
	const char *rest = address + strlen("tcp://");
	const char *colon = strrchr(address, ':');
	size_t length;
	char *end;

	if (strlen(address) >= LPA_ADDRESS_SIZE - 8 || strncmp(address, "tcp://", strlen("tcp://")) || colon <= rest) {
		return -1;
	}
	if (colon[1] < '0' || colon[1] > '9' || strtoul(colon + 1, &end, 10) > 65535 || *end) {
		return -1;
	}
	length = (size_t)(colon - rest);
	*is_ipv6 = rest[0] == '[';
	if (*is_ipv6) {
		if (rest[length - 1] != ']' || length < 3) {
			return -1;
		}
		rest++;
		length -= 2;
	}
	memcpy(host, rest, length);
	host[length] = 0;

	return strpbrk(host, "*;/ ") ? -1 : 0;
}

/* Opening -------------------------------------------------------------------------------------- */

static void set(void *socket, int option, int value)
{
	zmq_setsockopt(socket, option, &value, sizeof(value));
}

static void *listener(struct lpa_sockets *sockets, int kind, const struct lpa_config *config, bool is_ipv6)
{
	void *socket = zmq_socket(sockets->context, kind);
	int64_t most = LPA_FRAME_MOST;

	if (!socket) {
		return NULL;
	}
	zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &most, sizeof(most));
	set(socket, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS);
	set(socket, ZMQ_SNDHWM, QUEUE);
	set(socket, ZMQ_LINGER, LINGER_MS);
	set(socket, ZMQ_IPV6, is_ipv6);
	if (config->secret_key) {
		set(socket, ZMQ_CURVE_SERVER, 1);
		if (zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, config->secret_key, strlen(config->secret_key) + 1) ||
		    zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, DOMAIN, strlen(DOMAIN))) {
			zmq_close(socket);
			return NULL;
		}
	}

	return socket;
}

static int take_clients(struct lpa_sockets *sockets, const struct lpa_config *config, char *why)
{
	sockets->clients = calloc(config->client_count ? config->client_count : 1, sizeof(*sockets->clients));
	if (!sockets->clients) {
		return lpa_fail(why, "%s", "no memory for the keys of clients");
	}
	for (size_t n = 0; n < config->client_count; n++) {
		if (strlen(config->clients[n]) != LPA_KEY_SIZE - 1 ||
		    !zmq_z85_decode(sockets->clients[n], config->clients[n])) {
			return lpa_fail(why, "'%s' is not a key: make them with 'liteprobe agent keys NAME'", config->clients[n]);
		}
	}
	sockets->client_count = config->client_count;

	return 0;
}

static int check(const struct lpa_config *config, char host[LPA_ADDRESS_SIZE], bool *is_ipv6, char *why)
{
	if (split(config->address, host, is_ipv6)) {
		return lpa_fail(why, "'%s' is not an address of an agent: write it like tcp://127.0.0.1:5580", config->address);
	}
	if (!config->secret_key != !config->client_count) {
		return lpa_fail(why, "%s", "the key of the agent and keys of its clients belong together: give both, or none");
	}
	if (!config->secret_key && !is_loopback(host)) {
		return lpa_fail(why, "%s can be reached by others, so both ends need keys: make them with 'liteprobe agent keys NAME'",
			    config->address);
	}
	if (config->secret_key && strlen(config->secret_key) != LPA_KEY_SIZE - 1) {
		return lpa_fail(why, "%s", "the secret key does not have 40 characters: make one with 'liteprobe agent keys NAME'");
	}
	if (config->secret_key && zmq_has("curve") != 1) {
		return lpa_fail(why, "%s", "this libzmq has no CURVE: install one that was built with libsodium");
	}

	return 0;
}

int lpa_sockets_open(struct lpa_sockets *sockets, const struct lpa_config *config, char *why)
{
	char host[LPA_ADDRESS_SIZE];
	char values[LPA_ADDRESS_SIZE];
	size_t size = sizeof(sockets->address);
	bool is_ipv6;

	*sockets = (struct lpa_sockets){0};
	if (check(config, host, &is_ipv6, why) || take_clients(sockets, config, why)) {
		return -1;
	}
	sockets->context = zmq_ctx_new();
	sockets->access = zmq_socket(sockets->context, ZMQ_REP);
	sockets->requests = listener(sockets, ZMQ_ROUTER, config, is_ipv6);
	sockets->values = listener(sockets, ZMQ_XPUB, config, is_ipv6);
	if (!sockets->access || !sockets->requests || !sockets->values ||
	    zmq_bind(sockets->access, "inproc://zeromq.zap.01")) {
		return lpa_fail(why, "cannot make the sockets of an agent (%s)", zmq_strerror(zmq_errno()));
	}
	set(sockets->requests, ZMQ_ROUTER_MANDATORY, 1);
	/* libzmq binds to numbers and interfaces alone. */
	snprintf(sockets->address, size, is_ipv6 ? "tcp://[%.255s]%s" : "tcp://%.255s%s",
		 strcmp(host, "localhost") ? host : "127.0.0.1", strrchr(config->address, ':'));
	snprintf(values, sizeof(values), "%.*s:*", (int)(strrchr(sockets->address, ':') - sockets->address), sockets->address);
	if (zmq_bind(sockets->requests, sockets->address) || zmq_bind(sockets->values, values)) {
		snprintf(why, LPA_WHY_MOST + 1, "cannot listen at %.150s (%s): give another address or port", config->address,
			 zmq_strerror(zmq_errno()));
		return -1;
	}
	zmq_getsockopt(sockets->requests, ZMQ_LAST_ENDPOINT, sockets->address, &size);
	size = sizeof(values);
	zmq_getsockopt(sockets->values, ZMQ_LAST_ENDPOINT, values, &size);
	sockets->values_port = (uint16_t)strtoul(strrchr(values, ':') + 1, NULL, 10);

	return 0;
}

void lpa_sockets_close(struct lpa_sockets *sockets)
{
	void *all[] = {sockets->access, sockets->requests, sockets->values};

	for (size_t n = 0; n < sizeof(all) / sizeof(all[0]); n++) {
		if (all[n]) {
			zmq_close(all[n]);
		}
	}
	if (sockets->context) {
		zmq_ctx_term(sockets->context);
	}
	free(sockets->clients);
	*sockets = (struct lpa_sockets){0};
}

/* Waiting, and who may connect ----------------------------------------------------------------- */

/* Read a frame; what is longer than `size` is cut. Returns its length as it is kept, -1: there is none. */
static int read_frame(void *socket, void *octets, size_t size, int flags, bool *is_more)
{
	int more = 0;
	size_t more_size = sizeof(more);
	int length = zmq_recv(socket, octets, size, flags);

	if (length < 0) {
		return -1;
	}
	zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &more_size);
	*is_more = more;

	return (size_t)length < size ? length : (int)size;
}

/* Answer libzmq, which asks of each connection whether its key is good (ZeroMQ RFC 27). */
static void say_access(struct lpa_sockets *sockets)
{
	uint8_t frames[ACCESS_FRAMES][ACCESS_FRAME];
	int lengths[ACCESS_FRAMES] = {0};
	uint8_t rest[ACCESS_FRAME];
	bool is_more = true, is_good = false;
	const char *text;

	for (int n = 0; is_more; n++) {
		uint8_t *frame = n < ACCESS_FRAMES ? frames[n] : rest;
		int length = read_frame(sockets->access, frame, ACCESS_FRAME, n ? 0 : ZMQ_DONTWAIT, &is_more);

		if (length < 0) {
			return;
		}
		if (n < ACCESS_FRAMES) {
			lengths[n] = length;
		}
	}
	if (lengths[5] == 5 && !memcmp(frames[5], "CURVE", 5) && lengths[6] == 32) {
		for (size_t n = 0; n < sockets->client_count; n++) {
			is_good |= !memcmp(frames[6], sockets->clients[n], 32);
		}
	}
	sockets->denied += !is_good;
	text = is_good ? "OK" : "this key is not in the list of the agent";
	zmq_send(sockets->access, frames[0], (size_t)lengths[0], ZMQ_SNDMORE);
	zmq_send(sockets->access, frames[1], (size_t)lengths[1], ZMQ_SNDMORE);
	zmq_send(sockets->access, is_good ? "200" : "400", 3, ZMQ_SNDMORE);
	zmq_send(sockets->access, text, strlen(text), ZMQ_SNDMORE);
	zmq_send(sockets->access, "", 0, ZMQ_SNDMORE);
	zmq_send(sockets->access, "", 0, 0);
}

int lpa_sockets_poll(struct lpa_sockets *sockets, int runner_fd, long wait_ms, bool with_requests,
		     struct lpa_ready *ready)
{
	zmq_pollitem_t items[] = {
		{.fd = runner_fd, .events = ZMQ_POLLIN},
		{.socket = sockets->access, .events = ZMQ_POLLIN},
		{.socket = sockets->values, .events = ZMQ_POLLIN},
		{.socket = sockets->requests, .events = ZMQ_POLLIN},
	};

	*ready = (struct lpa_ready){0};
	if (zmq_poll(items, with_requests ? 4 : 3, wait_ms) < 0) {
		return zmq_errno() == EINTR ? 0 : -1;
	}
	if (items[1].revents) {
		say_access(sockets);
	}
	ready->runner = items[0].revents;
	ready->values = items[2].revents;
	ready->requests = with_requests && items[3].revents;

	return 0;
}

/* Messages ------------------------------------------------------------------------------------- */

int lpa_sockets_receive(struct lpa_sockets *sockets, struct lpa_identity *identity,
			struct lpa_frame frames[LPA_FRAMES_KEPT])
{
	static uint8_t rest[1];
	bool is_more;
	int length = read_frame(sockets->requests, identity->octets, sizeof(identity->octets), ZMQ_DONTWAIT, &is_more);
	int kept = 0;

	if (length < 0) {
		return -1;
	}
	identity->length = (size_t)length;
	while (is_more) {
		struct lpa_frame *frame = kept < LPA_FRAMES_KEPT ? &frames[kept] : NULL;

		length = read_frame(sockets->requests, frame ? frame->octets : rest, frame ? LPA_FRAME_MOST : sizeof(rest), 0,
				    &is_more);
		if (length < 0) {
			return -1;
		}
		if (frame) {
			frame->length = (size_t)length;
			kept++;
		}
	}

	return kept;
}

static int send_packed(void *socket, const struct lpa_packed *packed)
{
	size_t at = 0, length = 0;
	const uint8_t *frame = lpa_unpack(packed, &at, &length);

	while (frame) {
		size_t this_length = length;
		const uint8_t *after = lpa_unpack(packed, &at, &length);

		if (zmq_send(socket, frame, this_length, ZMQ_DONTWAIT | (after ? ZMQ_SNDMORE : 0)) < 0) {
			return -1;
		}
		frame = after;
	}

	return 0;
}

void lpa_sockets_send(struct lpa_sockets *sockets, const struct lpa_identity *identity, const struct lpa_packed *answer)
{
	if (zmq_send(sockets->requests, identity->octets, identity->length, ZMQ_DONTWAIT | ZMQ_SNDMORE) < 0 ||
	    send_packed(sockets->requests, answer)) {
		sockets->unsent++;
	}
}

void lpa_sockets_push(struct lpa_sockets *sockets, const struct lpa_packed *frames)
{
	/* Who takes no more misses it, and sees that by its number. */
	send_packed(sockets->values, frames);
}

bool lpa_sockets_subscription(struct lpa_sockets *sockets, char topic[LPA_TOPIC_MOST + 1], bool *is_wanted)
{
	uint8_t change[1 + LPA_TOPIC_MOST + 1];
	bool is_more;
	int length;

	while ((length = read_frame(sockets->values, change, sizeof(change), ZMQ_DONTWAIT, &is_more)) >= 0) {
		/* A topic is a name and a NUL; anything else is nobody's. */
		if (length < 3 || (size_t)length == sizeof(change) || change[0] > 1 || change[length - 1] ||
		    !lpa_is_name(change + 1, (size_t)length - 2)) {
			continue;
		}
		memcpy(topic, change + 1, (size_t)length - 1);
		*is_wanted = change[0];
		return true;
	}

	return false;
}
