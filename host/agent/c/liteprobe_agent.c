/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

#include "liteprobe_agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "liteprobe_items.h"
#include "liteprobe_runner.h"
#include "liteprobe_sessions.h"
#include "liteprobe_sockets.h"

#define NS_PER_MS 1000000u
#define TURN 64
#define ROLE_SETTING 1
#define ROLE_VALUE 2
#define ROLE_WATCHED 3

struct lpa_agent {
	char name[LPA_WHY_MOST + 1];
	uint32_t limit_ms;
	uint64_t instance;
	volatile bool is_stopping;
	struct lpa_sockets sockets;
	struct lpa_runner runner;
	struct lpa_sessions sessions;
	uint64_t requests;
	uint64_t malformed;
	uint64_t skipped;
	size_t count;
	struct lpa_entry entries[LPA_ITEMS_MOST];
};

/* Items ---------------------------------------------------------------------------------------- */

static struct lpa_entry *find(struct lpa_agent *agent, const char *name)
{
	for (size_t n = 0; n < agent->count; n++) {
		if (!strcmp(agent->entries[n].item.name, name)) {
			return &agent->entries[n];
		}
	}

	return NULL;
}

static void add_own(struct lpa_agent *agent, const char *name, const uint64_t *count)
{
	agent->entries[agent->count++] = (struct lpa_entry){.item = {.name = name, .type = LPA_INT}, .count = count};
}

int lpa_add(struct lpa_agent *agent, const struct lpa_item *item, char *why)
{
	if (lpa_item_check(item, why)) {
		return -1;
	}
	if (find(agent, item->name)) {
		return lpa_fail(why, "there is a '%s' already: give another name", item->name);
	}
	if (agent->count == LPA_ITEMS_MOST) {
		return lpa_fail(why, "there is no place for '%s': an agent has 256 settings and values at most", item->name);
	}
	agent->entries[agent->count++] = (struct lpa_entry){.item = *item};

	return 0;
}

/* Answers -------------------------------------------------------------------------------------- */

/* Keep the answer to a request that was taken, and send it. */
static void answer(struct lpa_agent *agent, uint64_t session, struct lpa_packed *frames)
{
	lpa_sockets_send(&agent->sockets, lpa_sessions_answer(&agent->sessions, session, frames), frames);
}

static void answer_value(struct lpa_agent *agent, const struct lpa_request *request, const struct lpa_value *value,
			 const struct lpa_times *times)
{
	struct lpa_packed frames = {0};
	uint8_t frame[LPA_VALUE_MOST];

	lpa_pack_header(&frames, request->kind, LPA_OK, request->session, request->number, times);
	lpa_pack(&frames, frame, lpa_put_value(value, frame));
	answer(agent, request->session, &frames);
}

static void answer_error(struct lpa_agent *agent, const struct lpa_request *request, enum lpa_status status,
			 const char *why)
{
	struct lpa_packed frames = {0};
	struct lpa_times now = lpa_now();

	lpa_pack_error(&frames, request, status, &now, why);
	answer(agent, request->session, &frames);
}

static void describe(struct lpa_agent *agent, const struct lpa_request *request)
{
	struct lpa_packed frames = {0};
	struct lpa_times now = lpa_now();
	uint8_t frame[8 + LPA_NAME_MOST];

	lpa_pack_header(&frames, request->kind, LPA_OK, request->session, request->number, &now);
	lpa_put(frame, agent->limit_ms, 4);
	lpa_put(frame + 4, agent->sockets.values_port, 2);
	lpa_put(frame + 6, agent->count, 2);
	lpa_pack(&frames, frame, 8);
	lpa_pack(&frames, agent->name, strlen(agent->name));
	for (size_t n = 0; n < agent->count; n++) {
		const struct lpa_item *item = &agent->entries[n].item;

		frame[0] = item->is_setting ? ROLE_SETTING : item->interval_ms ? ROLE_WATCHED : ROLE_VALUE;
		frame[1] = (uint8_t)item->type;
		memcpy(frame + 2, item->name, strlen(item->name));
		lpa_pack(&frames, frame, 2 + strlen(item->name));
	}
	answer(agent, request->session, &frames);
}

static void push(struct lpa_agent *agent, const struct lpa_job *job)
{
	struct lpa_entry *entry = job->entry;
	struct lpa_packed frames = {0};
	uint8_t frame[LPA_VALUE_MOST];

	entry->is_pushing = false;
	lpa_pack(&frames, entry->item.name, strlen(entry->item.name) + 1);
	lpa_pack_header(&frames, LPA_PUSH, job->status, agent->instance, ++entry->pushes, &job->times);
	if (job->status == LPA_OK) {
		lpa_pack(&frames, frame, lpa_put_value(&job->value, frame));
	} else {
		lpa_pack_why(&frames, job->why);
	}
	lpa_sockets_push(&agent->sockets, &frames);
	lpa_packed_free(&frames);
}

static void done(void *context, const struct lpa_job *job)
{
	struct lpa_agent *agent = context;
	struct lpa_packed frames = {0};

	if (job->is_push) {
		push(agent, job);
	} else if (job->status == LPA_OK) {
		answer_value(agent, &job->request, &job->value, &job->times);
	} else {
		lpa_pack_error(&frames, &job->request, job->status, &job->times, job->why);
		answer(agent, job->request.session, &frames);
	}
}

/* Requests ------------------------------------------------------------------------------------- */

static void get_at_once(struct lpa_agent *agent, const struct lpa_request *request, const struct lpa_entry *entry)
{
	struct lpa_value value = {.type = LPA_INT};
	struct lpa_times now = lpa_now();
	char why[LPA_WHY_MOST + 1];

	if (entry->count) {
		value.integer = (int64_t)*entry->count;
		answer_value(agent, request, &value, &now);
	} else if (entry->is_set) {
		answer_value(agent, request, &entry->last, &now);
	} else {
		snprintf(why, sizeof(why), "'%s' was not set yet: set it first", entry->item.name);
		answer_error(agent, request, LPA_NOT_SET, why);
	}
}

/* Answer a request, or have its callback run. */
static void serve(struct lpa_agent *agent, const struct lpa_request *request)
{
	struct lpa_entry *entry = find(agent, request->name);
	char why[LPA_WHY_MOST + 1] = "";
	enum lpa_status status = LPA_OK;

	if (request->kind == LPA_HELLO) {
		describe(agent, request);
		return;
	}
	if (!entry) {
		status = LPA_UNKNOWN;
		snprintf(why, sizeof(why), "this device has no '%s': HELLO lists what it has", request->name);
	} else if (request->kind == LPA_SET && !entry->item.is_setting) {
		status = LPA_READ_ONLY;
		snprintf(why, sizeof(why), "'%s' is a value, which is only read", request->name);
	} else if (request->kind == LPA_SET) {
		status = lpa_item_take(&entry->item, &request->value, why);
	} else if (entry->item.is_setting || entry->count) {
		get_at_once(agent, request, entry);
		return;
	}
	if (status == LPA_OK && entry->hangs) {
		status = LPA_BUSY;
		lpa_busy(entry, why);
	}
	if (status != LPA_OK) {
		answer_error(agent, request, status, why);
	} else {
		lpa_runner_submit(&agent->runner, entry, request,
				  lpa_now().monotonic_ns + (uint64_t)agent->limit_ms * NS_PER_MS);
	}
}

static void take(struct lpa_agent *agent, const struct lpa_identity *identity, const struct lpa_frame *frames, size_t count)
{
	struct lpa_request request;
	struct lpa_packed error = {0};
	const struct lpa_packed *again = NULL;
	char why[LPA_WHY_MOST + 1] = "";
	struct lpa_times now;
	enum lpa_status status;

	if (!lpa_is_addressed(frames, count)) {
		agent->malformed++;
		return;
	}
	agent->requests++;
	status = lpa_get_request(frames, count, &request, why);
	agent->malformed += status != LPA_OK;
	if (status == LPA_OK) {
		status = lpa_sessions_take(&agent->sessions, &request, frames, count, identity, &again, why);
	}
	if (status != LPA_OK) {
		now = lpa_now();
		lpa_pack_error(&error, &request, status, &now, why);
		lpa_sockets_send(&agent->sockets, identity, &error);
		lpa_packed_free(&error);
	} else if (!again) {
		serve(agent, &request);
	} else if (again->length) {
		lpa_sockets_send(&agent->sockets, identity, again);
	}
}

/* Pushes --------------------------------------------------------------------------------------- */

static void subscribe(struct lpa_agent *agent)
{
	char topic[LPA_TOPIC_MOST + 1];
	bool is_wanted;

	while (lpa_sockets_subscription(&agent->sockets, topic, &is_wanted)) {
		struct lpa_entry *entry = find(agent, topic);

		if (entry && entry->item.interval_ms && entry->is_watched != is_wanted) {
			entry->is_watched = is_wanted;
			entry->due_ns = lpa_now().monotonic_ns;
		}
	}
}

static void push_due(struct lpa_agent *agent)
{
	uint64_t now_ns = lpa_now().monotonic_ns;

	for (size_t n = 0; n < agent->count; n++) {
		struct lpa_entry *entry = &agent->entries[n];
		uint64_t interval_ns = (uint64_t)entry->item.interval_ms * NS_PER_MS;
		uint64_t missed;

		if (!entry->is_watched || entry->due_ns > now_ns) {
			continue;
		}
		missed = (now_ns - entry->due_ns) / interval_ns;
		entry->due_ns += (missed + 1) * interval_ns;
		agent->skipped += missed;
		if (entry->is_pushing || entry->hangs || lpa_runner_is_full(&agent->runner)) {
			agent->skipped++;
			continue;
		}
		entry->is_pushing = true;
		lpa_runner_submit(&agent->runner, entry, NULL, now_ns + (uint64_t)agent->limit_ms * NS_PER_MS);
	}
}

/* Its life ------------------------------------------------------------------------------------- */

static long wait_ms(const struct lpa_agent *agent)
{
	uint64_t least = lpa_runner_deadline(&agent->runner);
	uint64_t now_ns = lpa_now().monotonic_ns;

	for (size_t n = 0; n < agent->count; n++) {
		if (agent->entries[n].is_watched && agent->entries[n].due_ns < least) {
			least = agent->entries[n].due_ns;
		}
	}
	if (least == UINT64_MAX) {
		return -1;
	}

	return least > now_ns ? (long)((least - now_ns + NS_PER_MS - 1) / NS_PER_MS) : 0;
}

int lpa_run(struct lpa_agent *agent)
{
	static struct lpa_frame frames[LPA_FRAMES_KEPT];
	struct lpa_identity identity;
	struct lpa_ready ready;

	while (!agent->is_stopping) {
		if (lpa_sockets_poll(&agent->sockets, agent->runner.fd, wait_ms(agent), !lpa_runner_is_full(&agent->runner),
				     &ready)) {
			return -1;
		}
		if (ready.runner) {
			lpa_runner_collect(&agent->runner);
		}
		lpa_runner_expire(&agent->runner);
		subscribe(agent);
		push_due(agent);
		for (int n = 0; n < TURN && !lpa_runner_is_full(&agent->runner); n++) {
			int count = lpa_sockets_receive(&agent->sockets, &identity, frames);

			if (count < 0) {
				break;
			}
			take(agent, &identity, frames, (size_t)count);
		}
	}

	return 0;
}

void lpa_stop(struct lpa_agent *agent)
{
	agent->is_stopping = true;
	lpa_runner_wake(&agent->runner);
}

const char *lpa_address(const struct lpa_agent *agent)
{
	return agent->sockets.address;
}

struct lpa_agent *lpa_open(const struct lpa_config *config, char *why)
{
	struct lpa_agent *agent = calloc(1, sizeof(*agent));
	size_t length = strlen(config->name);

	if (!agent) {
		lpa_fail(why, "no memory for '%s'", config->name);
		return NULL;
	}
	if (!length || length > LPA_WHY_MOST || !lpa_is_utf8((const uint8_t *)config->name, length)) {
		lpa_fail(why, "'%.100s' is not a name of a device: give 1 to 256 octets of text", config->name);
	} else if (config->limit_ms < 1 || config->limit_ms > LPA_LIMIT_MOST_MS) {
		lpa_fail(why, "the time limit of '%s' is out of range: give 1 to 3600000 ms", config->name);
	} else if (!lpa_sockets_open(&agent->sockets, config, why)) {
		if (!lpa_runner_open(&agent->runner, done, agent) &&
		    getrandom(&agent->instance, sizeof(agent->instance), 0) == sizeof(agent->instance)) {
			memcpy(agent->name, config->name, length);
			agent->limit_ms = config->limit_ms;
			agent->instance |= 1;
			add_own(agent, "agent.requests", &agent->requests);
			add_own(agent, "agent.malformed", &agent->malformed);
			add_own(agent, "agent.duplicates", &agent->sessions.duplicates);
			add_own(agent, "agent.timeouts", &agent->runner.timeouts);
			add_own(agent, "agent.late", &agent->runner.late);
			add_own(agent, "agent.denied", &agent->sockets.denied);
			add_own(agent, "agent.unsent", &agent->sockets.unsent);
			add_own(agent, "agent.skipped", &agent->skipped);
			return agent;
		}
		lpa_fail(why, "no thread is to be had for the callbacks of '%s'", config->name);
	}
	lpa_close(agent);

	return NULL;
}

void lpa_close(struct lpa_agent *agent)
{
	lpa_runner_close(&agent->runner);
	lpa_sockets_close(&agent->sockets);
	lpa_sessions_free(&agent->sessions);
	free(agent);
}
