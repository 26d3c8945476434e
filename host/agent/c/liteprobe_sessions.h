/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* What each controller asked last: so a request that comes twice is done once, and answered the same. */

#ifndef LITEPROBE_SESSIONS_H_
#define LITEPROBE_SESSIONS_H_

#include "liteprobe_sockets.h"

/* More than jobs, so one that waits for nothing can always be forgotten. */
#define LPA_SESSIONS_MOST 64

struct lpa_session {
	uint64_t session;
	uint64_t number;
	uint64_t used;
	struct lpa_identity identity;
	struct lpa_packed request;
	/** Empty while the request is under way. */
	struct lpa_packed answer;
};

struct lpa_sessions {
	uint64_t uses;
	uint64_t duplicates;
	struct lpa_session sessions[LPA_SESSIONS_MOST];
};

/**
 * Take a request. LPA_OK: it is new, or `*again` is what is to be sent again: nothing (length 0) while it is under way.
 * LPA_NUMBER: its number was used before for something else, or the request before it is not answered.
 */
enum lpa_status lpa_sessions_take(struct lpa_sessions *sessions, const struct lpa_request *request,
				  const struct lpa_frame *frames, size_t count, const struct lpa_identity *identity,
				  const struct lpa_packed **again, char *why);

/** Keep the answer, which is freed later, to the last request of a session; return where it goes. */
const struct lpa_identity *lpa_sessions_answer(struct lpa_sessions *sessions, uint64_t session, struct lpa_packed *answer);

void lpa_sessions_free(struct lpa_sessions *sessions);

#endif
