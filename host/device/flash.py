# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes a bitstream into a board's flash through the probe that runs on it, so that a loss of power never leaves it without one.

The flash holds two: at 0 the one that starts, and in its last part a golden one, which the FPGA starts when the first can't be.
The golden one is written first, from a bitstream that is known to run there, and never again. Before the first is changed its
beginning is erased, and its first page is written last of all: until then the golden one starts.

Source: Lattice FPGA-TN-02039 (ECP5 sysCONFIG), dual boot: a JUMP in the last page of the flash leads to the golden image.
Project Trellis, ``Bitstream::generate_jump``: what that page holds. Winbond W25Q32JV data sheet: commands.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.device.bitstreams import ON, Bitstream, Release
from liteprobe.host.device.firmware import CPU_RESET
from liteprobe.host.device.registers import Registers

PAGE, SECTOR = 256, 4096
PREAMBLE = b"\xff\xff\xbd\xb3"  # Of a bitstream.
PORT = "boot_flash"
SELECT, BUSY = 1 << 8, 1 << 8  # Of that register, written and read.
READ, STATUS, WRITE_ENABLE, PROGRAM, ERASE, IDENTIFY = 0x03, 0x05, 0x06, 0x02, 0x20, 0x9F
IS_BUSY, MAY_WRITE, PROTECTED = 0x01, 0x02, 0x1C  # Of the flash's status.
LOOKS = 200  # At a port that is busy for a microsecond.
LONGEST_S, LOOK_S = 2.0, 0.002  # A sector is erased in 0.4 s at most.
TRIES = 3
Progress = Callable[[str, int, int], None]


class FlashMemory(Protocol):
    """Gives what is done to a NOR flash: bits fall when a page is programmed, and rise when a sector is erased."""

    def read(self, address: int, length: int) -> bytes: ...
    def erase(self, address: int) -> None: ...
    def program(self, address: int, octets: bytes) -> None: ...


class ProbeFlash:
    """The flash of a board, an octet at a time by a register of the probe; the processor, which shares it, is held meanwhile.

    Raises UsageError where the probe has no port to the flash, ProbeError where the flash doesn't answer, or is protected.
    """

    def __init__(self, registers: Registers) -> None:
        if PORT not in registers.names:
            raise UsageError(
                "this probe has no port to its flash, which comes with the processor: load by a JTAG cable (without --probe)"
            )
        self._registers = registers
        self._address = registers.register(PORT).address

    def __enter__(self) -> "ProbeFlash":
        """Hold the processor, and wait until the flash has ended what it was asked for."""
        self._registers.write("ctrl_reset", CPU_RESET)
        try:
            self._octet(0)  # Deselects it, wherever the processor was.
            self._wait()
        except ProbeError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Let the processor go."""
        self._registers.write("ctrl_reset", 0)

    def size(self) -> int:
        """Return the octets that it holds, as its JEDEC identifier tells; ProbeError where none answers."""
        maker, _, power = self._command(bytes([IDENTIFY]), 3)
        if maker in (0, 0xFF) or not 16 <= power <= 24:
            raise ProbeError(
                f"the flash doesn't answer (identifier {maker:02x}, size {power:02x}): load by a JTAG cable"
            )
        return 1 << power

    def read(self, address: int, length: int) -> bytes:
        """Return octets."""
        return self._command(bytes([READ]) + address.to_bytes(3), length)

    def erase(self, address: int) -> None:
        """Erase the sector of an address; ProbeError where the flash is protected or doesn't end."""
        self._enable()
        self._command(bytes([ERASE]) + address.to_bytes(3))
        self._wait()

    def program(self, address: int, octets: bytes) -> None:
        """Program octets of one page; ProbeError where the flash is protected or doesn't end."""
        assert address % PAGE + len(octets) <= PAGE
        self._enable()
        self._command(bytes([PROGRAM]) + address.to_bytes(3) + octets)
        self._wait()

    # # #

    def _octet(self, word: int) -> int:
        """Exchange an octet, and return the one that came; each is acknowledged before the next, so that order is kept."""
        self._registers.own()
        found = int(self._registers.link.write(self._address, [word])[0])
        for _ in range(LOOKS):
            if not found & BUSY:
                return found & 0xFF
            found = self._registers.read(PORT)
        raise ProbeError("the port to the flash doesn't end an exchange: switch the board off and on")

    def _command(self, octets: bytes, answer: int = 0) -> bytes:
        for octet in octets:
            self._octet(SELECT | octet)
        found = bytes(self._octet(SELECT) for _ in range(answer))
        self._octet(0)  # Deselects it: what was asked for is done now.
        return found

    def _wait(self) -> None:
        for _ in range(int(LONGEST_S / LOOK_S)):
            if not self._command(bytes([STATUS]), 1)[0] & IS_BUSY:
                return
            self._registers.link.wait(LOOK_S)
        raise ProbeError(f"the flash is busy for more than {LONGEST_S:g} s: switch the board off and on, and try again")

    def _enable(self) -> None:
        self._command(bytes([WRITE_ENABLE]))
        status = self._command(bytes([STATUS]), 1)[0]
        if status & PROTECTED or not status & MAY_WRITE:
            raise ProbeError(
                f"the flash is write-protected (status {status:02x}): unlock it by a JTAG cable once, --flash --unprotect"
            )


@dataclass(frozen=True)
class FlashLayout:
    """Says where a flash holds what: a bitstream at 0, firmware and its settings, a golden bitstream, and the jump to it.

    Raises UsageError where the flash has no space for a golden one.
    """

    flash_bytes: int
    flash_offset: int  # Of firmware; a bitstream is shorter.

    def __post_init__(self) -> None:
        if self.flash_bytes < 3 * self.flash_offset:
            raise UsageError(
                f"a flash of {self.flash_bytes >> 20} MB has no space for a golden bitstream beside firmware, so a loss of power "
                "could leave the board without any: load by a JTAG cable (without --probe)"
            )

    @property
    def golden(self) -> int:
        """Return where the golden bitstream begins."""
        return self.flash_bytes - self.flash_offset

    @property
    def jump(self) -> int:
        """Return where the page with the jump to it begins: the last one."""
        return self.flash_bytes - PAGE

    @property
    def space(self) -> int:
        """Return the octets that a bitstream may take."""
        return self.flash_offset - SECTOR


def jump_page(address: int) -> bytes:
    """Return the page that leads the FPGA to a bitstream at an address, after the first one could not be started."""
    command = b"\x22" + bytes(7) + b"\x7e" + bytes(3) + b"\x03" + address.to_bytes(3)
    return (b"\xff" * 16 + PREAMBLE + b"\xff" * 4 + command).ljust(PAGE, b"\xff")


def plain(octets: bytes) -> bytes:
    """Return a bitstream from its preamble on, without what ecppack tells people before it; UsageError where it is none."""
    start = octets.find(PREAMBLE)
    if start < 0:
        raise UsageError("this is not a bitstream of an ECP5: it has no preamble")
    return octets[start:]


def replace_bitstream(flash: FlashMemory, layout: FlashLayout, new: bytes, running: bytes, progress: Progress) -> bool:
    """Write a bitstream where the FPGA starts, the golden one kept, or made of the one that runs where there is none; verify all.

    Parameters
    ----------
    new, running : bytes
        Bitstreams from their preambles on.
    progress : callable
        Called with what is done, octets done and octets to do.

    Returns
    -------
    bool
        Whether there was a golden one.

    Raises
    ------
    UsageError
        When a bitstream is too long.
    ProbeError
        When the flash doesn't keep what is written, after some tries. The golden one starts then.
    """
    for octets in (new, running):
        if len(octets) > layout.space:
            raise UsageError(f"a bitstream of {len(octets)} bytes is too long: {layout.space} are there for one")
    page = jump_page(layout.golden)
    # It is written last, when all before it was verified; so where it is, there is a golden bitstream, too.
    had_golden = flash.read(layout.jump, PAGE) == page and flash.read(layout.golden, len(PREAMBLE)) == PREAMBLE
    if not had_golden:
        _clear(flash, layout.jump)
        _write(flash, layout.golden, running, "golden bitstream", progress)
        _keep(flash, layout.jump, page)
    _write(flash, 0, new, "bitstream", progress)
    return had_golden


def load_by_probe(
    registers: Registers, release: Release, one: Bitstream, backup: Path | None, progress: Progress
) -> bool:
    """Write a released bitstream into the flash of the board that a probe runs on, as `replace_bitstream` does.

    ``backup``: where the whole flash is kept before; None: nowhere. Return whether there was a golden one.
    Raises UsageError where the probe runs on another board, or what runs is not of this release, ProbeError as `ProbeFlash`.
    """
    board = registers.identifier.removeprefix(ON)
    if board not in (one.board, *one.also):
        raise UsageError(
            f"the probe calls itself '{registers.identifier}', and this is for {one.board}: nothing was written"
        )
    running = next((other for other in release.of_board(one.board) if other.map_hash == registers.map_hash), None)
    if running is None:
        raise UsageError(
            "what runs in the probe is not of this release, so it can't be kept as the golden bitstream: load one of it by a JTAG "
            "cable once (without --probe)"
        )
    if backup and backup.exists():
        raise UsageError(f"{backup} is there already, and is not replaced: give --backup another name")
    running.check()
    target = one.target
    layout = FlashLayout(int(target["flash_bytes"]), int(target["flash_offset"]))
    new, golden = plain(one.bit.read_bytes()), plain(running.bit.read_bytes())
    with ProbeFlash(registers) as flash:
        if (size := flash.size()) != layout.flash_bytes:
            raise ProbeError(
                f"the flash has {size} bytes, and that of a {one.board} has {layout.flash_bytes}: nothing was written"
            )
        if backup:
            _back_up(flash, layout.flash_bytes, backup, progress)
        return replace_bitstream(flash, layout, new, golden, progress)


# # #


def _back_up(flash: FlashMemory, length: int, file: Path, progress: Progress) -> None:
    """Read the whole flash into a file, which is there when it is whole."""
    part = file.with_name(file.name + ".part")
    try:
        with part.open("wb") as copy:
            for place in range(0, length, SECTOR):
                progress("backup", place, length)
                copy.write(flash.read(place, SECTOR))
        part.replace(file)
    except OSError as error:
        raise ProbeError(f"can't keep the backup in {file} ({error.strerror}), and nothing was written") from None


def _write(flash: FlashMemory, start: int, octets: bytes, what: str, progress: Progress) -> None:
    """Write octets from a sector on, its first page last of all."""
    _clear(flash, start)
    head = bytes([0xFF] * PAGE) + octets[PAGE:SECTOR]
    for place in range(SECTOR, len(octets), SECTOR):
        progress(what, place, len(octets))
        _keep(flash, start + place, octets[place : place + SECTOR])
    for _ in range(TRIES):
        _keep(flash, start, head)
        flash.program(start, octets[:PAGE])
        if flash.read(start, PAGE) == octets[:PAGE]:
            progress(what, len(octets), len(octets))
            return
        _clear(flash, start)
    raise _unkept(start)


def _clear(flash: FlashMemory, page: int) -> None:
    """Erase the sector of a page, where that isn't."""
    for _ in range(TRIES):
        if not flash.read(page, PAGE).strip(b"\xff"):
            return
        flash.erase(page)
    if flash.read(page, PAGE).strip(b"\xff"):
        raise _unkept(page)


def _keep(flash: FlashMemory, address: int, octets: bytes) -> None:
    """Have a sector, or what lies in it from an address on, hold octets: verified, and written where it doesn't."""
    for _ in range(TRIES):
        found = flash.read(address, len(octets))
        if found == octets:
            return
        if found.strip(b"\xff"):
            flash.erase(address)
        for place, part in _pages(address, octets):
            flash.program(place, part)
    if flash.read(address, len(octets)) != octets:
        raise _unkept(address)


def _pages(address: int, octets: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the pages of octets that hold something."""
    for place in range(0, len(octets), PAGE):
        part = octets[place : place + PAGE]
        if part.strip(b"\xff"):
            yield address + place, part


def _unkept(address: int) -> ProbeError:
    return ProbeError(
        f"the flash doesn't keep what is written at {address:#x}, {TRIES} times: it is worn out, or the supply is weak; the "
        "board still starts, with what it had or with the golden bitstream"
    )
