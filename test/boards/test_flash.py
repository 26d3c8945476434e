# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A bitstream that is written by the network: wherever the power is lost, the FPGA starts the old, the new or the golden one."""

import json
from pathlib import Path
from random import Random

import make_release
import numpy as np
import pytest

from liteprobe.host import probe as probes
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.device import bitstreams
from liteprobe.host.device.flash import FlashLayout, ProbeFlash, jump_page, plain, replace_bitstream
from liteprobe.host.device.link.base import Words
from liteprobe.host.device.registers import IDENTIFIER_WORDS, Registers
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.drivers.tools.nor_flash import SECTOR, NorFlash, PowerLost, SpiPort, started
from liteprobe.sim.drivers.tools.releases import leave_build
from liteprobe.sim.models.probe.trains import ModelProbe

LAYOUT = FlashLayout(flash_bytes=0x40000, flash_offset=0x10000)
PREAMBLE = b"\xff\xff\xbd\xb3"
SEED = 41


def stream(length: int, seed: int) -> bytes:
    """Return a bitstream of some length; some of its pages are blank."""
    random = Random(seed)
    octets = bytearray(PREAMBLE + random.randbytes(length - 4))
    octets[1024:1536] = b"\xff" * len(octets[1024:1536])
    return bytes(octets)


OLD, NEW, RUNNING = stream(9_001, 1), stream(9_800, 2), stream(5_000, 3)
VENDOR = Random(5).randbytes(LAYOUT.flash_offset)
FIRMWARE = Random(4).randbytes(3000)


def before(golden: bytes = b"", lost_at: int | None = None, seed: int = SEED) -> NorFlash:
    """Return a flash with a bitstream, firmware, and a golden bitstream or what a vendor left there."""
    flash = NorFlash(LAYOUT.flash_bytes, lost_at, Random(seed))
    flash.octets[: len(OLD)] = OLD
    flash.octets[LAYOUT.flash_offset : LAYOUT.flash_offset + len(FIRMWARE)] = FIRMWARE
    flash.octets[LAYOUT.golden :] = VENDOR
    if golden:
        flash.octets[LAYOUT.golden : LAYOUT.golden + len(golden)] = golden
        flash.octets[LAYOUT.jump :] = jump_page(LAYOUT.golden)
    return flash


def replaced(flash: NorFlash, new: bytes = NEW) -> bool:
    return replace_bitstream(flash, LAYOUT, new, RUNNING, lambda *_: None)


@pytest.mark.parametrize("golden", [b"", stream(7_000, 6)], ids=["without golden", "with golden"])
def test_all_of_it_is_there_and_nothing_else_was_touched(golden):
    flash = before(golden)
    assert replaced(flash) == bool(golden)
    octets = bytes(flash.octets)
    assert octets.startswith(NEW) and started(octets, [OLD, NEW, RUNNING]) == NEW
    kept = golden or RUNNING
    assert octets[LAYOUT.golden : LAYOUT.golden + len(kept)] == kept
    assert octets[LAYOUT.jump :] == jump_page(LAYOUT.golden)
    assert octets[LAYOUT.flash_offset : LAYOUT.flash_offset + len(FIRMWARE)] == FIRMWARE
    erased = set(flash.erased)
    mine = {*range(0, len(NEW), SECTOR)}
    assert erased <= (mine if golden else mine | {*range(LAYOUT.golden, LAYOUT.flash_bytes, SECTOR)})


@pytest.mark.parametrize("golden", [b"", stream(7_000, 6)], ids=["without golden", "with golden"])
def test_wherever_the_power_is_lost_the_board_starts_and_the_next_try_succeeds(golden):
    """In each change of the flash, twice, with other bits that have changed: half a page, half a sector."""
    whole = before(golden)
    replaced(whole)
    ends = {"old": 0, "new": 0, "golden": 0}
    for lost_at in range(whole.changes):
        for seed in range(2):
            flash = before(golden, lost_at, seed)
            with pytest.raises(PowerLost):
                replaced(flash)
            found = started(bytes(flash.octets), [OLD, NEW, RUNNING, *([golden] if golden else [])])
            assert found is not None, f"lost in change {lost_at}, seed {seed}: nothing starts"
            ends["old" if found == OLD else "new" if found == NEW else "golden"] += 1
            flash.lost_at = None
            replaced(flash)
            assert started(bytes(flash.octets), [OLD, NEW]) == NEW
    # While a golden one is made the old one starts; then there is no time at which neither is whole.
    assert ends["golden"] > 0 and (ends["old"] > 0) == (not golden) and sum(ends.values()) == 2 * whole.changes


def test_that_test_finds_a_write_in_the_usual_order():
    """One that erases and writes upwards from 0, with no golden bitstream, leaves boards that start nothing."""
    lost = 0
    for lost_at in range(10):
        flash = before(lost_at=lost_at)
        with pytest.raises(PowerLost):
            for place in range(0, len(NEW), SECTOR):
                flash.erase(place)
                for page in range(place, min(place + SECTOR, len(NEW)), 256):
                    flash.program(page, NEW[page : page + 256])
        lost += started(bytes(flash.octets), [OLD, NEW]) is None
    assert lost == 10


class Worn(NorFlash):
    """Keeps a bit of an octet as it is when it is erased, for some times."""

    def __init__(self, place: int, times: int) -> None:
        super().__init__(LAYOUT.flash_bytes)
        self.octets[:] = before().octets
        self.place, self.times = place, times

    def program(self, address: int, octets: bytes) -> None:
        super().program(address, octets)
        if address <= self.place < address + len(octets) and self.times:
            self.times -= 1
            self.octets[self.place] ^= 1


@pytest.mark.parametrize("place", [300, 5000, LAYOUT.golden + 10, LAYOUT.jump + 2])
def test_what_is_not_kept_is_written_again_and_given_up_after_three_times(place):
    flash = Worn(place, 1)
    replaced(flash)
    assert started(bytes(flash.octets), [NEW]) == NEW
    flash = Worn(place, 99)
    with pytest.raises(ProbeError, match="the flash doesn't keep what is written at 0x.*the board still starts"):
        replaced(flash)
    assert started(bytes(flash.octets), [OLD, RUNNING]) in (OLD, RUNNING)


def test_a_bitstream_that_is_too_long_or_none_and_a_flash_that_is_too_small_are_refused():
    with pytest.raises(UsageError, match="of 61441 bytes is too long: 61440 are there"):
        replaced(before(), stream(61_441, 1))
    with pytest.raises(UsageError, match="has no preamble"):
        plain(b"no bitstream")
    assert plain(b"\xff\0Part: LFE5\0\xff" + NEW) == NEW
    with pytest.raises(UsageError, match="a flash of 2 MB has no space for a golden bitstream"):
        FlashLayout(2 << 20, 1 << 20)


def test_the_page_that_leads_to_the_golden_bitstream_is_that_of_trellis():
    """Of 16 and 4 idle octets around the preamble, an empty control register, and JUMP with SPI's read and the address."""
    page = jump_page(0x300000)
    assert (
        page.hex()
        == "ff" * 16 + "ffffbdb3" + "ffffffff" + "22000000" + "00000000" + "7e000000" + "03300000" + "ff" * 216
    )


# Through a probe ------------------------------------------------------------------------------------


class FlashingProbe(ModelProbe):
    """A probe on a 5A-75B, with a port to a flash, which its processor uses unless it is held."""

    def __init__(self, size: int = LAYOUT.flash_bytes, protected: int = 0) -> None:
        super().__init__()
        self.extend("boot", {"flash": 9}, {"flash"})
        self.extend("ctrl", {"reset": 2}, {"reset"})
        self.port = SpiPort(before() if size == LAYOUT.flash_bytes else NorFlash(size), protected=protected)
        self.busy = 0
        self.held: list[int] = []
        self.map["csr_bases"]["identifier_mem"] = 0xF0000800
        self.text = b"liteprobe on colorlight_5a_75b".ljust(IDENTIFIER_WORDS, b"\0")


class FlashingLink(FakeLink):
    """Has the port of that probe: an octet takes a while, and is lost where the processor is not held."""

    model: FlashingProbe

    def __init__(self, model: FlashingProbe, folder: Path) -> None:
        super().__init__(model, folder)
        registers = Registers(self, model.map)
        self.flash, self.reset = (registers.register(name).address for name in ("boot_flash", "ctrl_reset"))
        self.came = 0xFF

    def write(self, address: int, words: list[int]) -> Words:  # type: ignore[override]
        if address == self.reset:
            self.model.held.append(words[0])
        if address != self.flash:
            return super().write(address, words)
        assert self.model.held[-1] == 2, "the processor runs"
        if words[0] & 0x100:
            self.came = self.model.port.exchange(words[0] & 0xFF)
        else:
            self.model.port.deselect()
        self.model.busy = 1
        return self.read(address)

    def read_scattered(self, addresses) -> Words:  # type: ignore[no-untyped-def]
        place = addresses[0] - 0xF0000800
        if 0 <= place < 4 * IDENTIFIER_WORDS:
            return np.array([self.model.text[(one - 0xF0000800) // 4] for one in addresses], np.uint32)
        if list(addresses) == [self.flash]:
            busy, self.model.busy = self.model.busy, 0
            return np.array([self.came | busy << 8], np.uint32)
        return super().read_scattered(addresses)


def registers_of(model: FlashingProbe, folder: Path) -> Registers:
    return Registers(FlashingLink(model, folder), model.map)


def test_the_flash_is_read_erased_and_programmed_by_its_commands_while_the_processor_is_held(tmp_path):
    model = FlashingProbe()
    with ProbeFlash(registers_of(model, tmp_path)) as flash:
        assert flash.size() == LAYOUT.flash_bytes
        assert flash.read(LAYOUT.flash_offset, 100) == FIRMWARE[:100]
        flash.erase(0x1234)
        assert model.port.flash.erased == [0x1000] and flash.read(0x1000, 64) == b"\xff" * 64
        flash.program(0x1080, bytes(range(128)))
        assert flash.read(0x1070, 160) == b"\xff" * 16 + bytes(range(128)) + b"\xff" * 16
    assert model.held == [2, 0]


def test_a_flash_that_is_protected_or_does_not_answer_is_an_error_and_the_processor_runs_on(tmp_path):
    model = FlashingProbe(protected=0x1C)
    with (
        pytest.raises(ProbeError, match=r"write-protected \(status 1c\)"),
        ProbeFlash(registers_of(model, tmp_path)) as flash,
    ):
        flash.erase(0)
    assert model.held == [2, 0] and model.port.flash.erased == []
    model.port.exchange = lambda octet: 0xFF  # type: ignore[method-assign]
    with (
        pytest.raises(ProbeError, match="the flash is busy for more than 2 s"),
        ProbeFlash(registers_of(model, tmp_path)),
    ):
        pass
    assert model.held == [2, 0, 2, 0]
    model.port.exchange = lambda octet: 0  # type: ignore[method-assign]
    with (
        pytest.raises(ProbeError, match="the flash doesn't answer"),
        ProbeFlash(registers_of(model, tmp_path)) as flash,
    ):
        flash.size()


def test_a_probe_without_a_port_to_its_flash_says_what_it_takes(tmp_path):
    model = ModelProbe()
    with pytest.raises(UsageError, match="this probe has no port to its flash, which comes with the processor"):
        ProbeFlash(Registers(FakeLink(model, tmp_path), model.map))


# The command ----------------------------------------------------------------------------------------


NAMES = ("colorlight_5a_75b:train", "colorlight_5a_75b:emulator")


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A release of a train and an emulator for boards with a small flash."""
    folder = tmp_path_factory.mktemp("release")
    register_map = FlashingProbe().map
    for name in NAMES:
        leave_build(folder / "built", name, register_map if name == NAMES[0] else None)
    assert make_release.main(["--as-built", str(folder / "built"), "--out", str(folder / "out" / "r"), *NAMES]) == 0
    index = json.loads((folder / "out" / "r" / "index.json").read_text())
    for one in index["bitstreams"]:
        path = folder / "out" / "r" / one["board"] / one["preset"] / "report.json"
        report = json.loads(path.read_text())
        report["target"] |= {"flash_bytes": LAYOUT.flash_bytes, "flash_offset": LAYOUT.flash_offset}
        path.write_text(json.dumps(report))
        one["files"]["report.json"] = {"bytes": path.stat().st_size, "sha256": make_release.digest(path)}
    (folder / "out" / "r" / "index.json").write_text(json.dumps(index))
    return folder / "out" / "r"


@pytest.fixture
def desk(released, tmp_path, monkeypatch):
    """A probe of trains on a 5A-75B with a small flash, of a release that the machine has; gives its model."""
    model = FlashingProbe()
    monkeypatch.setenv(bitstreams.VARIABLE, str(released))
    monkeypatch.chdir(tmp_path)
    real = probes.Probe
    monkeypatch.setattr(probes, "Probe", lambda url: real(FlashingLink(model, tmp_path)))
    return model


LOAD = ("load", "colorlight_5a_75b", "emulator", "--flash", "--probe", "etherbone://192.168.1.50")


def test_load_by_the_network_writes_and_verifies_and_asks_for_a_power_cycle(desk, released, run, tmp_path):
    vendor = bytes(desk.port.flash.octets)
    code, out, err = run(*LOAD, "--backup", "vendor.bin")
    assert code == 0, err
    assert "verified; what runs now is the golden bitstream from now on: switch the board off and on" in out
    assert "emulator has no processor here, so the next bitstream takes a JTAG cable again" in err
    assert (tmp_path / "vendor.bin").read_bytes() == vendor
    train, emulator = (plain((released / name.replace(":", "/") / "liteprobe.bit").read_bytes()) for name in NAMES)
    octets = bytes(desk.port.flash.octets)
    assert started(octets, [emulator]) == emulator and octets[LAYOUT.golden :].startswith(train)
    code, out, err = run(*LOAD, "--no-backup")
    assert code == 0 and "verified; the golden bitstream was kept" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (LOAD, "give --backup FILE, or --no-backup"),
        ((*LOAD, "--no-backup", "--unprotect"), "--unprotect is for a JTAG cable: leave it or --probe out"),
        ((*LOAD[:3], *LOAD[4:]), "can only be written into the flash: give --flash, too"),
    ],
)
def test_options_that_do_not_go_together_are_a_usage_error(desk, run, words, said):
    code, _, err = run(*words)
    assert code == 2 and said in err and desk.held == []


def test_a_probe_of_another_board_or_of_no_release_and_another_flash_are_refused(desk, run, tmp_path, monkeypatch):
    desk.text = b"liteprobe on colorlight_i9".ljust(IDENTIFIER_WORDS, b"\0")
    code, _, err = run(*LOAD, "--no-backup")
    assert (
        code == 2 and "calls itself 'liteprobe on colorlight_i9', and this is for colorlight_5a_75b: nothing was" in err
    )
    desk.text = b"liteprobe on colorlight_5a_75b".ljust(IDENTIFIER_WORDS, b"\0")
    (tmp_path / "old.bin").touch()
    code, _, err = run(*LOAD, "--backup", "old.bin")
    assert code == 2 and "old.bin is there already" in err
    desk.port = SpiPort(NorFlash(2 * LAYOUT.flash_bytes))
    code, _, err = run(*LOAD, "--no-backup")
    assert code == 1 and f"the flash has {2 * LAYOUT.flash_bytes} bytes, and that of a colorlight_5a_75b has" in err
    assert desk.port.flash.changes == 0
    desk.map["csr_registers"]["another"] = {"addr": 0xF0001F00, "size": 1, "type": "ro"}
    desk.values["probe_map_hash"] = probes.open_registers.__globals__["map_hash"](desk.map)
    code, _, err = run(*LOAD, "--no-backup")
    assert code == 2 and "what runs in the probe is not of this release" in err
