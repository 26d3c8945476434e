/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Stops, before any other register is touched, on a gateware that the firmware was not built for:
 * its registers are elsewhere, and a write could set off anything.
 */

#include <zephyr/drivers/timer/system_timer.h>
#include <zephyr/init.h>
#include <zephyr/linker/linker-defs.h>

#include <liteprobe/csr.h>
#include <liteprobe/generated/registers.h>
#include <liteprobe/image.h>

#include <app_version.h>

const struct lp_image lp_image = {
	.signature = LP_IMAGE_SIGNATURE,
	.format = LP_IMAGE_FORMAT,
	.map_hash = LP_MAP_HASH,
	.start = (const void *)CONFIG_SRAM_BASE_ADDRESS,
	.end = _end,
	.version = APP_VERSION_STRING,
};

uint32_t lp_image_started;

static int refuse_other_gateware(void)
{
	/* Volatile, so that the image holds the hash where a loader looks for it. */
	if (lp_csr_read(LP_PROBE_MAP_HASH_ADDR) != *(volatile const uint32_t *)&lp_image.map_hash) {
		for (;;) {
			/*
			 * Interrupts are still off, so this is for ever; the host sees that nobody
			 * feeds the watchdog.
			 */
			__asm__ volatile("wfi");
		}
	}

	lp_image_started = sys_clock_cycle_get_32();

	return 0;
}

SYS_INIT(refuse_other_gateware, EARLY, 0);
