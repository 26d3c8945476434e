# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Loads firmware into the probe's processor over any link, and reads its console."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from liteprobe.cores.formats import BootState, flash_image
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.device.registers import Registers

SIGNATURE = b"LiteProbe image\0"
FORMAT = 1
FIELDS = struct.Struct("<16s4I32s")  # struct lp_image of firmware/include/liteprobe/image.h.
BURST_WORDS = 1024
CPU_RESET = 2  # Bit of ``ctrl_reset`` that holds the processor.
RAM_TRIES = 50
RAM_STEP_S = 100e-6  # SDRAM is ready 0.4 ms after the probe's reset.
START_TRIES = 50
START_STEP_S = 20e-6
CONSOLE_STEP_S = 100e-6
PROGRESS = Callable[[int, int], None]


@dataclass(frozen=True)
class Image:
    """An image, as ``liteprobe firmware build`` makes it."""

    path: Path
    octets: bytes  # What is written into the RAM, from ``start`` upwards; the first instruction is at its beginning.
    map_hash: int  # Of the gateware that it was built for.
    #: ``start``, ``end``: addresses of all RAM that it uses, its data and stacks included.
    start: int
    end: int
    version: str

    @property
    def ram_bytes(self) -> int:
        """RAM that it takes, with its data and stacks."""
        return self.end - self.start


def read_image(path: Path) -> Image:
    """Return the image in a file.

    Raises UsageError when the file can't be read, is not an image, or is one of another format.
    """
    try:
        octets = path.read_bytes()
    except OSError as error:
        raise UsageError(f"can't read {path} ({error.strerror}): make it by 'liteprobe firmware build'") from None
    at = octets.find(SIGNATURE)
    if at < 0 or octets.find(SIGNATURE, at + 1) >= 0 or len(octets) < at + FIELDS.size:
        raise UsageError(f"{path} is not a firmware of LiteProbe: give what 'liteprobe firmware build' made")
    _, version, map_hash, start, end, name = FIELDS.unpack_from(octets, at)
    if version != FORMAT:
        raise UsageError(f"{path} is an image of format {version}, this is a loader of format {FORMAT}: build it again")
    if not start + len(octets) <= end:
        raise UsageError(f"{path} is damaged (it says that it ends before it does): build it again")
    return Image(path, octets, map_hash, start, end, name.rstrip(b"\0").decode("ascii", "replace"))


def load(registers: Registers, image: Image, progress: PROGRESS | None = None) -> None:
    """Load an image into the probe's RAM, and start it: the protocol of docs/design/boot.md.

    What ran before is stopped, and stays so when something fails.

    ``progress``: called with the octets written and the octets to write, now and then.
    Raises UsageError when the image is for another gateware, or the probe has no processor, or no RAM for it,
    ProbeError when the RAM isn't ready, or doesn't keep it, or the processor doesn't start.
    """
    _check(registers, image)
    wait_for_ram(registers)
    words = list(struct.unpack(f"<{-(-len(image.octets) // 4)}I", image.octets + bytes(-len(image.octets) % 4)))
    registers.write("ctrl_reset", CPU_RESET)
    registers.write_many({"boot_entry": 0, "boot_state": 0})
    for first in range(0, len(words), BURST_WORDS):
        registers.write_memory("main_ram", first, words[first : first + BURST_WORDS])
        if progress:
            progress(min(4 * (first + BURST_WORDS), len(image.octets)), len(image.octets))
    registers.write_many({"boot_entry": image.start})
    registers.write("ctrl_reset", 0)
    for _ in range(START_TRIES):
        if registers.read("boot_state") == BootState.STARTED:
            return
        registers.link.wait(START_STEP_S)
    registers.write("ctrl_reset", CPU_RESET)
    raise ProbeError("the processor doesn't start: reset the probe, load again, and report this if it happens again")


def pack(image: Image) -> bytes:
    """Return an image as it is written into a board's flash."""
    return flash_image(image.octets, image.start, image.start, image.map_hash)


def boot_state(registers: Registers) -> BootState:
    """Return what became of firmware since the processor's last reset; raises UsageError when the probe can't run firmware."""
    _check_boot(registers)
    return BootState(registers.read("boot_state"))


def wait_for_ram(registers: Registers) -> None:
    """Wait until the RAM is started, which it does by itself after the probe's reset."""
    for _ in range(RAM_TRIES):
        if registers.read("boot_ram"):
            return
        registers.link.wait(RAM_STEP_S)
    raise ProbeError(
        f"the probe's RAM isn't ready {RAM_TRIES * RAM_STEP_S * 1e3:g} ms after it was asked for: "
        "switch the probe off and on, load again, and report this if it happens again"
    )


def _check_boot(registers: Registers) -> None:
    if "boot_entry" not in registers.names:
        raise UsageError("this probe can't start firmware: build its gateware without --no-discipline and --no-cpu")


def _check(registers: Registers, image: Image) -> None:
    _check_boot(registers)
    if image.map_hash != registers.map_hash:
        raise UsageError(
            f"{image.path} was built for another gateware (hash {image.map_hash:08x}, the probe's is "
            f"{registers.map_hash:08x}): liteprobe firmware build --map {registers.source}"
        )
    memory = registers.memory("main_ram") if "main_ram" in registers.memory_names else None
    if memory is None:
        raise UsageError(
            "this probe has no RAM for firmware: build its gateware with --main-ram sdram, or BYTES of block RAM"
        )
    if image.start != memory.address or image.end > memory.address + 4 * memory.words:
        raise UsageError(
            f"{image.path} takes {image.ram_bytes} bytes from {image.start:#x}, the probe has {4 * memory.words} from "
            f"{memory.address:#x}: build it for this probe's map, with fewer options"
        )


class Console:
    """The processor's console: what it prints, and what is typed to it, through registers."""

    def __init__(self, registers: Registers) -> None:
        if "uart_xover_rxtx" not in registers.names:
            raise UsageError("this probe has no console: build its gateware with its VexRiscv (without --no-cpu)")
        self._registers = registers
        self._read = bytearray()

    def read(self) -> bytes:
        """Return what has been printed since the last time, without waiting."""
        self._drain()
        octets = bytes(self._read)
        self._read.clear()
        return octets

    def write(self, text: bytes) -> None:
        for octet in text:
            self._drain()  # A link reads what it wrote, which would take an octet away.
            while self._registers.read("uart_xover_txfull"):
                self._registers.link.wait(CONSOLE_STEP_S)
            self._registers.write("uart_xover_rxtx", octet)

    def _drain(self) -> None:
        while not self._registers.read("uart_xover_rxempty"):
            # The read takes the octet away, so a lost answer loses one: the console is for people.
            self._read.append(self._registers.read("uart_xover_rxtx") & 0xFF)

    def follow(self, seconds: float, until: bytes | None = None) -> bytes:
        """Return what is printed within ``seconds`` of the probe's time, or up to and with ``until``."""
        octets = bytearray()
        left_s = seconds
        while left_s > 0 and not (until and until in octets):
            octets += self.read()
            self._registers.link.wait(min(CONSOLE_STEP_S, left_s))
            left_s -= CONSOLE_STEP_S
        return bytes(octets)


PROMPT = b"~$ "
PROMPT_S = 0.2  # What a boot takes at the most, settings in flash read.
SHOWN_S = 1e-3  # A prompt that is there already comes within this time.
ANSWER_S = 1.0


class Shell:
    """Types lines at the firmware's shell, each once the one before is answered.

    ``show`` takes what the firmware prints meanwhile.
    """

    def __init__(self, console: Console, show: Callable[[bytes], None] = lambda octets: None) -> None:
        self._console = console
        self._show = show
        self._is_at_prompt = False

    def look(self, seconds: float) -> bytes:
        """Return what comes within ``seconds`` of the probe's time, up to a prompt."""
        said = self._console.follow(seconds, PROMPT)
        self._is_at_prompt |= PROMPT in said
        self._show(said)
        return said

    def ask(self) -> None:
        """Ask a shell that may have been at its prompt for long to show it again."""
        self.look(SHOWN_S)
        if not self._is_at_prompt:
            self._console.write(b"\n")

    def type(self, line: str) -> bytes:
        """Type a line, and return what is printed up to the next prompt, or within a second: the line, and its answer."""
        if not self._is_at_prompt:
            self.look(PROMPT_S)
        self._console.write(line.rstrip("\r\n").encode() + b"\n")
        self._is_at_prompt = False
        return self.look(ANSWER_S)
