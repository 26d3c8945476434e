# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Starts LiteX's server before a simulated probe, and gives its clients."""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from litex.tools.litex_client import RemoteClient

from liteprobe.host import Probe
from liteprobe.host.device.link.etherbone import EtherboneLink

SERVER = "liteprobe.sim.system.litex_server"


class Server:
    """A simulated probe behind LiteX's server, in a process of its own."""

    def __init__(self, folder: Path, options: str = "") -> None:
        url = f"sim://loopback?build={folder}{options}"
        command = [sys.executable, "-u", "-m", SERVER, url, "--bind-port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        cli, info, server = (self.process.stdout.readline() for _ in range(3))
        self.csv = Path(cli.split()[2])
        self.udp_port = int(info.split("127.0.0.1:")[1].split()[0])
        assert server.startswith(f"[CommUDP] ip: 127.0.0.1 / port: {self.udp_port} / tcp port: 0")
        self.tcp_port = listening(self.process.pid)

    def client(self) -> RemoteClient:
        client = RemoteClient(port=self.tcp_port, csr_csv=str(self.csv))
        client.open()
        client.socket.settimeout(60)  # LiteX's own 2 s are short for 255 words on a busy machine.
        return client

    def probe(self) -> Probe:
        """Return the same probe to a host of ours."""
        return Probe(EtherboneLink("127.0.0.1", self.udp_port), self.csv.with_suffix(".json"))


def listening(pid: int) -> int:
    """Return the TCP port that a process listens at."""
    sockets = set()
    for _ in range(600):
        with contextlib.suppress(OSError):
            sockets = {link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir()}
        for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                return int(fields[1].split(":")[1], 16)
        time.sleep(0.05)
    raise AssertionError("LiteX's server listens at no port")


@contextlib.contextmanager
def served(folder: Path, options: str = "") -> Iterator[Server]:
    """Start a server before the probe in ``folder``, and end both."""
    server = Server(folder, options)
    try:
        yield server
    finally:
        server.process.send_signal(signal.SIGINT)
        server.process.communicate()
