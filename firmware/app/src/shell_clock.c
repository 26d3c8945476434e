/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/* Shell: `clock` shows the clock, and sets what can be set. */

#include <stdlib.h>
#include <string.h>

#include <zephyr/device.h>
#include <zephyr/shell/shell.h>

#include <liteprobe/pps.h>
#include <liteprobe/timebase.h>

#include "discipline.h"
#include "keep.h"
#include "profile/profile.h"

static const struct device *const timebase = DEVICE_DT_GET(DT_NODELABEL(timebase));
static const struct device *const pps = DEVICE_DT_GET(DT_NODELABEL(pps));
static const struct device *const status_dev = DEVICE_DT_GET(DT_NODELABEL(clock));
static const char *const states[] = {"unknown", "free-running", "acquiring", "locked", "holdover"};
static const char *const errors[] = {"no PPS",
				     "no NMEA",
				     "wrong second",
				     "wrong gateware",
				     "no fix",
				     "bad NMEA",
				     "step refused: a train runs, the clock is slewed",
				     "the reference has jumped",
				     "a leap second may have passed unseen: 'clock leap SECONDS'"};

/* A value of 2^-8 with two decimals. */
static void print_part(const struct shell *sh, const char *name, int64_t value, const char *unit)
{
	uint32_t size = (uint32_t)(value < 0 ? -value : value);

	shell_print(sh, "%-12s %s%u.%02u %s", name, value < 0 ? "-" : "", size >> 8,
		    (size & 0xff) * 100 >> 8, unit);
}

static int cmd_status(const struct shell *sh, size_t argc, char **argv)
{
	struct discipline_view view;
	struct lp_time now;

	ARG_UNUSED(argc);
	ARG_UNUSED(argv);
	discipline_view(&view);
	shell_print(sh, "%-12s %s", "state", states[MIN(view.status.state, 4)]);
	if (view.status.uncertainty == UINT32_MAX) {
		shell_print(sh, "%-12s %s", "uncertainty", "unknown");
	} else {
		print_part(sh, "uncertainty", view.status.uncertainty, "ns (95 %)");
	}
	print_part(sh, "offset", view.status.offset, "ns");
	print_part(sh, "rate", view.status.rate, "ppb");
	print_part(sh, "drift", view.status.drift, "ppt/s");
	shell_print(sh, "%-12s %u used, %u rejected, %u lost, %u s of holdover", "edges",
		    view.status.edges, view.status.rejected, view.edges_lost, view.status.holdover);
	shell_print(sh, "%-12s %u edges with, %u messages without one", "qErr", view.qerr_used,
		    view.qerr_refused);
	shell_print(sh, "%-12s %u us an edge, at most %u us", "CPU", view.work_us,
		    view.work_us_max);
	shell_print(sh, "%-12s %u us", "boot", view.boot_us);
	if (device_is_ready(timebase) && lp_timebase_read(timebase, &now) == 0) {
		shell_print(sh, "%-12s %llu ns (TAI), UTC %u s less", "now", now.now,
			    view.status.tai_utc);
	}
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		if ((view.status.error & BIT(i)) != 0) {
			shell_print(sh, "%-12s %s", "error", errors[i]);
		}
	}

	return 0;
}

static int cmd_pps(const struct shell *sh, size_t argc, char **argv)
{
	struct lp_pps_counters counters;

	ARG_UNUSED(argc);
	ARG_UNUSED(argv);
	if (!device_is_ready(pps)) {
		shell_error(sh, "%s isn't ready", pps->name);
		return -ENODEV;
	}
	lp_pps_counters(pps, &counters);
	shell_print(sh, "%s, period %u ns; %u edges, %u glitches, %u missing, %u spurious",
		    lp_pps_is_present(pps) ? "present" : "absent", lp_pps_period(pps),
		    counters.edges, counters.glitches, counters.missing, counters.spurious);

	return 0;
}

static int cmd_leap(const struct shell *sh, size_t argc, char **argv)
{
	char *end;
	unsigned long seconds = strtoul(argv[1], &end, 10);

	ARG_UNUSED(argc);
	if (*end != '\0' || seconds > 255) {
		shell_error(
			sh,
			"'%s' is not a number of leap seconds: give TAI less UTC, 37 since 2017",
			argv[1]);
		return -EINVAL;
	}
	discipline_set_tai_utc((uint32_t)seconds);

	return 0;
}

static void change_profile(struct keep_values *values, const void *what)
{
	const struct keep_values *asked = what;

	values->receiver = asked->receiver;
	values->oscillator = asked->oscillator;
}

static int look_up(const struct shell *sh, const char *asked, const char *(*name)(uint32_t number),
		   uint32_t *found)
{
	for (uint32_t number = 0; name(number) != NULL; number++) {
		if (strcmp(asked, name(number)) == 0) {
			*found = number;
			return 0;
		}
	}
	shell_error(sh, "there is no '%s'; there are:", asked);
	for (uint32_t number = 0; name(number) != NULL; number++) {
		shell_error(sh, "  %s", name(number));
	}

	return -EINVAL;
}

static int cmd_profile(const struct shell *sh, size_t argc, char **argv)
{
	struct keep_values asked;

	ARG_UNUSED(argc);
	if (look_up(sh, argv[1], lp_profile_receiver_name, &asked.receiver) < 0 ||
	    look_up(sh, argv[2], lp_profile_oscillator_name, &asked.oscillator) < 0) {
		return -EINVAL;
	}
	keep_change(change_profile, &asked);
	if (device_is_ready(status_dev)) {
		lp_status_set_mode(status_dev, LP_CLOCK_REACQUIRE);
	}

	return 0;
}

SHELL_STATIC_SUBCMD_SET_CREATE(
	clock_commands, SHELL_CMD(status, NULL, "State, uncertainty, rate", cmd_status),
	SHELL_CMD(pps, NULL, "Counters of the PPS input", cmd_pps),
	SHELL_CMD_ARG(leap, NULL, "leap SECONDS: TAI less UTC", cmd_leap, 2, 0),
	SHELL_CMD_ARG(profile, NULL,
		      "profile RECEIVER OSCILLATOR: acquire anew with their settings", cmd_profile,
		      3, 0),
	SHELL_SUBCMD_SET_END);
SHELL_CMD_REGISTER(clock, &clock_commands, "The clock of the probe", cmd_status);
