/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

#include "second/nmea.h"

#include <string.h>

#define FIELDS 16

void lp_nmea_clear(struct lp_nmea *n)
{
	memset(n, 0, sizeof(*n));
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9') {
		return c - '0';
	}
	if (c >= 'A' && c <= 'F') {
		return c - 'A' + 10;
	}
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Check the checksum and cut it off. */
static bool is_sound(struct lp_nmea *n)
{
	int high = hex_digit(n->last[1]);
	int low = hex_digit(n->last[2]);

	if (n->length < 4 || n->last[0] != '*' || high < 0 || low < 0) {
		return false;
	}
	n->length = (uint16_t)(n->length - 3);
	n->text[n->length < LP_NMEA_MOST ? n->length : LP_NMEA_MOST] = '\0';
	/* Its own octets are in the sum, too. */
	return (n->sum ^ n->last[0] ^ n->last[1] ^ n->last[2]) == high * 16 + low;
}

/* Cut the text at its commas; return the number of fields, those beyond FIELDS not counted. */
static int split(char *text, const char *fields[FIELDS])
{
	int count = 0;

	while (count < FIELDS) {
		fields[count++] = text;
		text = strchr(text, ',');
		if (text == NULL) {
			break;
		}
		*text++ = '\0';
	}
	return count;
}

/* Read ``digits`` digits; -1 when there are none. */
static int number(const char *text, int digits)
{
	int value = 0;

	for (int i = 0; i < digits; i++) {
		if (text[i] < '0' || text[i] > '9') {
			return -1;
		}
		value = value * 10 + (text[i] - '0');
	}
	return value;
}

/* hhmmss, and a fraction that may be zero. */
static bool read_clock(const char *text, struct lp_nmea_time *time)
{
	int hour = number(text, 2);
	int minute = hour < 0 ? -1 : number(text + 2, 2);
	int second = minute < 0 ? -1 : number(text + 4, 2);

	if (second < 0 || hour > 23 || minute > 59 || second > 60) {
		return false;
	}
	if (second == 60 && (hour != 23 || minute != 59)) {
		return false;
	}
	time->hour = (uint8_t)hour;
	time->minute = (uint8_t)minute;
	time->second = (uint8_t)second;
	text += 6;
	time->is_whole = text[strspn(text, ".0")] == '\0';
	return *text == '\0' || (*text == '.' && text[1 + strspn(text + 1, "0123456789")] == '\0');
}

static bool is_leap_year(int year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static bool set_date(int year, int month, int day, struct lp_nmea_time *time)
{
	static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	if (year < LP_NMEA_FIRST_YEAR || year > 9999 || month < 1 || month > 12 || day < 1) {
		return false;
	}
	if (day > days[month - 1] + (month == 2 && is_leap_year(year))) {
		return false;
	}
	time->year = (uint16_t)year;
	time->month = (uint8_t)month;
	time->day = (uint8_t)day;
	time->has_date = true;
	return true;
}

/* Autonomous, differential, RTK, precise: not estimated, manual, simulated or none. */
static bool is_mode_of_fix(const char *mode)
{
	return *mode == '\0' || strchr("ADRFP", *mode) != NULL;
}

static bool read_rmc(const char *fields[FIELDS], int count, struct lp_nmea_time *time)
{
	const char *date = fields[count > 9 ? 9 : 0];
	int year;

	if (count < 10) {
		return false;
	}
	if (strcmp(fields[2], "V") == 0) {
		return true;
	}
	if (strlen(date) != 6 || number(date, 6) < 0) {
		return false;
	}
	time->has_fix = strcmp(fields[2], "A") == 0 && (count < 13 || is_mode_of_fix(fields[12]));
	year = number(date + 4, 2);
	/* GPS began in 1980. A receiver that has lost its date shows such a year: it is past. */
	year += year < 80 ? 2000 : 1900;
	return read_clock(fields[1], time) &&
	       set_date(year, number(date + 2, 2), number(date, 2), time);
}

static bool read_zda(const char *fields[FIELDS], int count, struct lp_nmea_time *time)
{
	if (count < 5 || strlen(fields[2]) != 2 || strlen(fields[3]) != 2 ||
	    strlen(fields[4]) != 4) {
		return false;
	}
	time->has_fix = true;
	return read_clock(fields[1], time) &&
	       set_date(number(fields[4], 4), number(fields[3], 2), number(fields[2], 2), time);
}

static bool read_gga(const char *fields[FIELDS], int count, struct lp_nmea_time *time)
{
	if (count < 7) {
		return false;
	}
	/* 6, 7, 8: estimated, manual, simulated. */
	time->has_fix = strlen(fields[6]) == 1 && fields[6][0] >= '1' && fields[6][0] <= '5';
	return !time->has_fix || read_clock(fields[1], time);
}

/* Return whether the sentence is of a kind that tells the time; ``is_good``: whether it does. */
static bool read_sentence(struct lp_nmea *n, struct lp_nmea_time *time, bool *is_good)
{
	const char *fields[FIELDS];
	int count = split(n->text, fields);
	bool (*read)(const char *fields[FIELDS], int count, struct lp_nmea_time *time);

	memset(time, 0, sizeof(*time));
	if (strlen(fields[0]) != 5 || count < 2) {
		return false;
	}
	memcpy(time->talker, fields[0], sizeof(time->talker));
	if (strcmp(fields[0] + 2, "RMC") == 0) {
		time->kind = LP_NMEA_RMC;
		read = read_rmc;
	} else if (strcmp(fields[0] + 2, "ZDA") == 0) {
		time->kind = LP_NMEA_ZDA;
		read = read_zda;
	} else if (strcmp(fields[0] + 2, "GGA") == 0) {
		time->kind = LP_NMEA_GGA;
		read = read_gga;
	} else {
		return false;
	}
	*is_good = read(fields, count, time);
	return true;
}

static bool finish(struct lp_nmea *n, struct lp_nmea_time *time)
{
	bool is_good = false;

	if (!is_sound(n)) {
		n->refused++;
		return false;
	}
	if (read_sentence(n, time, &is_good)) {
		if (n->length > LP_NMEA_MOST) {
			n->refused++;
			return false;
		}
		n->malformed += !is_good;
	}
	n->sentences++;
	/* Of a fix between two pulses: nothing is wrong, and it says nothing of a pulse. */
	return is_good && (time->is_whole || !time->has_fix);
}

bool lp_nmea_octet(struct lp_nmea *n, uint8_t octet, struct lp_nmea_time *time)
{
	if (octet == '$') {
		n->refused += n->is_inside;
		n->is_inside = true;
		n->length = 0;
		n->sum = 0;
		return false;
	}
	if (!n->is_inside) {
		return false;
	}
	if (octet == '\r' || octet == '\n') {
		n->is_inside = false;
		return finish(n, time);
	}
	if (n->length >= LP_NMEA_LONGEST || octet < 0x20 || octet > 0x7e) {
		n->is_inside = false;
		n->refused++;
		return false;
	}
	if (n->length < LP_NMEA_MOST) {
		n->text[n->length] = (char)octet;
	}
	n->length++;
	n->sum ^= octet;
	memmove(n->last, n->last + 1, sizeof(n->last) - 1);
	n->last[sizeof(n->last) - 1] = (char)octet;
	return false;
}

int64_t lp_nmea_posix(const struct lp_nmea_time *time)
{
	/* Days since 0000-03-01, so that a leap day is the last of its year. */
	int64_t year = time->year - (time->month <= 2);
	int64_t month = (time->month + 9) % 12;
	int64_t days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 +
		       time->day - 1;

	return (days - 719468) * 86400 + time->hour * 3600 + time->minute * 60 + time->second;
}
