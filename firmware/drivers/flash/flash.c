/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * The board's SPI flash, octet by octet through a register: soc/boot.py. Commands of all SPI NOR
 * flashes (JESD216), addresses of three octets. Writing takes a while, in which the thread sleeps.
 */

#define DT_DRV_COMPAT liteprobe_flash

#include <errno.h>

#include <zephyr/device.h>
#include <zephyr/drivers/flash.h>
#include <zephyr/kernel.h>

#include <liteprobe/csr.h>

#define READ         0x03
#define WRITE_ENABLE 0x06
#define STATUS       0x05
#define PROGRAM      0x02
#define ERASE        0x20

#define STATUS_BUSY BIT(0)
#define SELECT      BIT(8)
#define EXCHANGING  BIT(8)
#define MOST_OCTETS BIT(24)
#define SECTOR      4096
#define PAGE        256
/* A look takes some cycles, an octet under a microsecond: a millisecond at 50 MHz, or more. */
#define LOOKS       10000
/* Of the slowest sector erase. */
#define PATIENCE_MS 1000

struct flash_config {
	mem_addr_t port;
};

struct flash_data {
	struct k_mutex lock;
};

static const struct flash_parameters parameters = {
	.write_block_size = 1,
	.erase_value = 0xff,
};

/* Write the port, and return what it holds once the octet is exchanged, or a negative errno. */
static int put(const struct device *dev, uint32_t word)
{
	const struct flash_config *config = dev->config;

	lp_csr_write(config->port, word);
	for (int i = 0; i < LOOKS; i++) {
		word = lp_csr_read(config->port);
		if ((word & EXCHANGING) == 0) {
			return (int)(word & 0xff);
		}
	}

	return -ETIMEDOUT;
}

static int exchange(const struct device *dev, uint8_t octet)
{
	return put(dev, SELECT | octet);
}

/* An octet that nobody takes goes by meanwhile. */
static int end(const struct device *dev)
{
	return MIN(put(dev, 0), 0);
}

static int begin(const struct device *dev, uint8_t command, off_t address)
{
	int ret = exchange(dev, command);

	for (int shift = 16; ret >= 0 && shift >= 0; shift -= 8) {
		ret = exchange(dev, (uint8_t)(address >> shift));
	}

	return ret;
}

static int wait_done(const struct device *dev)
{
	int64_t until = k_uptime_get() + PATIENCE_MS;
	int status;

	do {
		status = exchange(dev, STATUS);
		status = status < 0 ? status : exchange(dev, 0);
		(void)end(dev);
		if (status < 0 || (status & STATUS_BUSY) == 0) {
			return MIN(status, 0);
		}
		k_msleep(1);
	} while (k_uptime_get() < until);

	return -ETIMEDOUT;
}

/* Erase a sector, or write octets of one page. */
static int change(const struct device *dev, uint8_t command, off_t address, const uint8_t *octets,
		  size_t count)
{
	int ret = exchange(dev, WRITE_ENABLE);

	ret = MIN(ret, end(dev));
	ret = ret < 0 ? ret : begin(dev, command, address);
	for (size_t i = 0; ret >= 0 && i < count; i++) {
		ret = exchange(dev, octets[i]);
	}
	ret = MIN(ret, end(dev));

	return ret < 0 ? ret : wait_done(dev);
}

static bool is_outside(off_t offset, size_t len)
{
	return offset < 0 || offset > MOST_OCTETS || len > MOST_OCTETS - (size_t)offset;
}

static int flash_lp_read(const struct device *dev, off_t offset, void *octets, size_t len)
{
	struct flash_data *data = dev->data;
	int ret;

	if (is_outside(offset, len)) {
		return -EINVAL;
	}
	k_mutex_lock(&data->lock, K_FOREVER);
	ret = begin(dev, READ, offset);
	for (size_t i = 0; ret >= 0 && i < len; i++) {
		ret = exchange(dev, 0);
		((uint8_t *)octets)[i] = (uint8_t)ret;
	}
	ret = MIN(ret, end(dev));
	k_mutex_unlock(&data->lock);

	return MIN(ret, 0);
}

static int flash_lp_write(const struct device *dev, off_t offset, const void *octets, size_t len)
{
	struct flash_data *data = dev->data;
	const uint8_t *from = octets;
	int ret = 0;

	if (is_outside(offset, len)) {
		return -EINVAL;
	}
	k_mutex_lock(&data->lock, K_FOREVER);
	while (ret == 0 && len > 0) {
		size_t count = MIN(len, PAGE - offset % PAGE);

		ret = change(dev, PROGRAM, offset, from, count);
		offset += count;
		from += count;
		len -= count;
	}
	k_mutex_unlock(&data->lock);

	return ret;
}

static int flash_lp_erase(const struct device *dev, off_t offset, size_t size)
{
	struct flash_data *data = dev->data;
	int ret = 0;

	if (is_outside(offset, size) || offset % SECTOR != 0 || size % SECTOR != 0) {
		return -EINVAL;
	}
	k_mutex_lock(&data->lock, K_FOREVER);
	for (size_t done = 0; ret == 0 && done < size; done += SECTOR) {
		ret = change(dev, ERASE, offset + (off_t)done, NULL, 0);
	}
	k_mutex_unlock(&data->lock);

	return ret;
}

static const struct flash_parameters *flash_lp_parameters(const struct device *dev)
{
	ARG_UNUSED(dev);

	return &parameters;
}

static int flash_lp_init(const struct device *dev)
{
	struct flash_data *data = dev->data;

	return k_mutex_init(&data->lock);
}

static DEVICE_API(flash, flash_lp_api) = {
	.read = flash_lp_read,
	.write = flash_lp_write,
	.erase = flash_lp_erase,
	.get_parameters = flash_lp_parameters,
};

#define FLASH_INIT(n)                                                                              \
	static const struct flash_config flash_config_##n = {                                      \
		.port = DT_INST_REG_ADDR(n),                                                       \
	};                                                                                         \
	static struct flash_data flash_data_##n;                                                   \
	DEVICE_DT_INST_DEFINE(n, flash_lp_init, NULL, &flash_data_##n, &flash_config_##n,          \
			      POST_KERNEL, CONFIG_FLASH_INIT_PRIORITY, &flash_lp_api);

DT_INST_FOREACH_STATUS_OKAY(FLASH_INIT)
