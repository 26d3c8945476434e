/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* The web client of a station. */

#ifndef CLIENT_H
#define CLIENT_H

#include <stdint.h>

#include "lwip/ip_addr.h"

#include "site.h"

/* What the client has, in the order in which Python reads it. */
struct station_progress {
	uint32_t files;       /* Fetched in full. */
	uint32_t octets;      /* Of content, in those and in what was begun. */
	uint32_t wrong;       /* Octets of content, or responses, that aren't what the server has. */
	uint32_t connections; /* Opened. */
	uint32_t repeats;     /* Fetches begun anew since their connection broke. */
	uint32_t resent;      /* Segments that this station, client or server, sent again. */
};

extern struct station_progress web_progress;

/* Fetch all files of a site, one after the other, over one connection or one each; HTTP/1.1 or HTTP/1.0. */
void web_fetch(const struct web_site *site, const ip_addr_t *server, int is_kept);

/* Do what the client has to do outside of the stack's calls. */
void web_go_on(void);

#endif
