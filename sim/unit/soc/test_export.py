# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The register map of a SoC, and the hash that the SoC tells of it."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from migen.fhdl import structure, tracer
from migen.fhdl.tools import list_signals

from liteprobe.boards import board
from liteprobe.cores.formats import map_hash
from liteprobe.sim.drivers.tools.compiled import apart
from liteprobe.soc.config import ProbeConfig
from liteprobe.soc.export import identity, soc_map
from liteprobe.soc.probe import ProbeSoC
from liteprobe.soc.boot import IDLE_PROGRAM


# Signals without a name of their own: Migen calls them after the class of their module ---------------

ROOT = Path(__file__).resolve().parents[3]
OURS = tuple(str(ROOT / folder) for folder in ("cores", "soc", "boards"))


@contextmanager
def watched() -> Iterator[dict[int, str]]:
    """Note where each signal is made that Migen finds no name for: file and line, by the signal's number."""
    places: dict[int, str] = {}
    usual, make = tracer.get_var_name, structure.Signal.__init__
    nameless: list[FrameType] = []

    def get_var_name(frame: FrameType) -> str | None:
        name: str | None = usual(frame)
        if name is None:
            nameless.append(frame)
        return name

    def init(signal: Any, *args: Any, **options: Any) -> None:  # A frame's ``self`` is searched among all of its class.
        nameless.clear()
        make(signal, *args, **options)
        caller = sys._getframe(1)
        if caller in nameless and caller.f_code.co_filename.startswith(OURS) and not options.get("name"):
            places[signal.duid] = f"{Path(caller.f_code.co_filename).relative_to(ROOT)}:{caller.f_lineno}"

    tracer.get_var_name, structure.Signal.__init__ = get_var_name, init
    try:
        yield places
    finally:
        tracer.get_var_name, structure.Signal.__init__ = usual, make


def nameless(soc: Any, places: dict[int, str]) -> list[str]:
    """Return where the signals of a finalized ``soc`` are made that have no name."""
    return sorted({places[signal.duid] for signal in list_signals(soc.get_fragment()) if signal.duid in places})


# Maps ---------------------------------------------------------------------------------------------

pytestmark = pytest.mark.usefixtures("quiet")


def map_of(name="versa_ecp5", **fields):
    """Return the map of a SoC, and the names of its memories on the CSR bus; many tests read them, none changes them."""
    return apart(map_of_config, name, ProbeConfig(**fields))


@cache
def map_of_config(name, config):
    soc = ProbeSoC(board(name), config)
    soc.finalize()
    assert identity(soc) == map_hash(soc_map(soc))
    return soc_map(soc) | {"csr_memories": [name for name, *_ in soc.csr_bankarray.srams]}


def test_verilog_holds_the_hash_of_the_exported_map(elaborated):
    design, facts = elaborated("versa_ecp5", ProbeConfig())
    expected = map_hash(json.loads((design.folder.parent / "csr.json").read_text()))
    verilog = (design.folder / "liteprobe.v").read_text()
    held = re.findall(r"map_hash_status\s*=\s*32'([dh])(\w+);", verilog)
    assert [int(digits, {"d": 10, "h": 16}[base]) for base, digits in held] == [expected]
    assert facts["map_hash"] == expected


def test_same_configuration_gives_the_same_sources_in_every_process(tmp_path):
    # Within one process names depend on what was built before: so a board is always built by a new one.
    program = (
        "from pathlib import Path; from liteprobe.soc.build.bitstream import ProbeConfig, elaborate;"
        f"print(elaborate('colorlight_5a_75b', ProbeConfig(), Path({str(tmp_path)!r}))[0].digest())"
    )
    digests = set()
    for _ in range(2):
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        digests.add(result.stdout.split()[-1])
    assert len(digests) == 1


@pytest.mark.parametrize(
    "fields",
    [{"record_depth": 256}, {"ports": 1}, {"with_cpu": False}, {"ram_bytes": 4096}],
)
def test_hash_changes_with_the_map(fields):
    assert map_hash(map_of(**fields)) != map_hash(map_of())


def test_hash_stays_where_the_map_stays():
    assert map_hash(map_of(ip_address="10.0.0.1", link="uart")) == map_hash(map_of())


def test_map_has_the_registers_and_memories_of_the_contract():
    found = map_of()
    registers, memories = found["csr_registers"], found["memories"]
    for port in (0, 1):
        for name in ("length", "interval_fraction", "checksum_seed", "arm", "state", "first_late", "link_up"):
            assert registers[f"port{port}_tx_{name}"]["size"] == 1, name
        assert registers[f"port{port}_tx_start_time"]["size"] == 2
        for name, words in (("records_read", 1), ("all_octets", 2), ("stamp_errors", 2), ("records_lost", 1)):
            assert registers[f"port{port}_rx_{name}"]["size"] == words, name
        assert memories[f"port{port}_header"]["size"] == 128
        assert memories[f"port{port}_records"]["size"] == 512 * 24
        assert memories[f"port{port}_snapshot"]["size"] == 64 * 4
        assert memories[f"port{port}_streams"]["size"] == 64 * 4
    for name in ("map_hash", "ports", "record_depth", "start", "ticks_per_second", "data_width"):
        assert registers[f"probe_{name}"]["size"] == 1, name
    for name, words in (("latch", 1), ("now", 2), ("increment", 2), ("set_time", 2), ("adjust", 2), ("ticks", 2)):
        assert registers[f"timebase_{name}"]["size"] == words, name


DISCIPLINE = {
    "pps": (
        "control",
        "period",
        "min_width",
        "window",
        "latch",
        "count",
        "now",
        "now_fraction",
        "ticks",
        "width",
        "flags",
        "samples",
        "glitches",
        "missing",
        "spurious",
        "present",
        "clear",
        "out_next",
        "out_period",
        "out_width",
        "out_arm",
        "out_late",
        "ev_status",
        "ev_pending",
        "ev_enable",
    ),
    "clock": (
        "state",
        "uncertainty",
        "offset",
        "rate",
        "drift",
        "edges",
        "rejected",
        "holdover",
        "tai_utc",
        "error",
        "qerr",
        "update",
        "updates",
        "watchdog",
        "alive",
        "mode",
    ),
    "gnss": ("rxtx", "txfull", "rxempty", "ev_status", "ev_pending", "ev_enable", "txempty", "rxfull"),
    "boot": ("entry", "state", "ram", "flash"),
    "port0_rx": ("line_latch", "line_count", "line_now"),
    "port1_rx": ("line_latch", "line_count", "line_now"),
}
CPU_ONLY = {"boot_entry", "boot_state", "boot_ram", "boot_flash"}


@pytest.mark.parametrize("with_cpu", [True, False])
def test_discipline_adds_its_registers_and_nothing_else(with_cpu):
    maps = [map_of(with_cpu=with_cpu, with_discipline=on) for on in (False, True)]
    off, on = (set(found["csr_registers"]) for found in maps)
    expected = {f"{block}_{name}" for block, names in DISCIPLINE.items() for name in names}
    assert on - off == expected - (set() if with_cpu else CPU_ONLY)
    assert off - on == set()
    assert set(maps[1]["memories"]) - set(maps[0]["memories"]) == ({"main_ram"} if with_cpu else set())
    assert set(maps[0]["memories"]) <= set(maps[1]["memories"])
    interrupts = [{name for name in found["constants"] if name.endswith("_interrupt")} for found in maps]
    assert interrupts[1] - interrupts[0] == ({"pps_interrupt", "gnss_interrupt"} if with_cpu else set())


def test_rom_and_pads_of_discipline_are_there_only_with_it(elaborated):
    for on in (False, True):
        design, _ = elaborated("colorlight_5a_75b", ProbeConfig(with_discipline=on))
        rom = (design.folder / "liteprobe_rom.init").read_text().split()
        assert [int(word, 16) for word in rom[:2]] == IDLE_PROGRAM if not on else 100 < len(rom) <= 256
        constraints = (design.folder / "liteprobe.lpf").read_text()
        pads = ("pps_out", "gnss_tx", "gnss_rx", "user_btn_n", "sdram_clock", "sdram_dq[31]", "spiflash_cs_n")
        assert [pad in constraints for pad in pads] == [on] * len(pads)


@pytest.mark.parametrize(
    ("name", "fields", "octets"),
    [
        ("colorlight_5a_75b", {}, 4 << 20),
        ("colorlight_5a_75b_v7_0", {}, 4 << 20),
        ("colorlight_i5", {}, 4 << 20),
        ("versa_ecp5", {}, 128 << 10),
        ("versa_ecp5", {"record_depth": 1024}, 104 << 10),
        ("versa_ecp5", {"preset": "generator"}, 104 << 10),
        ("colorlight_5a_75b", {"main_ram": "none"}, None),
    ],
)
def test_each_board_has_ram_for_firmware_with_discipline(name, fields, octets):
    found = map_of(name, **fields)
    assert found["memories"].get("main_ram", {}).get("size") == octets
    assert ("boot_flash" in found["csr_registers"]) == (octets is not None)


@pytest.mark.parametrize("fields", [{"link": "own", "ports": 1}, {"link": "shared"}, {"link": "uart"}])
def test_no_memory_has_a_page_of_the_csr_bus_but_the_name_of_the_build(fields):
    found = map_of(**fields)
    assert [name for name in found["csr_registers"] if name.endswith("_page")] == []
    # Of the store's words, one page after the other: nobody asks for them.
    assert found["csr_memories"] == ["identifier"]


def test_no_register_or_memory_overlaps_another():
    found = map_of()
    spans = sorted(
        [(entry["addr"], entry["addr"] + 4 * entry["size"]) for entry in found["csr_registers"].values()]
        + [
            (entry["base"], entry["base"] + entry["size"])
            for name, entry in found["memories"].items()
            if name != "csr" and not name.endswith("_snapshot")  # These two hold the registers.
        ]
    )
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))


def test_accumulators_of_a_port_fill_its_snapshot_from_the_start():
    found = map_of()
    for port in (0, 1):
        base = found["memories"][f"port{port}_snapshot"]["base"]
        entries = {name: entry for name, entry in found["csr_registers"].items() if base <= entry["addr"] < base + 256}
        assert len(entries) == 14 and all(entry["type"] == "ro" for entry in entries.values())
        assert all(name.startswith(f"port{port}_rx_") for name in entries)
        words = [
            word for entry in entries.values() for word in range(entry["addr"], entry["addr"] + 4 * entry["size"], 4)
        ]
        assert sorted(words) == list(range(base, base + 4 * len(words), 4))


@pytest.mark.parametrize(
    "fields",
    [
        {"host_ports": (1,)},
        {"host_ports": (0,)},
        {"preset": "monitor", "host_ports": (1,)},
        {"preset": "generator"},
    ],
)
def test_hosts_are_on_the_ports_that_are_named(fields):
    found = map_of("colorlight_i9", with_cpu=False, with_discipline=False, with_hosts=True, **fields)
    wanted = set(fields.get("host_ports", (0, 1)))
    registers = {name for name in found["csr_registers"] if name.endswith("_host_enable")}
    assert registers == {f"port{port}_host_enable" for port in wanted}
    assert {f"port{port}_frames" for port in wanted} == {name for name in found["memories"] if name.endswith("_frames")}


@pytest.mark.parametrize("with_cpu", [True, False])
def test_registers_start_where_they_do_in_every_build(with_cpu):
    assert map_of(with_cpu=with_cpu)["memories"]["csr"]["base"] == 0xF0000000


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("colorlight_5a_75b", {}),
        ("colorlight_i9", {"preset": "tester", "with_streams": False}),
        ("colorlight_i9", {"preset": "generator"}),
        # Theirs are of the same cores, but for PCIe and the Versa's PHY.
        pytest.param("versa_ecp5", {"preset": "monitor", "with_cpu": False}, marks=pytest.mark.full),
        pytest.param("sqrl_acorn", {"preset": "monitor", "link": "pcie"}, marks=pytest.mark.full),
    ],
)
def test_every_signal_has_a_name_of_its_own(name, fields):
    """Not its module's, and not that of a list that it was collected in."""

    def found():
        with watched() as places:
            soc = ProbeSoC(board(name), ProbeConfig(**fields))
            soc.finalize()
        return nameless(soc, places)

    assert apart(found) == []


def test_a_signal_without_a_name_is_found():
    """The first of two in one statement, and each of a list."""
    code = "a, b = Signal(8), Signal()\nc = [Signal() for _ in range(2)]\nd = Signal()"
    with watched() as places:
        exec(compile(code, f"{OURS[0]}/x.py", "exec"), {"Signal": structure.Signal, "__name__": "x"})
    assert {"cores/x.py:1", "cores/x.py:2"} == set(places.values()) and list(places.values()).count("cores/x.py:2") == 2
