/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* A web site: how long its files are, and which octets they have. */

#ifndef SITE_H
#define SITE_H

#include <stdint.h>

#define HTTP_PORT 80

/* Content follows from a file's number and the place in it. */
struct web_site {
	const uint32_t *lengths;
	uint32_t count;
};

static inline uint8_t web_octet(uint32_t file, uint32_t place)
{
	return (uint8_t)(31 * file + 7 * place + 13 * (place >> 8));
}

#endif
