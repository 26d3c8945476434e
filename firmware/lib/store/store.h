/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * Keeps a record in a flash over the loss of power at any moment: two sectors, written in turn,
 * each with a number that grows and a CRC-32 over all of it. What was cut short has no right sum,
 * and the one before still stands in the other sector. A sector that holds something else, or
 * nothing, does not count.
 */

#ifndef LITEPROBE_STORE_H
#define LITEPROBE_STORE_H

#include <stdint.h>

#define LP_STORE_SECTOR 4096u
/* Octets of a record. */
#define LP_STORE_MOST   112u

/** A flash; each call returns 0 or a negative errno. */
struct lp_store_flash {
	int (*read)(uint32_t address, uint8_t *octets, uint32_t count);
	int (*erase)(uint32_t address); /* A sector. */
	/* At most LP_STORE_PAGE octets, of one page, where it is erased. */
	int (*write)(uint32_t address, const uint8_t *octets, uint32_t count);
};

/* Of a record in the flash: less than a page of any SPI flash. */
#define LP_STORE_PAGE (LP_STORE_MOST + 16u)

/** Return the CRC-32 (IEEE 802.3) of octets. */
uint32_t lp_store_crc(const uint8_t *octets, uint32_t count);

/**
 * Read the latest record, from two sectors that begin at ``address``.
 *
 * @retval 0 on success
 * @retval -ENOENT when there is none of this length
 * @return a negative errno of the flash
 */
int lp_store_load(const struct lp_store_flash *flash, uint32_t address, uint8_t *octets,
		  uint32_t count);

/**
 * Write a record in the place of the older one, and read it back; nothing is written where it is
 * the latest already.
 *
 * @retval 0 on success
 * @retval -EINVAL when it is longer than LP_STORE_MOST
 * @retval -EIO when the flash doesn't keep it: it may be write-protected
 * @return a negative errno of the flash
 */
int lp_store_save(const struct lp_store_flash *flash, uint32_t address, const uint8_t *octets,
		  uint32_t count);

#endif
