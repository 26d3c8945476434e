/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

#include "liteprobe_items.h"

#include <stdio.h>
#include <string.h>

#define OWN_PREFIX "agent."

int lpa_fail(char *why, const char *text, const char *what)
{
	snprintf(why, LPA_WHY_MOST + 1, text, what);

	return -1;
}

int lpa_item_check(const struct lpa_item *item, char *why)
{
	bool is_number = item->type == LPA_INT || item->type == LPA_FLOAT;

	if (!lpa_is_name((const uint8_t *)item->name, strlen(item->name))) {
		return lpa_fail(why, "'%s' is not a name: give a letter, then up to 62 letters, digits, and _ . -", item->name);
	}
	if (!strncmp(item->name, OWN_PREFIX, strlen(OWN_PREFIX))) {
		return lpa_fail(why, "names that begin with 'agent.' are the agent's own: give '%s' another one", item->name);
	}
	if (item->type < LPA_INT || item->type > LPA_OCTETS || !item->call) {
		return lpa_fail(why, "'%s' has no type, or no callback: give both", item->name);
	}
	if (item->has_range && (!is_number || !item->is_setting || item->integer_minimum > item->integer_maximum ||
				!(item->real_minimum <= item->real_maximum))) {
		return lpa_fail(why, "no value lies in the range of '%s': give another, and only to a setting that is a number",
			    item->name);
	}
	if (item->interval_ms && (item->is_setting || item->interval_ms > LPA_LIMIT_MOST_MS)) {
		return lpa_fail(why, "'%s' can't be read so often: give a value 1 to 3600000 ms, and a setting none", item->name);
	}
	return 0;
}

enum lpa_status lpa_item_take(const struct lpa_item *item, const struct lpa_value *value, char *why)
{
	static const char *const names[] = {"", "int", "float", "bool", "text", "octets"};

	if (value->type != item->type) {
		snprintf(why, LPA_WHY_MOST + 1, "'%s' is of type %s, not %s", item->name, names[item->type], names[value->type]);
		return LPA_BAD_TYPE;
	}
	if (item->has_range && item->type == LPA_INT &&
	    (value->integer < item->integer_minimum || value->integer > item->integer_maximum)) {
		snprintf(why, LPA_WHY_MOST + 1, "%lld is out of range: '%s' is %lld to %lld", (long long)value->integer,
			 item->name, (long long)item->integer_minimum, (long long)item->integer_maximum);
		return LPA_RANGE;
	}
	if (item->has_range && item->type == LPA_FLOAT &&
	    (value->real < item->real_minimum || value->real > item->real_maximum)) {
		snprintf(why, LPA_WHY_MOST + 1, "%g is out of range: '%s' is %g to %g", value->real, item->name,
			 item->real_minimum, item->real_maximum);
		return LPA_RANGE;
	}

	return LPA_OK;
}

/* Keys ----------------------------------------------------------------------------------------- */

int lpa_read_key(const char *path, const char *which, char key[LPA_KEY_SIZE], char *why)
{
	FILE *file = fopen(path, "r");
	char line[256];
	int found = -1;

	while (file && found && fgets(line, sizeof(line), file)) {
		const char *place = strstr(line, which);
		const char *quote = place ? strchr(place, '"') : NULL;

		if (quote && strlen(quote) > LPA_KEY_SIZE && quote[LPA_KEY_SIZE] == '"') {
			memcpy(key, quote + 1, LPA_KEY_SIZE - 1);
			key[LPA_KEY_SIZE - 1] = 0;
			found = 0;
		}
	}
	if (file) {
		fclose(file);
	}

	return found ? lpa_fail(why, "%s is not a file with such a key: make them with 'liteprobe agent keys NAME'", path) : 0;
}
