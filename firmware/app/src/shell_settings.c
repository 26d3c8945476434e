/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/* Shell: `settings` shows what outlives a reset, and forgets it. */

#include <errno.h>

#include <zephyr/shell/shell.h>

#include "keep.h"
#include "profile/profile.h"

static int cmd_settings(const struct shell *sh, size_t argc, char **argv)
{
	struct keep_values values;
	const struct frame_addresses *at = &values.addresses;
	int state = keep_state();

	ARG_UNUSED(argc);
	ARG_UNUSED(argv);
	keep_read(&values);
	shell_print(sh, "%s",
		    state == 0         ? "kept in flash"
		    : state == -ENOENT ? "as built: nothing is kept yet"
				       : "NOT kept over a reset");
	shell_print(sh, "TAI - UTC %d s, sure until %lld (POSIX)", values.tai_utc,
		    values.sure_until);
	shell_print(sh, "profile %s %s", lp_profile_receiver_name(values.receiver),
		    lp_profile_oscillator_name(values.oscillator));
	if (values.every_s != 0) {
		shell_print(sh, "train every %u %u %u %u %u %u", values.every_s, values.count,
			    values.length, values.interval_ns, values.transmit, values.receive);
	}
	if (values.has_addresses != 0) {
		for (size_t end = 0; end < 2; end++) {
			const uint8_t *mac = end == 0 ? at->source_mac : at->target_mac;
			const uint8_t *ip = end == 0 ? at->source_ip : at->target_ip;

			shell_print(sh, "%s %02x:%02x:%02x:%02x:%02x:%02x %u.%u.%u.%u",
				    end == 0 ? "from" : "to", mac[0], mac[1], mac[2], mac[3],
				    mac[4], mac[5], ip[0], ip[1], ip[2], ip[3]);
		}
	}

	return 0;
}

static int cmd_forget(const struct shell *sh, size_t argc, char **argv)
{
	ARG_UNUSED(argc);
	ARG_UNUSED(argv);
	keep_forget();
	shell_print(sh, "as built, from the next reset on");

	return 0;
}

SHELL_STATIC_SUBCMD_SET_CREATE(settings_commands,
			       SHELL_CMD(show, NULL, "What outlives a reset", cmd_settings),
			       SHELL_CMD(forget, NULL, "Go back to what the image was built with",
					 cmd_forget),
			       SHELL_SUBCMD_SET_END);
SHELL_CMD_REGISTER(settings, &settings_commands, "What outlives a reset", cmd_settings);
