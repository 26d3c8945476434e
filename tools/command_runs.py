# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Commands of README and the pages whose output no page shows, and what they print; "..." stands for any text.

A test runs them in a folder of their own, beside the files of `prepare`. Those of SLOW build a simulated probe that no other
test of the host builds, or simulate for long: they wait for ``--full``.
"""

import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FRAMES = 200
#: Files of the reader's own in the pages' commands: captures of small UDP datagrams.
CAPTURES = ("a.pcap", "office.pcap", "office.pcapng", "uplink.pcap", "east.pcap", "west.pcap")

QUICK = {
    "./run help": """
        usage: ./run COMMAND [ARGUMENTS]
        ...
        Each command does the set-up that it needs, once. Its log: build/setup.log
    """,
    "liteprobe --version": "liteprobe ...",
    "./run liteprobe send docs/examples/imix.yaml --check": """
         stream         id   port       length   frames    frames/s      Mb/s   of the line
         ──────────────────────────────────────────────────────────────────────────────────
         internet mix    1      0   60 to 1514   no end   196,420.8   600.000          60 %
         voice           2      0          214   no end    10,000.0    19.040       1.904 %
        port 0: 61.904 % of the line, where all are sent at once
    """,
    "liteprobe agent keys router": """
        router.key: for the other end
        router.key_secret: keep it on this machine, it is readable by you alone
    """,
    "liteprobe agent keys bench": """
        bench.key: for the other end
        bench.key_secret: keep it on this machine, it is readable by you alone
    """,
}

SLOW: dict[str, str] = {}

#: What has to be run before, in the same folder.
NEEDED: dict[str, tuple[str, ...]] = {}


def datagram(number: int) -> bytes:
    """Return an Ethernet frame with a DNS query's ports; its octets count with ``number``."""
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 46, number, 0, 64, 17, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
    words = sum(struct.unpack("!10H", head))
    check = ~((words & 0xFFFF) + (words >> 16)) & 0xFFFF
    udp = struct.pack("!HHHH", 40000, 53, 26, 0) + bytes([number & 0xFF]) * 18
    return bytes.fromhex("020000000002020000000001 0800") + head[:10] + struct.pack("!H", check) + head[12:] + udp


def prepare(folder: Path) -> None:
    """Write the files that the pages take for granted into ``folder``: captures, and the documents that the pages show."""
    records = b"".join(struct.pack("<IIII", 0, 2000 * n, 60, 60) + datagram(n) for n in range(FRAMES))
    for name in CAPTURES:  # A pcap with nanoseconds, whatever the name says.
        (folder / name).write_bytes(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1) + records)
    found = re.search(
        r"^```yaml\n(.*?)^```$", (ROOT / "docs/sets.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert found
    for name in ("line.yaml", "sets.yaml"):
        (folder / name).write_text(found[1], encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "examples", folder / "docs" / "examples")


def printed(command: str, folder: Path) -> str:
    """Run a command in ``folder``, after those that it needs; return what it printed. ./run itself runs as it is."""
    for before in NEEDED.get(command, ()):
        run(before, folder)
    return run(command, folder)


def run(command: str, folder: Path) -> str:
    """Run one command in ``folder``; return what it printed."""
    words = shlex.split(command)
    if words[:2] == ["./run", "help"]:
        done = subprocess.run([ROOT / "run", *words[1:]], cwd=folder, check=True, capture_output=True, text=True)
    else:
        arguments = words[1:] if words[0] == "liteprobe" else words[2:]
        environment = {**os.environ, "LITEPROBE_BUILD": str(ROOT / "build"), "NO_COLOR": "1"}
        line = [sys.executable, "-m", "liteprobe.host.cli", *arguments]
        done = subprocess.run(line, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout
