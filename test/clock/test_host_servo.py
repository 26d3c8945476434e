# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The firmware's servo on the host: the same answers as its own test program gives, and how a probe is steered."""

import ctypes
import re

import pytest

from liteprobe.host.base.errors import UsageError
from liteprobe.host.clock.servo import LIBRARY, Servo, ServoConfig, ServoEdge, ServoOutput, ServoStamp
from liteprobe.sim.drivers.clock import virtual_time
from liteprobe.sim.drivers.clock.clock_runs import KINDS, OFFSET_PPM
from liteprobe.sim.models.clock.oscillator import Oscillator, OscillatorSpec
from liteprobe.sim.models.clock.receiver import pulses

START_NS = virtual_time.START_NS


def test_the_servo_is_the_one_of_the_firmware() -> None:
    """The fields of its structures are where ctypes takes them to be: rate and increments come out as in C alone."""
    seed, count = 9, 40
    print("seed", seed)
    kind = KINDS["timing_qerr"]
    received = pulses(kind.receiver, count, seed)
    table = virtual_time.events(
        Oscillator(OscillatorSpec(offset_ppm=OFFSET_PPM), count + 2, seed), received, count, seed=seed
    )
    wanted = virtual_time.run_servo(table, kind.config).edges
    servo = Servo(10**9)
    found, increments = [], []
    for event in table[table["kind"] == virtual_time.EDGE]:
        ticks = int(event["ticks"]) - 1  # The event has the end of the tick, an edge is stamped by its beginning.
        # What is estimated is the oscillator: a clock that nobody steers gives the same.
        stamp = ServoStamp(now=START_NS + 8 * ticks, fraction=0, ticks=ticks)
        out = servo.edge(
            ServoEdge(
                stamp=stamp,
                latency=int(event["latency"]) + 1,
                early_ps=int(event["fraction"]),
                has_qerr=True,
                qerr_ps=int(event["qerr_ps"]),
            )
        )
        found.append((out.rate, out.drift, out.rejected, out.is_used))
        increments.append(out.increment / 2**43)
    names = ("rate", "drift", "rejected", "is_used")
    assert found == [tuple(int(answer[name]) for name in names) for answer in wanted]
    assert len(found) == count and found[-1][0] == pytest.approx(256e3 * OFFSET_PPM, abs=256 * 300)
    assert max(abs(increment - 1) for increment in increments) < 1e-3


@pytest.mark.parametrize("structure", [ServoConfig, ServoStamp, ServoEdge, ServoOutput])
def test_structures_have_the_fields_of_the_header(structure: type[ctypes.Structure]) -> None:
    """In its order, with its types: bool, int, or a width and a sign."""
    name = "lp_" + re.sub(r"(?<!^)([A-Z])", r"_\1", structure.__name__).lower()
    body = re.search(rf"struct {name} {{(.*?)\n}};", (LIBRARY / "servo" / "servo.h").read_text(), re.DOTALL)
    assert body
    types = {"bool": ctypes.c_bool, "enum lp_servo_state": ctypes.c_int, "struct lp_servo_stamp": ServoStamp}
    types |= {f"{sign}int{bits}_t": getattr(ctypes, f"c_{sign}int{bits}") for sign in ("", "u") for bits in (32, 64)}
    declared = re.findall(r"^\t((?:enum |struct )?\w+) (\w+);", body[1], re.MULTILINE)
    assert [(field[0], field[1]) for field in structure._fields_] == [(n, types[kind]) for kind, n in declared]


def test_a_period_that_no_servo_follows_is_refused() -> None:
    with pytest.raises(UsageError, match="1 ms to 1.4 s"):
        Servo(999_999)


def test_silence_ends_in_holdover_and_free_running() -> None:
    servo = Servo(10**6, sawtooth_ps=0)
    for n in range(1, 30):
        out = servo.edge(ServoEdge(stamp=ServoStamp(now=n * 10**6, fraction=0, ticks=n * 125_000), latency=100))
    assert out.state == 3
    bounds = []
    for n in range(30, 40):
        out = servo.silence(ServoStamp(now=n * 10**6 + 500_000, fraction=0, ticks=n * 125_000 + 62_500), 100)
        bounds.append(out.uncertainty)
    assert out.state == 4 and bounds == sorted(bounds)
