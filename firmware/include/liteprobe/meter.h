/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/**
 * @file
 * @brief What a test port has received.
 */

#ifndef LITEPROBE_METER_H_
#define LITEPROBE_METER_H_

#include <stdint.h>

#include <zephyr/device.h>

/** @brief Accumulators of the probe frames of a stream, all of one moment. */
struct lp_meter_totals {
	uint32_t frames;
	uint64_t octets;
	/** Arrival of the first and of the last frame (ns). */
	uint64_t first_stamp;
	uint64_t last_stamp;
	/** RX stamp less TX stamp (ns). */
	int64_t delay_min;
	int64_t delay_max;
	int64_t delay_sum;
	/** Sum of the squares of the delays (ns^2), 96 bits. */
	uint32_t delay_squares_high;
	uint64_t delay_squares_low;
	uint32_t duplicated;
	uint32_t reordered;
};

/** @brief What a driver of this class gives: the calls below, without their prefix. */
struct lp_meter_driver_api {
	int (*start)(const struct device *dev, uint16_t stream_id);
	int (*read)(const struct device *dev, struct lp_meter_totals *totals);
};

/**
 * @brief Begin anew, taking the frames of @p stream_id only, without records: these are for the
 * host.
 *
 * @retval 0 always.
 */
static inline int lp_meter_start(const struct device *dev, uint16_t stream_id)
{
	return DEVICE_API_GET(lp_meter, dev)->start(dev, stream_id);
}

/**
 * @brief Read the accumulators.
 *
 * @retval 0 on success.
 * @retval -EAGAIN when a host takes snapshots without end.
 */
static inline int lp_meter_read(const struct device *dev, struct lp_meter_totals *totals)
{
	return DEVICE_API_GET(lp_meter, dev)->read(dev, totals);
}

/** @brief Return the device of test port @p port, NULL when there is none that is ready. */
const struct device *lp_meter_port(uint32_t port);

#endif /* LITEPROBE_METER_H_ */
