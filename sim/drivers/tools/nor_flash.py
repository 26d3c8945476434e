# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A NOR flash whose power may be lost, at its contents and at its SPI port, and what an ECP5 starts from it.

By data sheets alone: commands and their effects of the Winbond W25Q32JV; dual boot of Lattice FPGA-TN-02039.
"""

from random import Random

PAGE, SECTOR = 256, 4096


class PowerLost(BaseException):
    """Stands for the end of everything: nobody catches it."""


class NorFlash:
    """Octets whose bits fall when they are programmed, and rise when a sector is erased.

    Parameters
    ----------
    size : octets.
    lost_at : number of the change during which the power is lost: only some of its bits have changed then; None: never.
    random : which bits.
    """

    def __init__(self, size: int, lost_at: int | None = None, random: Random | None = None) -> None:
        self.octets = bytearray(b"\xff" * size)
        self.lost_at = lost_at
        self.changes = 0
        self.random = random or Random(0)
        self.erased: list[int] = []

    def read(self, address: int, length: int) -> bytes:
        """Return octets."""
        return bytes(self.octets[address : address + length])

    def erase(self, address: int) -> None:
        """Erase the sector of an address."""
        start = address - address % SECTOR
        self.erased.append(start)
        self._change(start, b"\xff" * SECTOR)

    def program(self, address: int, octets: bytes) -> None:
        """Program octets, which wrap within their page."""
        page = address - address % PAGE
        new = bytearray(self.octets[page : page + PAGE])
        for number, octet in enumerate(octets):
            new[(address + number) % PAGE] &= octet
        self._change(page, bytes(new))

    def _change(self, start: int, new: bytes) -> None:
        is_lost = self.changes == self.lost_at
        self.changes += 1
        if is_lost:
            for place, octet in enumerate(new, start):
                self.octets[place] ^= (self.octets[place] ^ octet) & self.random.getrandbits(8)
            raise PowerLost
        self.octets[start : start + len(new)] = new


class SpiPort:
    """The flash behind SPI mode 0, an octet at a time: read, status, write enable, program, erase, identify."""

    def __init__(self, flash: NorFlash, looks: int = 2, protected: int = 0) -> None:
        self.flash, self.looks, self.protected = flash, looks, protected
        self._busy = 0
        self._may_write = False
        self._taken = b""

    def exchange(self, octet: int) -> int:
        """Take an octet while selected; return the one that goes out meanwhile."""
        taken, self._taken = self._taken, self._taken + bytes([octet])
        if not taken:
            return 0xFF
        if taken[0] == 0x05:
            self._busy = max(0, self._busy - 1)
            return (self._busy > 0) | self._may_write << 1 | self.protected
        if taken[0] == 0x9F:
            size = (len(self.flash.octets) - 1).bit_length()
            return bytes([0xEF, 0x40, size])[(len(taken) - 1) % 3]
        if taken[0] == 0x03 and len(taken) >= 4 and not self._busy:
            return self.flash.octets[(int.from_bytes(taken[1:4]) + len(taken) - 4) % len(self.flash.octets)]
        return 0xFF

    def deselect(self) -> None:
        """Do what was asked for."""
        taken, self._taken = self._taken, b""
        if not taken or self._busy or self.protected:
            return
        if taken[0] == 0x06:
            self._may_write = True
        elif taken[0] in (0x02, 0x20) and self._may_write and len(taken) >= 4:
            self._may_write, self._busy = False, self.looks
            address = int.from_bytes(taken[1:4])
            if taken[0] == 0x20:
                self.flash.erase(address)
            else:
                self.flash.program(address, taken[4:])


def started(octets: bytes, bitstreams: list[bytes]) -> bytes | None:
    """Return which of ``bitstreams`` an ECP5 starts: that at 0 where it is whole, else that which the last page leads to.

    A bitstream that isn't whole is not started: its CRC is wrong.
    """
    first = next((one for one in bitstreams if octets.startswith(one)), None)
    if first is not None:
        return first
    page = octets[-PAGE:]
    head = b"\xff" * 16 + b"\xff\xff\xbd\xb3" + b"\xff" * 4 + b"\x22" + bytes(7) + b"\x7e" + bytes(3) + b"\x03"
    if not page.startswith(head):
        return None
    golden = octets[int.from_bytes(page[len(head) : len(head) + 3]) :]
    return next((one for one in bitstreams if golden.startswith(one)), None)
