/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* Copies the code that runs in the processor's own RAM there (near.ld, lib/near), before any of it runs. */

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
	/* What the processor may have fetched from there before was not this. */
	__asm__ volatile("fence.i" : : : "memory");

	return 0;
}

/* Behind the check of the gateware. */
SYS_INIT(copy_near, EARLY, 1);
