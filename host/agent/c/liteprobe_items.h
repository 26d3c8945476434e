/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* What may be offered, and which values a setting may be set to. */

#ifndef LITEPROBE_ITEMS_H_
#define LITEPROBE_ITEMS_H_

#include "liteprobe_message.h"

#define LPA_LIMIT_MOST_MS 3600000u

/** Return 0 for an item that an agent can offer, else -1 and why not. */
int lpa_item_check(const struct lpa_item *item, char *why);

/** Return LPA_OK for a value that a setting may be set to, else why not. */
enum lpa_status lpa_item_take(const struct lpa_item *item, const struct lpa_value *value, char *why);

/** Write why something failed; `text` has one %s. Returns -1. */
int lpa_fail(char *why, const char *text, const char *what);

#endif
