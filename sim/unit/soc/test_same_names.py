# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Signals have the same names whichever Python writes the Verilog; what is expected is of Python 3.11."""

import re
import subprocess
import sys

import pytest

from liteprobe.soc import same_names

# A design with all that Python 3.12 and later do in another way, written as Verilog by a process of its own.
DESIGN = """
from migen import Module, Signal
from migen.fhdl import verilog

class Lane(Module):
    def __init__(self):
        self.level = level = Signal()
        spare = self.spare = Signal()
        taken = Signal()
        given = taken
        self.sync += [level.eq(given), spare.eq(level), taken.eq(spare)]

class Top(Module):
    def __init__(self, count):
        self.lanes = lanes = [Lane() for _ in range(count)]
        self.submodules += lanes
        flags = [Signal() for _ in range(count)]
        by_place = {place: self.made(Signal()) for place in range(count)}
        pairs = [[Signal() for _ in range(2)] for _ in range(count)]
        first, second = Signal(), Signal()
        for place in range(count):
            self.sync += [flags[place].eq(lanes[place].level), by_place[place].eq(flags[place])]
            self.sync += [pair.eq(by_place[place]) for pair in pairs[place]]
        self.sync += [first.eq(second), second.eq(lambda_of(first))]

    def made(self, signal):
        return signal

def lambda_of(signal):
    other = Signal()
    made = (lambda: other)()
    return made | signal
"""
PROGRAM = f"""
from liteprobe.soc import same_names
names = {{"__name__": "design"}}
exec(same_names.compiled({DESIGN!r}, "design.py"), names)
print(names["verilog"].convert(names["Top"](2)))
"""
NAMES = """
top top_flags0 top_flags1 top_lane0_level top_lane0_spare top_lane0_taken top_lane1_level top_lane1_spare
top_lane1_taken top_other top_pairs0 top_pairs1 top_pairs2 top_pairs3 top_second top_top0 top_top1
"""


def test_names_of_signals_are_those_of_python_3_11() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert sorted(re.findall(r"^\s*reg (?:\[\S+ )?(\w+)", done.stdout, re.MULTILINE)) == NAMES.split()


@pytest.mark.parametrize(
    "text",
    [
        "[x * y for x in range(4) if x % 2 for y in (x, 7)]",
        "{x: [y for y in range(x)] for x in range(5)}",
        "{x % 3 for x in range(9)}",
        "[lambda x=x: x for x in range(3)][1]()",
        "[x for x in [y for y in range(3)]]",
        "(lambda list: [one for one in list])([1, 2])",
        "[(z := x) for x in range(3)] + [z]",
    ],
)
def test_generators_give_what_comprehensions_give(text: str) -> None:
    found: dict[str, object] = {}
    exec(same_names.compiled(f"found = {text}", "text.py"), found)
    assert found["found"] == eval(text)


def test_nothing_is_changed_twice() -> None:
    same_names.install()
    same_names.install()
    finders = [finder for finder in sys.meta_path if isinstance(finder, same_names.Finder)]
    assert len(finders) == (sys.version_info >= same_names.FIRST_TO_DIFFER)
