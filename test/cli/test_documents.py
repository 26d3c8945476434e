# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Damaged text that users give: each reader takes it, or says what is wrong; and nothing of it steers a terminal."""

import json
import os
import random
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from matplotlib.figure import Figure as MplFigure

from liteprobe.host.agent import message
from liteprobe.host.agent.document import read_device
from liteprobe.host.agent.keys import Keys, public_key
from liteprobe.host.analysis import calibration
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.text import read_text, safe
from liteprobe.host.capture.request import Sampling
from liteprobe.host.cli import tables
from liteprobe.host.clock import log
from liteprobe.host.device.link.url import parse, sim_options
from liteprobe.host.device.registers import load_map
from liteprobe.host.packets.filter import expression
from liteprobe.host.report import files, plots
from liteprobe.host.report.page import TEMPLATES
from liteprobe.host.suites.sweep import Sweep
from liteprobe.host.traffic.document import read_document, read_sets
from liteprobe.host.traffic.network.document import read_network
from liteprobe.host.traffic.network.netem import from_netem
from liteprobe.host.traffic.network.network import BandwidthTrace
from liteprobe.sim.drivers.tools.figures import Figure, Size, note, row

SECONDS_MOST = 20.0  # Of a reader, for text of a megabyte.
STREAMS = "streams:\n- {name: a, length: 64, pps: 100, vlan: [1, {id: 2}]}\n- {length: {60: 7, 590: 4}, rate: 10M, count: 5}\n"
SETS = "stream: {length: 64, vlan: [1]}\nsets:\n- {vlan: 5}\n- {vlan: 0x6, repeat: 1}\n"
NETWORK = "there:\n  rate: 10Mbit\n  delay: 20ms\n  queue: 100\nback: {delay: 1ms}\n"
DEVICE = "name: a\nsettings:\n  s: {type: int, write: /tmp/x, minimum: 1}\n"
NETEM = "delay 10ms 1ms distribution normal loss 1% rate 1mbit"
FILTER = "(udp port 53 or tcp) and not host 10.0.0.1 and ip6"
URL = "sim://switch?latency=3us&rate=1G&preset=tester"
CALIBRATION = '{"format": "liteprobe-calibration", "line": {}, "slope": 1, "intercept": 0}'
TRACE, LOG, KEY = "1\n5\n9\n", "# liteprobe PPS log\ncount,now_ns\n1,2\n", 'curve\n    public-key = "x"\n'


def frames_of(text: str, size: int) -> list[bytes]:
    head, *others = [one.encode("utf-8", "surrogatepass") for one in text.split("|")]
    return [head.ljust(size, b"\1")[:size], *others]


def of_request(frames: list[bytes]) -> object:
    return message.request_of(frames) if message.is_addressed(frames) else None


TEXTS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "streams": (STREAMS, read_document),
    "sets": (SETS, read_sets),
    "network": (NETWORK, read_network),
    "device": (DEVICE, lambda text: read_device(text, 5.0)),
    "netem": (NETEM, from_netem),
    "filter": (FILTER, expression.parse),
    "url": (URL, parse),
    "sim url": (URL, sim_options),
    "sampling": ("hash:16:7", Sampling.of),
    "answer": ("LPAG\x01\x82", lambda text: message.answer_of(frames_of(text, message.ANSWER.size))),
    "request": ("LPAG\x01\x02|any|5", lambda text: of_request(frames_of(text, message.REQUEST.size))),
}
FILES: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "calibration": (CALIBRATION, calibration.load),
    "map": ('{"csr_registers": {}}', load_map),
    "log": (LOG, log.read),
    "trace": (TRACE, BandwidthTrace.from_file),
    "key": (KEY, public_key),
    "secret key": (KEY, Keys.read),
    "text": (STREAMS, lambda path: read_text(path, "a file")),
}
MARKS = ["\0", "\x1b[31m", "\u202e", "\ufeff", "\r\n", "\t", "'", '"', "{", "}", "[", "]", ":", "&a ", "*a", "<<: *a", "!!int ",

         "1e400", "9" * 5000, "-1", "0x" + "f" * 5000, "nan", "é", "\ud800", "---\n", "|", "#", "(", ")", "not "]  # fmt: skip


LAUGHS = "a: &a [x]\n" + "".join(
    f"{two}: &{two} [{', '.join(['*' + one] * 9)}]\n" for one, two in pairwise("abcdefghi")
)


def damaged(text: str, chance: random.Random, is_large: bool) -> str:
    """Return text with one to three kinds of damage."""
    for _ in range(chance.randint(1, 3)):
        place, mark = chance.randint(0, len(text)), chance.choice(MARKS)
        depth, long = (2000, 10**6) if is_large else (200, 2000)
        text = chance.choice((
            text[:place] + mark + text[place:],
            text[:place],
            text.replace(chance.choice(text or " "), mark, 1),
            text[:place] + chance.choice("[({") * depth + text[place:],
            "- " * depth + text,
            text[:place] + mark * (long // len(mark)) + text[place:],
            text + text,
            "\ufeff" + text.replace("\n", "\r\n"),
            LAUGHS + text,
            "",
        ))  # fmt: skip
    return text


@row("truth", "documents", is_test=True)
def test_damaged_text_is_read_or_refused(size: Size, tmp_path: Path) -> Iterator[Figure]:
    chance, wrong, counts = random.Random(36), list[str](), Counter[tuple[str, str]]()
    rounds = size.of(3, 150, 1000)
    for name, (text, read) in (TEXTS | FILES).items():
        for number in range(rounds):
            given: Any = damaged(text, chance, size > Size.TEST and number % 10 == 0)
            if name in FILES:
                path = tmp_path / "given"
                path.write_bytes(given.encode("utf-8", "surrogatepass"))
                path.chmod(0o600)
            began_s = time.monotonic()
            try:
                read(path if name in FILES else given)
                counts[name, "read"] += 1
            except ProbeError as error:
                counts[name, "refused"] += bool(str(error).strip())
            except BaseException as error:
                wrong.append(f"{name}: {type(error).__name__} {str(error)[:100]!r} of {given[:300]!r}")
            if (took_s := time.monotonic() - began_s) > SECONDS_MOST:
                wrong.append(f"{name}: {took_s:.0f} s for {given[:300]!r}")
    if size > Size.TEST or wrong:
        note(
            *wrong,
            *(f"{name}: {counts[name, 'refused']} refused, {counts[name, 'read']} read" for name in TEXTS | FILES),
        )
    yield Figure("documents_wrong", len(wrong), f"of {rounds * len(TEXTS | FILES)}", 0)
    yield Figure(
        "documents_refused", sum(counts[name, "refused"] for name in TEXTS | FILES), "texts", rounds, is_least=True
    )


@pytest.mark.parametrize("read", [read_document, read_sets, read_network, lambda text: read_device(text, 5.0)])
@pytest.mark.parametrize("text", ["[" * 2000, "- " * 2000, "{a: " * 2000, "a:\n " + "[" * 2000 + "]" * 2000])
def test_two_thousand_brackets_are_refused_with_their_line(read: Callable[[str], Any], text: str) -> None:
    with pytest.raises(UsageError, match=r"yaml:[12]: this is not YAML: it is nested more than 32 deep"):
        read(text)


def test_a_file_has_an_end_and_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("liteprobe.host.base.text.PIPE_S", 0.1)
    monkeypatch.setattr("liteprobe.host.base.text.TEXT_MOST", 1 << 20)
    os.mkfifo(tmp_path / "pipe")
    said = {tmp_path / "pipe": "nothing was written", Path("/dev/zero"): "more than 1 MiB", tmp_path: "Is a directory"}
    for name, octets, what in (("a", b"x\n\xff", "line 2 is not UTF-8"), ("b", b"x\n\0", "line 2 has a NUL")):
        (tmp_path / name).write_bytes(octets)
        said[tmp_path / name] = what
    for path, what in said.items():
        with pytest.raises(UsageError, match=what):
            read_text(path, "a file")
    (tmp_path / "c").write_bytes(b"\xef\xbb\xbfstreams: []\r\n")
    assert read_text(tmp_path / "c", "a file") == "streams: []\r\n"


HOSTILE = "a\x1b[31m\x1b]0;own\u202eb\x9b\u2066c<i>"
SHOWN = "a\\x1b[31m\\x1b]0;own\\u202eb\\x9b\\u2066c<i>"


def test_text_of_others_is_safe_wherever_it_is_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert safe(HOSTILE) == SHOWN and safe("é 日本\n\t") == "é 日本\n\t"
    shown = tables.table("name", title=HOSTILE)
    shown.add_row(HOSTILE)
    tables.console().print(shown, HOSTILE, markup=False)
    tables.console().print(tables.fact_table([("name", HOSTILE)]))
    out = capsys.readouterr().out
    assert out.count(SHOWN) == 4 and not any(one in out for one in "\x1b\u202e\x9b\u2066")
    page = TEMPLATES.from_string("{{ name }}").render(name=HOSTILE)
    assert page == SHOWN.replace("<i>", "&lt;i&gt;")
    with matplotlib.rc_context(plots.PLAIN), warnings.catch_warnings(action="ignore"):  # Glyphs that no font has.
        figure = MplFigure()
        figure.suptitle(HOSTILE)
        assert SHOWN.replace("<i>", "&lt;i&gt;") in plots.svg(figure, "a")
    assert json.loads(json.dumps(HOSTILE)) == HOSTILE and json.dumps(HOSTILE).isascii()
    formula = files.as_csv([Sweep("=1+1", "sim://a", {}, [], [{"length": 60}])])  # type: ignore[typeddict-item]
    assert formula.split() == ['"name","length"', '"=1+1",60']
