# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Networks that nobody would write: whatever is asked for is done, or refused by a message that says what to do."""

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from liteprobe.cores.formats.emulate import UNMATCHED_CLASS
from liteprobe.host.base.errors import UsageError
from liteprobe.host.run.emulate import rules_of
from liteprobe.host.traffic.network import (
    Background,
    Bernoulli,
    Bucket,
    Change,
    Direction,
    GilbertElliott,
    Jitter,
    LossList,
    LossPattern,
    Network,
    Queue,
    Reorder,
    TrafficClass,
)
from liteprobe.host.traffic.network.document import read_network, write_network
from liteprobe.host.traffic.network.store import Limits
from liteprobe.host.traffic.network.words import switch_ticks, words_of
from liteprobe.sim.drivers.system.fake_link import FakeLink, fake_emulator

Chance = random.Random
Run = Callable[..., tuple[int, str, str]]
COUNT = 200
SEEDS = [1, pytest.param(None, marks=pytest.mark.full)]  # None: another one each time.
#: What a message has that tells its reader what to do; those of kinds of values say what is one.
ADVICE = re.compile(
    r"\b(give|leave out|put|did you mean|write|say|sort|keep|must come|lower|is true or false|is a mapping with keys of"
    r"|hold back fewer|start one|goes with|can't read)\b"
)
BACKGROUNDS = ("constant", "exponential", "on-off", "random on-off", "pattern")


def chance_of(seed: int | None) -> Chance:
    found = random.SystemRandom().getrandbits(32) if seed is None else seed
    print("seed", found)
    return random.Random(found)


def hold(chance: Chance, network: Network) -> None:
    """Write it, read it again, and make the words of a random probe, as `Emulation` does before anything is sent."""
    rules_of(network)
    text = write_network(network)
    assert write_network(read_network(text)) == text
    store, entries = 1 << chance.randint(13, 18), 1 << chance.randint(6, 12)
    limits = Limits(store, entries, chance.choice([1536, 9018]), chance.choice([2820, 6404, 19497]), 512)
    banks = words_of(network, (limits, limits))
    assert len(banks[0].banks) == len(switch_ticks(network)) + 1 == len(network.changes) + 1


def try_all(chance: Chance, network_of: Callable[[Chance], Network]) -> None:
    done = 0
    for _ in range(COUNT):
        try:
            hold(chance, network_of(chance))
            done += 1
        except UsageError as error:
            assert ADVICE.search(str(error)), error
    assert COUNT // 50 < done < COUNT  # Some of each kind.


# Documents ---------------------------------------------------------------------------------------------

NUMBERS = [0, 1, -1, 2, 7, 60, 100, 1514, 9018, 65535, 65536, 2**32, 2**64, 10**400, 0.5, float("inf"), float("nan")]
ANY = [*NUMBERS, True, None, "", "x", "1e999", "0x10", ".inf", [], {}, [1, 2]]
SHARES = ["0%", "100%", "50%", "0.1%", "33.333333333%", "101%", "-1%", "%", "nan%", 5]
TIMES = ["0s", "1ns", "20ms", "100us", "1s", "8.6s", "35s", "1e99s", "-1ms", "20", "least", "none", "nans", "27 days"]
RATES = ["10Mbit", "100kbit", "1Gbit", "1.1Gbit", "15kbit", "0bit", "none", "-3Mbit", "nanMbit", "10M"]
MATCHES = ["udp", "tcp dst port 80", "udp portrange 1-60000", "vlan 5", "not tcp", "nonsense", "(", ".inf", 7]
PATTERNS = ["01", "1", "", "2", 10, "none", "0" * 20000]
LISTS: list[Any] = [[1, 2, 3], [3, 1], [], [2**32], list(range(512)), list(range(600)), "x"]


def parts(chance: Chance, some: dict[str, list[Any]]) -> dict[str, Any]:
    return {key: chance.choice(values) for key, values in some.items() if chance.random() < 0.5}


def treatment(chance: Chance, most: int) -> dict[str, Any]:
    """Return up to so many keys of a class."""
    red = parts(chance, {"least": [0, 5, *ANY], "most": [9, 99, *ANY], "share": SHARES, "weight": [9, *ANY], "x": [1]})
    background = {"length": [1514, *ANY], "rate": RATES, "share": ["150%", *SHARES], "interval": TIMES, "phase": TIMES}
    background |= {"burst": [2, *ANY], "pause": TIMES, "entries": [[{"after": "1ms", "length": 60}], *ANY]}
    values: dict[str, list[Any]] = {
        "delay": TIMES,
        "jitter": ["none", 5, parts(chance, {"distribution": ["normal", "x"], "spread": TIMES, "correlation": SHARES})],
        "queue": [20, *ANY, parts(chance, {"frames": [20, *ANY], "octets": [9000, *ANY], "red": [red]})],
        "weight": ANY,
        "bucket": ["none", 7, [], parts(chance, {"rate": RATES, "burst": [10_000, *ANY]})],
        "overhead": ANY,
        "loss": [*SHARES, parts(chance, dict.fromkeys("prhk", SHARES))],
        "loss_pattern": PATTERNS,
        "loss_list": LISTS,
        "loss_late": [True, "yes"],
        "duplicate": SHARES,
        "corrupt": SHARES,
        "mended": [False, 3],
        "reorder": ["none", parts(chance, {"share": SHARES, "extent": TIMES})],
        "background": [{"kind": chance.choice([*BACKGROUNDS, "y"]), **parts(chance, background)}],
        "discard": [True, "no"],
        "expected": RATES,
    }
    return {key: chance.choice(values[key]) for key in chance.sample(list(values), chance.randint(0, most))}


def direction(chance: Chance, is_change: bool = False) -> dict[str, Any]:
    found = treatment(chance, 2) | parts(chance, {"rate": RATES[:3] + RATES})
    found |= {"service": chance.choice(["weighted", "fair", 3])} if chance.random() < 0.2 else {}
    found |= {"trace": chance.choice(["no-such.trace", "/", "/dev/null", 7])} if chance.random() < 0.1 else {}
    names = chance.sample(["a", "b", "rest", "zz"], 2)
    if chance.random() < 0.3 and is_change:
        found["classes"] = {name: treatment(chance, 2) for name in names}
    elif chance.random() < 0.3:
        found["classes"] = [{"name": name, "match": chance.choice(MATCHES), **treatment(chance, 1)} for name in names]
    return found


def document(chance: Chance) -> Network:
    found: dict[str, Any] = {way: direction(chance) for way in ("both", "there", "back") if chance.random() < 0.4}
    if chance.random() < 0.3:
        ways = ("both", "there", "back")
        found["changes"] = [
            {"at": chance.choice(TIMES), chance.choice(ways): direction(chance, True)}
            for _ in range(chance.randint(0, 3))
        ]
    return read_network(yaml.safe_dump(found | parts(chance, {"seed": [1, 1, 2, *ANY]})))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_document_is_read_or_refused_with_what_to_do(seed: int | None) -> None:
    try_all(chance_of(seed), document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("there: {bucket: 5}", "1: bucket '5' is unknown: give none; or the keys of a bucket"),
        ("there: {reorder: [1]}", "1: 'reorder' is a list: give none; or the keys of a reorder"),
        (
            "there: {delay: nans}",
            "1: delay 'nans' is unknown: give a time with ns, us, ms or s, up to 8.589 s, or least",
        ),
        ("there: {delay: lest}", "1: delay 'lest' is unknown: did you mean 'least'?"),
        ("there:\n  classes:\n    - {name: a, match: .inf}", "3: no host is called '.inf': give its address"),
    ],
)
def test_a_value_of_another_kind_is_refused_with_all_that_it_may_be(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_network(text, "a.yaml")
    assert str(caught.value) == f"a.yaml:{message}"


# In a script -------------------------------------------------------------------------------------------

FLOATS = [0, 1, -1, 0.5, 2, 1e3, 1e6, 5e8, 1e9, 9e9, 1e300, float("inf"), float("-inf"), float("nan")]
WHOLES = [0, 1, -1, 2, 24, 60, 100, 1514, 9018, 65535, 65536, 2**32 - 1, 2**32, 2**64]
PARTS = [0, 1, 0.5, 1e-12, 1 / 3, -0.1, 1.1, float("nan"), float("inf")]


def a_class(chance: Chance) -> TrafficClass:
    def pick(values: list[Any]) -> Any:
        return chance.choice(values)

    times = {"rate_bps": FLOATS, "share": [1.5, *PARTS], "interval_ns": FLOATS}
    one = pick(list(times))
    bursts = parts(chance, {"burst": FLOATS, "pause_ns": FLOATS, "phase_ns": FLOATS, "length": WHOLES})
    makes: dict[str, Callable[[], Any]] = {
        "delay_ns": lambda: pick(FLOATS),
        "jitter": lambda: Jitter(pick(["uniform", "normal", "q"]), pick(FLOATS), correlation=pick(PARTS)),
        "queue": lambda: Queue(pick([None, 20, *WHOLES]), pick([None, *WHOLES])),
        "weight": lambda: pick(WHOLES),
        "bucket": lambda: Bucket(pick(FLOATS), pick(WHOLES)),
        "overhead": lambda: pick(WHOLES),
        "loss": lambda: pick([Bernoulli, lambda p: GilbertElliott(p, pick(PARTS), pick(PARTS), pick(PARTS))])(
            pick(PARTS)
        ),
        "pattern": lambda: pick([LossPattern("01"), LossList([1, 5])]),
        "duplicate": lambda: pick(PARTS),
        "corrupt": lambda: pick(PARTS),
        "reorder": lambda: Reorder(pick(PARTS), pick(FLOATS)),
        "background": lambda: Background(pick([*BACKGROUNDS, "q"]), **{one: pick(times[one])}, **bursts),
        "expected_bps": lambda: pick(FLOATS),
        "seed": lambda: pick(WHOLES),
    }
    chosen = chance.sample(list(makes), chance.choice([0, 1, 1, 2]))
    return TrafficClass(pick(["a", "b", ""]), pick([None, "udp", "(("]), **{key: makes[key]() for key in chosen})


def script(chance: Chance) -> Network:
    def way() -> Direction:
        rate = chance.choice([None, 10**7, 1e8, chance.choice(FLOATS)])
        return Direction(rate, classes=[a_class(chance) for _ in range(chance.choice([0, 1, 1, 2]))])

    changes = [Change(chance.choice(FLOATS), way())] if chance.random() < 0.2 else []
    return Network(way(), chance.choice([Direction(), way()]), changes, seed=chance.choice([1, 1, *WHOLES]))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_network_of_a_script_is_taken_or_refused_with_what_to_do(seed: int | None) -> None:
    try_all(chance_of(seed), script)


# Command line ------------------------------------------------------------------------------------------

WORDS = (
    "delay 20ms 2ms loss 1% 10% gemodel state rate 10mbit limit 100 corrupt nan "
    "duplicate reorder gap 5 25% distribution normal pareto seed -1 slot é 1e9"
)
OPTIONS: dict[str, list[str]] = {
    "--preset": ["dsl", "lte", "dls", ""],
    "--netem-back": ["loss 1%", "delay"],
    "--expected": ["50M", "0", "-5", "nan", "1e400"],
    "--duration": ["10ms", "0s", "10", "-1s", "nans", "1e99s"],
    "--refresh": ["1ms", "0s", "x"],
}
FLAGS = ["--attach", "--detach", "--check", "--yaml"]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_options_are_done_or_refused_with_what_to_do(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int | None
) -> None:
    chance, model = chance_of(seed), fake_emulator(tmp_path)[0]
    model.offer(0, UNMATCHED_CLASS, 100, 125_000)
    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: FakeLink(model, tmp_path))
    (tmp_path / "line.yaml").write_text("both: {rate: 10Mbit}\n")
    (tmp_path / "wrong.yaml").write_bytes(b"\xff\xfe{")
    files = [str(tmp_path / name) for name in ("line.yaml", "wrong.yaml", "no.yaml", "")]
    codes = []
    for _ in range(COUNT):
        netem = " ".join(chance.choices(WORDS.split(), k=chance.randint(0, 6)))
        network = chance.choice([[chance.choice(files)], ["--preset", "dsl"], ["--from-netem", netem], []])
        more = [[name, chance.choice(values)] for name, values in OPTIONS.items() if chance.random() < 0.15]
        flags = [flag for flag in FLAGS if chance.random() < 0.15]
        words = [*network, *flags, *(word for pair in more for word in pair)]
        if not {"--duration", "--detach", "--check", "--yaml"} & set(words):
            words += ["--duration", "5ms"]  # It would go on for ever.
        code, _, err = run("emulate", "--steal", *words)  # What was detached goes on.
        codes.append(code)
        assert code == 0 or (code == 2 and ADVICE.search(err) and "Traceback" not in err), (words, code, err)
    assert COUNT // 10 < codes.count(0) < COUNT - COUNT // 10
