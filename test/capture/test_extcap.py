# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The probe in Wireshark's list of interfaces: installed, listed, captured from by tshark, stopped, and what it says of errors."""

import argparse
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scapy.utils import RawPcapNgReader

from liteprobe.host.base.errors import UsageError
from liteprobe.host.capture.request import CaptureRequest
from liteprobe.host.cli import main as cli
from liteprobe.host.cli.commands import extcap
from liteprobe.host.packets.filter.expression import fit_trigger, parse
from liteprobe.sim.drivers.capture.blocks import Captured, blocks_of
from liteprobe.sim.drivers.frames import stacks
from liteprobe.sim.drivers.tools.figures import Figure, Size, note, row

Run = Callable[..., tuple[int, str, str]]
FIRST = 1_800_000_000_000_000_000
FRAMES = stacks.stacks()
PATIENCE_S, SEED = 60, 20261127
needs_tshark = pytest.mark.skipif(not shutil.which("tshark"), reason="tshark isn't installed")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of nobody, in which nothing is installed."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "LITEPROBE_PROBE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def recording(path: Path) -> Path:
    """Write a recording of all stacks, every third of them of port 1."""
    frames = [
        Captured(FIRST + 1000 * at, frame, with_header=True, port=int(at % 3 == 0)) for at, frame in enumerate(FRAMES)
    ]
    blocks_of(frames).tofile(path)
    return path


def parsed(*words: str) -> argparse.Namespace:
    """Return the arguments of a command line."""
    return cli.make_parser("extcap").parse_args(["extcap", *words])


def frames_of(path: Path) -> list[tuple[int, bytes, int]]:
    """Return stamp, octets and length of each frame of a pcapng."""
    with RawPcapNgReader(str(path)) as reader:
        return [(meta.tshigh << 32 | meta.tslow, octets, meta.wirelen) for octets, meta in reader]


def tshark(*arguments: object) -> "subprocess.Popen[bytes]":
    """Start tshark with the interface, and a file of all it captures."""
    words = ["tshark", "-q", "-i", "liteprobe", *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


# What Wireshark asks ------------------------------------------------------------------------------


def test_wireshark_is_answered(run: Run, home: Path) -> None:
    of = ("extcap", "--extcap-interface", "liteprobe")
    assert "interface {value=liteprobe}{display=" in run("extcap", "--extcap-interfaces", "--extcap-version=4.4")[1]
    assert run(*of, "--extcap-dlts")[1] == "dlt {number=1}{name=EN10MB}{display=Ethernet}\n"
    fields = run(*of, "--extcap-config")[1]
    calls = [line.partition("{call=")[2].partition("}")[0] for line in fields.splitlines() if line.startswith("arg ")]
    assert calls == ["--probe", "--port", "--filter", "--snap", "--utc", "--read"]
    assert fields.count("{arg=1}") == 3
    assert run(*of, "--extcap-capture-filter", "udp port 53") == (0, "", "")
    code, out, _ = run(*of, "--extcap-capture-filter", "udp.port == 53")
    assert code == 0 and "udp port 53" in out  # What it prints is the reason.


def test_it_says_what_is_wrong(run: Run, home: Path) -> None:
    assert run("extcap")[0] == 2 and "--install" in run("extcap")[2]
    assert "give --extcap-interface liteprobe" in run("extcap", "--extcap-interface", "eth0", "--extcap-dlts")[2]
    assert "give --fifo FILE" in run("extcap", "--extcap-interface", "liteprobe", "--capture")[2]
    assert "give one of them" in run("extcap", "--install", "--uninstall")[2]


def test_it_is_installed_and_deleted_and_nobody_elses_program_is_touched(run: Run, home: Path) -> None:
    paths = [home / ".local/lib/wireshark/extcap/liteprobe", home / ".config/wireshark/extcap/liteprobe"]
    code, out, _ = run("extcap", "--install", "--probe", "192.168.1.50")
    assert code == 0 and all(str(path) in out and os.access(path, os.X_OK) for path in paths)
    asked = [paths[0], "--extcap-interface", "liteprobe", "--extcap-config"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert "{default=etherbone://192.168.1.50}" in said
    assert run("extcap", "--uninstall")[0] == 0 and not any(path.exists() for path in paths)
    paths[1].write_text("somebody's")
    code, _, err = run("extcap", "--install")
    assert code == 1 and f"{paths[1]} is not LiteProbe's" in err
    assert paths[1].read_text() == "somebody's" and not paths[0].exists()


@pytest.mark.parametrize("ports", [(), (2,), (0, 1, 2), (-1,)])
def test_ports_that_no_probe_has_are_refused(ports: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="ports of a probe are 0 and 1"):
        CaptureRequest("f.pcapng", ports=ports)


def test_a_probe_filters_by_its_port() -> None:
    right = {(None, 2)}
    assert set(parse("").fit(probe_ports=CaptureRequest("f.pcapng", ports=(1,)).probe_ports).marks) == right
    assert {mark[1] for mark in fit_trigger(parse("udp"), parse("host 10.0.0.1"), 1, probe_ports=2).marks} == {2}


# By tshark ----------------------------------------------------------------------------------------


TERMS = ("udp", "tcp", "ip6", "arp", "vlan", "greater 200", "less 100", "icmp or icmp6", "not udp")


@needs_tshark
@row("people", is_test=True)
def test_extcap(run: Run, home: Path, size: Size) -> Iterator[Figure]:
    """Wireshark's interface: listed, and with fields drawn from a seed its frames are those of ``capture``."""
    blocks, by_tshark, by_us = recording(home / "r.blocks"), home / "t.pcapng", home / "c.pcapng"
    run("extcap", "--install")
    listed = subprocess.run(["tshark", "-D"], capture_output=True, text=True, check=True).stdout
    yield Figure("listed", listed.count("liteprobe (LiteProbe, a network tester)"), "times", 1, is_least=True)
    draw, frames, faults = random.Random(SEED), 0, 0
    drawn = [("", "", "")] + [
        (draw.choice(["", *TERMS]), draw.choice(["", *TERMS]), draw.choice("01 ").strip())
        for _ in range(size.of(2, 12))
    ]
    for of_line, of_field, port in drawn:
        both = " and ".join(f"({one})" for one in (of_line, of_field) if one)
        options = ["--filter", both] * bool(both) + ["--port", port] * bool(port)
        assert run("capture", "--read", str(blocks), "-w", str(by_us), *options)[0] == 0
        fields = ["-f", of_line] * bool(of_line) + ["-o", f"extcap.liteprobe.filter:{of_field}"] * bool(of_field)
        fields += ["-o", f"extcap.liteprobe.port:{port}"] * bool(port)
        done = tshark(*fields, "-o", f"extcap.liteprobe.read:{blocks}", "-w", by_tshark)
        said = done.communicate(timeout=PATIENCE_S)[1]
        right = frames_of(by_us)
        is_right = done.returncode == 0 and frames_of(by_tshark) == right and b"Error" not in said
        frames, faults = frames + len(right), faults + (not is_right)
        if not is_right:
            note(f"{(of_line, of_field, port)}: {said!r}")
    yield Figure("captures", len(drawn), "captures", size.of(3, 13), is_least=True)
    yield Figure("frames", frames, "frames", len(FRAMES), is_least=True)
    yield Figure("captures_other_than_ours", faults, "captures", 0)


@needs_tshark
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_with_tshark_on_a_line_that_is_quiet(run: Run, home: Path, number: int) -> None:
    blocks, pipe, file = recording(home / "r.blocks"), home / "pipe", home / "t.pcapng"
    os.mkfifo(pipe)
    run("extcap", "--install")
    started = tshark("-o", f"extcap.liteprobe.read:{pipe}", "-w", file)
    with pipe.open("wb") as writer:  # Until the reader is there.
        writer.write(blocks.read_bytes())
        writer.flush()
        for _ in range(20 * PATIENCE_S):
            if file.exists() and file.stat().st_size > blocks.stat().st_size / 2:
                break
            time.sleep(0.05)
        started.send_signal(number)
        started.communicate(timeout=PATIENCE_S)
        with pytest.raises(BrokenPipeError):  # The program has ended, too: nobody reads any more.
            for _ in range(20 * PATIENCE_S):
                os.write(writer.fileno(), bytes(1))
                time.sleep(0.05)
    run("capture", "--read", str(blocks), "-w", str(home / "c.pcapng"))
    found = frames_of(file)
    assert found == frames_of(home / "c.pcapng")[: len(found)] and len(found) > len(FRAMES) / 2


@needs_tshark
def test_tshark_says_why_nothing_is_captured(run: Run, home: Path) -> None:
    run("extcap", "--install")
    done = tshark("-o", "extcap.liteprobe.read:/no/such/recording")
    assert b"can't read /no/such/recording" in done.communicate(timeout=PATIENCE_S)[1]


def test_fields_reach_the_capture(home: Path) -> None:
    given = ("--filter=udp", "--snap=96", "--port=1", "--utc", "--extcap-capture-filter=ip6")
    args = extcap._wanted(parsed(*given), "f")
    found = (args.filter, args.snap, args.port, args.utc, str(args.write))
    assert found == ("(udp) and (ip6)", 96, [1], "probe", "f")
    unset = extcap._wanted(parsed("--port=all", "--filter=", "--snap=65535", "--read="), "f")
    assert (unset.port, unset.filter, unset.snap, unset.read, unset.utc) == (None,) * 5
