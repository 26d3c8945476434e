# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Tasks for tests: each writes down that it began, in a file of its own process, so that work done twice is seen."""

import os
import random
import signal
import time
from pathlib import Path
from typing import Any


def draw(number: int, log: str, seconds: float = 0.0) -> dict[str, Any]:
    """Return what a seeded generator gives."""
    with (Path(log) / str(os.getpid())).open("a", encoding="utf-8") as file:
        file.write(f"{number}\n")
    time.sleep(seconds)
    return {"number": number, "drawn": random.Random(number).random()}


def fail(number: int) -> None:
    """Raise."""
    raise ValueError(f"{number} is odd")


def kill(number: int) -> None:
    """End the worker."""
    os.kill(os.getpid(), signal.SIGKILL)
