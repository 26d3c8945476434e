# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Joins the two sides of a test port: its transmit program, and what measures and records on it."""

from liteprobe.cores.formats import TransmitState
from liteprobe.host.base.defaults import FILLS
from liteprobe.host.base.errors import NetworkError, ProbeError, UsageError
from liteprobe.host.clock.timebase import Timebase
from liteprobe.host.device.registers import Registers
from liteprobe.host.run.receive import ReceivePort
from liteprobe.host.traffic.headers import header_words
from liteprobe.host.traffic.train import Schedule, TrainProgram

TRANSMIT_COUNTERS = (
    "sent",
    "late",
    "first_late",
    "underruns",
    "management_sent",
    "management_held",
    "management_dropped",
    "disturbed",
)
HALT_TIMEOUT_NS = 20_000_000


def known_state(word: int) -> TransmitState:
    """Return what a port does; raises NetworkError where it does what no port can do."""
    try:
        return TransmitState(word)
    except ValueError:
        raise NetworkError(
            f"a port is said to be in a state that there isn't ({word}): the network changes what is read, or what runs is "
            "not the gateware of this register map; see to the network, or load the bitstream again"
        ) from None


class TransmitPort:
    """The transmit side of a port."""

    def __init__(self, registers: Registers, number: int) -> None:
        self._registers = registers
        self._prefix = f"port{number}_tx_"
        self._header = f"port{number}_header"

    def load(self, program: TrainProgram, schedule: Schedule, is_attached: bool = True) -> None:
        """Write a program and its headers; nothing is sent before ``arm`` and a start.

        An attached program ends when this host lets go of the probe, or is gone.
        """
        headers = program.headers
        settings = {"checksum_enable": int(headers.is_ipv6), "checksum_seed": headers.checksum_seed(program.length)}
        if self._prefix + "checksum_enable" not in self._registers.names:
            self._check_plain(program)
            settings = {}
        words = header_words(headers.octets(program.length, program.stream_id))
        self._registers.write_memory(self._header, 0, words)
        self._write_many(
            length=program.length,
            count=program.count,
            repeats=program.repeats,
            interval_ticks=schedule.interval_ticks,
            interval_fraction=schedule.interval_fraction,
            gap_ticks=schedule.gap_ticks,
            start_time=program.start_time_ns or 0,
            timed=int(program.start_time_ns is not None),
            fill=FILLS[program.fill],
            payload_offset=headers.payload_offset,
            attached=int(is_attached),
            **settings,
        )

    @staticmethod
    def _check_plain(program: TrainProgram) -> None:
        """Raise UsageError for what a port that mends no checksum, and draws no PRBS, can't send."""
        if program.headers.is_ipv6:
            raise UsageError("this probe sends no trains over IPv6, whose UDP has a checksum: give IPv4 addresses")
        if program.fill == "prbs":
            raise UsageError("this probe has no fill 'prbs': give zero or counting")

    def attach(self, start_ns: int | None = None, is_attached: bool = True) -> None:
        """Let the program that comes end when this host lets go of the probe, or is gone, where it is attached.

        Once started it begins with its first SFD at ``start_ns``; None: at once.
        """
        self._write_many(attached=int(is_attached), timed=int(start_ns is not None), start_time=start_ns or 0)

    def clear(self) -> None:
        """Set the counters to zero."""
        self._registers.write(self._prefix + "clear", 1)

    def arm(self) -> None:
        """Take the program, and build its first frames."""
        self._registers.write(self._prefix + "arm", 1)

    def stop(self) -> None:
        """End the program after the present frame."""
        self._registers.write(self._prefix + "stop", 1)

    def look(self) -> tuple[TransmitState, int, bool]:
        """Return what the port does, the frames of its program whose SFD has left, and whether its link is up."""
        # One datagram, read in this order: what is idle has counted its last frame.
        values = self._registers.read_many(self._prefix + name for name in ("state", "sent", "link_up"))
        state, sent, is_up = values.values()
        return known_state(state), sent, bool(is_up)

    @property
    def is_link_up(self) -> bool:
        """Whether the PHY has a link, as far as the board can tell."""
        return bool(self._registers.read(self._prefix + "link_up"))

    def counters(self) -> dict[str, int]:
        """Return all counters, by register name."""
        values = self._registers.read_many(self._prefix + name for name in TRANSMIT_COUNTERS)
        return {name.removeprefix(self._prefix): value for name, value in values.items()}

    def _write_many(self, **values: int) -> None:
        self._registers.write_many({self._prefix + name: value for name, value in values.items()})


class ProbePort:
    """A test port."""

    def __init__(self, number: int, transmit: TransmitPort, receive: ReceivePort) -> None:
        self.number = number
        self.transmit = transmit
        self.receive = receive
        self.sends_for: object | None = None  # The run of this host that was the last to load its program.
        self.measures_for: object | None = None  # That was the last to set its meters.

    def halt(self, timebase: Timebase) -> bool:
        """Stop what the port sends, wait until its last frame has left, and return whether it sent anything.

        Raises ProbeError when it goes on.
        """
        if self.transmit.look()[0] == TransmitState.IDLE:
            return False
        self.transmit.stop()
        deadline_ns = timebase.now_ns + HALT_TIMEOUT_NS
        while self.transmit.look()[0] != TransmitState.IDLE:
            if timebase.now_ns > deadline_ns:
                raise ProbeError(f"port {self.number} doesn't stop sending: reset the probe, and report this")
        return True

    def free(self, timebase: Timebase) -> tuple[str, ...]:
        """Halt what somebody left running, detached, and return a note of it."""
        return (f"port {self.number}: what was left running there was stopped",) if self.halt(timebase) else ()
