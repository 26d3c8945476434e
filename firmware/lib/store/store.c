/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "store/store.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define MAGIC 0x5350504cu /* "LPPS" */

/* As it stands in the flash, least significant octet first. */
struct record {
	uint32_t crc; /* Of all that follows. */
	uint32_t magic;
	uint32_t number;
	uint32_t count;
	uint8_t octets[LP_STORE_MOST];
};

_Static_assert(sizeof(struct record) == LP_STORE_PAGE, "a record has no holes");

uint32_t lp_store_crc(const uint8_t *octets, uint32_t count)
{
	uint32_t crc = UINT32_MAX;

	for (uint32_t i = 0; i < count; i++) {
		crc ^= octets[i];
		for (int bit = 0; bit < 8; bit++) {
			crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
		}
	}
	return ~crc;
}

static uint32_t sum(const struct record *record)
{
	return lp_store_crc((const uint8_t *)record + sizeof(record->crc),
			    sizeof(*record) - sizeof(record->crc));
}

static bool is_record(const struct record *record)
{
	return record->magic == MAGIC && record->count <= LP_STORE_MOST &&
	       record->crc == sum(record);
}

/* Find the latest of both; return its place (0, 1), -ENOENT, or what the flash says. */
static int latest(const struct lp_store_flash *flash, uint32_t address, struct record *found)
{
	struct record other;
	int place = -ENOENT;

	for (uint32_t i = 0; i < 2; i++) {
		int ret = flash->read(address + i * LP_STORE_SECTOR, (uint8_t *)&other,
				      sizeof(other));

		if (ret < 0) {
			return ret;
		}
		if (is_record(&other) &&
		    (place < 0 || (int32_t)(other.number - found->number) > 0)) {
			*found = other;
			place = (int)i;
		}
	}
	return place;
}

int lp_store_load(const struct lp_store_flash *flash, uint32_t address, uint8_t *octets,
		  uint32_t count)
{
	struct record record;
	int place = latest(flash, address, &record);

	if (place < 0) {
		return place;
	}
	if (record.count != count) {
		return -ENOENT;
	}
	memcpy(octets, record.octets, count);
	return 0;
}

int lp_store_save(const struct lp_store_flash *flash, uint32_t address, const uint8_t *octets,
		  uint32_t count)
{
	struct record record = {0};
	struct record written;
	int place = latest(flash, address, &record);
	int ret;

	if (count > LP_STORE_MOST) {
		return -EINVAL;
	}
	if (place < 0 && place != -ENOENT) {
		return place;
	}
	if (place >= 0 && record.count == count && memcmp(record.octets, octets, count) == 0) {
		return 0;
	}
	record = (struct record){
		.magic = MAGIC, .number = place < 0 ? 1 : record.number + 1, .count = count};
	memcpy(record.octets, octets, count);
	record.crc = sum(&record);
	address += place == 0 ? LP_STORE_SECTOR : 0;
	ret = flash->erase(address);
	ret = ret < 0 ? ret : flash->write(address, (const uint8_t *)&record, sizeof(record));
	ret = ret < 0 ? ret : flash->read(address, (uint8_t *)&written, sizeof(written));
	if (ret < 0) {
		return ret;
	}
	return memcmp(&written, &record, sizeof(record)) == 0 ? 0 : -EIO;
}
