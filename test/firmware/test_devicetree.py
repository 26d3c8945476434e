# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Firmware knows the gateware that was built: devicetree and C header against the SoC's own map."""

import json
import logging
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from litex.tools.litex_json2dts_zephyr import generate_dts_config

from liteprobe.boards import board
from liteprobe.cores.formats import PRESETS, ClockError, ClockMode, ClockState, TransmitState, map_hash
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.device.firmware_build import FIRMWARE, find_tools
from liteprobe.sim.drivers.tools.compiled import apart
from liteprobe.sim.system.board import Board
from liteprobe.soc.build.devicetree import DevicetreeError, devicetree, formats_names, load, main, write, write_formats
from liteprobe.soc.config import ProbeConfig
from liteprobe.soc.export import write_map
from liteprobe.soc.probe import ProbeSoC

BEGIN, END, PROP, NOP = 1, 2, 3, 4
needs_dtc = pytest.mark.skipif(not shutil.which("dtc"), reason="dtc is missing: apt-get install device-tree-compiler")
needs_compiler = pytest.mark.skipif(not shutil.which("g++"), reason="g++ is missing")


def finalized(make_board: Callable[[], Any], config: ProbeConfig) -> Any:
    """Return the SoC of a board."""
    soc = ProbeSoC(make_board(), config)
    soc.finalize()
    return soc


@pytest.fixture(
    scope="module",
    params=[
        "simulated",
        "simulated-no-ram",
        "simulated-monitor",
        "simulated-generator",
        "simulated-emulator",
        "simulated-replay",
        "colorlight_5a_75b",
        "colorlight_i5",
        "versa_ecp5",
        "sqrl_acorn",
    ],
)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A finalized SoC, and the folder with its csr.json, devicetree and header."""
    logging.disable(logging.INFO)
    name = request.param
    if name.startswith("simulated"):
        ram = 0 if name.endswith("no-ram") else 256 * 1024
        preset = next((preset for preset in PRESETS if name.endswith(preset)), "train")
        store = {"store": "block", "store_words": 1 << 13} if preset == "emulator" else {}
        soc = apart(finalized, Board, ProbeConfig(preset=preset, link="own", main_ram_bytes=ram, **store))
    else:
        soc = apart(finalized, partial(board, name), ProbeConfig())
    logging.disable(logging.NOTSET)
    folder = tmp_path_factory.mktemp(name)
    write_map(soc, folder / "csr.json")
    write(load(folder / "csr.json"), folder)
    return soc, folder


def blob(folder: Path) -> bytes:
    """Return the devicetree compiled, every warning an error."""
    command = ["dtc", "-I", "dts", "-O", "dtb", "-o", str(folder / "probe.dtb"), str(folder / "dts/liteprobe.dts")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return (folder / "probe.dtb").read_bytes()


def nodes(data: bytes) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield path and properties of each node of a blob (Devicetree Specification v0.4, chapter 5)."""
    _, _, structure, strings = struct.unpack_from(">4I", data)
    path: list[str] = []
    found: dict[str, dict[str, bytes]] = {}
    at = structure
    while (token := struct.unpack_from(">I", data, at)[0]) != 9:
        at += 4
        if token == BEGIN:
            end = data.index(0, at)
            path.append(data[at:end].decode())
            found["/".join(path)] = {}
            at = (end + 4) & ~3
        elif token == END:
            path.pop()
        elif token == PROP:
            length, name = struct.unpack_from(">2I", data, at)
            key = data[strings + name : data.index(0, strings + name)].decode()
            found["/".join(path)][key] = data[at + 8 : at + 8 + length]
            at = (at + 8 + length + 3) & ~3
    yield from found.items()


def cells(value: bytes) -> list[int]:
    return list(struct.unpack(f">{len(value) // 4}I", value))


def spans_of(properties: dict[str, bytes]) -> dict[str, tuple[int, int]]:
    """Return address and octets of each name of ``reg-names``."""
    reg = cells(properties["reg"])
    names = properties["reg-names"].rstrip(b"\0").decode().split("\0")
    assert len(reg) == 2 * len(names)
    return dict(zip(names, zip(reg[::2], reg[1::2], strict=True), strict=True))


@needs_dtc
def test_devicetree_has_each_register_of_the_soc_once_and_nothing_else(built: tuple[Any, Path]) -> None:
    _, folder = built
    soc = json.loads((folder / "csr.json").read_text())
    expected = sorted((entry["addr"], 4 * entry["size"]) for entry in soc["csr_registers"].values())
    expected += [
        (m["base"], m["size"])
        for n, m in soc["memories"].items()
        if re.fullmatch(r"port\d_(header|records|streams)", n)
    ]
    found = []
    for path, properties in nodes(blob(folder)):
        if path.startswith("/soc/") and "interrupt-controller" not in path:
            spans = spans_of(properties)
            found += spans.values()
            assert int(path.partition("@")[2], 16) == cells(properties["reg"])[0]
    assert sorted(found) == sorted(expected)


@needs_dtc
def test_names_of_a_node_are_those_of_the_registers(built: tuple[Any, Path]) -> None:
    _, folder = built
    soc = json.loads((folder / "csr.json").read_text())
    by_address = {entry["addr"]: name for name, entry in soc["csr_registers"].items()}
    for path, properties in nodes(blob(folder)):
        if not path.startswith("/soc/") or "interrupt-controller" in path:
            continue
        for name, (address, _) in spans_of(properties).items():
            if not name.endswith("_memory"):
                assert by_address[address].endswith("_" + name), path


@needs_dtc
def test_a_port_has_the_driver_of_what_it_can_do(built: tuple[Any, Path]) -> None:
    """Trains are for a port that has the program of one: no other is to be built with their driver."""
    _, folder = built
    registers = json.loads((folder / "csr.json").read_text())["csr_registers"]
    for path, properties in nodes(blob(folder)):
        compatible = properties.get("compatible", b"")
        if compatible in (b"liteprobe,train\0", b"liteprobe,forward\0"):
            port = cells(properties["port"])[0]
            assert (compatible == b"liteprobe,train\0") == (f"port{port}_tx_arm" in registers), path
    sends = {name for name in registers if re.fullmatch(r"port\d_tx_state", name)}
    drivers = [p["compatible"] for _, p in nodes(blob(folder)) if p.get("compatible", b"").startswith(b"liteprobe,")]
    assert drivers.count(b"liteprobe,train\0") + drivers.count(b"liteprobe,forward\0") == len(sends)


BINDINGS = FIRMWARE / "dts" / "bindings"


@needs_dtc
def test_each_node_of_ours_has_a_binding_that_names_its_properties(built: tuple[Any, Path]) -> None:
    for path, properties in nodes(blob(built[1])):
        name = properties.get("compatible", b"").split(b"\0")[0].decode()
        if not name.startswith("liteprobe,") or not path.startswith("/soc/"):
            continue
        binding = yaml.safe_load((BINDINGS / f"{name}.yaml").read_text())
        assert (binding["compatible"], binding["description"].strip() != "") == (name, True)
        assert (binding["include"] == "liteprobe,port-registers.yaml") == ("port" in properties), path
        required = {key for key, value in binding.get("properties", {}).items() if value.get("required")}
        assert required <= set(properties), path


@needs_dtc
def test_zephyr_s_own_reader_takes_the_devicetree(built: tuple[Any, Path]) -> None:
    """By its library, with its bindings and ours; each node of ours has one, and no property is unknown to it."""
    try:
        tools = find_tools()
    except ProbeError as error:
        pytest.skip(f"Zephyr doesn't read it: {error}")
    script = """import sys
sys.path.insert(0, sys.argv[1] + "/scripts/dts/python-devicetree/src")
from devicetree import edtlib
tree = edtlib.EDT(sys.argv[2], [sys.argv[1] + "/dts/bindings", sys.argv[3]], warn_reg_unit_address_mismatch=True)
for node in tree.nodes:
    if node.parent and node.compats and node.compats[0].startswith("liteprobe,"):
        assert node.matching_compat == node.compats[0] and node.regs, node.path
        assert [one.name for one in node.regs] == node.props["reg-names"].val, node.path
"""
    command = [tools.python, "-c", script, tools.zephyr, built[1] / "dts" / "liteprobe.dts", BINDINGS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


#: Labels of LiteX's overlay, for Zephyr's board litex_vexriscv: our nodes.
OVERLAID = {"cpu0": "/cpus/cpu@0", "ctrl0": "ctrl", "uart0": "uart", "timer0": "timer0", "ram0": "main_ram"}


@needs_dtc
def test_litex_s_own_tool_agrees_but_for_what_the_page_lists(
    built: tuple[Any, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/firmware.md, "LiteX's tool": registers, RAM and the processor's clock agree; interrupt 0 is left out there."""
    elaborated, folder = built
    soc = json.loads((folder / "csr.json").read_text())
    overlay, options = generate_dts_config(soc)
    strangers = re.findall(r"No overlay handler for: (\w+) at", capsys.readouterr().out)
    found = dict(nodes(blob(folder)))
    bases = soc["csr_bases"] | {name: entry["base"] for name, entry in soc["memories"].items()}
    compared = set()
    for label, body in re.findall(r"&(\w+) \{\n(.*?)\n?\s*\};", overlay, re.DOTALL):
        if 'status = "disabled"' in body:
            assert OVERLAID.get(label) not in soc["csr_bases"].keys() | soc["memories"].keys(), label
            continue
        ours, compared = OVERLAID[label], compared | {label}
        if label == "cpu0":
            assert [int(re.findall(r"<(\d+)>", body)[0])] == cells(found[ours]["clock-frequency"])
            continue
        (properties,) = [p for p in found.values() if "reg" in p and cells(p["reg"])[0] == bases[ours]]
        assert [int(text, 16) for text in re.findall(r"0x\w+", body)] == cells(properties["reg"]), label
        assert re.findall(r'"(\w+)"', body) == [n for n in properties.get("reg-names", b"").decode().split("\0") if n]
        interrupts = [int(number) for number in re.findall(r"interrupts = <(\d+) 0>", body)]
        assert interrupts == [number for number in [elaborated.irq.locs.get(ours)] if number]
    assert compared == OVERLAID.keys() - ({"ram0"} if "main_ram" not in soc["memories"] else set())
    assert options == f" -DCONFIG_LITEX_CSR_DATA_WIDTH={soc['constants']['config_csr_data_width']}"
    assert set(strangers) == set(soc["csr_bases"]) - {"ctrl", "uart", "timer0", "identifier_mem"}


@needs_dtc
def test_interrupts_are_those_of_the_soc_number_zero_too(built: tuple[Any, Path]) -> None:
    soc, folder = built
    found = {}
    tree = dict(nodes(blob(folder)))
    assert "interrupt-parent" in tree["/soc"]
    for properties in tree.values():
        if "interrupts" in properties:
            base = cells(properties["reg"])[0]
            (name,) = [name for name, region in soc.csr_regions.items() if region.origin == base]
            found[name] = cells(properties["interrupts"])[0]
    assert found == soc.irq.locs
    assert 0 in found.values()


@needs_dtc
def test_processor_and_memories_are_those_of_the_soc(built: tuple[Any, Path]) -> None:
    soc, folder = built
    found = dict(nodes(blob(folder)))
    assert cells(found["/cpus/cpu@0"]["clock-frequency"]) == [soc.sys_clk_freq]
    for name, node in (("rom", "rom@"), ("sram", "sram@"), ("main_ram", "memory@")):
        expected = [[region.origin, region.size] for key, region in soc.mem_regions.items() if key == name]
        assert [cells(p["reg"]) for path, p in found.items() if path.startswith("/" + node)] == expected
    assert cells(found[""]["liteprobe,map-hash"]) == [map_hash(json.loads((folder / "csr.json").read_text()))]


@needs_compiler
def test_header_gives_a_compiler_the_addresses_of_the_soc(built: tuple[Any, Path], tmp_path: Path) -> None:
    """Compiled and run: every register, memory and interrupt, by its macro and by the list of all registers."""
    elaborated, folder = built
    soc = json.loads((folder / "csr.json").read_text())
    expected = {f"LP_{n.upper()}_ADDR": e["addr"] for n, e in soc["csr_registers"].items()}
    expected |= {f"LP_{n.upper()}_WORDS": e["size"] for n, e in soc["csr_registers"].items()}
    expected |= {f"LP_{n.upper()}_BASE": e["base"] for n, e in soc["memories"].items()}
    expected |= {f"LP_{n.upper()}_SIZE": e["size"] for n, e in soc["memories"].items()}
    expected |= {f"LP_{name.upper()}_INTERRUPT": number for name, number in elaborated.irq.locs.items()}
    expected |= {"LP_MAP_HASH": map_hash(soc), "LP_SYS_CLK_HZ": soc["constants"]["config_clock_frequency"]}
    text = '#include <stdio.h>\n#include "liteprobe/generated/registers.h"\n#define X(n, a, w, rw) {#n, a, w, rw},\n'
    text += (
        "static const struct { const char *name; unsigned address, words, writable; } all[] = { LP_REGISTERS(X) };\n"
    )
    text += "int main() {\n" + "".join(f'printf("{name} %u\\n", (unsigned)({name}));\n' for name in expected)
    text += 'for (auto &r : all) printf("row %s %u %u %u\\n", r.name, r.address, r.words, r.writable);\nputs(LP_IDENTIFIER); }\n'
    (tmp_path / "all.cpp").write_text(text)
    command = ["g++", "-Wall", "-Werror", f"-I{folder / 'include'}", "all.cpp", "-o", "all"]
    subprocess.run(command, cwd=tmp_path, check=True)
    lines = subprocess.run([tmp_path / "all"], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split()[1:] for line in lines if line.startswith("row ")]
    assert {line.split()[0]: int(line.split()[1]) for line in lines if line.startswith("LP_")} == expected
    assert {name: [int(word) for word in row] for name, *row in rows} == {
        name: [e["addr"], e["size"], int(e["type"] != "ro")] for name, e in soc["csr_registers"].items()
    }
    assert lines[-1] == soc["constants"]["config_identifier"]


@needs_compiler
def test_header_gives_a_compiler_the_formats(tmp_path: Path) -> None:
    """Compiled and run, against cores/formats itself; enums are types in C."""
    write_formats(tmp_path)
    enums = {"lp_clock_state": ClockState, "lp_clock_mode": ClockMode, "lp_train_state": TransmitState}
    expected = {f"LP_CLOCK_{member.name}": int(member) for enum in (ClockState, ClockMode) for member in enum}
    expected |= {f"LP_TRAIN_{member.name}": int(member) for member in TransmitState}
    expected |= {f"LP_CLOCK_ERROR_{flag.name}": int(flag) for flag in ClockError}
    expected |= {"LP_TICK_NS": 8, "LP_TICK_PS": 8000, "LP_WIRE_OVERHEAD": 24, "LP_TRAIN_LENGTH_MAX": 9000}
    expected |= {"LP_PROBE_PAYLOAD_IPV4": 42, "LP_PROBE_SIGNATURE": 0x4C50524F, "LP_QERR_COUNT_MASK": 127}
    text = '#include <stdio.h>\n#include "liteprobe/generated/formats.h"\nint main() {\n'
    text += "".join(f"{type_} of_{type_} = {type_}(1);\n(void)of_{type_};\n" for type_ in enums)
    text += "".join(f'printf("{name} %u\\n", (unsigned)({name}));\n' for name in expected) + "}\n"
    (tmp_path / "all.cpp").write_text(text)
    command = ["g++", "-Wall", "-Werror", f"-I{tmp_path / 'include'}", "all.cpp", "-o", "all"]
    subprocess.run(command, cwd=tmp_path, check=True)
    lines = subprocess.run([tmp_path / "all"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert {line.split()[0]: int(line.split()[1]) for line in lines} == expected


def test_no_source_of_the_firmware_says_again_what_is_generated() -> None:
    generated = {name for name, _ in formats_names()}
    sources = [path for path in FIRMWARE.rglob("*.[ch]") if "tests" not in path.parts]
    assert len(sources) > 20
    again = re.compile(r"#define\s+(LP_\w+)\s+\S|^\s*(LP_\w+)\s*=\s*\w+,", re.MULTILINE)
    for source in sources:
        assert generated.isdisjoint(name for names in again.findall(source.read_text()) for name in names), source


def test_generator_needs_no_hdl_and_touches_nothing_that_is_right(built: tuple[Any, Path], tmp_path: Path) -> None:
    _, folder = built
    script = "import sys; sys.modules['migen'] = sys.modules['litex'] = None; from liteprobe.soc.build.devicetree import main; "
    script += "raise SystemExit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, str(folder / "csr.json"), "--out", str(tmp_path)]
    paths = [Path(line) for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()]
    assert [path.read_text() for path in paths] == [(folder / p.relative_to(tmp_path)).read_text() for p in paths]
    before = [path.stat().st_mtime_ns for path in paths]
    write(load(folder / "csr.json"), tmp_path)
    assert [path.stat().st_mtime_ns for path in paths] == before


@pytest.mark.parametrize(
    ("config", "lacks", "fix"),
    [
        (ProbeConfig(with_cpu=False), "no processor", "with its VexRiscv (without --no-cpu)"),
        (ProbeConfig(with_discipline=False), "no registers that start firmware", "without --no-discipline"),
    ],
)
def test_gateware_that_cannot_run_firmware_is_refused(
    config: ProbeConfig, lacks: str, fix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logging.disable(logging.INFO)
    soc = apart(finalized, partial(board, "versa_ecp5"), config)
    logging.disable(logging.NOTSET)
    write_map(soc, tmp_path / "csr.json")
    with pytest.raises(DevicetreeError, match=re.escape(f"{lacks}: build it {fix}")):
        devicetree(load(tmp_path / "csr.json"))
    assert main([str(tmp_path / "csr.json"), "--out", str(tmp_path / "out")]) == 2
    assert lacks in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"csr_registers": {}}'])
def test_file_that_is_no_map_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "csr.json").write_text(text)
    with pytest.raises(DevicetreeError, match="give the csr.json that the build wrote"):
        load(tmp_path / "csr.json")
