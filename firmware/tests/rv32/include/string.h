/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/* Debian's compiler for rv32 comes without a C library; this is what the libraries use of it. */

#ifndef LITEPROBE_TEST_STRING_H
#define LITEPROBE_TEST_STRING_H

#include <stddef.h>

void *memset(void *to, int value, size_t count);
void *memcpy(void *to, const void *from, size_t count);
void *memmove(void *to, const void *from, size_t count);
int memcmp(const void *a, const void *b, size_t count);

#endif
