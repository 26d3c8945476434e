# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the parts of docs/cores that the code knows: the tables of registers and of ports.

``<!-- registers: port0_tx -->`` on a page is followed by the registers of that module, as an elaborated probe has
them; ``<!-- ports: cores/transmit/pace.py TrainPacer -->`` by the ports, as the docstring of that class names them.
Each table ends at ``<!-- end -->``. Run it after a change of either; a test holds the pages against the code.
"""

import ast
import logging
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "cores"
MARK = re.compile(r"^<!-- (registers|ports): ([^\n]*?) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
WORD_BITS = 32
KINDS = {"CSRStorage": "rw", "CSRStatus": "ro", "CSR": "rw"}  # And what is derived from them.

# What the registers mean that have no description in the gateware; one that has is taken from there.
MEANINGS: dict[str, dict[str, str]] = {
    "probe": {
        "map_hash": "CRC-32 of the map of this build ([the map hash](../design/map-hash.md)).",
        "ports": "Test ports.",
        "record_depth": "Records that the ring of each port holds.",
        "start": "Write: ports to start in one tick, bit n is port n; ignored unless all of them are ready.",
        "lease_claim": "Write token (not 0) and present number: takes the lease if it is free; what `lease_owner` reads keeps it.",
        "lease_steal": "Write: likewise, but takes it from whoever holds it.",
        "lease_release": "Write what `lease_owner` reads: ends the lease.",
        "ticks_per_second": "Ticks of the timebase in a second, at its nominal rate.",
        "data_width": "Bits of the frame streams in `sys`.",
    },
    "gnss": {
        "rxtx": "Read: the oldest octet of the receiver, which stays until bit 1 of `ev_pending` is written. Write: send one.",
    },
    "port0_rx": {
        "records_read": "Records that the host has read, free-running; `clear` sets it to 0.",
        "records_written": "Records that can be read, free-running; live.",
        "records_lost": "Records that found the ring full; live.",
        "records_enable": "Write records.",
        "link_up": "The PHY's link is up; live.",
    },
    "port0_snapshot": {
        "all_frames": "Every frame of the port, bad ones too.",
        "all_octets": "Their lengths added up, without FCS.",
        "fcs_errors": "Frames with a wrong FCS.",
        "length_errors": "Probe frames, not damaged, whose IP length is wrong or that end in the probe's header.",
        "bad_probes": "Frames with the probe's header that are damaged, or whose IP length is wrong: they are in no stream.",
        "runts": "Frames below 60 octets.",
        "giants": "Frames above 9018 octets.",
        "symbol_errors": "Frames with RX_ER in frame or preamble.",
        "preamble_errors": "Carriers that were refused: no SFD, another octet before it, or an SFD too soon.",
        "overflows": "Frames cut because `sys` was too slow.",
        "stamp_errors": "Frames that found no stamp.",
        "unclassified": "Frames that ended too soon after another one to be measured or kept.",
        "management_frames": "Good other frames given to the management stack.",
        "management_dropped": "Of these, frames that found no room.",
    },
}


@dataclass(frozen=True)
class Register:
    """A register of one module."""

    name: str
    offset: int  # Octets from the first register of the module.
    bits: int
    access: str  # "rw", "ro", "wo"; "w1" does something when it is written.
    reset: int
    meaning: str


# Registers ----------------------------------------------------------------------------------------


@cache
def regions() -> dict[str, list[Any]]:
    """Return the CSRs of each module, in the order of their addresses: of a probe of trains, hosts, directions of an emulator."""
    from litex.soc.interconnect.csr import CSRStatus

    from liteprobe.sim.system.board import Board
    from liteprobe.soc.config import ProbeConfig
    from liteprobe.soc.probe import ProbeSoC

    def built(config: ProbeConfig) -> Any:
        board: Any = Board  # Gateware has no types.
        soc = ProbeSoC(board(), config)
        soc.finalize()
        return soc

    def csrs_of(soc: Any) -> dict[str, list[Any]]:
        return {name: region.obj for name, region in soc.csr_regions.items() if isinstance(region.obj, list)}

    logging.disable(logging.INFO)  # LiteX tells every step.
    soc, emulator, hosted = (
        built(ProbeConfig()),
        built(ProbeConfig(preset="emulator")),
        built(ProbeConfig(with_hosts=True)),
    )
    logging.disable(logging.NOTSET)
    found = csrs_of(soc)
    found |= {name: csrs for name, csrs in csrs_of(emulator).items() if name.startswith("direction")}
    found |= {name: csrs for name, csrs in csrs_of(hosted).items() if name.endswith("_host")}
    for port, layout in soc.snapshots.items():
        found[f"{port}_snapshot"] = [CSRStatus(WORD_BITS * words, name=name) for name, (_, words) in layout.items()]
    return found


def registers_of(module: str) -> list[Register]:
    """Return the registers of ``module``; KeyError if one has no meaning, ValueError if it has two."""
    found, offset = [], 0
    for csr in regions()[module]:
        own, ours = getattr(csr, "description", None), MEANINGS.get(module, {}).get(csr.name)
        if own and ours:
            raise ValueError(f"{module}_{csr.name} has a description in the gateware: take it out of MEANINGS")
        if not own and not ours:
            raise KeyError(f"{module}_{csr.name} has no description: write one in the gateware")
        kind = next(KINDS[known.__name__] for known in type(csr).__mro__ if known.__name__ in KINDS)
        meaning = str(own or ours)
        if meaning.startswith("Write: "):
            kind = "w1"
        held = {"rw": "storage", "ro": "status"}.get(kind)
        reset = getattr(csr, held).reset.value if held and hasattr(csr, held) else 0
        if kind == "ro" and hasattr(csr, "r"):
            kind = "rw"  # It shows what the gateware knows, and takes what is written to it.
        # Known only when the SoC is finalized, and another one in each build.
        found.append(Register(csr.name, offset, csr.size, kind, 0 if csr.name == "map_hash" else reset, meaning))
        offset += 4 * -(-csr.size // WORD_BITS)
    return found


def register_table(module: str) -> str:
    """Return the registers of ``module`` as a table in Markdown."""
    rows = ["| Offset | Register | Bits | Access | Reset | Meaning |", "|---|---|---|---|---|---|"]
    for item in registers_of(module):
        reset = {"w1": "", "wo": ""}.get(item.access, f"{item.reset:#x}" if item.reset > 9 else str(item.reset))
        reset = "" if item.name == "map_hash" else reset
        access = "write" if item.access in ("w1", "wo") else item.access
        meaning = item.meaning.replace("|", "\\|")
        rows.append(f"| 0x{item.offset:03x} | `{item.name}` | {item.bits} | {access} | {reset} | {meaning} |")
    return "\n".join(row.replace("|  |", "| |") for row in rows)


# Ports --------------------------------------------------------------------------------------------


def docstring_of(path: str, name: str) -> str:
    """Return the docstring of the class ``name`` in the file ``path``, cleaned; KeyError if there is none."""
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return ast.get_docstring(node) or ""
    raise KeyError(f"{path} has no class {name}")


def entries_of(docstring: str, section: str) -> list[tuple[str, str, str]]:
    """Return (names, type, meaning) of each entry of a section of ``docstring``."""
    found: list[tuple[str, str, str]] = []
    lines = docstring.splitlines()
    if section not in lines:
        return found
    for line in lines[lines.index(section) + 2 :]:
        if line.startswith("    ") and found:
            names, kind, meaning = found[-1]
            found[-1] = (names, kind, f"{meaning} {line.strip()}".strip())
        elif head := re.match(r"(\S.*?) : (.*)", line):
            found.append((head[1], head[2], ""))
        elif line.startswith("    "):
            continue
        else:
            break
    return found


def cell(text: str) -> str:
    """Return text of a docstring for a cell of a table."""
    return text.replace("``", "`").replace("|", "\\|")


def port_table(path: str, name: str) -> str:
    """Return parameters and ports of a class as tables in Markdown; ValueError if its docstring names none."""
    docstring = docstring_of(path, name)
    tables = []
    for section, head in (("Parameters", "Parameter"), ("Attributes", "Port")):
        entries = entries_of(docstring, section)
        if entries:
            rows = [f"| {head} | Type | Meaning |", "|---|---|---|"]
            rows += [f"| `{names}` | `{kind.replace('`', '')}` | {cell(meaning)} |" for names, kind, meaning in entries]
            tables.append("\n".join(row.replace("|  |", "| |") for row in rows))
    if not tables:
        raise ValueError(f"{name} in {path} names no ports")
    return "\n\n".join(tables)


# Pages --------------------------------------------------------------------------------------------


def current(text: str) -> str:
    """Return the text of a page with all its tables as the code has them now."""

    def table(found: re.Match[str]) -> str:
        kind, what = found[1], found[2]
        body = register_table(what) if kind == "registers" else port_table(*what.split())
        return f"<!-- {kind}: {what} -->\n\n{body}\n\n<!-- end -->"

    return MARK.sub(table, text)


def main() -> int:
    """Bring all pages up to date, and name those that changed."""
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text()
        if (wanted := current(text)) != text:
            page.write_text(wanted)
            print(page.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
