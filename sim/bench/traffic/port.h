// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// The clocks, the octets to the PHY and the bus of a transmit port on the pins of ``top``, which stands before the place where
// this is included.

#include "port_meter.h"

static uint32_t access(uint32_t address, uint32_t word, bool is_write)
{
    top.adr = address;
    top.dat_w = word;
    top.we = is_write;
    top.stb = 1;
    top.eval();
    for (int k = 0; !top.ack; k++) {
        if (k == 10000) {
            fprintf(stderr, "no answer of the bus at %08x\n", address);
            exit(1);
        }
        cycle();
        top.eval();
    }
    const uint32_t found = top.dat_r;
    cycle();
    top.stb = 0;
    top.we = 0;
    cycle();
    return found;
}

static void reset()
{
    next_sys_ps = 1000;
    top.sys_rst = top.timebase_rst = 1;
    for (int k = 0; k < 20; k++)
        cycle();
    top.sys_rst = top.timebase_rst = 0;
    for (int k = 0; k < 20; k++)
        cycle();
}
