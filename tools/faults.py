# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Puts one-line faults into cores, host and firmware, one after the other, and asks whether the tests see each.

As a program: ``./run python tools/faults.py [--count 40] [--seed 1] [--from 1]``. The tree must be clean; each fault is taken out
again. For a fault only those tests run that import its module, or a driver that does; more of them until one fails. A fault that
no test sees is printed with its line: either a test is missing, or the line means the same with the fault (`EQUIVALENT`).

A seed ranks faults by their text, so that it chooses the same ones after other lines have changed or moved.
"""

import argparse
import ast
import hashlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 600
#: In C: what a line has, and what the fault has in its place.
SWAPS = (
    (" < ", " >= "),
    (" > ", " <= "),
    (" == ", " != "),
    (" && ", " || "),
    (" + ", " - "),
    (" <= ", " > "),
    (" >= ", " < "),
)
COMPARED = {ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<", ast.Eq: "!=", ast.NotEq: "=="}
WRITTEN = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
#: Faults that change nothing: file, what the line has, the fault's in its place, why. They are left out.
EQUIVALENT = (
    (
        "host/agent/client.py",
        "if self.sent_ns is None or self.received_ns is None:",
        "if self.sent_ns is None and self.received_ns is None:",
        "Both are None, or neither is: a push was not asked for.",
    ),
    (
        "cores/measure/streams.py",
        "self.comb  += square.delay.eq(self.delay), square.start.eq(Cat(step == 3, step == 4, step == 5))",
        "self.comb  += square.delay.eq(self.delay), square.start.eq(Cat(step == 3, step != 4, step == 5))",
        "A square that isn't asked for multiplies the middle parts, too: right from step 9 on, and first read in step 14.",
    ),
)


@dataclass(frozen=True)
class Fault:
    """A line of a file (from 1), and what stands there instead."""

    path: str
    line: int
    instead: str


def tracked(*patterns: str) -> list[str]:
    """Return the files of the repository that match."""
    done = subprocess.run(["git", "ls-files", "--", *patterns], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.split()


def swapped(line: str, start: int, end: int, old: str, new: str) -> str | None:
    """Return a line with ``new`` in the place of the only ``old`` between two columns."""
    part = line[start:end]
    return line[:start] + part.replace(old, new) + line[end:] if part.count(old) == 1 else None


def faults_of_python(path: str) -> Iterator[Fault]:
    """Yield the faults that a Python file can have: a comparison, an ``and``, a number that is another.

    A width gets one bit less: with one more, a signal often does the same. What is only asserted, raised or put into a
    message is left out: it says again what other lines do.
    """
    text = (ROOT / path).read_text(encoding="utf-8")
    lines = text.splitlines()
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inside = {inner: None for function in functions for statement in function.body for inner in ast.walk(statement)}
    signals = [node for node in inside if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Signal"]
    widths = {inner for signal in signals for width in signal.args[:1] for inner in ast.walk(width)}
    asserted = {inner for node in inside if isinstance(node, ast.Assert) for inner in ast.walk(node)}
    for node in (one for one in inside if one not in asserted):
        if not isinstance(node, ast.Compare | ast.BoolOp | ast.BinOp) or node.lineno != node.end_lineno:
            continue
        line, instead = lines[node.lineno - 1], None
        left = node.values[0] if isinstance(node, ast.BoolOp) else node.left
        start, end = left.end_col_offset or 0, node.end_col_offset or 0
        if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
            old, new = WRITTEN[type(node.ops[0])], COMPARED[type(node.ops[0])]
            instead = swapped(line, start, end, f" {old} ", f" {new} ")
        elif isinstance(node, ast.BoolOp):
            old, new = (" and ", " or ") if isinstance(node.op, ast.And) else (" or ", " and ")
            instead = swapped(line, start, end, old, new)
        elif isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant) and type(node.right.value) is int:
            other = node.right.value + (-1 if node in widths else 1)
            instead = line[: node.right.col_offset] + str(other) + line[node.right.end_col_offset :]
        if instead and line.isascii() and "raise " not in line and 'f"' not in line:
            yield Fault(path, node.lineno, instead)


def faults_of_c(path: str) -> Iterator[Fault]:
    """Yield the faults that a C file can have."""
    for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1):
        for old, new in SWAPS:
            if line.count(old) == 1 and line.startswith("\t") and "/*" not in line and "*" not in line.lstrip()[:2]:
                yield Fault(path, number, line.replace(old, new))


def chosen(count: int, seed: int) -> list[Fault]:
    """Return so many faults, two fifths of them each in cores and host, the others in the firmware that tests compile."""
    shares = [count * 2 // 5, count * 2 // 5, count - 2 * (count * 2 // 5)]
    return [fault for group, share in zip(candidates(), shares, strict=True) for fault in ranked(group, seed)[:share]]


@cache
def candidates() -> tuple[list[Fault], ...]:
    """Return all faults of cores, of host and of the firmware."""
    return (
        [fault for path in tracked("cores/*.py") for fault in faults_of_python(path)],
        [fault for path in tracked("host/*.py") for fault in faults_of_python(path)],
        [fault for path in tracked("firmware/lib/*.c") for fault in faults_of_c(path)],
    )


def ranked(faults: list[Fault], seed: int) -> list[Fault]:
    """Return faults in the order of a seed, without those that change nothing."""
    same = {(path, old, new) for path, old, new, _ in EQUIVALENT}
    times: dict[str, int] = {}
    ranks = {}
    for fault in dict.fromkeys(faults):
        old, new = line_of(fault).strip(), fault.instead.strip()
        if (fault.path, old, new) in same:
            continue
        text = f"{seed} {old} {new}"
        times[text] = times.get(text, 0) + 1
        ranks[fault] = hashlib.sha256(f"{text} {times[text]}".encode()).digest()
    return sorted(ranks, key=lambda fault: ranks[fault])


def line_of(fault: Fault) -> str:
    """Return the line in whose place a fault stands."""
    return read(fault.path)[fault.line - 1]


@cache
def read(path: str) -> list[str]:
    """Return the lines of a file without faults."""
    return (ROOT / path).read_text(encoding="utf-8").splitlines()


def tests_of(path: str) -> list[str]:
    """Return the files of tests that import a module: those that do so themselves first, of them those named like it."""
    if path.startswith("firmware/"):
        library = re.compile(rf"\b(lp_)?{Path(path).parent.name}(_|\b)")
        paths = tracked("test/clock/test_*.py", "test/firmware/test_*.py")
        texts = {one: "\n".join(read(one)) for one in paths}
        return sorted(paths, key=lambda one: (order(path, one)[0], -len(library.findall(texts[one])), one))
    found: dict[str, None] = {}
    near, whole = ["test/*.py", "sim/*.py", "cores/*.py", "host/*.py"], ["*.py"]
    for folders in (near, whole):  # What builds the whole SoC takes long.
        imports = {one: imported(one) for one in tracked(*folders)}
        users, seen = {path}, {path}
        while users:  # Who imports it; who imports those; and so on.
            modules = {module_of(user) for user in users}
            users = {one for one, names in imports.items() if one not in seen and names & modules}
            seen |= users
            tests = [one for one in users if is_test(one)]
            found |= dict.fromkeys(sorted(tests, key=lambda one: order(path, one)))
            users -= set(tests)
    return list(found)


def is_test(path: str) -> bool:
    """Return whether a file has tests."""
    return Path(path).name.startswith("test_")


def order(path: str, test: str) -> tuple[int, bool, int]:
    """Return what sorts tests of a module: many words in common first, then those of its own kind, then short ones."""
    words = [set(re.split(r"[/_.]", one)) - {"test", "host", "cores", "firmware", "py"} for one in (path, test)]
    return -len(words[0] & words[1]), test.startswith("test/") == path.startswith("cores/"), len(read(test))


def module_of(path: str) -> str:
    """Return the name by which a file is imported."""
    return "liteprobe." + path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


@cache
def imported(path: str) -> set[str]:
    """Return the modules that a file imports, and what it takes from them; of a test also the commands that it names."""
    nodes = list(ast.walk(ast.parse("\n".join(read(path)))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and is_test(path):
            names |= {f"liteprobe.host.cli.commands.{node.value.replace('-', '_')}"}
    return names


def is_seen(fault: Fault, most_files: int) -> str:
    """Put a fault in, run tests until one fails, take it out; return the test that saw it, "": none did."""
    file = ROOT / fault.path
    sound = file.read_text(encoding="utf-8")
    lines = sound.splitlines(keepends=True)
    lines[fault.line - 1] = fault.instead + "\n"
    tests = tests_of(fault.path)[:most_files]
    try:
        file.write_text("".join(lines), encoding="utf-8")
        for few in (tests[:4], tests[4:]):
            if not few:
                break
            options = ["-q", "-x", "-p", "no:cacheprovider", "-n", "0"]
            command = [sys.executable, "-m", "pytest", *options, *few]
            run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)
            try:
                printed = run.communicate(timeout=LIMIT_S)[0]
            except subprocess.TimeoutExpired:
                return "a test that never ends"
            finally:
                with suppress(ProcessLookupError):  # With what tests have compiled and started.
                    os.killpg(run.pid, signal.SIGKILL)
            if run.returncode not in (0, 5):  # 5: no test in these files.
                found = re.search(r"^(?:FAILED|ERROR) (\S+)", printed, re.MULTILINE)
                return found[1] if found else "collection"
        return ""
    finally:
        file.write_text(sound, encoding="utf-8")


def main() -> int:
    """Try the faults; return 1 when one was not seen."""
    parser = argparse.ArgumentParser(
        prog="./run python tools/faults.py", description="Are one-line faults seen by the tests?"
    )
    parser.add_argument("--count", type=int, default=40, help="faults (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default: %(default)s)")
    parser.add_argument("--files", type=int, default=12, help="files of tests that are run for a fault at most")
    parser.add_argument("--from", type=int, default=1, dest="first", help="go on with this one (default: %(default)s)")
    parser.add_argument("--to", type=int, help="end with this one (default: the last)")
    parser.add_argument("--list", action="store_true", help="print the faults and their tests, and try none")
    args = parser.parse_args()
    faults = list(enumerate(chosen(args.count, args.seed), 1))[args.first - 1 : args.to]
    if args.list:
        for number, fault in faults:
            print(f"{words(number, fault, '')}\n    {' '.join(tests_of(fault.path)[: args.files])}")
        return 0
    if subprocess.run(["git", "status", "--porcelain", "-uno"], cwd=ROOT, check=True, capture_output=True).stdout:
        parser.error("the tree has changes: commit them first, for a fault is put into files and taken out again")
    unseen = 0
    for number, fault in faults:
        saw = is_seen(fault, args.files)
        unseen += not saw
        print(words(number, fault, saw or "NOT SEEN"), flush=True)
    print(f"seed {args.seed}: {len(faults) - unseen} of {len(faults)} faults were seen")
    return 1 if unseen else 0


def words(number: int, fault: Fault, saw: str) -> str:
    """Return what is printed of a fault."""
    was = f"    - {line_of(fault).strip()}\n    + {fault.instead.strip()}"
    return f"{number:>3} {saw}\n    {fault.path}:{fault.line}\n{was}"


if __name__ == "__main__":
    sys.exit(main())
