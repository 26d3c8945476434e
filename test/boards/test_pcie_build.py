# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A build of the PCIe board writes Verilog, constraints, map, driver and library, without any vendor tool."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from liteprobe.boards import VERILOG_ONLY
from liteprobe.cores.formats import BAR0_SEGMENT_BYTES, BAR0_SEGMENTS, DMA_SLOT_BYTES, DMA_SLOTS
from liteprobe.host.device.link import dma, pcie
from liteprobe.soc.pcie import CONFIG, change, litepcie_sources

REPOSITORY = Path(__file__).parents[2]

# What the driver and its library must tell alike with the host's own link: ioctls, sizes, offsets.
PROBE_OF_HEADERS = r"""
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include "litepcie.h"
#define SHOW(x) printf("%s %lld\n", #x, (long long)(x))
int main(void) {
    SHOW(LITEPCIE_IOCTL_REG); SHOW(LITEPCIE_IOCTL_DMA_WRITER); SHOW(LITEPCIE_IOCTL_DMA_READER);
    SHOW(LITEPCIE_IOCTL_MMAP_DMA_INFO); SHOW(LITEPCIE_IOCTL_LOCK);
    SHOW(offsetof(struct litepcie_ioctl_reg, val)); SHOW(offsetof(struct litepcie_ioctl_reg, is_write));
    SHOW(offsetof(struct litepcie_ioctl_dma_writer, hw_count)); SHOW(offsetof(struct litepcie_ioctl_lock, dma_writer_request));
    SHOW(offsetof(struct litepcie_ioctl_lock, dma_writer_status));
    SHOW(offsetof(struct litepcie_ioctl_mmap_dma_info, dma_rx_buf_offset));
    SHOW(DMA_BUFFER_SIZE); SHOW(DMA_BUFFER_COUNT); SHOW(DMA_CHANNEL_COUNT); SHOW(DMA_ADDR_WIDTH); SHOW(CSR_BASE);
    SHOW(PCIE_DMA7_WRITER_INTERRUPT); SHOW(PCIE_DMA0_READER_INTERRUPT);
#ifndef DMA_BUFFER_ALIGNED
#error "blocks would run on from slot to slot"
#endif
    return 0;
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("acorn")
    command = [sys.executable, "-m", "liteprobe.soc.build.bitstream", "sqrl_acorn", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "docs/pcie.md" in done.stdout and (REPOSITORY / "docs" / "pcie.md").exists()
    return out


def defines(header):
    """Return the numbers that a header defines, and the addresses, which it gives from CSR_BASE on."""
    found = re.findall(r"#define (\w+) +(\(CSR_BASE \+ )?(0x[0-9a-fA-F]+|\d+)L?\b", header)
    return {name: int(value, 0) + (BAR0_SEGMENTS[0] if base else 0) for name, base, value in found}


def test_verilog_has_the_hard_block_of_pcie_and_no_open_end(built):
    verilog = (built / "gateware" / "liteprobe.v").read_text()
    assert len(re.findall(r"^pcie_s7 \w+\(", verilog, re.M)) == 1
    assert len(re.findall(r"^GTPE2_CHANNEL #\(", verilog, re.M)) == 2
    assert len(re.findall(r"^GTPE2_COMMON #\(", verilog, re.M)) == 1
    assert (built / "gateware" / "VexRiscv_Lite.v").exists()


def test_constraints_and_script_are_for_the_card_and_a_bar_of_16_megabytes(built):
    constraints = (built / "gateware" / "liteprobe.xdc").read_text()
    pins = dict(re.findall(r"set_property LOC (\w+) \[get_ports \{(\S+?)\}\]", constraints))
    sites = {port: site for site, port in pins.items()}
    assert {name: sites[name] for name in ("clk200_p", "pcie_x1_clk_p", "sfp0_txp", "sfp1_rxn", "pps")} == {
        "clk200_p": "J19", "pcie_x1_clk_p": "F6", "sfp0_txp": "D5", "sfp1_rxn": "A8", "pps": "H5",
    }  # fmt: skip
    assert len(pins) == constraints.count("set_property LOC"), "a site is used twice"
    script = (built / "gateware" / "liteprobe.tcl").read_text()
    assert "xc7a200t-fbg484-3" in script
    assert "CONFIG.Bar0_Size {16}" in script and BAR0_SEGMENT_BYTES * len(BAR0_SEGMENTS) == 16 << 20
    assert "CONFIG.Maximum_Link_Width {X1}" in script and "CONFIG.Device_ID {7021}" in script


def test_headers_of_the_driver_have_every_register_where_the_map_has_it(built):
    registers = json.loads((built / "csr.json").read_text())["csr_registers"]
    header = defines((built / "driver" / "kernel" / "csr.h").read_text())
    assert header["CSR_BASE"] == BAR0_SEGMENTS[0]
    snapshots = [name for name in registers if f"CSR_{name.upper()}_ADDR" not in header]
    assert all(re.match(r"port\d_rx_", name) for name in snapshots), (
        "only words of memories are not registers to the driver"
    )
    for name in set(registers) - set(snapshots):
        assert header[f"CSR_{name.upper()}_ADDR"] == registers[name]["addr"], name
    for channel in range(8):
        assert header[f"CSR_PCIE_DMA{channel}_BASE"] == registers[f"pcie_dma{channel}_writer_enable"]["addr"]


def test_register_offsets_that_the_driver_has_written_down_are_ours(built):
    registers = json.loads((built / "csr.json").read_text())["csr_registers"]
    names = {"ENABLE": "enable", "TABLE_VALUE": "table_value", "TABLE_WE": "table_we", "TABLE_LEVEL": "table_level"}
    names |= {name: name.lower() for name in ("TABLE_LOOP_PROG_N", "TABLE_LOOP_STATUS")} | {
        "TABLE_FLUSH": "table_reset"
    }
    base = registers["pcie_dma0_writer_enable"]["addr"]
    text = (built / "driver" / "kernel" / "config.h").read_text()
    offsets = {name: int(value, 0) for name, value in re.findall(r"PCIE_DMA_WRITER_(\w+)_OFFSET\s+(0x\w+)", text)}
    assert {name: base + offset for name, offset in offsets.items()} == {
        name: registers[f"pcie_dma0_writer_{ours}"]["addr"] for name, ours in names.items()
    }
    # What the driver writes for a reader and a loopback must meet no register.
    taken = {entry["addr"] for entry in registers.values()}
    others = {int(value, 0) for value in re.findall(r"PCIE_DMA_(?:READER|LOOPBACK)_\w+_OFFSET\s+(0x\w+)", text)}
    assert len(others) == 8 and not taken & {base + offset for offset in others}


def test_user_library_and_its_programs_compile(built):
    done = subprocess.run(["make", "-C", str(built / "driver" / "user")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("liblitepcie/liblitepcie.a", "litepcie_util", "litepcie_test"):
        assert (built / "driver" / "user" / name).exists()


def test_ioctls_and_layouts_of_the_host_are_those_of_the_generated_header(built, tmp_path):
    (tmp_path / "show.c").write_text(PROBE_OF_HEADERS)
    include = f"-I{built / 'driver' / 'kernel'}"
    subprocess.run(["gcc", "-Wall", include, "-o", str(tmp_path / "show"), str(tmp_path / "show.c")], check=True)
    lines = subprocess.run([str(tmp_path / "show")], capture_output=True, text=True, check=True).stdout.splitlines()
    shown = {name: int(value) for name, value in (line.rsplit(" ", 1) for line in lines)}
    assert {name: value for name, value in shown.items() if name.startswith("LITEPCIE")} == {
        "LITEPCIE_IOCTL_REG": pcie.IOCTL_REG,
        "LITEPCIE_IOCTL_DMA_WRITER": dma.IOCTL_DMA_WRITER,
        "LITEPCIE_IOCTL_DMA_READER": dma.IOCTL_DMA_READER,
        "LITEPCIE_IOCTL_MMAP_DMA_INFO": dma.IOCTL_DMA_INFO,
        "LITEPCIE_IOCTL_LOCK": dma.IOCTL_LOCK,
    }
    assert [value for name, value in shown.items() if name.startswith("offsetof")] == [4, 8, 8, 1, 5, 24]
    assert [value for name, value in shown.items() if name.startswith(("DMA", "CSR", "PCIE"))] == [
        DMA_SLOT_BYTES, DMA_SLOTS, 8, 64, BAR0_SEGMENTS[0], 7, 8,
    ]  # fmt: skip


def test_other_litepcie_than_the_one_that_is_known_is_refused(tmp_path):
    text = (litepcie_sources() / "kernel" / "config.h").read_text()
    path = tmp_path / "config.h"
    path.write_text(text)
    change(path, CONFIG)
    assert path.read_text().count("#define DMA_BUFFER_SIZE        4096\n") == 1
    path.write_text(text.replace("8192", "16384"))
    with pytest.raises(ValueError, match="has no line '#define DMA_BUFFER_SIZE        8192': install the litepcie"):
        change(path, CONFIG)


def kernel_headers():
    """Return what the module can be compiled against: the headers of each kernel of this machine."""
    return sorted(path for path in Path("/lib/modules").glob("*/build") if (path / "Makefile").exists())


@pytest.mark.skipif(not kernel_headers(), reason="no kernel's headers are here: apt-get install linux-headers-amd64")
def test_module_compiles_against_the_kernels_of_this_machine_without_a_warning(built, tmp_path):
    for number, headers in enumerate(kernel_headers()):
        folder = tmp_path / str(number)
        shutil.copytree(built / "driver" / "kernel", folder)
        command = ["make", "-C", str(folder), f"KERNEL_PATH={headers}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        # Without the kernel's own image there are no types for BPF, which the driver has no use for.
        said = [line for line in done.stderr.splitlines() if not line.startswith("Skipping BTF generation")]
        assert (said, "warning" in done.stdout.lower()) == ([], False)
        assert [path.name for path in folder.glob("*.ko")] == ["litepcie.ko"]


@pytest.mark.parametrize("folder", [Path("/"), REPOSITORY, None])
def test_init_loads_the_module_beside_it_from_any_folder(built, tmp_path, folder):
    """Commands of root stand in for those of the machine; ``folder`` None: the module's own."""
    kernel = tmp_path / "a build" / "kernel"
    shutil.copytree(built / "driver" / "kernel", kernel)
    (kernel / "litepcie.ko").touch()
    commands = {"insmod": f'test -e "$1" && echo "$PWD/$1" >> "{tmp_path}/loaded"', "lsmod": "true", "chmod": "true"}
    (tmp_path / "bin").mkdir()
    for name, text in commands.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    script = "./init.sh" if folder is None else os.path.relpath(kernel / "init.sh", folder)
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    subprocess.run(["sh", script], cwd=folder or kernel, env=environment, check=True)
    assert (tmp_path / "loaded").read_text() == f"{kernel}/litepcie.ko\n"
    assert os.access(kernel / "init.sh", os.X_OK)


@pytest.mark.parametrize("option", ["--load", "--flash"])
@pytest.mark.parametrize("name", VERILOG_ONLY)
def test_nothing_can_be_loaded_where_nothing_is_compiled(name, option, tmp_path):
    command = [sys.executable, "-m", "liteprobe.soc.build.bitstream", name, option, "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "leave --load and --flash out" in done.stderr


def test_board_without_pcie_says_which_has_it(tmp_path):
    asked = ["colorlight_i5", "--link", "pcie", "--out", str(tmp_path)]
    command = [sys.executable, "-m", "liteprobe.soc.build.bitstream", *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "has no PCIe" in done.stderr and "sqrl_acorn" in done.stderr
