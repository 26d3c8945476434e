/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Works out what it is asked, line by line: an operation and whole numbers. A line of the answer:
 * the result, a number of 128 bits as high and low word.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rate/rate.h"
#include "statistics/statistics.h"
#include "wide/wide.h"

static void show(struct lp_wide a)
{
	printf("%" PRIu64 " %" PRIu64 "\n", a.high, a.low);
}

static int serve_wide(const char *operation)
{
	uint64_t a, b, c, d;

	if (scanf("%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &a, &b, &c, &d) != 4) {
		return 2;
	}
	if (strcmp(operation, "multiply") == 0) {
		show(lp_wide_multiply(b, d));
	} else if (strcmp(operation, "add") == 0) {
		show(lp_wide_add((struct lp_wide){a, b}, (struct lp_wide){c, d}));
	} else if (strcmp(operation, "subtract") == 0) {
		show(lp_wide_subtract((struct lp_wide){a, b}, (struct lp_wide){c, d}));
	} else if (strcmp(operation, "divide") == 0) {
		show(lp_wide_divide((struct lp_wide){a, b}, d));
	} else if (strcmp(operation, "root") == 0) {
		show((struct lp_wide){0, lp_wide_root((struct lp_wide){a, b})});
	} else if (strcmp(operation, "left") == 0) {
		show(lp_wide_left((struct lp_wide){a, b}, (unsigned int)d));
	} else if (strcmp(operation, "right") == 0) {
		show(lp_wide_right((struct lp_wide){a, b}, (unsigned int)d));
	} else {
		return 2;
	}
	return 0;
}

static int serve_signed(const char *operation)
{
	int64_t a, b, c;

	if (scanf("%" SCNd64 " %" SCNd64 " %" SCNd64, &a, &b, &c) != 3) {
		return 2;
	}
	if (strcmp(operation, "scale") == 0) {
		printf("%" PRId64 "\n", lp_scale(a, b, (unsigned int)c));
	} else if (strcmp(operation, "ratio") == 0) {
		printf("%" PRId64 "\n", lp_ratio(a, b, c));
	} else if (strcmp(operation, "sum") == 0) {
		printf("%" PRId64 "\n", lp_sum(a, b));
	} else {
		printf("%" PRId64 "\n", lp_shift(a, (int)b));
	}
	return 0;
}

/* Of a 32-bit processor's compiler: lib/wide/division.c. */
uint64_t __udivdi3(uint64_t a, uint64_t b);
uint64_t __umoddi3(uint64_t a, uint64_t b);
int64_t __divdi3(int64_t a, int64_t b);
int64_t __moddi3(int64_t a, int64_t b);

/* Quotient and remainder of two words without a sign, and of the same with one. */
static int serve_quotients(void)
{
	uint64_t a, b;

	if (scanf("%" SCNu64 " %" SCNu64, &a, &b) != 2) {
		return 2;
	}
	printf("%" PRIu64 " %" PRIu64, __udivdi3(a, b), __umoddi3(a, b));
	printf(" %" PRId64 " %" PRId64 "\n", __divdi3((int64_t)a, (int64_t)b),
	       __moddi3((int64_t)a, (int64_t)b));
	return 0;
}

static int serve_statistics(void)
{
	struct lp_statistics s;
	struct lp_summary summary = {0};
	int64_t value;
	int count;
	int is_good;

	lp_statistics_clear(&s);
	if (scanf("%d", &count) != 1) {
		return 2;
	}
	for (int i = 0; i < count; i++) {
		if (scanf("%" SCNd64, &value) != 1) {
			return 2;
		}
		lp_statistics_add(&s, value);
	}
	is_good = lp_statistics_summary(&s, &summary);
	printf("%d %" PRId64 " %" PRIu32 " %" PRIu64 " %" PRId64 " %" PRId64 " %" PRIu32 "\n",
	       is_good, summary.mean, summary.fraction, summary.deviation, s.least, s.most,
	       s.beyond);
	return 0;
}

static int serve_sums(void)
{
	struct lp_summary summary = {0};
	struct lp_wide squares;
	uint32_t count;
	int64_t sum;
	int is_good;

	if (scanf("%" SCNu32 " %" SCNd64 " %" SCNu64 " %" SCNu64, &count, &sum, &squares.high,
		  &squares.low) != 4) {
		return 2;
	}
	is_good = lp_statistics_of_sums(count, sum, squares, &summary);
	printf("%d %" PRId64 " %" PRIu32 " %" PRIu64 "\n", is_good, summary.mean, summary.fraction,
	       summary.deviation);
	return 0;
}

/* The digits of the double as a whole number. */
static int serve_rate(void)
{
	uint64_t increment, digits;
	double ratio;
	int ret;

	if (scanf("%" SCNu64 " %" SCNu64, &increment, &digits) != 2) {
		return 2;
	}
	memcpy(&ratio, &digits, sizeof(ratio));
	ret = lp_rate_apply(&increment, ratio);
	printf("%d %" PRIu64 "\n", ret, increment);
	return 0;
}

int main(void)
{
	char operation[16];
	int status = 0;

	while (status == 0 && scanf("%15s", operation) == 1) {
		if (strcmp(operation, "statistics") == 0) {
			status = serve_statistics();
		} else if (strcmp(operation, "sums") == 0) {
			status = serve_sums();
		} else if (strcmp(operation, "rate") == 0) {
			status = serve_rate();
		} else if (strcmp(operation, "quotients") == 0) {
			status = serve_quotients();
		} else if (strcmp(operation, "scale") == 0 || strcmp(operation, "ratio") == 0 ||
			   strcmp(operation, "sum") == 0 || strcmp(operation, "shift") == 0) {
			status = serve_signed(operation);
		} else {
			status = serve_wide(operation);
		}
	}
	return status;
}
