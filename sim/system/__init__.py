FLASH_OFFSET = 0x100000  # Of firmware in the simulated board's flash.
