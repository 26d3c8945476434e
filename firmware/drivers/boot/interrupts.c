/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Zephyr's intc_vexriscv_litex turns the processor's interrupts on when it is set up, before the
 * kernel has a thread to return to. A timer tick that comes then, where boot is slow, hangs it.
 * They stay off here until the first thread starts, which turns them on.
 */

#include <zephyr/arch/cpu.h>
#include <zephyr/init.h>

static int keep_interrupts_off(void)
{
	(void)arch_irq_lock();

	return 0;
}

/* Behind the controller (CONFIG_INTC_INIT_PRIORITY), ahead of the timer (PRE_KERNEL_2). */
SYS_INIT(keep_interrupts_off, PRE_KERNEL_1, 99);
