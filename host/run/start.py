# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What every run does, whatever it sends: see that links are up, wait until ports are ready, start, wait for the last frame."""

from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from liteprobe.cores.formats import TransmitState
from liteprobe.host.errors import ProbeError
from liteprobe.host.run.port import Port
from liteprobe.host.run.routes import Devices

READY_TIMEOUT_NS = 20_000_000
START_MARGIN_NS = 1_000_000  # From the last look at the clock to the start: a few datagrams.
SETTLE_PARTS = 100  # Of the arrival timeout: a duplicate follows its original sooner than that.


def check_links(ends: Iterable[tuple[Devices, Port, str]]) -> None:
    """Raise ProbeError unless each port, given with its probe and its name in messages, has a link that can be measured."""
    for probe, port, name in ends:
        if not port.transmit.is_link_up:
            raise ProbeError(f"the link of {name} {probe.links.trouble(port.number)}")
        probe.links.check(port.number, port.receive.latch_line)


def lose_link(port: int, sent: int) -> NoReturn:
    """Raise ProbeError: the link of a port went down while streams ran, of which ``sent`` frames had left."""
    raise ProbeError(
        f"the link of port {port} went down while streams ran ({sent} frames had been sent): plug in its cable, and send again"
    )


def await_ready(sender: Devices, ports: Sequence[Port], what: str) -> int:
    """Wait until all ports have their first frames, and return the time of the last look at the clock (ns)."""
    now_ns = sender.timebase.now_ns
    deadline_ns = now_ns + READY_TIMEOUT_NS
    while any(port.transmit.look()[0] != TransmitState.READY for port in ports):
        now_ns = sender.timebase.now_ns
        if now_ns > deadline_ns:
            raise ProbeError(f"the probe doesn't get {what} ready: reset it, and report this with the command")
    return now_ns


def start_together(sender: Devices, ports: Sequence[Port], silence_s: float) -> None:
    """Start what ports have ready in one tick; in band, the probe may then be silent for ``silence_s``."""
    sender.link.expect_silence(silence_s)
    sender.registers.write("probe_start", sum(1 << port.number for port in ports))


def settle(missing: Callable[[], int], wait: Callable[[float], None], timeout_s: float) -> None:
    """Wait until no frame is missing, or none has come for ``timeout_s``: a slow queue empties slowly.

    Parameters
    ----------
    missing : callable
        Looks, and returns how many frames that were sent have not come.
    wait : callable
        Lets so many seconds of the probe's time pass.
    """
    step_s = settle_s = timeout_s / SETTLE_PARTS
    silence_s = 0.0
    left = missing()
    while left > 0 and silence_s < timeout_s:
        wait(step_s)
        before, left = left, missing()
        silence_s = 0.0 if left < before else silence_s + step_s
        step_s = settle_s if left < before else min(2 * step_s, max(timeout_s - silence_s, settle_s))
    wait(settle_s)
