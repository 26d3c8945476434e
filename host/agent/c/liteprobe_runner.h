/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Runs callbacks one at a time in a thread, and goes on without one that does not return. All functions are called by one
 * thread, that of lpa_run, but for lpa_runner_wake.
 */

#ifndef LITEPROBE_RUNNER_H_
#define LITEPROBE_RUNNER_H_

#include <pthread.h>

#include "liteprobe_message.h"

#define LPA_JOBS_MOST 32

/** An item, and what the agent knows of it. */
struct lpa_entry {
	struct lpa_item item;
	/** Of the agent itself: its counter. */
	const uint64_t *count;
	bool is_set;
	struct lpa_value last;
	/** A callback that still runs went over its time limit then. */
	bool hangs;
	uint64_t hangs_since_ns;
	bool is_watched;
	bool is_pushing;
	uint64_t due_ns;
	uint64_t pushes;
};

struct lpa_job {
	struct lpa_job *next;
	struct lpa_entry *entry;
	/** Of the entry, for the thread: it may outlive the agent. */
	struct lpa_item item;
	bool is_push;
	struct lpa_request request;
	uint64_t deadline_ns;
	enum lpa_status status;
	struct lpa_value value;
	struct lpa_times times;
	char why[LPA_WHY_MOST + 1];
};

typedef void (*lpa_answer)(void *context, const struct lpa_job *job);

struct lpa_worker;
struct lpa_shared;

struct lpa_runner {
	lpa_answer answer;
	void *context;
	struct lpa_shared *shared;
	struct lpa_worker *worker;
	struct lpa_job *waiting;
	struct lpa_job *running;
	size_t jobs;
	uint64_t timeouts;
	uint64_t late;
	/** Readable when lpa_runner_collect has something to do. */
	int fd;
	int wake_fd;
};

/** Start; 0, or -1 when there is no thread or pipe to be had. */
int lpa_runner_open(struct lpa_runner *runner, lpa_answer answer, void *context);
void lpa_runner_close(struct lpa_runner *runner);

/** Have a callback run; `request`: NULL for a push. Not when lpa_runner_is_full. */
void lpa_runner_submit(struct lpa_runner *runner, struct lpa_entry *entry, const struct lpa_request *request,
		       uint64_t deadline_ns);
bool lpa_runner_is_full(const struct lpa_runner *runner);

/** Answer what is done. */
void lpa_runner_collect(struct lpa_runner *runner);

/** Give up what is over its time. */
void lpa_runner_expire(struct lpa_runner *runner);

/** Return the next time at which lpa_runner_expire has something to do; UINT64_MAX: never. */
uint64_t lpa_runner_deadline(const struct lpa_runner *runner);

/** Make `fd` readable; from any thread, or the handler of a signal. */
void lpa_runner_wake(struct lpa_runner *runner);

struct lpa_times lpa_now(void);

/** Write why an item is refused whose callback hangs. */
void lpa_busy(const struct lpa_entry *entry, char *why);

#endif
