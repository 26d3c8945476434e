// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// What a build differs in, apart from the Verilated SoC: sim/system/build.py writes the values. All sources but that one are
// the same in every build, and are compiled once.
#pragma once

#include <cstdint>

namespace liteprobe {

extern const unsigned MANAGEMENT_PORT;  // GMII port with Etherbone; of no meaning with a UART.
extern const bool WITH_UART;
extern const uint32_t PROBE_IP;         // Host order.
extern const uint64_t UART_BAUD, GNSS_BAUD;
extern const uint32_t FLASH_OFFSET;     // Of firmware in the flash.
extern const unsigned SYS_HALF_TICKS;   // Period of sys, on the mean: each edge is with one of the timebase.
extern const uint64_t START_TICKS;      // That pass before anything can be asked.

}  // namespace liteprobe
