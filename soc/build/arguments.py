# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Parses what ``liteprobe build`` takes, and chooses what is left out."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any, NoReturn

from liteprobe.boards import BOARDS, OTHER_NAMES, VERILOG_ONLY, board
from liteprobe.cores.formats import DEFAULT_PRESET, PRESETS, Part
from liteprobe.soc.build.load import add_options
from liteprobe.soc.extension import SCOPE
from liteprobe.soc.config import COMFORT, LINKS, RINGS, STORES, ProbeConfig, most_ports

NAMES = ("preset", "ports", "link", "with_cpu", "record_depth", "with_discipline", "ring", "streams", "gnss_baud", "uart_baud",
    "ip_address", "mac_address",
    "with_replay", "directions", "store", "store_words", "entries", "longest", "trace_entries", "rules",
    "with_spill", "with_aqm", "with_eye")


class BuildParser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end."""
        self.exit(2, f"build: {message}; see: {self.prog} BOARD --help\n")


def mac_address(text: str) -> int:
    """Return the number of a MAC address."""
    parts = text.replace("-", ":").split(":")
    if len(parts) != 6 or not all(1 <= len(part) <= 2 for part in parts):
        raise argparse.ArgumentTypeError(f"'{text}' is not a MAC address: write it like 10:e2:d5:00:00:01")
    try:
        return int.from_bytes(int(part, 16) for part in parts)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a MAC address: write it like 10:e2:d5:00:00:01") from None


def port_list(text: str) -> tuple[int, ...]:
    """Return the ports of a list like ``0,1``."""
    if not text or not all(part.isdecimal() for part in text.split(",")):
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of ports: write it like 0 or 0,1, after the board")
    return tuple(int(part) for part in text.split(","))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = BuildParser(
        prog="liteprobe build", description="Build a bitstream, with area and timing report. Without --flash, --backup FILE "
        "builds nothing: it keeps the board's flash in FILE."
    )
    default = ProbeConfig()
    parser.add_argument("board", choices=[*BOARDS, *OTHER_NAMES, *VERILOG_ONLY], help="what to build for")
    parser.add_argument("--no-compile", action="store_true", help="write Verilog, constraints, map and driver; run no tool")
    parser.add_argument("--load", action="store_true", help="load the bitstream into the board (volatile)")
    parser.add_argument("--flash", action="store_true", help="write the bitstream into the board's flash (it stays)")
    parser.add_argument("--restore", metavar="FILE", type=Path, help="build nothing: write a backup of the flash back")
    add_options(parser)
    parser.add_argument("--seed", type=int,
        help="seed of placement (default: the one that is known to meet timing, and two others)")
    parser.add_argument("--at-once", type=int, choices=(1, 2, 3), default=min(2, os.cpu_count() or 1),
        help="seeds that are placed side by side; the first that is met ends the others (default: %(default)s)")
    add_built_in(parser, default)
    parser.add_argument("--out", type=Path, help="folder of the products (default: build/BOARD, or build/BOARD_PRESET)")
    return parser.parse_args(arguments)


def add_built_in(parser: argparse.ArgumentParser, default: ProbeConfig) -> None:
    """Add what is built in, and how it is reached."""
    parser.add_argument("--preset", choices=PRESETS, default=default.preset, help="what to build in")
    parser.add_argument("--ports", type=int,
        help="test ports (default: all of the board; 1 in a monitor or generator on a LFE5U-25F)")
    parser.add_argument(
        "--link", choices=LINKS,
        help="management link (default: pcie on a board that has it; own in a monitor or generator that leaves a port for it; "
        "else shared)",
    )
    parser.add_argument(
        "--cpu", dest="with_cpu", action=argparse.BooleanOptionalAction,
        help="build the VexRiscv in (default: where there is room; where not, as in a monitor on an ECP5, a host keeps the clock)",
    )
    parser.add_argument("--record-depth", type=int, default=default.record_depth,
        help="records held for each port (default: 1024; 512 on the Versa with firmware)")
    parser.add_argument("--no-discipline", dest="with_discipline", action="store_false",
        help="leave PPS, GNSS receiver and firmware's start out")
    parser.add_argument(
        "--main-ram", metavar="sdram|none|BYTES", default=default.main_ram,
        help="RAM for firmware; BYTES: of block RAM (default: the board's SDRAM, unless --no-discipline or --no-cpu)",
    )
    parser.add_argument("--ring", choices=RINGS, default=default.ring, help="where a capture waits for the host (monitor)")
    parser.add_argument("--streams", type=int, default=default.streams, help="measured at each port with meters: 7, 15 or 31")
    parser.add_argument(
        "--traffic", dest="with_streams", action=argparse.BooleanOptionalAction,
        help="ports send many streams, in a generator or tester (default: where there is room)",
    )
    parser.add_argument(
        "--replay", dest="with_replay", action=argparse.BooleanOptionalAction, default=default.with_replay,
        help="ports send what a host streams, in a train, tester or generator (the preset replay has it)",
    )
    parser.add_argument(
        "--sets", dest="with_sets", action=argparse.BooleanOptionalAction,
        help="where ports replay, they make frames of configuration sets, too (default: where there is room)",
    )
    parser.add_argument("--directions", type=int, default=default.directions, help="of an emulator: 1 (port 0 to port 1) or 2")
    parser.add_argument("--store", choices=STORES, default=default.store, help="where frames wait in an emulator")
    parser.add_argument("--store-words", type=int, default=default.store_words, help="of each direction; a power of two")
    parser.add_argument("--entries", type=int, default=default.entries, help="frames that can be in each direction of an emulator")
    parser.add_argument("--trace-entries", type=int, default=default.trace_entries,
        help="opportunities of a bandwidth trace that each direction of an emulator holds; a power of two, 0: none "
             "(default: 65536 in the SDRAM)")
    parser.add_argument("--rules", type=int, default=default.rules,
        help="that name the classes of each direction of an emulator: 32, 64 or 128")
    parser.add_argument("--spill", dest="with_spill", action=argparse.BooleanOptionalAction, default=default.with_spill,
        help="what is known of frames that wait in an emulator's SDRAM waits there, too (without: --entries of them)")
    parser.add_argument("--aqm", dest="with_aqm", action=argparse.BooleanOptionalAction, default=default.with_aqm,
        help="queues of an emulator can drop by CoDel and PIE, and mark frames (ECN)")
    parser.add_argument("--eye", dest="with_eye", action="store_true",
        help="the SDRAM of an emulator at 125 MHz, its read phase found at start, 83 MHz where there is none; else 80 MHz")
    parser.add_argument("--longest", type=int, default=default.longest, help="octets of an emulator's longest frame: 1536 or 9018")
    parser.add_argument(
        "--hash", dest="with_hash", action=argparse.BooleanOptionalAction,
        help="ports that monitor hash what they receive: channels by flow, samples by hash (default: where it can be routed)",
    )
    parser.add_argument(
        "--hosts", metavar="PORTS", type=port_list, nargs="?", const=(),
        help="ports answer ARP, neighbour discovery, ping and STAMP as hosts of their own: all, or those that are named, like 0 "
        "or 0,1 (default: none)",
    )
    parser.add_argument("--no-hosts", dest="hosts", action="store_const", const=None, help="no port has a host")
    parser.add_argument("--gnss-baud", type=int, default=default.gnss_baud, help="rate of the GNSS receiver's UART")
    parser.add_argument("--ip-address", default=default.ip_address, help="address of the management stack")
    parser.add_argument("--mac-address", type=mac_address, default=default.mac_address, metavar="MAC",
        help="of the management stack, like 10:e2:d5:00:00:01; two probes in one network need two, and two IP addresses")
    parser.add_argument("--uart-baud", type=int, default=default.uart_baud, help="rate of the management link uart")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--extend", type=Path, metavar="FILE", help="add what extend(soc) of this Python file adds (docs/labs)")
    parts.add_argument("--scope", dest="extend", action="store_const", const=SCOPE,
        help="add LiteScope, which litescope_cli triggers and reads: what ports send, tick by tick (docs/litex-clients.md)")


def default_link(target: Any, preset: str, ports: int) -> str:
    """Return the management link of a probe, where nobody says which."""
    if target.with_pcie:
        return "pcie"
    return "own" if preset in ("monitor", "generator", "replay") and ports < target.ports else ProbeConfig.link


def holds(target: Any, fields: dict[str, Any], share: float = 1.0) -> bool:
    """Return whether a share of a board has room for a configuration, its memories too."""
    config = ProbeConfig(**fields)
    return config.fits(target, share) and (target.block_rams is None or config.block_rams_needed(target) <= target.block_rams)


def main_ram_of(text: str) -> dict[str, Any]:
    """Return the fields of ProbeConfig that ``--main-ram`` means."""
    return {"main_ram": "block", "main_ram_bytes": int(text)} if text.isdecimal() else {"main_ram": text}


def config_of(args: argparse.Namespace, target: Any) -> ProbeConfig:
    """Return the configuration that the options ask for on the board ``target``."""
    fields = {name: getattr(args, name) for name in NAMES} | main_ram_of(args.main_ram)
    fields |= {"with_hosts": args.hosts is not None, "host_ports": args.hosts or ()}
    if args.ports is None:
        fields["ports"] = most_ports(target, args.preset)
    fields["link"] = args.link or default_link(target, args.preset, fields["ports"])
    # The processor first: without it a clock has no firmware that keeps it on a PPS.
    is_generator = Part.MEASURE in PRESETS[args.preset]
    fields["with_sets"] = bool(args.with_sets)
    if args.with_cpu is None:
        least = {"with_streams": bool(args.with_streams) or (args.with_streams is None and is_generator), "with_cpu": True}
        fields["with_cpu"] = args.preset == DEFAULT_PRESET or holds(target, fields | least, COMFORT)
    fields["with_streams"] = args.with_streams
    if args.with_streams is None:
        fields["with_streams"] = is_generator or holds(target, fields | {"with_streams": True})
    if args.with_sets is None:
        fields["with_sets"] = not ProbeConfig(**fields).replays or holds(target, fields | {"with_sets": True}, COMFORT)
    # A replay just below the limit was not routed with a hash.
    has_hash = not ProbeConfig(**fields).replays or holds(target, fields, COMFORT)
    return ProbeConfig(**fields, with_hash=has_hash if args.with_hash is None else args.with_hash)


def left_out(config: ProbeConfig) -> dict[str, str]:
    """Return what a configuration does not have of all that its preset may have, and the option that asks for it."""
    missing = {
        ("processor", "--cpu"): not config.with_cpu,
        ("discipline of the clock", "without --no-discipline"): not config.with_discipline,
        ("streams to send", "--traffic"): Part.STREAMS in PRESETS[config.preset] and not config.sends_streams,
        ("configuration sets", "--sets"): config.replays and not config.makes_sets,
        ("flow hash", "--hash"): config.leaves_hash_out,
    }
    return dict(what for what, is_missing in missing.items() if is_missing)


def check_together(args: argparse.Namespace) -> None:
    """Raise ValueError when options don't go together, before anything is done."""
    if args.restore and (args.load or args.flash or args.no_compile):
        raise ValueError("--restore builds nothing: leave --load, --flash and --no-compile out")
    if args.restore and (args.backup or not args.with_backup):
        raise ValueError("--restore makes no backup: leave --backup and --no-backup out")
    if not (args.flash or args.restore):
        given = {"--unprotect": args.unprotect, "--backup": args.backup and args.load, "--no-backup": not args.with_backup}
        if named := [option for option, is_given in given.items() if is_given]:
            raise ValueError(f"{named[0]} is for what writes the flash: give --flash, too")
    if (args.cable or args.usb) and not (args.load or args.flash or args.restore or args.backup):
        raise ValueError(f"{'--cable' if args.cable else '--usb'} is for what reaches the board: give --load or --flash, too")
    if args.backup and args.no_compile and not args.flash:
        raise ValueError("--backup without --flash builds nothing: leave --no-compile out")


def board_for(name: str, config: ProbeConfig) -> Any:
    """Return a board whose `sys` is as quick as a probe can be built on it; raises as `board`."""
    target = board(name)
    if config.emulates and config.directions > 1 and not config.with_discipline and target.two_way_clk_freq:
        target.sys_clk_freq = target.two_way_clk_freq
    return target
