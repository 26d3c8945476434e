/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/* The port to the board's flash: soc/boot.py. Commands of all SPI NOR flashes (JESD216). */

#include <errno.h>

#include <zephyr/devicetree.h>
#include <zephyr/kernel.h>

#include <liteprobe/csr.h>
#include <liteprobe/flash.h>

#define READ         0x03
#define WRITE_ENABLE 0x06
#define STATUS       0x05
#define PROGRAM      0x02
#define ERASE        0x20

#define STATUS_BUSY BIT(0)
#define SELECT      BIT(8)
#define EXCHANGING  BIT(8)
/* Of the slowest sector erase. */
#define PATIENCE_MS 1000

#if DT_REG_HAS_NAME(DT_NODELABEL(boot), flash)
#define PORT DT_REG_ADDR_BY_NAME(DT_NODELABEL(boot), flash)

static uint8_t exchange(uint8_t octet)
{
	uint32_t word;

	lp_csr_write(PORT, SELECT | octet);
	do {
		word = lp_csr_read(PORT);
	} while ((word & EXCHANGING) != 0);

	return (uint8_t)word;
}

static void begin(uint8_t command, uint32_t address)
{
	exchange(command);
	for (int shift = 16; shift >= 0; shift -= 8) {
		exchange((uint8_t)(address >> shift));
	}
}

/* An octet that nobody takes goes by meanwhile. */
static void end(void)
{
	lp_csr_write(PORT, 0);
	while ((lp_csr_read(PORT) & EXCHANGING) != 0) {
	}
}

int lp_flash_read(uint32_t address, uint8_t *octets, uint32_t count)
{
	begin(READ, address);
	for (uint32_t i = 0; i < count; i++) {
		octets[i] = exchange(0);
	}
	end();

	return 0;
}

static void enable(void)
{
	exchange(WRITE_ENABLE);
	end();
}

static int wait_done(void)
{
	int64_t until = k_uptime_get() + PATIENCE_MS;
	uint8_t status;

	do {
		exchange(STATUS);
		status = exchange(0);
		end();
		if ((status & STATUS_BUSY) == 0) {
			return 0;
		}
		k_msleep(1);
	} while (k_uptime_get() < until);

	return -ETIMEDOUT;
}

int lp_flash_erase(uint32_t address)
{
	enable();
	begin(ERASE, address);
	end();

	return wait_done();
}

int lp_flash_write(uint32_t address, const uint8_t *octets, uint32_t count)
{
	enable();
	begin(PROGRAM, address);
	for (uint32_t i = 0; i < count; i++) {
		exchange(octets[i]);
	}
	end();

	return wait_done();
}

#else

int lp_flash_read(uint32_t address, uint8_t *octets, uint32_t count)
{
	ARG_UNUSED(address);
	ARG_UNUSED(octets);
	ARG_UNUSED(count);

	return -ENODEV;
}

int lp_flash_erase(uint32_t address)
{
	ARG_UNUSED(address);

	return -ENODEV;
}

int lp_flash_write(uint32_t address, const uint8_t *octets, uint32_t count)
{
	ARG_UNUSED(address);
	ARG_UNUSED(octets);
	ARG_UNUSED(count);

	return -ENODEV;
}

#endif
