/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* Messages of the agent's protocol, read and made (docs/agent.md). Nothing here is for those who use the library. */

#ifndef LITEPROBE_MESSAGE_H_
#define LITEPROBE_MESSAGE_H_

#include "liteprobe_agent.h"

#define LPA_VERSION 1
#define LPA_REQUEST_SIZE 24
#define LPA_ANSWER_SIZE 48
#define LPA_VALUE_MOST (1 + LPA_OCTETS_MOST)
#define LPA_FRAME_MOST 2048
/* Frames of a message that are kept: one more than any request has. */
#define LPA_FRAMES_KEPT 4

enum lpa_kind {
	LPA_HELLO = 1,
	LPA_SET = 2,
	LPA_GET = 3,
	LPA_PUSH = 4,
};

enum lpa_status {
	LPA_OK = 0,
	LPA_MALFORMED = 1,
	LPA_BAD_VERSION = 2,
	LPA_NUMBER = 3,
	LPA_UNKNOWN = 4,
	LPA_READ_ONLY = 5,
	LPA_BAD_TYPE = 6,
	LPA_RANGE = 7,
	LPA_NOT_SET = 8,
	LPA_BUSY = 9,
	LPA_REFUSED = 10,
	LPA_TIMEOUT = 11,
};

struct lpa_frame {
	size_t length;
	uint8_t octets[LPA_FRAME_MOST];
};

struct lpa_request {
	uint8_t kind;
	uint64_t session;
	uint64_t number;
	char name[LPA_NAME_MOST + 1];
	struct lpa_value value;
};

/** When a callback ended (ns), and how long it ran. */
struct lpa_times {
	uint64_t monotonic_ns;
	uint64_t utc_ns;
	uint64_t duration_ns;
};

/** Frames one behind the other, each with its length before it: how requests are compared and answers are kept. */
struct lpa_packed {
	size_t length;
	size_t size;
	uint8_t *octets;
};

/** Append a frame; aborts when there is no memory. */
void lpa_pack(struct lpa_packed *packed, const void *octets, size_t length);

/** Return the frame at `*at` and move `*at` after it; NULL at the end. */
const uint8_t *lpa_unpack(const struct lpa_packed *packed, size_t *at, size_t *length);

void lpa_packed_free(struct lpa_packed *packed);

bool lpa_is_name(const uint8_t *octets, size_t length);
bool lpa_is_utf8(const uint8_t *octets, size_t length);

/** Return whether a value is one that a message can hold. */
bool lpa_is_value(const struct lpa_value *value);

/** Write a value as a frame (LPA_VALUE_MOST octets); return its length. */
size_t lpa_put_value(const struct lpa_value *value, uint8_t *frame);

/** Read the value of a frame; return whether it is one. */
bool lpa_get_value(const uint8_t *frame, size_t length, struct lpa_value *value);

/** Return whether a message can be answered: it begins as one of this protocol, of whichever version. */
bool lpa_is_addressed(const struct lpa_frame *frames, size_t count);

/** Read kind, session and number of a message that is addressed, whatever they are. */
void lpa_get_header(const struct lpa_frame *frame, struct lpa_request *request);

/** Read a message that is addressed; `why`: LPA_WHY_MOST + 1 octets. */
enum lpa_status lpa_get_request(const struct lpa_frame *frames, size_t count, struct lpa_request *request, char *why);

/** Append the header of an answer. */
void lpa_pack_header(struct lpa_packed *packed, uint8_t kind, enum lpa_status status, uint64_t session, uint64_t number,
		     const struct lpa_times *times);

/** Append an answer with an error; what is not UTF-8 in `why` becomes "?". */
void lpa_pack_error(struct lpa_packed *packed, const struct lpa_request *request, enum lpa_status status,
		    const struct lpa_times *times, const char *why);

/** Append the text of an error. */
void lpa_pack_why(struct lpa_packed *packed, const char *why);

/** Write an unsigned number, little-endian. */
void lpa_put(uint8_t *octets, uint64_t number, size_t size);

#endif
