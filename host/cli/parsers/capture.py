# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``capture``."""

import argparse
from pathlib import Path

from liteprobe.host.cli.arguments import (
    add_json,
    add_probe,
    duration_ns,
    output,
    output_or_stdout,
    span_ns,
    whole,
    wholes,
)
from liteprobe.host.defaults import KEEPS, TRANSPORTS

HELP = "capture frames into pcapng, and their headers into Parquet"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    _add_files(parser)
    _add_choice(parser)
    _add_kept(parser)
    parser.add_argument(
        "-r", "--read", metavar="FILE", type=Path, help="take the blocks of a recording (--blocks); - is stdin"
    )
    add_probe(parser)


def _add_files(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("files")
    group.add_argument("-w", "--write", metavar="FILE.pcapng", type=output_or_stdout, help="write frames; - is stdout")
    group.add_argument("--headers", metavar="FILE.parquet", type=output, help="write unified headers")
    group.add_argument("--blocks", metavar="FILE", type=output, help="write blocks as they come, to be read by --read")
    add_json(group, "all counts")
    group.add_argument(
        "--utc", metavar="S", nargs="?", const="probe", help="write UTC, S seconds less than TAI (what the probe knows)"
    )


def _add_choice(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which frames")
    group.add_argument("--filter", metavar="EXPR", help="like tcpdump's: 'udp port 53 and net 10.0.0.0/8'")
    group.add_argument("--host-filter", action="store_true", help="by libpcap on this host, exactly as tcpdump")
    group.add_argument("--sample", metavar="N", help="every Nth frame (1, 2, 4, 8, 16), or hash:N[:SEED]")
    group.add_argument(
        "--damaged", action="store_const", const=True, help="frames with FCS or symbol errors, runts and giants, too"
    )
    group.add_argument("--count", metavar="N", type=whole, help="end after N frames")
    group.add_argument(
        "--duration", metavar="TIME", type=duration_ns, help="end after so long, like 10s; a number alone is seconds"
    )
    group.add_argument("--trigger", metavar="EXPR", help="keep nothing until a frame matches")
    group.add_argument(
        "--host-trigger", action="store_const", const=True, help="look for it on this host: all frames come here"
    )
    group.add_argument(
        "--before", metavar="TIME", type=span_ns, help="with --trigger: so much before it (default: 10ms)"
    )
    group.add_argument(
        "--after", metavar="TIME", type=span_ns, help="with --trigger: so much after it (default: to the end)"
    )


def _add_kept(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what the probe hands over")
    group.add_argument("--snap", metavar="N", type=whole, help="octets of a frame at the most (default: all)")
    group.add_argument("--keep", choices=KEEPS, help="of a frame (default: what the files need)")
    group.add_argument("--channels", metavar="N[,N...]", type=wholes, help="flows go to these, by hash (default: 0)")
    group.add_argument(
        "--via",
        choices=TRANSPORTS,
        help="how blocks come here (default: udp over Etherbone, dma over PCIe where its devices can be opened, else bus)",
    )
    group.add_argument(
        "--udp-port", metavar="PORT", type=whole, help="of this host, of channel 0; 7 more follow (default: free ones)"
    )
