# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Packages the folders of this repository under one name, ``liteprobe``, without their tests; firmware/ goes along as data."""

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

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

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Return package, name and file of each module that isn't a test."""
        modules = super().find_package_modules(package, package_dir)
        return [module for module in modules if module[1] != "conftest" and not module[1].startswith("test_")]


setup(
    packages=[package for folder in FOLDERS for package in packages_of(folder)] + ["liteprobe.firmware"],
    package_dir={f"liteprobe.{folder}": folder for folder in [*FOLDERS, "firmware"]},
    package_data={"": SOURCES, "liteprobe.host.report": ["templates/*"], "liteprobe.firmware": ["**/*"]},
    exclude_package_data={"liteprobe.firmware": ["tests/**/*", "tests/*"]},
    scripts=["tools/liteprobe"],
    cmdclass={"build_py": BuildWithoutTests},
)
