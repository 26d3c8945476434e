/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* A station: a TCP/IP stack whose clock is the simulation's, and a web server or a client on it. */

#ifndef STATION_H
#define STATION_H

#include <stdint.h>

#include "lwip/ip_addr.h"

#define HTTP_PORT 80

/* What the client has, in the order in which Python reads it. */
struct station_progress {
	uint32_t files;       /* Fetched in full. */
	uint32_t octets;      /* Of content, in those and in what was begun. */
	uint32_t wrong;       /* Octets of content, or responses, that aren't what the server has. */
	uint32_t connections; /* Opened. */
	uint32_t repeats;     /* Fetches begun anew since their connection broke. */
};

/* A web site: how long its files are; content follows from a file's number and the place in it. */
struct web_site {
	const uint32_t *lengths;
	uint32_t count;
};

static inline uint8_t web_octet(uint32_t file, uint32_t place)
{
	return (uint8_t)(31 * file + 7 * place + 13 * (place >> 8));
}

/* Serve the files of a site on HTTP_PORT. Return 0 or a negative lwIP error. */
int web_serve(const struct web_site *site);

/* Fetch all files of a site, one after the other, over one connection or one each; HTTP/1.1 or HTTP/1.0. */
void web_fetch(const struct web_site *site, const ip_addr_t *server, int is_kept);

/* Do what the client has to do outside of the stack's calls. */
void web_go_on(void);

extern struct station_progress web_progress;

#endif
