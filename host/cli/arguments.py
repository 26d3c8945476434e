# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments that several commands share."""

import argparse
import difflib
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from liteprobe.host.base.errors import RangeError, UsageError
from liteprobe.host.base.output import STDOUT
from liteprobe.host.base.probe_url import full_url
from liteprobe.host.base.text import folded, visible
from liteprobe.host.cli.values import duration_ns, output, output_or_stdout, pace, time_ns, whole

if TYPE_CHECKING:
    from liteprobe.host.probe import Probe

PROBE_VARIABLE = "LITEPROBE_PROBE"
DEFAULT_PROBE = "sim://loopback"
INPUTS = ("map", "read", "calibration", "streams", "sets", "network", "files", "resume", "plan")
_SENT = "what is sent"
PLACED = {
    "streams": _SENT,
    "sets": _SENT,
    "network": "the network",
    "files": "what is replayed",
    "plan": "the plan",
}  # No options.
DATA = ("json", "jsonl", "csv")
OUTPUTS = (
    *DATA, "report", "markdown", "junit", "write", "headers", "blocks", "log", "save_calibration", "capture", "trials",
)  # fmt: skip
EVERY_S = 1.0  # From line to line, where nobody looks.
MUCH = 0.12  # By which one word is more like what was typed than another.


#: Commands of other tools, and those here that do it.
COMMANDS_OF_OTHERS = {
    **dict.fromkeys(("scan", "find", "search", "devices", "probes"), "discover"),
    **dict.fromkeys(("list", "ls"), "discover info build_--help"),
    "ping": "info discover",
    "boards": "build_--help",
    "status": "info clock_status",
    **dict.fromkeys(("ports", "link", "links", "phys", "ethtool"), "phy info"),
    **dict.fromkeys(("iperf", "iperf3", "test", "measure", "run"), "train send"),
    **dict.fromkeys(("throughput", "rfc-2544", "benchmark", "rfc8219", "rfc9004", "rfc2889", "mlrsearch"), "rfc2544"),
    **dict.fromkeys(("sla", "service", "services", "y.1564", "ethersam", "policing"), "y1564"),
    **dict.fromkeys(("ber", "prbs", "bit-errors"), "bert"),
    **dict.fromkeys(("endurance", "stability", "burn-in"), "soak"),
    **dict.fromkeys(("latency", "delay"), "train owd"),
    **dict.fromkeys(("mesh", "fleet", "owping", "pscheduler", "plan"), "experiment owd"),
    **dict.fromkeys(("stream", "streams", "traffic", "generate", "tx", "start", "trex", "pktgen"), "send"),
    **dict.fromkeys(("play", "tcpreplay"), "replay"),
    **dict.fromkeys(("netem", "impair", "tc", "network"), "emulate"),
    **dict.fromkeys(("tcpdump", "sniff", "dump", "record", "pcap", "wireshark", "tshark", "rx"), "capture"),
    **dict.fromkeys(("watch", "top", "stats", "show", "metrics"), "monitor"),
    **dict.fromkeys(("loopback", "calibration"), "calibrate"),
    **dict.fromkeys(("flash", "program", "install", "update"), "load_BOARD_PRESET build_BOARD_--load firmware_flash"),
    **dict.fromkeys(("register", "registers", "read", "write", "csr", "reg"), "regs"),
    **dict.fromkeys(("check", "setup", "diagnose"), "doctor"),
    **dict.fromkeys(("pps", "time", "sync", "ptp", "gps"), "clock"),
    **dict.fromkeys(("quit", "abort", "kill", "end"), "stop"),
    **dict.fromkeys(("selftest", "self-test", "bringup"), "bring-up"),
    **dict.fromkeys(("simulate", "sim", "simulation"), "demo train_--probe_sim://loopback"),
}
#: Options of other tools, and those here that do it, where a command has them.
OF_OTHERS = {
    **dict.fromkeys(("--size", "--packet-size", "--pkt-size", "--len", "-l"), "--length --frame-size"),
    **dict.fromkeys(("--time", "--seconds", "-t"), "--duration"),
    **dict.fromkeys(("--bandwidth", "--bitrate", "--speed", "--bps", "-b", "-m"), "--rate"),
    **dict.fromkeys(("--packets", "--frames", "--number", "--num", "-n", "-c"), "--count"),
    **dict.fromkeys(("--percent", "--load", "--utilization", "--utilisation"), "--rate"),
    **dict.fromkeys(("--parallel", "-P"), "--burst"),
    **dict.fromkeys(("--host", "--ip", "--address", "--device", "--dev", "--url", "--target", "-H"), "--probe"),
    **dict.fromkeys(("--interface", "--iface", "-i", "-p", "--tx"), "--transmit --port --probe"),
    **dict.fromkeys(("--rx", "--in", "--input"), "--receive --read"),
    **dict.fromkeys(("--output", "--out", "-o"), "--write --report --json"),
    **dict.fromkeys(("--format", "--output-format"), "--json --csv"),
    **dict.fromkeys(("--html", "--plot"), "--report"),
    **dict.fromkeys(("--expression", "--bpf", "-f"), "--filter"),
    **dict.fromkeys(("--snaplen", "--snapshot-length", "-s"), "--snap"),
    **dict.fromkeys(("--delay", "--loss", "--latency", "--jitter", "--netem"), "--from-netem"),
    **dict.fromkeys(("--refresh-rate", "--update", "--period", "--watch"), "--refresh --every"),
    **dict.fromkeys(("--for", "--runtime"), "--duration"),
    **dict.fromkeys(("--src", "--source"), "--src-ip --src-mac"),
    **dict.fromkeys(("--dst", "--dest", "--destination"), "--dst-ip --dst-mac"),
    **dict.fromkeys(("--sport",), "--src-port"),
    **dict.fromkeys(("--dport",), "--dst-port"),
    **dict.fromkeys(("--vid", "--vlan-id"), "--vlan"),
    **dict.fromkeys(("--dscp", "--qos"), "--tos"),
    **dict.fromkeys(("--ipg", "--ifg", "--gap", "--wait"), "--interval"),
    **dict.fromkeys(("--repeats", "--trains", "--times", "--loops"), "--repeat --loop"),
    **dict.fromkeys(("--force",), "--steal"),
    **dict.fromkeys(("--background", "--daemon", "-d"), "--detach"),
    **dict.fromkeys(("--dry-run",), "--check"),
}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line that says what would be right."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError instead of printing the whole usage."""
        message = message.replace("expected one argument", "give it a value (one that begins with - like --name=-1)")
        raise UsageError(f"{message}; see: {self.prog} --help")

    old: Mapping[str, str] = {}  # Options by a name that they had, which is taken.

    def __init__(self, *args: Any, examples: str = "", **more: Any) -> None:
        super().__init__(*args, **more)
        self._examples = examples  # A line each, at the end of the help.

    def format_help(self) -> str:
        """Return the help, with examples."""
        lines = "".join(f"  {line}\n" for line in self._examples.split("\n") if line)
        text = visible(super().format_help() + (lines and f"\nexamples:\n{lines}"))
        if not sys.stdout.isatty():
            return text
        width = shutil.get_terminal_size().columns
        said = (folded(line, width, " \\" * line.startswith("  liteprobe ")) for line in text.split("\n"))
        return "\n".join(said)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse, and refuse what there isn't, here where it is known which command was meant."""
        if args and self.old:
            args = [
                self.old[name] + word[len(name) :] if (name := word.partition("=")[0]) in self.old else word
                for word in args
            ]
        found, extras = super().parse_known_args(args, namespace)
        if extras:
            name = extras[0].partition("=")[0]
            if name.startswith("-"):
                raise self._there_is_no(
                    "option", name, [text for action in self._actions for text in action.option_strings]
                )
            why = "lists have commas, and no spaces"
            if self._has("--from-netem"):
                why = "words of netem come after --from-netem"
            if self._has("--filter"):
                why = f"a filter has its option, in quotes: --filter '{' '.join(extras)}'"
            self.error(f"'{extras[0]}' is one argument too many ({why})")
        return found, extras

    def _has(self, option: str) -> bool:
        return option in self._option_string_actions

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            if isinstance(action.metavar, str):  # Of commands and their actions.
                raise self._there_is_no(action.metavar.lower(), str(value), names)
            option = "/".join(action.option_strings) or action.dest
            raise self._there_is_no(option, str(value), names)

    def _there_is_no(self, what: str, name: str, names: Sequence[str]) -> UsageError:
        """Return the error for a name that there isn't, with those that come close, or all of them."""
        words = {text.lstrip("-"): text for text in names}
        if what == "option":
            short = name if name.startswith("--") else name[:2]
            if meant := [text for text in OF_OTHERS.get(short, "").split() if text in names]:
                return UsageError(
                    f"there is no option '{name}': {' or '.join(meant)} may be meant; see: {self.prog} --help"
                )
        if what == "command" and (meant := COMMANDS_OF_OTHERS.get(name, "").split()):
            said = " or ".join(f"'liteprobe {one.replace('_', ' ')}'" for one in meant)
            return UsageError(f"there is no command '{name}': {said} may be meant; see: {self.prog} --help")
        word = name.lstrip("-")
        alike = {
            one: difflib.SequenceMatcher(None, word, one).ratio() for one in difflib.get_close_matches(word, words, n=2)
        }
        close = [words[one] for one, ratio in alike.items() if ratio > max(alike.values()) - MUCH]
        if close:
            return UsageError(f"there is no {what} '{name}': did you mean {' or '.join(close)}?")
        if what == "option":
            see = self.epilog if self.epilog and "\n" not in self.epilog else f"see: {self.prog} --help"
            return UsageError(f"there is no {what} '{name}'; {see}")
        return UsageError(f"there is no {what} '{name}': give one of {', '.join(names)}; see: {self.prog} --help")


class Once(argparse.Action):
    """Stores a value; an option that is given again adds to a list, and is refused where it has one value."""

    def __call__(
        self, parser: argparse.ArgumentParser, args: argparse.Namespace, value: Any, option: Any = None
    ) -> None:
        """Take the value."""
        given: set[str] = vars(args).setdefault("given", set())
        if self.dest in given:
            before = getattr(args, self.dest)
            if not isinstance(value, list) and value != before:
                parser.error(f"{option} is given twice, and has one value: give it once")
            value = [*before, *value] if isinstance(value, list) else value
        given.add(self.dest)
        setattr(args, self.dest, value)


def take_old(parser: argparse.ArgumentParser, names: Mapping[str, str]) -> None:
    """Have a parser take options by the name that they had before."""
    assert isinstance(parser, Parser)
    parser.old = names


@contextmanager
def of_options(name: str = "") -> Iterator[None]:
    """Give errors of ranges the option whose value it is: that of the key, or ``name``."""
    try:
        yield
    except RangeError as error:
        option = f"--{name}: " if name else "--" if str(error).startswith(f"{error.key} ") else ""
        raise UsageError(f"{option}{error}") from None


def check_outputs(args: argparse.Namespace) -> None:
    """Raise UsageError when two results, or a result and what is read, would be one file."""
    taken: dict[Path, str] = {}
    if len(plain := [f"--{name}" for name in DATA if getattr(args, name, None) == STDOUT]) > 1:
        raise UsageError(f"{' and '.join(plain)} can't both go to stdout: give one of them a file")
    for name in (*INPUTS, *OUTPUTS):
        given = getattr(args, name, None)
        for path in given if isinstance(given, list) else [given]:
            if not isinstance(path, Path) or path == STDOUT or (path.exists() and not path.is_file()):
                continue
            option = PLACED.get(name, f"--{name.replace('_', '-')}")
            other = taken.setdefault(path.resolve(), option)
            if other != option and (name in OUTPUTS):
                raise UsageError(f"{other} and {option} are the same file, {path}: give each one of its own")


def add(
    to: "argparse._ActionsContainer",
    words: str,
    kind: Callable[[str], Any],
    what: str,
    default: Any = None,
    **more: Any,
) -> None:
    """Add an argument to a parser or a group of it.

    ``words``: its flags, or its name, and what stands for its value, like ``--rate BPS``; ``kind`` makes the value of the
    text (``bool``: it has none, and is True where it is given); ``what`` is its help, ``more`` as of argparse.
    """
    *flags, last = words.split(" ")
    names = [*flags, last] if last.startswith("-") or not flags else flags
    if names == flags:
        more["metavar"] = last
    if kind is bool:
        more["action"] = "store_true"
    else:
        if "action" not in more and names[0].startswith("-"):
            more["action"] = Once
        more |= ({} if default is None else {"default": default}) | ({} if kind is str else {"type": kind})
    to.add_argument(*names, help=what, **more)


def add_json(parser: "argparse._ActionsContainer", what: str, words: str = "--json FILE") -> None:
    """Add ``--json``, which means the same everywhere: results go to a file, or to stdout in the place of the table."""
    text = f"write {what} as JSON; no FILE, or -: to stdout, in the place of the table"
    add(parser, words, output_or_stdout, text, nargs="?", const=STDOUT)


def add_data(group: "argparse._ActionsContainer", what: str, part: str) -> None:
    """Add where results go as data; ``what``: the result, ``part``: what each line of the table is of."""
    where = "; no FILE, or -: to stdout, in the place of the table"
    add_json(group, what)
    text = f"write each look as a line of JSON, last the result{where}"
    add(group, "--jsonl FILE", output_or_stdout, text, nargs="?", const=STDOUT)
    add(group, "--csv FILE", output_or_stdout, f"write a line for each {part}{where}", nargs="?", const=STDOUT)
    text = "without a terminal: print a line as often while it runs, of this machine's time (default: 1s)"
    add(group, "--every TIME", duration_ns, text)


def add_results(
    parser: argparse.ArgumentParser, report: str, part: str = "port", has_records: bool = False
) -> "argparse._ActionsContainer":
    """Add where the results of a run go, and return the group; ``report``: the help of ``--report``.

    ``has_records``: whether it knows delays one by one.
    """
    group = parser.add_argument_group("results")
    add_data(group, "all figures", part)
    add_store(group, has_records)
    add(group, "--report FILE.html", output, report)
    return group


def add_store(group: "argparse._ActionsContainer", has_records: bool = False) -> None:
    """Add where results of months are kept; ``has_records``: whether delays are known one by one."""
    add(group, "--store DIR|URL", str, "keep figures and histograms beside those of other runs, for liteprobe query")
    if has_records:
        add(group, "--store-records", bool, "with --store: keep the delay of each frame, too, 10 octets or less each")


def every_s(args: argparse.Namespace) -> float:
    """Return how often a line is printed where nobody looks (s)."""
    found: float | None = getattr(args, "every", None)
    return EVERY_S if found is None else found / 1e9


def is_plain(args: argparse.Namespace) -> bool:
    """Return whether stdout has the results as data, in the place of the table."""
    return any(getattr(args, name, None) == STDOUT for name in DATA)


def add_expect(parser: argparse.ArgumentParser, figures: str) -> None:
    """Add conditions on the result; ``figures``: names of what it measures."""
    group = parser.add_argument_group("verdict")
    what = (
        f"a condition on {', '.join(figures.split())}, of one part as in 'voice.p99 < 1ms'; exit code 4 where one doesn't hold, "
        "5 where one is unknown: its error bar crosses the limit"
    )
    add(group, "--expect CONDITION", str, f"'lost == 0', 'p99 < 10us': {what}", action="append")
    add(group, "--lenient", bool, "an unknown one whose error bar crosses the limit counts as held")
    add(group, "--junit FILE.xml", output, "write a case for each condition")
    parser.set_defaults(figures=figures)


def add_lengths(
    to: "argparse._ActionsContainer", words: str, kinds: tuple[Any, Any], what: str, default: Any = None
) -> None:
    """Add ``--length``, and ``--frame-size`` in its place; ``kinds`` make lengths without FCS of the text of either."""
    either = to.add_mutually_exclusive_group()
    add(either, f"--length {words}", kinds[0], what, default)
    add(either, f"--frame-size {words}", kinds[1], "the same with FCS, as RFC 2544 counts: 64 to 9004", dest="length")


def add_pace(to: "argparse._ActionsContainer", usual: str = " (default: back to back)") -> None:
    """Add what says when frames are due; ``usual``: what holds without it."""
    add(to, "--interval TIME", time_ns, f"SFD to SFD, like 1.5us{usual}")
    add(to, "--rate RATE", pace, "rate on the wire, frame + 24 octets: 500M, 500Mbit/s, 50%% of the line, 100kpps")


def add_waiting_time(group: "argparse._ActionsContainer", what: str = "packet") -> None:
    """Add T_max of RFC 7680; ``what``: the word for what is sent."""
    text = f"T_max: a {what} that takes longer is lost (default: 2ms simulated, 1s else)"
    add(group, "--waiting-time TIME", duration_ns, text)


def add_kept(group: "argparse._ActionsContainer", what: str = "trial") -> None:
    """Add where trials are kept, and from where they go on; ``what``: the word for one."""
    add(group, "--check", bool, "only say what is sent, and how long it takes")
    add(group, "--trials FILE.jsonl", output, f"keep each {what} there as it ends (default: in the build folder)")
    add(group, "--resume FILE.jsonl", Path, f"go on from the {what}s that are there, with the same options")


def add_steal(group: "argparse._ActionsContainer") -> None:
    """Add what takes a probe from another host."""
    add(group, "--steal", bool, "take the probe from another host that has it, and stop what that one sends")


def add_probe(parser: argparse.ArgumentParser, usual: str = DEFAULT_PROBE) -> None:
    """Add what says which probe is meant; ``usual``: where nobody says."""
    group = parser.add_argument_group("probe")
    what = (
        "sim://loopback, sim://cable?delay=1us, sim://switch?latency=3us&rate=1G, sim://emulator, etherbone://HOST[:PORT] or "
        f"HOST, pcie:///dev/litepcie0 or uart:///dev/ttyUSB0 (default: {PROBE_VARIABLE}, or {usual.replace('%', '%%')})"
    )
    add(group, "--probe URL", full_url, what, usual_probe(usual))
    add(
        group,
        "--map FILE",
        Path,
        "register map (csr.json) of the build that runs (default: the one that the probe confirms)",
    )
    add_steal(group)


def usual_probe(usual: str) -> str:
    """Return the probe that is meant where no option says which."""
    return os.environ.get(PROBE_VARIABLE, usual)


def open_probe(args: argparse.Namespace) -> "Probe":
    """Return the probe that is meant, open."""
    from liteprobe.host.probe import Probe  # Takes long to load.

    probe = Probe(args.probe, args.map, args.steal)
    waiting_time_ns = getattr(args, "waiting_time", None)
    if waiting_time_ns is not None:
        probe.link.arrival_timeout_s = waiting_time_ns / 1e9
    return probe


def add_ports(parser: argparse.ArgumentParser) -> None:
    """Add which ports send and receive."""
    group = parser.add_argument_group("ports")
    add(group, "--transmit PORT", whole, "port that sends (default: 0)", 0)
    add(group, "--receive PORT", whole, "port that measures (default: the one that the wire leads to)")


def add_flash_options(parser: argparse.ArgumentParser) -> None:
    """Add what the gateware's programs take that load a board or write its flash."""
    add(parser, "--cable NAME", str, "JTAG cable, by openFPGALoader's name (default: the board's own)")
    add(parser, "--usb BUS:DEVICE", str, "which cable, where several of a kind are plugged in")
    add(parser, "--unprotect", bool, "unlock a flash that is write-protected")
    add(parser, "--backup FILE", str, "keep the flash in FILE before it is written")
    add(parser, "--no-backup", bool, "write without keeping what is in the flash")


def flash_options(args: argparse.Namespace) -> list[str]:
    """Return these options again, as they are passed on."""
    options = [f"--{name.replace('_', '-')}" for name in ("unprotect", "no_backup") if getattr(args, name)]
    for name in ("cable", "usb", "backup"):
        options += [f"--{name}", str(getattr(args, name))] if getattr(args, name) else []
    return options
