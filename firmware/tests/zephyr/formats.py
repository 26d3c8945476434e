# SPDX-License-Identifier: BSD-2-Clause
# This file is part of LiteProbe.
"""Writes formats.h for these tests, from a clone of LiteProbe that nothing was set up in: ``formats.py FOLDER``."""

import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

REPOSITORY = Path(__file__).resolve().parents[3]

# Zephyr's Python has no numpy, whose types of records the header has no use for.
sys.modules["numpy"] = SimpleNamespace(dtype=lambda *_: SimpleNamespace(fields={}))  # type: ignore[assignment]
with tempfile.TemporaryDirectory() as folder:
    (Path(folder) / "liteprobe").symlink_to(REPOSITORY)
    sys.path.insert(0, folder)
    from liteprobe.soc.build.devicetree import write_formats

    print(write_formats(Path(sys.argv[1])))
