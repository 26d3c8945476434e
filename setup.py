# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Packages the folders of this repository under one name, ``liteprobe``."""

from setuptools import find_packages, setup

FOLDERS = ["cores", "soc", "boards", "host", "sim"]


def packages_of(folder: str) -> list[str]:
    """Return the dotted names of ``folder`` and of all packages below it."""
    return [f"liteprobe.{folder}"] + [f"liteprobe.{folder}.{name}" for name in find_packages(folder)]


setup(
    packages=[package for folder in FOLDERS for package in packages_of(folder)],
    package_dir={f"liteprobe.{folder}": folder for folder in FOLDERS},
    package_data={
        "liteprobe.sim.system": ["*.cpp", "*.h"],
        "liteprobe.host.report": ["templates/*"],
        "liteprobe.host.traffic.presets": ["*.yaml"],
    },
    scripts=["tools/liteprobe"],
)
