# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Entry of the command ``liteprobe``: parses, runs one command, and reports errors, once for all of them."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from importlib import metadata
from types import ModuleType

from liteprobe.host.cli import (
    build,
    calibrate,
    capture,
    clock,
    completion,
    demo,
    firmware,
    info,
    monitor,
    owd,
    regs,
    train,
)
from liteprobe.host.cli.arguments import Parser
from liteprobe.host.errors import ProbeError

COMMANDS: dict[str, ModuleType] = {
    "train": train,
    "owd": owd,
    "capture": capture,
    "monitor": monitor,
    "calibrate": calibrate,
    "clock": clock,
    "info": info,
    "regs": regs,
    "build": build,
    "firmware": firmware,
    "demo": demo,
    "completion": completion,
}
EPILOG = """exit codes: 0 done, 1 failed, 2 usage, 3 no probe, 130 interrupted

  liteprobe train --probe sim://loopback --length 60,1514 --count 1000 --repeat 10
  liteprobe train --probe etherbone://192.168.1.50 --length 1514 --count 100 --rate 500M --report train.html
"""
USAGE = 2
INTERRUPTED = 130


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="liteprobe",
        description="An open network tester: packet trains on the exact tick, stamped and measured.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"liteprobe {metadata.version('liteprobe')}")
    parser.add_argument("--verbose", action="store_true", help="say on stderr what is being done")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    for name, command in COMMANDS.items():
        sub = commands.add_parser(name, help=command.HELP, description=command.HELP + ".")
        command.add_arguments(sub)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 done, 1 failed, 2 usage, 3 no probe, 130 interrupted."""
    try:
        args = make_parser().parse_args(arguments)
        logging.basicConfig(format="%(message)s", level=logging.INFO if args.verbose else logging.WARNING)
        COMMANDS[args.command].run(args)
        sys.stdout.flush()
    except ProbeError as error:
        print(f"liteprobe: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("liteprobe: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has gone, as head does: nothing more to say, and Python must not try at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(
            f"liteprobe: {where}{error.strerror or error}: check the path, and the space on the disk", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
