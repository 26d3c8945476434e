/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * The console that a host reads and types to through registers: `soc/processor.py`, polled.
 *
 * Zephyr's own driver waits for room without end. Nobody may be reading, so this one drops what
 * finds none: the clock must run whether or not a host looks on. The shell waits for a host for a
 * moment, everybody else not at all.
 */

#define DT_DRV_COMPAT liteprobe_console

#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>

#include <liteprobe/csr.h>

/* Longer than a host takes from one look to the next. */
#define PATIENCE_CYCLES (CONFIG_SYS_CLOCK_HW_CYCLES_PER_SEC / 100)
#define EVENT_RX        BIT(1)
/* Some lines of a log, a power of two. */
#define WAITING         256

struct console_config {
	mem_addr_t rxtx, txfull, rxempty, ev_pending;
};

struct console_data {
	/* Nobody empties the FIFO. */
	bool is_alone;
	/*
	 * What finds the FIFO full while its thread must not wait: taken out by whoever writes or
	 * reads next.
	 */
	uint8_t waiting[WAITING];
	uint32_t put;
	uint32_t taken;
};

/* Give the FIFO what waits; return whether nothing waits any longer, and there is room. */
static bool drain(const struct console_config *config, struct console_data *data)
{
	unsigned int key = irq_lock();
	bool has_room = lp_csr_read(config->txfull) == 0;

	while (has_room && data->taken != data->put) {
		lp_csr_write(config->rxtx, data->waiting[data->taken++ % WAITING]);
		has_room = lp_csr_read(config->txfull) == 0;
	}
	has_room = has_room && data->taken == data->put;
	irq_unlock(key);

	return has_room;
}

/*
 * The shell alone may wait for a host: the clock's thread and the receiver's have something to do.
 */
static bool may_wait(void)
{
	return k_is_pre_kernel() || (!k_is_in_isr() && k_thread_priority_get(k_current_get()) >=
							       K_LOWEST_APPLICATION_THREAD_PRIO);
}

static void console_poll_out(const struct device *dev, unsigned char c)
{
	const struct console_config *config = dev->config;
	struct console_data *data = dev->data;
	uint32_t start = k_cycle_get_32();
	bool is_patient = may_wait();

	while (!drain(config, data)) {
		if (!is_patient) {
			unsigned int key = irq_lock();

			if (data->put - data->taken < WAITING) {
				data->waiting[data->put++ % WAITING] = c;
			}
			irq_unlock(key);
			return;
		}
		if (data->is_alone || k_cycle_get_32() - start > PATIENCE_CYCLES) {
			data->is_alone = true;
			return;
		}
	}
	data->is_alone = false;
	lp_csr_write(config->rxtx, c);
}

static int console_poll_in(const struct device *dev, unsigned char *c)
{
	const struct console_config *config = dev->config;

	/* The shell looks every 10 ms. */
	(void)drain(config, dev->data);
	if (lp_csr_read(config->rxempty) != 0) {
		return -1;
	}
	*c = (unsigned char)lp_csr_read(config->rxtx);
	/* Takes it out of the FIFO. */
	lp_csr_write(config->ev_pending, EVENT_RX);

	return 0;
}

static DEVICE_API(uart, console_api) = {
	.poll_in = console_poll_in,
	.poll_out = console_poll_out,
};

#define CONSOLE_REG(n, name) .name = DT_INST_REG_ADDR_BY_NAME(n, name)

#define CONSOLE_INIT(n)                                                                            \
	static const struct console_config console_config_##n = {                                  \
		CONSOLE_REG(n, rxtx),                                                              \
		CONSOLE_REG(n, txfull),                                                            \
		CONSOLE_REG(n, rxempty),                                                           \
		CONSOLE_REG(n, ev_pending),                                                        \
	};                                                                                         \
	static struct console_data console_data_##n;                                               \
	DEVICE_DT_INST_DEFINE(n, NULL, NULL, &console_data_##n, &console_config_##n, PRE_KERNEL_1, \
			      CONFIG_SERIAL_INIT_PRIORITY, &console_api);

DT_INST_FOREACH_STATUS_OKAY(CONSOLE_INIT)
