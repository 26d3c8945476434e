/* SPDX-License-Identifier: BSD-2-Clause */
/* This file is part of LiteProbe. */

/* Ratios of rates, which come as a double, for a processor that has no instructions for them. */

#ifndef LITEPROBE_RATE_H
#define LITEPROBE_RATE_H

#include <stdint.h>

/**
 * Multiply ``increment`` (below 2^44) by a ratio near 1, to 2^-38 of it. Works on the bits of the
 * double, so that the image doesn't need the compiler's arithmetic of doubles (4.5 KB).
 *
 * @retval 0 on success
 * @retval -EINVAL when the ratio is 0.2 % from 1, or further, or no number
 */
int lp_rate_apply(uint64_t *increment, double ratio);

#endif
