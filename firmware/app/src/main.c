/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include <liteprobe/generated/registers.h>
#include <liteprobe/image.h>

int main(void)
{
	printk("LiteProbe %s on %s, gateware %08x\n", lp_image.version, LP_IDENTIFIER,
	       lp_image.map_hash);

	return 0;
}
