# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

FLASH_OFFSET = 0x100000  # Of firmware in the simulated board's flash.
