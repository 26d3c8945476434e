# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Packages of the distribution, fetched by apt into a folder of build/ and never installed: no root, and never committed."""

import subprocess
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

Apt = Callable[[Sequence[str]], None]

def lists(kind: str) -> list[str]:
    """Return source lists of a kind (deb, deb-src), one for each binary list that this machine installs from."""
    command = ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)", "Created-By: Packages"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [f"{kind} {line}" for line in sorted(set(listed.splitlines()))]

@contextmanager
def fetching(folder: Path, kind: str) -> Iterator[tuple[Path, Apt]]:
    """Give a temporary folder below ``folder``, and apt-get that works in it with lists of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder) as temporary:
        root = Path(temporary)
        for name in ("lists/partial", "cache/archives/partial", "new"):
            (root / name).mkdir(parents=True)
        (root / "sources.list").write_text("\n".join(lists(kind)) + "\n", encoding="utf-8")
        options = {
            "Dir::Etc::SourceList": root / "sources.list",
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::State::Lists": root / "lists",
            "Dir::Cache": root / "cache",
            "APT::Sandbox::User": "",
            "Acquire::Retries": 3,
        }
        command = ["apt-get", "-q", *(word for key, value in options.items() for word in ("-o", f"{key}={value}"))]

        def apt(words: Sequence[str]) -> None:
            run = subprocess.run([*command, *words], cwd=root, capture_output=True, text=True, check=False)
            if run.returncode:
                raise RuntimeError(f"{' '.join([*command, *words])} failed:\n{run.stderr[-1000:]}")

        apt(["update"])
        yield root, apt

def source(package: str, folder: Path, take: Callable[[tarfile.TarFile, Path], None]) -> Path:
    """Return ``folder``, which holds what ``take`` takes of a source package's archive; fetches it if need be.

    Raises RuntimeError with what apt says.
    """
    if folder.is_dir():
        return folder
    with fetching(folder.parent, "deb-src") as (root, apt):
        apt(["source", "--download-only", "--tar-only", package])
        (archive,) = (path for path in root.glob(f"{package}_*.orig.tar.*") if path.suffix != ".asc")
        with tarfile.open(archive) as tar:
            take(tar, root / "new")
        (root / "new").rename(folder)
    return folder

def binary(package: str, folder: Path) -> Path:
    """Return ``folder``, which holds a package's files as a root folder would; fetches and unpacks it if need be.

    Raises RuntimeError with what apt or dpkg-deb say.
    """
    if folder.is_dir():
        return folder
    with fetching(folder.parent, "deb") as (root, apt):
        apt(["download", package])
        (archive,) = root.glob(f"{package}_*.deb")
        run = subprocess.run(["dpkg-deb", "-x", archive, root / "new"], capture_output=True, text=True, check=False)
        if run.returncode:
            raise RuntimeError(f"dpkg-deb -x {archive.name} failed:\n{run.stderr[-1000:]}")
        (root / "new").rename(folder)
    return folder
