/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/* Driver of the PPS: cores/timebase/pps.py and pps_out.py. */

#define DT_DRV_COMPAT liteprobe_pps

#include <errno.h>

#include <zephyr/device.h>
#include <zephyr/irq.h>
#include <zephyr/logging/log.h>

#include <liteprobe/csr.h>
#include <liteprobe/pps.h>

LOG_MODULE_REGISTER(lp_pps, CONFIG_LITEPROBE_LOG_LEVEL);

#define READ_TRIES 8
#define EVENT_EDGE BIT(0)

struct pps_config {
	mem_addr_t control, period, min_width, window;
	mem_addr_t latch, count, now, now_fraction, ticks, width, flags, samples;
	mem_addr_t glitches, missing, spurious, present;
	mem_addr_t ev_pending, ev_enable;
	mem_addr_t out_next, out_period, out_width, out_arm, out_late;
	void (*connect)(void);
};

struct pps_data {
	lp_pps_callback callback;
	void *user;
};

static uint32_t pps_quantum_ps(const struct device *dev)
{
	const struct pps_config *config = dev->config;

	return LP_TICK_PS / MAX(1, lp_csr_read(config->samples));
}

static int pps_read(const struct device *dev, struct lp_pps_edge *edge)
{
	const struct pps_config *config = dev->config;

	for (int i = 0; i < READ_TRIES; i++) {
		lp_csr_write(config->latch, 1);
		edge->count = lp_csr_read(config->count);
		edge->now = lp_csr_read64(config->now);
		edge->fraction = lp_csr_read(config->now_fraction);
		edge->ticks = lp_csr_read64(config->ticks);
		edge->width = lp_csr_read(config->width);
		edge->flags = (uint8_t)lp_csr_read(config->flags);
		edge->early_ps =
			(edge->flags >> LP_PPS_EARLY_BIT & LP_PPS_EARLY_MASK) * pps_quantum_ps(dev);
		/* A host that took the next edge in between has changed the count. */
		if (lp_csr_read(config->count) == edge->count) {
			return edge->count == 0 ? -ENODATA : 0;
		}
	}

	return -EAGAIN;
}

static void pps_isr(const struct device *dev)
{
	const struct pps_config *config = dev->config;
	struct pps_data *data = dev->data;
	struct lp_pps_edge edge;

	/* First, so that an edge from here on asks again. */
	lp_csr_write(config->ev_pending, EVENT_EDGE);
	if (pps_read(dev, &edge) == 0 && data->callback != NULL) {
		data->callback(dev, &edge, data->user);
	}
}

static int pps_start(const struct device *dev, const struct lp_pps_config *wanted,
		     lp_pps_callback callback, void *user)
{
	const struct pps_config *config = dev->config;
	struct pps_data *data = dev->data;

	if (callback == NULL) {
		LOG_ERR("an input whose edges nobody takes is not started: give a callback");
		return -EINVAL;
	}
	lp_csr_write(config->ev_enable, 0);
	data->callback = callback;
	data->user = user;
	if (wanted->period != 0) {
		lp_csr_write(config->period, wanted->period);
	}
	lp_csr_write(config->min_width, wanted->min_width);
	lp_csr_write(config->window, wanted->window);
	lp_csr_write(config->control,
		     LP_PPS_CONTROL_ENABLE | (wanted->is_inverted ? LP_PPS_CONTROL_INVERT : 0));
	lp_csr_write(config->ev_pending, EVENT_EDGE);
	lp_csr_write(config->ev_enable, EVENT_EDGE);

	return 0;
}

static int pps_stop(const struct device *dev)
{
	const struct pps_config *config = dev->config;

	lp_csr_write(config->ev_enable, 0);
	lp_csr_write(config->control, 0);

	return 0;
}

static bool pps_is_present(const struct device *dev)
{
	const struct pps_config *config = dev->config;

	return lp_csr_read(config->present) != 0;
}

static uint32_t pps_period(const struct device *dev)
{
	const struct pps_config *config = dev->config;

	return lp_csr_read(config->period);
}

static int pps_counters(const struct device *dev, struct lp_pps_counters *counters)
{
	const struct pps_config *config = dev->config;

	lp_csr_write(config->latch, 1);
	counters->edges = lp_csr_read(config->count);
	counters->glitches = lp_csr_read(config->glitches);
	counters->missing = lp_csr_read(config->missing);
	counters->spurious = lp_csr_read(config->spurious);

	return 0;
}

static int pps_output(const struct device *dev, uint64_t next, uint32_t period, uint32_t width)
{
	const struct pps_config *config = dev->config;

	if (period != 0 && (width == 0 || (uint64_t)width * LP_TICK_NS >= period)) {
		LOG_ERR("a pulse of %u ticks doesn't fit a period of %u ns", width, period);
		return -EINVAL;
	}
	lp_csr_write64(config->out_next, next);
	lp_csr_write(config->out_period, period);
	lp_csr_write(config->out_width, width);
	lp_csr_write(config->out_arm, 1);

	return 0;
}

static uint32_t pps_output_late(const struct device *dev)
{
	const struct pps_config *config = dev->config;

	return lp_csr_read(config->out_late);
}

static int pps_init(const struct device *dev)
{
	const struct pps_config *config = dev->config;

	lp_csr_write(config->ev_enable, 0);
	config->connect();

	return 0;
}

static const struct lp_pps_driver_api pps_api = {
	.start = pps_start,
	.stop = pps_stop,
	.read = pps_read,
	.is_present = pps_is_present,
	.period = pps_period,
	.quantum_ps = pps_quantum_ps,
	.counters = pps_counters,
	.output = pps_output,
	.output_late = pps_output_late,
};

#define PPS_REG(n, name) .name = DT_INST_REG_ADDR_BY_NAME(n, name)

#define PPS_INIT(n)                                                                                \
	static void pps_connect_##n(void)                                                          \
	{                                                                                          \
		IRQ_CONNECT(DT_INST_IRQN(n), DT_INST_IRQ(n, priority), pps_isr,                    \
			    DEVICE_DT_INST_GET(n), 0);                                             \
		irq_enable(DT_INST_IRQN(n));                                                       \
	}                                                                                          \
	static const struct pps_config pps_config_##n = {                                          \
		PPS_REG(n, control),  PPS_REG(n, period),       PPS_REG(n, min_width),             \
		PPS_REG(n, window),   PPS_REG(n, latch),        PPS_REG(n, count),                 \
		PPS_REG(n, now),      PPS_REG(n, now_fraction), PPS_REG(n, ticks),                 \
		PPS_REG(n, width),    PPS_REG(n, flags),        PPS_REG(n, samples),               \
		PPS_REG(n, glitches), PPS_REG(n, missing),      PPS_REG(n, spurious),              \
		PPS_REG(n, present),  PPS_REG(n, ev_pending),   PPS_REG(n, ev_enable),             \
		PPS_REG(n, out_next), PPS_REG(n, out_period),   PPS_REG(n, out_width),             \
		PPS_REG(n, out_arm),  PPS_REG(n, out_late),     .connect = pps_connect_##n,        \
	};                                                                                         \
	static struct pps_data pps_data_##n;                                                       \
	DEVICE_DT_INST_DEFINE(n, pps_init, NULL, &pps_data_##n, &pps_config_##n, POST_KERNEL,      \
			      CONFIG_KERNEL_INIT_PRIORITY_DEVICE, &pps_api);

DT_INST_FOREACH_STATUS_OKAY(PPS_INIT)
