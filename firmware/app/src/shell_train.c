/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* Shell: `train` sends and measures packet trains. */

#include <stdlib.h>

#include <zephyr/shell/shell.h>

#include "measure.h"

static const char *const states[] = {"unknown", "free-running", "acquiring", "locked", "holdover"};

static void print(const struct shell *sh, const struct measure_result *result)
{
	if (result->error != 0) {
		shell_error(sh, "train %u failed: error %d", result->number, -result->error);
		return;
	}
	shell_print(sh, "train %u at %llu ns, clock %s", result->number, result->start_ns,
		    states[MIN(result->clock_state, 4)]);
	shell_print(sh, "sent %u (%u late), received %u, lost %u, duplicated %u, reordered %u", result->sent,
		    result->late, result->received, result->lost, result->duplicated, result->reordered);
	shell_print(sh, "delay min %lld mean %lld max %lld ns, deviation %llu.%02u ns", result->delay_min,
		    result->delay_mean, result->delay_max, result->delay_deviation >> 8,
		    (uint32_t)(result->delay_deviation & 0xff) * 100 >> 8);
	shell_print(sh, "rate %llu b/s", result->rate);
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

	if (ret == 0 && (numbers[1] > UINT16_MAX || numbers[3] > UINT8_MAX || numbers[4] > UINT8_MAX)) {
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

static int cmd_send(const struct shell *sh, size_t argc, char **argv)
{
	struct measure_plan plan = {0};
	static struct measure_result result;
	int ret = plan_of(sh, argc - 1, &argv[1], &plan);

	if (ret < 0) {
		return ret;
	}
	ret = measure_begin(&plan, &result);
	if (ret == 0 || result.number != 0) {
		print(sh, &result);
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

	return measure_begin(&plan, NULL);
}

static int cmd_last(const struct shell *sh, size_t argc, char **argv)
{
	static struct measure_result result;

	ARG_UNUSED(argc);
	ARG_UNUSED(argv);
	if (!measure_last(&result)) {
		shell_print(sh, "no train yet");
		return 0;
	}
	print(sh, &result);

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

#define PLAN "COUNT LENGTH [INTERVAL_NS [FROM [TO]]]"

SHELL_STATIC_SUBCMD_SET_CREATE(train_commands,
			       SHELL_CMD_ARG(send, NULL, "send " PLAN ": a train, now", cmd_send, 3, 3),
			       SHELL_CMD_ARG(every, NULL, "every SECONDS " PLAN ": at whole seconds of the clock", cmd_every,
					     4, 3),
			       SHELL_CMD(last, NULL, "What the last train found", cmd_last),
			       SHELL_CMD(stop, NULL, "No more trains at whole seconds", cmd_stop), SHELL_SUBCMD_SET_END);
SHELL_CMD_REGISTER(train, &train_commands, "Packet trains", NULL);
