/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/* Driver of the receive side of the test ports: cores/measure/. */

#define DT_DRV_COMPAT liteprobe_meter

#include <errno.h>

#include <zephyr/device.h>
#include <zephyr/sys/util.h>

#include <liteprobe/csr.h>
#include <liteprobe/generated/formats.h>
#include <liteprobe/meter.h>

#define READ_TRIES 8

struct meter_config {
	uint32_t port;
	mem_addr_t stream_id, records_enable, clear, latch, streams_memory;
};

/* An accumulator of the stream that is measured: slot 1 of the memory, the lowest word first. */
static uint32_t stream_word(const struct meter_config *config, uint32_t place)
{
	return sys_read32(config->streams_memory + 4 * (LP_STREAM_WORDS + place));
}

static uint64_t stream_pair(const struct meter_config *config, uint32_t place)
{
	uint64_t low = stream_word(config, place);

	return (uint64_t)stream_word(config, place + 1) << 32 | low;
}

static int meter_start(const struct device *dev, uint16_t stream_id)
{
	const struct meter_config *config = dev->config;

	lp_csr_write(config->stream_id, stream_id);
	lp_csr_write(config->records_enable, 0);
	lp_csr_write(config->clear, 1);

	return 0;
}

static int meter_read(const struct device *dev, struct lp_meter_totals *totals)
{
	const struct meter_config *config = dev->config;

	for (int i = 0; i < READ_TRIES; i++) {
		lp_csr_write(config->latch, 1);

		uint64_t octets = stream_pair(config, LP_STREAM_OCTETS);

		totals->frames = stream_word(config, LP_STREAM_FRAMES);
		totals->first_stamp = stream_pair(config, LP_STREAM_FIRST_STAMP);
		totals->last_stamp = stream_pair(config, LP_STREAM_LAST_STAMP);
		totals->delay_min = (int64_t)stream_pair(config, LP_STREAM_DELAY_MIN);
		totals->delay_max = (int64_t)stream_pair(config, LP_STREAM_DELAY_MAX);
		totals->delay_sum = (int64_t)stream_pair(config, LP_STREAM_DELAY_SUM);
		totals->delay_squares_low = stream_pair(config, LP_STREAM_DELAY_SQUARE_SUM);
		totals->delay_squares_high = stream_word(config, LP_STREAM_DELAY_SQUARE_SUM + 2);
		totals->duplicated = stream_word(config, LP_STREAM_DUPLICATED);
		totals->reordered = stream_word(config, LP_STREAM_REORDERED);
		totals->octets = stream_pair(config, LP_STREAM_OCTETS);
		/* A host's snapshot in between, with more frames, would have more octets. */
		if (totals->octets == octets) {
			return 0;
		}
	}

	return -EAGAIN;
}

static const struct lp_meter_driver_api meter_api = {
	.start = meter_start,
	.read = meter_read,
};

#define METER_REG(n, name) .name = DT_INST_REG_ADDR_BY_NAME(n, name)

#define METER_INIT(n)                                                                              \
	static const struct meter_config meter_config_##n = {                                      \
		.port = DT_INST_PROP(n, port),                                                     \
		METER_REG(n, stream_id),                                                           \
		METER_REG(n, records_enable),                                                      \
		METER_REG(n, clear),                                                               \
		METER_REG(n, latch),                                                               \
		METER_REG(n, streams_memory),                                                      \
	};                                                                                         \
	DEVICE_DT_INST_DEFINE(n, NULL, NULL, NULL, &meter_config_##n, POST_KERNEL,                 \
			      CONFIG_KERNEL_INIT_PRIORITY_DEVICE, &meter_api);

DT_INST_FOREACH_STATUS_OKAY(METER_INIT)

#define METER_GET(n) DEVICE_DT_INST_GET(n),

const struct device *lp_meter_port(uint32_t port)
{
	static const struct device *const ports[] = {DT_INST_FOREACH_STATUS_OKAY(METER_GET)};

	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		if (((const struct meter_config *)ports[i]->config)->port == port) {
			return device_is_ready(ports[i]) ? ports[i] : NULL;
		}
	}

	return NULL;
}
