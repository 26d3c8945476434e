/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/* Driver of the clock that stamps all frames: cores/timebase/clock.py. */

#define DT_DRV_COMPAT liteprobe_timebase

#include <errno.h>

#include <zephyr/device.h>
#include <zephyr/drivers/ptp_clock.h>
#include <zephyr/irq.h>
#include <zephyr/logging/log.h>

#include <liteprobe/csr.h>
#include <liteprobe/timebase.h>

#include "rate/rate.h"

LOG_MODULE_REGISTER(lp_timebase, CONFIG_LITEPROBE_LOG_LEVEL);

#define NS_PER_S   1000000000ULL
#define READ_TRIES 8

struct timebase_config {
	mem_addr_t latch;
	mem_addr_t now;
	mem_addr_t now_fraction;
	mem_addr_t ticks;
	mem_addr_t increment;
	mem_addr_t set_time;
	mem_addr_t set;
	mem_addr_t adjust;
	mem_addr_t adjust_apply;
};

int lp_timebase_read(const struct device *dev, struct lp_time *time)
{
	const struct timebase_config *config = dev->config;

	for (int i = 0; i < READ_TRIES; i++) {
		lp_csr_write(config->latch, 1);

		uint64_t ticks = lp_csr_read64(config->ticks);

		time->now = lp_csr_read64(config->now);
		time->fraction = lp_csr_read(config->now_fraction);
		time->ticks = lp_csr_read64(config->ticks);
		/* Another snapshot, a host's, would have other ticks. */
		if (time->ticks == ticks) {
			return 0;
		}
	}
	LOG_ERR("a host reads the clock without end: slow it down");

	return -EAGAIN;
}

int lp_timebase_set(const struct device *dev, uint64_t now)
{
	const struct timebase_config *config = dev->config;

	lp_csr_write64(config->set_time, now);
	lp_csr_write(config->set, 1);

	return 0;
}

int lp_timebase_step(const struct device *dev, int64_t step)
{
	const struct timebase_config *config = dev->config;

	lp_csr_write64(config->adjust, (uint64_t)step);
	lp_csr_write(config->adjust_apply, 1);

	return 0;
}

int lp_timebase_set_increment(const struct device *dev, uint64_t increment)
{
	const struct timebase_config *config = dev->config;
	const uint64_t margin = LP_TIMEBASE_INCREMENT / 1000;

	if (increment < LP_TIMEBASE_INCREMENT - margin ||
	    increment > LP_TIMEBASE_INCREMENT + margin) {
		LOG_ERR("an increment of %llu * 2^-40 ns is more than 1000 ppm off", increment);
		return -EINVAL;
	}
	lp_csr_write64(config->increment, increment);

	return 0;
}

uint64_t lp_timebase_increment(const struct device *dev)
{
	const struct timebase_config *config = dev->config;

	return lp_csr_read64(config->increment);
}

/* Round half away from zero, with an integer of 64 bits: |value| stays below 2^62 here. */
static int64_t divide(int64_t value, int64_t by)
{
	return value < 0 ? -((-value + by / 2) / by) : (value + by / 2) / by;
}

int lp_timebase_set_rate(const struct device *dev, int32_t rate)
{
	if (rate > LP_TIMEBASE_RATE_MAX || rate < -LP_TIMEBASE_RATE_MAX) {
		LOG_ERR("a rate of %d / 256 ppb is above 1000 ppm", rate);
		return -EINVAL;
	}
	/* 2^43 / (10^9 * 2^8) = 2^26 / 5^9 / 2^0: exact, and in 64 bits. */
	int64_t step = divide((int64_t)rate << 26, 1953125);

	return lp_timebase_set_increment(dev, LP_TIMEBASE_INCREMENT + step);
}

int32_t lp_timebase_rate(const struct device *dev)
{
	int64_t step = (int64_t)(lp_timebase_increment(dev) - LP_TIMEBASE_INCREMENT);

	return (int32_t)divide(step * 1953125, 1LL << 26);
}

/* Zephyr's ptp_clock --------------------------------------------------------------------------- */

static int timebase_ptp_set(const struct device *dev, struct net_ptp_time *tm)
{
	return lp_timebase_set(dev, tm->second * NS_PER_S + tm->nanosecond);
}

static int timebase_ptp_get(const struct device *dev, struct net_ptp_time *tm)
{
	struct lp_time time;
	int ret = lp_timebase_read(dev, &time);

	if (ret == 0) {
		tm->second = time.now / NS_PER_S;
		tm->nanosecond = (uint32_t)(time.now % NS_PER_S);
	}

	return ret;
}

static int timebase_ptp_adjust(const struct device *dev, int increment)
{
	return lp_timebase_step(dev, (int64_t)increment * (1LL << 32));
}

static int timebase_ptp_rate_adjust(const struct device *dev, double ratio)
{
	/* The ratio is of the rate that the clock has now. */
	uint64_t increment = lp_timebase_increment(dev);
	int ret = lp_rate_apply(&increment, ratio);

	return ret < 0 ? ret : lp_timebase_set_increment(dev, increment);
}

static DEVICE_API(ptp_clock, timebase_api) = {
	.set = timebase_ptp_set,
	.get = timebase_ptp_get,
	.adjust = timebase_ptp_adjust,
	.rate_adjust = timebase_ptp_rate_adjust,
};

#define TIMEBASE_REG(n, name) .name = DT_INST_REG_ADDR_BY_NAME(n, name)

#define TIMEBASE_INIT(n)                                                                           \
	static const struct timebase_config timebase_config_##n = {                                \
		TIMEBASE_REG(n, latch), TIMEBASE_REG(n, now),       TIMEBASE_REG(n, now_fraction), \
		TIMEBASE_REG(n, ticks), TIMEBASE_REG(n, increment), TIMEBASE_REG(n, set_time),     \
		TIMEBASE_REG(n, set),   TIMEBASE_REG(n, adjust),    TIMEBASE_REG(n, adjust_apply), \
	};                                                                                         \
	DEVICE_DT_INST_DEFINE(n, NULL, NULL, NULL, &timebase_config_##n, POST_KERNEL,              \
			      CONFIG_KERNEL_INIT_PRIORITY_DEVICE, &timebase_api);

DT_INST_FOREACH_STATUS_OKAY(TIMEBASE_INIT)
