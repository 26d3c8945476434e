# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Cables, serial ports, cards and probes, and whether this user may use them."""

import os
from collections.abc import Iterable
from pathlib import Path

from liteprobe.host.device.discover import FoundProbe
from liteprobe.host.doctor.check import Check, found, missing, none

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


def cables(devices: Path = USB, files: Path = USB_FILES) -> list[Check]:
    """Look for JTAG cables.

    Parameters
    ----------
    devices : Path
        Folder of USB devices of Linux's sysfs.
    files : Path
        Folder of their device files.
    """
    checks = []
    for device in sorted(devices.glob("*")):
        ids = (_read(device / "idVendor"), _read(device / "idProduct"))
        if ids not in CABLES:
            continue
        said = f"{CABLES[ids]}, USB {ids[0]}:{ids[1]} {_read(device / 'product')}".rstrip()
        file = files / f"{_number(device / 'busnum'):03d}" / f"{_number(device / 'devnum'):03d}"
        if os.access(file, os.R_OK | os.W_OK):
            checks.append(found("JTAG cable", said))
        else:
            checks.append(missing("JTAG cable", f"{said}: you may not use {file}", paste(udev(*ids))))
    return checks or [
        none("JTAG cable", "none that is known is plugged in", "to load a board: plug one in (docs/boards.md)")
    ]


def serial_ports(devices: Iterable[str] | None = None) -> list[Check]:
    """Look for serial ports of USB; ``devices``: their files, None: those that pyserial lists."""
    if devices is None:
        from serial.tools import list_ports

        devices = [port.device for port in list_ports.comports() if port.vid is not None]
    checks = []
    for device in devices:
        if os.name != "posix" or os.access(device, os.R_OK | os.W_OK):
            checks.append(found("serial port", device))
        else:
            advice = f'sudo usermod -aG {_group(Path(device))} "$USER"   then log in again'
            checks.append(missing("serial port", f"{device}: you may not use it", advice))
    return checks or [none("serial port", "none of USB is plugged in")]


def cards(folder: Path = Path(CARDS[0])) -> list[Check]:
    """Look for probes in PCIe slots, whose driver is loaded; none is said of their absence."""
    checks = []
    for file in sorted(folder.glob(CARDS[1])):
        if os.access(file, os.R_OK | os.W_OK):
            checks.append(found("PCIe probe", f"pcie://{file}"))
        else:
            checks.append(missing("PCIe probe", f"{file}: you may not use it", paste(CARD_RULE)))
    return checks


def probes(answered: Iterable[FoundProbe], asked: int, left_out: Iterable[str] = ()) -> list[Check]:
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
