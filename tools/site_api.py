# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Gives fields and attributes the comments beside them as their text, and leaves out attributes that have none.

Those are the docstring's of their class to list; the expression that ``__init__`` sets them to says nothing to a reader.
"""

import itertools
import re
from typing import Any

import griffe


def note_of(lines: list[str], first: int, last: int) -> str:
    """Return what comments say of a field on these lines (from 1): the ``#:`` above it, and the one at its end."""
    above = list(itertools.takewhile(lambda line: line.lstrip().startswith("#:"), reversed(lines[: first - 1])))
    beside = re.search(r"  # (.*)$", lines[last - 1])
    notes = [line.lstrip()[2:].strip() for line in reversed(above)] + ([beside[1]] if beside else [])
    return " ".join(notes)


class DescribesFields(griffe.Extension):
    """Reads each class as mkdocstrings does (mkdocs.yml)."""

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Describe fields and attributes; take those out of a class without fields that stay bare."""
        has_fields = any("dataclass" in str(decorator.value) for decorator in cls.decorators)
        has_fields |= any("NamedTuple" in str(base) for base in cls.bases)
        for name, member in list(cls.members.items()):
            if not isinstance(member, griffe.Attribute) or member.docstring is not None:
                continue
            lines = cls.lines_collection[member.filepath]  # type: ignore[index]
            if note := note_of(lines, member.lineno or 1, member.endlineno or 1):
                member.docstring = griffe.Docstring(note, lineno=member.lineno, parent=member)
            elif not has_fields and "instance-attribute" in member.labels and "class-attribute" not in member.labels:
                del cls.members[name]
