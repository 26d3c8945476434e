/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/**
 * @file
 * @brief What a loader reads of an image: which gateware it was built for, and where it runs.
 *
 * `host/device/firmware.py` finds it in the image by its signature. Words are little-endian.
 */

#ifndef LITEPROBE_IMAGE_H_
#define LITEPROBE_IMAGE_H_

#include <stdint.h>

#define LP_IMAGE_SIGNATURE "LiteProbe image"
#define LP_IMAGE_FORMAT    1

struct lp_image {
	char signature[16];
	uint32_t format;
	uint32_t map_hash;
	const void *start;
	/** First octet behind all that it uses of the RAM. */
	const void *end;
	char version[32];
};

extern const struct lp_image lp_image;

/**
 * Cycle in which the image was found to belong to the gateware: some 50 instructions after its
 * first.
 */
extern uint32_t lp_image_started;

#endif /* LITEPROBE_IMAGE_H_ */
