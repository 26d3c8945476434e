/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* The web server of a station. */

#ifndef SERVER_H
#define SERVER_H

#include "site.h"

/* Serve the files of a site on HTTP_PORT. Return 0 or a negative lwIP error. */
int web_serve(const struct web_site *site);

#endif
