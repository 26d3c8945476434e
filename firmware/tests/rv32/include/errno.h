/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/* Debian's compiler for rv32 comes without a C library; this is what the libraries use of it. */

#ifndef LITEPROBE_TEST_ERRNO_H
#define LITEPROBE_TEST_ERRNO_H

#define EINVAL 22

#endif
