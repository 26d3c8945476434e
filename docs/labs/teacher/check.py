# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Compares what students hand in (NAME/lab1.json, ...) with the teacher's answers: ``check.py [--csv FILE] FILE...``.

Prints a line for each figure that is missing or off, and the score of each file; ends with 1 where one is not complete.
``--csv`` writes the marks of a class, a line a student: whose a file is says its key ``student``, else its folder.
"""

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any

import yaml

ANSWERS = Path(__file__).resolve().parent / "answers.yaml"
BY_CHANCE = (
    "lab2",
    "lab4",
    "lab6",
    "lab7",
)  # Two students who have the same seeds, or one's file, have the same figures.


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


def student_of(path: Path, results: dict[str, Any]) -> str:
    """Return whose results these are; takes the name out of them."""
    folder = path.resolve().parent
    return str(results.pop("student", "") or (folder.parent if folder.name == "lab-results" else folder).name)


def points(right: int, count: int) -> int:
    """Return the points for figures: 3 for all, 2 for more than 80 %, 1 for more than half."""
    return 3 if right == count else 2 if right > 0.8 * count else int(right > 0.5 * count)


def rows(marked: dict[tuple[str, str], tuple[int, int, dict[str, Any]]], labs: list[str]) -> list[dict[str, Any]]:
    """Return a line for each student: points of each lab that was handed in, their sum, and who has the same figures."""
    found = []
    for student in sorted({student for student, _ in marked}):
        own = {lab: one for (whose, lab), one in marked.items() if whose == student}
        same = {
            whose
            for (whose, lab), (_, _, figures) in marked.items()
            if whose != student and lab in BY_CHANCE and lab in own and figures and figures == own[lab][2]
        }
        of_labs = {lab: points(*own[lab][:2]) if lab in own else "" for lab in labs}
        total = sum(one for one in of_labs.values() if one != "")
        figures = f"{sum(one[0] for one in own.values())} of {sum(one[1] for one in own.values())}"
        found.append(
            {"student": student, **of_labs, "points": total, "figures": figures, "same_as": "; ".join(sorted(same))}
        )
    return found


def main(arguments: list[str] | None = None) -> int:
    """Compare the files of the command line."""
    parser = argparse.ArgumentParser(description="Compare the results of labs with the teacher's answers.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="lab1.json to lab8.json, of any folder")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the marks of a class, a line a student")
    labs = {name.split("_")[0]: expected for name, expected in answers().items()}
    code, marked = 0, {}
    asked = parser.parse_args(arguments)
    for path in asked.files:
        if path.stem not in labs:
            parser.error(f"{path}: there is no lab of that name: give {', '.join(f'{name}.json' for name in labs)}")
        count = len(labs[path.stem])
        results, reason = read(path)
        student = student_of(path, results)
        if asked.csv and (student, path.stem) in marked:
            parser.error(f"{path}: {student} has handed in {path.stem} twice: give one of the files")
        wrong = [] if reason else faults(labs[path.stem], results)
        right = 0 if reason else count - sum("not asked for" not in line for line in wrong)
        marked[student, path.stem] = (right, count, results)
        print(f"{path}: {right} of {count}" + (f": can't be read: {reason}" if reason else ""))
        for line in wrong:
            print(f"  {line}")
        code |= bool(wrong or reason)
    if asked.csv:
        lines = rows(marked, list(labs))
        with asked.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, lines[0])
            writer.writeheader()
            writer.writerows(lines)
    return code


if __name__ == "__main__":
    sys.exit(main())
