# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes and reads the CURVE keys of agents and of those who talk to them, and asks for them wherever others could listen."""

import ipaddress
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import zmq
import zmq.auth

from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.text import read_text
from liteprobe.host.base.validate import validated

ADDRESS = re.compile(r"tcp://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):([0-9]{1,5})")
PUBLIC_SUFFIX, SECRET_SUFFIX = ".key", ".key_secret"
HOW = "make them with 'liteprobe agent keys NAME'"


@validated
@dataclass(frozen=True)
class Keys:
    """A pair of CURVE keys, each 40 characters of Z85."""

    public: bytes
    secret: bytes

    @classmethod
    def read(cls, path: Path | str) -> "Keys":
        """Return the keys of a file that `make_keys` wrote (NAME.key_secret).

        Raises UsageError when it isn't there, has no secret key, or others may read it.
        """
        public, secret = _certificate(Path(path))
        if secret is None:
            raise UsageError(f"{path} has no secret key: give NAME{SECRET_SUFFIX}, not NAME{PUBLIC_SUFFIX}")
        if os.stat(path).st_mode & 0o077:
            raise UsageError(f"others may read the secret key {path}: chmod 600 {path}")
        return cls(public, secret)


@validated
def public_key(path: Path | str) -> bytes:
    """Return the public key of a file (NAME.key); raises UsageError."""
    return _certificate(Path(path))[0]


def public_keys(paths: Sequence[Path | str]) -> list[bytes]:
    """Return the public keys of files, and of all NAME.key in folders; raises UsageError."""
    found: list[bytes] = []
    for path in map(Path, paths):
        files = sorted(path.glob(f"*{PUBLIC_SUFFIX}")) if path.is_dir() else [path]
        found += [public_key(file) for file in files]
        if not files:
            raise UsageError(f"the folder {path} has no NAME{PUBLIC_SUFFIX}: put the public keys of controllers there")
    return found


@validated
def make_keys(name: Path | str) -> tuple[Path, Path]:
    """Make a pair of keys: NAME.key, for others, and NAME.key_secret, which only its owner may read.

    Raises UsageError when one of the files is there already.
    """
    public, secret = zmq.curve_keypair()
    paths = Path(f"{name}{PUBLIC_SUFFIX}"), Path(f"{name}{SECRET_SUFFIX}")
    if taken := [str(path) for path in paths if path.exists()]:
        raise UsageError(f"there is {' and '.join(taken)} already: give another name, or remove it first")
    both = f'curve\n    public-key = "{public.decode()}"\n'
    for path, mode, text in (
        (paths[1], 0o600, f'{both}    secret-key = "{secret.decode()}"\n'),
        (paths[0], 0o644, both),
    ):
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="ascii") as file:
            file.write(text)
    return paths


def check_address(address: str, has_keys: bool, is_agent: bool) -> tuple[str, int]:
    """Return host and port of an address.

    Raises UsageError when it isn't one, or names more than this machine, and there are no keys.
    """
    match = ADDRESS.fullmatch(address)
    if not match or int(match[2]) > 65535:
        raise UsageError(f"'{address}' is not an address of an agent: write it like tcp://127.0.0.1:5580")
    if not has_keys and not is_loopback(match[1]):
        what = "keys=Keys.read(...) and clients=[...]" if is_agent else "keys=Keys.read(...) and agent_key=..."
        option = "--keys and --clients, or " if is_agent else ""
        raise UsageError(f"{address} can be reached by others, so both ends need keys: {HOW}, and give {option}{what}")
    return match[1], int(match[2])


def is_loopback(host: str) -> bool:
    """Return whether an address leads to this machine alone; a name never does, but for ``localhost``."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _certificate(path: Path) -> tuple[bytes, bytes | None]:
    read_text(path, f"a file of keys: {HOW}")
    try:
        public, secret = zmq.auth.load_certificate(path)
    except (OSError, ValueError, IndexError) as error:
        raise UsageError(f"{path} is not a file of keys ({error}): {HOW}") from None
    for key in (public, secret):
        if key is not None and len(key) != 40:
            raise UsageError(f"{path} has a key of {len(key)} characters, not 40: {HOW}")
    return public, secret
