# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Registers by name, maps of another build; a probe reports itself, its clock and its link; the lease of a host."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from liteprobe.cores.formats import map_hash
from liteprobe.host.base.errors import MapError, ProbeError, UsageError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.device.lease import HostLease
from liteprobe.host.device.link.base import Words
from liteprobe.host.device.registers import Registers, candidates, load_map, open_registers
from liteprobe.host.probe import Probe
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.drivers.tools.refusals import refusal
from liteprobe.sim.models.probe.trains import ModelProbe


class NotingLink(FakeLink):
    """Notes what is written, and may keep nothing of it."""

    def __init__(self, model: ModelProbe, folder: Path, keeps: bool = True) -> None:
        super().__init__(model, folder)
        self.written: list[tuple[int, list[int]]] = []
        self.keeps = keeps

    def write(self, address: int, words: Sequence[int]) -> Words:
        self.written.append((address, list(words)))
        return super().write(address, words) if self.keeps else self.read(address, len(words))


@pytest.fixture
def link(tmp_path: Path) -> NotingLink:
    return NotingLink(ModelProbe(), tmp_path)


def registers_of(link: NotingLink) -> Registers:
    return Registers(link, link.model.map, "csr.json")


@pytest.mark.parametrize(
    ("name", "bits", "value"),
    [
        ("port0_tx_sent", 0xFFFFFFFF, 2**32 - 1),
        ("port0_rx_all_octets", 0x0123456789ABCDEF, 0x0123456789ABCDEF),
        ("timebase_adjust", 2**64 - 8, -8),
        ("timebase_adjust", 2**63 - 1, 2**63 - 1),
        ("timebase_adjust", 2**63, -(2**63)),
        ("timebase_increment", 8 << 40, 8 << 40),
    ],
)
def test_value_is_put_together_from_its_words(link: NotingLink, name: str, bits: int, value: int) -> None:
    link.model.values[name] = bits
    assert registers_of(link).read(name) == value
    assert registers_of(link).read_many([name, "probe_ports", name]) == {name: value, "probe_ports": 2}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("port0_tx_count", 2**32 - 1, [0xFFFFFFFF]),
        ("timebase_set_time", 0x0123456789ABCDEF, [0x01234567, 0x89ABCDEF]),
        ("timebase_adjust", -1, [0xFFFFFFFF, 0xFFFFFFFF]),
        ("timebase_adjust", -(2**63), [0x80000000, 0]),
    ],
)
def test_value_is_written_high_word_first(link: NotingLink, name: str, value: int, words: list[int]) -> None:
    registers = registers_of(link)
    registers.write(name, value)
    assert link.written == [(registers.register(name).address, words)]
    assert registers.read(name) == value


def test_neighbours_are_written_in_one_burst(link: NotingLink) -> None:
    registers = registers_of(link)
    registers.write_many({"port0_tx_repeats": 3, "port0_tx_count": 2, "port0_tx_length": 1, "port0_tx_start_time": 4})
    base = registers.register("port0_tx_length").address
    start = registers.register("port0_tx_start_time").address
    assert link.written == [(base, [1, 2, 3]), (start, [0, 4])]


@pytest.mark.parametrize(
    ("name", "value"), [("port0_tx_count", 2**32), ("port0_tx_count", -1), ("timebase_adjust", 2**63)]
)
def test_value_that_does_not_fit_is_refused(link: NotingLink, name: str, value: int) -> None:
    assert f"{value} does not fit {name}: give " in refusal(registers_of(link).write, name, value)
    assert link.written == []


def test_typo_gets_close_matches(link: NotingLink) -> None:
    with pytest.raises(UsageError, match="there is no register 'port0_tx_cont': did you mean port0_tx_count"):
        registers_of(link).read("port0_tx_cont")
    with pytest.raises(UsageError, match="there is no memory 'port0_header_': did you mean port0_header"):
        registers_of(link).read_memory("port0_header_", 0, 1)
    assert "there is no register 'zzz': see liteprobe regs list" in refusal(registers_of(link).write, "zzz", 1)


def test_read_only_register_is_not_written(link: NotingLink) -> None:
    assert "port0_tx_sent can only be read" in refusal(registers_of(link).write, "port0_tx_sent", 1)


def test_write_that_is_not_kept_is_an_error_after_three_tries(tmp_path: Path) -> None:
    link = NotingLink(ModelProbe(), tmp_path, keeps=False)
    with pytest.raises(ProbeError, match="doesn't keep what is written to a register of port0_tx_count"):
        registers_of(link).write_many({"port0_tx_count": 5})
    assert len(link.written) == 3


def test_memory_is_written_and_read_by_words(link: NotingLink) -> None:
    registers = registers_of(link)
    registers.write_memory("port1_header", 30, [7, 8])
    assert registers.read_memory("port1_header", 29, 3).tolist() == [0, 7, 8]
    for first, count in ((31, 2), (-1, 1), (0, 33)):
        with pytest.raises(
            UsageError, match=f"words {first} to {first + count - 1} lie outside port1_header: it has 32"
        ):
            registers.read_memory("port1_header", first, count)


def other_map(model: ModelProbe) -> dict[str, object]:
    """Return the map of a build where one more register shifts those behind it."""
    shifted = json.loads(json.dumps(model.map))
    for entry in shifted["csr_registers"].values():
        entry["addr"] += 4
    return dict(shifted)


def test_map_of_another_build_is_refused_with_both_hashes(link: NotingLink, tmp_path: Path) -> None:
    other = other_map(link.model)
    path = tmp_path / "other.json"
    path.write_text(json.dumps(other))
    with pytest.raises(MapError) as error:
        open_registers(link, path)
    found = link.model.values["probe_ports"]  # What lies where the other map has its hash.
    assert str(error.value).startswith(
        f"{path} is the map of another build (hash {map_hash(other):08x}, the probe's is {found:08x}): give --map"
    )
    assert error.value.exit_code == 1


def test_map_is_found_among_builds_by_its_hash(
    link: NotingLink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in {
        "wrong": json.dumps(other_map(link.model)),
        "broken": "{",
        "none": "[]",
        "empty": "{}",
        "right": json.dumps(link.model.map),
    }.items():
        (tmp_path / "build" / name).mkdir(parents=True)
        (tmp_path / "build" / name / "csr.json").write_text(content)
    os.utime(tmp_path / "build" / "wrong" / "csr.json", (2**31, 2**31))  # The latest is looked at first.
    link.map_file = None
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LITEPROBE_MAP", raising=False)
    assert (tmp_path / "build" / "wrong" / "csr.json").resolve() in candidates()
    assert open_registers(link).source == str(tmp_path / "build" / "right" / "csr.json")


def test_map_that_the_environment_names_is_taken(
    link: NotingLink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "named.json"
    path.write_text(json.dumps(link.model.map))
    link.map_file = None
    monkeypatch.setenv("LITEPROBE_MAP", str(path))
    assert open_registers(link).source == str(path)


def test_no_map_at_all_says_what_to_give(link: NotingLink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link.map_file = None
    monkeypatch.setattr("liteprobe.host.device.registers.candidates", lambda: [])
    monkeypatch.delenv("LITEPROBE_MAP", raising=False)
    with pytest.raises(MapError, match=r"there is no build/\*/csr\.json here\): give --map FILE, or set LITEPROBE_MAP"):
        open_registers(link)


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_file_that_is_no_map_is_a_usage_error(link: NotingLink, tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "map.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=r"register map.*--map build/BOARD/csr\.json"):
        load_map(path)


def test_json_without_registers_is_no_map(link: NotingLink) -> None:
    assert "csr.json is not a register map" in refusal(Registers, link, {"csr_registers": {"a": {}}}, "csr.json")


# The probe itself ---------------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path: Path) -> tuple[Probe, FakeLink]:
    link = FakeLink(ModelProbe(), tmp_path)
    return Probe(link), link


def test_info_gives_what_the_probe_is(own: tuple[Probe, FakeLink]) -> None:
    probe, link = own
    info = probe.info()
    assert (info["ports"], info["record_depth"], info["ticks_per_second"], info["data_width"]) == (
        2,
        1024,
        125_000_000,
        32,
    )
    assert (info["tick_ns"], info["clock_state"], info["port1_link_up"]) == (8.0, "free-running", True)
    assert info["map_hash"] == f"{link.model.values['probe_map_hash']:08x}"


def test_clock_is_set_adjusted_and_trimmed(own: tuple[Probe, FakeLink]) -> None:
    probe, link = own
    probe.timebase.set_time(10**18)
    assert 0 <= probe.timebase.now_ns - 10**18 < 20_000
    before, tick = link.model.now(), link.model.tick
    probe.timebase.adjust(-1000.5)
    assert link.model.now() - before == 8 * (link.model.tick - tick) - 1001  # Whole ns, rounded down.
    probe.timebase.increment = (8 << 40) + 1
    assert (probe.timebase.increment, probe.timebase.tick_ns) == ((8 << 40) + 1, 8 + 2**-40)
    with pytest.raises(UsageError, match="increment 0 is out of range"):
        probe.timebase.increment = 0
    ticks = probe.timebase.ticks
    assert 0 < ticks <= link.model.tick


def test_leaving_the_context_closes_the_link(own: tuple[Probe, FakeLink]) -> None:
    probe, link = own
    with probe:
        assert not link.is_closed
    assert link.is_closed


def test_probe_of_another_build_closes_the_link(tmp_path: Path) -> None:
    model = ModelProbe()
    model.values["probe_map_hash"] ^= 1
    link = FakeLink(model, tmp_path)
    assert "is the map of another build" in refusal(Probe, link, error=ProbeError)
    assert link.is_closed


def test_waiting_is_in_the_probes_time(own: tuple[Probe, FakeLink]) -> None:
    probe, link = own
    tick = link.model.tick
    probe.wait(0.001)
    assert link.model.tick - tick == 125_000


# Lease --------------------------------------------------------------------------------------------


class CutLink(FakeLink):
    """A link on which an interrupt comes before or after the access of some number."""

    cut_at = -1
    is_after = False
    count = 0

    def _cut(self, is_after: bool) -> None:
        if self.count == self.cut_at and is_after == self.is_after:
            raise Interrupted

    def read_scattered(self, addresses: Sequence[int]) -> Words:
        self.count += 1
        self._cut(is_after=False)
        found = super().read_scattered(addresses)
        self._cut(is_after=True)
        return found


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("steal", [False, True])
def test_a_lease_that_an_interrupt_cuts_short_is_this_hosts_all_the_same(
    tmp_path: Path, is_after: bool, steal: bool
) -> None:
    cuts = 0
    while True:
        link = CutLink(ModelProbe(), tmp_path)
        lease = HostLease(Registers(link, load_map(link.map_file)), steal)
        link.count, link.cut_at, link.is_after = 0, cuts + 1, is_after
        try:
            lease.ensure()
        except Interrupted:
            cuts += 1
        else:
            break
        if cuts % 2:  # What is measured after an interrupt is read, and then the probe is given back.
            lease.ensure()
            assert lease.is_held
        lease.release()
        assert (link.waits, link.model.values["probe_lease_owner"] >> 16) == ([], 0), cuts
    assert cuts >= 4


def test_a_host_that_was_refused_gives_back_nothing(tmp_path: Path) -> None:
    link = CutLink(ModelProbe(), tmp_path)
    first, second = (HostLease(Registers(link, load_map(link.map_file))) for _ in range(2))
    first.ensure()
    link.model.values["probe_lease_left"] = 20  # It is heard all the time.
    owner = link.model.values["probe_lease_owner"]
    link.cut_at, link.count, link.is_after = 1, 0, True
    with pytest.raises(Interrupted):
        second.ensure()
    second.release()
    assert link.model.values["probe_lease_owner"] == owner
