# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Combinatorial logic of a simulation, as Verilog; what would be a loop on a board is refused."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def read_for(target: Any, statements: Any) -> set[Any]:
    """Return the signals that statements read where they decide what ``target`` becomes."""
    from migen.fhdl.structure import Case, If, _Assign
    from migen.fhdl.tools import flat_iteration, list_signals, list_targets

    read = set()
    for statement in flat_iteration(statements):
        if target not in list_targets(statement):
            continue
        if isinstance(statement, _Assign):
            read |= list_signals(statement.r)
        elif isinstance(statement, If):
            read |= list_signals(statement.cond) | read_for(target, [statement.t, statement.f])
        elif isinstance(statement, Case):
            read |= list_signals(statement.test) | read_for(target, list(statement.cases.values()))
    return read


def refuse_loop(target: Any, statements: list[Any]) -> None:
    """Raise ValueError for a target that is worked out from itself: a loop on a board, and none in a simulation.

    In a block of blocking assignments it reads what the lines above have made of it, and in gates its own result.
    """
    if target in read_for(target, statements):
        name = target.name_override or ".".join(str(part) for part, _ in target.backtrace[-3:])
        raise ValueError(f"combinatorial signal {name} reads itself: name what it was before, and read that")


def combinatorial_blocks(fragment: Any, namespace: Any) -> str:
    """Return the combinatorial logic as ``always_comb``, one block for each target.

    LiteX 2024.12 writes ``always @(*)``, which has no trigger at time 0: a block of constant inputs is never
    evaluated by Verilator. ``always_comb`` is, once, at time 0 (IEEE 1800-2017, section 9.2.2.2). One block for
    each target, because a block does not wait for what it writes itself.
    """
    from litex.gen.fhdl import verilog
    from migen.fhdl.tools import flat_iteration, list_targets

    statements: dict[Any, list[Any]] = {}
    for statement in flat_iteration(fragment.comb):
        for target in list_targets(statement):
            statements.setdefault(target, []).append(statement)
    text = ""
    blocking = verilog.AssignType.BLOCKING
    for target in sorted(statements, key=lambda signal: signal.duid):
        own = statements[target]
        refuse_loop(target, own)
        if verilog._use_wire(own):
            text += "assign " + verilog._generate_node(namespace, blocking, 0, own[0])
            continue
        reset = verilog._generate_expression(namespace, target.reset)[0]
        text += f"always_comb begin\n    {namespace.get_name(target)} = {reset};\n"
        text += verilog._generate_node(namespace, blocking, 1, own, target) + "end\n"
    return text + "\n"


@contextmanager
def own_combinatorial_blocks() -> Iterator[None]:
    """Make LiteX write its combinatorial logic by `combinatorial_blocks`."""
    from litex.gen.fhdl import verilog

    stock = verilog._generate_combinatorial_logic_sim
    verilog._generate_combinatorial_logic_sim = combinatorial_blocks
    try:
        yield
    finally:
        verilog._generate_combinatorial_logic_sim = stock
