/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/* Driver of the transmit side of the test ports: cores/transmit/. */

#define DT_DRV_COMPAT liteprobe_train

#include <errno.h>

#include <zephyr/device.h>
#include <zephyr/logging/log.h>
#include <zephyr/sys/byteorder.h>

#include <liteprobe/csr.h>
#include <liteprobe/train.h>

LOG_MODULE_REGISTER(lp_train, CONFIG_LITEPROBE_LOG_LEVEL);

#define START DT_REG_ADDR_BY_NAME(DT_NODELABEL(probe), start)

struct train_config {
	uint32_t port;
	mem_addr_t length, count, repeats, interval_ticks, interval_fraction, gap_ticks, start_time,
		timed, fill;
	mem_addr_t payload_offset, checksum_enable, attached, arm, stop, clear;
	mem_addr_t state, sent, late, underruns, link_up;
	mem_addr_t header_memory;
};

static int check(const struct train_config *config, const struct lp_train_program *program)
{
	if (program->length < LP_TRAIN_LENGTH_MIN || program->length > LP_TRAIN_LENGTH_MAX) {
		LOG_ERR("frames of %u octets can't be sent: give %u to %u", program->length,
			LP_TRAIN_LENGTH_MIN, LP_TRAIN_LENGTH_MAX);
		return -EINVAL;
	}
	if (program->count == 0 || program->repeats == 0) {
		LOG_ERR("a train of no frames can't be sent: give count and repeats");
		return -EINVAL;
	}
	if (lp_csr_read(config->state) != LP_TRAIN_IDLE) {
		LOG_ERR("port %u sends: stop its program first", config->port);
		return -EBUSY;
	}
	if (lp_csr_read(config->link_up) == 0) {
		LOG_ERR("the link of port %u is down: plug in its cable", config->port);
		return -ENETDOWN;
	}

	return 0;
}

static int train_arm(const struct device *dev, const struct lp_train_program *program)
{
	const struct train_config *config = dev->config;
	int ret = check(config, program);

	if (ret < 0) {
		return ret;
	}
	for (int i = 0; i < LP_TRAIN_HEADER; i += 4) {
		lp_csr_write(config->header_memory + i, sys_get_le32(&program->header[i]));
	}
	lp_csr_write(config->length, program->length);
	lp_csr_write(config->count, program->count);
	lp_csr_write(config->repeats, program->repeats);
	lp_csr_write(config->interval_ticks, program->interval_ticks);
	lp_csr_write(config->interval_fraction, program->interval_fraction);
	lp_csr_write(config->gap_ticks, program->gap_ticks);
	lp_csr_write64(config->start_time, program->start_time);
	lp_csr_write(config->timed, program->is_timed);
	lp_csr_write(config->fill, 0);
	lp_csr_write(config->payload_offset, program->payload_offset);
	lp_csr_write(config->checksum_enable, 0);
	lp_csr_write(config->attached, 0); /* It outlives the lease of any host. */
	lp_csr_write(config->clear, 1);
	lp_csr_write(config->arm, 1);

	return 0;
}

void lp_train_start(uint32_t mask)
{
	lp_csr_write(START, mask);
}

static int train_stop(const struct device *dev)
{
	const struct train_config *config = dev->config;

	lp_csr_write(config->stop, 1);

	return 0;
}

static enum lp_train_state train_state(const struct device *dev)
{
	const struct train_config *config = dev->config;

	return (enum lp_train_state)lp_csr_read(config->state);
}

static int train_counters(const struct device *dev, struct lp_train_counters *counters)
{
	const struct train_config *config = dev->config;

	counters->sent = lp_csr_read(config->sent);
	counters->late = lp_csr_read(config->late);
	counters->underruns = lp_csr_read(config->underruns);

	return 0;
}

static uint32_t train_number(const struct device *dev)
{
	const struct train_config *config = dev->config;

	return config->port;
}

static const struct lp_train_driver_api train_api = {
	.arm = train_arm,
	.stop = train_stop,
	.state = train_state,
	.counters = train_counters,
	.number = train_number,
};

#define TRAIN_REG(n, name) .name = DT_INST_REG_ADDR_BY_NAME(n, name)

#define TRAIN_INIT(n)                                                                              \
	static const struct train_config train_config_##n = {                                      \
		.port = DT_INST_PROP(n, port),                                                     \
		TRAIN_REG(n, length),                                                              \
		TRAIN_REG(n, count),                                                               \
		TRAIN_REG(n, repeats),                                                             \
		TRAIN_REG(n, interval_ticks),                                                      \
		TRAIN_REG(n, interval_fraction),                                                   \
		TRAIN_REG(n, gap_ticks),                                                           \
		TRAIN_REG(n, start_time),                                                          \
		TRAIN_REG(n, timed),                                                               \
		TRAIN_REG(n, fill),                                                                \
		TRAIN_REG(n, payload_offset),                                                      \
		TRAIN_REG(n, checksum_enable),                                                     \
		TRAIN_REG(n, attached),                                                            \
		TRAIN_REG(n, arm),                                                                 \
		TRAIN_REG(n, stop),                                                                \
		TRAIN_REG(n, clear),                                                               \
		TRAIN_REG(n, state),                                                               \
		TRAIN_REG(n, sent),                                                                \
		TRAIN_REG(n, late),                                                                \
		TRAIN_REG(n, underruns),                                                           \
		TRAIN_REG(n, link_up),                                                             \
		TRAIN_REG(n, header_memory),                                                       \
	};                                                                                         \
	DEVICE_DT_INST_DEFINE(n, NULL, NULL, NULL, &train_config_##n, POST_KERNEL,                 \
			      CONFIG_KERNEL_INIT_PRIORITY_DEVICE, &train_api);

DT_INST_FOREACH_STATUS_OKAY(TRAIN_INIT)

#define TRAIN_GET(n) DEVICE_DT_INST_GET(n),

static const struct device *const ports[] = {DT_INST_FOREACH_STATUS_OKAY(TRAIN_GET)};

const struct device *lp_train_port(uint32_t port)
{
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		if (train_number(ports[i]) == port) {
			return device_is_ready(ports[i]) ? ports[i] : NULL;
		}
	}

	return NULL;
}

bool lp_train_any_running(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		if (train_state(ports[i]) == LP_TRAIN_RUNNING) {
			return true;
		}
	}

	return false;
}
