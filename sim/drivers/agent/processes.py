# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the example device as a process: with the agent in Python, or with the one in C, compiled with sanitizers."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from liteprobe.host.base.programs import end_group

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "host" / "agent" / "c"
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined")
LIBRARIES = ("-fno-sanitize-recover=all", "-lzmq", "-lpthread", "-lm")
PEERS = ("python", "c")
END_S = 10.0


def lacking() -> str:
    """Return what a C peer can't be compiled without on this machine; "": nothing."""
    if not shutil.which("gcc"):
        return "gcc"
    asked = subprocess.run(
        ["gcc", "-E", "-"], input="#include <zmq.h>\n", capture_output=True, text=True, check=False
    )
    return "" if asked.returncode == 0 else "libzmq3-dev"


def c_device() -> Path:
    """Return the program of the device in C, compiled anew when its sources have changed.

    Raises RuntimeError with what the compiler says.
    """
    sources = sorted(SOURCES.glob("*.[ch]"))
    state = "".join((*FLAGS, *LIBRARIES)).encode() + b"".join(source.read_bytes() for source in sources)
    program = ROOT / "build" / "agent" / hashlib.sha256(state).hexdigest()[:16] / "device"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        part = program.with_name(f"part-{id(sources)}")
        units = [str(source) for source in sources if source.suffix == ".c"]
        command = ["gcc", *FLAGS, "-o", str(part), *units, *LIBRARIES]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        part.replace(program)
    return program


@dataclass
class Running:
    """A device that runs."""

    address: str
    process: "subprocess.Popen[bytes]"


def command_of(peer: str) -> list[str]:
    """Return the command that starts a device."""
    return [str(c_device())] if peer == "c" else [sys.executable, "-m", "liteprobe.sim.drivers.agent.device"]


@contextmanager
def device(peer: str, *words: str, address: str = "tcp://127.0.0.1:0") -> Iterator[Running]:
    """Run a device; in the end it must stop as it is asked to, and have said nothing: sanitizers would.

    Raises RuntimeError when it doesn't start, crashes, or says something.
    """
    with TemporaryFile() as errors:
        process = subprocess.Popen(
            [*command_of(peer), address, *words], stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        )
        try:
            assert process.stdout
            line = process.stdout.readline().decode().strip()
            if line:
                yield Running(line, process)
                process.terminate()
                process.wait(END_S)
        finally:
            end_group(process)
            if process.stdout:
                process.stdout.close()
        errors.seek(0)
        said = errors.read().decode(errors="replace")
        if not line or process.returncode or said:
            raise RuntimeError(f"the device ended with {process.returncode}: {said}")
