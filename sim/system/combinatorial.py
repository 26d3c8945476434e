# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Combinatorial logic of a simulation, as Verilog; what would be a loop on a board is refused."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

LOGIC_WRITERS = ("_generate_combinatorial_logic_synth", "_generate_combinatorial_logic")  # LiteX 2024.12, later ones.


def once_a_node() -> Callable[[Any], set[Any]]:
    """Return Migen's ``list_targets``, which looks through a node but once: for statements that nobody changes meanwhile."""
    from migen.fhdl.tools import list_targets

    found: dict[
        int, tuple[Any, set[Any]]
    ] = {}  # With the nodes, so that no other one gets the number of one that is gone.

    def targets_of(node: Any) -> set[Any]:
        if id(node) not in found:
            found[id(node)] = (node, list_targets(node))
        return found[id(node)][1]

    return targets_of


def read_for(target: Any, statements: Any, targets_of: Callable[[Any], set[Any]]) -> set[Any]:
    """Return the signals that statements read where they decide what ``target`` becomes."""
    from migen.fhdl.structure import Case, If, _Assign
    from migen.fhdl.tools import flat_iteration, list_signals

    read = set()
    for statement in flat_iteration(statements):
        if target not in targets_of(statement):
            continue
        if isinstance(statement, _Assign):
            read |= list_signals(statement.r)
        elif isinstance(statement, If):
            read |= list_signals(statement.cond) | read_for(target, [statement.t, statement.f], targets_of)
        elif isinstance(statement, Case):
            read |= list_signals(statement.test) | read_for(target, list(statement.cases.values()), targets_of)
    return read


def refuse_loop(target: Any, statements: list[Any], targets_of: Callable[[Any], set[Any]] | None = None) -> None:
    """Raise ValueError for a target that is worked out from itself: a loop on a board, and none in a simulation.

    In a block of blocking assignments it reads what the lines above have made of it, and in gates its own result.
    """
    if target in read_for(target, statements, targets_of or once_a_node()):
        name = target.name_override or ".".join(str(part) for part, _ in target.backtrace[-3:])
        raise ValueError(f"combinatorial signal {name} reads itself: name what it was before, and read that")


def combinatorial_blocks(fragment: Any, namespace: Any, *_policy: str) -> str:
    """Return the combinatorial logic as ``always_comb``, one block for each target.

    LiteX 2024.12 writes ``always @(*)``, which has no trigger at time 0: a block of constant inputs is never
    evaluated by Verilator. ``always_comb`` is, once, at time 0 (IEEE 1800-2017, section 9.2.2.2). One block for
    each target, because a block does not wait for what it writes itself.
    """
    from litex.gen.fhdl import verilog
    from migen.fhdl.tools import flat_iteration

    targets_of, stock = once_a_node(), verilog.list_targets
    verilog.list_targets = targets_of
    try:
        statements: dict[Any, list[Any]] = {}
        for statement in flat_iteration(fragment.comb):
            for target in targets_of(statement):
                statements.setdefault(target, []).append(statement)
        return (
            "".join(block(namespace, target, statements[target], targets_of) for target in in_order(statements)) + "\n"
        )
    finally:
        verilog.list_targets = stock


def in_order(targets: Iterable[Any]) -> list[Any]:
    """Return signals in the order in which they were made."""
    return sorted(targets, key=lambda signal: signal.duid)


def block(namespace: Any, target: Any, statements: list[Any], targets_of: Callable[[Any], set[Any]]) -> str:
    """Return the Verilog of one target."""
    from litex.gen.fhdl import verilog

    refuse_loop(target, statements, targets_of)
    blocking = verilog.AssignType.BLOCKING
    if verilog._use_wire(statements):
        return f"assign {verilog._generate_node(namespace, blocking, 0, statements[0])}"
    reset = verilog._generate_expression(namespace, target.reset)[0]
    body = verilog._generate_node(namespace, blocking, 1, statements, target)
    return f"always_comb begin\n    {namespace.get_name(target)} = {reset};\n{body}end\n"


def grouped(statements: Any) -> list[tuple[set[Any], list[Any]]]:
    """Return what Migen's ``group_by_targets`` does, which compares each statement with all groups: 4 s of a large SoC."""
    from migen.fhdl.tools import flat_iteration, list_targets

    groups: dict[int, tuple[set[Any], list[tuple[int, Any]]]] = {}
    owner: dict[Any, int] = {}
    for order, statement in enumerate(flat_iteration(statements)):
        targets = list_targets(statement)
        met = {owner[target] for target in targets if target in owner}
        key = max(met, key=lambda each: len(groups[each][0]), default=order)
        found, members = groups.pop(key, (set(), []))
        for other in met - {key}:
            more, with_it = groups.pop(other)
            targets |= more
            members += with_it
        found |= targets
        members.append((order, statement))
        owner |= dict.fromkeys(targets, key)
        groups[key] = (found, members)  # At the end, as Migen has it.
    return [
        (found, [each for _, each in sorted(members, key=lambda one: one[0])]) for found, members in groups.values()
    ]


@contextmanager
def quick_groups() -> Iterator[None]:
    """Make LiteX group statements by `grouped`."""
    from litex.gen.fhdl import verilog

    stock = verilog.group_by_targets
    verilog.group_by_targets = grouped
    try:
        yield
    finally:
        verilog.group_by_targets = stock


@contextmanager
def own_combinatorial_blocks() -> Iterator[None]:
    """Make LiteX write its combinatorial logic by `combinatorial_blocks`."""
    from litex.gen.fhdl import verilog

    name = next(name for name in LOGIC_WRITERS if hasattr(verilog, name))
    stock = getattr(verilog, name)
    setattr(verilog, name, combinatorial_blocks)
    try:
        with quick_groups():
            yield
    finally:
        setattr(verilog, name, stock)
