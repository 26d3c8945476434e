# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Documents of networks and words of netem: what is read, written, refused and shown on the page; presets; bandwidth traces."""

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
import traffic_page
import yaml
from jsonschema import Draft202012Validator

from liteprobe.cores.formats.emulate import CLASS_FIELDS, ENTRY_SPACE, SETTING_WORDS
from liteprobe.host.base.errors import UsageError
from liteprobe.host.traffic.network import (
    Background,
    BandwidthTrace,
    Bernoulli,
    Bucket,
    Change,
    Codel,
    Direction,
    GilbertElliott,
    Jitter,
    LossList,
    LossPattern,
    Network,
    Pie,
    Queue,
    Red,
    Reorder,
    TrafficClass,
)
from liteprobe.host.traffic.network.document import SECTIONS, network_schema, read_network, write_network
from liteprobe.host.traffic.network.netem import from_netem
from liteprobe.host.traffic.network.store import Limits
from liteprobe.host.traffic.network.words import words_of
from liteprobe.host.traffic.presets import PRESETS, preset
from liteprobe.sim.drivers.emulator.random_networks import LEAST_NS, NetworkMaker

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "emulator.md").read_text()
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LARGE = Limits(store_words=1 << 21, entries=1 << 16, longest=1536, least_delay=LEAST_NS // 8, trace_words=1 << 16)
SDRAM = replace(LARGE, least_delay=6404)  # As of the simulated probe, 51.232 us.
MS = 10**6


def refusal(text: str, folder: Path = Path()) -> str:
    with pytest.raises(UsageError) as caught:
        read_network(text, "wan.yaml", folder)
    return str(caught.value)


def rest(text: str) -> TrafficClass:
    """Return the only class of a direction with these keys."""
    (one,) = read_network(f"there: {{{text}}}").there.classes
    return one


# What is read ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("delay: 12.5ms", {"delay_ns": 12.5 * MS}),
        ("delay: least", {}),
        ("queue: 128", {"queue": Queue(128)}),
        ("queue: {octets: 9000, red: {least: 5, most: 15, share: 10%}}", {"queue": Queue(None, 9000, Red(5, 15, 0.1))}),
        ("queue: {codel: {}}", {"queue": Queue(codel=Codel(5 * MS, 100 * MS, False))}),
        (
            "queue: {frames: 999, codel: {target: 10ms, interval: 0.2s, ecn: true}}",
            {"queue": Queue(999, codel=Codel(10 * MS, 200 * MS, True))},
        ),
        ("queue: {pie: {}}", {"queue": Queue(pie=Pie(15 * MS, 15 * MS, 150 * MS, False))}),
        (
            "queue: {red: {least: 5, most: 15, share: 10%, ecn: true}}",
            {"queue": Queue(red=Red(5, 15, 0.1, has_ecn=True))},
        ),
        ("loss: 0.1%", {"loss": Bernoulli(Fraction(1, 1000))}),
        ("loss: {p: 1%, r: 10%}", {"loss": GilbertElliott(0.01, 0.1)}),
        ("loss: {p: 1%, r: 10%, h: 30%, k: 99.9%}", {"loss": GilbertElliott(0.01, 0.1, 0.3, 0.999)}),
        ("loss_pattern: '0001'", {"pattern": LossPattern("0001")}),
        ("loss_pattern: none", {}),
        ("loss_list: [3, 17]", {"pattern": LossList((3, 17))}),
        ("loss_late: true", {"is_lost_late": True}),
        ("duplicate: 1%, corrupt: 2%, mended: true", {"duplicate": 0.01, "corrupt": 0.02, "is_mended": True}),
        ("reorder: {share: 5%, extent: 3ms}", {"reorder": Reorder(0.05, 3 * MS)}),
        ("bucket: {rate: 1Mbit, burst: 3000}", {"bucket": Bucket(MS, 3000)}),
        ("jitter: {spread: 1ms}", {"jitter": Jitter("normal", MS)}),
        ("jitter: {distribution: pareto, spread: 1ms, correlation: 25%}", {"jitter": Jitter("pareto", MS, (), 0.25)}),
        ("jitter: {table: [0us, 1us]}", {"jitter": Jitter("table", 0, (0, 1000))}),
        ("jitter: none, bucket: none, reorder: none, background: none", {}),
        ("overhead: -59", {"overhead": -59}),
        ("weight: 3, overhead: 0, discard: true", {"weight": 3, "overhead": 0, "discard": True}),
        ("expected: 50Mbit", {"expected_bps": 50 * MS}),
        (
            "background: {kind: on-off, length: 512, interval: 10us, burst: 20, pause: 5ms, phase: 1ms}",
            {"background": Background("on-off", 512, None, None, 10_000, 20, 5 * MS, (), MS)},
        ),
        ("background: {kind: exponential, share: 80%}", {"background": Background("exponential", share=0.8)}),
        (
            "background: {kind: constant, interval: 20ms, takes: 5ms}",
            {"background": Background("constant", interval_ns=20 * MS, takes_ns=5 * MS)},
        ),
        (
            "background: {kind: pattern, entries: [{after: 1us, length: 60}, {after: 2us, length: 1514}]}",
            {"background": Background("pattern", entries=((1000, 60), (2000, 1514)))},
        ),
    ],
)
def test_keys_become_settings(text: str, fields: dict[str, object]) -> None:
    assert floats(rest(text)) == floats(TrafficClass(**fields))  # type: ignore[arg-type]


def floats(value: object) -> object:
    """Return data with its fractions rounded, to compare what was written as 0.1 with a tenth."""
    if isinstance(value, Fraction | float | int) and not isinstance(value, bool):
        return round(float(value), 12)
    if isinstance(value, tuple):
        return tuple(floats(one) for one in value)
    fields = getattr(value, "__dataclass_fields__", None)
    return (type(value), *(floats(getattr(value, name)) for name in fields)) if fields else value


def test_a_direction_has_what_both_have_unless_it_gives_its_own() -> None:
    network = read_network(EXAMPLES[0])
    loss = GilbertElliott(Fraction(1, 200), Fraction(1, 5))
    voice = TrafficClass("voice", "udp port 5060", queue=Queue(32), delay_ns=12.5 * MS, loss=loss)
    lossy = TrafficClass(delay_ns=12.5 * MS, queue=Queue(128), loss=loss)
    there = Direction(10**7, classes=[voice, lossy])
    back = Direction(10**7, classes=[TrafficClass(delay_ns=12.5 * MS, queue=Queue(128))])
    slow = Direction(2 * 10**6, classes=[voice, lossy])
    assert network == Network(
        there, back, [Change(60 * 10**9, slow, back)], name="network", about="an office behind a slow line"
    )


def test_its_own_keys_replace_those_of_both() -> None:
    network = read_network("both: {delay: 1ms, loss_list: [1], rate: 1Mbit}\nback: {delay: 2ms, loss_pattern: '01'}")
    assert [way.numbered[7].delay_ns for way in (network.there, network.back)] == [MS, 2 * MS]
    assert [way.numbered[7].pattern for way in (network.there, network.back)] == [LossList([1]), LossPattern("01")]
    assert [way.rate_bps for way in (network.there, network.back)] == [MS, MS]


def test_changes_add_up_and_none_ends_what_was() -> None:
    network = read_network(
        """
        there:
          classes: [{name: a, match: udp, delay: 1ms}]
          loss: 1%
          bucket: {rate: 1Mbit, burst: 2000}
        changes:
          - {at: 1s, there: {classes: {a: {delay: 2ms}}}}
          - {at: 2s, both: {rate: 5Mbit}, there: {bucket: none, loss: 0%}}
        """
    )
    states = network.states("there")
    assert [state.numbered[0].delay_ns for state in states] == [MS, 2 * MS, 2 * MS]
    assert [state.numbered[7].bucket is None for state in states] == [False, False, True]
    assert [state.rate_bps for state in states] == [None, None, 5 * MS]
    assert [state.rate_bps for state in network.states("back")] == [None, None, 5 * MS]


#: Of a direction, for all its classes; and what a class says in its place.
COMMON = {
    "delay: 2ms": ("delay: least", {"delay_ns": 2 * MS}, {}),
    "jitter: {spread: 1ms}": ("jitter: none", {"jitter": Jitter("normal", MS)}, {}),
    "loss: 1%": ("loss: {p: 1%, r: 5%}", {"loss": Bernoulli(0.01)}, {"loss": GilbertElliott(0.01, 0.05)}),
    "loss_pattern: '01'": ("loss_list: [7]", {"pattern": LossPattern("01")}, {"pattern": LossList((7,))}),
    "loss_late: true": ("loss_late: false", {"is_lost_late": True}, {}),
    "overhead: 4": ("overhead: usual", {"overhead": 4}, {}),
    "duplicate: 1%": ("duplicate: 0%", {"duplicate": 0.01}, {}),
    "corrupt: 1%, mended: true": (
        "corrupt: 2%",
        {"corrupt": 0.01, "is_mended": True},
        {"corrupt": 0.02, "is_mended": True},
    ),
    "discard: true": ("discard: false", {"discard": True}, {}),
}


@pytest.mark.parametrize("common", COMMON)
def test_what_is_on_the_path_of_a_direction_is_on_that_of_its_classes_unless_they_say_so(common: str) -> None:
    own, of_all, of_one = COMMON[common]
    text = f"{{{common}, classes: [{{name: a, match: udp}}, {{name: b, match: tcp, {own}}}]}}"
    for network in (
        read_network(f"there: {text}"),
        read_network(f"changes: [{{at: 1s, both: {{{common}}}}}]\nthere: " + text),
    ):
        for state in network.states("there"):
            found = {one.name: replace(one, name="rest", match=None) for one in state.numbered.values()}
            assert floats(found["a"]) == floats(found["rest"]) == floats(TrafficClass(**of_all))
            assert floats(found["b"]) == floats(TrafficClass(**of_one))


def test_what_is_of_the_queue_stays_with_the_rest_and_a_change_of_all_is_one_of_each_class() -> None:
    network = read_network(
        """
        there: {rate: 1Mbit, queue: 9, weight: 2, delay: 1ms, classes: [{name: a, match: udp}, {name: b, match: tcp, delay: 2ms}]}
        changes: [{at: 1s, there: {delay: 5ms, queue: 8}}, {at: 2s, there: {classes: {rest: {queue: 7}}}},
          {at: 3s, there: {loss: 1%, weight: 3}}]
        """
    )
    states = network.states("there")
    assert [[one.delay_ns for one in state.numbered.values()] for state in states] == [
        [MS, 2 * MS, MS],
        *[[5 * MS, 2 * MS, 5 * MS]] * 3,
    ]
    assert [[one.queue.frames for one in state.numbered.values()] for state in states] == [
        [None, None, n] for n in (9, 8, 7, 7)
    ]
    assert [one.weight for one in states[3].numbered.values()] == [1, 1, 3]
    assert [one.loss for one in states[3].numbered.values()] == [Bernoulli(Fraction(1, 100))] * 3


def test_a_class_without_a_match_is_for_the_rest() -> None:
    there = read_network("there: {queue: 9, classes: [{name: a, match: udp}, {name: others, delay: 1ms}]}").there
    assert {number: one.name for number, one in there.numbered.items()} == {0: "a", 7: "others"}
    assert [one.queue.frames for one in there.numbered.values()] == [None, 9]


# What is written ---------------------------------------------------------------------------------------


@pytest.mark.sample(7)
@pytest.mark.parametrize("seed", range(40))
def test_what_is_written_reads_as_the_same_network(seed: int, tmp_path: Path) -> None:
    network = NetworkMaker(seed).network()
    for way in ("there", "back"):
        trace = getattr(network, way).trace
        if trace:  # Of one name on both ways.
            return
    again = read_network(write_network(network))
    assert (again.seed, len(again.changes)) == (network.seed, len(network.changes))
    for one, other in zip(words_of(network, (LARGE, LARGE)), words_of(again, (LARGE, LARGE)), strict=True):
        assert (one.delays, one.patterns) == (other.delays, other.patterns)
        for bank, same in zip(one.banks, other.banks, strict=True):
            assert max(abs(word - twin) for word, twin in zip(bank, same, strict=True)) <= 1


# What is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "wan.yaml:1: the document is empty"),
        ("[", "wan.yaml:1: this is not YAML"),
        ("- 1", "wan.yaml:1: 'document' is a mapping"),
        ("there: {dealy: 1ms}", "wan.yaml:1: unknown key 'dealy' of a direction: did you mean 'delay'?"),
        ("there:\n  delay: 20", "wan.yaml:2: 'delay' is a time, not '20': give a time with ns, us, ms or s"),
        ("there:\n  delay: 9s", "wan.yaml:2: delay 9s is out of range"),
        ("there:\n  delay: -1ms", "wan.yaml:2: 'delay' is a time, not '-1ms'"),
        ("there:\n  rate: 10", "wan.yaml:2: 'rate' is a rate, not '10'"),
        ("there:\n  rate: 2Gbit", "wan.yaml:2: rate 2Gbit is out of range"),
        ("there:\n  rate: 10MB", "'rate' is a rate, not '10MB'"),
        ("there:\n  loss: 0.1", "wan.yaml:2: 'loss' is a share, not '0.1'"),
        ("there:\n  loss: 101%", "wan.yaml:2: loss 101% is out of range"),
        ("there:\n  loss: {p: 1%}", "wan.yaml:2: a loss needs 'r'"),
        ("there:\n  loss: {p: 1%, r: 0%}", "wan.yaml:2: with 'r' of 0 % the bad state never ends"),
        ("there:\n  queue: 0", "wan.yaml:2: queue 0 is out of range"),
        (
            "there:\n  queue: {red: {least: 9, most: 5, share: 1%}}",
            "wan.yaml:2: RED from 9 to 5 frames is out of range",
        ),
        ("there:\n  loss_pattern: 012", "wan.yaml:2: 'loss_pattern' is not '012'"),
        ("there:\n  loss_list: [3, 1]", "wan.yaml:2: numbers of lost frames ascend"),
        ("there:\n  loss_list: [1]\n  loss_pattern: '1'", "'loss_list' and 'loss_pattern' are both given"),
        ("there:\n  jitter: {distribution: normal}", "wan.yaml:2: jitter needs 'spread', or 'table'"),
        ("there:\n  jitter: {distribution: gauss, spread: 1ms}", "distribution 'gauss' is unknown"),
        ("there:\n  jitter: nothing", "jitter 'nothing' is unknown"),
        (
            "there:\n  bucket: {rate: 1Mbit, burst: 1000}",
            "a burst of 1000 octets lets no frame of 1514 pass: give 1538",
        ),
        (
            "there:\n  background: {kind: constant}",
            "wan.yaml:2: a background 'constant' needs one of rate, share and interval",
        ),
        ("there:\n  background: {kind: constant, rate: 1Mbit, burst: 3}", "has no bursts"),
        (
            "there:\n  background: {kind: on-off, rate: 1Mbit, burst: 2.5, pause: 1ms}",
            "bursts of 2.5 background frames",
        ),
        ("there:\n  background: {kind: on-off, rate: 1Mbit, burst: 2}", "bursts of the background need a pause"),
        ("there:\n  background: {kind: pattern}", "a pattern of 0 background frames"),
        ("there:\n  background: {kind: pattern, rate: 1Mbit}", "has its own times"),
        ("there:\n  background: {kind: exponential, rate: 1Mbit, phase: 1ms}", "leave out 'phase'"),
        ("there:\n  background: {kind: constant, interval: 1ms, takes: 1us, length: 60}", "leave out 'length'"),
        ("there: {classes: [{match: udp}]}", "a class needs 'name'"),
        ("there:\n  classes:\n    - name: a\n      match: udq", "wan.yaml:4: "),
        ("there: {classes: [{name: a}, {name: b}]}", "classes 'a' and 'b' match nothing"),
        ("there: {classes: [{name: a, match: udp}, {name: a, match: tcp}]}", "2 classes are called 'a'"),
        ("changes: [{both: {delay: 1ms}}]", "a change needs 'at'"),
        ("changes: [{at: 0s}]", "at 0s is out of range"),
        ("changes: [{at: 2s}, {at: 1s}]", "changes follow each other in time"),
        (
            "changes:\n  - at: 1s\n    there: {classes: {a: {delay: 1ms}}}",
            "wan.yaml:3: there is no class 'a' to change",
        ),
        ("changes: [{at: 1s, there: {classes: [a]}}]", "'classes' is a mapping of names"),
        ("changes: [{at: 1s, there: {trace: x}}]", "unknown key 'trace' of a changed direction"),
        ("seed: -1", "'seed' is a whole number"),
        ("there: {trace: no-such-file}", "wan.yaml:1: trace: can't read no-such-file"),
        ("there: {trace: a, rate: 1Mbit}", "wan.yaml:1: "),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(text: str, words: str) -> None:
    assert words in refusal(text)


def test_eight_classes_that_match_are_one_too_many() -> None:
    classes = ", ".join(f"{{name: c{number}, match: udp port {number}}}" for number in range(8))
    assert "8 classes that match are out of range: give 7 at most" in refusal(f"there: {{classes: [{classes}]}}")


# Bandwidth traces --------------------------------------------------------------------------------------


def test_lines_of_one_stamp_are_one_opportunity(tmp_path: Path) -> None:
    (tmp_path / "cell.trace").write_text("1\n1\n1\n4\n10\n10\n")
    there = read_network("there: {trace: cell.trace}", "wan.yaml", tmp_path).there
    assert there.trace == BandwidthTrace((1, 4, 10), (4512, 1504, 3008), str(tmp_path / "cell.trace"))
    assert there.trace and there.trace.rate_bps == 9024 * 8 * 100
    words = words_of(Network(there), (LARGE, LARGE))[0]
    assert words.trace == (125_000, 4512, 375_000, 1504, 750_000, 3008)


@pytest.mark.parametrize(("time_ms", "octets"), [(0, 4500), (3, 7500), (9, 9000), (10, 13500), (1, 7500), (20, 22500)])
def test_what_comes_within_a_time_at_most_counts_over_the_end(time_ms: int, octets: int) -> None:
    """Of 1, 4 and 10 ms, again at 11, 14 and 20: 10 and 11 are neighbours."""
    trace = BandwidthTrace((1, 4, 10), (4500, 1500, 3000))
    assert trace.most_octets(Fraction(time_ms)) == octets


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ":1: the file is empty"),
        ("1\n\n2\nb\n", ":4: 'b' is not a stamp"),
        ("1\n2.5\n", ":2: '2.5' is not a stamp"),
        ("1\n-2\n", ":2: '-2' is not a stamp"),
        ("5\n7\n6\n", ":3: 6 ms is before the 7 ms of the line above"),
        ("0\n0\n", ":2: the last stamp is 0 ms"),
        ("1\n99999999999999999999\n", ":2: 99999999999999999999 ms is out of range"),
        ("²\n", ":1: '²' is not a stamp"),
    ],
)
def test_a_bad_trace_is_refused_with_its_line(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "bad.trace").write_text(text)
    found = refusal("seed: 1\nthere:\n  trace: bad.trace", tmp_path)
    assert found.startswith("wan.yaml:3: trace: ") and f"bad.trace{words}" in found


def test_a_pause_that_no_entry_can_say_is_refused() -> None:
    network = Network(Direction(trace=BandwidthTrace((1, 40_000), (1500, 1500))))
    with pytest.raises(UsageError, match="has a pause of 39999 ms: give pauses of 34359 ms at most"):
        words_of(network, (LARGE, LARGE))


# Presets, page -----------------------------------------------------------------------------------------


def test_presets_are_these_and_say_where_their_figures_come_from() -> None:
    assert PRESETS == ("datacentre-incast", "dsl", "lte", "satellite", "wifi-bursty")
    for name in PRESETS:
        network = preset(name)
        assert network.name == name and "a choice" in network.about
        for limits in (LARGE, SDRAM):
            notes = words_of(network, (limits, limits))[0].notes
            assert all("keep their order" in note for note in notes)  # Of jitter, at the rate of the link.
            assert len(notes) == (network.there.numbered[7].jitter is not None)
        assert f"| `{name}` |" in PAGE
    with pytest.raises(UsageError, match="there is no preset 'dls': did you mean 'dsl'?"):
        preset("dls")


@pytest.mark.parametrize(
    ("name", "delays_ms", "rates_kbps"),
    [
        ("dsl", (25, 25), (1500, 384)),
        ("lte", (35, 35), (12_000, 12_000)),
        ("satellite", (279, 279), (10_000, 1000)),
        ("wifi-bursty", (3, 3), (50_000, 50_000)),
        ("datacentre-incast", (0.1, 0.1), (10**6, 10**6)),
    ],
)
def test_presets_have_the_figures_that_they_name(
    name: str, delays_ms: tuple[float, float], rates_kbps: tuple[int, int]
) -> None:
    network = preset(name)
    ways = (network.there, network.back)
    assert tuple(way.numbered[7].delay_ns for way in ways) == tuple(MS * one for one in delays_ms)
    assert tuple(way.rate_bps for way in ways) == tuple(1000 * one for one in rates_kbps)


def test_forty_frames_of_the_incast_come_within_one_service() -> None:
    words = words_of(preset("datacentre-incast"), (LARGE, LARGE))[0].banks[0][7 * SETTING_WORDS :]
    names = ("background", "background_ticks", "background_burst", "background_pause", "background_length")
    assert [CLASS_FIELDS[name].value(words) for name in names] == [3, 1, 40, 1_250_000, 1514]


@pytest.mark.parametrize(
    ("rate", "takes", "octets"),
    [
        ("10Mbit", "5ms", 6250 - 24),
        ("1Gbit", "672ns", 60),
        ("100Mbit", "1312.56us", 16383),
        ("1Gbit", "131.256us", 16383),
    ],
)
def test_what_a_background_frame_takes_is_its_octets(rate: str, takes: str, octets: int) -> None:
    text = f"there: {{rate: {rate}, background: {{kind: constant, interval: 50ms, takes: {takes}}}}}"
    words = words_of(read_network(text), (LARGE, LARGE))[0].banks[0][7 * SETTING_WORDS :]
    assert CLASS_FIELDS["background_length"].value(words) == octets


@pytest.mark.parametrize(
    ("rate", "takes", "says"),
    [
        ("1Gbit", "660ns", "give 672ns to"),
        ("1Gbit", "1ms", "to 131.256us;"),
        ("none", "1ms", "link without a rate is not known"),
    ],
)
def test_what_no_background_frame_can_take_is_refused_with_what_can(rate: str, takes: str, says: str) -> None:
    text = f"there: {{rate: {rate}, background: {{kind: constant, interval: 50ms, takes: {takes}}}}}"
    with pytest.raises(UsageError, match=says):
        words_of(read_network(text), (LARGE, LARGE))


@pytest.mark.parametrize(("queue", "entries"), [(30, 32), (100, 128)])
def test_a_class_of_nothing_has_space_for_the_entries_of_its_queue_alone(queue: int, entries: int) -> None:
    background = "background: {kind: constant, interval: 20ms, takes: 5ms}"
    away = f"{{name: vacations, match: nothing, queue: {queue}, {background}}}"
    text = f"there: {{rate: 10Mbit, queue: 200, classes: [{away}]}}"
    store = Limits(store_words=(1 << 17) + entries * ENTRY_SPACE, entries=1 << 15, longest=1536, least_delay=6404)
    words = words_of(read_network(text), (store, store))[0]
    assert words.division.rings[0].words == entries * ENTRY_SPACE
    assert words.division.rings[7].words == 1 << 17
    assert read_network(write_network(read_network(text))) == read_network(text)


def test_the_page_has_the_keys_of_the_code() -> None:
    """Run tools/traffic_page.py where this fails."""
    assert traffic_page.current(PAGE) == PAGE
    assert re.findall(r"^<!-- keys: (.*) -->$", PAGE, re.MULTILINE) == [section.title for section in SECTIONS]


def test_the_examples_of_the_page_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "cellular.trace").write_text("1\n2\n")
    assert len(EXAMPLES) == 4
    for text in EXAMPLES:
        read_network(text, "wan.yaml", tmp_path)


def test_the_schema_takes_what_is_written_and_refuses_what_is_refused() -> None:
    written = [write_network(preset(name)) for name in PRESETS]
    written += [write_network(NetworkMaker(seed).network()) for seed in range(10)]
    for text in [*EXAMPLES, *written]:
        assert Draft202012Validator(network_schema()).is_valid(yaml.safe_load(text)), text
    for text in ("there: {delay: 20}", "there: {dealy: 1ms}", "there: {queue: 0}", "changes: [{both: {}}]"):
        assert not Draft202012Validator(network_schema()).is_valid(yaml.safe_load(text)), text
        refusal(text)


# netem, as tc-netem(8) has it ---------------------------------------------------------------------


def one(text: str) -> TrafficClass:
    """Return the class that netem's words become."""
    (found,) = from_netem(text)[0].there.classes
    return found


def notes(text: str) -> str:
    return "\n".join(from_netem(text)[1])


def part(percent: str) -> Fraction:
    return Fraction(percent) / 100


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("delay 100ms", {"delay_ns": 100 * MS}),
        ("delay 100", {"delay_ns": 100_000}),
        ("latency 1.5msecs", {"delay_ns": 1.5 * MS}),
        ("delay 100ms 10ms", {"delay_ns": 100 * MS, "jitter": Jitter("uniform", 10 * MS)}),
        ("delay 100ms 25", {"delay_ns": 100 * MS, "jitter": Jitter("uniform", 25_000)}),
        ("delay 100ms 10ms 25%", {"delay_ns": 100 * MS, "jitter": Jitter("uniform", 10 * MS, correlation=part("25"))}),
        ("delay 100ms 20ms distribution normal", {"delay_ns": 100 * MS, "jitter": Jitter("normal", 20 * MS)}),
        ("delay 1s 20ms dist paretonormal", {"delay_ns": 10**9, "jitter": Jitter("paretonormal", 20 * MS)}),
        ("loss 0.1%", {"loss": Bernoulli(part("0.1"))}),
        ("loss random 0.3", {"loss": Bernoulli(part("0.3"))}),
        ("drop 100%", {"loss": Bernoulli(1)}),
        ("loss 20% 25%", {"loss": GilbertElliott(part("15"), part("60"))}),
        ("loss gemodel 1%", {"loss": GilbertElliott(part("1"), part("99"))}),
        ("loss gemodel 1% 10%", {"loss": GilbertElliott(part("1"), part("10"))}),
        ("loss gemodel 1% 10% 70%", {"loss": GilbertElliott(part("1"), part("10"), part("30"))}),
        ("loss gemodel 1% 10% 70% 0.1%", {"loss": GilbertElliott(part("1"), part("10"), part("30"), part("99.9"))}),
        ("loss state 1%", {"loss": GilbertElliott(part("1"), part("99"))}),
        ("loss state 1% 10%", {"loss": GilbertElliott(part("1"), part("10"))}),
        ("loss state 1% 10% 0% 50% 0%", {"loss": GilbertElliott(part("1"), part("10"))}),
        ("corrupt 0.1%", {"corrupt": part("0.1"), "is_mended": True}),
        ("duplicate 1% 30%", {"duplicate": part("1")}),
        ("dup 1%", {"duplicate": part("1")}),
        ("delay 10ms reorder 25% 50%", {"reorder": Reorder(part("75"), 10 * MS)}),
        ("delay 10ms reorder 25% 50% gap 5", {"reorder": Reorder(Fraction(7, 8), 10 * MS)}),
        ("delay 10ms reorder gap 5", {"reorder": Reorder(Fraction(4, 5), 10 * MS)}),
        ("gap 5 delay 10ms", {"reorder": Reorder(Fraction(4, 5), 10 * MS)}),
    ],
)
def test_words_become_settings_of_the_only_class(text: str, changed: dict[str, object]) -> None:
    assert replace(one(text), expected_bps=None) == TrafficClass(overhead=0, **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shown", "typed"),
    [
        ("qdisc netem 8001: root refcnt 2 limit 1000 delay 100ms", "limit 1000 delay 100ms"),
        ("qdisc netem 10: dev eth0 parent 1:1 limit 9 delay 1s  10ms 25%", "limit 9 delay 1s 10ms 25%"),
        ("netem 8001: dev lo root offloaded refcnt 2 limit 5 loss 1% 25%", "limit 5 loss 1% 25%"),
        (
            "qdisc netem 1: root limit 5 loss gemodel p 1% r 10% 1-h 70% 1-k 0.1%",
            "limit 5 loss gemodel 1% 10% 70% 0.1%",
        ),
        ("qdisc netem 1: root limit 5 loss state p13 1% p31 10% p32 0% p23 9% p14 0%", "limit 5 loss state 1% 10%"),
        ("qdisc netem 1: root limit 5 rate 1Mbit packetoverhead 20 cellsize 0 celloverhead 0", "limit 5 rate 1mbit 20"),
        (
            "qdisc netem 1: root limit 5 delay 1ms\n Sent 84 bytes 2 pkt (dropped 0, overlimits 0)\n backlog 0b",
            "limit 5 delay 1ms",
        ),
        ("tc qdisc replace dev eth0 parent 1:10 handle 10: netem delay 5ms", "delay 5ms"),
    ],
)
def test_what_tc_shows_is_taken_as_what_was_typed(shown: str, typed: str) -> None:
    assert from_netem(shown)[0] == from_netem(typed)[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("delay 100ms", Fraction(1000 * 8 * 1514 * 61, 64) * 10),
        ("delay 100ms limit 100", Fraction(100 * 8 * 1514 * 61, 64) * 10),
        ("delay 75ms 25ms limit 100", Fraction(100 * 8 * 1514 * 61, 64) * 10 / (1 - Fraction(25, 102_400))),
        ("delay 1ms", None),
        ("delay 100ms limit 12500", None),
        ("delay 100ms rate 10mbit", None),
    ],
)
def test_what_netem_would_drop_the_store_need_not_hold(text: str, expected: Fraction | None) -> None:
    """1000 frames in 100 ms are 115 Mb/s of a store that may take 64 octets for 61; 12,500 are more than the line has."""
    assert one(text).expected_bps == (None if expected is None else int(expected))
    given = from_netem(text, expected_bps=MS)[0].there.numbered[7]
    assert given.expected_bps == MS


@pytest.mark.parametrize(
    ("text", "rate_bps", "overhead", "frames"),
    [
        ("rate 10mbit limit 100", 10**7, 0, 100),
        ("rate 100kbit", 10**5, 0, None),
        ("rate 1Mbps", 8 * 10**6, 0, None),
        ("rate 1000000", 10**6, 0, None),
        ("rate 512kibit 20", 512 * 1024, 20, None),
        ("rate 5mbit 20 0 0 limit 7", 5 * 10**6, 20, 7),
        ("rate 5mbit -14 limit 7", 5 * 10**6, -14, 7),
    ],
)
def test_a_rate_is_that_of_the_link_with_its_queue(text: str, rate_bps: int, overhead: int, frames: int | None) -> None:
    queue = Queue(frames=frames)
    assert from_netem(text)[0].there == Direction(rate_bps, classes=(TrafficClass(overhead=overhead, queue=queue),))


def test_a_whole_command_line_is_taken_from_netem_on_and_the_way_back_has_words_of_its_own() -> None:
    network, _ = from_netem("tc qdisc add dev eth0 root netem delay 20ms seed 7", "loss 1%")
    assert (network.there.classes[0].delay_ns, network.back.classes[0].loss, network.seed) == (
        20 * MS, Bernoulli(part("1")), 7,
    )  # fmt: skip
    assert from_netem("delay 20ms")[0].back == Direction()


def test_with_reorder_what_is_held_back_has_the_jitter_around_the_delay() -> None:
    found = one("delay 20ms 2ms distribution normal reorder 25%")
    assert found.delay_ns is None and found.jitter and found.reorder
    quantiles = found.jitter.quantiles_ns()
    asked = Jitter("normal", 2 * MS).quantiles_ns()
    assert [found.reorder.extent_ns + extra for extra in quantiles] == [20 * MS + extra for extra in asked]  # type: ignore[operator]


def test_the_words_of_the_issue_say_all_that_differs() -> None:
    text = (
        "delay 20ms 2ms distribution normal loss gemodel 1% 10% 70% 0.1% duplicate 1% corrupt 0.1% reorder 25% 50% gap 5 "
        "rate 10mbit limit 100"
    )
    said = from_netem(text)[1]
    for words in (
        "netem draws the loss of a frame by the state before it moves",
        "A duplicate leaves right after its frame",
        "leaves with a good FCS",
        "The correlation of 50 % of 'reorder' is left out",
        "Jitter doesn't reorder here",
        "1024 quantiles",
        "12.5 % of the frames go at once",
        "'gap 5' is in that share",
        "Frames that overtake have the jitter, too",
        "The limit of 100 frames is of those that wait for the link",
        "Jitter comes after the link here",
        "both lost and duplicated",
    ):
        assert sum(words in line for line in said) == 1, words
    assert len(said) == 12


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("loss 1%", "Without a delay frames still take the probe's least delay"),
        ("loss 1% limit 5", "'limit 5' has no effect without 'delay' or 'rate'"),
        (
            "delay 1ms limit 5",
            "netem's limit of 5 frames is of those that are delayed, too: it drops what comes above 5,000 ",
        ),
        (
            "delay 100ms",
            "netem's limit of 1000 frames (what tc takes) is of those that are delayed, too: it drops what comes",
        ),
        ("delay 100ms", "above 10,000 frames/s"),
        ("delay 250", "'250' (a delay) has no unit: it is 250 us, as tc takes it"),
        ("loss 0.3", "'0.3' (a loss) has no unit: it is 0.3 %, as tc takes it"),
        ("rate 20000", "'20000' (a rate) has no unit: it is 20000 b/s, as tc takes it"),
        ("delay 1ms 10us", "delays are uniform, as the kernel does it"),
        ("delay 1ms 10us 25%", "(25 %) that have the delay of the one before"),
        ("loss 1% 25%", "Gilbert's model here"),
        ("rate 1mbit", "netem's is 1000 frames"),
        ("delay 1ms seed 3", "other draws than netem's"),
    ],
)
def test_what_differs_is_said(text: str, words: str) -> None:
    assert words in notes(text)


def test_a_plain_delay_differs_in_nothing() -> None:
    assert from_netem("delay 0.5ms")[1] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "netem needs options"),
        ("netem", "netem needs options"),
        ("dealy 10ms", "no option 'dealy': did you mean 'delay'?"),
        ("de 10ms", "no option 'de'"),
        ("delay", "words end where a delay is missing"),
        ("delay 10parsec", "'10parsec' is not a delay of netem: give a time like 20ms"),
        ("delay -5ms", "'-5ms' is not a delay"),
        ("delay nan", "'nan' is not a delay"),
        ("delay 8.59s", "a delay of 8.59 s is out of range"),
        ("delay 10ms 9s", "a jitter of 9 s is out of range"),
        ("delay 1ms delay 2ms", "'delay' is given twice"),
        ("delay 1ms latency 2ms", "'latency' is given twice"),
        ("loss 101%", "a loss of 101 % is out of range"),
        ("loss gemodel", "words end where 'p' is missing"),
        ("loss gemodel 1% 0%", "the bad state never ends"),
        ("loss state 1% 10% 5%", "three or four states"),
        ("loss state 1% 10% 0% 50% 1%", "three or four states"),
        ("loss 1% 100%", "the first frame decides for all"),
        ("delay 1ms distribution normal", "'distribution' needs a jitter"),
        ("delay 1ms 1ms distribution experimental", "the distribution 'experimental' of netem is not known here"),
        ("reorder 25% 50%", "'reorder' needs a delay"),
        ("delay 10ms reorder 100%", "all frames go at once"),
        ("delay 1ms 5ms reorder 10%", "the jitter must be smaller than the delay"),
        ("rate 5kbit 20 100 5", "cells of 100 octets can't be done"),
        ("rate 5mbit -60", "'-60' is not a packet overhead of netem: give a whole number, -59 to 255"),
        ("rate 50%", "a share of an interface that isn't known here"),
        ("rate 10gbit", "rate 10Gbit of a link is out of range"),
        ("rate 10mbit limit 100000", "frames 100000 of a queue is out of range: give 1 to 65535"),
        ("rate 10mbit limit x", "'x' is not a limit"),
        ("delay 10ms slot 20ms", "'slot' can't be done"),
        ("loss 1% ecn", "'ecn' can't be done"),
    ],
)
def test_what_is_wrong_or_cannot_be_done_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        from_netem(text)
    assert words in str(caught.value)


#: Of tc-netem(8), and of what people write about it: what no other test here has.
OTHERS = (
    "delay 3ms 1ms 75% distribution pareto",
    "delay 100ms 20ms distribution uniform",
    "delay 5ms 10ms",
    "delay 0",
    "loss 15.3% 25% delay 200ms 40ms 25% reorder 5% 50%",
    "loss state 5% 50%",
    "loss random 0.5%",
    "loss 0% corrupt 0%",
    "duplicate 9% 50% corrupt 5% 25%",
    "gap 0 delay 10ms reorder 10%",
    "delay 10ms 2ms reorder 50%",
    "limit 10",
    "rate 100mbit 24 0 0",
    "rate 256kbit delay 0.5s",
    "rate 1mbit 20 limit 50",
    "seed 42 loss 5%",
    "latency 5ms drop 1%",
    "dev eth0 root netem delay 97ms",
    "sudo tc qdisc add dev enp0s3 root handle 1: netem delay 200ms limit 1000",
)


@pytest.mark.parametrize("text", OTHERS)
def test_what_others_write_is_a_network_that_a_document_gives_back(text: str) -> None:
    network, _ = from_netem(text)
    assert write_network(read_network(write_network(network), "netem.yaml", Path())) == write_network(network)


@pytest.mark.parametrize(
    "text", ["slot 800us 1200us packets 50", "delay 10ms ; reboot", "loss 1/3", "rate 1mbit limit 0", "gap 1"]
)
def test_what_others_write_is_refused_with_what_to_do(text: str) -> None:
    with pytest.raises(UsageError, match="give"):
        from_netem(text)
