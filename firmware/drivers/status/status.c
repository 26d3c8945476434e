/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/* Driver of the clock's status: cores/timebase/status.py. */

#define DT_DRV_COMPAT liteprobe_clock_status

#include <zephyr/device.h>

#include <liteprobe/csr.h>
#include <liteprobe/status.h>

struct status_config {
	mem_addr_t state, uncertainty, offset, rate, drift, edges, rejected, holdover, tai_utc,
		error, qerr;
	mem_addr_t update, watchdog, mode;
};

static int status_publish(const struct device *dev, const struct lp_status *status)
{
	const struct status_config *config = dev->config;

	lp_csr_write(config->state, status->state);
	lp_csr_write(config->uncertainty, status->uncertainty);
	lp_csr_write(config->offset, (uint32_t)status->offset);
	lp_csr_write(config->rate, (uint32_t)status->rate);
	lp_csr_write(config->drift, (uint32_t)status->drift);
	lp_csr_write(config->edges, status->edges);
	lp_csr_write(config->rejected, status->rejected);
	lp_csr_write(config->holdover, status->holdover);
	lp_csr_write(config->tai_utc, status->tai_utc);
	lp_csr_write(config->error, status->error);
	lp_csr_write(config->qerr, status->qerr);
	lp_csr_write(config->update, 1);

	return 0;
}

static enum lp_clock_mode status_mode(const struct device *dev)
{
	const struct status_config *config = dev->config;
	uint32_t mode = lp_csr_read(config->mode);

	/* What no host should write is no reason to touch the clock. */
	return mode <= LP_CLOCK_REACQUIRE ? (enum lp_clock_mode)mode : LP_CLOCK_LEAVE_ALONE;
}

static int status_set_mode(const struct device *dev, enum lp_clock_mode mode)
{
	const struct status_config *config = dev->config;

	lp_csr_write(config->mode, mode);

	return 0;
}

static uint32_t status_watchdog_ms(const struct device *dev)
{
	const struct status_config *config = dev->config;

	return lp_csr_read(config->watchdog);
}

static const struct lp_status_driver_api status_api = {
	.publish = status_publish,
	.mode = status_mode,
	.set_mode = status_set_mode,
	.watchdog_ms = status_watchdog_ms,
};

#define STATUS_REG(n, name) .name = DT_INST_REG_ADDR_BY_NAME(n, name)

#define STATUS_INIT(n)                                                                             \
	static const struct status_config status_config_##n = {                                    \
		STATUS_REG(n, state),    STATUS_REG(n, uncertainty), STATUS_REG(n, offset),        \
		STATUS_REG(n, rate),     STATUS_REG(n, drift),       STATUS_REG(n, edges),         \
		STATUS_REG(n, rejected), STATUS_REG(n, holdover),    STATUS_REG(n, tai_utc),       \
		STATUS_REG(n, error),    STATUS_REG(n, qerr),        STATUS_REG(n, update),        \
		STATUS_REG(n, watchdog), STATUS_REG(n, mode),                                      \
	};                                                                                         \
	DEVICE_DT_INST_DEFINE(n, NULL, NULL, NULL, &status_config_##n, POST_KERNEL,                \
			      CONFIG_KERNEL_INIT_PRIORITY_DEVICE, &status_api);

DT_INST_FOREACH_STATUS_OKAY(STATUS_INIT)
