# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What a person may have meant by a word that isn't one of those that there are."""

import difflib
from collections.abc import Sequence


def is_near(word: str, words: Sequence[str]) -> bool:
    """Return whether a word looks like one of ``words``."""
    return bool(difflib.get_close_matches(word, words, n=1))


def nearest(word: str, words: Sequence[str]) -> str:
    """Return the advice for a word that isn't one of ``words``."""
    close = difflib.get_close_matches(word, words, n=1)
    return f"did you mean '{close[0]}'?" if close else f"give one of {', '.join(words)}"
