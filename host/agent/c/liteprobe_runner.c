/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

#include "liteprobe_runner.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000u

/* What threads have in common; it lasts until the last one ends. */
struct lpa_shared {
	pthread_mutex_t lock;
	struct lpa_job *done;
	int wake_fd;
	bool is_closed;
	size_t users;
};

struct lpa_worker {
	struct lpa_shared *shared;
	pthread_cond_t news;
	struct lpa_job *job;
	bool ends;
};

struct lpa_times lpa_now(void)
{
	struct timespec monotonic, utc;

	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	clock_gettime(CLOCK_REALTIME, &utc);

	return (struct lpa_times){
		.monotonic_ns = (uint64_t)monotonic.tv_sec * NS_PER_S + (uint64_t)monotonic.tv_nsec,
		.utc_ns = (uint64_t)utc.tv_sec * NS_PER_S + (uint64_t)utc.tv_nsec,
	};
}

void lpa_busy(const struct lpa_entry *entry, char *why)
{
	double since_s = (double)(lpa_now().monotonic_ns - entry->hangs_since_ns) / NS_PER_S;

	snprintf(why, LPA_WHY_MOST + 1, "the callback of '%s' went over its time limit %.1f s ago, and still runs",
		 entry->item.name, since_s);
}

/* The thread ----------------------------------------------------------------------------------- */

static void wake(int fd)
{
	/* A full pipe is readable, so nothing is lost. */
	if (write(fd, "", 1) < 0) {
		return;
	}
}

static void let_go(struct lpa_shared *shared)
{
	bool is_last;

	pthread_mutex_lock(&shared->lock);
	is_last = --shared->users == 0;
	pthread_mutex_unlock(&shared->lock);
	if (is_last) {
		close(shared->wake_fd);
		pthread_mutex_destroy(&shared->lock);
		free(shared);
	}
}

static void run(struct lpa_job *job)
{
	uint64_t began_ns = lpa_now().monotonic_ns;
	const struct lpa_item *item = &job->item;

	job->value = job->request.value;
	job->value.type = item->type;
	if (item->call(item->context, &job->value, job->why)) {
		job->status = LPA_REFUSED;
		if (!job->why[0]) {
			snprintf(job->why, sizeof(job->why), "the device refused '%s'", item->name);
		}
	} else if (job->value.type != item->type || !lpa_is_value(&job->value)) {
		job->status = LPA_REFUSED;
		snprintf(job->why, sizeof(job->why), "the callback of '%s' returned something else than its type", item->name);
	}
	job->times = lpa_now();
	job->times.duration_ns = job->times.monotonic_ns - began_ns;
}

static void *work(void *argument)
{
	struct lpa_worker *worker = argument;
	struct lpa_shared *shared = worker->shared;

	pthread_mutex_lock(&shared->lock);
	for (;;) {
		struct lpa_job *job;

		while (!worker->job && !worker->ends) {
			pthread_cond_wait(&worker->news, &shared->lock);
		}
		job = worker->job;
		if (!job) {
			break;
		}
		worker->job = NULL;
		pthread_mutex_unlock(&shared->lock);
		run(job);
		pthread_mutex_lock(&shared->lock);
		if (shared->is_closed) {
			free(job);
			continue;
		}
		job->next = shared->done;
		shared->done = job;
		wake(shared->wake_fd);
	}
	pthread_mutex_unlock(&shared->lock);
	pthread_cond_destroy(&worker->news);
	free(worker);
	let_go(shared);

	return NULL;
}

static int hire(struct lpa_runner *runner)
{
	struct lpa_worker *worker = calloc(1, sizeof(*worker));
	pthread_t thread;

	if (!worker) {
		return -1;
	}
	worker->shared = runner->shared;
	pthread_cond_init(&worker->news, NULL);
	pthread_mutex_lock(&runner->shared->lock);
	runner->shared->users++;
	pthread_mutex_unlock(&runner->shared->lock);
	if (pthread_create(&thread, NULL, work, worker)) {
		pthread_mutex_lock(&runner->shared->lock);
		runner->shared->users--;
		pthread_mutex_unlock(&runner->shared->lock);
		free(worker);
		return -1;
	}
	pthread_detach(thread);
	runner->worker = worker;

	return 0;
}

static void tell(struct lpa_runner *runner, struct lpa_job *job, bool ends)
{
	if (!runner->worker) {
		return;
	}
	pthread_mutex_lock(&runner->shared->lock);
	if (job) {
		runner->worker->job = job;
	}
	runner->worker->ends |= ends;
	pthread_cond_signal(&runner->worker->news);
	pthread_mutex_unlock(&runner->shared->lock);
}

/* Jobs ----------------------------------------------------------------------------------------- */

static void finish(struct lpa_runner *runner, struct lpa_job *job)
{
	runner->jobs--;
	runner->answer(runner->context, job);
}

static void next(struct lpa_runner *runner)
{
	while (runner->waiting && !runner->running) {
		struct lpa_job *job = runner->waiting;

		if (!runner->worker && hire(runner)) {
			return; /* No thread is to be had now: it waits, and is given up in time. */
		}
		runner->waiting = job->next;
		job->next = NULL;
		if (job->entry->hangs) {
			job->status = LPA_BUSY;
			job->times = lpa_now();
			lpa_busy(job->entry, job->why);
			finish(runner, job);
			free(job);
		} else {
			runner->running = job;
			tell(runner, job, false);
		}
	}
}

static void give_up(struct lpa_runner *runner, const struct lpa_job *job, const char *why)
{
	struct lpa_job *given = calloc(1, sizeof(*given));

	if (!given) {
		abort();
	}
	/* Nothing that a callback may still write to. */
	given->entry = job->entry;
	given->is_push = job->is_push;
	given->request = job->request;
	given->status = LPA_TIMEOUT;
	given->times = lpa_now();
	snprintf(given->why, sizeof(given->why), "'%s' is over its time limit: %s", job->entry->item.name, why);
	runner->timeouts++;
	finish(runner, given);
	free(given);
}

void lpa_runner_submit(struct lpa_runner *runner, struct lpa_entry *entry, const struct lpa_request *request,
		       uint64_t deadline_ns)
{
	struct lpa_job *job = calloc(1, sizeof(*job));
	struct lpa_job **end = &runner->waiting;

	if (!job) {
		abort();
	}
	job->entry = entry;
	job->item = entry->item;
	job->is_push = !request;
	if (request) {
		job->request = *request;
	}
	job->deadline_ns = deadline_ns;
	while (*end) {
		end = &(*end)->next;
	}
	*end = job;
	runner->jobs++;
	next(runner);
}

bool lpa_runner_is_full(const struct lpa_runner *runner)
{
	return runner->jobs >= LPA_JOBS_MOST;
}

void lpa_runner_collect(struct lpa_runner *runner)
{
	char octets[256];
	struct lpa_job *done;

	while (read(runner->fd, octets, sizeof(octets)) > 0) {
	}
	pthread_mutex_lock(&runner->shared->lock);
	done = runner->shared->done;
	runner->shared->done = NULL;
	pthread_mutex_unlock(&runner->shared->lock);
	while (done) {
		struct lpa_job *job = done;

		done = job->next;
		if (job->item.is_setting && job->status == LPA_OK) {
			job->entry->last = job->value;
			job->entry->is_set = true;
		}
		if (job == runner->running) {
			runner->running = NULL;
			finish(runner, job);
		} else {
			runner->late++;
			job->entry->hangs = false;
		}
		free(job);
	}
	next(runner);
}

void lpa_runner_expire(struct lpa_runner *runner)
{
	uint64_t now_ns = lpa_now().monotonic_ns;
	struct lpa_job **at = &runner->waiting;
	struct lpa_job *running = runner->running;

	while (*at) {
		struct lpa_job *job = *at;

		if (job->deadline_ns > now_ns) {
			at = &job->next;
			continue;
		}
		*at = job->next;
		give_up(runner, job, "the agent had other callbacks to run; it was not begun");
		free(job);
	}
	if (running && running->deadline_ns <= now_ns) {
		running->entry->hangs = true;
		running->entry->hangs_since_ns = now_ns;
		tell(runner, NULL, true); /* The thread ends when the callback returns. */
		runner->worker = NULL;
		runner->running = NULL;
		give_up(runner, running, "its callback still runs at the device");
	}
	next(runner);
}

uint64_t lpa_runner_deadline(const struct lpa_runner *runner)
{
	uint64_t least = runner->running ? runner->running->deadline_ns : UINT64_MAX;

	for (const struct lpa_job *job = runner->waiting; job; job = job->next) {
		least = job->deadline_ns < least ? job->deadline_ns : least;
	}

	return least;
}

/* Its life ------------------------------------------------------------------------------------- */

void lpa_runner_wake(struct lpa_runner *runner)
{
	wake(runner->wake_fd);
}

int lpa_runner_open(struct lpa_runner *runner, lpa_answer answer, void *context)
{
	int fds[2];

	*runner = (struct lpa_runner){.answer = answer, .context = context, .fd = -1, .wake_fd = -1};
	if (pipe(fds)) {
		return -1;
	}
	for (int n = 0; n < 2; n++) {
		fcntl(fds[n], F_SETFL, O_NONBLOCK);
		fcntl(fds[n], F_SETFD, FD_CLOEXEC);
	}
	runner->shared = calloc(1, sizeof(*runner->shared));
	if (!runner->shared) {
		close(fds[0]);
		close(fds[1]);
		return -1;
	}
	pthread_mutex_init(&runner->shared->lock, NULL);
	runner->shared->wake_fd = runner->wake_fd = fds[1];
	runner->shared->users = 1;
	runner->fd = fds[0];

	return hire(runner);
}

static void free_all(struct lpa_job *job)
{
	while (job) {
		struct lpa_job *after = job->next;

		free(job);
		job = after;
	}
}

void lpa_runner_close(struct lpa_runner *runner)
{
	if (!runner->shared) {
		return;
	}
	tell(runner, NULL, true);
	pthread_mutex_lock(&runner->shared->lock);
	runner->shared->is_closed = true;
	free_all(runner->shared->done);
	runner->shared->done = NULL;
	pthread_mutex_unlock(&runner->shared->lock);
	free_all(runner->waiting);
	close(runner->fd);
	let_go(runner->shared);
	runner->shared = NULL;
}
