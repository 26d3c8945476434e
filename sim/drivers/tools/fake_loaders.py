# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A machine whose PATH has programs that answer as openFPGALoader and ecpdap do, and what they are given to load."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from liteprobe.soc.build.toolchain import BuildError

# Answers of openFPGALoader: exit code and text.
FOUND_25 = (
    0,
    "empty\nindex 0:\n\tidcode 0x41111043\n\tmanufacturer lattice\n\tfamily ECP5\n\tmodel  LFE5U-25\n\tirlength 8",
)
FOUND_45 = (0, FOUND_25[1].replace("0x41111043", "0x41112043").replace("LFE5U-25", "LFE5U-45"))
FOUND_UM_45 = (0, FOUND_25[1].replace("0x41111043", "0x1112043").replace("LFE5U-25", "LFE5UM-45"))
FOUND_5G_45 = (0, FOUND_25[1].replace("0x41111043", "0x81112043").replace("LFE5U-25", "LFE5UM5G-45"))
NO_CABLE = (1, "unable to open ftdi device: -3 (device not found)\nJTAG init failed with: unable to open ftdi device")
NO_CMSISDAP = (
    1,
    "empty\nJtag: support for cmsisdap was not enabled at compile time\nJTAG init failed with: std::exception",
)
NO_SUCH_CABLE = (1, "error : nonsense not found")
LOCKED = (
    1,
    "write to flash\nunlock blocks\nError: block protection is set\n       can't unlock without --unprotect-flash\n"
    "Error: Failed to program FPGA: std::exception",
)
DONE = (0, "Erasing: [====      ] 40.00%\rErasing: [==========] 100.00%\nDone")
# Of ecpdap.
SCAN_25 = (0, "Detected JTAG chain, closest to TDO first:\n - 0: 0x41111043 (Lattice Semi.) [IR length: 8] [LFE5U-25]")
NO_PROBE = (1, "Error: no CMSIS-DAP probes found")
LOCKED_BY_ECPDAP = (
    1,
    "Flash appears to be write-protected; writing may fail.\nError: Mismatch during flash readback verification.",
)

FAKE = """#!{python} -SE
import json, pathlib, shutil, sys
here = pathlib.Path(__file__).parent
name = pathlib.Path(__file__).name
with (here / "asked").open("a") as log:
    log.write(json.dumps([name, *sys.argv[1:]]) + "\\n")
for word, code, text, dump in json.loads((here / (name + ".json")).read_text()):
    if word in sys.argv[1:]:
        if dump:
            shutil.copy(dump, sys.argv[-1])
        print(text)
        sys.exit(code)
sys.exit("the test expects nothing of the kind")
"""


class Machine:
    """A machine with the loaders that a test puts on its PATH."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.data = folder / "data"
        self.vendor = folder / "vendor"

    def has(self, name: str, dump: bytes | None = None, **answers: tuple[int, str]) -> None:
        """Install a loader that answers to what stands in its arguments (dump_flash: --dump-flash), the first that fits."""
        rows = []
        for word, (code, text) in answers.items():
            word = word if name == "ecpdap" or word.endswith("bit") else "--" + word.replace("_", "-")
            rows.append(
                [
                    word.removesuffix("_bit") + ".bit" * word.endswith("_bit"),
                    code,
                    text,
                    str(self.vendor) if "read" in word or "dump" in word else None,
                ]
            )
        if dump is not None:
            self.vendor.write_bytes(dump)
        (self.bin / f"{name}.json").write_text(json.dumps(rows))
        (self.bin / name).write_text(FAKE.format(python=sys.executable))
        (self.bin / name).chmod(0o755)

    @property
    def asked(self) -> list[list[str]]:
        """Requests to the loaders, in order, the name of the loader first."""
        log = self.bin / "asked"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    @property
    def backups(self) -> list[Path]:
        """The backups in the user's data folder."""
        return sorted(self.data.rglob("*.bin"))


def bitstream(idcode: int, length: int = 200) -> bytes:
    """Return the begin of a bitstream as ecppack writes it, for the device with this IDCODE."""
    head = b"\xff\x00Part: LFE5\x00\xff\xff\xff\xbd\xb3\xff\xff\xff\xff\x3b\x00\x00\x00\xe2\x00\x00\x00"
    return (head + idcode.to_bytes(4, "big")).ljust(length, b"\x22")


OF_25, OF_45 = bitstream(0x41111043), bitstream(0x41112043)
I5_BYTES = 2 << 20
VENDOR_I5 = OF_25.ljust(I5_BYTES, b"\x5a")


def file_of(octets: bytes, name: str = "x.bit") -> Path:
    """Write a file into the working folder."""
    path = Path(name)
    path.write_bytes(octets)
    return path


def fails(call: Callable[..., Any], *arguments: Any) -> tuple[int, str]:
    """Return exit code and message of what must fail."""
    try:
        call(*arguments)
    except BuildError as error:
        return error.exit_code, str(error)
    raise AssertionError("it did not fail")
