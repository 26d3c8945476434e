# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The link to the simulated probe: how its process is started, spoken to, and ended."""

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from liteprobe.host.base import programs
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.base.programs import Ended
from liteprobe.host.device.link import sim
from liteprobe.host.device.link.sim import SimLink, SimOptions, build
from liteprobe.sim.drivers.tools.refusals import refusal

# Obeys the contract ("The simulated probe"), with a memory for a bus: 1 us a datagram, a reply held back until
# the time in word 0x100 (ns) has come. Every line that it gets stands in its log.
FAKE = """#!@PYTHON@
import os, select, socket, struct, sys
log = open(os.path.dirname(os.path.abspath(__file__)) + "/log", "a", buffering=1)
log.write(" ".join(sys.argv[1:]) + "\\n")
if "bad" in sys.argv[sys.argv.index("--wire") + 1]:
    print("wire 'bad' is unknown: write loopback", file=sys.stderr); sys.exit(2)
if "crash" in sys.argv[sys.argv.index("--wire") + 1]:
    print("Segmentation fault, say", file=sys.stderr); sys.exit(139)
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 0))
print("listening", server.getsockname()[1], flush=True)
memory, held, now = {}, [], 0
commands = open(0, "rb", buffering=0)  # A buffer would hide a second line from select.
def serve():
    global now, held
    while select.select([server], [], [], 0)[0]:
        data, client = server.recvfrom(65536)
        now += 1000
        writes, reads = data[10], data[11]
        words = list(struct.unpack(">%dI" % (len(data) // 4 - 3), data[12:]))
        if writes:
            base, values, words = words[0], words[1 : 1 + writes], words[1 + writes :]
            memory.update({base + 4 * n: word for n, word in enumerate(values)})
        if reads:
            found = struct.pack(">%dI" % reads, *(memory.get(address, 0) for address in words[1:]))
            reply = data[:8] + bytes([0, 15, reads, 0]) + struct.pack(">I", words[0]) + found
            held.append((reply, client))
    if now >= memory.get(0x100, 0):
        for reply, client in held:
            server.sendto(reply, client)
        held = []
while True:
    ready = select.select([server, 0], [], [])[0]
    serve()
    if 0 not in ready:
        continue
    number, _, line = commands.readline().decode().strip().rpartition("#")[2].partition(" ")
    line = line or number  # The last line, quit, has none.
    log.write(line + "\\n")
    word = line.split(" ")[0]
    if word == "quit":
        break
    if word == "run":
        now += int(line.split()[1])
    serve()
    if word == "inject" and line.endswith("ff"):
        print("#" + number, "error port 0 is shared", flush=True)
    elif word == "link" and line.split()[1] == "7":
        sys.exit(1)
    else:
        print("#" + number, "ok", now, flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    executable = tmp_path / "liteprobe-sim"
    executable.write_text(FAKE.replace("@PYTHON@", sys.executable))
    executable.chmod(executable.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "csr.json").write_text(json.dumps({"csr_registers": {}}))
    return tmp_path


def log_of(folder: Path) -> list[str]:
    return (folder / "log").read_text().splitlines()


def test_options_reach_the_executable(folder: Path) -> None:
    options = SimOptions("cable?delay=1us", truth=Path("t.bin"), pcap=Path("p"), build=folder)
    link = SimLink(options)
    assert link.map_file == folder / "csr.json"
    link.close()
    assert log_of(folder) == ["--port 0 --wire cable?delay=1us --truth t.bin --pcap p", "quit"]


def test_words_and_commands_go_through(folder: Path) -> None:
    link = SimLink(SimOptions(build=folder))
    assert link.write(0x40, [1, 2, 3]).tolist() == [1, 2, 3]
    assert link.now_ns() == 1000
    link.wait(5e-3)
    link.set_link(1, False)
    link.set_link(0, True)
    link.inject(0, bytes.fromhex("55d5"))
    link.sync()
    link.close()
    steps = ["run 2000000", "run 2000000", "run 1000000"]
    first, *log = log_of(folder)[1:]
    assert first == "time"  # Asked for again where an answer is late, as on a busy machine.
    assert [line for line in log if line != "time"] == [
        *steps,
        "link 1 down",
        "link 0 up",
        "inject 0 55d5",
        "sync",
        "quit",
    ]


def test_expected_silence_is_run_through_in_simulated_time(folder: Path) -> None:
    link = SimLink(SimOptions(build=folder))
    link.patience = sim.Patience(timeout_s=0.02, tries=1)
    link.expect_silence(5e-3)
    link.write(0x100, [4_500_000])  # No reply before 4.5 ms.
    assert link.read(0x100).tolist() == [4_500_000]
    assert [line for line in log_of(folder) if line.startswith("run")] == ["run 2000000"] * 2 + ["run 997000"]
    link.close()


def test_no_reply_without_silence_is_an_error(folder: Path) -> None:
    link = SimLink(SimOptions(build=folder))
    link.patience = sim.Patience(timeout_s=0.02, tries=2)
    assert "the simulated probe doesn't answer" in refusal(link.write, 0x100, [4_500_000], error=ProbeError)
    link.close()


def test_wire_that_cannot_be_is_a_usage_error_in_the_simulators_words(folder: Path) -> None:
    assert "wire 'bad' is unknown: write loopback" in refusal(SimLink, SimOptions("bad", build=folder))


def test_simulator_that_ends_at_once_says_what_it_printed(folder: Path) -> None:
    with pytest.raises(ProbeError, match=r"failed \(it ended, exit code 139\): Segmentation fault, say"):
        SimLink(SimOptions("crash", build=folder))


def test_simulator_that_ends_in_between_is_an_error(folder: Path) -> None:
    link = SimLink(SimOptions(build=folder))
    assert "failed (it ended, exit code 1)" in refusal(link.set_link, 7, True, error=ProbeError)
    link.close()


def test_command_that_is_refused_is_an_error(folder: Path) -> None:
    link = SimLink(SimOptions(build=folder))
    assert "refuses 'inject 0 ff': error port 0 is shared" in refusal(link.inject, 0, b"\xff", error=ProbeError)
    link.close()


def test_folder_without_executable_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        ProbeError, match=r"cannot start .*liteprobe-sim \(No such file or directory\): leave build= out of the URL"
    ):
        SimLink(SimOptions(build=tmp_path))


def test_answer_that_an_interrupt_left_behind_is_not_taken_for_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = SimLink(SimOptions(build=folder))
    with monkeypatch.context() as patch:
        patch.setattr(link._process, "_answer", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            link.inject(0, b"\xff")
    link.sync()  # Not refused: that was the command before.
    link.close()


@pytest.mark.parametrize("name", ["write", "flush"])
@pytest.mark.parametrize("is_late", [False, True])
def test_interrupt_while_a_command_is_sent_leaves_the_next_its_own_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_late: bool
) -> None:
    link = SimLink(SimOptions(build=folder))
    stdin = link._process._process.stdin
    method = getattr(stdin, name)

    def interrupted(*arguments: str) -> None:
        if is_late:
            method(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stdin, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            link.inject(0, b"\xff")
    link.sync()
    link.close()


def test_interrupt_behind_an_answer_leaves_the_next_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = SimLink(SimOptions(build=folder))
    answer = link._process._answer

    def interrupted() -> str:
        answer()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(link._process, "_answer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            link.inject(0, b"\xff")
    link.sync()
    link.close()


def test_interrupt_from_the_terminal_does_not_reach_the_process(folder: Path) -> None:
    link = SimLink(SimOptions(build=folder))
    assert os.getsid(link._process._process.pid) != os.getsid(0)
    link.close()


def processes_of(folder: Path) -> list[str]:
    """Return the processes whose command line names ``folder``."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_text().replace("\0", " "))
        except OSError:
            continue
    return [line for line in lines if str(folder / "liteprobe-sim") in line]


def test_closing_ends_the_process_and_closing_twice_is_harmless(folder: Path) -> None:
    link = SimLink(SimOptions(build=folder))
    assert len(processes_of(folder)) == 1
    link.close()
    link.close()
    assert processes_of(folder) == []


def test_script_that_forgets_to_close_leaves_no_process(folder: Path) -> None:
    script = f"""
from pathlib import Path
from liteprobe.host.device.link.sim import SimLink, SimOptions
link = SimLink(SimOptions(build=Path({str(folder)!r})))
raise SystemExit(7)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 7
    assert processes_of(folder) == []
    assert log_of(folder)[-1] == "quit"


def test_simulator_that_prints_much_is_not_blocked(folder: Path) -> None:
    text = (folder / "liteprobe-sim").read_text()
    (folder / "liteprobe-sim").write_text(text.replace("while True:", 'sys.stderr.write("x" * 80 * 5000)\nwhile True:'))
    link = SimLink(SimOptions(build=folder))
    answered = threading.Event()
    threading.Thread(target=lambda: (link.now_ns(), answered.set()), daemon=True).start()
    assert answered.wait(10)
    link.close()


# Building -----------------------------------------------------------------------------------------


def test_build_asks_for_what_the_options_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], **_: object) -> Ended:
        asked.append(command[1:])
        return Ended(0, f"compiling\n{tmp_path}\n", "")

    monkeypatch.setattr(programs, "run", run)
    assert build(SimOptions()) == tmp_path
    assert build(SimOptions(link="shared", with_cpu=False)) == tmp_path
    module = ["-P", "-m", "liteprobe.sim.system.build"]
    assert asked == [[*module, "--link", "own"], [*module, "--link", "shared", "--no-cpu"]]


def test_build_that_fails_shows_the_end_of_what_it_said(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "for number in range(100): print('line', number, file=sys.stderr)"
    command = [sys.executable, "-c", f"import sys\n{said}\nsys.exit(1)"]
    run = programs.run
    monkeypatch.setattr(programs, "run", lambda _, **how: run(command, **how))
    with pytest.raises(ProbeError, match=r"can't be built.*\nline 85\n(.*\n)*line 99$"):
        build(SimOptions())
