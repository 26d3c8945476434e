# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Leaves attributes out of the library's pages that ``__init__`` sets and that have no text of their own.

The docstring of their class lists what they are; the expression that they are set to says nothing to a reader.
"""

from typing import Any

import griffe


class DropsBareAttributes(griffe.Extension):
    """Takes them out of each class, as mkdocstrings reads it (mkdocs.yml)."""

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Take them out of ``cls``; fields of a dataclass and members of an enumeration stay."""
        if any("dataclass" in str(decorator.value) for decorator in cls.decorators):
            return
        for name, member in list(cls.members.items()):
            is_bare = isinstance(member, griffe.Attribute) and member.docstring is None
            if is_bare and "instance-attribute" in member.labels and "class-attribute" not in member.labels:
                del cls.members[name]
