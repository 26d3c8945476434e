# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Says what a link to a probe can do, whatever it runs over."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.base.errors import ProbeError, UsageError

if TYPE_CHECKING:
    from liteprobe.host.device.link.sim_stations import Stations

Words = NDArray[np.uint32]


class Link(ABC):
    """Reads and writes 32-bit words of a probe's bus.

    Every read of the probe's map may be repeated without harm, so links repeat what gets lost.
    """

    lease: int = 0  # Number of the lease under which this host writes; 0: none.
    repeats: int = 0  # Requests that went, or came back, more than once.
    #: Gives the error to raise when the probe answers under another lease.
    lease_lost: Callable[[], ProbeError] = staticmethod(
        lambda: ProbeError("the probe is under another lease: run again")
    )
    #: How long to wait for a frame after the last one was due (probe time): T_max of RFC 7680.
    arrival_timeout_s: float = 1.0
    look_ns: float = 5_000_000.0  # Time from one look at the probe to the next, with a margin (probe time, ns).
    is_in_band: bool = True  # Whether the link may share a test port, so that a train may hold its replies.
    oscillator_ppm: float = 50.0  # Bound of the rate error of the probe's oscillator while nothing disciplines it.
    #: Nominal period of the PPS that the probe gets, where the link knows it (simulation).
    pps_period_ns: int | None = None
    silence_s: float = 3.0  # How long the probe may say nothing while it is streamed to (time of this host).
    #: Datagrams of what is streamed that may be on their way at once; 0: as many as the probe has room for.
    replay_flight: int = 0
    #: For so long at least an answer to them is waited for before they are sent again (time of this host).
    replay_timeout_s: float = 0.002
    stations: "Stations | None" = None  # Who sits at the ports of a simulated emulator, and begins with its network.
    has_cables: bool = False  # Whether `set_link` can pull the cable of a port: in a simulation.
    map_file: Path | None = None  # The register map of the probe, where the link knows it.

    def read(self, address: int, count: int = 1) -> Words:
        """Return ``count`` words from ``address`` (bytes, a multiple of 4) upwards."""
        return self.read_scattered(range(address, address + 4 * count, 4))

    @abstractmethod
    def read_scattered(self, addresses: Sequence[int]) -> Words:
        """Return the words at ``addresses``, in their order."""

    @abstractmethod
    def write(self, address: int, words: Sequence[int]) -> Words:
        """Write ``words`` from ``address`` upwards, once, and return what a read of them gives afterwards."""

    def write_scattered(self, words: Mapping[int, int]) -> bool:
        """Write words by address, as close together as can be; return whether each was done once, in this order."""
        for address, word in words.items():
            self.write(address, [word])
        return True

    @abstractmethod
    def close(self) -> None:
        """Let go of the link; closing twice is harmless."""

    def post(self, address: int, words: Sequence[int]) -> None:
        """Write ``words`` from ``address`` upwards, and don't wait until they are there. Any thread may call it."""
        self.write(address, words)

    def prove(self, address: int) -> None:
        """Raise NetworkError where what lies between host and probe is found to change what is read at ``address``, a constant."""

    def claim(self, address: int, word: int, lease: int) -> None:
        """Write a claim of the lease that comes after ``lease``, as often as it takes."""
        self.write(address, [word])

    def hold(self, lease: int) -> None:
        """Write under ``lease`` from now on; 0: under none."""
        self.lease = lease

    def beat(self, act: Callable[[], None], period_s: float) -> Callable[[], None]:
        """Call ``act`` every ``period_s`` of the probe's time, until what is returned is called."""
        ended = threading.Event()

        def run() -> None:
            while not ended.wait(period_s):
                try:
                    act()
                except ProbeError:
                    return  # The next use of the link raises it.

        thread = threading.Thread(target=run, name="lease", daemon=True)
        thread.start()

        def stop() -> None:
            ended.set()
            if thread is not threading.current_thread():
                thread.join()

        return stop

    def wait(self, seconds: float) -> None:
        """Let ``seconds`` of the probe's time pass."""
        time.sleep(seconds)

    def idle(self) -> None:
        """Say that nothing is left to do until the probe does something: in a simulation, time passes only when it is asked."""

    def set_link(self, port: int, is_up: bool) -> None:
        """Plug (True) or pull (False) the cable of a port. Raises UsageError where there is none that a host can pull."""
        raise UsageError("a host can't pull the cable of a probe that isn't simulated: do it by hand")

    def now_s(self) -> float:
        """Return the time that durations are measured in (s): that of the simulation, or of this host."""
        return time.monotonic()

    def replay_address(self) -> tuple[str, int] | None:
        """Return the address and the UDP port that take what a probe replays; None: this way has none."""
        return None

    def replay_device(self) -> str | None:
        """Return the first device of LitePCIe's driver, by whose memory a probe gets what it replays; None: there is none."""
        return None

    def expect_silence(self, seconds: float) -> None:
        """Say that the probe may not answer for ``seconds`` (probe time), because a train holds its port; 0 ends it."""

    def receive_port(self, transmit: int, ports: int) -> int:
        """Return the port that frames sent on port ``transmit`` of ``ports`` arrive at."""
        return transmit ^ 1 if transmit ^ 1 < ports else transmit
