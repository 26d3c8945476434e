# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Compares what students hand in (lab-results/lab1.json, ...) with the teacher's answers: ``check.py FILE...``.

Prints a line for each figure that is missing or off, and the score of each file; ends with 1 where one is not complete.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import yaml

ANSWERS = Path(__file__).resolve().parent / "answers.yaml"


def answers() -> dict[str, dict[str, dict[str, Any]]]:
    """Return by the name of each lab, and of each result, its ``value``, ``tolerance`` and ``why``."""
    found: dict[str, dict[str, dict[str, Any]]] = yaml.safe_load(ANSWERS.read_text(encoding="utf-8"))
    return found


def faults(expected: dict[str, dict[str, Any]], results: dict[str, Any]) -> list[str]:
    """Return what is wrong with the results of a lab, a line each; a figure that isn't a number is wrong, too."""
    found = [f"{name}: not asked for" for name in results if name not in expected]
    for name, answer in expected.items():
        value = results.get(name)
        if value is None:
            found.append(f"{name}: missing; {answer['value']:g} ({answer['why']})")
        elif not isinstance(value, int | float) or isinstance(value, bool):
            found.append(f"{name}: {json.dumps(value)[:40]} is not a number; {answer['value']:g} ({answer['why']})")
        elif not abs(value - answer["value"]) <= answer["tolerance"]:
            found.append(f"{name}: {value}, not {answer['value']:g} +- {answer['tolerance']:g} ({answer['why']})")
    return found


def read(path: Path) -> tuple[dict[str, Any], str]:
    """Return the results in a file, and why there are none; one bad file must not end the marking of a class."""
    try:
        results = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        return {}, str(error.strerror)
    except (ValueError, RecursionError) as error:
        return {}, f"it isn't JSON: {error}"
    return (results, "") if isinstance(results, dict) else ({}, "it holds no results by name")


def main(arguments: list[str] | None = None) -> int:
    """Compare the files of the command line."""
    parser = argparse.ArgumentParser(description="Compare the results of labs with the teacher's answers.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="lab1.json to lab8.json, of any folder")
    labs = {name.split("_")[0]: expected for name, expected in answers().items()}
    code = 0
    for path in parser.parse_args(arguments).files:
        if path.stem not in labs:
            parser.error(f"{path}: there is no lab of that name: give {', '.join(f'{name}.json' for name in labs)}")
        count = len(labs[path.stem])
        results, reason = read(path)
        if reason:
            print(f"{path}: 0 of {count}: can't be read: {reason}")
            code = 1
            continue
        wrong = faults(labs[path.stem], results)
        print(f"{path}: {count - sum('not asked for' not in line for line in wrong)} of {count}")
        for line in wrong:
            print(f"  {line}")
        code |= bool(wrong)
    return code


if __name__ == "__main__":
    sys.exit(main())
