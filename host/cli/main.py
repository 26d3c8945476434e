# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Parses the command line, runs one command, and reports errors, once for all of them."""

import argparse
import contextlib
import importlib
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType

from liteprobe.host.base import extras
from liteprobe.host.base.errors import ExpectationError, ProbeError, UsageError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.base.output import words_of
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import Parser, check_outputs
from liteprobe.host.cli.streams import let_go

#: Each command is a module of its name, with HELP, EXAMPLES, ``add_arguments(parser)`` and ``run(args)``, in the order of --help.
COMMANDS = (
    "train", "send", "replay", "sets", "emulate", "owd", "experiment", "station", "sweep", "stamp", "rfc2544", "y1564", "bert",
    "soak", "query", "report", "capture", "extcap", "monitor", "serve", "otg", "calibrate", "stop", "clock", "info", "phy",
    "bring-up", "regs", "agent", "load", "build", "firmware", "demo", "doctor", "discover", "completion",
)  # fmt: skip
OF_ALL = ("completion",)  # Commands that ask about all the others.
EPILOG = """exit codes: 0 done, 1 failed, 2 usage, 3 no probe, 4 a condition of --expect does not hold, 5 one is unknown,
130 interrupted (Ctrl-C), 143 terminated (SIGTERM)

  liteprobe train --probe sim://loopback --length 60,1514 --count 1000 --repeat 10
  liteprobe train --probe etherbone://192.168.1.50 --length 1514 --count 100 --rate 500M --report train.html
  liteprobe send streams.yaml --probe etherbone://192.168.1.50 --duration 10s
"""
FAILED, USAGE = 1, 2
LINE_MOST = 4000  # Characters of an error: what is wrong may be as long as the input.
NEEDS = {
    "report": "report",
    "headers": "parquet",
    "store": "store",
}  # What an option needs, beside what its command does.


class Version(argparse.Action):
    """Prints the version, which takes a moment to find."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib import metadata

        say(f"liteprobe {metadata.version('liteprobe')}")
        parser.exit()


def module_of(command: str) -> ModuleType:
    """Return the module of a command; what takes long to load it puts off until it runs."""
    return importlib.import_module(f"liteprobe.host.cli.commands.{command.replace('-', '_')}")


def make_parser(command: str = "") -> argparse.ArgumentParser:
    """Return the parser of a command that needs no other, which is there sooner, or of all commands."""
    parser = Parser(
        prog="liteprobe",
        description="An open network tester: packet trains on the exact tick, stamped and measured.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=Version, help="show the version, and end")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    for name in [command] if command in COMMANDS and command not in OF_ALL else COMMANDS:
        module = module_of(name)
        sub = commands.add_parser(name, help=module.HELP, description=module.HELP + ".", examples=module.EXAMPLES)
        module.add_arguments(sub)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code, as the epilog of its help lists them."""
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except ProbeError as error:
        code = _say(said_of(error), error.exit_code)
    except Interrupted as stop:
        code = _say(said_of(stop), stop.exit_code)
    except KeyboardInterrupt:
        code = _say(str(Interrupted()), Interrupted().exit_code)
    except BrokenPipeError:
        code = FAILED  # The reader of the output has gone, as head does: nothing more to say.
    except OSError as error:
        code = _say(words_of(error), FAILED)
    let_go(sys.stdout)
    return code


def _run(arguments: Sequence[str] | None) -> int:
    try:
        given = meant(sys.argv[1:] if arguments is None else list(arguments))
        if not given:
            make_parser().print_help(sys.stderr)
            return UsageError.exit_code
        parser = make_parser(next((word for word in given if not word.startswith("-")), ""))
        args = parser.parse_args(given, argparse.Namespace(parser=parser))
        check_outputs(args)
        check_extras(args)
        if getattr(args, "store_records", False) and not args.store:
            raise UsageError("--store-records says what --store keeps: give that, too")
        if getattr(args, "store", None):
            from liteprobe.host.cli import stored  # Loading Arrow takes a while.

            args.keeper = stored.Keeper(args)
        with extras.named(), _judged(args):
            module_of(args.command).run(args)
    except SystemExit as end:  # Help was asked for, or another program has said why it failed.
        return end.code if isinstance(end.code, int) else 0
    return 0


@contextlib.contextmanager
def _judged(args: argparse.Namespace) -> Iterator[None]:
    """Check conditions before the body runs; where it fails, the file of JUnit says so."""
    if not any(getattr(args, name, None) for name in ("expect", "junit", "lenient")):
        yield
        return
    from liteprobe.host.cli import verdicts  # Loads what reads figures.

    verdicts.check(args)
    try:
        yield
    except (ProbeError, KeyboardInterrupt, OSError) as error:
        if args.junit and not isinstance(error, ExpectationError):
            verdicts.fail(args, words_of(error) if isinstance(error, OSError) else said_of(error))
        raise


def meant(given: list[str]) -> list[str]:
    """Return the command line that ``help``, ``help COMMAND`` and ``version`` stand for; others as they are."""
    if given[:1] == ["help"]:
        return [*given[1:], "--help"]
    return ["--version"] if given[:1] == ["version"] else given


def check_extras(args: argparse.Namespace) -> None:
    """Raise MissingExtraError, before anything is measured, when what is asked for needs a package that isn't installed."""
    for name, extra in NEEDS.items():
        if getattr(args, name, None):
            extras.require(extra)


def said_of(error: BaseException) -> str:
    """Return what an error says, with its notes: what could not be written besides."""
    return "; ".join([str(error), *getattr(error, "__notes__", [])])


def _say(line: str, code: int) -> int:
    with contextlib.suppress(OSError):
        line = line if len(line) <= LINE_MOST else f"{line[:LINE_MOST]}..."
        say(f"liteprobe: {line}", stream=sys.stderr, flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
