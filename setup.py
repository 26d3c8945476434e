# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Packages the folders of this repository under one name, ``liteprobe``, without their tests; firmware/ goes along as data.

Where LITEPROBE_BUILT names a folder of simulated probes (`tools/make_wheel.py`), they go along, too, and the wheel is for this
platform alone.
"""

import os
import platform
import shutil
from pathlib import Path

from setuptools import Distribution, find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

BUILT = os.environ.get("LITEPROBE_BUILT")
FOLDERS = ["cores", "soc", "boards", "host", "sim"]
SOURCES = [
    "py.typed",
    "*.c",
    "*.h",
    "*.cpp",
    "*.v",
    "*.sv",
    "*.yaml",
    "arch/*.h",
    "c/*.c",
    "c/*.h",
]  # That are compiled or read where they lie.


def packages_of(folder: str) -> list[str]:
    """Return the dotted names of ``folder`` and of all packages below it."""
    return [f"liteprobe.{folder}"] + [f"liteprobe.{folder}.{name}" for name in find_packages(folder)]


class BuildWithoutTests(build_py):
    """Leaves out the tests that stand beside what they test."""

    def run(self) -> None:
        """Copy anew: setuptools keeps what an earlier build has left, files that are gone included."""
        if not getattr(self, "editable_mode", False):
            shutil.rmtree(Path(self.build_lib) / "liteprobe", ignore_errors=True)
        super().run()
        if BUILT:
            shutil.copytree(BUILT, Path(self.build_lib) / "liteprobe" / "built")

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Return package, name and file of each module that isn't a test."""
        modules = super().find_package_modules(package, package_dir)
        return [module for module in modules if module[1] != "conftest" and not module[1].startswith("test_")]


class OfPlatform(Distribution):
    """Takes what is built in for what a compiler has made: it goes where that goes."""

    def has_ext_modules(self) -> bool:
        """Return whether anything is built in."""
        return bool(BUILT)


class PlatformWheel(bdist_wheel):
    """Names the platform of what is built in: any Python, this processor, this C library or a later one."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return Python, ABI and platform."""
        if not BUILT:
            return super().get_tag()
        library, version = platform.libc_ver()
        system = f"manylinux_{version.replace('.', '_')}" if library == "glibc" else "linux"
        return "py3", "none", f"{system}_{platform.machine()}"


setup(
    packages=[package for folder in FOLDERS for package in packages_of(folder)] + ["liteprobe.firmware"],
    package_dir={f"liteprobe.{folder}": folder for folder in [*FOLDERS, "firmware"]},
    package_data={
        "": SOURCES,
        "liteprobe.host.report": ["templates/*"],
        "liteprobe.host.serve": ["page/*"],
        "liteprobe.firmware": ["**/*"],
    },
    exclude_package_data={"liteprobe.firmware": ["tests/**/*", "tests/*"]},
    scripts=["tools/liteprobe"],
    distclass=OfPlatform,
    cmdclass={"build_py": BuildWithoutTests, "bdist_wheel": PlatformWheel},
)
