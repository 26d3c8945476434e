# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Builds the bitstreams that people load, and packs them with maps, reports, licences and sums: a folder, and a wheel of it.

Usage: ``./run release [--as-built FOLDER] [BOARD[:PRESET]...]``; without a name all of ``soc/build/flagships.py``. What was
built of the same sources with the same tools is taken from ``build/``. With ``--as-built`` nothing is built: what a build has
left in a folder below FOLDER is taken, of whatever sources it is, and what is not there is named.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from liteprobe.boards import OTHER_NAMES, board
from liteprobe.cores.formats import map_hash
from liteprobe.host.base import programs
from liteprobe.host.device.bitstreams import BIT, FORMAT, INDEX, MAP, MODULE, PACKAGE, REPORT
from liteprobe.soc.build.arguments import left_out
from liteprobe.soc.build.flagships import Flagship, chosen, out_folder
from liteprobe.soc.build.load import LoadTarget, idcode_in

ROOT = Path(__file__).resolve().parent.parent
BUILD = "liteprobe.soc.build.bitstream"
SUMS, LICENCES = "SHA256SUMS", "licences"
#: What is in the gateware, and the package that its licence comes with; "": this repository.
SOURCES = {
    "liteprobe": "",
    "migen": "migen",
    "litex": "litex",
    "liteeth": "liteeth",
    "litedram": "litedram",
    "vexriscv": "pythondata-cpu-vexriscv",
}
SETUP = """\
from setuptools import setup

setup(
    name={package!r},
    version={version!r},
    description="Bitstreams of LiteProbe, with their register maps: 'liteprobe load BOARD PRESET'",
    long_description={readme!r},
    license="BSD-2-Clause AND MIT",
    license_files=["{module}/{licences}/*"],
    python_requires=">=3.11",
    install_requires=["liteprobe=={version}", "openfpgaloader>=1,<2"],
    packages=[{module!r}],
    package_data={{{module!r}: ["**/*"]}},
)
"""


class ReleaseError(Exception):
    """Nothing was released; the message says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, and make folder and wheel; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="./run release", description="Build and pack the bitstreams that people load."
    )
    parser.add_argument("names", nargs="*", metavar="BOARD[:PRESET]", help="what to release (default: all flagships)")
    parser.add_argument(
        "--as-built", type=Path, metavar="FOLDER", action="append", help="build nothing: take what lies below FOLDER"
    )
    parser.add_argument(
        "--out", type=Path, default=ROOT / "build" / "release", help="where it goes (default: build/release)"
    )
    args = parser.parse_args(arguments)
    try:
        flagships = chosen(args.names)
        folders = dict(taken(args.as_built, flagships) if args.as_built else built(flagships))
        folder, wheel = make(folders, args.out.absolute())
    except (ReleaseError, ValueError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    print(f"{folder}: {len(folders)} bitstreams\n{wheel}")
    missing = [str(one) for one in flagships if one not in folders]
    if missing:
        print(f"release: not in it: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing else 0


def built(flagships: Sequence[Flagship]) -> Iterator[tuple[Flagship, Path]]:
    """Yield each flagship that could be built, with the folder of its build; what was built already is taken as it is."""
    for number, one in enumerate(flagships, 1):
        print(f"release: {number} of {len(flagships)}: {one}", file=sys.stderr, flush=True)
        out = ROOT / out_folder(one.board, one.preset)
        # A process each: names, and so the netlist, depend on what Migen has elaborated before.
        if programs.run(programs.module(BUILD, *one.arguments, "--out", str(out)), keep_output=True).code == 0:
            yield one, out


def taken(folders: Sequence[Path], flagships: Sequence[Flagship]) -> Iterator[tuple[Flagship, Path]]:
    """Yield each flagship of which a build lies in one of ``folders``, or below it, with its folder."""
    reports: dict[Path, dict[str, Any]] = {}
    found = [path for folder in folders for path in folder.rglob(REPORT)]
    for path in sorted(found, key=lambda path: len(path.parts)):
        if all((path.parent / name).is_file() for name in (BIT, MAP)):
            reports.setdefault(path.parent, json.loads(path.read_text(encoding="utf-8")))
    for one in flagships:
        wanted = config_facts(one)
        for place, report in reports.items():
            if report.get("board") == one.board and {key: report["config"].get(key) for key in wanted} == wanted:
                yield one, place
                break


def config_facts(one: Flagship) -> dict[str, Any]:
    """Return what tells the configuration of a flagship from others of its preset; memories and addresses don't."""
    config = one.config
    names = ("preset", "ports", "link", "with_cpu", "with_discipline", "with_streams", "with_replay", "directions")
    return {name: getattr(config, name) for name in names}


def make(folders: dict[Flagship, Path], out: Path) -> tuple[Path, Path]:
    """Make the folder of a release, in the place of one that is there, and the wheel beside it; return both.

    Raises ReleaseError where there is nothing to release, or a build is not what it says it is.
    """
    if not folders:
        raise ReleaseError("there is nothing to release: no flagship was built, or none lies there")
    if out.exists() and not (out / INDEX).is_file():
        raise ReleaseError(f"{out} is there, and no release: name another folder, --out FOLDER")
    with TemporaryDirectory(prefix="liteprobe-release-") as place:
        here = Path(place) / MODULE
        entries = [packed(one, build, here) for one, build in folders.items()]
        version = metadata.version("liteprobe")
        index = {"format": FORMAT, "liteprobe": version, "bitstreams": entries}
        (here / INDEX).write_text(json.dumps(index, indent=4) + "\n", encoding="utf-8")
        write_licences(here / LICENCES)
        (here / "README.md").write_text(readme(version, entries), encoding="utf-8")
        (here / "__init__.py").write_text('"""Bitstreams of LiteProbe, and their register maps."""\n', encoding="utf-8")
        write_sums(here)
        wheel = wheel_of(here, version)
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(here, out)
        dist = ROOT / "build" / "dist" if out == ROOT / "build" / "release" else out.parent
        dist.mkdir(parents=True, exist_ok=True)
        return out, Path(shutil.move(wheel, dist / wheel.name))


def packed(one: Flagship, build: Path, here: Path) -> dict[str, Any]:
    """Copy what a build has made, checked against its report; return its entry of the index."""
    report: dict[str, Any] = json.loads((build / REPORT).read_text(encoding="utf-8"))
    octets, target = (build / BIT).read_bytes(), LoadTarget.of(board(one.board))
    if hashlib.sha256(octets).hexdigest() != report["bitstream_sha256"]:
        raise ReleaseError(f"{build / BIT} is not the one of its report: build {one} again")
    if idcode_in(octets) is None:
        raise ReleaseError(f"{build / BIT} is not a bitstream of an ECP5: build {one} again")
    if map_hash(json.loads((build / MAP).read_text(encoding="utf-8"))) != report["map_hash"]:
        raise ReleaseError(f"{build / MAP} is not the map of its report: build {one} again")
    folder = here / one.board / one.preset
    folder.mkdir(parents=True)
    for name in (BIT, MAP, "csr.csv"):
        shutil.copy(build / name, folder)
    report |= {"target": target.facts, "options": one.options}
    (folder / REPORT).write_text(json.dumps(report, indent=4) + "\n", encoding="utf-8")
    return {
        "board": one.board,
        "also": [name for name, other in OTHER_NAMES.items() if other == one.board],
        "preset": one.preset,
        "what": words(one),
        "device": target.device,
        "cable": target.cable,
        "map_hash": report["map_hash"],
        "files": {
            path.name: {"bytes": path.stat().st_size, "sha256": digest(path)} for path in sorted(folder.iterdir())
        },
    }


def words(one: Flagship) -> str:
    """Return what is built in, in words."""
    config = one.config
    links = {"own": "management on a port of its own", "shared": "management in band"}
    without = [f"no {what}" for what in left_out(config)]
    ways = [f"{config.directions} direction{'s' * (config.directions > 1)}"] if config.emulates else []
    said = [f"{config.ports} port{'s' * (config.ports > 1)}", *ways, links[config.link], config.ip_address, *without]
    return ", ".join(said)


def write_licences(folder: Path) -> None:
    """Write the licence of each source of the gateware; ReleaseError where a package came without."""
    folder.mkdir()
    for name, package in SOURCES.items():
        if not package:
            shutil.copy(ROOT / "LICENSE", folder / name)
            continue
        files = [path for path in metadata.files(package) or [] if path.name.startswith("LICENSE")]
        # A core's own licence lies beside its sources, not beside those of the package that brings it.
        best = sorted(files, key=lambda path: ("dist-info" in str(path), len(path.parts)))[:1]
        if not best:
            raise ReleaseError(f"the package {package} came without its licence: install it again")
        shutil.copy(str(best[0].locate()), folder / name)


def write_sums(here: Path) -> None:
    """Write the SHA-256 of each file, as ``sha256sum --check`` reads them."""
    files = sorted(path for path in here.rglob("*") if path.is_file())
    lines = [f"{digest(path)}  {path.relative_to(here).as_posix()}\n" for path in files]
    (here / SUMS).write_text("".join(lines), encoding="utf-8")


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def readme(version: str, entries: Sequence[dict[str, Any]]) -> str:
    """Return what stands beside the bitstreams for people."""
    rows = "".join(f"| {one['board']} | {one['preset']} | {one['what']} |\n" for one in entries)
    return f"""# Bitstreams of LiteProbe {version}

`liteprobe load BOARD PRESET` loads one in seconds; `--flash` writes it into the board's flash. Without pip set
LITEPROBE_BITSTREAMS to this folder, or load `BOARD/PRESET/{BIT}` by openFPGALoader and give `--map BOARD/PRESET/{MAP}`.
`sha256sum --check {SUMS}` checks all files. `{LICENCES}/` has the licences of what is in the gateware.

| board | preset | what |
|---|---|---|
{rows}"""


def wheel_of(here: Path, version: str) -> Path:
    """Make the wheel of a folder beside it, and return it; ReleaseError where it can't be made."""
    source = here.parent
    text = (here / "README.md").read_text(encoding="utf-8")
    fields = {"package": PACKAGE, "version": version, "module": MODULE, "licences": LICENCES, "readme": text}
    (source / "setup.py").write_text(SETUP.format(**fields), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(source / "made"),
    ]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"the wheel can't be made: {done.stderr[-1000:]}")
    return next((source / "made").glob("*.whl"))


if __name__ == "__main__":
    sys.exit(main())
