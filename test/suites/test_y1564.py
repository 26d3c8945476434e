# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Y.1564 against devices whose bandwidth profiles are known: the verdict on each step, and the figures that it comes from."""

import json
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import pytest
import traffic_page

from liteprobe.host import ProbeError, UsageError
from liteprobe.host.cli.main import main
from liteprobe.host.suites.suite import Verdict
from liteprobe.host.suites.trials import Journal, Trial, TrialBlock
from liteprobe.host.suites.y1564 import (
    Y1564,
    EthernetService,
    Y1564Request,
    Y1564Result,
    available,
    read_services,
)
from liteprobe.host.traffic.lengths import Fixed
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.drivers.suites.fake_probe import FakeProbe
from liteprobe.sim.models.forwarder import Device, Hostile, Lossy, Switch

ROOT = Path(__file__).resolve().parents[2]
LENGTH = 252  # 256 octets from MAC to FCS.
VOICE = EthernetService("voice", Stream("voice", 1, Fixed(LENGTH)), cir_bps=200_000_000)
FULL = replace(VOICE, eir_bps=80_000_000, cbs=8_000, ebs=6_000)
STEPS = ["cir-25", "cir-50", "cir-75", "cir-100"]


@dataclass
class Profile(Device):
    """Polices frames by MEF 10.3's two buckets (b/s, octets from MAC to FCS), full at first."""

    cir: int = 200_000_000
    cbs: int = 8_000
    eir: int = 0
    ebs: int = 0
    _tokens: list[Fraction] = field(default_factory=list)
    _tick: int = 0

    def forward(self, tick: int, port: int, length: int) -> int | None:
        """Return when a frame leaves, or None where both buckets lack tokens."""
        tokens = self._tokens = self._tokens or [Fraction(self.cbs), Fraction(self.ebs)]
        passed, self._tick = Fraction(tick - self._tick, 10**9), tick
        tokens[:] = [min(tokens[0] + passed * self.cir, self.cbs), min(tokens[1] + passed * self.eir, self.ebs)]
        for place, value in enumerate(tokens):
            if value >= length + 4:
                tokens[place] -= length + 4
                return tick + self._held(length)
        return None


def run(device: Device, *services: EthernetService, seconds: float = 0.02, **others: object) -> Y1564Result:
    """Run the suite against a device of plain Python."""
    request = Y1564Request(services, step_s=seconds, performance_s=seconds, pause_s=0.001, **others)
    return Y1564(FakeProbe(device), request).run()


def verdicts(result: Y1564Result) -> dict[str, str]:
    return {one.test: str(one.verdict) for one in result.steps}


def test_a_service_that_is_as_agreed_passes_and_its_profile_is_measured() -> None:
    result = run(Profile(eir=80_000_000, ebs=6_000), FULL, seconds=0.05)
    assert verdicts(result) == dict.fromkeys([*STEPS, "eir", "policing", "burst", "performance"], "passed")
    assert result.verdicts == {"voice": Verdict.PASSED}
    policed, burst = result.parts["voice/policing"], result.parts["voice/burst"]
    assert policed.offered_bps == 300e6  # CIR and 125 % of EIR.
    assert policed.settled is not None and policed.settled.least <= 280e6 <= policed.settled.most
    assert policed.settled.error < 0.001 * 280e6
    assert burst.burst is not None and burst.burst.least <= 14_000 <= burst.burst.most
    # Every frame is stored, and held for 375 ticks: 8 (252 + 12 + 375).
    assert {one.mean_ns for one in result.steps} == {5112.0}
    assert result.count("failed") == 0 and result.count("passed") == 8


@pytest.mark.parametrize(
    ("device", "service", "failed"),
    [
        (Profile(cir=190_000_000), VOICE, {"cir-100", "policing", "performance"}),
        (Profile(cir=90_000_000), VOICE, {"cir-50", "cir-75", "cir-100", "policing", "performance"}),
        (Device(), replace(VOICE, cbs=8_000), {"policing", "burst"}),
        (Device(), replace(VOICE, is_policed=False), set()),
        (Profile(cbs=4_000), replace(VOICE, cbs=8_000), {"burst"}),
        (Profile(cbs=20_000), replace(VOICE, cbs=8_000), {"policing", "burst"}),
        (Profile(eir=80_000_000, ebs=6_000), VOICE, {"policing"}),
        (Profile(), replace(VOICE, delay_ns=5_000), {*STEPS, "performance"}),
        (Profile(latency=300), replace(VOICE, delay_ns=5_000, delay_most_ns=5_000), set()),
        (Profile(), replace(VOICE, delay_most_ns=4_000), {*STEPS, "performance"}),
        (Lossy(one_of=100), replace(VOICE, is_policed=False), {*STEPS, "performance"}),
        (Lossy(one_of=1000), replace(VOICE, is_policed=False, loss_ratio=Fraction(1, 100)), set()),
        (Hostile(loses_all=True), VOICE, {*STEPS, "policing", "performance"}),
        (Hostile(is_mirror=True), VOICE, {*STEPS, "policing", "performance"}),
        # A shaper of the CIR (on the line 200 * 276 / 256) lets all of it pass, and holds what is above.
        (Switch(rate=Fraction(216, 1000), queue=10_000), replace(VOICE, is_policed=False), set()),
        # One below it has a queue that swallows the steps: nothing is lost, and it fails all the same.
        (Switch(rate=Fraction(20, 100), queue=10_000), replace(VOICE, is_policed=False), {"cir-100", "performance"}),
    ],
)
def test_each_service_that_is_not_as_agreed_fails_where_it_is_not(
    device: Device, service: EthernetService, failed: set[str]
) -> None:
    result = run(device, service)
    assert {test for test, verdict in verdicts(result).items() if verdict != "passed"} == failed
    assert {one.verdict for one in result.steps if one.test in failed} <= {Verdict.FAILED}
    assert all(one.reason for one in result.steps if one.verdict != Verdict.PASSED)
    assert result.verdicts["voice"] == (Verdict.FAILED if failed else Verdict.PASSED)


def test_a_limit_within_the_error_of_a_delay_is_not_known() -> None:
    result = run(Profile(), replace(VOICE, delay_ns=5_110))
    assert set(verdicts(result).values()) == {"not known", "passed"}  # 5,112 ± 8 ns; policing has no limit.
    assert result.verdicts["voice"] is Verdict.UNKNOWN


def test_a_bucket_that_swallows_short_steps_is_found_by_policing_or_it_is_not_known() -> None:
    device, service = Profile(cir=180_000_000, cbs=60_000), replace(VOICE, cbs=60_000)
    found = run(device, service)
    assert {test for test, verdict in verdicts(found).items() if verdict == "FAILED"} == {"policing", "burst"}
    assert found.verdicts["voice"] is Verdict.FAILED
    found = run(Profile(cir=180_000_000, cbs=60_000), replace(service, is_policed=False))
    assert verdicts(found) == {**dict.fromkeys([*STEPS, "performance"], "not known"), "burst": "FAILED"}
    assert "give steps of" in found.steps[0].reason


def test_a_bad_tester_is_no_fault_of_the_service() -> None:
    request = Y1564Request((VOICE,), step_s=0.01, performance_s=0.01, pause_s=0.0)
    result = Y1564(FakeProbe(Profile(), is_late=True), request).run()
    assert set(verdicts(result).values()) == {"not known"}


def test_a_step_above_the_line_is_not_done() -> None:
    service = EthernetService("fast", Stream("fast", 1, Fixed(1514)), cir_bps=900_000_000)
    result = run(Device(), service, tests=("configuration",))
    assert verdicts(result) == {**dict.fromkeys(STEPS, "passed"), "policing": "not done"}
    assert result.verdicts["fast"] is Verdict.PASSED


def test_all_services_are_sent_at_once_and_judged_apart() -> None:
    shared = Switch(rate=Fraction(1, 2), queue=20)
    others = [
        EthernetService(name, Stream(name, number, Fixed(LENGTH)), cir_bps=bps, loss_ratio=loss, is_policed=False)
        for number, (name, bps, loss) in enumerate([("a", 200 * 10**6, 0), ("b", 300 * 10**6, Fraction(9, 10))], 1)
    ]
    result = run(shared, *others, tests=("performance",))
    assert [one.verdict for one in result.steps] == ["FAILED", "passed"]
    assert [one.sent for one in result.steps] == [1953, 2929]


def block(sent: int, received: int) -> TrialBlock:
    return TrialBlock(1.0, (sent,), (received,), (0,), (0,))


def test_availability_counts_ten_bad_blocks_in_a_row_and_more() -> None:
    found = run(Profile(), VOICE, tests=("performance",)).trials[0]
    for bad, expected in ((9, 1.0), (10, 0.9), (25, 0.75), (100, 0.0)):
        blocks = [*[block(100, 49)] * bad, *[block(100, 50)] * (100 - bad)]
        assert available(replace(found, blocks=tuple(blocks)), 0) == pytest.approx(expected)
    twice = [*[block(10, 0)] * 12, block(10, 9), *[block(10, 0)] * 9, *[block(10, 10)] * 10]
    assert available(replace(found, blocks=tuple(twice)), 0) == pytest.approx(1 - 12 / 32)
    assert available(replace(found, blocks=()), 0) is None


def test_a_suite_that_was_ended_goes_on_and_says_the_same(tmp_path: Path) -> None:
    request = Y1564Request((FULL,), step_s=0.01, performance_s=0.01, pause_s=0.001)
    device = Profile(eir=80_000_000, ebs=6_000)
    whole = Y1564(FakeProbe(replace(device)), request).run().to_dict()
    for fails_at in (1, 3, 8):
        path, head = tmp_path / f"{fails_at}.jsonl", {"suite": "y1564", "request": request.to_dict()}
        with Journal(path, head) as journal, pytest.raises(ProbeError, match="link of port 0"):
            Y1564(FakeProbe(replace(device), fails_at=fails_at), request, journal).run()
        with Journal(path, head, resume=True) as journal:
            assert journal.kept == fails_at - 1
            again = Y1564(FakeProbe(replace(device)), request, journal).run().to_dict()
        assert [one["verdict"] for one in again["steps"]] == [one["verdict"] for one in whole["steps"]]
        assert [one["test"] for one in again["steps"]] == [one["test"] for one in whole["steps"]]
        kept = [Trial.of(json.loads(line)) for line in path.read_text().splitlines()[1:]]
        assert [one.to_dict() for one in kept] == json.loads(json.dumps(again["trials"]), object_hook=dict) or kept


# Documents ----------------------------------------------------------------------------------------

DOCUMENT = """
defaults: {length: 252, loss: 0.1%}
services:
  - {name: voice, cir: 50M, cbs: 12000, delay: 10us, vlan: [100]}
  - name: data
    length: imix
    cir: 100M
    eir: 20M
    variation: 5us
    availability: 99.9%
    ipv4: {tos: 0xb8}
    policed: false
"""


def test_a_document_says_what_services_are() -> None:
    voice, data = read_services(DOCUMENT)
    assert (voice.name, voice.cir_bps, voice.cbs, voice.delay_ns) == ("voice", 50_000_000, 12_000, 10_000)
    assert voice.stream.headers.vlan_tags == (100,) and voice.loss_ratio == Fraction(1, 1000)
    assert (data.eir_bps, data.is_policed, data.availability) == (20_000_000, False, Fraction(999, 1000))
    assert data.stream.headers.traffic_class == 0xB8
    # A share of the line: 24 octets a frame on top of those without FCS, of which the rate counts 4.
    assert voice.share_at(Fraction(50_000_000)) == Fraction(50, 1000) * Fraction(276, 256)


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("services: []", "services"),
        ("services:\n - {length: 100}", ":2: .*no rate"),
        ("services:\n - {length: 100, cir: 50M, cri: 4M}", ":2: unknown key 'cri' of a service: did you mean 'cir'"),
        ("services:\n - {length: 100, cir: 900M}", "don't go on the line"),
        ("services:\n - {length: 100, cir: 50M, rate: 5M}", "unknown key 'rate'"),
        ("services:\n - {length: 100, cir: 50M, loss: 3}", "per cent"),
        ("services:\n - {length: 100, cir: fast}", "'cir' is a rate"),
        ("services:\n - {length: 100, cir: 50M, probe: false}", "no probe header"),
        ("services:\n - {name: a, length: 100, cir: 5M}\n - {name: a, length: 100, cir: 5M}", "called 'a'"),
        ("services:\n - {name: a, length: 100, cir: 500M}\n - {name: b, length: 100, cir: 500M}", "of port 0"),
        ("streams: []", "unknown key 'streams'"),
        ("services:\n - {name: x}", "length"),
    ],
)
def test_a_document_that_cannot_be_is_refused_with_its_line(text: str, culprit: str) -> None:
    with pytest.raises(UsageError, match=culprit):
        read_services(text)


def test_the_command_says_what_it_would_do_and_takes_no_nonsense(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "services.yaml"
    path.write_text(DOCUMENT)
    assert main(["y1564", str(path), "--check"]) == 0
    out = capsys.readouterr().out
    assert "voice" in out and "5.391 %" in out and "not conformant" in out
    assert main(["y1564", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "LiteProbe services"
    for words in ([], [str(path), "--steps", "0"], [str(path), "--tests", "everything"], [str(path), "--steps", "101"]):
        assert main(["y1564", *words, "--check"]) == 2, words


def test_the_page_has_the_keys_of_the_code() -> None:
    """Run tools/traffic_page.py where this fails."""
    page = (ROOT / "docs/y1564.md").read_text()
    assert traffic_page.current(page) == page
