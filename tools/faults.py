# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Puts one-line faults into cores, host and firmware, one after the other, and asks whether the tests see each.

As a program: ``./run python tools/faults.py [--count 40] [--seed 1]``. The tree must be clean; each fault is taken out again. For
a fault only those tests run that name its module, or name a driver that does; more of them until one fails. A fault that nobody
sees is printed with its line: either a test is missing, or the line means the same with the fault.
"""

import argparse
import ast
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 900
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
    """Yield the faults that a Python file can have: a comparison, an ``and``, a number or a sign that is another."""
    text = (ROOT / path).read_text(encoding="utf-8")
    lines = text.splitlines()
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for node in (inner for function in functions for statement in function.body for inner in ast.walk(statement)):
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
            instead = line[: node.right.col_offset] + str(node.right.value + 1) + line[node.right.end_col_offset :]
        if instead and line.isascii() and "raise " not in line and 'f"' not in line:
            yield Fault(path, node.lineno, instead)


def faults_of_c(path: str) -> Iterator[Fault]:
    """Yield the faults that a C file can have."""
    for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1):
        for old, new in SWAPS:
            if line.count(old) == 1 and line.startswith("\t") and "/*" not in line and "*" not in line.lstrip()[:2]:
                yield Fault(path, number, line.replace(old, new))


def chosen(count: int, seed: int) -> list[Fault]:
    """Return so many faults, a third of them each in cores, host, and the libraries of the firmware that tests compile."""
    chance = random.Random(seed)
    groups = [
        [fault for path in tracked("cores/*.py") for fault in faults_of_python(path)],
        [fault for path in tracked("host/*.py") for fault in faults_of_python(path)],
        [fault for path in tracked("firmware/lib/*.c") for fault in faults_of_c(path)],
    ]
    shares = [count * 2 // 5, count * 2 // 5, count - 2 * (count * 2 // 5)]
    return [fault for group, share in zip(groups, shares, strict=True) for fault in chance.sample(group, share)]


def tests_of(path: str) -> list[str]:
    """Return the files of tests that name a module, those that name it themselves first, the shortest first."""
    if path.startswith("firmware/"):
        library = re.compile(rf"\b{Path(path).parent.name}\b")
        compiled = tracked("test/clock/test_*.py", "test/firmware/test_*.py", "test/analysis/test_*.py")
        return sorted(compiled, key=lambda one: -len(library.findall((ROOT / one).read_text(encoding="utf-8"))))
    texts = {
        one: (ROOT / one).read_text(encoding="utf-8")
        for one in tracked("test/*.py", "sim/*.py", "cores/*.py", "host/*.py")
    }
    found: dict[str, None] = {}
    users, seen = [path], {path}
    for _ in range(4):  # Who names it; who names those; and so on.
        named_by = [one for one, text in texts.items() if one not in seen and any(names(text, user) for user in users)]
        seen |= set(named_by)
        tests = sorted((one for one in named_by if Path(one).name.startswith("test_")), key=lambda one: len(texts[one]))
        found |= dict.fromkeys(tests)
        users = [one for one in named_by if one not in tests]
    return list(found)


def names(text: str, path: str) -> bool:
    """Return whether a text imports the module of a file."""
    module = "liteprobe." + path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    package, _, name = module.rpartition(".")
    return f"from {module} import" in text or bool(
        re.search(rf"from {re.escape(package)} import [^\n]*\b{name}\b", text)
    )


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
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-x",
                "-p",
                "no:cacheprovider",
                "-n",
                "2",
                "--dist",
                "loadfile",
                *few,
            ]
            try:
                done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                return "a test that never ends"
            if done.returncode:
                found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
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
    args = parser.parse_args()
    if subprocess.run(["git", "status", "--porcelain", "-uno"], cwd=ROOT, check=True, capture_output=True).stdout:
        parser.error("the tree has changes: commit them first, for a fault is put into files and taken out again")
    unseen = 0
    for number, fault in enumerate(chosen(args.count, args.seed), 1):
        saw = is_seen(fault, args.files)
        unseen += not saw
        was = (ROOT / fault.path).read_text(encoding="utf-8").splitlines()[fault.line - 1]
        print(
            f"{number:>3} {saw or 'NOT SEEN'}\n    {fault.path}:{fault.line}\n    - {was.strip()}\n    + {fault.instead.strip()}",
            flush=True,
        )
    print(f"seed {args.seed}: {args.count - unseen} of {args.count} faults were seen")
    return 1 if unseen else 0


if __name__ == "__main__":
    sys.exit(main())
