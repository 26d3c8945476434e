# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sets from the first register to the result, over a model of the probe and real sockets; ``liteprobe sets``."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.capture.decode import BlockDecoder
from liteprobe.host.probe import Probe
from liteprobe.host.run.sets import PortSets, SetsOptions
from liteprobe.host.run.streamed import DelaySink, StreamedRun, StreamLook
from liteprobe.host.traffic.document import read_sets
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.sets import Repeat, Sets
from liteprobe.host.traffic.stream import Fixed, Interval, Stream
from liteprobe.sim.drivers.capture.blocks import Captured, blocks_of
from liteprobe.sim.drivers.replay.fake_probe import FakeReceiver, ReplayLink, fake_probe
from liteprobe.sim.drivers.replay.sets_maker import template_of
from liteprobe.sim.models.probe.replay import SetsModel

Fake = tuple[SetsModel, ReplayLink, FakeReceiver]
Run = Callable[..., tuple[int, str, str]]


def sets_of_a_bench() -> Iterator[dict[str, int]]:
    yield from ({"address": n} for n in range(20))


DOCUMENT = """\
stream: {length: 60, vlan: [5], interval: 2us, probe: false}
entry: ipv4.destination
table: [198.18.0.9, 198.18.0.10]
repeats: 1
sets:
  - {address: 198.18.1.1, vlan: 0x2005, index: 0}
  - {vlan: 6}
  - {}
  - {address: 198.18.1.2, index: 1}
"""


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Fake]:
    """A model, the link to it and the socket that takes words."""
    with fake_probe(tmp_path, SetsModel) as found:
        yield found


def test_frames_leave_as_their_sets_say_when_they_are_due(fake: Fake) -> None:
    sets = read_sets(DOCUMENT)
    fake[0].template = template_of(sets)
    with Probe(fake[1]) as probe:
        result = probe.sets(sets)
    frames = fake[0].frames
    assert [one.tick - frames[0].tick for one in frames] == [0, 250, 500, 750]
    varying = [(one.octets[14:16], one.octets[30:34], one.octets[34:38]) for one in frames]
    first, second = bytes([198, 18, 1, 1]), bytes([198, 18, 1, 2])
    nine, ten = bytes([198, 18, 0, 9]), bytes([198, 18, 0, 10])
    assert varying == [
        (b"\x20\x05", first, nine), (b"\0\x06", first, nine), (b"\0\x06", first, nine), (b"\0\x06", second, ten),
    ]  # fmt: skip
    row = result.ports[0]
    assert (row.frames, row.counts.sets, row.counts.repeats, row.sent.is_all) == (4, 4, 0, True)
    assert fake[0].values["port0_replay_prime"] == row.sent.accepted == sum(len(words) for words in sets.chunks())
    assert (result.end, result.is_complete, result.notes) == ("sent", True, ())


def test_ports_start_in_one_tick_and_a_long_stream_is_whole(fake: Fake) -> None:
    stream = Stream("long", 1, Fixed(60), Interval(interval_ns=8 * 100), probe=False)
    addresses = [[{"address": port << 20 | n} for n in range(3000)] for port in range(2)]
    sets = {port: Sets(stream, own) for port, own in enumerate(addresses)}
    fake[0].template = template_of(sets[0])
    with Probe(fake[1]) as probe:
        result = probe.sets(sets, SetsOptions(count=2500))
    for port in range(2):
        own = [one for one in fake[0].frames if one.port == port]
        assert [int.from_bytes(one.octets[26:30]) & 0xFFFFF for one in own] == list(range(2500))
        assert own[0].tick == fake[0].frames[0].tick
    assert [one.frames for one in result.ports] == [2500, 2500]


def test_an_underrun_is_said_with_the_number_of_its_frame(fake: Fake) -> None:
    sets = read_sets(DOCUMENT)
    fake[0].template, fake[0].underrun_at[0] = template_of(sets), 2
    with Probe(fake[1]) as probe:
        result = probe.sets(sets)
    assert result.ports[0].counts.first_underrun == 2
    assert not result.is_complete
    assert result.notes == (
        "port 0: 1 frames were waited for after they were due, number 2 first: lower the rate, or allow repeats",
    )


def test_a_bad_set_of_a_list_stops_the_ports(fake: Fake) -> None:
    sets = Sets(Stream("bad", 1, Fixed(60)), [{"address": 1}, {"address": -1}])
    fake[0].template = template_of(sets)
    with Probe(fake[1]) as probe, pytest.raises(ProbeError, match="set 1: address -1 is out of range"):
        probe.sets(sets)
    assert fake[0].frames == [] and fake[0].values["port0_tx_state"] == 0


def test_ports_with_different_tables_are_refused(fake: Fake) -> None:
    stream = Stream("a", 1, Fixed(60))
    sets = {port: Sets(stream, [{"index": 0}], entry="mac.source", table=[port]) for port in range(2)}
    with Probe(fake[1]) as probe, pytest.raises(UsageError, match="different tables, the probe has one"):
        probe.sets(sets)


def test_looks_say_how_far_each_port_is(fake: Fake) -> None:
    stream = Stream("long", 1, Fixed(60), Interval(interval_ns=8 * 1000), probe=False)
    sets = Sets(stream, [Repeat(1), *({"address": n} for n in range(500))])
    fake[0].template = template_of(sets)
    looks: list[StreamLook] = []
    with Probe(fake[1]) as probe:
        probe.sets(sets, show=looks.append)
        probe.sets(sets, SetsOptions(count=7), show=looks.append)
    asked = [look.asked[0] for look in looks]
    assert asked[0] == 500 and asked[-1] == 7
    frames = [look.frames[0] for look, of in zip(looks, asked, strict=True) if of == 500]
    assert frames == sorted(frames) and frames[-1] == 500 and len(set(frames)) > 2


def test_how_many_sets_there_are_is_known_of_what_has_an_end_alone() -> None:
    stream = Stream("a", 1, Fixed(60))
    assert Sets(stream, [Repeat(1), {"address": 1}, {}]).frames == 2
    assert Sets.from_columns(stream, {"address": [1, 2, 3]}).frames == 3
    assert Sets.from_bench(stream, sets_of_a_bench).frames is None
    assert Sets(stream, sets_of_a_bench()).frames is None


def test_a_line_that_the_answers_leave_by_has_room_for_them(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("liteprobe.host.run.streamed.is_shared", lambda probe: True)
    full = Sets(Stream("full", 1, Fixed(60)), [{}])
    with Probe(fake[1]) as probe, pytest.raises(UsageError, match="these sets leave no room for that on its line"):
        probe.sets(full)


def test_delays_are_those_of_frames_that_have_the_signature() -> None:
    """A stamp of the probe header is found by its octet, and what isn't of the stream has no delay."""
    stream = Stream("stamped", 1, Fixed(64), headers=Headers(vlan_tags=(5,)))
    stamp, at = stream.used_stamp, stream.headers.payload_offset
    assert stamp is not None
    frames, now = [], 1_700_000_000 * 10**9
    for number in range(50):
        octets = bytearray(stream.template(64).ljust(64, b"\0"))
        octets[at + 10 : at + 18] = (now + 1000 * number).to_bytes(8)
        if number % 5 == 4:
            octets[at + 2] ^= 1
        frames.append(Captured(now + 1000 * number + 700 + number, bytes(octets), number % 7 == 0))
    cut = Captured(now + 10**6, frames[0].octets, 0, snap=at + 3)
    sink = DelaySink({0: stamp}, {0: at})
    sink.write(BlockDecoder().decode(blocks_of([*frames, cut])))
    found = sink.delays(0, 0)
    own = [number for number in range(50) if number % 7]
    assert found and found.values.tolist() == [700 + number for number in own if number % 5 != 4]
    assert found.without == len([number for number in own if number % 5 == 4]) + 1


# Command line -------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> str:
    """A document; every URL leads to the model."""

    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: fake[1])
    path = tmp_path / "sets.yaml"
    path.write_text(DOCUMENT)
    fake[0].template = template_of(read_sets(DOCUMENT))
    return str(path)


def test_sets_prints_a_row_a_port(run: Run, file: str, tmp_path: Path) -> None:
    path = tmp_path / "sets.json"
    code, out, err = run("sets", file, "--json", str(path), "--count", "3", "--interval", "4us")
    assert (code, err) == (0, "")
    row = next(line.split() for line in out.splitlines() if line.strip().startswith("0 "))
    assert row[:11] == ["0", "3", "3", "3", "0", "0", "0", "-", "168.000", "16.80", "%"]
    assert row[11:] == ["0", *["-"] * 6]
    assert "All was sent within " in out and re.search(r"within [0-9.]+ [mµ]s\. Clock free-running", out)
    found = json.loads(path.read_text())
    assert (found["ports"][0]["counts"]["sets"], found["ports"][0]["counts"]["error"], found["end"]) == (
        3,
        "none",
        "sent",
    )


def test_a_report_has_what_was_planned_and_what_was_sent(run: Run, file: str, tmp_path: Path) -> None:
    path = tmp_path / "sets.html"
    code, _, err = run("sets", file, "--report", str(path))
    assert (code, err) == (0, f"report: {path}\n")
    text = path.read_text()
    assert "<h1>Frames of configuration sets</h1>" in text
    assert "<td>address, vlan, index</td>" in text and "<td>500,000.0</td>" in text
    assert "Of sets" in text and "Can't start" not in text and "<h2>Delay, ns</h2>" not in text


def test_an_interrupt_keeps_what_was_sent(run: Run, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(self: StreamedRun[PortSets]) -> StreamLook:
        raise Interrupted

    monkeypatch.setattr(StreamedRun, "_seen", seen)
    code, out, err = run("sets", file, "--json")
    assert code == 130
    assert err == "liteprobe: interrupted; what was sent until then is incomplete\n"
    content = json.loads(out)
    assert (content["format"], content["end"], content["notes"]) == (
        "liteprobe-sets",
        "interrupted",
        ["interrupted before its end"],
    )


def test_a_narrow_terminal_shows_every_column(run: Run, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("liteprobe.host.cli.tables.console", lambda: Console(highlight=False, width=80))
    code, out, _ = run("sets", file)
    heads = [line.split() for line in out.splitlines() if line.strip().startswith("port ")]
    assert code == 0
    wanted = "sent of of sets repeats late underruns first Mb/s of line resent ns mean P50 P99 P99.9 most"
    assert " ".join(" ".join(head[1:]) for head in heads) == wanted and "least" in out.split()


@pytest.mark.parametrize("option", ["--capture", "--json", "--report"])
def test_no_result_is_written_over_the_sets(run: Run, file: str, option: str) -> None:
    before = Path(file).read_text()
    code, _, err = run("sets", file, option, file)
    said = f"what is sent and {option} are the same file, {file}: give each one of its own"
    assert (code, err) == (2, f"liteprobe: {said}\n") and Path(file).read_text() == before


def test_check_says_what_the_stream_takes(run: Run, file: str) -> None:
    code, out, err = run(
        "sets", file, "--check", "--pps", "1000000", "--repeat", "7", "--probe", "etherbone://nowhere.invalid"
    )
    assert (code, err) == (0, "")
    assert "1,000,000.0" in out and "address, vlan, index" in out
    # 8 octets of fields a frame, 1500 octets of IP around each 1460.
    assert f"{64 * 1500 / 1460:,.3f} Mb/s" in out
    assert any(line.split() == ["repeats", "7"] for line in out.splitlines())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no file of sets is given: name one, as docs/sets.md shows"),
        (("{file}", "--count", "0"), "--count 0 is out of range: give 1 to 4294967295"),
        (("{file}", "--interval", "1ns"), "add up to"),
        (("{file}", "--repeat", "65536"), "65536 repeats are out of range: give 0 to 65535"),
        (("nowhere.yaml",), "can't read nowhere.yaml"),
    ],
)
def test_what_can_not_be_is_a_usage_error(run: Run, file: str, arguments: tuple[str, ...], message: str) -> None:
    code, _, err = run("sets", *(one.format(file=file) for one in arguments))
    assert code == 2 and message in err


def test_the_schema_is_printed(run: Run) -> None:
    assert json.loads(run("sets", "--schema")[1])["required"] == ["stream", "sets"]
