/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/**
 * @file
 * @brief The board's SPI flash, octet by octet through a register: for what is kept over a reset.
 *
 * One caller at a time. Writing takes a while, in which the thread sleeps.
 */

#ifndef LITEPROBE_FLASH_H_
#define LITEPROBE_FLASH_H_

#include <stdint.h>

/**
 * @brief Read @p count octets from @p address on.
 *
 * @retval 0 on success.
 * @retval -ENODEV when the gateware has no port to a flash.
 */
int lp_flash_read(uint32_t address, uint8_t *octets, uint32_t count);

/**
 * @brief Erase the sector of 4 KiB at @p address.
 *
 * @retval 0 on success, as far as the flash says.
 * @retval -ENODEV when the gateware has no port to a flash.
 * @retval -ETIMEDOUT when the flash stays busy.
 */
int lp_flash_erase(uint32_t address);

/** @brief Write up to 256 octets of a page, where it is erased. @retval as of lp_flash_erase(). */
int lp_flash_write(uint32_t address, const uint8_t *octets, uint32_t count);

#endif /* LITEPROBE_FLASH_H_ */
