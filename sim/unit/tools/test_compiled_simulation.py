# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Statements as Python functions, against Migen's own walk through them: random designs, every signal in every cycle."""

import operator
import random

import pytest
from migen import *

from liteprobe.sim.drivers.tools import compiled_simulation

INPUTS, CYCLES = 4, 20
OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "^": operator.xor, "|": operator.or_,
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}

def chain(name, terms):
    """Return terms joined by one operator, as a tree that leans to the left."""
    total = terms[0]
    for term in terms[1:]:
        total = OPERATORS[name](total, term)
    return total

class RandomDesign(Module):
    """Signals of any width and sign, a memory, and statements of every kind, all by the seed."""
    def __init__(self, seed):
        self.random   = rng = random.Random(seed)
        self.inputs   = [self.signal(f"input{n}") for n in range(INPUTS)]
        self.states   = [self.signal(f"state{n}") for n in range(8)]
        self.wires    = [self.signal(f"wire{n}")  for n in range(8)]
        self.readable = [*self.inputs, *self.states]
        self.array    = Array(Signal(7, reset=n, name=f"place{n}") for n in range(5))
        self.mixed    = Array(self.readable)
        self.specials.memory = Memory(9, 16, init=[rng.getrandbits(9) for _ in range(16)])
        self.specials.port   = port = self.memory.get_port(write_capable=True)
        for wire in self.wires: # Each from those before it: no loop.
            statement = self.statement([wire], 3)
            self.comb += statement
            self.readable.append(wire)
        self.comb += port.adr.eq(self.value(3)), port.dat_w.eq(self.value(3)), port.we.eq(self.value(3))
        self.readable.append(port.dat_r)
        self.sync += [self.statement(self.states, 4) for _ in range(8)]
        self.sync += self.array[Cat(self.value(2))[:3]].eq(self.value(3))
        self.seen = [*self.readable, *self.array]

    def signal(self, name):
        bits, is_signed = self.random.randrange(1, 40), self.random.random() < 0.3
        return Signal((bits, is_signed), reset=self.random.getrandbits(bits - is_signed), name=name)

    def value(self, depth):
        """Return a random expression."""
        rng = self.random
        if depth == 0 or rng.random() < 0.1:
            return C(rng.getrandbits(rng.randrange(1, 20))) if rng.random() < 0.3 else rng.choice(self.readable)
        kind = rng.choice(["operator", "operator", "mux", "slice", "cat", "replicate", "array", "mixed", "not", "shift", "chain"])
        one, two = self.value(depth - 1), self.value(depth - 1)
        if kind == "mux":
            return Mux(self.value(depth - 1)[:1], one, two)
        if kind == "slice":
            start = rng.randrange(len(one))
            return one[start:rng.randrange(start, len(one)) + 1]
        if kind == "cat":
            return Cat(one, two, self.value(depth - 1))
        if kind == "replicate":
            return Replicate(one[:3], rng.randrange(1, 4))
        if kind in ("array", "mixed"):
            return getattr(self, kind)[one[:4]]
        if kind == "not":
            return rng.choice([~one, -one])
        if kind == "shift":
            return one >> two[:3] if rng.random() < 0.5 else one[:16] << two[:3]
        if kind == "chain":
            return chain(rng.choice("|&+^"), [rng.choice(self.readable) for _ in range(rng.randrange(2, 300))])
        return rng.choice(list(OPERATORS.values()))(one, two)

    def target(self, signals):
        """Return a random target."""
        rng, signal = self.random, self.random.choice(signals)
        kind = rng.choice(["whole", "slice", "cat"])
        if kind == "slice":
            start = rng.randrange(len(signal))
            return signal[start:rng.randrange(start, len(signal)) + 1]
        return Cat(signal[:1], *signals[1:2]) if kind == "cat" and signal is signals[0] else signal

    def statement(self, signals, depth):
        """Return a random statement that assigns to some of the signals."""
        rng = self.random
        kind = rng.choice(["if", "case", "table", "both"]) if depth else "assign"
        if kind == "if":
            return If(self.value(2), self.statement(signals, depth - 1)).Else(self.statement(signals, depth - 1))
        if kind in ("case", "table"):
            test  = self.value(1)
            keys  = rng.sample(range(min(64, 2**len(test))), min(2**len(test), rng.randrange(20, 40) if kind == "table" else 3))
            cases = {key: self.statement(signals, 0) for key in keys}
            return Case(test, {**cases, "default": self.statement(signals, depth - 1)} if rng.random() < 0.5 else cases)
        if kind == "both":
            return [self.statement(signals, depth - 1), self.statement(signals, 0)]
        return self.target(signals).eq(self.value(3))

def values_of(simulator, seed):
    """Return every signal of a random design in every cycle."""
    design, rng, found = RandomDesign(seed), random.Random(seed), []
    def stimulate():
        for _ in range(CYCLES):
            for one in design.inputs:
                yield one.eq(rng.getrandbits(40))
            yield
            found.append((yield design.seen))
    with simulator(design, stimulate()) as running:
        running.run()
    return found

@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", range(6))
def test_a_design_does_what_migen_does(seed):
    compiled    = compiled_simulation.Simulator
    interpreted = compiled.__bases__[0]
    assert values_of(compiled, seed) == values_of(interpreted, seed)

def test_statements_of_a_design_are_functions():
    design = RandomDesign(0)
    with compiled_simulation.Simulator(design, iter([])) as simulator:
        assert len(simulator.evaluator.functions) == 2

def test_a_case_of_many_keys_and_deep_choices_are_compiled():
    class Deep(Module):
        def __init__(self):
            self.number = number = Signal(8)
            self.found  = Signal(8)
            self.chosen = Signal(8)
            choice = C(0)
            for n in range(256):
                choice = Mux(number == n, 255 - n, choice)
            self.comb += Case(number, {n: self.found.eq(3*n) for n in range(256)}), self.chosen.eq(choice)
    design, found = Deep(), []
    def count():
        for n in range(256):
            yield design.number.eq(n)
            yield
            yield
            found.append(((yield design.found), (yield design.chosen)))
    with compiled_simulation.Simulator(design, count()) as simulator:
        simulator.run()
    assert found == [(3*n % 256, 255 - n) for n in range(256)]
