/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* Shell: `regs` reads and writes registers by name, `version` says what runs. */

#include <stdlib.h>
#include <string.h>

#include <zephyr/shell/shell.h>
#include <zephyr/version.h>

#include <liteprobe/csr.h>
#include <liteprobe/generated/registers.h>
#include <liteprobe/image.h>

struct entry {
	const char *name;
	uint32_t address;
	uint8_t words;
	uint8_t is_writable;
};

#define ENTRY(name, address, words, writable) {#name, address, words, writable},

static const struct entry entries[] = {LP_REGISTERS(ENTRY)};

static const struct entry *look_up(const struct shell *sh, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		if (strcmp(entries[i].name, name) == 0) {
			return &entries[i];
		}
	}
	shell_error(sh, "there is no register '%s': see 'regs list'", name);

	return NULL;
}

static int cmd_list(const struct shell *sh, size_t argc, char **argv)
{
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		if (argc < 2 || strncmp(entries[i].name, argv[1], strlen(argv[1])) == 0) {
			shell_print(sh, "%08x %u %s %s", entries[i].address, entries[i].words,
				    entries[i].is_writable ? "rw" : "ro", entries[i].name);
		}
	}

	return 0;
}

static int cmd_read(const struct shell *sh, size_t argc, char **argv)
{
	const struct entry *entry = look_up(sh, argv[1]);

	ARG_UNUSED(argc);
	if (entry == NULL) {
		return -EINVAL;
	}
	shell_fprintf(sh, SHELL_NORMAL, "0x");
	for (uint32_t i = 0; i < entry->words; i++) {
		shell_fprintf(sh, SHELL_NORMAL, "%08x", lp_csr_read(entry->address + 4 * i));
	}
	shell_print(sh, "");

	return 0;
}

static int cmd_write(const struct shell *sh, size_t argc, char **argv)
{
	const struct entry *entry = look_up(sh, argv[1]);
	char *end;
	unsigned long long value = strtoull(argv[2], &end, 0);

	ARG_UNUSED(argc);
	if (entry == NULL) {
		return -EINVAL;
	}
	if (!entry->is_writable || entry->words > 2) {
		shell_error(sh, "%s can only be read", entry->name);
		return -EPERM;
	}
	if (*end != '\0' || (entry->words == 1 && value > UINT32_MAX)) {
		shell_error(sh, "'%s' does not fit %s: give up to %u bits", argv[2], entry->name, 32 * entry->words);
		return -EINVAL;
	}
	if (entry->words == 2) {
		lp_csr_write64(entry->address, value);
	} else {
		lp_csr_write(entry->address, (uint32_t)value);
	}

	return 0;
}

SHELL_STATIC_SUBCMD_SET_CREATE(regs_commands, SHELL_CMD_ARG(list, NULL, "list [PREFIX]: all registers", cmd_list, 1, 1),
			       SHELL_CMD_ARG(read, NULL, "read NAME", cmd_read, 2, 0),
			       SHELL_CMD_ARG(write, NULL, "write NAME VALUE", cmd_write, 3, 0), SHELL_SUBCMD_SET_END);
SHELL_CMD_REGISTER(regs, &regs_commands, "Registers of the gateware by name", NULL);

static int cmd_version(const struct shell *sh, size_t argc, char **argv)
{
	ARG_UNUSED(argc);
	ARG_UNUSED(argv);
	shell_print(sh, "LiteProbe %s, Zephyr %s", lp_image.version, KERNEL_VERSION_STRING);
	shell_print(sh, "%s, map %08x", LP_IDENTIFIER, lp_image.map_hash);
	shell_print(sh, "RAM %p to %p", lp_image.start, lp_image.end);

	return 0;
}

SHELL_CMD_REGISTER(version, NULL, "What runs, and for which gateware", cmd_version);
