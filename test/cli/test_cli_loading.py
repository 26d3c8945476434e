# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The command line loads nothing slow before it knows what is to be done; a signal that comes while a module is imported."""

import subprocess
import sys
from pathlib import Path

import pytest
import shtab

from liteprobe.cores.formats import ClockMode
from liteprobe.host.base.defaults import KEEPS
from liteprobe.host.capture.request import Keep
from liteprobe.host.cli import main as cli
from liteprobe.host.cli.commands import clock, completion, firmware, monitor
from liteprobe.host.measure.monitor import NAMES

SLOW = (
    "numpy",
    "scipy",
    "matplotlib",
    "pyarrow",
    "rich",
    "prometheus_client",
    "serial",
    "multiprocessing",
    "subprocess",
    "logging",
    "shtab",
)
LISTS = """
import sys
from liteprobe.host.cli import __main__ as program
sys.argv[1:] = {arguments!r}
code = program.program()
print("loaded:", *sorted({{name.partition(".")[0] for name in sys.modules}}), file=sys.stderr)
print("commands:", *sorted(name for name in sys.modules if name.startswith("liteprobe.")), file=sys.stderr)
sys.exit(code)
"""
EACH = f"""
import sys
from liteprobe.host.cli import main as cli
codes = []
for words in {{lines!r}}:
    try:
        codes.append(cli.main(words))
    except SystemExit as end:
        codes.append(end.code)
slow = {{{{name.partition(".")[0] for name in sys.modules}}}} & set({SLOW!r})
print("slow:", *sorted(slow), "".join(map(str, codes)), file=sys.stderr)
"""


def loaded(*arguments: str) -> tuple[int, set[str], set[str]]:
    """Return the exit code of a command line, the packages that it loaded, and the modules of LiteProbe."""
    script = LISTS.format(arguments=list(arguments))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    packages, modules = (set(line.split()[1:]) for line in done.stderr.splitlines()[-2:])
    return done.returncode, packages, modules


def test_what_is_answered_from_the_command_line_alone_loads_nothing_slow() -> None:
    """One after the other in one program, where they leave what each loads."""
    lines = [
        ["--help"],
        ["--version"],
        ["trian"],
        ["train", "--lenght", "60"],
        *([name, "--help"] for name in cli.COMMANDS),
    ]
    answered = subprocess.run(
        [sys.executable, "-c", EACH.format(lines=lines)], capture_output=True, text=True, check=False
    )
    *slow, codes = answered.stderr.splitlines()[-1].split()
    assert (slow, codes) == (["slow:"], "0022" + "0" * len(cli.COMMANDS))


def test_completion_is_made_without_anything_slow_and_knows_every_option() -> None:
    code, packages, _ = loaded("completion", "bash")
    assert (code, packages & (set(SLOW) - {"shtab", "logging"})) == (0, set())
    script = shtab.complete(cli.make_parser(), "bash")
    assert (
        all(f"_shtab_liteprobe_{name.replace('-', '_')}_option_strings=" in script for name in cli.COMMANDS)
        and "--known-delay" in script
    )


def test_a_command_loads_no_other_command() -> None:
    _, packages, modules = loaded("regs", "read")
    others = {
        name
        for name in modules
        if name.startswith(("liteprobe.host.probe", "liteprobe.host.suites", "liteprobe.host.run"))
    }
    assert "liteprobe.host.cli.commands.regs" in modules and others == set()
    assert packages & {"scipy", "matplotlib", "pyarrow", "prometheus_client", "allantools"} == set()


def test_words_of_the_command_line_are_those_that_commands_know() -> None:
    assert [Keep[word.upper()] for word in KEEPS] == list(Keep)
    assert {word.replace("-", "_").upper() for word in clock.MODES} == {mode.name for mode in ClockMode}
    assert list(completion.SHELLS) == shtab.SUPPORTED_SHELLS
    assert tuple(firmware.ACTIONS) == ("build", "load", "pack", "flash", "state", "console")
    assert tuple(NAMES.values()) == monitor.KINDS
    assert set(clock.ACTIONS) == {"status", "log", "plot", "set", "discipline"}


# Signals while a module is imported ---------------------------------------------------------------


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
