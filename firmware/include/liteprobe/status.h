/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/**
 * @file
 * @brief What the firmware tells of the time, read by any host; with a watchdog.
 */

#ifndef LITEPROBE_STATUS_H_
#define LITEPROBE_STATUS_H_

#include <stdint.h>

#include <zephyr/device.h>
#include <zephyr/sys/util.h>

#include <liteprobe/generated/formats.h>

/** @brief State of the clock; units as in the registers of the block `clock`. */
struct lp_status {
	enum lp_clock_state state;
	/** 95 % bound, 2^-8 ns. */
	uint32_t uncertainty;
	/** Last residual, 2^-8 ns. */
	int32_t offset;
	/** Of the oscillator, 2^-8 ppb. */
	int32_t rate;
	/** 2^-8 ppt/s. */
	int32_t drift;
	uint32_t edges;
	uint32_t rejected;
	/** Seconds since the last edge that was used. */
	uint32_t holdover;
	/** TAI - UTC (s). */
	uint32_t tai_utc;
	/** LP_CLOCK_ERROR_* */
	uint32_t error;
	/**
	 * Quantisation error of the last edge, by lp_status_qerr(); 0: the receiver said nothing of
	 * it.
	 */
	uint32_t qerr;
};

/**
 * @brief Return the word of `qerr` for the edge @p count, @p late_ps later than the receiver's own
 * second.
 */
static inline uint32_t lp_status_qerr(uint32_t count, int32_t late_ps)
{
	return (uint32_t)late_ps << LP_QERR_BIT |
	       (count & LP_QERR_COUNT_MASK) << LP_QERR_COUNT_BIT | LP_QERR_KNOWN;
}

/** @brief What a driver of this class gives: the calls below, without their prefix. */
struct lp_status_driver_api {
	int (*publish)(const struct device *dev, const struct lp_status *status);
	enum lp_clock_mode (*mode)(const struct device *dev);
	int (*set_mode)(const struct device *dev, enum lp_clock_mode mode);
	uint32_t (*watchdog_ms)(const struct device *dev);
};

/** @brief Publish all of it at once, and feed the watchdog. @retval 0 always. */
static inline int lp_status_publish(const struct device *dev, const struct lp_status *status)
{
	return DEVICE_API_GET(lp_status, dev)->publish(dev, status);
}

/** @brief Return what a host wants. */
static inline enum lp_clock_mode lp_status_mode(const struct device *dev)
{
	return DEVICE_API_GET(lp_status, dev)->mode(dev);
}

/** @brief Tell the host that what it wanted is done. @retval 0 always. */
static inline int lp_status_set_mode(const struct device *dev, enum lp_clock_mode mode)
{
	return DEVICE_API_GET(lp_status, dev)->set_mode(dev, mode);
}

/** @brief Return the time without a publication after which the state reads 0 (ms). */
static inline uint32_t lp_status_watchdog_ms(const struct device *dev)
{
	return DEVICE_API_GET(lp_status, dev)->watchdog_ms(dev);
}

#endif /* LITEPROBE_STATUS_H_ */
