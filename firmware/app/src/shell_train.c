/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/* Shell: `train` sends and measures packet trains. */

#include <stdlib.h>

#include <zephyr/shell/shell.h>

#include "discipline.h"
#include "keep.h"
#include "measure.h"

static const char *const states[] = {"unknown", "free-running", "acquiring", "locked", "holdover"};

static void print_clock(const struct shell *sh, const struct measure_result *result)
{
	if (result->uncertainty == UINT32_MAX) {
		shell_print(sh, "clock %s, error not known", states[MIN(result->clock_state, 4)]);
	} else {
		shell_print(sh, "clock %s, within %u.%02u ns (95 %%)",
			    states[MIN(result->clock_state, 4)], result->uncertainty >> 8,
			    (result->uncertainty & 0xff) * 100 >> 8);
	}
	if (result->steps != 0) {
		shell_warn(sh,
			   "the clock was stepped %u times meanwhile: delays across a step are off "
			   "by it",
			   result->steps);
	}
	if (result->rejected != 0 || result->jumps != 0) {
		shell_warn(
			sh,
			"the clock refused %u pulses meanwhile, and its reference jumped %u times",
			result->rejected, result->jumps);
	}
}

static void print(const struct shell *sh, const struct measure_result *result)
{
	if (result->error != 0) {
		shell_error(sh, "train %u failed: error %d", result->number, -result->error);
		return;
	}
	shell_print(sh, "train %u at %llu ns%s", result->number, result->start_ns,
		    result->is_stopped ? ", stopped" : "");
	print_clock(sh, result);
	shell_print(sh, "sent %u (%u late), received %u, lost %u, duplicated %u, reordered %u",
		    result->sent, result->late, result->received, result->lost, result->duplicated,
		    result->reordered);
	shell_print(sh, "delay min %lld mean %lld max %lld ns, deviation %llu.%02u ns",
		    result->delay_min, result->delay_mean, result->delay_max,
		    result->delay_deviation >> 8,
		    (uint32_t)(result->delay_deviation & 0xff) * 100 >> 8);
	shell_print(sh, "rate %llu b/s", result->rate);
}

/* A result in a line: what a table of many has. */
static void print_line(const struct shell *sh, const struct measure_result *result)
{
	if (result->error != 0) {
		shell_print(sh, "%6u failed: error %d", result->number, -result->error);
		return;
	}
	shell_print(sh, "%6u %20llu %6u %6u %8lld %8lld %8lld %10u %s%s", result->number,
		    result->start_ns, result->sent, result->lost, result->delay_min,
		    result->delay_mean, result->delay_max,
		    result->uncertainty == UINT32_MAX ? result->uncertainty
						      : (result->uncertainty >> 8) + 1,
		    states[MIN(result->clock_state, 4)], result->steps != 0 ? ", stepped" : "");
}

/* Numbers from the command line, into fields of the plan. */
static int parse(const struct shell *sh, size_t argc, char **argv, uint32_t *numbers)
{
	for (size_t i = 0; i < argc; i++) {
		char *end;
		unsigned long value = strtoul(argv[i], &end, 10);

		if (*end != '\0' || end == argv[i]) {
			shell_error(sh, "'%s' is not a number: see 'train --help'", argv[i]);
			return -EINVAL;
		}
		numbers[i] = (uint32_t)value;
	}

	return 0;
}

/* COUNT LENGTH [INTERVAL [FROM [TO]]]. */
static int plan_of(const struct shell *sh, size_t argc, char **argv, struct measure_plan *plan)
{
	uint32_t numbers[5] = {0, 0, 0, 0, 1};
	int ret = parse(sh, argc, argv, numbers);

	if (ret == 0 &&
	    (numbers[1] > UINT16_MAX || numbers[3] > UINT8_MAX || numbers[4] > UINT8_MAX)) {
		shell_error(sh, "length or port is too great: see 'train --help'");
		ret = -EINVAL;
	}
	plan->count = numbers[0];
	plan->length = (uint16_t)numbers[1];
	plan->interval_ns = numbers[2];
	plan->transmit = (uint8_t)numbers[3];
	plan->receive = (uint8_t)numbers[4];

	return ret;
}

/* A clock that nobody disciplines has seconds of its own. */
static void warn_of_clock(const struct shell *sh)
{
	struct discipline_view view;

	discipline_view(&view);
	if (view.status.state != LP_CLOCK_LOCKED && view.status.state != LP_CLOCK_HOLDOVER) {
		shell_warn(sh, "the clock is %s: its seconds are not those of other probes",
			   states[MIN(view.status.state, 4)]);
	}
}

static int refuse(const struct shell *sh, int ret)
{
	if (ret == -EBUSY) {
		shell_error(sh, "a train is being sent: wait, or 'train stop'");
	} else if (ret < 0) {
		shell_error(sh, "not begun: error %d", -ret);
	}

	return ret;
}

static int cmd_send(const struct shell *sh, size_t argc, char **argv)
{
	struct measure_plan plan = {0};
	int ret = plan_of(sh, argc - 1, &argv[1], &plan);

	if (ret < 0) {
		return ret;
	}
	ret = refuse(sh, measure_begin(&plan));
	if (ret == 0) {
		shell_print(
			sh,
			"begun: 'train status' says when it is over, 'train last' what came of it");
	}

	return ret;
}

static int cmd_every(const struct shell *sh, size_t argc, char **argv)
{
	struct measure_plan plan = {0};
	int ret = plan_of(sh, argc - 2, &argv[2], &plan);

	if (ret < 0 || parse(sh, 1, &argv[1], &plan.every_s) < 0) {
		return -EINVAL;
	}
	if (plan.every_s == 0) {
		measure_end();
		return 0;
	}
	ret = refuse(sh, measure_begin(&plan));
	if (ret == 0) {
		warn_of_clock(sh);
	}

	return ret;
}

static int cmd_status(const struct shell *sh, size_t argc, char **argv)
{
	struct measure_status status;
	const struct measure_plan *plan = &status.repeated;

	ARG_UNUSED(argc);
	ARG_UNUSED(argv);
	measure_status(&status);
	shell_print(sh, "%s, %u done",
		    status.is_running ? "a train is being sent" : "no train is being sent",
		    status.trains);
	if (plan->every_s != 0) {
		shell_print(
			sh,
			"every %u s: %u frames of %u octets, %u ns apart, from port %u to port %u",
			plan->every_s, plan->count, plan->length, plan->interval_ns, plan->transmit,
			plan->receive);
		warn_of_clock(sh);
	}

	return 0;
}

static int cmd_last(const struct shell *sh, size_t argc, char **argv)
{
	static struct measure_result result;
	uint32_t count = 1;

	if (argc > 1 && (parse(sh, 1, &argv[1], &count) < 0 || count == 0)) {
		return -EINVAL;
	}
	if (!measure_past(0, &result)) {
		shell_print(sh, "no train yet");
		return 0;
	}
	if (count == 1) {
		print(sh, &result);
		return 0;
	}
	shell_print(sh, "%6s %20s %6s %6s %8s %8s %8s %10s %s", "train", "start ns", "sent", "lost",
		    "min ns", "mean ns", "max ns", "within ns", "clock");
	while (count-- > 0) {
		if (measure_past(count, &result)) {
			print_line(sh, &result);
		}
	}

	return 0;
}

static int cmd_stop(const struct shell *sh, size_t argc, char **argv)
{
	ARG_UNUSED(sh);
	ARG_UNUSED(argc);
	ARG_UNUSED(argv);
	measure_end();

	return 0;
}

static void change_addresses(struct keep_values *values, const void *what)
{
	values->has_addresses = 1;
	values->addresses = *(const struct frame_addresses *)what;
}

static int cmd_address(const struct shell *sh, size_t argc, char **argv)
{
	struct frame_addresses asked;

	ARG_UNUSED(argc);
	if (!frame_read_mac(argv[1], asked.source_mac) ||
	    !frame_read_ip(argv[2], asked.source_ip) ||
	    !frame_read_mac(argv[3], asked.target_mac) ||
	    !frame_read_ip(argv[4], asked.target_ip)) {
		shell_error(sh,
			    "an address is none: give such as 02:4c:50:54:00:01 198.18.0.1 twice");
		return -EINVAL;
	}
	keep_change(change_addresses, &asked);

	return 0;
}

#define PLAN "COUNT LENGTH [INTERVAL_NS [FROM [TO]]]"

SHELL_STATIC_SUBCMD_SET_CREATE(
	train_commands, SHELL_CMD_ARG(send, NULL, "send " PLAN ": a train, now", cmd_send, 3, 3),
	SHELL_CMD_ARG(every, NULL,
		      "every SECONDS " PLAN ": at whole seconds of the clock; 0: no more",
		      cmd_every, 4, 3),
	SHELL_CMD(status, NULL, "What is being sent, and what will be", cmd_status),
	SHELL_CMD_ARG(last, NULL, "last [COUNT]: what the last trains found", cmd_last, 1, 1),
	SHELL_CMD_ARG(address, NULL, "address FROM_MAC FROM_IP TO_MAC TO_IP", cmd_address, 5, 0),
	SHELL_CMD(stop, NULL, "Stop the train that is being sent, and those to come", cmd_stop),
	SHELL_SUBCMD_SET_END);
SHELL_CMD_REGISTER(train, &train_commands, "Packet trains", NULL);
