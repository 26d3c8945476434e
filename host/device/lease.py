# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Takes a probe for this host, alone and for as long as it lives."""

import contextlib
import getpass
import math
import os
import secrets
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np

from liteprobe.cores.formats import LEASE_NAME_WORDS, LEASE_UNIT_BITS
from liteprobe.host.base.errors import BusyError, LeaseLostError, ProbeError
from liteprobe.host.device.registers import Registers

OWNER = "probe_lease_owner"
NAME = "probe_lease_name"
SKIPPED = "probe_writes_skipped"
BEAT_S = 0.25  # Eight may get lost in a row before the probe takes the host for gone.
LOOK_S = 0.1
LEFT_MOST = 255
CLAIM_TRIES = 20
NAMELESS = "a host without a name"
NAME_OCTETS = 4 * LEASE_NAME_WORDS


class HostLease:
    """Holds the right to write to a probe: taken at the first write, held while this process lives, given back at the end.

    ``steal``: take the probe from whoever has it; what that host sends from it is stopped.
    """

    def __init__(self, registers: Registers, steal: bool = False) -> None:
        self._registers = registers
        self._link = registers.link
        self._claim = registers.register("probe_lease_claim").address
        self._steal = registers.register("probe_lease_steal").address
        self.steals = self._may_steal = steal
        #: The host that had the probe before, as it named itself. What this host leaves running goes by its own name.
        self.before, self.leaves_running = "", False
        self._token = 1 + secrets.randbelow(0xFFFF)  # Of this host, whose claim an interrupt may cut short.
        self._has_claimed = False
        self._word = 0
        self._skipped = 0
        self._stop_beats: Callable[[], None] = lambda: None

    @property
    def is_held(self) -> bool:
        """Whether this process has the probe, as far as it knows."""
        return bool(self._word)

    def holder(self) -> str | None:
        """Return who has the probe and since when; None: nobody has."""
        if not self._registers.read(OWNER) >> 16:
            return None
        return self._name() or NAMELESS

    def ensure(self) -> None:
        """Take the probe, unless this process has it.

        Raises BusyError when another host has it; the message says who, and since when.
        """
        if self._word:
            return
        word = self._take()
        self._registers.prove()
        self._link.lease_lost = self._lost
        self._link.hold(word & 0xFFFF)
        self.before = self.before or self._name()
        self._put_name(name_of_this_process())
        self._skipped = self._registers.read(SKIPPED)
        self._stop_beats()
        self._stop_beats = self._link.beat(lambda: self._link.post(self._claim, [word]), BEAT_S)
        self._word = word  # Last: what an interrupt cut short is done again.

    def left_out(self) -> int:
        """Return how many requests of other hosts had their writes left out since the last call, or since this host has the probe.

        On a network that doubles this host's own requests, the probe leaves out some of these: so a few are not counted.
        Raises NetworkError where the network is found to change datagrams.
        """
        before, self._skipped = self._skipped, self._registers.read(SKIPPED)
        count = (self._skipped - before) & 0xFFFF
        self._registers.prove()
        return count if count > 4 * self._link.repeats else 0

    def release(self) -> None:
        """Give the probe back; what it sends for this process ends, unless it was detached."""
        if not self._has_claimed:
            return
        self._stop_beats()
        word = self._word or self._registers.read(OWNER)
        if self._word and not self.leaves_running:
            self._put_name(self.before)  # What still runs was left by that one.
        self._link.hold(0)
        if word >> 16 == self._token:
            self._link.claim(self._registers.register("probe_lease_release").address, word, word & 0xFFFF)
        self._word, self._has_claimed = 0, False

    # # #

    def _name(self) -> str:
        register = self._registers.register(NAME)
        words = self._link.read(register.address, register.words)
        return np.asarray(words, dtype=">u4").tobytes().rstrip(b"\0").decode(errors="replace")

    def _put_name(self, name: str) -> None:
        self._link.write(self._registers.register(NAME).address, name_words(name))

    def _take(self) -> int:
        """Claim the probe, and return what ``owner`` reads when it is taken."""
        for _ in range(CLAIM_TRIES):
            owner = self._registers.read(OWNER)
            if self._has_claimed and owner >> 16 == self._token:
                return owner
            if owner >> 16 and not self._may_steal:
                self._wait_for_end()
                owner = self._registers.read(OWNER)
            number = owner & 0xFFFF
            self._has_claimed = True
            self._link.claim(self._steal if self._may_steal else self._claim, self._token << 16 | number, number)
            owner = self._registers.read(OWNER)
            if owner >> 16 == self._token:
                self._may_steal = False  # Once: whoever takes it from this host is not fought.
                return owner
        raise BusyError("other hosts take the probe again and again: use it from one host at a time")

    def _wait_for_end(self) -> None:
        """Wait until the lease of a host that is gone has ended; raises BusyError when the host is there."""
        frequency = self._registers.constant("config_clock_frequency")
        unit_s = 2**LEASE_UNIT_BITS / frequency
        timeout_s = self._registers.read("probe_lease_timeout") * unit_s
        left = LEFT_MOST
        for _ in range(math.ceil(timeout_s / LOOK_S + 5)):
            if not self._registers.read(OWNER) >> 16:
                return
            before, left = left, self._registers.read("probe_lease_left")
            if left > before:
                break  # A host that is gone would let it fall.
            self._link.wait(LOOK_S)
        raise BusyError(
            f"the probe is in use by {self.holder() or 'another host'}: wait until it is done, "
            f"or take the probe from it with --steal"
        )

    def _lost(self) -> ProbeError:
        """Return what to say when the probe answers under another lease, and let go."""
        self._stop_beats()
        self._word, self._has_claimed = 0, False
        self._link.hold(0)
        holder = None
        with contextlib.suppress(ProbeError):
            holder = self.holder()
        who = f"it is in use by {holder} now" if holder else "it was reset, or heard nothing of this host for too long"
        return LeaseLostError(f"the probe was taken from this host ({who}): what was measured is void, run again")


def name_of_this_process() -> str:
    """Return who this is, for others to read: user, host, process, time."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"user {os.getuid()}"
    since = datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    tail = f" (pid {os.getpid()}) since {since}"
    who = f"{user}@{socket.gethostname()}".encode()[: NAME_OCTETS - len(tail)].decode(errors="ignore")
    return who + tail


def name_words(name: str) -> list[int]:
    """Return a name as words of the register ``name``; what doesn't fit 64 octets of UTF-8 is cut."""
    octets = name.encode()[:NAME_OCTETS].decode(errors="ignore").encode().ljust(NAME_OCTETS, b"\0")
    return [int(word) for word in np.frombuffer(octets, dtype=">u4")]
