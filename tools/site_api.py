# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Gives fields the text of the comments beside them, and leaves out attributes that ``__init__`` sets and that have no text.

What those are is listed by the docstring of their class; the expression that they are set to says nothing to a reader.
"""

import re
from typing import Any

import griffe


def comment_of(lines: list[str], first: int, last: int) -> str:
    """Return the comment above a statement and at its end, as one text; ``first``, ``last``: its lines, from 1."""
    above = []
    while first > 1 and (found := re.match(r"\s+#:? (.*)", lines[first - 2])):
        above.insert(0, found[1])
        first -= 1
    beside = re.search(r"  # (.*)$", lines[last - 1])
    return " ".join([*above, *([beside[1]] if beside else [])])


class FieldTexts(griffe.Extension):
    """Gives texts to fields, and takes bare attributes out of each class, as mkdocstrings reads it (mkdocs.yml)."""

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Do so for ``cls``; fields of a dataclass and members of an enumeration stay, with a text or without."""
        is_dataclass = any("dataclass" in str(decorator.value) for decorator in cls.decorators)
        lines = cls.lines_collection[cls.filepath]
        for name, member in list(cls.members.items()):
            if not isinstance(member, griffe.Attribute) or member.docstring is not None:
                continue
            is_field = "class-attribute" in member.labels or is_dataclass
            text = comment_of(lines, member.lineno, member.endlineno) if is_field and member.lineno else ""
            if text:
                member.docstring = griffe.Docstring(text, parent=member)
            elif "instance-attribute" in member.labels and not is_field:
                del cls.members[name]
