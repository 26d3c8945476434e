# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A signal that comes while a module is imported, where foreign code makes another exception of it, or while it is held back."""

import subprocess
import sys
from pathlib import Path

import pytest

SIGNALLED = "import os, signal; os.kill(os.getpid(), signal.SIG{name})"

MODULES = {  # What Python or foreign code does to an exception there.
    "class": "class Attribute:\n    def __set_name__(self, *_):\n        {signalled}\nclass Owner:\n    a = Attribute()\n",
    "swallowed": "try:\n    {signalled}\nexcept BaseException:\n    pass\n",
    "turned": "try:\n    {signalled}\nexcept BaseException as error:\n    raise ImportError('no such library') from error\n",
    "destructor": "class Dying:\n    def __del__(self):\n        {signalled}\nDying()\n",
}
PROGRAM = """
import sys
from liteprobe.host.base import interrupt
from liteprobe.host.cli import __main__, main
sys.path.insert(0, sys.argv[1])
def imports(_):
    import signalled
    import time
    time.sleep(10)
def runs(_):
    import pathlib
    exec(pathlib.Path(sys.argv[1], "signalled.py").read_text(), {})
    import time
    time.sleep(10)
main.main = imports if sys.argv[2] == "imported" else runs
main.main.__defaults__ = (None,)
sys.exit(__main__.program())
"""


@pytest.mark.parametrize("how", ["imported", "run"])
@pytest.mark.parametrize(("name", "code"), [("INT", 130), ("TERM", 143)])
@pytest.mark.parametrize("module", MODULES)
def test_signal_is_one_line_and_its_exit_code(tmp_path: Path, module: str, name: str, code: int, how: str) -> None:
    if how == "run" and module == "swallowed":
        pytest.skip("code that runs may swallow what it likes")
    (tmp_path / "signalled.py").write_text(MODULES[module].format(signalled=SIGNALLED.format(name=name)))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), how], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (code, f"liteprobe: {'interrupted' if name == 'INT' else 'terminated'}\n")


HELD = """
import os, signal, sys, threading, time
from liteprobe.host.base import interrupt
from liteprobe.host.cli import __main__, main
def runs(_):
    threading.Thread(target=time.sleep, args=(10,), daemon=True).start()
    with interrupt.held():
        {signalled}
        time.sleep(0.2)
        print("whole", flush=True)
    time.sleep(10)
main.main = runs
main.main.__defaults__ = (None,)
sys.exit(__main__.program())
"""


def test_held_block_is_whole_though_another_thread_takes_the_signal() -> None:
    code = HELD.format(signalled=SIGNALLED.format(name="INT"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "whole\n", "liteprobe: interrupted\n")
