# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Networks that are changed while they run, over a model of the probe: when it holds, what stays, other hosts, refusals."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from liteprobe.cores.formats.emulate import BANK_WORDS, CLASSES, SETTING_WORDS, UNMATCHED_CLASS
from liteprobe.host.base.errors import BusyError, UsageError
from liteprobe.host.probe import Probe
from liteprobe.host.run.emulate import Emulation
from liteprobe.host.traffic.network import Change, Direction, Network, TrafficClass
from liteprobe.host.traffic.network.described import TEXT_WORD, description_of
from liteprobe.host.traffic.network.document import direction_document, network_document, read_network
from liteprobe.host.traffic.network.words import words_of
from liteprobe.sim.drivers.system.fake_link import FakeLink, fake_emulator
from liteprobe.sim.drivers.tools.refusals import refusal
from liteprobe.sim.models.probe.emulator import SETTINGS_BASE, STRIDE, EmulatorProbe

TICKS_OF_S = 125_000_000
Fake = tuple[EmulatorProbe, FakeLink]
REST = UNMATCHED_CLASS
MS = 10**6
VOICE = """\
both: {rate: 10Mbit, delay: 5ms, queue: 10, overhead: 0}
there:
  classes:
    - {name: voice, match: udp port 5060, delay: 1ms}
    - {name: a.b, match: tcp, background: {kind: constant, rate: 1Mbit, length: 100}}
"""


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return fake_emulator(tmp_path, EmulatorProbe())


def bank(model: EmulatorProbe, n: int = 0) -> list[int]:
    """Return the settings of the bank that holds, without where its frames lie: of classes and link."""
    one = model.running[n]
    assert one
    first = SETTINGS_BASE + STRIDE * n + 4 * BANK_WORDS * one.bank
    words = [model.read(first + 4 * word) for word in range(SETTING_WORDS * CLASSES + 2)]
    return [
        0 if place % SETTING_WORDS in (25, 26) and place < SETTING_WORDS * CLASSES else word
        for place, word in enumerate(words)
    ]


def begun(model: EmulatorProbe, tmp_path: Path, network: Network) -> list[list[int]]:
    """Return the same of a network that begins so."""
    other, link = fake_emulator(tmp_path)
    with Probe(link) as probe, probe.emulate(network):
        return [bank(other, n) for n in range(2)]


def test_what_is_set_holds_from_one_tick_on_and_is_as_if_it_had_begun_so(fake: Fake, tmp_path: Path) -> None:
    model, link = fake
    model.offer(0, 0, 100, 12_500)
    with Probe(link) as probe, probe.emulate(read_network(VOICE)) as emulation:
        probe.wait(0.05)
        seconds = emulation.set("there", "voice", delay="3ms", queue=20)
        later = emulation.set("both", rate="20Mbit")
        probe.wait(0.05)
        after = [bank(model, n) for n in range(2)]
        result = emulation.result()
        counts = emulation.counts["there"]["voice"]
    ticks = [round(one * 125e6) for one in (seconds, later)]
    assert model.switches == [(0, 1, ticks[0]), (0, 0, ticks[1]), (1, 1, ticks[1])]
    assert result.network
    first, second = network_document(result.network)["changes"]
    assert first == {"at": first["at"], "there": {"classes": {"voice": {"delay": "3ms", "queue": 20}}}}
    assert second == {"at": second["at"], "there": {"rate": "20Mbit"}, "back": {"rate": "20Mbit"}}
    assert [float(one.at_ns) for one in result.network.changes] == [8.0 * tick for tick in ticks]
    assert after == begun(model, tmp_path, result.network.at(2))
    assert (result.last.there.state, result.last.back.state, result.last.changes) == (2, 1, 2)  # type: ignore[union-attr]
    (note,) = result.notes
    assert note.startswith("changes that were set while it ran: 2 (there.voice.delay=3ms, there.voice.queue=20 at 0.05")
    assert counts.arrived in (counts.sent + each for each in range(20, 60))  # Of 3 ms: none is gone.


def test_several_words_are_taken_in_one_switch_of_both_directions(fake: Fake) -> None:
    with Probe(fake[1]) as probe, probe.emulate(read_network(VOICE)) as emulation:
        emulation.set_words("there.voice.rate=2Mbit", "there.a.b.delay=2ms", "back.delay=9ms", "there.rest.loss=5%")
        assert len({tick for _, _, tick in fake[0].switches}) == 1 and len(fake[0].switches) == 2
        network = emulation.result().network
    assert network
    a_b = {"name": "a.b", "match": "tcp", "delay": "2ms", "overhead": 0}
    assert direction_document(network.at(1).there)["classes"] == [
        {
            "name": "voice",
            "match": "udp port 5060",
            "delay": "1ms",
            "bucket": {"rate": "2Mbit", "burst": 1514},
            "overhead": 0,
        },
        {**a_b, "background": {"kind": "constant", "length": 100, "rate": "1Mbit"}},
        {"name": "rest", "delay": "5ms", "queue": 10, "overhead": 0, "loss": "5%"},
    ]
    assert network.at(1).back.classes[0].delay_ns == 9 * MS


def test_a_background_is_stopped_and_started_by_itself(fake: Fake) -> None:
    with Probe(fake[1]) as probe, probe.emulate(read_network(VOICE)) as emulation:
        background = emulation.background("there", "a.b")
        kinds = [bank(fake[0])[SETTING_WORDS] >> 8 & 7]
        for act in (background.stop, background.start, background.start):
            act()
            kinds.append(bank(fake[0])[SETTING_WORDS] >> 8 & 7)
        assert kinds == [1, 0, 1, 1]
        assert "needs 'kind'" in refusal(emulation.background("there", "voice").start)


def test_what_is_set_after_changes_keeps_what_they_made(fake: Fake, tmp_path: Path) -> None:
    network = read_network(
        VOICE + "changes:\n  - {at: 50ms, there: {rate: 2Mbit}}\n  - {at: 80ms, back: {rate: 3Mbit}}\n"
    )
    with Probe(fake[1]) as probe, probe.emulate(network) as emulation:
        emulation.wait(0.09)
        emulation.set("there", "voice", delay="4ms")
        result = emulation.wait(0.1)
        after = [bank(fake[0], n) for n in range(2)]
    assert [tick for n, _, tick in fake[0].switches if n == 0][:2] == [50 * 125_000, 80 * 125_000]
    assert [tick for n, _, tick in fake[0].switches if n == 1] == [50 * 125_000, 80 * 125_000]
    assert result.network and len(result.network.changes) == 3
    last = result.network.at(3)
    assert (last.there.rate_bps, last.there.classes[0].delay_ns, last.back.rate_bps) == (2 * MS, 4 * MS, 3 * MS)
    assert after == begun(fake[0], tmp_path, last)
    assert (result.last.there.state, result.last.changes) == (3, 3)


def test_a_change_that_cannot_be_is_refused_and_the_network_goes_on(fake: Fake) -> None:
    fake[0].values["direction0_store_words"] = 1 << 16
    with Probe(fake[1]) as probe, probe.emulate(read_network(VOICE)) as emulation:
        refused = {
            "there.voice.delay=8s": "since the network began: ask for less delay or queue",
            "there.delay=10us": "takes 24.000 us at least",
            "there.x.delay=1ms": "there is no class 'x'",
            "there.reorder={share: 1%, extent: 1ms}": "would need",
            "there.voice.match=tcp": "unknown key 'match'",
        }
        for word, said in refused.items():
            assert said in refusal(emulation.set_words, word), word
        assert emulation.look().there.is_running
        result = emulation.wait(0.1)
    assert fake[0].switches == [] and result.notes == ()


def test_another_host_knows_what_holds_and_sets(fake: Fake, tmp_path: Path) -> None:
    with Probe(fake[1]) as probe, probe.emulate(read_network(VOICE, "name.yaml")) as emulation:
        emulation.set("there", "voice", delay="4ms")
        emulation.detach()
    for number, delay in enumerate(("6ms", "7ms")):
        with Probe(FakeLink(fake[0], tmp_path)) as probe:
            other = probe.emulate()
            assert other.network and other.network.name == "name"
            assert [one.name for one in other.look().there.classes] == ["voice", "a.b", "rest"]
            voice = direction_document(other.network.there)["classes"][0]
            assert voice["delay"] == ("4ms", "6ms")[number]
            other.set_words(f"there.voice.delay={delay}")
            other.detach() if number else None
    with Probe(FakeLink(fake[0], tmp_path)) as probe:
        other = probe.emulate()
        look = other.look()
        assert (look.there.state, look.back.state, look.changes) == (3, 0, 3)  # type: ignore[union-attr]
        assert other.now and other.now.there.classes[0].delay_ns == 7 * MS


def test_a_host_that_is_gone_between_two_changes_leaves_the_next_one(fake: Fake, tmp_path: Path) -> None:
    network = read_network(
        VOICE + "".join(f"{'changes:' * (not n)}\n  - {{at: {n + 1}s, there: {{rate: {n + 2}Mbit}}}}" for n in range(3))
    )
    with Probe(fake[1]) as probe:
        probe.emulate(network)  # Never stopped, nor detached: as if its host had died.
    fake[0].advance(5 * TICKS_OF_S)
    with Probe(FakeLink(fake[0], tmp_path)) as probe:
        other = probe.emulate()
        assert other.network and other.network.there.rate_bps == 2 * MS and other.look().there.state == 1


def test_a_look_sees_what_another_host_sets(fake: Fake, tmp_path: Path) -> None:
    with Probe(fake[1]) as probe:
        probe.emulate(read_network(VOICE)).detach()
    with Probe(FakeLink(fake[0], tmp_path)) as watching, Probe(FakeLink(fake[0], tmp_path)) as setting:
        watch = watching.emulate()
        one = setting.emulate()
        for number in range(1, 4):
            one.set("there", rate=f"{number}Mbit")
            assert watch.look().there.state == number
            assert watch.network and watch.network.there.rate_bps == number * MS


def test_two_hosts_do_not_set_at_a_time(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Probe(fake[1]) as probe, probe.emulate(read_network(VOICE)) as emulation:
        with Probe(FakeLink(fake[0], tmp_path)) as second:
            monkeypatch.setattr(type(second.lease), "_wait_for_end", refuse)
            with pytest.raises(BusyError):
                second.emulate().set("there", rate="1Mbit")
        emulation.set("there", rate="3Mbit")
        assert emulation.result().last.there.state == 1 and len(fake[0].switches) == 1


def refuse(_: object) -> None:
    raise BusyError("the probe is in use")


def test_patterns_and_delays_are_written_where_nothing_that_holds_uses_them(fake: Fake, tmp_path: Path) -> None:
    network = read_network("there: {delay: 1ms, classes: [{name: a, match: udp, loss_pattern: '0110'}]}")
    with Probe(fake[1]) as probe, probe.emulate(network) as emulation:
        emulation.set("there", "a", loss_pattern="01")
        emulation.set("there", "a", loss_list=list(range(400)))
        assert "'there' have 600 words or more: give 512" in refusal(
            emulation.set, "there", "rest", loss_list=list(range(200))
        )
        emulation.set("there", "a", loss_pattern="01" * 32)
        assert "find no space beside those that hold" in refusal(
            emulation.set, "there", "rest", loss_list=list(range(500))
        )
        emulation.set("there", "a", loss_pattern="none")
        emulation.set("there", "rest", jitter={"spread": "100us"})
        assert "different jitter" in refusal(emulation.set, "there", "a", jitter={"spread": "50us"})
        emulation.set("there", "rest", jitter="none")
        emulation.set("there", "a", jitter={"spread": "50us"})
        settings = [fake[0].read(SETTINGS_BASE + 4 * (2 * BANK_WORDS + word)) for word in range(1024)]
        network = emulation.result().network or Network()
    assert settings == list(
        words_of(network.at(len(network.changes)), [emulation._directions[0].port.limits])[0].delays
    )


def test_a_description_that_does_not_fit_is_said_and_classes_have_numbers(fake: Fake, tmp_path: Path) -> None:
    table = "[" + ", ".join(f"{7919 * n % 104729}ns" for n in range(1024)) + "]"
    with Probe(fake[1]) as probe:
        probe.emulate(read_network(f"there: {{delay: 1ms, jitter: {{table: {table}}}}}")).detach()
    with Probe(FakeLink(fake[0], tmp_path)) as probe:
        other = probe.emulate()
        assert (other.network, [one.name for one in other.look().there.classes]) == (None, ["rest"])
        assert "what holds or is to come isn't known here" in refusal(other.set, "there", delay="2ms")
        assert "what holds isn't known" in other.result().notes[0]


def test_a_description_of_other_words_is_none() -> None:
    assert description_of([0] * BANK_WORDS) is None
    assert description_of([0x4C500001 if word == TEXT_WORD else 7 for word in range(BANK_WORDS)]) is None


def test_more_than_one_change_to_come_is_refused_with_detach(fake: Fake) -> None:
    first = Direction(classes=[TrafficClass(delay_ns=MS)])
    with (
        Probe(fake[1]) as probe,
        probe.emulate(Network(changes=[Change(n * 10**8, first) for n in (1, 2)])) as emulation,
    ):
        assert "2 changes are to come, and a probe that its host has left makes one" in refusal(emulation.detach)
        emulation.wait(0.15)
        emulation.detach()
        assert emulation.end == "detached"
    fake[1].model.advance(TICKS_OF_S // 10)
    assert len(fake[0].switches) == 4


@pytest.mark.parametrize("act", [lambda one: one.set("there"), lambda one: one.set_words()])
def test_nothing_is_no_change(fake: Fake, act: Callable[[Emulation], Any]) -> None:
    with Probe(fake[1]) as probe, probe.emulate(Network()) as emulation:
        assert "nothing is set: give what changes" in refusal(act, emulation)
        with pytest.raises(UsageError):
            emulation.set("x", delay="1ms")


def test_what_is_to_come_in_a_probe_stays_for_another_host_too(fake: Fake, tmp_path: Path) -> None:
    model, link = fake
    network = read_network(VOICE + "changes:\n  - {at: 50ms, there: {rate: 2Mbit}}\n")
    with Probe(link) as probe, probe.emulate(network) as emulation:
        said = "a change of 'there' at 0.050 s is in the probe, which can't take it back: set it after that"
        assert said in refusal(emulation.set, "there", rate="3Mbit")
        emulation.detach()
    with Probe(FakeLink(model, tmp_path)) as probe:
        other = probe.emulate()
        assert said in refusal(other.set, "there", rate="3Mbit")
        other.wait(0.06)
        other.set("there", rate="4Mbit")
        assert other.now and other.now.there.rate_bps == 4 * MS
    assert model.switches[0] == (0, 1, 50 * 125_000) and len(model.switches) == 3
