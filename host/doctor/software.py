# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Python, packages, compilers and tools."""

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata

from liteprobe.host import extras, folders, programs
from liteprobe.host.doctor.check import Check, found, missing
from liteprobe.host.errors import ProbeError

OLDEST, NEWEST = (3, 11), (3, 14)  # That this is tested with; pyproject.toml and ./run have them, too.
SYSTEMS = ("Linux",)
COMPILERS = {"g++": "the simulated probe", "cc": "the servo (clock discipline)"}
#: The smallest program of each that needs a library's header, and the linker.
PROGRAMS = {
    "g++": ("c++", "#include <string>\nint main() { return static_cast<int>(std::string().size()); }\n"),
    "cc": ("c", "#include <stdint.h>\nint main(void) { return (int)(uint32_t)0; }\n"),
}
TOOLS_PROGRAM = "liteprobe.soc.build.toolchain"
LOADER = "openFPGALoader"
TIMEOUT_S = 20.0


def python(version: Sequence[int] = sys.version_info[:3]) -> Check:
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


def packages() -> Check:
    """Look for the packages that each command needs."""
    lacking = [name for module, name in extras.NEEDED.items() if not extras.is_installed(module)]
    if lacking:
        advice = extras.install(*lacking)
        return missing("packages of the host", f"without {', '.join(lacking)}", advice, is_needed=True)
    where = "a clone" if folders.is_clone() else "installed"
    return found("packages of the host", f"liteprobe {metadata.version('liteprobe')}, {where}: {folders.ROOT}")


def optional() -> list[Check]:
    """Look for the packages of each extra."""
    checks = []
    for extra in extras.EXTRAS:
        lacking = extras.lacking(extra)
        name = f"extra {extra}"
        if lacking:
            checks.append(missing(name, f"without {', '.join(lacking)}", extras.command(extra)))
        else:
            checks.append(found(name, ", ".join(extras.EXTRAS[extra])))
    return checks


def build_folder() -> Check:
    """Look whether what is built can be kept."""
    advice = f"export {folders.VARIABLE}=FOLDER"
    try:
        folder = folders.build_folder()
    except ProbeError as error:
        return missing("folder of builds", str(error), advice)
    if reason := folders.why_not(folder):
        return missing("folder of builds", f"{folder}: nothing new can be built there ({reason})", advice)
    return found("folder of builds", str(folder))


def compilers() -> list[Check]:
    """Look for C and C++ compilers."""
    checks = []
    for name, purpose in COMPILERS.items():
        package = "gcc" if name == "cc" else name
        path = os.environ.get("CC") if name == "cc" and "CC" in os.environ else shutil.which(name)
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


def tools() -> list[Check]:
    """Look for what makes and loads bitstreams, which the gateware's own program knows."""
    command = programs.module(TOOLS_PROGRAM)
    code, said = _ask(command)
    if code:
        return [missing("tools", f"{TOOLS_PROGRAM} failed: {said.strip()[-200:]}", "install LiteProbe again, whole")]
    paths: dict[str, str | None] = json.loads(said)
    return [tool(name, path) for name, path in paths.items()]


def tool(name: str, path: str | None) -> Check:
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
