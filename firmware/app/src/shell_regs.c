/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/* Shell: `regs` reads and writes registers by name, `version` says what runs. */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <zephyr/shell/shell.h>
#include <zephyr/version.h>

#include <liteprobe/csr.h>
#include <liteprobe/generated/registers.h>
#include <liteprobe/image.h>

/*
 * All registers, in one order. Names are one string, each with a NUL behind it: a pointer each
 * would take as much again.
 */
#define NAME(name, address, words, writable)    #name "\0"
#define ADDRESS(name, address, words, writable) address,
#define KIND(name, address, words, writable)    (words) << 1 | (writable),

static const char names[] = LP_REGISTERS(NAME);
static const uint32_t addresses[] = {LP_REGISTERS(ADDRESS)};
static const uint8_t kinds[] = {LP_REGISTERS(KIND)};

struct entry {
	const char *name;
	uint32_t address;
	uint8_t words;
	bool is_writable;
};

/* Fill in the first register, or the one after it; return whether there is one. */
static bool next(struct entry *entry, size_t *number)
{
	size_t i = *number;

	if (i == ARRAY_SIZE(addresses)) {
		return false;
	}
	entry->name = i == 0 ? names : entry->name + strlen(entry->name) + 1;
	entry->address = addresses[i];
	entry->words = kinds[i] >> 1;
	entry->is_writable = (kinds[i] & 1) != 0;
	*number = i + 1;

	return true;
}

static bool look_up(const struct shell *sh, const char *name, struct entry *entry)
{
	size_t number = 0;

	while (next(entry, &number)) {
		if (strcmp(entry->name, name) == 0) {
			return true;
		}
	}
	shell_error(sh, "there is no register '%s': see 'regs list'", name);

	return false;
}

static int cmd_list(const struct shell *sh, size_t argc, char **argv)
{
	struct entry entry;
	size_t number = 0;

	while (next(&entry, &number)) {
		if (argc < 2 || strncmp(entry.name, argv[1], strlen(argv[1])) == 0) {
			shell_print(sh, "%08x %u %s %s", entry.address, entry.words,
				    entry.is_writable ? "rw" : "ro", entry.name);
		}
	}

	return 0;
}

static int cmd_read(const struct shell *sh, size_t argc, char **argv)
{
	struct entry entry;

	ARG_UNUSED(argc);
	if (!look_up(sh, argv[1], &entry)) {
		return -EINVAL;
	}
	shell_fprintf(sh, SHELL_NORMAL, "0x");
	for (uint32_t i = 0; i < entry.words; i++) {
		shell_fprintf(sh, SHELL_NORMAL, "%08x", lp_csr_read(entry.address + 4 * i));
	}
	shell_print(sh, "");

	return 0;
}

static int cmd_write(const struct shell *sh, size_t argc, char **argv)
{
	struct entry entry;
	char *end;
	unsigned long long value = strtoull(argv[2], &end, 0);

	ARG_UNUSED(argc);
	if (!look_up(sh, argv[1], &entry)) {
		return -EINVAL;
	}
	if (!entry.is_writable || entry.words > 2) {
		shell_error(sh, "%s can only be read", entry.name);
		return -EPERM;
	}
	if (*end != '\0' || (entry.words == 1 && value > UINT32_MAX)) {
		shell_error(sh, "'%s' does not fit %s: give up to %u bits", argv[2], entry.name,
			    32 * entry.words);
		return -EINVAL;
	}
	if (entry.words == 2) {
		lp_csr_write64(entry.address, value);
	} else {
		lp_csr_write(entry.address, (uint32_t)value);
	}

	return 0;
}

SHELL_STATIC_SUBCMD_SET_CREATE(
	regs_commands, SHELL_CMD_ARG(list, NULL, "list [PREFIX]: all registers", cmd_list, 1, 1),
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
