# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A station at the end of a simulated probe's line that is a function in Python: it is given frames, and says what it sends.

Simulated time stands still meanwhile. ``python -m liteprobe.sim.drivers.peers.peer`` is the reflector of ``sim://reflector``.
"""

import hashlib
import json
import random
import shutil
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType

from liteprobe.cores.formats import FCS, TICK_NS
from liteprobe.host.base.defaults import DESTINATION_IP, DESTINATION_IPV6, DESTINATION_MAC
from liteprobe.host.base.folders import build_folder
from liteprobe.host.device.link.sim_stations import REFLECTOR_PORTS, ReflectorAsked, Station, StationsLink
from liteprobe.host.traffic.headers import mac_octets
from liteprobe.sim.models.reflector import Host, Reflector

SOURCE = Path(__file__).resolve().parent / "peer.c"
FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-Wl,-Bsymbolic", "-Wall", "-Wextra", "-Werror")
HEAD = struct.Struct("=QQ")
COUNT = struct.Struct("=Q")
PREAMBLE = 8  # Octets up to the SFD, which is the last of them.
IFG = 12
#: Takes a frame without FCS and the time of its SFD (ns of the simulation); returns frames, each with the time of its SFD.
Answer = Callable[[bytes, int], list[tuple[int, bytes]]]


def library() -> Path:
    """Return the station's library, compiled anew when its source has changed; RuntimeError where that can't be done."""
    if not shutil.which("gcc"):
        raise RuntimeError("no gcc: install the package gcc")
    state = " ".join(FLAGS).encode() + SOURCE.read_bytes()
    found = build_folder() / "stations" / f"peer-{hashlib.sha256(state).hexdigest()[:16]}.so"
    if not found.exists():
        found.parent.mkdir(parents=True, exist_ok=True)
        part = found.with_suffix(f".part{threading.get_native_id()}")
        done = subprocess.run(
            ["gcc", *FLAGS, "-o", str(part), str(SOURCE)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"gcc failed:\n{done.stderr[-3000:]}")
        part.replace(found)
    return found


class Peer:
    """A station that answers by a function; a context manager.

    >>> with Peer(lambda frame, sfd_ns: []) as peer:
    ...     peer.frames
    0
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.frames = 0
        self.error: BaseException | None = None  # What ended it.
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def tcp_port(self) -> int:
        """Return where it listens."""
        return int(self._listener.getsockname()[1])

    def put(self, link: StationsLink, port: int) -> None:
        """Sit down at the end of a port's line; one peer sits at one."""
        link.put_station(port, Station(library(), 1, (1,), False, self.tcp_port), 0)

    def __enter__(self) -> "Peer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)
        if self.error is not None and error is None:
            raise self.error

    def _serve(self) -> None:
        try:
            with suppress(OSError):
                connection = self._listener.accept()[0]
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with connection, connection.makefile("rb") as file:
                    while len(head := file.read(HEAD.size)) == HEAD.size:
                        end_ns, length = HEAD.unpack(head)
                        connection.sendall(self._answered(end_ns, file.read(length)))
        except BaseException as error:  # Raised again where the peer is left.
            self.error = error

    def _answered(self, end_ns: int, frame: bytes) -> bytes:
        """Return what is sent back; ``end_ns``: when the last octet of the FCS came."""
        self.frames += 1
        sent = self._answer(frame, end_ns - TICK_NS * (len(frame) + FCS))
        # A frame that a station hands over in a tick has its first octet a tick later, its SFD in the eighth one.
        out = [HEAD.pack(max(sfd_ns - TICK_NS * PREAMBLE, end_ns), len(one)) + one for sfd_ns, one in sent]
        return COUNT.pack(len(out)) + b"".join(out)


class ReflectingHost:
    """A host with a reflector whose answers leave ``hold_ns`` after the last octet came, or when its line is free.

    Parameters
    ----------
    offset_ns : of its clock, ahead of the simulation's time.
    loss, seed : share of the frames of UDP that are lost on their way to it, and on the way back; drawn one by one.
    """

    def __init__(self, host: Host, hold_ns: int = 1000, offset_ns: int = 0, loss: float = 0.0, seed: int = 1) -> None:
        self.host, self._hold_ns, self._offset_ns, self._loss = host, hold_ns, offset_ns, loss
        self._chance = random.Random(seed)
        self._free_ns = 0
        #: ``sent``, ``delivered``: what it sent, with the time of the SFD (ns of the simulation); what of it was not lost.
        self.sent: list[tuple[int, bytes]] = []
        self.delivered: list[tuple[int, bytes]] = []
        self.lost_there = self.lost_back = 0

    def __call__(self, frame: bytes, sfd_ns: int) -> list[tuple[int, bytes]]:
        """Answer a frame."""
        if self._loss and self._chance.random() < self._loss:
            self.lost_there += 1
            return []
        end_ns = sfd_ns + TICK_NS * (len(frame) + FCS)
        ready_ns = -(-(end_ns + max(self._hold_ns, TICK_NS * PREAMBLE)) // TICK_NS) * TICK_NS
        out_ns = max(ready_ns, self._free_ns)
        found = self.host.take(frame, sfd_ns + self._offset_ns, lambda _: out_ns + self._offset_ns)
        sent = []
        for one in found:
            sent.append((out_ns, one))
            self._free_ns = out_ns + TICK_NS * (len(one) + FCS + IFG + PREAMBLE)
            out_ns = self._free_ns
        self.sent += sent
        if sent and self._loss and self._chance.random() < self._loss:
            self.lost_back += len(sent)
            return []
        self.delivered += sent
        return sent


def simulated(asked: ReflectorAsked) -> ReflectingHost:
    """Return the reflector of ``sim://reflector``, with the addresses that streams have as their usual destination."""
    reflector = Reflector(is_stateful=asked.is_stateful, is_ptp=asked.is_ptp)
    host = Host((DESTINATION_IP, DESTINATION_IPV6), mac_octets(DESTINATION_MAC), reflector=reflector)
    return ReflectingHost(host, asked.hold_ns, loss=asked.loss, seed=asked.seed)


def main() -> int:
    """Serve the reflector that the argument describes at each port: print the library and where it listens; ends with its input."""
    asked = ReflectorAsked(**json.loads(sys.argv[1]))
    try:
        path = library()
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    with ExitStack() as stack:
        peers = [stack.enter_context(Peer(simulated(asked))) for _ in range(REFLECTOR_PORTS)]
        print(path, *(peer.tcp_port for peer in peers), flush=True)
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
