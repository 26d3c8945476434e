# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Words that people write for tc and for emulators: each is right, or refused with a limit that is true when it is typed back."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from liteprobe.host.base.errors import UsageError
from liteprobe.host.run.emulate import check_network
from liteprobe.host.traffic.network import Network
from liteprobe.host.traffic.network.document import read_network
from liteprobe.host.traffic.network.netem import from_netem
from liteprobe.sim.drivers.emulator.random_networks import typed_back
from liteprobe.sim.drivers.tools.figures import Figure, note, row

MS = 10**6
BOARD = "colorlight_i9"


@dataclass(frozen=True)
class Asked:
    """Words that someone wrote.

    Attributes
    ----------
    there : values that they must have, by their names from ``there`` on; ``rest``: of the class without a match.
    says : what is said of them, of netem's and of the probe's notes.
    refused : what the refusal says, "" for none; the limits that it names are typed back.
    """

    words: str
    there: dict[str, Any] = field(default_factory=dict)
    says: str = ""
    refused: str = ""
    board: str = BOARD


def netem(words: str, says: str = "", refused: str = "", board: str = BOARD, **rest: Any) -> Asked:
    link = {name: rest.pop(name) for name in ("rate_bps",) if name in rest}
    return Asked(
        words, link | {f"rest.{name.replace('__', '.')}": value for name, value in rest.items()}, says, refused, board
    )


def part(per_cent: str) -> Fraction:
    return Fraction(per_cent) / 100


#: Of tc-netem(8), its examples, LARTC, the Linux Foundation's wiki, and of test suites.
NETEM = (
    netem("delay 100ms", "above 10,000 frames/s", delay_ns=100 * MS),
    netem("dev eth0 root netem delay 100ms 10ms", "uniform", delay_ns=100 * MS, jitter__spread_ns=10 * MS),
    netem("tc qdisc change dev eth0 root netem delay 100ms 10ms 25%", "(25 %)", jitter__correlation=part("25")),
    netem("delay 100ms 20ms distribution normal", "keep their order", jitter__kind="normal"),
    netem("loss 0.1%", loss__share=part("0.1")),
    netem("loss 0.3% 25%", "Gilbert's model here", loss__p=part("0.3") * part("75")),
    netem("duplicate 1%", "leaves right after", duplicate=part("1")),
    netem("corrupt 0.1%", "good FCS", corrupt=part("0.1"), is_mended=True),
    netem("gap 5 delay 10ms", refused="give class 'rest' 'reorder' with an extent of 8.431 ms at most"),
    netem("gap 5 delay 5ms", "20 % of the frames go at once", reorder__extent_ns=5 * MS),
    netem("delay 10ms reorder 25% 50% rate 100mbit", "25 % of the frames go at once", reorder__share=part("75")),
    netem("delay 100ms 75ms", "doesn't reorder here", jitter__spread_ns=75 * MS),
    netem("rate 5kbit 20 100 5", refused="cells of 100 octets can't be done"),
    netem("rate 1mbit 20", overhead=20, rate_bps=MS),
    netem("rate 1mbit -14", overhead=-14),
    netem("loss gemodel 1% 10% 70% 0.1%", "by the state before it moves", loss__h=part("30"), loss__k=part("99.9")),
    netem("loss state 1% 10%", loss__p=part("1"), loss__r=part("10")),
    netem("loss state 1% 10% 5% 50% 1%", refused="three or four states"),
    netem("delay 250", "'250' (a delay) has no unit: it is 250 us", delay_ns=250_000),
    netem("loss 5", "'5' (a loss) has no unit: it is 5 %", loss__share=part("5")),
    netem("rate 1000000", "has no unit: it is 1000000 b/s", rate_bps=MS),
    netem(
        "qdisc netem 8001: root refcnt 2 limit 1000 delay 100ms",
        "netem's limit of 1000 frames is of",
        delay_ns=100 * MS,
    ),
    netem("qdisc netem 1: dev veth1 root refcnt 33 limit 1000 delay 40ms  5ms 25% loss 2% 10%", delay_ns=40 * MS),
    netem("qdisc netem 8003: root refcnt 2 limit 1000 loss gemodel p 5% r 20% 1-h 80% 1-k 0%", loss__p=part("5")),
    netem(
        "delay 100ms loss 1% limit 12500",
        "above 125,000 frames/s",
        refused="give class 'rest' a delay of",
        board="emulator",
    ),
    netem("rate 100mbit limit 1000", queue__frames=1000, rate_bps=100 * MS),
    netem("rate 8kbit", refused="can't be slower than 15.259 kb/s: give that or more"),
    netem("delay 2s rate 100mbit", refused="give class 'rest' a delay of"),
    netem("delay 10us", refused="takes 51.232 us at least"),
    netem("slot 800us 1ms packets 32", refused="'slot' can't be done: leave it out"),
    netem(
        "tbf rate 1mbit burst 32kbit latency 400ms",
        refused="another discipline than netem: write a document with 'bucket'",
    ),
    netem("rate 50%", refused="a share of an interface"),
    netem("delay 20ms loss 1%", "above 50,000 frames/s", delay_ns=20 * MS, loss__share=part("1"), board="emulator"),
)

CLASSES = "classes: [{{name: a, match: {}, queue: 10}}, {{name: b, match: {}, queue: 50}}]"
SITUATIONS = (
    Asked("there: {rate: 8Mbit, service: weighted, classes: [{name: a, match: tcp, weight: 5, queue: 100}, "
          "{name: b, match: udp, weight: 3, queue: 100}]}", {"service": "weighted", "a.weight": 5, "b.weight": 3}),
    Asked(f"there: {{rate: 10Mbit, {CLASSES.format('udp port 5060', 'tcp port 443')}}}", {"a.queue.frames": 10}),
    Asked(f"there: {{rate: 10Mbit, {CLASSES.format('vlan 10', 'vlan 20')}}}", {"b.queue.frames": 50}),
    Asked(f"there: {{rate: 10Mbit, {CLASSES.format(repr('ip[1] & 0xfc == 0xb8'), repr('ip6[0:2] & 0x0fc0 == 0x0b80'))}}}"),
    Asked("there: {rate: 1Gbit, classes: [{name: ptp, match: ether proto 0x88f7}], delay: 1ms}", {"ptp.delay_ns": MS}),
    Asked("both: {delay: 1ms}\nchanges: [{at: 5s, both: {discard: true}}, {at: 5.2s, both: {discard: false}}]",
          {"rest.discard": False}),
    Asked("there: {trace: cell.trace, delay: 20ms, queue: 250}", {"trace.octets": (3008, 1504), "rest.overhead": -10},
          board="emulator"),
    Asked("there: {trace: comment.trace}", refused="comment.trace:2: '# night' is not a stamp"),
    Asked("there: {rate: 10Mbit, delay: 40ms, jitter: {spread: 5ms, correlation: keep}}", says="a delay stays for"),
    Asked("there: {bucket: {rate: 1Mbit, burst: 4000}, queue: 33}", {"rest.bucket.burst": 4000}),
    Asked("both: {rate: 2Mbit, delay: 300ms, loss: 0.5%, classes: [{name: voice, match: udp, queue: 20}]}",
          {"voice.delay_ns": 300 * MS, "voice.loss.share": part("0.5"), "rest.delay_ns": 300 * MS}),
    Asked("both: {rate: 100Mbit, queue: {frames: 200, red: {least: 20, most: 100, share: 10%}}}", {"rest.queue.red.most": 100}),
    Asked("there: {rate: 1Gbit, delay: 5s}", refused="give class 'rest' a delay of"),
    Asked("there: {rate: 100Mbit, queue: 65535}", refused="give class 'rest' a queue of"),
    Asked("there: {delay: 20ms}\nback: {delay: 20ms}", refused="from port 0 to port 1 alone", board="colorlight_5a_75b"),
    Asked("there: {rate: 10Mbit, delay: 10ms, reorder: {share: 25%, extent: 5ms}}", {"rest.reorder.share": part("25")}),
    Asked("there: {trace: cell.trace}", refused="no memory for bandwidth traces", board="versa_ecp5"),
)  # fmt: skip


def value_of(network: Network, name: str) -> Any:
    """Return a value of ``there`` by its name; the first part of one with a dot may be a class."""
    classes = {one.name: one for one in network.there.numbered.values()}
    first, *others = name.split(".")
    found: Any = classes[first] if first in classes else getattr(network.there, first)
    for other in others:
        found = getattr(found, other)
    return found


def wrong_with(asked: Asked, network: Network, said: list[str]) -> list[str]:
    """Return what isn't as it must be."""
    try:
        text = "\n".join([*said, *check_network(network, asked.board)])
    except UsageError as error:
        if not asked.refused or asked.refused not in str(error):
            return [f"refused: {error}"]
        wrong = []
        for one in typed_back(network, str(error)):
            try:
                check_network(one, asked.board)
            except UsageError as again:
                wrong.append(f"refused when it is typed back: {again}")
        return wrong
    found = {name: value_of(network, name) for name in asked.there}
    return [
        *([f"taken, and not refused: {asked.refused}"] if asked.refused else []),
        *[f"{name} is {value}, not {asked.there[name]}" for name, value in found.items() if value != asked.there[name]],
        *([f"'{asked.says}' isn't said"] if asked.says not in text else []),
    ]


def made(asked: Asked, folder: Path) -> tuple[Network, list[str]]:
    return from_netem(asked.words) if asked in NETEM else (read_network(asked.words, "asked.yaml", folder), [])


@row("emulator", "netem_words", is_test=True)
def test_what_people_write_is_right_or_refused_with_a_true_limit(tmp_path: Path) -> Iterator[Figure]:
    """Yield how many of netem's words, and of situations that users wrote about, aren't right."""
    (tmp_path / "cell.trace").write_text("1\r\n1\r\n\r\n4\r\n")
    (tmp_path / "comment.trace").write_text("1\n# night\n")
    for kind, several in (("strings", NETEM), ("situations", SITUATIONS)):
        wrong = 0
        for asked in several:
            try:
                found = wrong_with(asked, *made(asked, tmp_path))
            except UsageError as error:
                found = [] if asked.refused and asked.refused in str(error) else [f"refused: {error}"]
            note(*(f"{asked.words}: {line}" for line in found))
            wrong += bool(found)
        refused = sum(bool(asked.refused) for asked in several)
        note(f"{len(several)} {kind}, {refused} of them refused")
        yield Figure(f"netem_words_{kind}_wrong", wrong, f"of {len(several)}", 0)
