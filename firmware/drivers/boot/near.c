/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Copies the code that runs in the processor's own RAM there (near.ld, lib/near), before any of it
 * runs.
 */

#include <zephyr/init.h>

/* Of whole words, by the linker's script. */
extern uint32_t lp_near_start[], lp_near_end[];
extern const uint32_t lp_near_image[];

static int copy_near(void)
{
	/* Volatile, or the compiler calls memcpy(), which goes by octets. */
	volatile uint32_t *to = lp_near_start;

	for (const uint32_t *from = lp_near_image; to < lp_near_end; from++, to++) {
		*to = *from;
	}
	/*
	 * No fence.i, which takes 200,000 cycles: the reset emptied the cache, and nothing was
	 * fetched from there since.
	 */

	return 0;
}

/* Behind the check of the gateware. */
SYS_INIT(copy_near, EARLY, 1);
