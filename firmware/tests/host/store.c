/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * A flash that loses its power. Arguments: octets of work after which that happens (-1: never), a
 * seed, whether it is write-protected; stdin: the flash, two sectors, then numbers of records to
 * save; stdout: the flash. A record has RECORD octets, all of its number. stderr: what each save
 * and a load at the end said.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"

#define RECORD 90

static uint8_t contents[2 * LP_STORE_SECTOR];
static long left;
static int is_protected;

static int is_cut(void)
{
	return left >= 0 && left-- == 0;
}

static int read_flash(uint32_t address, uint8_t *octets, uint32_t count)
{
	memcpy(octets, &contents[address], count);
	return 0;
}

/* Power is lost in the middle: what had been begun is anything. */
static void lose_power(uint32_t address, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		contents[address + i] = (uint8_t)(contents[address + i] ^ (rand() & rand()));
	}
	fwrite(contents, sizeof(contents), 1, stdout);
	exit(0);
}

static int erase_flash(uint32_t address)
{
	if (is_protected) {
		return 0;
	}
	if (is_cut()) {
		lose_power(address, LP_STORE_SECTOR);
	}
	memset(&contents[address], 0xff, LP_STORE_SECTOR);
	return 0;
}

static int write_flash(uint32_t address, const uint8_t *octets, uint32_t count)
{
	for (uint32_t i = 0; i < count && !is_protected; i++) {
		if (is_cut()) {
			lose_power(address + i, 1);
		}
		contents[address + i] &= octets[i];
	}
	return 0;
}

static const struct lp_store_flash flash = {read_flash, erase_flash, write_flash};

int main(int argc, char **argv)
{
	uint8_t record[RECORD];
	int number;

	if (argc != 4 || fread(contents, sizeof(contents), 1, stdin) != 1) {
		return 2;
	}
	left = atol(argv[1]);
	srand((unsigned int)atoi(argv[2]));
	is_protected = atoi(argv[3]);
	while (scanf("%d", &number) == 1) {
		memset(record, number, sizeof(record));
		fprintf(stderr, "%d\n", lp_store_save(&flash, 0, record, sizeof(record)));
	}
	number = lp_store_load(&flash, 0, record, sizeof(record));
	for (int i = 1; number == 0 && i < RECORD; i++) {
		if (record[i] != record[0]) {
			return 3;
		}
	}
	fprintf(stderr, "%d\n", number < 0 ? number : record[0]);
	fwrite(contents, sizeof(contents), 1, stdout);
	return 0;
}
