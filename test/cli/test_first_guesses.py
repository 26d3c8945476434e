# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Command lines as they are guessed by who knows iperf, tc, TRex, tcpdump: each works, or its answer names what does."""

import argparse
import shlex
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import people
import pytest

from liteprobe.host.base.errors import NoProbeError
from liteprobe.host.cli import main as cli
from liteprobe.host.device.link.url import parse
from liteprobe.sim.drivers.tools.figures import Figure, note, row

Run = Callable[..., tuple[int, str, str]]
PCAPNG = bytes.fromhex(
    "0a0d0d0a 1c000000 4d3c2b1a 01000000 ffffffff ffffffff 1c000000"
)  # The block that each begins with.
RATE, HALF = {"rate_bps": 1e8}, {"share": Fraction(1, 2)}
#: What is typed after ``liteprobe``, and what is right: the values of arguments that it stands for, or what the answer names.
GUESSES: list[tuple[str, dict[str, Any] | str]] = [
    # Lists, ranges, sizes.
    ("train --length 64-67", {"length": [64, 65, 66, 67]}),
    ("train --length 64-1514:500", {"length": [64, 564, 1064]}),
    ("train --length 60,64-66", {"length": [60, 64, 65, 66]}),
    ("train --length 60 --length 1514", {"length": [60, 1514]}),
    ("train --count 10-12", {"count": [10, 11, 12]}),
    ("train --count 1k,10K", {"count": [1000, 10000]}),
    ("train --frame-size 64,128,1518", {"length": [60, 124, 1514]}),
    ("train --frame-size 64 --length 60", "not allowed with argument"),
    ("train --length 1514-64", "write it like 64-1514"),
    ("train --length imix", "liteprobe send --length imix"),
    ("calibrate --frame-size 64,1518", {"length": [60, 1514]}),
    ("send --length 64,1514", {"length": [(64, 64, 0), (1514, 1514, 0)]}),
    ("send --length 64-1514:50 --pps 1k", {"length": [(64, 1514, 50)], "pps": 1000}),
    ("send --frame-size 64-1518 --pps 1kpps", {"length": [(60, 1514, 0)], "pps": 1000}),
    ("send --length 64 --length 128", {"length": [(64, 64, 0), (128, 128, 0)]}),
    ("send --length IMIX", {"length": ["imix"]}),
    ("send --length imix,64", "write it like 512, 64-1514 (at random) or imix"),
    # Given twice.
    ("train --rate 1G --rate 2G", "--rate is given twice, and has one value"),
    ("send --count 5 --count 5", {"count": 5}),
    ("send --count 5 --count 6", "--count is given twice, and has one value"),
    ("train --json a.json --json b.json", "--json is given twice, and has one value"),
    # Units.
    *((f"train --rate {text}", {"rate": RATE}) for text in (
        "100M", "100Mbps", "100mbps", "100Mbit", "100mbit", "100MBIT", "100Mb/s", "100Mbit/s", "100Mbits/s", "100Mbits/sec", "100m",
        "0.1G", "100000000", "1e8", "100000kbit", "100mbpsl1", "'100 Mbit/s'",
    )),
    ("train --rate 97.65625Mibit", {"rate": {"rate_bps": 102_400_000}}),
    ("train --rate 50%", {"rate": HALF}),
    ("send --rate 50%", {"rate": HALF}),
    ("send --share 50%", {"share": Fraction(1, 2)}),
    ("send --share 50", {"share": Fraction(1, 2)}),
    ("send --rate 80kpps", {"rate": {"pps": 8e4}}),
    ("replay x.pcap --rate 50%", {"rate": Fraction(1, 2)}),
    ("train --rate 100MB/s", "octets a second are 8 times as many b/s"),
    *((f"train --length 60 --interval {text}", {"interval": 20_000}) for text in (
        "20us", "20µs", "20μs", "20usec", "20usecs", "0.02ms", "20000ns", "2e4ns",
    )),
    *((f"{command} --interval 10", "'10' has no unit") for command in ("train", "send", "sets x.yaml", "owd --from sim://pair")),
    ("train --gap 10", "'10' has no unit"),
    ("send --duration 10", {"duration": 10e9}),
    ("send --duration 10sec", {"duration": 10e9}),
    ("send --duration 2min", {"duration": 120e9}),
    ("send --duration 10m", "write it like 10s, 100ms, 2h"),
    # VLAN.
    ("train --vlan 4095", {"vlan": [4095]}),
    ("train --vlan 7,100:5", {"vlan": [7, 5 << 13 | 100]}),
    ("train --vlan 7 --vlan 100", {"vlan": [7, 100]}),
    ("train --vlan 5000", "give an id, 0 to 4095"),
    ("train --vlan 4096", "give an id, 0 to 4095"),
    ("train --vlan 100:8", "priority, 0 to 7"),
    # Which probe.
    ("info --probe 192.168.1.50", {"probe": "etherbone://192.168.1.50"}),
    ("info --probe 192.168.1.50:1234", {"probe": "etherbone://192.168.1.50:1234"}),
    ("info --probe fpga.local", {"probe": "etherbone://fpga.local"}),
    ("info --probe localhost", {"probe": "etherbone://localhost"}),
    ("info --probe /dev/ttyUSB0", {"probe": "uart:///dev/ttyUSB0"}),
    ("info --probe /dev/litepcie0", {"probe": "pcie:///dev/litepcie0"}),
    *((f"info --probe {name}", "write it like sim://switch?latency=3us") for name in ("loopback", "sim", "switch?latency=3us")),
    ("owd --from 192.168.1.50 --to 192.168.1.51", {"to": "etherbone://192.168.1.51"}),
    # Commands.
    ("help", {}),
    ("version", {}),
    ("help train", {}),
    ("scan", "'liteprobe discover'"),
    ("list", "'liteprobe discover'"),
    ("ping 192.168.1.50", "'liteprobe info'"),
    ("latency", "'liteprobe train' or 'liteprobe owd'"),
    ("iperf -b 100M", "'liteprobe train'"),
    ("tcpdump -i eth0", "'liteprobe capture'"),
    ("netem delay 10ms", "'liteprobe emulate'"),
    ("play x.pcap", "'liteprobe replay'"),
    ("registers", "'liteprobe regs'"),
    ("boards", "'liteprobe build --help'"),
    ("flash", "'liteprobe load BOARD PRESET'"),
    ("status", "'liteprobe info' or 'liteprobe clock status'"),
    ("trian", "did you mean train"),
    ("build i7", "give one of colorlight_5a_75b"),
    ("build 5a-75", "did you mean colorlight_5a_75"),
    # Names of options.
    ("train --size 64", "--length or --frame-size may be meant"),
    ("train -b 100M", "--rate may be meant"),
    ("send -t 10", "--duration may be meant"),
    ("train -n 10", "--count may be meant"),
    ("train --packets 10", "--count may be meant"),
    ("info --host 192.168.1.50", "--probe may be meant"),
    ("capture -s 96", "--snap may be meant"),
    ("emulate --delay 10ms", "--from-netem may be meant"),
    ("emulate --loss 1%", "--from-netem may be meant"),
    ("replay x.pcap --ports 1", {"transmit": [1]}),
    ("monitor --interval 2 --ports 0-1", {"interval": 2e9, "port": [0, 1]}),
    ("phy sweep --port 1", {"receive": 1}),
    ("clock log --out x.csv --for 60s", {"span": 60e9}),
    ("stop --port 0,1", {"port": [0, 1]}),
    ("train --length 60, 1514", "lists have commas, and no spaces"),
    # netem's words.
    ("emulate --check --from-netem delay 20ms loss 1%", {"from_netem": ["delay", "20ms", "loss", "1%"]}),
    ("emulate --from-netem delay 20ms --netem-back loss 1% --check", {"from_netem": ["delay", "20ms"], "check": True}),
    ("emulate --check --from-netem 'delay 20ms loss 1%'", {"from_netem": ["delay 20ms loss 1%"]}),
    ("emulate --check --from-netem tc qdisc add dev eth0 root netem delay 20ms", {"check": True}),
    ("emulate --check --from-netem rate 10mbit -4", {"from_netem": ["rate", "10mbit", "-4"]}),
    ("emulate delay 20ms", "words of netem come after --from-netem"),
    # Files of another kind.
    ("send office.pcapng", "'liteprobe replay office.pcapng' sends it"),
    ("send x.pcap", "'liteprobe replay x.pcap' sends it"),
    ("sets office.pcapng", "'liteprobe replay office.pcapng' sends it"),
    ("emulate office.pcapng", "'liteprobe replay office.pcapng' sends it"),
    ("capture --read office.pcapng -w y.pcapng", "'liteprobe replay' sends it"),
    ("replay streams.yaml", "a document of 'liteprobe send'"),
    ("send network.yaml", "'liteprobe emulate' takes documents with it"),
    ("emulate --check streams.yaml", "'liteprobe send' takes documents with it"),
    # Filters.
    ("capture --filter tcp.port==80", "write 'tcp port 80'"),
    ("capture --filter 'ip.addr == 10.0.0.1 && udp' -w y.pcapng", "write 'host 10.0.0.1 and udp'"),
    ("capture --filter http -w y.pcapng", "write 'tcp port 80'"),
    ("capture --host-filter --filter 'tcp.flags.syn == 1' -w y.pcapng", "Wireshark's display filters"),
    ("capture -w y.pcapng udp port 53", "--filter 'udp port 53'"),
]  # fmt: skip


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The URLs of probes that were opened: none answers, so a command that goes there is taken. Files are in a folder."""
    found: list[str] = []

    def open_link(url: str) -> None:
        parse(url)
        found.append(url)
        raise NoProbeError("no probe is here")

    monkeypatch.setattr("liteprobe.host.probe.open_link", open_link)
    monkeypatch.chdir(tmp_path)
    people.write_files(tmp_path)
    return found


def fault(line: str, right: dict[str, Any] | str, run: Run) -> str:
    """Return what is wrong with what becomes of a command line, or ""."""
    words = shlex.split(line)
    code, out, err = run(*words)
    if isinstance(right, str):
        is_right = code == 2 and right in err and err.count("\n") == 1
        return "" if is_right else f"{line}: {code} {out or err}, not: {right}"
    if code not in (0, 3):
        return f"{line}: {code} {err}"
    args = cli.make_parser(words[0]).parse_args(words) if right else None
    found = {name: getattr(args, name) for name in right}
    return "" if found == right else f"{line}: {found}, not {right}"


@row("people", is_test=True)
def test_guesses(run: Run, asked: list[str]) -> Iterator[Figure]:
    """First guesses of users: each works, or the answer names what does."""
    faults = [found for line, right in GUESSES if (found := fault(line, right, run))]
    note(*faults)
    yield Figure("guesses", len(GUESSES), "command lines", 60, is_least=True)
    yield Figure("guesses_without_an_answer", len(faults), "command lines", 0)


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Return the parsers of a parser's commands, and of their actions."""
    for action in parser._actions:
        for one in action.choices.values() if isinstance(action, argparse._SubParsersAction) else ():
            yield one
            yield from parsers(one)


PARSERS = {one.prog: one for one in parsers(cli.make_parser())}
#: Examples that are read and not run: they build, serve, install, look at the network, or take what another makes.
READ = (
    "build",
    "load",
    "extcap",
    "firmware build",
    "agent",
    "station",
    "demo",
    "query",
    "doctor",
    "discover",
    "clock plot",
    "serve",
    "otg",
    "sweep",
    "report",
)


@pytest.mark.parametrize("name", PARSERS)
def test_each_help_has_three_examples_which_are_taken_and_shows_the_defaults(
    run: Run, asked: list[str], name: str
) -> None:
    words = name.split()[1:]
    code, out, _ = run(*words, "--help")
    examples = [line.strip() for line in out.partition("\nexamples:\n")[2].splitlines()]
    assert code == 0 and len(examples) == 3 and all(one.startswith(f"{name} ") or one == name for one in examples)
    for one in examples:
        line = one.removeprefix("liteprobe ")
        if line.startswith(READ):
            cli.make_parser().parse_args(shlex.split(line))
        else:
            assert fault(line, {}, run) == ""
    told = (None, False, [], argparse.SUPPRESS)
    untold = [one.dest for one in PARSERS[name]._actions if one.default not in told and "default" not in str(one.help)]
    assert untold == []
