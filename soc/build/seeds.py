# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Places and routes a board with one seed and prints what came of it, met or not: a task of ``liteprobe sweep ... build``.

``python -m liteprobe.soc.build.seeds FOLDER BOARD [OPTIONS] --seed N`` prints a line of JSON, the same one each time; netlists are
kept in FOLDER. With ``--tools`` in its place it prints the versions of the tools. Stands alone: it is a program.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from liteprobe.boards import board
from liteprobe.soc.build.arguments import check_together, config_of, parse
from liteprobe.soc.build.bitstream import Design, NotMetError, area_of, clocks_of, elaborate, place_and_route, synthesize
from liteprobe.soc.build.toolchain import BuildError, version_of

TOOLS = ("yosys", "nextpnr-ecp5")


def route(kept: Path, words: list[str]) -> dict[str, Any]:
    """Return what came of a board, the options of ``liteprobe build`` and a seed: a row, flat, without times.

    Sources and products are in a folder that is gone afterwards; the netlist is in ``kept``, for other seeds of the same sources.
    Raises ValueError where the board can't hold it, BuildError where a tool fails.
    """
    args = parse(words)
    check_together(args)
    config = config_of(args, board(args.board))
    config.check(board(args.board))
    versions = {name: version_of(name) for name in TOOLS}
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept, prefix="run-") as name:
        design, _ = elaborate(args.board, config, Path(name), args.extend)
        netlist = netlist_of(design, versions, kept)
        seed = design.seed if args.seed is None else args.seed
        row: dict[str, Any] = {"board": args.board, "preset": config.preset, "seed": seed, "met": "yes", "why": ""}
        run = Path(name) / f"seed{seed}"
        run.mkdir()
        try:
            report = place_and_route(design, netlist, seed, run)
        except NotMetError as error:
            found = run / "nextpnr.json"
            report = json.loads(found.read_text(encoding="utf-8")) if found.exists() else {}
            lines = [line.strip() for line in str(error).splitlines()]
            row |= {"met": "no", "why": ", ".join(lines[1:-1]) or lines[0]}
        if report:
            row |= {f"{clock.name} MHz": clock.fmax_mhz for clock in clocks_of(report)}
            row |= {name: entry["used"] for name, entry in area_of(report).items()}
        return row | {"netlist": hashlib.sha256(netlist.read_bytes()).hexdigest()[:16]} | versions


def netlist_of(design: Design, versions: dict[str, str], kept: Path) -> Path:
    """Return the netlist of a design, as the first process made it that needed it; others wait for it meanwhile."""
    name = f"{design.digest(versions['yosys'])[:16]}.json"
    with held(kept / "lock"):
        if not (kept / name).exists():
            made, _ = synthesize(design, versions)
            part = kept / f"{name}.part"
            shutil.copy(made, part)
            part.replace(kept / name)
    return kept / name


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Have one process at a time run the body."""
    with path.open("w") as lock:
        with contextlib.suppress(ImportError): # Windows.
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(arguments: list[str]) -> int:
    """Print the row of a seed, or the versions of the tools; return the exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler) # Tools are in process groups of their own, and are ended.
    kept, *words = arguments
    try:
        if kept == "--tools":
            args = parse(words)
            check_together(args)
            config_of(args, board(args.board)).check(board(args.board))
            found: dict[str, Any] = {name: version_of(name) for name in TOOLS}
        else:
            found = route(Path(kept), words)
    except (ValueError, BuildError) as error:
        print(f"build: {error}", file=sys.stderr)
        return error.exit_code if isinstance(error, BuildError) else 2
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
