# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Lists what simulated probes differ in for the harness."""

from liteprobe.sim.system import FLASH_OFFSET

USUAL_HALF_TICKS, PACED_HALF_TICKS = 4, 5  # Of a cycle of ``sys``: 62.5 and 50 MHz.


def harness_variant(
    link: str,
    ip_address: str = "192.168.1.50",
    uart_baud: int = 115200,
    gnss_baud: int = 9600,
    start_ticks: int = 0,
    sys_half_ticks: int = USUAL_HALF_TICKS,
) -> str:
    """Return the C++ that tells the harness how the SoC is reached: the values of variant.h."""
    address = int.from_bytes(bytes(int(part) for part in ip_address.split(".")), "big")
    values = [
        f"unsigned MANAGEMENT_PORT = {0 if link == 'shared' else 2};",
        f"bool WITH_UART = {'true' if link == 'uart' else 'false'};",
        f"uint32_t PROBE_IP = {address:#x}u;",
        f"uint64_t UART_BAUD = {uart_baud}, GNSS_BAUD = {gnss_baud};",
        f"uint32_t FLASH_OFFSET = {FLASH_OFFSET:#x}u;",
        f"unsigned SYS_HALF_TICKS = {sys_half_ticks};",
        f"uint64_t START_TICKS = {start_ticks};",
    ]
    lines = [f"const {value}" for value in values]
    build = "make_model, SYS_HALF_TICKS, MANAGEMENT_PORT == 2 && !WITH_UART"
    exported = (
        f'extern "C" __attribute__((visibility("default"))) const Build liteprobe_build = {{liteprobe::{build}}};'
    )
    includes = ['#include "model.h"', '#include "variant.h"']
    return "\n".join([*includes, "namespace liteprobe {", *lines, "}", "using namespace liteprobe;", exported, ""])
