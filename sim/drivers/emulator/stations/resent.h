/* This file is part of LiteProbe. */
/* SPDX-License-Identifier: BSD-2-Clause */

/* Counts the segments that a station sends again, by what it has sent: the stack's own count leaves time-outs out. */

#ifndef RESENT_H
#define RESENT_H

#include <stdint.h>

extern uint32_t resent_segments;

/* Look at a frame that leaves. */
void resent_look(const uint8_t *frame, unsigned int length);

#endif
