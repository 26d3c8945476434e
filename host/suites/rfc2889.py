# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures the address table of a switch as RFC 2889 asks, as far as two ports show it: its capacity, and its learning rate.

RFC 2889 looks for flooded frames at a third port. With two, frames go to addresses that are at the port which sends them: a switch
that knows an address there filters its frame (IEEE 802.1Q, 8.6), one that does not floods it to the other port.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from liteprobe.cores.formats import FCS, OVERHEAD, TICK_NS
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.validate import validated
from liteprobe.host.suites.search import narrowed
from liteprobe.host.suites.trials import Offer, Trial
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.lengths import Fixed
from liteprobe.host.traffic.modifiers import Increment
from liteprobe.host.traffic.stream import Stream

#: Tests of RFC 2889 that two ports can't do, and why.
NEEDS_MORE = {
    "fully-meshed": "(5.1) needs three ports or more; with two it is throughput with --both-ways",
    "partially-meshed": "(5.2 to 5.4) needs three ports or more",
    "congestion-control": "(5.5) needs four ports",
    "forward-pressure": "(5.6) needs a gap that is shorter than the standard's, which no port of a probe sends",
}
CHECKED = 8  # Addresses that are taught, and must be forgotten, before all else.
SETTLED = 2_000  # Octets of the line between teaching and testing, at least: twice the time that one address takes.
LENGTH = 64 - FCS
LINE_FPS = 10**9 / TICK_NS / (LENGTH + OVERHEAD)
#: Addresses that are taught: three octets, then the number of the trial and that of the address.
OURS = 0x02_4C_50 << 24
PER_TRIAL = 1 << 18


@validated
@dataclass(frozen=True)
class AddressSettings:
    """Says how the address table is tested."""

    ageing_s: float = 300.0  # After which it has forgotten an address (IEEE 802.1Q, table 8-6).
    most: int = 16_384  # Addresses.
    fps: float = 1_000.0  # Frames a second at which they are taught for the capacity, and tested.
    #: Addresses that the learning rate is measured with; at most the capacity, where that was measured.
    learned: int = 64

    def __post_init__(self) -> None:
        for name, least, most in (
            ("ageing_s", 0, 1e6),
            ("most", 2, PER_TRIAL),
            ("fps", 1, 1.4e6),
            ("learned", 2, PER_TRIAL),
        ):
            if not least <= getattr(self, name) <= most:
                raise UsageError(f"{name} {getattr(self, name):g} is out of range: give {least:g} to {most:g}")
        if 2 * self.most / self.fps > self.ageing_s > 0:
            raise UsageError(
                f"{self.most} addresses at {self.fps:g} frames/s take {2 * self.most / self.fps:g} s to teach and to ask, and are "
                f"forgotten after {self.ageing_s:g} s: teach them faster, or fewer"
            )


class AddressTests:
    """Tests of the address table behind the port that sends.

    Parameters
    ----------
    settings : AddressSettings
    way : (int, int)
        Port at which the addresses are, and the other one, where flooded frames come.
    headers : Headers
        Of the frames but for their MAC addresses; the destination is an address that is not at the port.
    run : callable
        Runs an offer.
    """

    def __init__(
        self, settings: AddressSettings, way: tuple[int, int], headers: Headers, run: Callable[[Offer], Trial]
    ) -> None:
        self._settings, self._way, self._headers, self._run = settings, way, headers, run
        self._trials = 0

    def floods(self) -> str:
        """Return why the table can't be seen through two ports; empty: frames to addresses that were forgotten are flooded."""
        taught = self._next()
        self._run(self._offer("teach", (self._teach(taught, CHECKED, self._share),)))
        found = self._run(self._offer("forgotten", (self._ask(taught, CHECKED, self._next(), 0),)))
        if not (missing := found.lost):
            return ""
        return (
            f"{missing} of {CHECKED} frames to addresses that the device should have forgotten did not come: it floods none, or "
            f"forgets after more than the {self._settings.ageing_s:g} s of --ageing"
        )

    def knows_all(self, name: str, count: int, share: float) -> bool:
        """Return whether the device knows so many addresses when they were taught at a share of the line."""
        taught = self._next()
        teach = self._teach(taught, count, share)
        took = ceil(count * (LENGTH + OVERHEAD) / Fraction(str(share))) + SETTLED
        ask = self._ask(taught, count, taught, took * TICK_NS)
        return self._run(self._offer(name, (teach, ask))).streams[1].received == 0

    def capacity(self) -> tuple[int, int | None]:
        """Return the greatest number of addresses that it knows all of, and the next.

        None: it knows as many as were asked for.
        """
        most = self._settings.most

        def passes(count: int) -> bool:
            return self.knows_all("address-capacity", count, self._share)

        if passes(most):
            return most, None
        lower, upper = 1, most
        while upper - lower > 1:
            middle = (lower + upper) // 2
            lower, upper = (middle, upper) if passes(middle) else (lower, middle)
        return lower, upper

    def learning_rate(self, count: int, width: float) -> tuple[float | None, float | None]:
        """Return the greatest rate at which it learned all of so many addresses, and the next that it did not (frames a second).

        None: the first at no rate that was tried, the second at the line's.
        """
        lower, upper = narrowed(lambda share: self.knows_all("learning-rate", count, share), width, self._share / 2)
        return (None if lower is None else lower * LINE_FPS), (None if upper is None else upper * LINE_FPS)

    # # #

    def _next(self) -> int:
        """Return the first address of a new range: so an address of an earlier trial, still in the table, changes nothing."""
        self._trials += 1
        return OURS + self._trials % 60 * PER_TRIAL

    def _offer(self, name: str, streams: tuple[Stream, ...]) -> Offer:
        return Offer(
            name, streams, dict([self._way]), is_sustained=False, pause_s=self._settings.ageing_s, filtered=("ask",)
        )

    @property
    def _share(self) -> float:
        """Share of the line at which addresses are taught and asked for."""
        return min(round(self._settings.fps / LINE_FPS, 9), 1.0)

    def _teach(self, first: int, count: int, share: float) -> Stream:
        """Return frames from so many addresses, one each."""
        made = Stream("teach", 1, Fixed(LENGTH), Interval(share=Fraction(str(share))), count, port=self._way[0])
        headers = replace(self._headers, source_mac=_mac(first))
        return replace(made, headers=headers, modifiers=(Increment("mac.source", count=count),))

    def _ask(self, first: int, count: int, source: int, start_ns: int) -> Stream:
        """Return frames to so many addresses, one each, from one."""
        made = Stream("ask", 2, Fixed(LENGTH), Interval(share=Fraction(str(self._share))), count, port=self._way[0])
        headers = replace(self._headers, source_mac=_mac(source), destination_mac=_mac(first))
        return replace(made, headers=headers, start_ns=start_ns, modifiers=(Increment("mac.destination", count=count),))


def _mac(number: int) -> str:
    return number.to_bytes(6).hex(":")
