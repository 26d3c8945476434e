/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/**
 * @file
 * @brief Registers of the gateware: words of 32 bits, the highest first.
 */

#ifndef LITEPROBE_CSR_H_
#define LITEPROBE_CSR_H_

#include <stdint.h>

#include <zephyr/arch/cpu.h>
#include <zephyr/sys/sys_io.h>

static inline uint32_t lp_csr_read(mem_addr_t address)
{
	return sys_read32(address);
}

/**
 * @brief Read a register of two words; both are of one moment only where the gateware holds them
 * still.
 */
static inline uint64_t lp_csr_read64(mem_addr_t address)
{
	uint64_t high = sys_read32(address);

	return high << 32 | sys_read32(address + 4);
}

static inline void lp_csr_write(mem_addr_t address, uint32_t value)
{
	sys_write32(value, address);
}

/** @brief Write a register of two words; it takes its value as the low word is written. */
static inline void lp_csr_write64(mem_addr_t address, uint64_t value)
{
	sys_write32(value >> 32, address);
	sys_write32((uint32_t)value, address + 4);
}

#endif /* LITEPROBE_CSR_H_ */
