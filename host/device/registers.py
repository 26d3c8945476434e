# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads and writes registers and memories of a probe by name, from the map that its build wrote (``csr.json``)."""

import difflib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from liteprobe.cores.formats import map_hash
from liteprobe.host.base.errors import MapError, ProbeError, UsageError
from liteprobe.host.base.folders import ROOT
from liteprobe.host.base.text import json_of
from liteprobe.host.base.validate import validated
from liteprobe.host.device import bitstreams
from liteprobe.host.device.link.base import Link, Words

WORD_BITS = 32
IDENTIFIER, IDENTIFIER_MEMORY = "liteprobe", "identifier_mem"
IDENTIFIER_WORDS = 64  # A character each.
MAP_VARIABLE = "LITEPROBE_MAP"
MAP_PATTERNS = ("build/*/csr.json", "build/*/*/csr.json")
HASH_REGISTER = "probe_map_hash"
WRITE_TRIES = 3
# A map says nothing of signs.
SIGNED = ("delay_origin", "adjust", "clock_offset", "clock_rate", "clock_drift")


@dataclass(frozen=True)
class Register:
    """Says where a register lies: ``address`` in bytes, ``words`` of 32 bits, the highest first."""

    name: str
    address: int
    words: int
    is_writable: bool
    is_signed: bool

    @property
    def bits(self) -> int:
        """Width of the words that hold it."""
        return WORD_BITS * self.words

    def value(self, words: Iterable[int]) -> int:
        """Return the value that ``words``, highest first, hold."""
        value = 0
        for word in words:
            value = (value << WORD_BITS) | int(word)
        is_negative = self.is_signed and value >> (self.bits - 1)
        return value - (1 << self.bits) if is_negative else value

    def split(self, value: int) -> list[int]:
        """Return ``value`` as words, highest first."""
        least, most = (-(1 << (self.bits - 1)), 1 << (self.bits - 1)) if self.is_signed else (0, 1 << self.bits)
        if not least <= value < most:
            raise UsageError(f"{value} does not fit {self.name}: give {least} to {most - 1}")
        shifts = range(WORD_BITS * (self.words - 1), -1, -WORD_BITS)
        return [(value >> shift) & 0xFFFFFFFF for shift in shifts]


@dataclass(frozen=True)
class Memory:
    """Says where a bus memory lies: ``address`` in bytes, ``words`` of 32 bits."""

    name: str
    address: int
    words: int


@validated
class Registers:
    """A probe's registers and memories by name.

    ``register_map``: ``csr.json`` of its build, as loaded.
    ``source``: what to call the map in errors.

    ``own``: called before each write: makes sure that this host may (``Lease.ensure``).
    Raises UsageError when the map is none.
    """

    def __init__(self, link: Link, register_map: Mapping[str, Any], source: str = "the map") -> None:
        self.link = link
        self.source = source
        self.own: Callable[[], None] = lambda: None
        try:
            self.map_hash = map_hash(register_map)
            self._registers = {
                name: Register(name, entry["addr"], entry["size"], entry["type"] != "ro", _ends_in(name, SIGNED))
                for name, entry in register_map["csr_registers"].items()
            }
            self._memories = {
                name: Memory(name, entry["base"], entry["size"] // 4)
                for name, entry in register_map.get("memories", {}).items()
            }
            self._constants = dict(register_map.get("constants", {}))
            self._identifier_address = register_map.get("csr_bases", {}).get(IDENTIFIER_MEMORY)
        except (KeyError, TypeError, AttributeError):
            raise UsageError(f"{source} is not a register map: give the csr.json that the build wrote") from None

    @property
    def names(self) -> list[str]:
        """Names of all registers, in the order of their addresses."""
        return sorted(self._registers, key=lambda name: self._registers[name].address)

    def constant(self, name: str) -> int:
        return int(_look_up(self._constants, name, "constant", self.source))

    @property
    def has_flow_hash(self) -> bool:
        """Whether ports that monitor hash what they receive; they were built without (``--no-hash``) else."""
        return "port0_monitor_sample_seed" in self._registers

    @cached_property
    def identifier(self) -> str:
        """Return what the probe calls itself, ``liteprobe on <board>``: builds for two boards may have one map.

        Where it has no memory for that it is what the map says; empty where that says nothing.
        """
        text = ""
        if self._identifier_address is not None:
            text = characters(self.link.read(self._identifier_address, IDENTIFIER_WORDS))
        return text if text.startswith(IDENTIFIER) else str(self._constants.get("config_identifier") or "")

    @property
    def memory_names(self) -> list[str]:
        """Names of all memories, in the order of their addresses."""
        return sorted(self._memories, key=lambda name: self._memories[name].address)

    def register(self, name: str) -> Register:
        """Return where ``name`` lies; a typo raises UsageError with what comes close."""
        return _look_up(self._registers, name, "register", self.source)

    def memory(self, name: str) -> Memory:
        """Return where the memory ``name`` lies; a typo raises UsageError with what comes close."""
        return _look_up(self._memories, name, "memory", self.source)

    def read(self, name: str) -> int:
        register = self.register(name)
        return register.value(self.link.read(register.address, register.words))

    def read_many(self, names: Iterable[str]) -> dict[str, int]:
        """Return the values of several registers, by name, read in as few datagrams as will do."""
        registers = [self.register(name) for name in names]
        words = self.link.read_scattered(
            [register.address + 4 * word for register in registers for word in range(register.words)]
        )
        values, first = {}, 0
        for register in registers:
            values[register.name] = register.value(words[first : first + register.words])
            first += register.words
        return values

    def write(self, name: str, value: int) -> None:
        """Write a register; raises UsageError when it is read-only, or ``value`` doesn't fit."""
        register = self._writable(name)
        self.own()
        self.link.write(register.address, register.split(value))

    def write_many(self, values: Mapping[str, int]) -> None:
        """Write several registers, neighbours in one burst, and check that they hold what was written.

        Raises ProbeError when a register doesn't keep its value.
        """
        for address, burst in self._bursts_of(values):
            self._write_checked(address, burst, "a register of " + ", ".join(values))

    def write_burst(self, values: Mapping[str, int]) -> None:
        """Write several registers that need not read as they were written, neighbours in one burst."""
        bursts = self._bursts_of(values)
        self.own()
        for address, burst in bursts:
            self.link.write(address, burst)

    def read_memory(self, name: str, first: int, count: int) -> Words:
        """Return ``count`` words of a memory, from word ``first``."""
        memory = self._within(name, first, count)
        return self.link.read(memory.address + 4 * first, count)

    def write_memory(self, name: str, first: int, words: list[int]) -> None:
        """Write ``words`` into a memory from word ``first``, and check that they are there."""
        memory = self._within(name, first, len(words))
        self._write_checked(memory.address + 4 * first, words, name)

    def confirm(self) -> None:
        """Check that this map is that of the gateware that runs; raises MapError when the probe reads another hash."""
        tries = (self.read(HASH_REGISTER) for _ in range(3))  # One may have been changed on its way.
        if self.map_hash not in tries:
            found = self.read(HASH_REGISTER)
            raise MapError(
                f"{self.source} is the map of another build (hash {self.map_hash:08x}, the probe's is {found:08x}): "
                f"give --map build/BOARD/csr.json of the bitstream that runs, or load this build's bitstream"
            )
        self.prove()

    def prove(self) -> None:
        """Raise NetworkError where the network is found to change datagrams."""
        self.link.prove(self.register(HASH_REGISTER).address)

    # # #

    def _bursts_of(self, values: Mapping[str, int]) -> list[tuple[int, list[int]]]:
        """Return the words of these values as runs of neighbours, with the address of each."""
        words: dict[int, int] = {}
        for name, value in values.items():
            register = self._writable(name)
            words |= {register.address + 4 * number: word for number, word in enumerate(register.split(value))}
        bursts: list[tuple[int, list[int]]] = []
        for address in sorted(words):
            if bursts and address == bursts[-1][0] + 4 * len(bursts[-1][1]):
                bursts[-1][1].append(words[address])
            else:
                bursts.append((address, [words[address]]))
        return bursts

    def _writable(self, name: str) -> Register:
        register = self.register(name)
        if not register.is_writable:
            raise UsageError(f"{name} can only be read")
        return register

    def _within(self, name: str, first: int, count: int) -> Memory:
        memory = self.memory(name)
        if not (first >= 0 and count >= 0 and first + count <= memory.words):
            raise UsageError(f"words {first} to {first + count - 1} lie outside {name}: it has {memory.words}")
        return memory

    def _write_checked(self, address: int, words: list[int], what: str) -> None:
        self.own()
        for _ in range(WRITE_TRIES):
            if self.link.write(address, words).tolist() == words:
                return
        raise ProbeError(f"the probe doesn't keep what is written to {what}: check its map (--map), and the cable")


@validated
def load_map(path: Path) -> dict[str, Any]:
    """Return a register map from a file; raises UsageError when the file can't be read, or is not a map."""
    loaded = json_of(path, "the register map of the build (--map build/BOARD/csr.json)")
    if not isinstance(loaded, dict):
        raise UsageError(f"{path} is not a register map: give --map build/BOARD/csr.json")
    return loaded


def open_registers(link: Link, path: Path | None = None) -> Registers:
    """Return the registers of the probe behind ``link``, its map found and confirmed.

    The map is ``path``, or else what the link knows, or the file that LITEPROBE_MAP names, or the first
    ``build/*/csr.json`` (here, or beside the installed package), else of released bitstreams, whose hash the probe confirms.
    Raises MapError when no map belongs to the probe, NoProbeError when no probe answers.
    """
    variable = os.environ.get(MAP_VARIABLE)
    named = path or link.map_file or (Path(variable) if variable else None)
    if named:
        registers = Registers(link, load_map(named), str(named))
        registers.confirm()
        return registers
    found = candidates()
    if not found:
        link.read(0)  # Raises when no probe answers; without a map nothing else would ask it.
    said: dict[int, int] = {}  # By address: each is read once, however many maps have it there.
    for candidate in found:
        try:
            registers = Registers(link, load_map(candidate), str(candidate))
        except UsageError:
            continue  # Some other program's csr.json, or one half written.
        if HASH_REGISTER not in registers.names:
            continue
        address = registers.register(HASH_REGISTER).address
        if address not in said:
            said[address] = registers.read(HASH_REGISTER)
        if said[address] == registers.map_hash:
            registers.prove()
            return registers
    tried = ", ".join(str(candidate) for candidate in found) or "there is no build/*/csr.json here"
    raise MapError(
        f"no register map belongs to this probe (tried: {tried}): give --map FILE, or set {MAP_VARIABLE}; "
        "that of a released bitstream is found by itself (liteprobe load)"
    )


def candidates() -> list[Path]:
    """Return the maps of all builds at hand, the latest first, then those of released bitstreams."""
    places = {Path.cwd(), ROOT}
    found = {path.resolve() for folder in places for pattern in MAP_PATTERNS for path in folder.glob(pattern)}
    return [*sorted(found, key=lambda path: path.stat().st_mtime, reverse=True), *bitstreams.maps()]


def characters(words: Words) -> str:
    """Return the text up to the first 0, one character a word; "" where a word is not a character."""
    codes = words.tolist()
    codes = codes[: codes.index(0)] if 0 in codes else codes
    return "".join(map(chr, codes)) if all(0x20 <= code < 0x7F for code in codes) else ""


def _ends_in(name: str, endings: tuple[str, ...]) -> bool:
    """Return whether the register part of ``name``, behind its module, is one of ``endings``."""
    return any(name == ending or name.endswith("_" + ending) for ending in endings)


Entry = TypeVar("Entry")


def _look_up(table: Mapping[str, Entry], name: str, kind: str, source: str) -> Entry:
    try:
        return table[name]
    except KeyError:
        close = difflib.get_close_matches(name, table, n=3)
        known = "liteprobe regs list" if kind == "register" else source
        hint = f"did you mean {' or '.join(close)}?" if close else f"see {known}"
        raise UsageError(f"there is no {kind} '{name}': {hint}") from None
