# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a bench: the tests that carry its mark, with greater numbers; each figure is a line: name value unit target ok|short."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: What each bench measures, and what holds for all of its rows.
BENCHES = {
    "train": "Packet trains, against what the simulation saw at the pins; the probe's own figures never judge themselves.",
    "monitor": "What a monitor sees, keeps and writes: parser, filter, capture, files, metrics; against models and peers.",
    "tester": "Both ports send at line rate while both see, capture and measure all that arrives.",
    "traffic": "Streams at the pins, against a model of the programs; beside trafgen and tcpreplay.",
    "replay": "Replay, sets, and the agent at the device, against models that know the files and the network.",
    "emulator": "The emulated network, against a reference that knows nothing of the gateware, and against theory.",
    "hostile": "Conditions that LiteProbe did not choose: losses, a second host, signals, loaded hops, missing records.",
    "truth": "What was false under conditions that nobody here had chosen: figures, files, ends of runs, calls, documents.",
    "boards": "A board at its RGMII pins, with PHYs as they are at power-up, and the margins of its buses on paper.",
    "clock": "The servo in virtual time, and the clock of the simulated probe. Truth is the model's own time.",
    "otg": "A probe served as an Open Traffic Generator: configurations against the pins, requests of any kind.",
    "people": "What people type, and what they get: first guesses of commands, examples of each --help.",
    "suites": "Standard tests: their results against devices and references whose truth is known, and beside programs of others.",
    "serve": "Servers: from a look to the page, memory, hostile requests.",
    "fleet": "Many probes and months: starts, delays and faults of experiments; a store of results, and writers that are killed.",
    "tengig": "The cores of 10 Gb/s at XGMII, against models of the line; no board, no transceiver, no route.",
    "first-hour": "What a new user meets: the package and its extras, the first train, commands, labs and pages.",
}
PYTEST = (sys.executable, "-m", "pytest", "-s", "-q", "--no-header", "--no-summary", "-p", "no:warnings", "--bench")
ROW = re.compile(r'^@row\(\s*"(?P<bench>[\w-]+)"', re.MULTILINE)


def files_of(bench: str) -> list[str]:
    """Return the files with rows of a bench, those of bench/ first."""
    paths = [path for folder in ("bench", "sim", "test") for path in sorted((ROOT / folder).rglob("*.py"))]
    return [str(path.relative_to(ROOT)) for path in paths if bench in ROW.findall(path.read_text(encoding="utf-8"))]


def main() -> int:
    """Run the rows that the command line names; return 1 when a figure falls short, 2 for a row that there is not."""
    parser = argparse.ArgumentParser(
        prog="./run bench",
        description="Measures figures, each held to its target, into build/bench/NAME.json. Ends with 1 when one falls short.",
        epilog="\n".join(f"{name:<11} {text}" for name, text in BENCHES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", choices=BENCHES, help=f"one of {', '.join(BENCHES)}")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="which to measure (default: all but the long ones)")
    parser.add_argument("--full", action="store_true", help="longer runs, and the long rows")
    parser.add_argument("--list", action="store_true", help="print the names of the rows, and end")
    args = parser.parse_args()
    command = [*PYTEST, args.name]
    command += [f"--row={name}" for name in args.rows] + ["--full"] * args.full + ["--collect-only"] * args.list
    code = subprocess.run([*command, *files_of(args.name)], cwd=ROOT, check=False).returncode
    return {0: 0, 4: 2}.get(code, 1)


if __name__ == "__main__":
    sys.exit(main())
