/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* What lwIP asks of a compiler: an assertion that fails ends the process with a message. */

#ifndef STATION_ARCH_CC_H
#define STATION_ARCH_CC_H

#include <stdio.h>
#include <stdlib.h>

#define LWIP_PLATFORM_DIAG(x) do { printf x; } while (0)
#define LWIP_PLATFORM_ASSERT(x) do { fprintf(stderr, "lwIP: %s, %s:%d\n", x, __FILE__, __LINE__); abort(); } while (0)

#endif
