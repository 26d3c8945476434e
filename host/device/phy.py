# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads the PHYs of a probe over MDIO: what they are, what link they have, and whether they were set up."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from liteprobe.cores import formats
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.device.link.base import Link
from liteprobe.host.device.registers import Registers

COMMAND = "phy_command"
DELAY = "phy_delay"
LOOKS = 20_000  # Before MDIO is taken for stuck: an access takes 26 us, the probe's own at its start 0.2 s.
LOOK_S = 25e-6
STATUS_BITS = 8  # Of a port, in ``phy_status``.
SPEEDS = (10, 100, 1000)
REALTEK = 0x001C
LINK_UP = 1 << 2  # Of formats.BMSR.
POWER_DOWN = 1 << 11  # Of formats.BMCR (IEEE 802.3, 22.2.4.1.5): no carrier, and registers answer all the same.
NONE = 0xFFFF  # What the wire reads with nobody on it.


@dataclass(frozen=True)
class PhyState:
    """Describes a PHY as it does itself."""

    address: int  # On MDIO.
    name: str  # Its kind; of an unknown one the identifier.
    is_known: bool  # Whether the probe could set it up.
    is_up: bool
    speed: int  # Mb/s that it negotiated; 0 without a link.
    is_eee_offered: bool  # It offers Energy Efficient Ethernet, so its link may sleep between frames.
    is_eee_asked: bool  # The other side offers it.

    @property
    def eee(self) -> str:
        if not self.is_eee_offered:
            return "off"
        return "on: the link sleeps between frames" if self.is_eee_asked else "offered, but not by the other side"

    @property
    def link(self) -> str:
        return f"{self.speed} Mb/s" if self.is_up else "down"


class Phys:
    """Reads and writes the registers of PHYs.

    ``registers``: of a probe that has ``phy_command``.
    ``wait``: lets so many seconds of the probe's time pass.
    """

    def __init__(self, registers: Registers, wait: Callable[[float], None]) -> None:
        self._registers = registers
        self._wait = wait
        self._is_idle = False  # Until the probe's own accesses at its start are over a command is not taken.

    @staticmethod
    def are_there(registers: Registers) -> bool:
        """Whether a probe reaches its PHYs at all."""
        return COMMAND in registers.names

    def read(self, address: int, register: int) -> int | None:
        """Return a register of clause 22; None when no PHY answers.

        Raises ProbeError when the probe does not end the access.
        """
        answer = self._do(formats.mdio_command(address, register))
        return None if answer & formats.MdioAnswer.SILENT else answer & 0xFFFF

    def write(self, address: int, register: int, value: int) -> None:
        self._do(formats.mdio_command(address, register, value))

    def read_mmd(self, address: int, device: int, register: int) -> int | None:
        """Return a register of clause 45."""
        (_, first), (_, second), (_, third), _ = formats.mmd_write(device, register, 0)
        for number, value in ((formats.MMD_CONTROL, first), (formats.MMD_DATA, second), (formats.MMD_CONTROL, third)):
            self.write(address, number, value)
        return self.read(address, formats.MMD_DATA)

    def found(self) -> dict[int, int]:
        """Return the identifier of each PHY that answers, by address, in the order of the ports."""
        found = {}
        for address in range(formats.MDIO_ADDRESSES):
            high = self.read(address, formats.PHYID1)
            if high is not None and high not in (0, NONE):
                found[address] = high << 16 | (self.read(address, formats.PHYID2) or 0)
        # All Realtek's answer at address 0, too.
        if len(found) > 1 and found.get(0, 0) >> 16 == REALTEK and list(found.values()).count(found[0]) > 2:
            del found[0]
        return found

    def state(self, address: int, identifier: int) -> PhyState:
        """Return what the PHY at an address says of itself."""
        self.read(address, formats.BMSR)  # Bit 2 keeps a link that was lost since it was last read.
        is_up = bool((self.read(address, formats.BMSR) or 0) & LINK_UP)
        kind = formats.kind_of(identifier)
        return PhyState(
            address=address,
            name=kind.name if kind else f"unknown, id {identifier:08x}",
            is_known=kind is not None,
            is_up=is_up,
            speed=self._speed(address) if is_up else 0,
            is_eee_offered=bool(
                (self.read_mmd(address, formats.NEGOTIATION, formats.EEE_ADVERTISEMENT) or 0) & formats.EEE_BITS
            ),
            is_eee_asked=bool(
                (self.read_mmd(address, formats.NEGOTIATION, formats.EEE_PARTNER) or 0) & formats.EEE_BITS
            ),
        )

    def states(self) -> list[PhyState]:
        """Return what each PHY says of itself, in the order of the ports."""
        return [self.state(address, identifier) for address, identifier in self.found().items()]

    def is_powered(self, address: int) -> bool:
        """Whether the power of a PHY is on, as its register says."""
        return not (self.read(address, formats.BMCR) or 0) & POWER_DOWN

    def power(self, address: int, is_on: bool) -> None:
        """Take the power of a PHY, and so its link; or give it back, and let it negotiate anew, which takes seconds."""
        bits = formats.RESTART if is_on else (self.read(address, formats.BMCR) or 0) | POWER_DOWN
        self.write(address, formats.BMCR, bits)

    def in_band(self, port: int) -> formats.PhyStatus:
        """Return the last in-band status of a port."""
        return formats.PhyStatus(self._registers.read("phy_status") >> STATUS_BITS * port & 0x1F)

    def _speed(self, address: int) -> int:
        """Return the speed that both sides can, by what the other side said (IEEE 802.3, 28.2.4.1.4 and 40.5.1.1)."""
        if (self.read(address, formats.GIGABIT_PARTNER) or 0) >> 10 & 3:
            return 1000
        return 100 if (self.read(address, formats.PARTNER) or 0) >> 7 & 3 else 10

    def _do(self, command: int) -> int:
        """Do an access; return what ``phy_answer`` says after it."""
        if not self._is_idle:
            self._end()
            self._is_idle = True
        self._registers.write(COMMAND, command)
        return self._end()

    def _end(self) -> int:
        for _ in range(LOOKS):
            answer = self._registers.read("phy_answer")
            if not answer & formats.MdioAnswer.BUSY:
                return answer
            self._wait(LOOK_S)
        raise ProbeError("MDIO does not end an access: reset the probe, or power it off and on")


def speed_in_band(status: formats.PhyStatus) -> int:
    """Return the speed of an in-band status (Mb/s)."""
    code = (status & (formats.PhyStatus.SPEED_LOW | formats.PhyStatus.SPEED_HIGH)) // formats.PhyStatus.SPEED_LOW
    return SPEEDS[min(code, 2)]


class Links:
    """Tells whether the links of a probe's ports can be measured, else why not."""

    def __init__(self, registers: Registers, port_count: int, wait: Callable[[float], None]) -> None:
        self._registers = registers
        self._port_count = port_count
        self._phys = Phys(registers, wait) if Phys.are_there(registers) else None

    @cached_property
    def states(self) -> list[PhyState]:
        """State of each PHY when it was first asked; none on a probe that doesn't reach its PHYs."""
        return self._phys.states() if self._phys else []

    def facts(self) -> dict[str, int | float | str | bool]:
        """Return what each PHY said of itself: three rows a port."""
        facts: dict[str, int | float | str | bool] = {}
        for port, phy in enumerate(self.states):
            name = f"{phy.name}, MDIO {phy.address}"
            facts |= {f"port{port}_phy": name, f"port{port}_link": phy.link, f"port{port}_eee": phy.eee}
        return facts

    def trouble(self, port: int) -> str:
        """Say what is wrong with the link of ``port``, which does not count as up, and what to do."""
        if not self.is_powered(port):
            return "was taken down by a network ('link: down') whose host is gone: liteprobe stop brings it up again"
        status = self._phys.in_band(port) if self._phys else formats.PhyStatus(0)
        if not status & formats.PhyStatus.LINK:
            return "is down: plug in its cable, and check the other end"
        half = "" if status & formats.PhyStatus.FULL_DUPLEX else ", half duplex"
        return (
            f"is up at {speed_in_band(status)} Mb/s{half}, and a probe measures at 1 Gb/s full duplex alone: check all "
            f"four pairs of the cable, and what the other end is set to"
        )

    def is_powered(self, port: int) -> bool:
        """Whether the PHY of a port has power, as far as that is known."""
        return self._phys is None or port >= len(self.states) or self._phys.is_powered(self.states[port].address)

    def restore(self, port: int) -> bool:
        """Give the PHY of a port its power back; return whether it had none."""
        if self._phys is None or self.is_powered(port):
            return False
        self._phys.power(self.states[port].address, True)
        return True

    def check(self, port: int, latch: Callable[[], tuple[int, int]]) -> None:
        """Look twice at a port whose PHY has not said yet, in band, what link it has: such a link counts as up.

        Raises ProbeError when no receive clock comes from the PHY, by its count (``latch``), or when it has no link.
        """
        if self._phys is None or self._phys.in_band(port) & formats.PhyStatus.HEARD:
            return
        if latch()[0] == latch()[0]:
            raise ProbeError(
                f"the PHY of port {port} gives no receive clock: power the board off and on; if that does not help, the "
                f"bitstream may be that of another revision of the board"
            )
        states = self._phys.states()
        if port < len(states) and not states[port].is_up:
            raise ProbeError(f"the link of port {port} {self.trouble(port)}")

    def notes(self) -> tuple[str, ...]:
        """Return what a result must say of the PHYs.

        Raises ProbeError when a link sleeps between frames: what follows a pause would be late.
        """
        if self._phys is None:
            return ()
        notes = []
        if len(self.states) < self._port_count:
            notes.append(
                f"{len(self.states)} of {self._port_count} PHYs answer on MDIO: whether Energy Efficient Ethernet is off is "
                f"not known, and with it the first frame after a pause can be 17 us late"
            )
        for port, state in enumerate(self.states):
            if state.is_eee_offered and state.is_eee_asked:
                raise ProbeError(
                    f"the link of port {port} sleeps between frames (Energy Efficient Ethernet): reset the probe, which turns "
                    f"it off, or turn it off at the other end"
                )
            if not state.is_known:
                notes.append(
                    f"the PHY of port {port} is {state.name}: only Energy Efficient Ethernet was set, so its link may count "
                    f"as up when it is not, and frames above 1518 octets may be cut"
                )
        return tuple(notes)


class Carriers:
    """Takes the links of a probe's ports down, and up again: by their PHYs, or by the cables of a simulation.

    Raises UsageError where a probe has neither.
    """

    def __init__(self, registers: Registers, link: Link, port_count: int) -> None:
        self._registers, self._link = registers, link
        self._addresses: list[int] = []
        if Phys.are_there(registers):
            self._addresses = list(Phys(registers, link.wait).found())
            why = f"{len(self._addresses)} of {port_count} PHYs answer on MDIO"
        else:
            why = "it doesn't reach its PHYs (no MDIO)"
        if len(self._addresses) < port_count and not link.has_cables:
            raise UsageError(
                f"this probe can't take a link down: {why}; give 'discard: true' in place of 'link: down': it drops all frames "
                "while the link stays up"
            )

    def set(self, port: int, is_up: bool) -> None:
        """Take the link of a port down, or up: it comes once both sides have negotiated."""
        if port < len(
            self._addresses
        ):  # An access that was interrupted may still go on: none is begun before it has ended.
            Phys(self._registers, self._link.wait).power(self._addresses[port], is_up)
        else:
            self._link.set_link(port, is_up)


class ReceiveDelay:
    """Sets the delay of a port's received data; the probe can't tell what it is, only change it."""

    def __init__(self, registers: Registers, port: int) -> None:
        self._registers = registers
        self._shift = formats.DELAY_BITS * port

    def default(self) -> None:
        """Go back to the delay of the build."""
        self._put(formats.DELAY_LOAD)
        self._put(0)

    def move(self, taps: int) -> None:
        """Move by so many taps, up or down; it stops at either end."""
        down = formats.DELAY_DOWN if taps < 0 else 0
        for _ in range(abs(taps)):
            self._put(formats.DELAY_MOVE | down)
            self._put(down)

    def set(self, taps: int) -> None:
        """Set it, whatever it was."""
        self.move(-formats.DELAY_TAPS)
        self.move(taps)

    def _put(self, bits: int) -> None:
        self._registers.write(DELAY, bits << self._shift)
