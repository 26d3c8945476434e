# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the commands that README and the pages show, and compares what they print with what is known.

``console`` blocks of a page have their output on the page. All others have theirs in transcripts.yaml, which says how each is run:
in a folder of its own, at a desk where boards, toolchain and probes are simulated, or as a script that uses git and the network.

As a program, ``./run python tools/transcripts.py PAGE...`` writes what the console blocks of pages print now into them (a block
that begins with ``switch (`` is the end of what ``./run demo`` prints), and ``./run python tools/transcripts.py --session NAME...``
prints what the commands of a session print now.
"""

import doctest
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from liteprobe.sim.drivers.desk.desk import Desk, Setting

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
DEMO = re.compile(r"^```\n(switch \(.*?)^```$", re.MULTILINE | re.DOTALL)
YAML = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HOW = {
    "here": "run, --full",
    "toolchain": "run, --full: stand-ins for toolchain and board",
    "probe": "run, --full: a simulated probe for a board",
    "alone": "run, --full: in a network of its own, with a simulated probe",
    "stopped": "run, --full: until Ctrl-C",
}
LOCKED = ("colorlight_i5", "colorlight_i9")  # Shipped with a write-protected flash.
#: No network but this machine itself.
OFFLINE = ("unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
LONGEST_S = 3600
FRAMES = 200
#: Files of the reader's own in the pages' commands: captures of small UDP datagrams.
CAPTURES = ("a.pcap", "office.pcap", "office.pcapng", "lan.pcap", "uplink.pcap", "east.pcap", "west.pcap")


@dataclass(frozen=True)
class Step:
    """A command of a page, and what it prints; "..." stands for any text, and lines with ">" are what the loader was asked.

    Attributes
    ----------
    command : str, as it stands on the page; in a session without ``./run``.
    said : str
    how : str, a key of HOW.
    typed : str, what is run, where the page has something for the reader's own; "": the command as it stands.
    also : tuple of str, commands of pages that are this one, with something for the reader's own.
    needs : tuple of str, commands that run before it in the same folder.
    setting : the probe on the desk; None: there is none.
    board : str, the board on the JTAG cable from now on; "": as before.
    image : str, register map for whose gateware firmware has been built before; "": none.
    files : dict of name to the page whose first YAML block it is, or to the file that it is a copy of; written before.
    until : str, Ctrl-C comes once this was printed; "": it ends by itself.
    input : str, file that comes on stdin; "": nothing does.
    is_alone : bool, run in a network of its own, in which 127.0.0.1 is a probe.
    """

    command: str
    said: str
    how: str = "here"
    typed: str = ""
    also: Sequence[str] = ()
    needs: Sequence[str] = ()
    setting: Setting | None = None
    board: str = ""
    image: str = ""
    files: dict[str, str] = field(default_factory=dict)
    until: str = ""
    input: str = ""
    is_alone: bool = False

    def is_said(self, printed: str) -> bool:
        """Return whether the command printed what it is known to print."""
        return is_alike(self.said, printed)


@dataclass(frozen=True)
class Script:
    """A block of a page that is run as a script.

    Attributes
    ----------
    page : str, path from the top.
    first : str, what its first line begins with.
    folder : str, where it is run; those of one folder follow one another in it.
    said : str, what it prints.
    before : str, lines of the page's prose, or of the one before, that are typed first.
    is_offline : bool, whether it is run without a network.
    never : str, what it must not print; "": nothing is forbidden.
    """

    page: str
    first: str
    folder: str
    said: str
    before: str = ""
    is_offline: bool = False
    never: str = ""

    @property
    def block(self) -> str:
        """The text of the block, as it stands on its page."""
        found = [text for text in FENCE.findall(_read(self.page)) if text.startswith(self.first)]
        if len(found) != 1:
            raise ValueError(f"{self.page} has {len(found)} blocks that begin with '{self.first}'")
        return str(found[0])

    def is_said(self, printed: str) -> bool:
        """Return whether the script printed what it is known to print."""
        return is_alike(self.said.replace("{version}", version()), printed) and not (
            self.never and self.never in printed
        )


def _read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def _steps(table: list[dict[str, Any]]) -> tuple[Step, ...]:
    def setting(one: dict[str, Any]) -> Setting | None:
        given = one.get("setting")
        return None if given is None else Setting(**{**given, "play": tuple(given.get("play", ()))})

    return tuple(Step(**{**one, "setting": setting(one)}) for one in table)


_TABLES: dict[str, Any] = yaml.safe_load(_read("tools/transcripts.yaml"))
#: Commands that a test runs each in a folder of its own; those of SLOW wait for ``--full``.
QUICK = {step.command: step for step in _steps(_TABLES["quick"])}
SLOW = {step.command: step for step in _steps(_TABLES["slow"])}
#: Commands that follow one another at the desk, by the name of what they are.
SESSIONS = {name: _steps(table) for name, table in _TABLES["sessions"].items()}
SCRIPTS = tuple(Script(**one) for one in _TABLES["scripts"])
#: Commands of sessions that no page has as they stand there.
ELSEWHERE = frozenset(_TABLES["elsewhere"])
#: Which step each command of a page is, in the form of `normal`.
AT_DESK = {text: step for steps in SESSIONS.values() for step in steps for text in (step.command, *step.also)}
AT_DESK |= {text: AT_DESK[filled] for text, filled in _TABLES["filled"].items()}


def normal(text: str) -> str:
    """Return a command as ``liteprobe`` gets it: ``./run liteprobe``, ``./run`` before ``build``, and spaces left out."""
    return re.sub(r"^\./run (?:liteprobe )?", "liteprobe ", " ".join(text.split()))


#: A line that says how far something is, printed each second where nobody looks.
MEANWHILE = re.compile(r"[\d.,]+ (s|ms|µs)   \w")


def plain(text: str) -> str:
    """Return a text without blank lines, lines of how far something is, and spaces at the ends of lines."""
    kept = (line for line in text.splitlines() if line.strip() and not MEANWHILE.match(line))
    return "".join(f"{line.rstrip()}\n" for line in kept)


def is_alike(known: str, printed: str) -> bool:
    """Return whether a text is the known one, where "..." stands for any text."""
    return doctest.OutputChecker().check_output(plain(known), plain(printed), doctest.ELLIPSIS)


def version() -> str:
    """Return the version of the package."""
    return str(tomllib.loads(_read("pyproject.toml"))["project"]["version"])


# Commands in a folder -----------------------------------------------------------------------------


def words_of(command: str) -> list[str]:
    """Return a command of a page as it can be run here."""
    words = shlex.split(command)
    if words[0] == "tshark":
        return words
    if words[:2] == ["./run", "help"]:
        return [str(ROOT / "run"), *words[1:]]
    rest = words[1:] if words[0] == "./run" else words
    assert rest[0] in ("liteprobe", "python"), command
    return [sys.executable, *(["-m", "liteprobe.host.cli"] if rest[0] == "liteprobe" else []), *rest[1:]]


def printed(command: str, folder: Path) -> str:
    """Run a command in ``folder``, joined by pipes where it is; return what it printed, or why it refused.

    What goes to stderr beside the output isn't shown: a first build says there what it does. The folder has a link to the
    documentation and its examples, as a clone has it, unless it has a copy.
    """
    docs = folder / "docs"
    if not docs.exists():
        docs.symlink_to(ROOT / "docs")
    environment = {**os.environ, "LITEPROBE_BUILD": str(ROOT / "build"), "NO_COLOR": "1"}
    output = b""
    for part in command.split(" | "):
        done = subprocess.run(
            words_of(part), cwd=folder, env=environment, input=output, capture_output=True, check=False
        )
        output, said = done.stdout, done.stderr.decode()
        assert done.returncode == 0 or (done.returncode == 2 and not output), said
    return output.decode() or said


def run(step: Step, folder: Path) -> str:
    """Run a command of QUICK or SLOW in ``folder``, after those that it needs; return what it printed."""
    prepare(folder)
    for before in step.needs:
        printed(before, folder)
    return printed(step.command, folder)


def datagram(number: int) -> bytes:
    """Return an Ethernet frame with a DNS query's ports; its octets count with ``number``."""
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 46, number, 0, 64, 17, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
    words = sum(struct.unpack("!10H", head))
    check = ~((words & 0xFFFF) + (words >> 16)) & 0xFFFF
    udp = struct.pack("!HHHH", 40000, 53, 26, 0) + bytes([number & 0xFF]) * 18
    return bytes.fromhex("020000000002020000000001 0800") + head[:10] + struct.pack("!H", check) + head[12:] + udp


def prepare(folder: Path) -> None:
    """Write the files that the pages take for granted into ``folder``: captures, and the documents that the pages show."""
    records = b"".join(struct.pack("<IIII", 0, 2000 * n, 60, 60) + datagram(n) for n in range(FRAMES))
    for name in CAPTURES:  # A pcap with nanoseconds, whatever the name says.
        (folder / name).write_bytes(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1) + records)
    for name, page in (
        ("line.yaml", "sets"),
        ("sets.yaml", "sets"),
        ("services.yaml", "y1564"),
        ("plan.yaml", "experiment"),
        ("network.yaml", "simulation"),
    ):
        (folder / name).write_text(YAML.findall(_read(f"docs/{page}.md"))[0], encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "examples", folder / "docs" / "examples")


def renewed(page: str) -> str:
    """Return a page with what its commands print now."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)

        def block(found: re.Match[str]) -> str:
            text = COMMAND.sub(lambda part: f"$ {part[1]}\n{plain(printed(part[1], here))}", found[1])
            return f"```console\n{text}```"

        page = BLOCK.sub(block, page)
        if not DEMO.search(page):
            return page
        shown = printed("./run liteprobe demo", here)
        shown = re.sub(r"in \d+ s\. Report: .*", "in ... s. Report: build/demo/report.html", shown)
        shown = "\n".join(line.rstrip() for line in shown[shown.index("\nswitch (") + 1 :].splitlines()) + "\n"
        return DEMO.sub(lambda _: f"```\n{shown}```", page)


# Commands at the desk -----------------------------------------------------------------------------


def session(name: str, folder: Path) -> Iterator[tuple[Step, str]]:
    """Run the commands of a session in a folder, and yield each with what it printed, and what the loader was asked."""
    with Desk(folder) as desk, ExitStack() as probe:
        prepare(desk.work)
        shutil.copytree(ROOT / "docs" / "labs", desk.work / "docs" / "labs")
        (desk.work / "build").mkdir()
        setting = None
        for step in SESSIONS[name]:
            if step.board:
                desk.put_board(step.board, step.board in LOCKED)
            if step.image:
                desk.put_firmware(step.image)
            for file, source in step.files.items():
                text = _read(source)
                (desk.work / file).write_text(
                    YAML.findall(text)[0] if source.endswith(".md") else text, encoding="utf-8"
                )
            if step.setting != setting:  # Else it is the same probe, and goes on.
                probe.close()
                setting = step.setting
                if setting:
                    probe.enter_context(desk.probe(setting))
            said = desk.run(step.typed or step.command, step.until, step.input, step.is_alone)
            yield step, plain(said + "".join(f"> {line}\n" for line in desk.asked()))


# Blocks as scripts --------------------------------------------------------------------------------


def lines_of(page: str) -> set[str]:
    """Return the lines of a page that are run in a script, without comments."""
    blocks = [script.block for script in SCRIPTS if script.page == page]
    return {line.partition(" #")[0].strip() for text in blocks for line in text.splitlines()}


def has_offline() -> bool:
    """Return whether a script can be run without a network here."""
    return bool(shutil.which("unshare")) and subprocess.run([*OFFLINE, "true"], check=False, stderr=-3).returncode == 0


def run_script(script: Script, top: Path) -> str:
    """Run a script below the folder ``top``; return what it printed, and its exit code where that isn't 0.

    What stands for something of the reader's own is filled in: REPOSITORY by this clone, of which git gives what is committed,
    /media/stick by a folder, VERSION by that of pyproject.toml.
    """
    folder = top / script.folder
    if folder.name == "liteprobe" and not folder.exists():  # "In a clone."
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    folder.mkdir(parents=True, exist_ok=True)
    (top / "stick").mkdir(exist_ok=True)
    text = script.before + script.block
    for place, filled in {"REPOSITORY": str(ROOT), "/media/stick": str(top / "stick"), "VERSION": version()}.items():
        text = text.replace(place, filled)
    usual = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "LANG", "http_", "https_"))}
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


def main(arguments: Sequence[str]) -> None:
    """Renew pages, or print what sessions print now."""
    if arguments[:1] != ["--session"]:
        for path in map(Path, arguments):
            path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")
        return
    for name in arguments[1:] or SESSIONS:
        with tempfile.TemporaryDirectory() as folder:
            for step, said in session(name, Path(folder)):
                print(
                    f"{'same ' if step.is_said(said) else 'OTHER'} $ {step.typed or step.command}\n{said}", flush=True
                )


if __name__ == "__main__":
    main(sys.argv[1:])
