# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Blocks of pages that use git and the network, each run as a script, as it stands (``./run bench first-hour commands --full``).

What stands for something of the reader's own is filled in: REPOSITORY by this clone, of which git gives what is committed,
/media/stick by a folder, VERSION by that of pyproject.toml.
"""

import doctest
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from transcripts import plain

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: No network but this machine itself.
OFFLINE = ("unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
LONGEST_S = 3600

TRAIN = """
...length   count   repeat   load %       Mb/s   +-95 %    sent at   capacity   owd ns   std   p99   ipdv std\
   lost   dup   reord   late
 ───...
   {length}     100        1   100.00   1000.000        -   1000.000   1000.000      8.0   0.0   8.0\
        0.0      0     0       0      0
Mb/s on the wire, frame + 24 octets: mean dispersion rate of the trains; capacity by the pairs that were not queued.
Clock free-running; a delay is within 8.0 ns.
"""
LAB1 = """
...
   60 octets:      672 ns   1488095.24 /s 0.2143
  512 octets:     4288 ns    233208.96 /s 0.8769
 1514 octets:    12304 ns     81274.38 /s 0.9571
...
  "frames_60_per_s": 1488095.238095238,
  "frames_1514_per_s": 81274.3823146944,
  "payload_share_60": 0.21428571428571427,
  "payload_share_1514": 0.9570871261378413,
  "measured_60_per_s": 1488095.238095238,
  "measured_1514_per_s": 81274.3823146944,
  "delay_slope_ns_per_octet": 8.0,
  "delay_intercept_ns": 3096.0,
  "interval_333_ns": 36915.691569156916,
  "measured_333_mbps": 333.3002758463635,
  "cycles_per_frame": 2016.0,
  "surplus_frames_per_s": 297.61904761904765
}
"""


@dataclass(frozen=True)
class Script:
    """A block of a page.

    Attributes
    ----------
    page : str, path from the top.
    first : str, what its first line begins with.
    folder : str, where it is run; those of one folder follow one another in it.
    says : str, what it prints, by doctest's rules with ELLIPSIS.
    before : str, lines of the page's prose, or of the one before, that are typed first.
    is_offline : bool, whether it is run without a network.
    never : str, what it must not print; "": nothing is forbidden.
    """

    page: str
    first: str
    folder: str
    says: str
    before: str = ""
    is_offline: bool = False
    never: str = ""


SCRIPTS = (
    Script("docs/install.md", "git clone REPOSITORY", "first", TRAIN.format(length="1514")),
    Script("docs/install.md", "pip download", "first", "...\nSuccessfully downloaded ... liteprobe ...\n"),
    Script(
        "docs/install.md",
        "python3 -m venv probe && ",
        "other",
        "...\nSuccessfully installed ... liteprobe-...\n",
        before="cp -r ../first/packages packages\n",
        is_offline=True,
    ),
    Script("docs/labs/teacher.md", "./run setup", "teacher/liteprobe", LAB1),
    Script(
        "docs/labs/teacher.md",
        "git clone /media/stick",
        "student",
        LAB1,
        is_offline=True,
        never="building the simulated probe",
    ),
    Script(
        "docs/release.md",
        "./run python setup.py",
        "release/liteprobe",
        "...\nliteprobe {version}" + TRAIN.format(length="  60"),
    ),
)


def block_of(script: Script) -> str:
    """Return the text of a script's block, as it stands on its page."""
    page = (ROOT / script.page).read_text(encoding="utf-8")
    found = [text for text in FENCE.findall(page) if text.startswith(script.first)]
    if len(found) != 1:
        raise ValueError(f"{script.page} has {len(found)} blocks that begin with '{script.first}'")
    return str(found[0])


def lines_of(page: str) -> set[str]:
    """Return the lines of a page that are run in a script, without comments."""
    blocks = [block_of(script) for script in SCRIPTS if script.page == page]
    return {line.partition(" #")[0].strip() for text in blocks for line in text.splitlines()}


def version() -> str:
    """Return the version of the package."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def is_said(script: Script, printed: str) -> bool:
    """Return whether a script printed what it is known to print."""
    expected = plain(script.says.replace("{version}", version()))
    is_right = doctest.OutputChecker().check_output(expected, plain(printed), doctest.ELLIPSIS)
    return is_right and not (script.never and script.never in printed)


def has_offline() -> bool:
    """Return whether a script can be run without a network here."""
    return bool(shutil.which("unshare")) and subprocess.run([*OFFLINE, "true"], check=False, stderr=-3).returncode == 0


def run(script: Script, top: Path) -> str:
    """Run a script below the folder ``top``; return what it printed, and its exit code where that isn't 0."""
    folder = top / script.folder
    if folder.name == "liteprobe" and not folder.exists():  # "In a clone."
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    folder.mkdir(parents=True, exist_ok=True)
    (top / "stick").mkdir(exist_ok=True)
    text = script.before + block_of(script)
    for place, filled in {"REPOSITORY": str(ROOT), "/media/stick": str(top / "stick"), "VERSION": version()}.items():
        text = text.replace(place, filled)
    usual = {name: text for name, text in os.environ.items() if name.startswith(("PIP_", "LANG", "http_", "https_"))}
    if script.is_offline:
        usual.pop("PIP_FIND_LINKS", None)  # Else packages could come from elsewhere than the page says.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}"
    command = [*(OFFLINE if script.is_offline else ()), "bash", "-e", "-u", "-o", "pipefail", "-c", text]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**usual, "PATH": path, "HOME": str(top), "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LONGEST_S,
        check=False,
    )
    return done.stdout.decode("utf-8", "replace") + (f"exit code {done.returncode}\n" if done.returncode else "")
