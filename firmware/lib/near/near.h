/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/*
 * LP_NEAR is for functions that run many times for each pulse: a build may name the section that
 * they go to, from where the processor fetches them sooner than from main RAM.
 */

#ifndef LITEPROBE_NEAR_H
#define LITEPROBE_NEAR_H

#ifdef LP_NEAR_SECTION
#define LP_NEAR __attribute__((section(LP_NEAR_SECTION)))
#else
#define LP_NEAR
#endif

#endif
