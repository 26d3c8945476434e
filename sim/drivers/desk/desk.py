# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A desk as the pages have it, with a board on a JTAG cable, on the network and on a serial port: all of it simulated.

A loader and a toolchain that answer as the real ones do are on PATH (`fake_loaders`, `toolchain`). What the pages call
192.168.1.50 is a simulated probe whose time flows by itself, and so is what is behind /dev/ttyUSB0.
"""

import os
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from liteprobe.boards import board
from liteprobe.cores.formats import flash_image, map_hash
from liteprobe.host.base import folders
from liteprobe.host.device.firmware import FIELDS, FORMAT, SIGNATURE
from liteprobe.host.device.firmware_build import IMAGE, folder_of
from liteprobe.host.device.link import sim
from liteprobe.host.device.link.sim import SimProcess
from liteprobe.host.device.registers import load_map
from liteprobe.sim.drivers.desk import toolchain
from liteprobe.sim.drivers.desk.bridge import ProbeBridge, SerialPort
from liteprobe.sim.drivers.tools.fake_loaders import DONE, FOUND_5G_45, FOUND_25, FOUND_45, Machine, bitstream
from liteprobe.sim.pins.build import build_board
from liteprobe.soc.boot import assemble

NETWORK = "etherbone://192.168.1.50"
SERIAL = re.compile(r"/dev/ttyUSB\d")
#: Said on stderr where a simulated probe is not in the cache yet.
BUILDING = re.compile(
    r"^(?:  \d+ s: )?liteprobe: (?:building the simulated|its Verilog is there|built in|another program builds).*\n",
    re.MULTILINE,
)
LONGEST_S = 600
QUIET_S = 120
READY_NS = 5_000_000  # PHYs are set up, and a short program is started.
#: What JTAG tells of each board, and what a bitstream for it names.
FPGAS = {
    "colorlight_5a_75b": (FOUND_25, 0x41111043),
    "colorlight_i5": (FOUND_25, 0x41111043),
    "colorlight_i9": (FOUND_45, 0x41112043),
    "versa_ecp5": (FOUND_5G_45, 0x81112043),
}
LOCKED = (1, "Error: block protection is set\n       can't unlock without --unprotect-flash")
#: Runs a command ($@) beside a simulated probe ($0) on 127.0.0.1, in a network without anything else.
ALONE = 'ip link set lo up; "$0" --port 1234 --free-run >/dev/null & probe=$!; "$@"; code=$?; kill $probe; exit $code'
NETWORK_OF_ITS_OWN = ("unshare", "--map-root-user", "--net")
STILL = assemble(["end", ("j", "end")])  # A program that does nothing.
RAM = 0x40000000


@dataclass(frozen=True)
class Setting:
    """Describes the simulated probe on the desk.

    Attributes
    ----------
    preset : str, what is built in.
    wire : str, between its ports, as in a ``sim://`` URL.
    board : str, the board that is simulated at its pins, with its PHYs, and found by the map of a build of it; "": the
        simulated SoC, whose map LITEPROBE_MAP names.
    play : tuple of str, captures in the working folder that come to its ports, over and over.
    """

    preset: str = "train"
    wire: str = "switch?latency=3us"
    board: str = ""
    play: tuple[str, ...] = ()

    def folder(self) -> Path:
        """Return the folder of the simulation, built when it wasn't."""
        if self.board:
            # Streams find no room in the i9's tester.
            options: dict[str, Any] = {"preset": self.preset, "with_streams": False} if self.preset != "train" else {}
            return build_board(self.board, **options)
        return sim.build(sim.SimOptions(preset=self.preset, with_cpu=self.preset != "emulator"))


class Desk:
    """A desk in a folder of its own; commands run in ``work`` one after the other, as a reader types them."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self.machine = Machine(folder)
        toolchain.install(self.machine.bin)
        self.environment = {
            **os.environ,
            "PATH": f"{self.machine.bin}{os.pathsep}{os.environ['PATH']}",
            "XDG_DATA_HOME": str(self.machine.data),
            "LITEPROBE_BUILD": str(folders.build_folder()),
            "NO_COLOR": "1",
        }
        self._stack = ExitStack()
        self._asked = 0
        self._board = ""
        self._flash = folder / "firmware.flash"
        self._has_firmware = False
        self._port = 0
        self._serial = ""

    def __enter__(self) -> "Desk":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def put_board(self, name: str, is_locked: bool = False) -> None:
        """Put a board on the JTAG cable; its flash has what its vendor wrote, and may be write-protected."""
        self._board = name
        found, idcode = FPGAS[name]
        writes = {"unprotect_flash": DONE, "write_flash": LOCKED if is_locked else DONE}
        folder = Path("build")
        loads = {str(path / "liteprobe.bit"): DONE for path in (folder / name, folder / f"{name}_tester")}
        vendor = bitstream(idcode).ljust(board(name).flash_bytes, b"\x5a")
        self.machine.has("openFPGALoader", dump=vendor, detect=found, dump_flash=DONE, **writes, **loads)

    def put_firmware(self, map_file: str) -> None:
        """Have the firmware for a gateware built: what was built before, or else a program that does nothing."""
        image = folder_of(self.work / map_file) / IMAGE
        if not image.exists():
            image.parent.mkdir(parents=True, exist_ok=True)
            self._stack.callback(shutil.rmtree, image.parent)
            fields = FIELDS.pack(SIGNATURE, FORMAT, map_hash(load_map(self.work / map_file)), RAM, RAM + 4096, b"0.0")
            image.write_bytes(struct.pack(f"<{len(STILL)}I", *STILL) + fields)

    def asked(self) -> list[str]:
        """Return what the loader was asked since the last call, a line each; what it has unlocked and written stays so."""
        new = self.machine.asked[self._asked :]
        self._asked += len(new)
        for words in new:
            if "--unprotect-flash" in words:
                self.put_board(self._board)
            if "--write-flash" in words and words[-1].endswith(".flash"):
                self._has_firmware = True
        return [shlex.join(words) for words in new]

    @contextmanager
    def probe(self, setting: Setting) -> Iterator[None]:
        """Have a probe on the network, and on the serial port. Where the loader has written firmware, a SoC has some of its own."""
        with ExitStack() as stack:
            folder = setting.folder()
            options = ["--port", "0", "--wire", setting.wire, "--free-run"]
            if self._has_firmware and not setting.board:
                flash = flash_image(struct.pack(f"<{len(STILL)}I", *STILL), RAM, RAM, map_hash(load_map(folder / sim.MAP)))
                self._flash.write_bytes(flash)
                options += ["--flash", str(self._flash)]
            process = SimProcess([str(folder / sim.EXECUTABLE), *options])
            stack.callback(process.close)
            for port, name in enumerate(setting.play):
                process.command(f"play {port} 0 0 {(self.work / name).absolute()}")
            while int(process.command("time")) < READY_NS:
                time.sleep(0.02)
            (self._port,) = process.udp_ports
            bridge = ProbeBridge(self._port)
            stack.callback(bridge.close)
            serial = SerialPort(bridge)
            stack.callback(serial.close)
            self._serial = serial.path
            if not setting.board:
                self.environment["LITEPROBE_MAP"] = str(folder / sim.MAP)
                stack.callback(self.environment.pop, "LITEPROBE_MAP")
            yield

    def run(self, command: str, until: str = "", input: str = "", is_alone: bool = False) -> str:
        """Run a command of a page, and return all that it printed, with its exit code where that isn't 0.

        Parameters
        ----------
        command : as it stands on a page, but for what is the reader's own.
        until : once this was printed, the command gets Ctrl-C; "": it ends by itself.
        input : file in the working folder that it reads from stdin.
        is_alone : in a network of its own, in which 127.0.0.1 is a probe: nothing of this host's network is asked.
        """
        line = [sys.executable, "-m", "liteprobe.host.cli", *(self._here(word) for word in arguments(command))]
        if is_alone:
            probe = str(Setting().folder() / sim.EXECUTABLE)
            line = [*NETWORK_OF_ITS_OWN, "sh", "-c", ALONE, probe, *line]
        with ExitStack() as stack:
            stdin = stack.enter_context((self.work / input).open("rb")) if input else subprocess.DEVNULL
            process = subprocess.Popen(
                line, cwd=self.work, env=self.environment, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            stack.callback(process.kill)
            said = _until(process, until.encode()) if until else b""
            if until:
                process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=LONGEST_S)
        text = BUILDING.sub("", self._there((said + rest).decode()))
        return text + (f"exit code {process.returncode}\n" if process.returncode or until else "")

    # # #

    def _here(self, word: str) -> str:
        """Return a word of a page's command with the simulated in the place of the real."""
        if NETWORK in word or SERIAL.search(word):
            assert self._port, "this step names no probe: give it a setting"
        # A simulation is slow, and its host may be busy.
        word = word.replace(NETWORK, f"etherbone://127.0.0.1:{self._port}?timeout=20")
        return SERIAL.sub(self._serial, word)

    def _there(self, text: str) -> str:
        """Return what was printed with the real again."""
        for here, there in (
            (f"'etherbone://127.0.0.1:{self._port}?timeout=20'", NETWORK),  # For a shell.
            (f"etherbone://127.0.0.1:{self._port}?timeout=20", NETWORK),
            (f"127.0.0.1:{self._port}", "192.168.1.50:1234"),
            (self._serial or "/dev/ttyUSB0", "/dev/ttyUSB0"),
        ):
            text = text.replace(here, there)
        return text


def arguments(command: str) -> list[str]:
    """Return what ``liteprobe`` gets by a command of a page."""
    words = shlex.split(command)
    words = words[1:] if words[0] == "./run" else words
    return words[1:] if words[0] == "liteprobe" else words


def _until(process: "subprocess.Popen[bytes]", end: bytes) -> bytes:
    """Return what a program prints up to ``end``; or all, when it ends before, or prints nothing for a long time."""
    assert process.stdout
    said = b""
    while end not in said and select.select([process.stdout], [], [], QUIET_S)[0]:
        octets = os.read(process.stdout.fileno(), 65536)
        if not octets:
            break
        said += octets
    return said
