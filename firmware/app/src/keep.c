/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "keep.h"

#include <errno.h>
#include <string.h>

#include <zephyr/device.h>
#include <zephyr/drivers/flash.h>
#include <zephyr/init.h>
#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>

#include "store/store.h"

LOG_MODULE_REGISTER(keep, LOG_LEVEL_INF);

BUILD_ASSERT(sizeof(struct keep_values) <= LP_STORE_MOST, "what is kept doesn't fit a record");
BUILD_ASSERT(sizeof(struct keep_values) == 40 + sizeof(struct frame_addresses) + 4,
	     "what is kept has holes");

/* NULL, which is never ready, where the gateware has no port to a flash. */
static const struct device *const device =
	COND_CODE_1(CONFIG_LITEPROBE_FLASH, (DEVICE_DT_GET(DT_NODELABEL(flash))), (NULL));

static int read_flash(uint32_t address, uint8_t *octets, uint32_t count)
{
	return flash_read(device, address, octets, count);
}

static int erase_flash(uint32_t address)
{
	return flash_erase(device, address, LP_STORE_SECTOR);
}

static int write_flash(uint32_t address, const uint8_t *octets, uint32_t count)
{
	return flash_write(device, address, octets, count);
}

static const struct lp_store_flash flash = {
	.read = read_flash,
	.erase = erase_flash,
	.write = write_flash,
};
static K_MUTEX_DEFINE(lock);
static struct keep_values kept;
static int state;

static void set_defaults(void)
{
	kept = (struct keep_values){
		.sure_until = CONFIG_LITEPROBE_TAI_UTC_UNTIL,
		.tai_utc = CONFIG_LITEPROBE_TAI_UTC,
		.receiver = CONFIG_LITEPROBE_RECEIVER,
		.oscillator = CONFIG_LITEPROBE_OSCILLATOR,
	};
}

static void save(struct k_work *work)
{
	struct keep_values values;

	ARG_UNUSED(work);
	if (!IS_ENABLED(CONFIG_LITEPROBE_SETTINGS)) {
		return;
	}
	keep_read(&values);
	state = -ENODEV;
	if (device_is_ready(device)) {
		state = lp_store_save(&flash, CONFIG_LITEPROBE_SETTINGS_OFFSET,
				      (const uint8_t *)&values, sizeof(values));
	}
	if (state < 0) {
		LOG_ERR("settings are not kept over a reset: error %d (write-protected? no flash?)",
			-state);
	}
}

static K_WORK_DEFINE(saving, save);

void keep_read(struct keep_values *values)
{
	k_mutex_lock(&lock, K_FOREVER);
	*values = kept;
	k_mutex_unlock(&lock);
}

void keep_change(void (*change)(struct keep_values *values, const void *what), const void *what)
{
	k_mutex_lock(&lock, K_FOREVER);
	change(&kept, what);
	k_mutex_unlock(&lock);
	k_work_submit(&saving);
}

struct sure {
	int32_t tai_utc;
	int64_t until;
};

static void change_second(struct keep_values *values, const void *what)
{
	const struct sure *sure = what;

	values->tai_utc = sure->tai_utc;
	values->sure_until = sure->until;
}

void keep_second(int32_t tai_utc, int64_t sure_until)
{
	const struct sure sure = {.tai_utc = tai_utc, .until = sure_until};

	keep_change(change_second, &sure);
}

static void change_plan(struct keep_values *values, const void *what)
{
	const struct measure_plan *plan = what;

	values->count = plan->count;
	values->length = plan->length;
	values->interval_ns = plan->interval_ns;
	values->every_s = plan->every_s;
	values->transmit = plan->transmit;
	values->receive = plan->receive;
}

void keep_plan(const struct measure_plan *plan)
{
	keep_change(change_plan, plan);
}

void keep_read_plan(struct measure_plan *plan)
{
	struct keep_values values;

	keep_read(&values);
	*plan = (struct measure_plan){
		.count = values.count,
		.length = (uint16_t)values.length,
		.interval_ns = values.interval_ns,
		.transmit = values.transmit,
		.receive = values.receive,
		.every_s = values.every_s,
	};
}

void keep_forget(void)
{
	k_mutex_lock(&lock, K_FOREVER);
	set_defaults();
	k_mutex_unlock(&lock);
	k_work_submit(&saving);
}

int keep_state(void)
{
	return state;
}

/* Before any thread that wants to know. */
static int load(void)
{
	struct keep_values values;

	set_defaults();
	if (!IS_ENABLED(CONFIG_LITEPROBE_SETTINGS) || !device_is_ready(device)) {
		state = -ENODEV;
		return 0;
	}
	state = lp_store_load(&flash, CONFIG_LITEPROBE_SETTINGS_OFFSET, (uint8_t *)&values,
			      sizeof(values));
	if (state == 0) {
		kept = values;
	}

	return 0;
}

SYS_INIT(load, APPLICATION, 0);
