# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Commands that README and the pages show, and what a test can do with each: run it, parse it, or say why neither.

As a program (``./run python tools/commands.py``) it lists them all with what becomes of each.
"""

import argparse
import contextlib
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import transcripts

ROOT = Path(__file__).resolve().parent.parent
SHELL = ("", "console", "sh", "bash")
OURS = ("./run", "liteprobe")
#: What stands for something of the reader's own, and something of its kind.
PLACES = {
    "BOARD": "colorlight_i5",
    "URL": "sim://loopback",
    "FILE": "file",
    "TIME": "1s",
    "N": "1",
    "FOLDER": "folder",
    "NAME": "name",
}
#: First words of lines that are no command of LiteProbe, and why no test runs them.
REASONS = {
    "git": "network",
    "apt-get": "root and network",
    "cargo": "network",
    "pip": "network",
    "python3": "network",
    "sudo": "root",
    "nmcli": "root",
    "ip": "the reader's own network card",
    "ethtool": "the reader's own network card",
    "ping": "a board",
    "openFPGALoader": "a board",
    "wireshark": "a window",
    "ecpdap": "a board",
    "make": "another source or compiler than LiteProbe's",
    "build": "what a line before it makes by the network",
    "dask": "another's program",
    "podman": "a container engine",
    "tshark": "another's program",
    "cd": "the shell's own",
    "export": "the shell's own",
}
#: Commands of ./run that are the tests themselves, or minutes of work; that they exist is tested.
OF_RUN = {
    "test": "the tests themselves",
    "lint": "the checks themselves",
    "bench": "minutes",
    "setup": "network",
    "lock": "network",
    "python": "a script with a test of its own",
    "docs": "minutes",
    "labs": "it serves until Ctrl-C; tests make its notebooks",
    "wheel": "minutes",
    "release": "hours of routing",
    "shell": "interactive",
}
#: Folders whose scripts one test runs by a list of its own.
WHOLE = {"docs/labs/": "sim/system/docs/test_labs.py"}
#: Scripts that no test runs.
UNTESTED = {"tools/arcs.py": "minutes of synthesis", "tools/stages.py": "minutes of synthesis"}
#: A row of a bench: its mark, other marks, its function.
ROW = re.compile(r'^@row\("([\w-]+)"(?:, "(\w+)")?.*\)\n(?:@.*\n)*def test_(\w+)', re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """One command of a page.

    Attributes
    ----------
    page : str, path of the page from the top.
    text : str, as it stands there, without its comment.
    block : bool, whether it stands in a block of its own, or in prose.
    is_compared : bool, whether it is the transcript of a ``console`` block.
    """

    page: str
    text: str
    block: bool
    is_compared: bool = False


@dataclass(frozen=True)
class Fate:
    """Says how a command is checked: ``kind`` is "compared", "run", "parsed", "named" or "not run"; ``why`` says more."""

    kind: str
    why: str = ""


# Finding ------------------------------------------------------------------------------------------


def pages() -> list[str]:
    """Return README and all pages of docs/, as paths from the top."""
    listed = subprocess.run(["git", "ls-files", "README.md", "docs/*.md"], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return [path for path in listed.stdout.decode().splitlines() if (ROOT / path).exists()]


def parts(line: str) -> Iterator[str]:
    """Yield the commands of a line that the shell would run, without comments; ``&&`` and ``|`` part them."""
    lexer = shlex.shlex(line, posix=False, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words: list[str] = []
    for word in lexer:
        if set(word) <= set("&|;"):
            yield " ".join(words)
            words = []
        else:
            words.append(word)
    if words:
        yield " ".join(words)


def is_command(text: str) -> bool:
    """Return whether a text begins as a command does that a page may show."""
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    return (
        first in OURS
        or first.partition("/")[0] in REASONS
        or first.endswith(("bin/pip", "bin/liteprobe"))
        or re.match(r"[A-Z_]+=\S+ \./run ", text) is not None
    )


def commands_of(page: str, text: str) -> Iterator[Command]:
    """Yield the commands of a page, in blocks and in prose."""
    fence = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
    for found in fence.finditer(text):
        if found[2] not in SHELL:
            continue
        for line in found[3].replace("\\\n", " ").splitlines():
            shown = line.strip()
            if found[2] == "console":
                if shown.startswith("$ "):
                    yield Command(page, shown[2:], True, is_compared=True)
            elif is_command(shown):
                yield from (Command(page, part, True) for part in parts(shown))
    for span in re.findall(r"`([^`]+)`", fence.sub("", text)):
        shown = " ".join(span.split())
        if shown.split(" ")[0] in OURS and " " in shown:
            yield Command(page, shown, False)


def all_commands() -> list[Command]:
    """Return the commands of all pages."""
    return [command for page in pages() for command in commands_of(page, (ROOT / page).read_text(encoding="utf-8"))]


# What becomes of one --------------------------------------------------------------------------------


def filled(text: str) -> list[str]:
    """Return the words of a command with something in the place of what stands for the reader's own."""
    text = re.sub(r"\s\.\.\.(?=\s|$)", "", re.sub(r"[][]", "", text)).replace("://...", ":///dev/ttyUSB0")
    return shlex.split(re.sub(r"\b([A-Z]+)\b(?!=)", lambda found: PLACES.get(found[1], found[1]), text))


def arguments_of(words: list[str]) -> list[str] | None:
    """Return what the command ``liteprobe`` gets; None: another command of ./run."""
    if words[0].endswith("liteprobe"):
        return words[1:]
    if words[1] == "liteprobe":
        return words[2:]
    return words[1:] if words[1] in ("build", "demo") else None


@cache
def parser_of_all() -> argparse.ArgumentParser:
    """Return the parser of all commands of ``liteprobe``."""
    from liteprobe.host.cli.main import make_parser

    return make_parser()


def complaint(arguments: list[str]) -> str:
    """Return what the parsers of the command line say of ``arguments``, "" when they take them; nothing is run."""
    from liteprobe.host.base.errors import ProbeError
    from liteprobe.host.device.link import url
    from liteprobe.soc.build import arguments as build

    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            args = parser_of_all().parse_args(arguments)
            if args.command == "build":
                rest = [word for word in arguments[1:] if word != args.board]
                build.check_together(build.parse([args.board, *rest]))
            for name in ("probe", "from", "to"):
                where = getattr(args, name, None)
                if isinstance(where, str) and "://" in where:
                    (url.sim_options if where.startswith("sim:") else url.parse)(where)
    except SystemExit as end:
        return "" if not end.code else said.getvalue().strip() or str(end)
    except (ProbeError, ValueError, argparse.ArgumentTypeError) as error:
        return str(error)
    return ""


def of_run(words: list[str]) -> Fate:
    """Return what becomes of another command of ./run; ValueError when it names what isn't there."""
    name, rest = words[1], [word for word in words[2:] if not word.startswith("-")]
    if name == "help":
        return Fate("compared", "run")
    if name not in OF_RUN:
        raise ValueError(f"./run has no command '{name}'")
    if name == "bench" and rest and rest[0] != PLACES["NAME"]:
        if rest[0] not in rows():
            raise ValueError(f"there is no bench '{rest[0]}'")
        for row in rest[1:]:
            if not any(row == known or row.startswith(f"{known}_") for known in rows()[rest[0]]):
                raise ValueError(f"the bench {rest[0]} has no row '{row}'")
    for path in rest if name in ("python", "test") else []:
        if re.search(r"/.*\.(?:py|yaml)$", path) and not (ROOT / path).exists():
            raise ValueError(f"there is no {path}")
    if name == "python" and rest and rest[0] in UNTESTED:
        return Fate("not run", UNTESTED[rest[0]])
    if name == "python" and not is_tested(rest[0] if rest else ""):
        raise ValueError(f"no test has {rest[0]} in it, so nothing says that it runs")
    return Fate("not run", OF_RUN[name])


@cache
def rows() -> dict[str, set[str]]:
    """Return the rows of each bench, as they are marked; parametrised ones have more after their name."""
    found: dict[str, set[str]] = {}
    for bench, name, function in ROW.findall(sources_of_tests()):
        found.setdefault(bench, set()).add(name or function)
    return found


@cache
def sources_of_tests() -> str:
    """Return the text of all tests and benches."""
    listed = subprocess.run(
        ["git", "ls-files", "test/*.py", "sim/*test_*.py", "bench/*.py"], cwd=ROOT, check=True, stdout=-1
    )
    # That of this file names scripts which have none.
    paths = [ROOT / path for path in listed.stdout.decode().split() if not path.endswith("test_house_commands.py")]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths if path.exists())


def is_tested(script: str) -> bool:
    """Return whether a test names a script, or a module of ``python -m``; one of the page's own stands on the page."""
    if "/" not in script and script.endswith(".py"):
        return True
    if any(script.startswith(folder) and (ROOT / test).exists() for folder, test in WHOLE.items()):
        return True
    example = script.removeprefix("docs/examples/").removesuffix(".py")
    names = [script, script.rpartition("/")[2], script.removeprefix("liteprobe."), f'load("{example}")']
    names += [f"\nfrom {Path(script).stem} import "] * script.startswith("tools/")
    return any(name in sources_of_tests() for name in names)


def fate_of(command: Command) -> Fate:
    """Return what becomes of a command that no test runs; ValueError, with what is wrong, when it can't be right."""
    if command.is_compared:
        return Fate("compared", "transcript")
    if is_demo(command.text):
        return Fate("compared", "test_cli_demo.py")
    if command.text in transcripts.QUICK:
        return Fate("compared", "run")
    if command.text in transcripts.SLOW:
        return Fate("compared", "run, --full")
    if command.text in in_consoles():
        return Fate("compared", "transcript")
    if step := transcripts.AT_DESK.get(transcripts.normal(command.text)):
        return Fate("compared", transcripts.HOW[step.how])
    if command.block and in_script(command):
        return Fate("run", "its block as a script: ./run bench first-hour commands --full")
    text = re.sub(r"^(?:[A-Z_]+=\S+ )+", "", command.text)
    words = filled(text)
    if words[0] not in OURS and not words[0].endswith("bin/liteprobe"):
        first = "pip" if words[0].endswith("bin/pip") else words[0].partition("/")[0]
        if first not in REASONS:
            raise ValueError(
                f"'{words[0]}' is not a command that tools/commands.py knows: add it with the reason to REASONS"
            )
        return Fate("not run", REASONS[first])
    arguments = arguments_of(words)
    if arguments is None:
        return of_run(words)
    why = complaint(arguments)
    if not why:
        return Fate("parsed", need_of(command, arguments))
    if not command.block and "required" in why and is_name(arguments):
        return Fate("named", "the name of a command, or of some options of it")
    raise ValueError(why)


def in_script(command: Command) -> bool:
    """Return whether a command stands in a block that the bench of the first hour runs as a script."""
    return any(command.text in " ".join(line.split()) for line in scripted(command.page))


@cache
def scripted(page: str) -> set[str]:
    """Return the lines of a page that are run in a script."""
    return transcripts.lines_of(page)


def need_of(command: Command, arguments: list[str]) -> str:
    """Return why a command that is parsed isn't run."""
    line = " ".join(arguments)
    if re.search(r"--duration \d+s\b|--count 1000000\b|--follow 10s|^bring-up", line):
        return "seconds of a probe's time: hours of simulation"
    if re.search(
        r"etherbone:|uart:|pcie:|--(?:load|flash|restore|backup)\b|^firmware (?:flash|load)|^phy\b|^load\b", line
    ):
        return "a board"
    if arguments[0] == "build":
        return "minutes of place and route"
    if line.startswith("firmware build"):
        return "Zephyr's sources"
    if not command.block:
        return "prose: how a command is called"
    return (
        "goes on until it is stopped"
        if arguments[0] in ("monitor", "agent", "station")
        else "files of the reader's own"
    )


@cache
def in_consoles() -> set[str]:
    """Return the commands whose transcript is on a page."""
    return {command.text for command in all_commands() if command.is_compared}


def is_demo(text: str) -> bool:
    """Return whether a command is the demo, whose end README shows."""
    return re.fullmatch(r"(?:\./run|liteprobe) demo", text) is not None


def is_name(arguments: list[str]) -> bool:
    """Return whether prose only names a command, or options that it has: ``liteprobe build --replay``."""
    from liteprobe.host.cli.main import COMMANDS, main

    if arguments[0] not in COMMANDS:
        return False
    help = io.StringIO()
    with contextlib.redirect_stdout(help), contextlib.suppress(SystemExit):
        if arguments[0] == "build":
            from liteprobe.soc.build.arguments import parse

            parse(["colorlight_i5", "--help"])
        else:
            main([arguments[0], "--help"])
    return all(re.search(rf"{word}\b", help.getvalue()) for word in arguments[1:] if word.startswith("--"))


def main() -> int:
    """List all commands; return 1 when one can't be right."""
    faults = 0
    for command in all_commands():
        try:
            fate = fate_of(command)
            print(f"{fate.kind:<9} {fate.why:<40.40} {command.page}: {command.text}")
        except ValueError as error:
            faults += 1
            print(f"WRONG     {command.page}: {command.text}\n          {error}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
