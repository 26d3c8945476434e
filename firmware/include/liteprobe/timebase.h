/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/**
 * @file
 * @brief The clock that stamps all frames.
 *
 * With CONFIG_PTP_CLOCK the device is a PTP clock of Zephyr. Its `rate_adjust` takes a double,
 * which this processor has to compute in software: the calls here take integers.
 */

#ifndef LITEPROBE_TIMEBASE_H_
#define LITEPROBE_TIMEBASE_H_

#include <stdint.h>

#include <zephyr/device.h>

/** Nanoseconds of a tick, 8.40 fixed point, where the oscillator has exactly 125 MHz. */
#define LP_TIMEBASE_INCREMENT (8ULL << 40)
/** A rate of 1 ppb in the unit of the calls here, 2^-8 ppb. */
#define LP_TIMEBASE_PPB       256
/** Greatest rate that is taken: 1000 ppm. */
#define LP_TIMEBASE_RATE_MAX  (1000000 * LP_TIMEBASE_PPB)

/** @brief A moment of the clock. */
struct lp_time {
	/** Nanoseconds since the PTP epoch once set, else since reset. */
	uint64_t now;
	/** In 2^-32 ns. */
	uint32_t fraction;
	/** Ticks since reset. */
	uint64_t ticks;
};

/**
 * @brief Read the clock.
 *
 * A host that reads it in the same moment disturbs nothing: the reading is repeated until it is of
 * one moment.
 *
 * @retval 0 on success.
 * @retval -EAGAIN when a host reads without end.
 */
int lp_timebase_read(const struct device *dev, struct lp_time *time);

/**
 * @brief Set the clock to @p now (ns), its fraction to 0.
 *
 * @retval 0 always.
 */
int lp_timebase_set(const struct device *dev, uint64_t now);

/**
 * @brief Add @p step (signed ns, 32.32 fixed point) to the clock, once.
 *
 * Steps must be five ticks (40 ns) apart, which two calls always are.
 *
 * @retval 0 always.
 */
int lp_timebase_step(const struct device *dev, int64_t step);

/**
 * @brief Set what a tick adds, ns in 8.40 fixed point.
 *
 * @retval 0 on success.
 * @retval -EINVAL when it is further than LP_TIMEBASE_RATE_MAX from 8 ns.
 */
int lp_timebase_set_increment(const struct device *dev, uint64_t increment);

/** @brief Return what a tick adds, ns in 8.40 fixed point. */
uint64_t lp_timebase_increment(const struct device *dev);

/**
 * @brief Make the clock faster by @p rate (signed, 2^-8 ppb) than its oscillator at 125 MHz would
 * have it.
 *
 * @retval 0 on success.
 * @retval -EINVAL when it is above LP_TIMEBASE_RATE_MAX either way.
 */
int lp_timebase_set_rate(const struct device *dev, int32_t rate);

/** @brief Return the rate that is set, in 2^-8 ppb, rounded to the nearest. */
int32_t lp_timebase_rate(const struct device *dev);

#endif /* LITEPROBE_TIMEBASE_H_ */
