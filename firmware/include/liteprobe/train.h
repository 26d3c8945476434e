/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/**
 * @file
 * @brief Packet trains: frames that leave a test port on their exact tick.
 */

#ifndef LITEPROBE_TRAIN_H_
#define LITEPROBE_TRAIN_H_

#include <stdbool.h>
#include <stdint.h>

#include <zephyr/device.h>

#include <liteprobe/generated/formats.h>

/** @brief What to send. */
struct lp_train_program {
	uint16_t length;
	uint32_t count;
	uint32_t repeats;
	/** Start to start (ticks, 2^-32 ticks); both 0: back to back. */
	uint32_t interval_ticks;
	uint32_t interval_fraction;
	/** Between the slot of a train's last frame and the next head. */
	uint32_t gap_ticks;
	/** Of the first SFD (ns), where `is_timed`. */
	uint64_t start_time;
	bool is_timed;
	/** Octet of the frame at which the UDP payload starts. */
	uint8_t payload_offset;
	uint8_t header[LP_TRAIN_HEADER];
};

/** @brief Counters of the present program. */
struct lp_train_counters {
	uint32_t sent;
	uint32_t late;
	uint32_t underruns;
};

/** @brief What a driver of this class gives: the calls below, without their prefix. */
struct lp_train_driver_api {
	int (*arm)(const struct device *dev, const struct lp_train_program *program);
	int (*stop)(const struct device *dev);
	enum lp_train_state (*state)(const struct device *dev);
	int (*counters)(const struct device *dev, struct lp_train_counters *counters);
	uint32_t (*number)(const struct device *dev);
};

/**
 * @brief Load a program, and build its first frames.
 *
 * @retval 0 on success; wait for LP_TRAIN_READY before the start.
 * @retval -EINVAL when length, count or repeats can't be.
 * @retval -EBUSY when the port sends.
 * @retval -ENETDOWN when its link is down.
 */
static inline int lp_train_arm(const struct device *dev, const struct lp_train_program *program)
{
	return DEVICE_API_GET(lp_train, dev)->arm(dev, program);
}

/**
 * @brief Start the ports of @p mask in one tick, once all are ready; 0 cancels a start that waits.
 */
void lp_train_start(uint32_t mask);

/** @brief End the program after the present frame. @retval 0 always. */
static inline int lp_train_stop(const struct device *dev)
{
	return DEVICE_API_GET(lp_train, dev)->stop(dev);
}

/** @brief Return what the port does. */
static inline enum lp_train_state lp_train_state(const struct device *dev)
{
	return DEVICE_API_GET(lp_train, dev)->state(dev);
}

/** @brief Return whether frames of any port leave now: the clock must not be stepped then. */
#ifdef CONFIG_LITEPROBE_TRAIN
bool lp_train_any_running(void);
#else
static inline bool lp_train_any_running(void)
{
	return false;
}
#endif

/** @brief Read the counters. @retval 0 always. */
static inline int lp_train_counters(const struct device *dev, struct lp_train_counters *counters)
{
	return DEVICE_API_GET(lp_train, dev)->counters(dev, counters);
}

/** @brief Return the device of test port @p port, NULL when there is none that is ready. */
const struct device *lp_train_port(uint32_t port);

/** @brief Return the number of the test port. */
static inline uint32_t lp_train_number(const struct device *dev)
{
	return DEVICE_API_GET(lp_train, dev)->number(dev);
}

#endif /* LITEPROBE_TRAIN_H_ */
