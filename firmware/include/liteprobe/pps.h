/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/**
 * @file
 * @brief PPS input, each edge stamped in the clock of the probe; PPS output.
 */

#ifndef LITEPROBE_PPS_H_
#define LITEPROBE_PPS_H_

#include <stdbool.h>
#include <stdint.h>

#include <zephyr/device.h>

#include <liteprobe/generated/formats.h>

/** @brief An edge, all of it of one moment. */
struct lp_pps_edge {
	/** Edges accepted since reset, this one included. */
	uint32_t count;
	/** Clock at the edge (ns), and its fraction (2^-32 ns). */
	uint64_t now;
	uint32_t fraction;
	/** Free-running ticks at the edge. */
	uint64_t ticks;
	/** Ticks that its pulse had been high by then. */
	uint32_t width;
	/**
	 * From the end of the part of the tick that the edge came in to the end of the tick (ps).
	 */
	uint32_t early_ps;
	/** LP_PPS_SPURIOUS: further from its due time than the window allows. */
	uint8_t flags;
};

/** @brief How to take the input. */
struct lp_pps_config {
	bool is_inverted;
	/** Nominal period (ns); 0: leave what the gateware has, 1 s after its reset. */
	uint32_t period;
	/** Ticks that a pulse must stay high. */
	uint32_t min_width;
	/** ns; 0: no edge is spurious. */
	uint32_t window;
};

/** @brief What was not an edge; all wrap. */
struct lp_pps_counters {
	uint32_t edges;
	uint32_t glitches;
	uint32_t missing;
	uint32_t spurious;
};

/** @brief Called in the interrupt, after each edge. */
typedef void (*lp_pps_callback)(const struct device *dev, const struct lp_pps_edge *edge,
				void *user);

/** @brief What a driver of this class gives: the calls below, without their prefix. */
struct lp_pps_driver_api {
	int (*start)(const struct device *dev, const struct lp_pps_config *config,
		     lp_pps_callback callback, void *user);
	int (*stop)(const struct device *dev);
	int (*read)(const struct device *dev, struct lp_pps_edge *edge);
	bool (*is_present)(const struct device *dev);
	uint32_t (*period)(const struct device *dev);
	uint32_t (*quantum_ps)(const struct device *dev);
	int (*counters)(const struct device *dev, struct lp_pps_counters *counters);
	int (*output)(const struct device *dev, uint64_t next, uint32_t period, uint32_t width);
	uint32_t (*output_late)(const struct device *dev);
};

/**
 * @brief Enable the input, and call @p callback for each edge.
 *
 * @retval 0 on success.
 * @retval -EINVAL when @p callback is NULL.
 */
static inline int lp_pps_start(const struct device *dev, const struct lp_pps_config *config,
			       lp_pps_callback callback, void *user)
{
	return DEVICE_API_GET(lp_pps, dev)->start(dev, config, callback, user);
}

/** @brief Disable input and interrupt. @retval 0 always. */
static inline int lp_pps_stop(const struct device *dev)
{
	return DEVICE_API_GET(lp_pps, dev)->stop(dev);
}

/**
 * @brief Read the last edge, of one moment though a host may read it too.
 *
 * @retval 0 on success.
 * @retval -ENODATA when there was none since reset.
 * @retval -EAGAIN when edges come faster than they can be read.
 */
static inline int lp_pps_read(const struct device *dev, struct lp_pps_edge *edge)
{
	return DEVICE_API_GET(lp_pps, dev)->read(dev, edge);
}

/** @brief Return whether there was an edge within 1.5 periods. */
static inline bool lp_pps_is_present(const struct device *dev)
{
	return DEVICE_API_GET(lp_pps, dev)->is_present(dev);
}

/** @brief Return the nominal period (ns). */
static inline uint32_t lp_pps_period(const struct device *dev)
{
	return DEVICE_API_GET(lp_pps, dev)->period(dev);
}

/**
 * @brief Return the part of a tick that an edge is captured with (ps): a tick, half of it, or a
 * quarter.
 */
static inline uint32_t lp_pps_quantum_ps(const struct device *dev)
{
	return DEVICE_API_GET(lp_pps, dev)->quantum_ps(dev);
}

/** @brief Read the counters. @retval 0 always. */
static inline int lp_pps_counters(const struct device *dev, struct lp_pps_counters *counters)
{
	return DEVICE_API_GET(lp_pps, dev)->counters(dev, counters);
}

/**
 * @brief Put out a pulse of @p width ticks at @p next (ns of the clock), and every @p period ns
 * from then on.
 *
 * @retval 0 on success; a period of 0 turns the output off.
 * @retval -EINVAL when the pulse is as long as the period, or longer.
 */
static inline int lp_pps_output(const struct device *dev, uint64_t next, uint32_t period,
				uint32_t width)
{
	return DEVICE_API_GET(lp_pps, dev)->output(dev, next, period, width);
}

/** @brief Return the edges of the output whose time had passed. */
static inline uint32_t lp_pps_output_late(const struct device *dev)
{
	return DEVICE_API_GET(lp_pps, dev)->output_late(dev);
}

#endif /* LITEPROBE_PPS_H_ */
