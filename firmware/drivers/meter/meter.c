/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* Driver of the receive side of the test ports: cores/measure/. */

#define DT_DRV_COMPAT liteprobe_meter

#include <errno.h>

#include <zephyr/device.h>
#include <zephyr/sys/util.h>

#include <liteprobe/csr.h>
#include <liteprobe/meter.h>

#define READ_TRIES 8

struct meter_config {
	uint32_t port;
	mem_addr_t stream_id, stream_any, records_enable, clear, latch;
	mem_addr_t frames, octets, first_stamp, last_stamp, delay_min, delay_max, delay_sum, delay_square_sum;
	mem_addr_t lost, duplicated, reordered, fcs_errors;
};

int lp_meter_start(const struct device *dev, uint16_t stream_id)
{
	const struct meter_config *config = dev->config;

	lp_csr_write(config->stream_id, stream_id);
	lp_csr_write(config->stream_any, 0);
	lp_csr_write(config->records_enable, 0);
	lp_csr_write(config->clear, 1);

	return 0;
}

int lp_meter_read(const struct device *dev, struct lp_meter_totals *totals)
{
	const struct meter_config *config = dev->config;

	for (int i = 0; i < READ_TRIES; i++) {
		lp_csr_write(config->latch, 1);

		uint64_t octets = lp_csr_read64(config->octets);

		totals->frames = lp_csr_read(config->frames);
		totals->first_stamp = lp_csr_read64(config->first_stamp);
		totals->last_stamp = lp_csr_read64(config->last_stamp);
		totals->delay_min = (int64_t)lp_csr_read64(config->delay_min);
		totals->delay_max = (int64_t)lp_csr_read64(config->delay_max);
		totals->delay_sum = (int64_t)lp_csr_read64(config->delay_sum);
		totals->delay_squares_high = lp_csr_read(config->delay_square_sum);
		totals->delay_squares_low = lp_csr_read64(config->delay_square_sum + 4);
		totals->lost = lp_csr_read(config->lost);
		totals->duplicated = lp_csr_read(config->duplicated);
		totals->reordered = lp_csr_read(config->reordered);
		totals->fcs_errors = lp_csr_read(config->fcs_errors);
		totals->octets = lp_csr_read64(config->octets);
		/* A host's snapshot in between, with more frames, would have more octets. */
		if (totals->octets == octets) {
			return 0;
		}
	}

	return -EAGAIN;
}

#define METER_REG(n, name) .name = DT_INST_REG_ADDR_BY_NAME(n, name)

#define METER_INIT(n)                                                                                                  \
	static const struct meter_config meter_config_##n = {                                                          \
		.port = DT_INST_PROP(n, port),                                                                         \
		METER_REG(n, stream_id),  METER_REG(n, stream_any), METER_REG(n, records_enable),                      \
		METER_REG(n, clear),      METER_REG(n, latch),      METER_REG(n, frames),    METER_REG(n, octets),     \
		METER_REG(n, first_stamp), METER_REG(n, last_stamp), METER_REG(n, delay_min), METER_REG(n, delay_max), \
		METER_REG(n, delay_sum),  METER_REG(n, delay_square_sum), METER_REG(n, lost), METER_REG(n, duplicated), \
		METER_REG(n, reordered),  METER_REG(n, fcs_errors),                                                    \
	};                                                                                                             \
	DEVICE_DT_INST_DEFINE(n, NULL, NULL, NULL, &meter_config_##n, POST_KERNEL, CONFIG_KERNEL_INIT_PRIORITY_DEVICE, \
			      NULL);

DT_INST_FOREACH_STATUS_OKAY(METER_INIT)

#define METER_GET(n) DEVICE_DT_INST_GET(n),

const struct device *lp_meter_port(uint32_t port)
{
	static const struct device *const ports[] = {DT_INST_FOREACH_STATUS_OKAY(METER_GET)};

	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		if (((const struct meter_config *)ports[i]->config)->port == port) {
			return ports[i];
		}
	}

	return NULL;
}
