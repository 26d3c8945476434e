# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Migen's simulator, with the statements of a design made into Python functions: some four times as fast.

Migen's own walks through the tree of each statement in each cycle. Here a function is written of each list of statements
once; what it has no words for is left to Migen's. Clocks, generators and traces are Migen's.
"""

from collections.abc import Iterable
from typing import Any

from migen.fhdl.bitcontainer import value_bits_sign
from migen.fhdl.structure import Case, Cat, Constant, If, Replicate, Signal, _ArrayProxy, _Assign, _Operator, _Slice
from migen.sim import core

DEEPEST = 60  # Parentheses in parentheses: Python takes 200.
MOST_CASES = 16  # In a chain of comparisons; more are looked up.
BINARY = {">>>": ">>", "<<<": "<<"} | {op: op for op in ("+", "-", "*", "&", "^", "|", "<", "<=", "==", "!=", ">", ">=")}
CHAINED = "+&^|"  # A left operand of the same operator needs no parentheses: chains of hundreds of terms are flat.


class _Writer:
    """Writes a Python function of statements: ``s`` are values by number of a signal, ``m`` those of the next step."""

    def __init__(self, evaluator: core.Evaluator) -> None:
        self.evaluator = evaluator
        self.names: dict[str, Any] = {"E": evaluator.eval, "A": evaluator.assign}
        self.lines: list[str] = []

    def name(self, thing: Any) -> str:
        """Return the name by which the function finds an object."""
        name = f"x{len(self.names)}"
        self.names[name] = thing
        return name

    def function(self, statements: Iterable[Any]) -> Any:
        """Return a function of ``s`` and ``m`` that executes statements."""
        outer, self.lines = self.lines, ["def run(s, m):", " pass"]
        self.block(statements, " ")
        namespace = self.names
        exec("\n".join(self.lines), namespace)
        self.lines = outer
        return namespace.pop("run")

    # Statements ------------------------------------------------------------------------------------

    def block(self, statements: Iterable[Any], indent: str) -> None:
        """Write statements."""
        for statement in statements:
            if isinstance(statement, _Assign):
                self.assign(statement.l, self.value(statement.r), indent)
            elif isinstance(statement, If):
                self.lines.append(f"{indent}if {self.value(statement.cond)} & {(1 << len(statement.cond)) - 1}:")
                self.branch(statement.t, indent)
                if statement.f:
                    self.lines.append(f"{indent}else:")
                    self.branch(statement.f, indent)
            elif isinstance(statement, Case):
                self.case(statement, indent)
            elif isinstance(statement, (list, tuple)):
                self.block(statement, indent)
            else:
                self.lines.append(f"{indent}{self.name(self.evaluator.execute)}([{self.name(statement)}])")

    def branch(self, statements: Iterable[Any], indent: str) -> None:
        """Write what stands behind a condition; beyond some depth, as a function of its own."""
        if len(indent) > DEEPEST:
            self.lines.append(f"{indent} {self.name(self.function(statements))}(s, m)")
            return
        self.lines.append(f"{indent} pass")
        self.block(statements, indent + " ")

    def case(self, statement: Case, indent: str) -> None:
        """Write a Case: a chain of comparisons, or a table of functions."""
        bits, is_signed = value_bits_sign(statement.test)
        test = f"t{len(self.names)}{len(self.lines)}"
        self.lines.append(f"{indent}{test} = {cut(self.value(statement.test), bits, is_signed)}")
        cases = {key.value: body for key, body in reversed(statement.cases.items()) if isinstance(key, Constant)}
        default = statement.cases.get("default", [])
        if len(cases) > MOST_CASES:
            table = {key: self.function(body) for key, body in cases.items()}
            self.lines.append(f"{indent}{self.name(table)}.get({test}, {self.name(self.function(default))})(s, m)")
            return
        word = "if"
        for key, body in cases.items():
            self.lines.append(f"{indent}{word} {test} == {key}:")
            self.branch(body, indent)
            word = "elif"
        self.lines.append(f"{indent}else:" if cases else f"{indent}if True:")
        self.branch(default, indent)

    def assign(self, target: Any, value: str, indent: str) -> None:
        """Write an assignment."""
        line = self.lines.append
        if isinstance(target, Signal):
            line(f"{indent}m[{target.duid}] = {cut(value, target.nbits, target.signed)}")
        elif isinstance(target, _Slice) and isinstance(target.value, Signal):
            whole, mask = target.value, (1 << (target.stop - target.start)) - 1
            self.reset(whole)
            line(f"{indent}v = m.get({whole.duid})")
            kept = f"(s[{whole.duid}] if v is None else v) & {~(mask << target.start)}"
            new = f"({kept}) | ({value} & {mask}) << {target.start}"
            line(f"{indent}m[{whole.duid}] = {cut(f'({new})', whole.nbits, whole.signed)}")
        elif isinstance(target, Cat):
            parts = f"c{len(self.names)}{len(self.lines)}"
            line(f"{indent}{parts} = {value}")
            shift = 0
            for element in target.l:
                bits = len(element)
                self.assign(element, f"({parts} >> {shift} & {(1 << bits) - 1})", indent)
                shift += bits
        elif (signals := same_signals(target)) is not None:
            place = self.place(target, signals)
            line(f"{indent}m[{place}] = {cut(value, signals[0].nbits, signals[0].signed)}")
        else:
            line(f"{indent}A({self.name(target)}, {value})")

    # Values ----------------------------------------------------------------------------------------

    def reset(self, signal: Signal) -> None:
        """Give a signal its value of the start, where nothing has yet."""
        values = self.evaluator.signal_values
        if values[signal.duid] is None:
            values[signal.duid] = signal.reset.value

    def place(self, proxy: _ArrayProxy, signals: list[Signal]) -> str:
        """Return the number of the signal that an index of an array chooses."""
        numbers = self.name([signal.duid for signal in signals])
        return f"{numbers}[min({len(signals) - 1}, {self.value(proxy.key)})]"

    def value(self, node: Any, depth: int = 0) -> str:
        """Return an expression, in parentheses where it has any operator."""
        if isinstance(node, Constant):
            return f"({node.value})"
        if isinstance(node, Signal):
            self.reset(node)
            return f"s[{node.duid}]"
        if depth > DEEPEST:
            return f"E({self.name(node)})"
        if isinstance(node, _Operator):
            return self.operator(node, depth + 1)
        if isinstance(node, _Slice):
            return f"({self.value(node.value, depth + 1)} >> {node.start} & {(1 << (node.stop - node.start)) - 1})"
        if isinstance(node, Cat):
            terms, shift = ["0"], 0
            for element in node.l:
                bits = len(element)
                terms.append(f"({self.value(element, depth + 2)} & {(1 << bits) - 1}) << {shift}")
                shift += bits
            return f"({' | '.join(terms)})"
        if isinstance(node, Replicate):
            bits = len(node.v)
            ones = sum(1 << bits * n for n in range(node.n))
            return f"(({self.value(node.v, depth + 2)} & {(1 << bits) - 1}) * {ones})"
        if (signals := same_signals(node)) is not None:
            for signal in signals:
                self.reset(signal)
            return f"s[{self.place(node, signals)}]"
        return f"E({self.name(node)})"

    def operator(self, node: _Operator, depth: int) -> str:
        """Return the expression of an operator."""
        op, operands = node.op, node.operands
        if op == "m":
            choice, yes, no = (self.value(operand, depth) for operand in operands)
            return f"({yes} if {choice} else {no})"
        if len(operands) == 1:
            return f"({op}{self.value(operands[0], depth)})"
        terms = [operands[1]]
        first = operands[0]
        while op in CHAINED and isinstance(first, _Operator) and first.op == op and len(first.operands) == 2:
            terms.append(first.operands[1])
            first = first.operands[0]
        words = [self.value(term, depth) for term in (first, *reversed(terms))]
        return f"({f' {BINARY[op]} '.join(words)})"


def same_signals(node: Any) -> list[Signal] | None:
    """Return the choices of an array where all are signals of one kind, as in a memory; else None."""
    if not isinstance(node, _ArrayProxy) or not all(isinstance(choice, Signal) for choice in node.choices):
        return None
    kinds = {(choice.nbits, choice.signed) for choice in node.choices}
    return list(node.choices) if len(kinds) == 1 else None


def cut(value: str, bits: int, is_signed: bool) -> str:
    """Return the expression of a value in so many bits."""
    if is_signed:
        half = 1 << (bits - 1)
        return f"(({value} + {half} & {2 * half - 1}) - {half})"
    return f"{value} & {(1 << bits) - 1}"


class Evaluator(core.Evaluator):  # type: ignore[misc]
    """Migen's, which executes lists that it knows by their functions."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.functions: dict[int, Any] = {}

    def execute(self, statements: Any) -> None:
        """Execute statements."""
        function = self.functions.get(id(statements))
        if function is None:
            super().execute(statements)
        else:
            function(self.signal_values, self.modifications)


class Simulator(core.Simulator):  # type: ignore[misc]
    """Migen's, which makes functions of the statements of a design."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        evaluator = self.evaluator
        for statements in (self.fragment.comb, *self.fragment.sync.values()):
            evaluator.functions[id(statements)] = _Writer(evaluator).function(statements)


def install() -> None:
    """Make `run_simulation` use it."""
    core.Evaluator = Evaluator
    core.Simulator = Simulator
