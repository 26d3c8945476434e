# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Unified headers: a walk through the headers of any frame, word by word, and a block RAM that collects what it finds."""

from liteprobe.cores.receive.unified.parser import UnifiedParser

__all__ = ["UnifiedParser"]
