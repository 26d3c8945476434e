/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

#include "liteprobe_sessions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Return the place of a session, or the one that was used longest ago of those that wait for nothing. */
static struct lpa_session *place_of(struct lpa_sessions *sessions, uint64_t session)
{
	struct lpa_session *oldest = NULL;

	for (size_t n = 0; n < LPA_SESSIONS_MOST; n++) {
		struct lpa_session *one = &sessions->sessions[n];

		if (one->session == session) {
			return one;
		}
		if ((!one->session || one->answer.length) && (!oldest || one->used < oldest->used)) {
			oldest = one;
		}
	}

	return oldest;
}

enum lpa_status lpa_sessions_take(struct lpa_sessions *sessions, const struct lpa_request *request,
				  const struct lpa_frame *frames, size_t count, const struct lpa_identity *identity,
				  const struct lpa_packed **again, char *why)
{
	struct lpa_session *known = place_of(sessions, request->session);
	struct lpa_packed packed = {0};

	if (!known) {
		abort(); /* There are fewer jobs than sessions. */
	}
	for (size_t n = 0; n < count; n++) {
		lpa_pack(&packed, frames[n].octets, frames[n].length);
	}
	*again = NULL;
	if (known->session == request->session) {
		bool is_same = packed.length == known->request.length &&
			       !memcmp(packed.octets, known->request.octets, packed.length);

		if (request->number == known->number && is_same) {
			sessions->duplicates++;
			known->identity = *identity;
			*again = &known->answer;
		} else if (request->number <= known->number) {
			snprintf(why, LPA_WHY_MOST + 1, "number %llu was used before: the next one is above %llu",
				 (unsigned long long)request->number, (unsigned long long)known->number);
		} else if (!known->answer.length) {
			snprintf(why, LPA_WHY_MOST + 1, "request %llu is not answered yet: wait for it",
				 (unsigned long long)known->number);
		}
		if (*again || why[0]) {
			lpa_packed_free(&packed);
			return why[0] ? LPA_NUMBER : LPA_OK;
		}
	}
	lpa_packed_free(&known->request);
	lpa_packed_free(&known->answer);
	*known = (struct lpa_session){
		.session = request->session,
		.number = request->number,
		.used = ++sessions->uses,
		.identity = *identity,
		.request = packed,
	};

	return LPA_OK;
}

const struct lpa_identity *lpa_sessions_answer(struct lpa_sessions *sessions, uint64_t session, struct lpa_packed *answer)
{
	struct lpa_session *known = place_of(sessions, session);

	lpa_packed_free(&known->answer);
	known->answer = *answer;

	return &known->identity;
}

void lpa_sessions_free(struct lpa_sessions *sessions)
{
	for (size_t n = 0; n < LPA_SESSIONS_MOST; n++) {
		lpa_packed_free(&sessions->sessions[n].request);
		lpa_packed_free(&sessions->sessions[n].answer);
	}
}
