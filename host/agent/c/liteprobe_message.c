/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

#include "liteprobe_message.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_BIT 0x80
#define PREFIX 2

static const uint8_t magic[4] = {'L', 'P', 'A', 'G'};

/* Numbers -------------------------------------------------------------------------------------- */

void lpa_put(uint8_t *octets, uint64_t number, size_t size)
{
	for (size_t n = 0; n < size; n++) {
		octets[n] = (uint8_t)(number >> (8 * n));
	}
}

static uint64_t get(const uint8_t *octets, size_t size)
{
	uint64_t number = 0;

	for (size_t n = 0; n < size; n++) {
		number |= (uint64_t)octets[n] << (8 * n);
	}

	return number;
}

/* Packed frames -------------------------------------------------------------------------------- */

void lpa_pack(struct lpa_packed *packed, const void *octets, size_t length)
{
	size_t needed = packed->length + PREFIX + length;

	if (needed > packed->size) {
		packed->size = 2 * needed;
		packed->octets = realloc(packed->octets, packed->size);
		if (!packed->octets) {
			abort();
		}
	}
	lpa_put(packed->octets + packed->length, length, PREFIX);
	if (length) {
		memcpy(packed->octets + packed->length + PREFIX, octets, length);
	}
	packed->length = needed;
}

const uint8_t *lpa_unpack(const struct lpa_packed *packed, size_t *at, size_t *length)
{
	const uint8_t *frame;

	if (*at + PREFIX > packed->length) {
		return NULL;
	}
	frame = packed->octets + *at + PREFIX;
	*length = (size_t)get(packed->octets + *at, PREFIX);
	*at += PREFIX + *length;

	return frame;
}

void lpa_packed_free(struct lpa_packed *packed)
{
	free(packed->octets);
	*packed = (struct lpa_packed){0};
}

/* Names and texts ------------------------------------------------------------------------------ */

static bool is_letter(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool lpa_is_name(const uint8_t *octets, size_t length)
{
	if (length < 1 || length > LPA_NAME_MOST || !is_letter(octets[0])) {
		return false;
	}
	for (size_t n = 1; n < length; n++) {
		uint8_t c = octets[n];

		if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '_' && c != '.' && c != '-') {
			return false;
		}
	}

	return true;
}

/* Length of the character at `octets`, 0 where it is none: shortest form only, and no surrogates (RFC 3629). */
static size_t character(const uint8_t *octets, size_t length)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint8_t first = octets[0];
	size_t size = first < 0x80 ? 1 : (first & 0xe0) == 0xc0 ? 2 : (first & 0xf0) == 0xe0 ? 3 : (first & 0xf8) == 0xf0 ? 4 : 0;
	uint32_t code = size == 1 ? first : first & (0x7fu >> size);

	if (!size || size > length) {
		return 0;
	}
	for (size_t n = 1; n < size; n++) {
		if ((octets[n] & 0xc0) != 0x80) {
			return 0;
		}
		code = code << 6 | (octets[n] & 0x3f);
	}
	if (code < least[size] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
		return 0;
	}

	return size;
}

bool lpa_is_utf8(const uint8_t *octets, size_t length)
{
	for (size_t at = 0, size; at < length; at += size) {
		size = character(octets + at, length - at);
		if (!size) {
			return false;
		}
	}

	return true;
}

/* Values --------------------------------------------------------------------------------------- */

bool lpa_is_value(const struct lpa_value *value)
{
	switch (value->type) {
	case LPA_INT:
	case LPA_BOOL:
		return true;
	case LPA_FLOAT:
		return isfinite(value->real);
	case LPA_TEXT:
		return value->length <= LPA_OCTETS_MOST && !memchr(value->octets, 0, value->length) &&
		       lpa_is_utf8(value->octets, value->length);
	case LPA_OCTETS:
		return value->length <= LPA_OCTETS_MOST;
	}

	return false;
}

size_t lpa_put_value(const struct lpa_value *value, uint8_t *frame)
{
	uint64_t bits;

	frame[0] = (uint8_t)value->type;
	switch (value->type) {
	case LPA_INT:
		lpa_put(frame + 1, (uint64_t)value->integer, 8);
		return 9;
	case LPA_FLOAT:
		memcpy(&bits, &value->real, sizeof(bits));
		lpa_put(frame + 1, bits, 8);
		return 9;
	case LPA_BOOL:
		frame[1] = value->truth;
		return 2;
	case LPA_TEXT:
	case LPA_OCTETS:
		memcpy(frame + 1, value->octets, value->length);
		break;
	}

	return 1 + value->length;
}

bool lpa_get_value(const uint8_t *frame, size_t length, struct lpa_value *value)
{
	uint64_t bits;

	*value = (struct lpa_value){0};
	if (length < 1 || length > LPA_VALUE_MOST || frame[0] < LPA_INT || frame[0] > LPA_OCTETS) {
		return false;
	}
	value->type = (enum lpa_type)frame[0];
	switch (value->type) {
	case LPA_INT:
	case LPA_FLOAT:
		if (length != 9) {
			return false;
		}
		bits = get(frame + 1, 8);
		if (value->type == LPA_INT) {
			value->integer = (int64_t)bits;
		} else {
			memcpy(&value->real, &bits, sizeof(bits));
		}
		break;
	case LPA_BOOL:
		if (length != 2 || frame[1] > 1) {
			return false;
		}
		value->truth = frame[1];
		break;
	case LPA_TEXT:
	case LPA_OCTETS:
		value->length = length - 1;
		memcpy(value->octets, frame + 1, length - 1);
		break;
	}

	return lpa_is_value(value);
}

/* Requests ------------------------------------------------------------------------------------- */

bool lpa_is_addressed(const struct lpa_frame *frames, size_t count)
{
	return count && frames[0].length >= LPA_REQUEST_SIZE && !memcmp(frames[0].octets, magic, sizeof(magic));
}

void lpa_get_header(const struct lpa_frame *frame, struct lpa_request *request)
{
	*request = (struct lpa_request){
		.kind = frame->octets[5],
		.session = get(frame->octets + 8, 8),
		.number = get(frame->octets + 16, 8),
	};
}

static enum lpa_status malformed(char *why, const char *text)
{
	snprintf(why, LPA_WHY_MOST + 1, "%s", text);

	return LPA_MALFORMED;
}

enum lpa_status lpa_get_request(const struct lpa_frame *frames, size_t count, struct lpa_request *request, char *why)
{
	static const size_t frames_of[] = {0, 1, 3, 2};
	const uint8_t *header = frames[0].octets;

	lpa_get_header(&frames[0], request);
	if (header[4] != LPA_VERSION) {
		snprintf(why, LPA_WHY_MOST + 1, "this agent speaks version %d, not %d: install the same version at both ends",
			 LPA_VERSION, header[4]);
		return LPA_BAD_VERSION;
	}
	if (frames[0].length != LPA_REQUEST_SIZE || header[6] || header[7] || !request->session || !request->number ||
	    request->kind < LPA_HELLO || request->kind > LPA_GET) {
		return malformed(why, "the header is not one of a request");
	}
	if (count != frames_of[request->kind]) {
		return malformed(why, "a request of this kind has another number of frames");
	}
	if (request->kind == LPA_HELLO) {
		return LPA_OK;
	}
	if (!lpa_is_name(frames[1].octets, frames[1].length)) {
		return malformed(why, "a name is a letter, then up to 62 letters, digits, and _ . -");
	}
	memcpy(request->name, frames[1].octets, frames[1].length);
	if (request->kind == LPA_SET && !lpa_get_value(frames[2].octets, frames[2].length, &request->value)) {
		return malformed(why, "the value is not one of a type that the protocol has");
	}

	return LPA_OK;
}

/* Answers -------------------------------------------------------------------------------------- */

void lpa_pack_header(struct lpa_packed *packed, uint8_t kind, enum lpa_status status, uint64_t session, uint64_t number,
		     const struct lpa_times *times)
{
	uint8_t header[LPA_ANSWER_SIZE];

	memcpy(header, magic, sizeof(magic));
	header[4] = LPA_VERSION;
	header[5] = kind | ANSWER_BIT;
	lpa_put(header + 6, status, 2);
	lpa_put(header + 8, session, 8);
	lpa_put(header + 16, number, 8);
	lpa_put(header + 24, times->monotonic_ns, 8);
	lpa_put(header + 32, times->utc_ns, 8);
	lpa_put(header + 40, times->duration_ns, 8);
	lpa_pack(packed, header, sizeof(header));
}

void lpa_pack_why(struct lpa_packed *packed, const char *why)
{
	uint8_t text[LPA_WHY_MOST];
	size_t length = strnlen(why, LPA_WHY_MOST);
	size_t kept = 0;

	/* A character that the end cuts is left out; what is none becomes "?". */
	for (size_t at = 0, size; at < length; at += size ? size : 1) {
		size = character((const uint8_t *)why + at, length - at);
		if (!size && length == LPA_WHY_MOST && at + 4 > length) {
			break;
		}
		memcpy(text + kept, size ? why + at : "?", size ? size : 1);
		kept += size ? size : 1;
	}
	lpa_pack(packed, text, kept);
}

void lpa_pack_error(struct lpa_packed *packed, const struct lpa_request *request, enum lpa_status status,
		    const struct lpa_times *times, const char *why)
{
	lpa_pack_header(packed, request->kind, status, request->session, request->number, times);
	lpa_pack_why(packed, why);
}
