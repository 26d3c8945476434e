# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Puts checkouts of LiteX and its cores before those of the environment: ``./run test --litex FOLDER``."""

import os
import subprocess
from collections.abc import MutableMapping
from pathlib import Path

#: Folder of a checkout -> package in it that shows that it is one.
CHECKOUTS = {
    "migen": "migen",
    "litex": "litex",
    "liteeth": "liteeth",
    "litedram": "litedram",
    "litepcie": "litepcie",
    "liteiclink": "liteiclink",
    "litescope": "litescope",
    "litex-boards": "litex_boards",
}
#: What ``./run`` makes PYTHONPATH of, for the commands that a test types.
VARIABLE = "LITEPROBE_PYTHONPATH"


def checkouts(folder: Path) -> list[Path]:
    """Return the checkouts in ``folder``; ValueError where there is none of LiteX."""
    found = [
        folder / name for name, package in CHECKOUTS.items() if (folder / name / package / "__init__.py").is_file()
    ]
    if folder / "litex" not in found:
        raise ValueError(
            f"{folder.resolve()} holds no checkout of LiteX in 'litex': clone it, and the cores, side by side"
        )
    return found


def revision_of(checkout: Path) -> str:
    """Return what git says of a checkout, "no revision" where it isn't git's."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    if not (checkout / ".git").exists():
        return "no revision"
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "no revision"


def use(folder: Path, environment: MutableMapping[str, str]) -> list[str]:
    """Have ``environment`` import from the checkouts in ``folder``; return a line that says what comes from where, for each.

    What has no checkout there comes from the environment, as ever. Raises as `checkouts`.
    """
    found = checkouts(folder.resolve())
    environment[VARIABLE] = environment["PYTHONPATH"] = os.pathsep.join(map(str, found))
    missing = [name for name in CHECKOUTS if name not in {path.name for path in found}]
    lines = [f"{path.name:<12} {revision_of(path)}, {path}" for path in found]
    return lines + [f"{name:<12} as pinned" for name in missing]
