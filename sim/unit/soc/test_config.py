# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A configuration refuses what can't be built, before anything is built."""

from dataclasses import dataclass, replace

import pytest

from liteprobe.boards import board
from liteprobe.host.run.emulate import BOARDS
from liteprobe.soc.config import ProbeConfig, most_ports
from liteprobe.soc.probe import ProbeSoC, direction_limits


@dataclass
class Board:
    """Facts of a board, and no more: a refusal must not touch anything else."""

    name: str = "paper"
    ports: int = 2
    sys_clk_freq: float = 50e6
    lut_sites: int | None = 24288
    block_rams: int | None = 56
    with_serial: bool = True
    with_pcie: bool = False
    sdram_bytes: int = 0
    sdram_banks: int = 0
    eye_clk_freqs: tuple[float, float] | None = None
    spare_bytes: int = 0
    spare_records: int = 1024


REFUSED = [
    ({"ports": 0}, "set ports from 1 to 2"),
    ({"ports": 3}, "paper has 2 ports, not 3: set ports from 1 to 2"),
    ({"link": "own"}, "use link=shared, or ports=1"),
    (
        {"preset": "monitor"},
        "24288 LUT sites and .* build with .*--ports 1.*, or take the board colorlight_i9 or versa_ecp5",
    ),
    ({"preset": "monitor", "with_cpu": False}, "build with --ports 1, or --preset train, or take"),
    ({"preset": "tester", "ports": 1}, "too small for preset tester with 1 port: .*--preset train"),
    ({"preset": "generator", "ports": 1, "streams": 30}, "30 streams are not supported: use 7, 15 or 31"),
    ({"preset": "generator", "ports": 1, "main_ram_bytes": 262144}, "lower ports, streams, or leave the processor out"),
    ({"preset": "monitor", "ports": 1, "streams": 16}, "16 streams are not supported: use 7, 15 or 31"),
    ({"preset": "monitor", "ports": 1, "link": "own", "streams": 31}, "build with no processor .--no-cpu., or .*--link shared"),
    (
        {"preset": "monitor", "ports": 1, "with_cpu": False, "capture_blocks": 64},
        "lower ports, streams, capture_blocks, or leave",
    ),
    ({"preset": "replay", "ports": 1, "with_cpu": False}, "in a SDRAM, paper has none: choose another preset"),
    ({"preset": "emulator", "ports": 1}, "joins two ports, not 1: set ports to 2"),
    ({"preset": "emulator", "directions": 3}, "use 1 .from port 0 to port 1. or 2"),
    ({"preset": "emulator"}, "paper has no SDRAM for frames in the network: use store=block"),
    ({"preset": "emulator", "store": "tape"}, "choose one of sdram, block"),
    ({"preset": "emulator", "store": "block", "store_words": 10000}, "a power of two from 8192 to 32768: use 32768"),
    ({"preset": "emulator", "store": "block", "store_words": 8192, "entries": 100}, "a power of two from 64 to 4096"),
    ({"preset": "emulator", "store": "block", "store_words": 8192, "trace_entries": 100}, "power of two up to 4096"),
    ({"preset": "emulator", "store": "block", "longest": 2000}, "use 1536, or 9018 for jumbo frames"),
    (
        {"preset": "emulator", "store": "block", "store_words": 8192, "directions": 1, "longest": 9018, "with_cpu": False,
         "with_aqm": False},
        "memories need 90 block RAMs, paper has 56",
    ),
    ({"link": "pigeon"}, "choose one of own, shared, uart"),
    ({"ip_address": "192.168.1"}, "write it as 192.168.1.50"),
    ({"ip_address": "224.0.0.1"}, "choose a unicast address"),
    ({"ip_address": "255.255.255.255"}, "choose a unicast address"),
    ({"ip_address": "0.0.0.0"}, "choose a unicast address"),
    ({"mac_address": 0}, "give 48 bits, not all zero"),
    ({"mac_address": 1 << 48}, "give 48 bits"),
    ({"mac_address": 0x0180C2000000}, "clear bit 0 of its first octet"),
    ({"record_depth": 1000}, "use 1024"),
    ({"record_depth": 8}, "use 1024"),
    ({"record_depth": 16384}, "use 1024"),
    ({"record_depth": 4096}, "lower record_depth"),
    ({"cpu_variant": "minimal"}, "use lite or standard"),
    ({"rom_bytes": 1000}, "use 8192"),
    ({"ram_bytes": 262144}, "use 8192"),
    ({"ram_bytes": 131072}, "lower record_depth, ram_bytes or main_ram_bytes"),
    ({"main_ram_bytes": 131072}, "lower record_depth, ram_bytes or main_ram_bytes"),
    ({"with_discipline": False, "main_ram_bytes": 32768}, "set it too"),
    ({"gnss_baud": 300}, "use 1200 to 6250000"),
    ({"main_ram_bytes": 16384}, "main_ram_bytes 16384 is not a multiple of 8192 from 32768"),
    ({"main_ram_bytes": 100000}, "main_ram_bytes 100000 is not a multiple of 8192 .* use 131072"),
    ({"main_ram": "block"}, "main_ram_bytes 0 is not a multiple of 8192 .* use 131072"),
    ({"main_ram": "tape"}, "choose one of auto, sdram, block, none"),
    ({"main_ram": "sdram"}, "paper has no SDRAM for a probe: use block RAM, main_ram_bytes=131072"),
    ({"with_discipline": False, "main_ram": "sdram"}, "set it too"),
    ({"link": "uart", "uart_baud": 10_000_000}, "use 1200 to 6250000"),
    ({"link": "uart", "uart_baud": 300}, "use 1200 to 6250000"),
]
TAKEN = [
    {},
    {"ports": 1, "link": "own"},
    {"link": "uart", "uart_baud": 3_000_000},
    {"with_cpu": False, "cpu_variant": "minimal", "ram_bytes": 0},
    {"record_depth": 2048},
    {"record_depth": 16},
    {"with_discipline": False, "gnss_baud": 300},
    {"gnss_baud": 1200},
]


@pytest.mark.parametrize(("fields", "fix"), REFUSED)
def test_refusal_names_the_fix(fields, fix):
    with pytest.raises(ValueError, match=fix):
        ProbeConfig(**fields).check(Board())


@pytest.mark.parametrize("fields", TAKEN)
def test_what_a_board_can_hold_is_taken(fields):
    ProbeConfig(**fields).check(Board())


@pytest.mark.parametrize(("fields", "slots"), [({}, 8), ({"with_cpu": False}, 16), ({"streams": 15}, 16)])
def test_more_streams_are_taken_where_they_are_routed_with_any_seed_or_asked_for(fields, slots):
    config = ProbeConfig(preset="monitor", ports=1, link="shared", **fields)
    small = Board(sdram_bytes=1)
    config.check(small)
    assert config.slots(small) == slots
    assert config.slots(Board(lut_sites=43848, block_rams=108)) == 16


@pytest.mark.parametrize(("with_cpu", "block_rams", "slots"), [(True, 56, 32), (False, 56, 32), (True, 42, 16), (True, 36, 8)])
def test_a_port_that_sends_streams_measures_31_where_they_fit(with_cpu, block_rams, slots):
    config = ProbeConfig(preset="generator", ports=1, link="own", with_cpu=with_cpu)
    board = Board(sdram_bytes=1, block_rams=block_rams)
    config.check(board)
    assert config.slots(board) == slots


@pytest.mark.parametrize(("preset", "ports"), [("train", 2), ("monitor", 1), ("tester", 1)])
def test_most_ports_of_a_small_board(preset, ports):
    assert most_ports(Board(), preset) == ports
    assert most_ports(Board(lut_sites=43848), preset) == most_ports(Board(lut_sites=None), preset) == 2


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"preset": "monitor", "ports": 1, "link": "own"},
        {"preset": "monitor"},
        {"preset": "tester"},
        {"preset": "generator"},
        {"preset": "tester", "ports": 1, "link": "own"},
    ],
)
def test_what_is_built_in_adds_up(fields):
    """A part that is left out takes nothing; whatever is advised fits."""
    config = ProbeConfig(**fields)
    for other in (replace(config, with_cpu=False), replace(config, with_discipline=False)):
        assert all(less < all_ for less, all_ in zip(other.area, config.area))
    for sites in range(10_000, 60_000, 1000):
        board = Board(lut_sites=sites, ports=3, block_rams=None)
        if config.fits(board):
            config.check(board)
            continue
        with pytest.raises(ValueError, match=f"{sites} LUT sites"):
            config.check(board)
        for advice in config.smaller(board):
            words = {
                "no processor (--no-cpu)": {"with_cpu": False},
                "no streams to send (--no-traffic)": {"with_streams": False},
                "no flow hash (--no-hash)": {"with_hash": False},
                "no discipline of the clock (--no-discipline)": {"with_discipline": False},
            }
            less = words.get(advice)
            name, _, value = advice.removeprefix("--").partition(" ")
            less = less or {name: int(value) if name == "ports" else value}
            assert replace(config, **less).fits(board), advice


@pytest.mark.parametrize(
    ("fields", "boards"),
    [
        ({"preset": "emulator"}, "colorlight_i9"),
        ({"preset": "emulator", "store": "block", "store_words": 8192}, "colorlight_i9 or versa_ecp5"),
        ({"preset": "replay"}, "colorlight_i9"),
        ({"preset": "monitor", "ring": "sdram"}, "colorlight_i9"),
        ({"preset": "monitor"}, "colorlight_i9 or versa_ecp5"),
        ({"main_ram": "sdram"}, "colorlight_i9"),
        ({"main_ram": "sdram", "preset": "monitor", "with_cpu": False}, "colorlight_i9 or versa_ecp5"),
    ],
)
def test_a_board_that_is_too_small_names_those_that_can(fields, boards):
    assert board("versa_ecp5").sdram_bytes == 0 < board("colorlight_i9").sdram_bytes
    small = Board(lut_sites=5000, ports=2, block_rams=None, sdram_bytes=8 << 20, sdram_banks=4)
    with pytest.raises(ValueError, match=f"take the board {boards}$"):
        ProbeConfig(**{"ports": 2, "link": "shared", **fields}).check(small)


def test_uart_needs_a_serial_port():
    with pytest.raises(ValueError, match="no serial port for link=uart: use link=own or link=shared"):
        ProbeConfig(link="uart").check(Board(with_serial=False))


def test_slow_sys_clock_names_the_frequency_that_would_do():
    with pytest.raises(ValueError, match="raise sys_clk_freq to 48 MHz"):
        ProbeConfig().check(Board(sys_clk_freq=47e6))


@pytest.mark.parametrize(
    ("board", "fields", "kind", "octets"),
    [
        ({"sdram_bytes": 1}, {"with_discipline": False}, "none", 0),
        ({"sdram_bytes": 1}, {}, "sdram", 0),
        ({"sdram_bytes": 1}, {"with_cpu": False}, "none", 0),
        ({"sdram_bytes": 1}, {"main_ram": "none"}, "none", 0),
        ({"sdram_bytes": 1}, {"main_ram_bytes": 32768}, "block", 32768),
        ({"spare_bytes": 40960}, {}, "block", 40960),
        ({"spare_bytes": 40960}, {"main_ram_bytes": 49152}, "block", 49152),
        ({"spare_bytes": 40960}, {"with_discipline": False}, "none", 0),
        ({}, {}, "none", 0),
    ],
)
def test_main_ram_is_the_sdram_where_firmware_can_be_started_unless_asked_otherwise(board, fields, kind, octets):
    config, paper = ProbeConfig(record_depth=16, **fields), Board(**board)
    config.check(paper)
    assert (config.main_ram_kind(paper), config.main_ram_block_bytes(paper)) == (kind, octets)


@pytest.mark.parametrize(
    ("fields", "records"),
    [
        ({}, 512),
        ({"main_ram_bytes": 40960}, 1024),
        ({"with_discipline": False}, 1024),
        ({"with_cpu": False}, 1024),
        ({"main_ram": "none"}, 1024),
        ({"record_depth": 2048}, 2048),
    ],
)
def test_records_are_fewer_only_beside_firmware_in_block_ram_that_is_spare(fields, records):
    paper = Board(spare_bytes=40960, spare_records=512)
    freed = 24 * 1024 * (records == 512)
    assert ProbeConfig(**fields).main_ram_block_bytes(paper) in (0, 40960 + freed)
    assert ProbeConfig(**fields).records(paper) == records
    assert ProbeConfig().records(Board()) == ProbeConfig().records(Board(sdram_bytes=1, spare_records=512)) == 1024


def test_a_preset_without_records_has_no_more_block_ram_to_spare():
    paper = Board(spare_bytes=40960, spare_records=512)
    assert ProbeConfig().main_ram_block_bytes(paper) == 40960 + 2 * 512 * 24
    assert ProbeConfig(preset="generator").main_ram_block_bytes(paper) == 40960


def test_size_of_block_ram_is_no_size_of_a_sdram():
    with pytest.raises(ValueError, match="leave it out, or use main_ram=block"):
        ProbeConfig(main_ram="sdram", main_ram_bytes=65536).check(Board(sdram_bytes=1))


def test_simulation_has_no_limit_of_block_rams():
    ProbeConfig(record_depth=8192, ram_bytes=131072).check(Board(block_rams=None))


def test_soc_refuses_before_it_touches_the_board():
    with pytest.raises(ValueError, match="set ports from 1 to 2"):
        ProbeSoC(Board(), ProbeConfig(ports=7))


def test_phys_count_the_port_of_the_link():
    config = ProbeConfig(ports=2)
    assert [replace(config, link=link).phys for link in ("own", "shared", "uart")] == [3, 2, 2]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ports": 3}, "replay has 2 rings, not 3: set ports to 2 at most"),
        ({"link": "uart"}, "link=uart does not carry what is replayed: use link=own, link=shared or link=pcie"),
        ({"link": "pcie"}, "paper has no PCIe for link=pcie"),
    ],
)
def test_replay_has_two_rings_and_wants_ethernet(fields, message):
    fields = {"preset": "replay", "ports": 1, "with_cpu": False} | fields
    with pytest.raises(ValueError, match=message):
        ProbeConfig(**fields).check(Board(ports=4, lut_sites=None, block_rams=None, sdram_bytes=8 << 20))


def test_replay_over_pcie_takes_a_dma_channel_a_port_and_the_place_of_main_ram():
    board  = Board(lut_sites=None, block_rams=None, sdram_bytes=8 << 20, with_pcie=True)
    config = ProbeConfig(preset="replay", ports=2, link="pcie")
    config.check(board)
    replace(config, dma_channels=2, with_cpu=False).check(board)
    with pytest.raises(ValueError, match="set dma_channels to 2 or more"):
        replace(config, dma_channels=1).check(board)
    with pytest.raises(ValueError, match="use main_ram=sdram or main_ram=none"):
        replace(config, main_ram="block", main_ram_bytes=131072).check(board)


@pytest.mark.parametrize("name", BOARDS)
def test_the_limits_that_a_host_checks_by_are_those_of_what_is_built_for_a_board(name):
    held   = BOARDS[name]
    store  = {"store": "block", "store_words": held[0].store_words} if name == "versa_ecp5" else {}
    if name != "emulator":
        store |= {"with_aqm": False, "trace_entries": 0, "with_spill": name == "colorlight_i9"}
    config = ProbeConfig(preset="emulator", directions=len(held), with_cpu=False, with_discipline=False, **store)
    config.check(Board(lut_sites=None, block_rams=None, sdram_bytes=8 << 20, sdram_banks=4) if name == "emulator" else board(name))
    sizes  = direction_limits(config)
    least  = sizes.arrival_ticks + sizes.lead_ticks + sizes.engine_ticks + sizes.move_ticks
    assert {(one.store_words, one.entries, one.longest, one.least_delay, one.trace_words, one.waiting) for one in held} == {
        (config.store_words, sizes.entries, sizes.longest, least, 2*config.trace_depth, sizes.waiting),
    }
    assert {bool(one.features) for one in held} == {config.with_aqm}
