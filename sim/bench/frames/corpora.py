# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Captures of real traffic, from the source packages of tcpdump and nDPI; fetched by apt, never committed."""

import struct
import subprocess
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

REPOSITORY = Path(__file__).resolve().parents[3]
FOLDER = REPOSITORY / "build" / "corpora"

#: Source packages of the distribution, and where each holds its captures.
PACKAGES = {"tcpdump": "tests/", "ndpi": "tests/"}
SUFFIXES = (".pcap", ".pcapng", ".cap")

LINK_ETHERNET = 1


def sources() -> list[str]:
    """Return source lists, one for each binary list that this machine installs from."""
    command = ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)", "Created-By: Packages"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [f"deb-src {line}" for line in sorted(set(listed.splitlines()))]


def fetch(package: str) -> Path:
    """Return the folder of a package's captures; downloads and unpacks them if need be."""
    folder = FOLDER / package
    if folder.is_dir():
        return folder
    FOLDER.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=FOLDER) as temporary:
        root = Path(temporary)
        for name in ("lists/partial", "cache/archives/partial", "new"):
            (root / name).mkdir(parents=True)
        (root / "sources.list").write_text("\n".join(sources()) + "\n", encoding="utf-8")
        # Lists of our own: the machine's stay as they are, and no root is needed.
        options = {
            "Dir::Etc::SourceList": root / "sources.list",
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::State::Lists": root / "lists",
            "Dir::Cache": root / "cache",
            "APT::Sandbox::User": "",
            "Acquire::Retries": 3,
        }
        apt = ["apt-get", "-q", *(word for key, value in options.items() for word in ("-o", f"{key}={value}"))]
        for words in (["update"], ["source", "--download-only", "--tar-only", package]):
            run = subprocess.run([*apt, *words], cwd=root, capture_output=True, text=True, check=False)
            if run.returncode:
                raise RuntimeError(f"{' '.join([*apt, *words])} failed:\n{run.stderr[-1000:]}")
        (archive,) = (path for path in root.glob(f"{package}_*.orig.tar.*") if path.suffix != ".asc")
        unpack(archive, root / "new", PACKAGES[package])
        (root / "new").rename(folder)
    return folder


def unpack(archive: Path, folder: Path, part: str) -> None:
    """Take the captures below ``part`` out of an archive, flat, each named by its path."""
    with tarfile.open(archive) as tar:
        for member in tar:
            path = member.name.partition("/")[2]
            if member.isfile() and path.startswith(part) and path.endswith(SUFFIXES):
                file = tar.extractfile(member)
                assert file is not None
                (folder / path.removeprefix(part).replace("/", "-")).write_bytes(file.read())


@cache
def captures() -> tuple[Path, ...]:
    """Return every capture of all packages."""
    return tuple(path for package in PACKAGES for path in sorted(fetch(package).iterdir()))


def packets(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield the link type, the length on the wire and the octets of each packet of a pcap or pcapng file.

    Stops where the file is damaged: some of the corpora are so on purpose.
    """
    data = path.read_bytes()
    if data[:4] == b"\x0a\x0d\x0d\x0a":
        yield from blocks(data)
        return
    for order in "<>":
        if data[:4] in (struct.pack(f"{order}I", 0xA1B2C3D4), struct.pack(f"{order}I", 0xA1B23C4D)):
            yield from records(data, order)


def records(data: bytes, order: str) -> Iterator[tuple[int, int, bytes]]:
    """Yield the packets of a pcap file."""
    link = struct.unpack_from(f"{order}I", data, 20)[0] & 0xFFFF if len(data) >= 24 else 0
    at = 24
    while at + 16 <= len(data):
        kept, length = struct.unpack_from(f"{order}II", data, at + 8)
        if kept > 1 << 18 or at + 16 + kept > len(data):
            return
        yield link, length, data[at + 16 : at + 16 + kept]
        at += 16 + kept


def blocks(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the packets of a pcapng file."""
    order, links, at = "<", list[int](), 0
    while at + 12 <= len(data):
        if data[at : at + 4] == b"\x0a\x0d\x0d\x0a":
            order = "<" if data[at + 8 : at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            links = []
        kind, size = struct.unpack_from(f"{order}II", data, at)
        if size < 12 or at + size > len(data):
            return
        if kind == 1:
            links.append(struct.unpack_from(f"{order}H", data, at + 8)[0])
        elif kind == 6:
            interface, _, _, kept, length = struct.unpack_from(f"{order}5I", data, at + 8)
            yield links[interface], length, data[at + 28 : at + 28 + kept]
        elif kind == 3:
            length = struct.unpack_from(f"{order}I", data, at + 8)[0]
            yield links[0], length, data[at + 12 : at + 12 + min(length, size - 16)]
        at += size + size % 4
