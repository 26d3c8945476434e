# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Looks at a machine: what LiteProbe needs of it, what is there, and what to do about what is not."""

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Protocol

from liteprobe.host.base import extras, folders, programs
from liteprobe.host.base.errors import ProbeError


class State(StrEnum):
    """Says whether a thing is there; ``NONE``: nothing is plugged in, or nobody answers, which may be as it should be."""

    OK = "ok"
    MISSING = "missing"
    NONE = "none"


class Answering(Protocol):
    """Names what is asked of a probe that was found on the network."""

    @property
    def url(self) -> str: ...
    @property
    def identifier(self) -> str: ...
    @property
    def preset(self) -> str: ...
    @property
    def is_shared(self) -> bool: ...


@dataclass(frozen=True)
class Finding:
    """Says what came of looking for one thing."""

    name: str
    state: State
    said: str  # What was found.
    advice: str = ""  # What to do; "": nothing.
    is_needed: bool = False  # Whether the host can do nothing without it.


def found(name: str, said: str) -> Finding:
    """Return that a thing is there."""
    return Finding(name, State.OK, said)


def missing(name: str, said: str, advice: str, is_needed: bool = False) -> Finding:
    """Return that a thing is missing, and what to do."""
    return Finding(name, State.MISSING, said, advice, is_needed)


def none(name: str, said: str, advice: str = "") -> Finding:
    """Return that there is none of a thing that need not be there."""
    return Finding(name, State.NONE, said, advice)


def usable(name: str, said: str, file: Path, refused: str, advice: str) -> Finding:
    """Return that a thing is there whose device file this user may use, or not."""
    may = os.name != "posix" or os.access(file, os.R_OK | os.W_OK)
    return found(name, said) if may else missing(name, refused, advice)


USB = Path("/sys/bus/usb/devices")
USB_FILES = Path("/dev/bus/usb")
RULES = "/etc/udev/rules.d/60-liteprobe.rules"
#: JTAG cables by vendor and product, as openFPGALoader calls them.
CABLES = {
    ("0403", "6010"): "ft2232 (FT2232H)",
    ("0403", "6011"): "ft4232 (FT4232H)",
    ("0403", "6014"): "ft232 or digilent_hs2 (FT232H)",
    ("0403", "6015"): "ft231X (FT231X)",
    ("09fb", "6001"): "usb-blaster",
    ("09fb", "6010"): "usb-blasterII",
    ("0d28", "0204"): "cmsisdap (DAPLink)",
    ("1209", "c0ca"): "dirtyJtag",
    ("15ba", "002a"): "olimex-arm-usb-ocd-h",
    ("1366", "0101"): "jlink",
    ("1366", "0105"): "jlink",
    ("1a86", "55dd"): "ch347_jtag",
    ("1d50", "602b"): "papilio (FT2232H)",
    ("2e8a", "000c"): "cmsisdap (Raspberry Pi debug probe)",
}
CARDS = ("/dev", "litepcie*")
CARD_RULE = 'KERNEL=="litepcie*", GROUP="plugdev", MODE="0660"'


def udev(vendor: str, product: str) -> str:
    """Return the rule that lets whoever sits at the machine, and the group plugdev, use a cable."""
    ids = f'ATTR{{idVendor}}=="{vendor}", ATTR{{idProduct}}=="{product}"'
    return f'SUBSYSTEM=="usb", {ids}, MODE="0660", GROUP="plugdev", TAG+="uaccess"'


def paste(rule: str) -> str:
    """Return the command that makes a rule of udev hold."""
    return f"echo '{rule}' | sudo tee -a {RULES} && sudo udevadm control --reload && sudo udevadm trigger"


def cables(devices: Path = USB, files: Path = USB_FILES) -> list[Finding]:
    """Look for JTAG cables.

    ``devices``: folder of USB devices of Linux's sysfs.
    ``files``: folder of their device files.
    """
    checks = []
    for device in sorted(devices.glob("*")):
        ids = (_read(device / "idVendor"), _read(device / "idProduct"))
        if ids not in CABLES:
            continue
        said = f"{CABLES[ids]}, USB {ids[0]}:{ids[1]} {_read(device / 'product')}".rstrip()
        file = files / f"{_number(device / 'busnum'):03d}" / f"{_number(device / 'devnum'):03d}"
        checks.append(usable("JTAG cable", said, file, f"{said}: you may not use {file}", paste(udev(*ids))))
    return checks or [
        none("JTAG cable", "none that is known is plugged in", "to load a board: plug one in (docs/boards.md)")
    ]


def plugged(cable: str, devices: Path | None = None) -> list[tuple[str, str]]:
    """Return the JTAG cables of a kind, by openFPGALoader's name, that are plugged in: ``BUS:DEVICE`` and what each is."""
    there = []
    for device in sorted((devices or USB).glob("*")):
        ids = (_read(device / "idVendor"), _read(device / "idProduct"))
        if cable in CABLES.get(ids, "").split():
            where = f"{_number(device / 'busnum')}:{_number(device / 'devnum')}"
            there.append((where, f"{_read(device / 'product')} {_read(device / 'serial')}".strip() or ":".join(ids)))
    return there


def serial_ports(devices: Iterable[str] | None = None) -> list[Finding]:
    """Look for serial ports of USB; ``devices``: their files, None: those that pyserial lists."""
    if devices is None:
        from serial.tools import list_ports

        devices = [port.device for port in list_ports.comports() if port.vid is not None]
    checks = []
    for device in devices:
        advice = f'sudo usermod -aG {_group(Path(device))} "$USER"   then log in again'
        checks.append(usable("serial port", device, Path(device), f"{device}: you may not use it", advice))
    return checks or [none("serial port", "none of USB is plugged in")]


def cards(folder: Path = Path(CARDS[0])) -> list[Finding]:
    """Look for probes in PCIe slots, whose driver is loaded; none is said of their absence."""
    return [
        usable("PCIe probe", f"pcie://{file}", file, f"{file}: you may not use it", paste(CARD_RULE))
        for file in sorted(folder.glob(CARDS[1]))
    ]


def probes(answered: Iterable[Answering], asked: int, left_out: Iterable[str] = ()) -> list[Finding]:
    """Return what came of looking for probes on the network; ``left_out``: networks that were too large, as sentences."""
    checks = [none("network", said, "liteprobe discover 10.0.0.0/22   looks there") for said in left_out]
    for probe in answered:
        said = f"{probe.url} {probe.identifier or 'no LiteProbe'} {probe.preset}".rstrip()
        if probe.is_shared:
            checks.append(missing("probe", f"{said}: two devices have this address", "liteprobe discover   says which"))
        else:
            checks.append(found("probe", said))
    advice = "liteprobe discover 192.168.1.50   where a board should be; this host needs an address in its network"
    if not any(check.name == "probe" for check in checks):
        where = "the one address that was asked" if asked == 1 else f"{asked} addresses"
        checks.append(none("probe", f"none answers at {where}", advice))
    return checks


# # #


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _number(file: Path) -> int:
    text = _read(file)
    return int(text) if text.isdecimal() else 0


def _group(device: Path) -> str:
    try:
        return device.group()
    except (OSError, KeyError, NotImplementedError):
        return "dialout"


OLDEST, NEWEST = (3, 11), (3, 14)  # That this is tested with; pyproject.toml and ./run have them, too.
SYSTEMS = ("Linux",)
USUAL = "own-train"  # The simulated probe that is there if any came with the package.
COMPILERS = {"g++": "the simulated probe", "cc": "the servo (clock discipline)"}
#: The smallest program of each that needs a library's header, and the linker.
PROGRAMS = {
    "g++": ("c++", "#include <string>\nint main() { return static_cast<int>(std::string().size()); }\n"),
    "cc": ("c", "#include <stdint.h>\nint main(void) { return (int)(uint32_t)0; }\n"),
}
TOOLS_PROGRAM = "liteprobe.soc.build.toolchain"
LOADER = "openFPGALoader"
TIMEOUT_S = 20.0


def python(version: Sequence[int] = sys.version_info[:3]) -> Finding:
    """Look at Python's version, and at the system."""
    said = f"{'.'.join(map(str, version[:3]))}, {sys.executable}"
    if not OLDEST <= tuple(version[:2]) <= NEWEST:
        wanted = " to ".join(".".join(map(str, ends)) for ends in (OLDEST, NEWEST))
        return missing(
            "Python", said, f"install Python {wanted}, and LiteProbe into an environment of it", is_needed=True
        )
    if platform.system() not in SYSTEMS:
        return found("Python", f"{said} ({platform.system()}: host only, see docs/install.md)")
    return found("Python", said)


def packages() -> Finding:
    """Look for the packages that each command needs."""
    lacking = [name for module, name in extras.NEEDED.items() if not extras.is_installed(module)]
    if lacking:
        advice = extras.install(*lacking)
        return missing("packages of the host", f"without {', '.join(lacking)}", advice, is_needed=True)
    where = "a clone" if folders.is_clone() else "installed"
    return found("packages of the host", f"liteprobe {metadata.version('liteprobe')}, {where}: {folders.ROOT}")


def optional() -> list[Finding]:
    """Look for the packages of each extra."""
    return [
        missing(f"extra {extra}", f"without {', '.join(lacking)}", extras.command(extra))
        if (lacking := extras.lacking(extra))
        else found(f"extra {extra}", ", ".join(modules))
        for extra, modules in extras.EXTRAS.items()
    ]


def build_folder() -> Finding:
    """Look whether what is built can be kept."""
    advice = f"export {folders.VARIABLE}=FOLDER"
    try:
        folder = folders.build_folder()
    except ProbeError as error:
        return missing("folder of builds", str(error), advice)
    if reason := folders.why_not(folder):
        return missing("folder of builds", f"{folder}: nothing new can be built there ({reason})", advice)
    return found("folder of builds", str(folder))


def compilers() -> list[Finding]:
    """Look for C and C++ compilers."""
    checks = []
    for name, purpose in COMPILERS.items():
        package = "gcc" if name == "cc" else name
        path = os.environ.get("CC") if name == "cc" and "CC" in os.environ else shutil.which(name)
        if not path and name == "g++" and folders.built_in(USUAL):
            checks.append(found(name, "none, and none is needed for the simulated probes that came with the package"))
            continue
        if not path:
            checks.append(missing(name, f"{purpose} is compiled here", f"apt-get install {package}"))
            continue
        language, program = PROGRAMS[name]
        code, said = _ask([path, "-x", language, "-", "-o", os.devnull], program)
        if code:
            advice = f"apt-get install --reinstall {package}   or take the one of another name off PATH"
            checks.append(
                missing(name, f"{path} compiles nothing: {said.strip()[-200:] or f'exit code {code}'}", advice)
            )
        else:
            checks.append(found(name, f"{path}, for {purpose}"))
    return checks


def tools() -> list[Finding]:
    """Look for what makes and loads bitstreams, which the gateware's own program knows."""
    command = programs.module(TOOLS_PROGRAM)
    code, said = _ask(command)
    if code:
        return [missing("tools", f"{TOOLS_PROGRAM} failed: {said.strip()[-200:]}", "install LiteProbe again, whole")]
    paths: dict[str, str | None] = json.loads(said)
    return [tool(name, path) for name, path in paths.items()]


def tool(name: str, path: str | None) -> Finding:
    """Look at a tool that is at ``path``; None: it isn't here."""
    if path is None:
        advice = f"install it on PATH, or type  {extras.command('build')}"
        return missing(name, "neither on PATH nor in Python's environment", advice)
    if name == LOADER:
        code, said = _ask([path, "--Version"])
        if "shared libraries" in said:
            return missing(name, f"{path} can't start: {said.strip()[-200:]}", "apt-get install libftdi1-2")
        if code:
            advice = f"take it off PATH, or type  {extras.command('build')}"
            return missing(name, f"{path} can't tell its version: {said.strip()[-200:] or f'exit code {code}'}", advice)
    return found(name, path)


# # #


def _ask(command: Sequence[str], given: str = "") -> tuple[int, str]:
    """Run a program that should end at once; return its exit code and what it says: of stderr where it fails, else of both."""
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, errors="replace", check=False, timeout=TIMEOUT_S
        )
    except OSError as error:
        return 1, error.strerror or str(error)
    except subprocess.TimeoutExpired:
        return 1, f"it doesn't end within {TIMEOUT_S:.0f} s"
    return done.returncode, done.stderr if done.returncode else done.stdout + done.stderr
