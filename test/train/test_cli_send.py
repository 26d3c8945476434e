# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""``liteprobe send`` over a model of the probe: what it prints and writes, and how it ends when something is wrong."""

import io
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from liteprobe.cores.formats import TransmitState
from liteprobe.host.analysis.columns import shown as shown_figure
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.cli import tables
from liteprobe.host.cli.commands import send
from liteprobe.host.measure.percentiles import Bounds
from liteprobe.host.run.figures import TrafficLook
from liteprobe.host.traffic import document
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.drivers.tools.figures import Figure, Size, note, row
from liteprobe.sim.models.probe.streams import TrafficFrame, TrafficProbe

DELAY_TICKS = 37
STREAMS = """\
streams:
  - name: voice
    length: 214
    pps: 5000
    count: 20
  - name: bulk & <b>$x^2$</b>
    length: imix
    share: 30%
    exponential: true
    count: 100
    fill: prbs
"""
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrafficProbe:
    """A probe whose ports are joined by a cable; every URL leads to it."""
    made = TrafficProbe(lambda frame: [(1 - frame.port, DELAY_TICKS, frame)])

    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: FakeLink(made, tmp_path))
    return made


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "streams.yaml"
    path.write_text(STREAMS)
    return str(path)


def cells(out: str, name: str) -> list[str]:
    """Return the cells of a stream's rows, the name left out."""
    return [cell for line in out.splitlines() if line.strip().startswith(name) for cell in line.split(name)[1].split()]


# What goes well -----------------------------------------------------------------------------------


def test_send_prints_a_row_a_stream(run: Run, model: TrafficProbe, file: str) -> None:
    code, out, err = run("send", file)
    assert (code, err) == (0, "")
    voice, bulk = cells(out, "voice"), cells(out, "bulk & <b>$x^2$</b>")
    assert voice[:5] == ["20", "20", "0", "0", "0"] and bulk[:5] == ["100", "100", "0", "0", "0"]
    assert (voice[6], bulk[6]) == ("-", "0")  # Bit errors.
    assert float(voice[7]) == pytest.approx(9.52, abs=0.001)
    assert voice[8:] == ["296", "296.0", "296", "296", "296", "296"]
    assert (
        "All was sent within " in out
        and "s. Clock free-running; a delay is within 8.0 ns." in out
        and "\x1b" not in out
    )


def test_what_was_sent_before_its_time_was_sent_within_it(run: Run, model: TrafficProbe) -> None:
    code, out, _ = run("send", "--pps", "10000", "--length", "64", "--count", "2", "--duration", "350us")
    assert code == 0 and "All was sent within 350.000 µs." in out


def test_files_hold_what_was_asked_for_and_what_came(run: Run, model: TrafficProbe, file: str, tmp_path: Path) -> None:
    paths = {name: tmp_path / f"send.{name}" for name in ("json", "html")}
    code, _, err = run("send", file, "--json", str(paths["json"]), "--report", str(paths["html"]))
    assert (code, err) == (0, f"report: {paths['html']}\n")
    content = json.loads(paths["json"].read_text())
    assert (content["format"], content["end"], content["is_complete"]) == ("liteprobe-traffic", "sent", True)
    assert document.read_document(content["document"]) == document.read_document(STREAMS)
    voice, bulk = content["streams"]
    assert (voice["sent"], voice["received"], voice["lost"], voice["bit_errors"]) == (20, 20, 0, None)
    assert voice["latency_ns"]["p99"] == [296, 296]
    assert sum(count for _, _, count in bulk["latency_ns"]["histogram"]) == 100
    assert bulk["bit_error_ratio"][1] == 3.0 / bulk["checked_bits"]
    page = paths["html"].read_text()
    assert "bulk &amp; &lt;b&gt;$x^2$&lt;/b&gt;" in page and "<b>$x^2$" not in page
    assert page.count("<svg") == 2 and "http" not in re.sub(r"RFC|http-equiv", "", page)
    assert len(page) < 200_000


def test_json_on_stdout_is_all_that_is_printed(run: Run, model: TrafficProbe, file: str) -> None:
    code, out, _ = run("send", file, "--json")
    assert code == 0 and [row["sent"] for row in json.loads(out)["streams"]] == [20, 100]


def test_one_stream_is_described_by_options(run: Run, model: TrafficProbe) -> None:
    code, out, err = run(
        "send", "--length", "100", "--rate", "10M", "--count", "30", "--stream-id", "9", "--vlan", "5", "--vlan", "6",
        "--vlan", "7", "--fill", "prbs", "--dst-port", "77",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert {(frame.stream_id, frame.length) for frame in model.frames} == {(9, 100)}
    gaps = {late.stamp - early.stamp for early, late in zip(model.frames, model.frames[1:], strict=False)}
    assert gaps == {99_200}  # 124 octets at 10 Mb/s.
    assert cells(out, "stream")[-6:-5] == ["296"]


@pytest.mark.parametrize(
    ("options", "lengths"),
    [(("--length", "imix"), {60, 590, 1514}), (("--length", "64-66", "--exponential"), {64, 65, 66}), ((), {1514})],
)
def test_lengths_are_one_a_range_or_a_mix(
    run: Run, model: TrafficProbe, options: tuple[str, ...], lengths: set[int]
) -> None:
    code, _, err = run("send", "--pps", "20000", "--count", "60", *options)
    assert (code, err) == (0, "") and {frame.length for frame in model.frames} == lengths


def test_check_shows_names_as_they_are(run: Run, tmp_path: Path) -> None:
    (tmp_path / "names.yaml").write_text(
        "streams:\n  - {name: '[/x]', length: 60, pps: 1}\n  - {name: '[red]y', length: 60, pps: 1}\n"
    )
    code, out, err = run("send", str(tmp_path / "names.yaml"), "--check")
    assert (code, err) == (0, "") and " [/x] " in out and " [red]y " in out


STREAM_CASES = """streams:
- {{name: a, length: {0}, {1}, id: 1, port: {2}}}
- {{name: {3}, length: 64, pps: 10, id: {4}, port: {5}, count: 9}}
"""


@row("truth", "send_check", is_test=True)
def test_check_refuses_what_send_refuses(size: Size, run: Run, model: TrafficProbe, tmp_path: Path) -> Iterator[Figure]:
    chance, wrong, refused, calls = random.Random(36), 0, 0, size.of(30, 600)
    for number in range(calls):
        pick = chance.choice
        text = STREAM_CASES.format(
            pick((64, 64, "[64, 1500]")), pick(("share: 50%", "share: 99.99%", "rate: 1G", "pps: 1000", "interval: 1us")),
            pick((0, 0, 0, 1, 15)), pick("abbbb"), pick((2, 3, 9, 31, 32, 65535)), pick((0, 1, 1, 1, 3)),
        )  # fmt: skip
        path = tmp_path / f"{number}.yaml"
        path.write_text(text)
        options = [*pick(([], [], [], ["--receive", "1"], ["--receive", "2"])), *pick(([], ["--duration", "1us"]))]
        options += pick(([], [], [], ["--detach"], ["--latency-range", "0,1us"]))
        sent = run("send", str(path), "--duration", "1us", "--probe", "sim://cable", *options)
        checked = run("send", str(path), "--duration", "1us", "--probe", "sim://cable", *options, "--check")
        refused += checked[0] == 2
        if (sent[0] == 2) != (checked[0] == 2) or (sent[0] == 2 and sent[2] != checked[2]):
            wrong += 1
            note(text, options, sent, checked)
    yield Figure("send_check_differs", wrong, f"of {calls} calls", 0)
    yield Figure("send_check_refused", refused, "calls", 5, is_least=True)
    yield Figure("send_check_taken", calls - refused, "calls", 2, is_least=True)


def test_check_knows_where_the_host_shares_the_line_and_writes_no_report(run: Run, file: str, tmp_path: Path) -> None:
    probe = ("--probe", "sim://cable?preset=tester&link=shared", "--check")
    code, _, err = run("send", *probe, "--length", "60", "--share", "99.9")
    assert (code, "leave no room for answers on port 0" in err) == (2, True)
    assert run("send", *probe, "--length", "60", "--share", "99.9", "--count", "5")[0] == 0
    code, _, err = run("send", file, "--check", "--json", str(tmp_path / "x.json"))
    assert (code, "--check measures nothing" in err, (tmp_path / "x.json").exists()) == (2, True, False)


def test_check_shows_the_share_of_each_stream_and_needs_no_probe(run: Run, file: str) -> None:
    code, out, err = run("send", file, "--check", "--probe", "etherbone://nowhere.invalid")
    assert (code, err) == (0, "")
    assert cells(out, "voice") == ["1", "0", "214", "20", "5,000.0", "9.520", "0.952", "%"]
    assert cells(out, "bulk & <b>$x^2$</b>")[-4:] == ["98,210.4", "300.000", "30", "%"]
    assert "port 0: 30.952 % of the line, where all are sent at once" in out


def test_schema_is_that_of_the_documents(run: Run) -> None:
    code, out, _ = run("send", "--schema")
    assert code == 0 and json.loads(out) == document.schema()


def test_duration_stops_a_stream_without_an_end(run: Run, model: TrafficProbe) -> None:
    code, out, _ = run("send", "--pps", "10000", "--length", "60", "--duration", "5ms")
    assert code == 0 and 48 <= len(model.frames) <= 60
    assert ", stopped. Clock" in out and model.values["port0_tx_state"] == TransmitState.IDLE


def test_a_range_of_latency_places_the_histogram(run: Run, model: TrafficProbe) -> None:
    code, _, _ = run("send", "--pps", "10000", "--count", "9", "--latency-range", "0,10us")
    assert code == 0 and model.values["port1_measure_delay_shift"] == 8


def test_waiting_time_is_how_long_the_last_frames_are_waited_for(run: Run, model: TrafficProbe) -> None:
    model.wire = lambda frame: [(1, 1_000_000 if frame.sequence == 9 else 10, frame)]  # 8 ms, beyond the usual 2.
    lost = [
        json.loads(run("send", "--pps", "10000", "--count", "10", "--json", "-", *options)[1])["streams"][0]["lost"]
        for options in ((), ("--waiting-time", "20ms"))
    ]
    assert lost == [1, 0]


def test_detached_streams_go_on_and_stop_shows_them(run: Run, model: TrafficProbe, file: str) -> None:
    code, out, _ = run("send", "--pps", "10000", "--stream-id", "7", "--detach")
    assert (code, out) == (0, "port 0 sends 1 stream, without an end; liteprobe stop --port 0 shows and ends it\n")
    model.advance(1_000_000)
    assert model.values["port0_tx_state"] == TransmitState.RUNNING
    code, out, _ = run("stop")
    sent = re.search(r"([\d,]+) frames were sent", out)
    assert code == 0 and sent and int(sent[1].replace(",", "")) >= 80
    assert out == (
        f"port 0: stopped\n  stream 0, of id 7, without an end: {sent[1]} frames were sent\nport 1: nothing was sent\n"
    )
    assert run("stop", "--port", "0")[1] == "port 0: nothing was sent\n"
    code, out, _ = run("send", file, "--detach")
    assert out == "port 0 sends 2 streams, until all frames are sent; liteprobe stop --port 0 shows and ends them\n"


# The live table -----------------------------------------------------------------------------------


def test_somebody_who_looks_sees_the_streams_grow(
    run: Run, model: TrafficProbe, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(
        tables, "console", lambda: Console(file=screen, force_terminal=True, width=100, highlight=False)
    )
    monkeypatch.setattr(send, "REFRESH_S", 0.0)
    assert run("send", file)[0] == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    found = re.findall(r"liteprobe send .*?([\d.]+) (s|ms|µs|ns) ", plain)
    shown = [float(figure) * {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1}[unit] for figure, unit in found]
    assert len(shown) > 3 and shown == sorted(shown)


@pytest.mark.parametrize(("height", "pages"), [(24, 2), (12, 6)])
def test_a_low_terminal_shows_all_of_both_tables_in_turn(
    run: Run, model: TrafficProbe, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, height: int, pages: int
) -> None:
    many = ["streams:", *(f"  - {{name: stream-{n}, length: {60 + n}, pps: 2000, count: 3}}" for n in range(1, 17))]
    (tmp_path / "many.yaml").write_text("\n".join(many))
    screens: list[str] = []
    shown = send.live

    def see(look: TrafficLook, url: str, turn: int) -> RenderableType:
        for number in range(pages):
            screen = io.StringIO()
            terminal = Console(
                file=screen, force_terminal=True, width=80, height=height, highlight=False, color_system=None
            )
            terminal.print(shown(look, url, number))
            screens.append(screen.getvalue())
        return shown(look, url, turn)

    monkeypatch.setattr(send, "live", see)
    monkeypatch.setattr(
        tables, "console", lambda: Console(file=io.StringIO(), force_terminal=True, width=80, height=24)
    )
    monkeypatch.setattr(send, "REFRESH_S", 0.0)
    assert run("send", str(tmp_path / "many.yaml"))[0] == 0
    assert all(len(screen.splitlines()) <= height and "Ctrl-C stops." in screen for screen in screens)
    for first in range(0, len(screens), pages):
        look = screens[first : first + pages]
        assert f"page {pages}/{pages}" in look[-1] and " sent " in look[0] and "P99.9" in look[pages // 2]
        for name in range(1, 17):  # Once with its counts, once with its delays.
            assert len(re.findall(rf"stream-{name}\b", "".join(look))) == 2


@pytest.mark.parametrize("delay_ticks", [37, 3_000_000, 4_000_000_000])
def test_sixteen_streams_fit_a_terminal_of_80_columns(
    run: Run, model: TrafficProbe, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, delay_ticks: int
) -> None:
    many = ["streams:", *(f"  - {{name: stream-{n}, length: {60 + n}, pps: 2000, count: 3}}" for n in range(1, 17))]
    (tmp_path / "many.yaml").write_text("\n".join(many))
    model.wire = lambda frame: [(1, delay_ticks + 1000 * frame.sequence, frame)]
    monkeypatch.setattr("liteprobe.host.cli.tables.PLAIN_WIDTH", 80)
    code, out, _ = run("send", str(tmp_path / "many.yaml"), "--waiting-time", "40s")
    assert code == 0 and "…" not in out
    rows = [line for line in out.splitlines() if line.strip().startswith("stream-")]
    assert len(rows) == 32 and max(map(len, rows)) <= 80


@pytest.mark.parametrize(
    ("bounds", "digits", "shown"),
    [
        (None, 0, "-"),
        (Bounds(296, 296), 0, "296"),
        (Bounds(11264, 12287), 0, "11,776±512"),
        (Bounds(9.5199, 9.5201), 3, "9.520"),
        (Bounds(-20, -4), 0, "-12±8"),
    ],
)
def test_a_figure_is_shown_with_its_error(bounds: Bounds | None, digits: int, shown: str) -> None:
    assert shown_figure(bounds, digits) == shown


# What goes wrong ----------------------------------------------------------------------------------


def test_an_interrupt_prints_and_writes_what_was_measured_and_says_so(
    run: Run, model: TrafficProbe, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(frame: TrafficFrame) -> list[tuple[int, int, TrafficFrame]]:
        if frame.sequence == 12 and frame.number == 0:
            raise Interrupted
        return [(1, DELAY_TICKS, frame)]

    model.wire = cut  # type: ignore[assignment]
    path = tmp_path / "cut.json"
    code, out, err = run("send", file, "--json", str(path))
    assert (code, err) == (130, "liteprobe: interrupted; what was measured until then is incomplete\n")
    assert "interrupted, incomplete" in out and "interrupted: the streams were stopped before their end" in out
    content = json.loads(path.read_text())
    assert (content["end"], content["is_complete"]) == ("interrupted", False)
    assert 0 < content["streams"][0]["sent"] <= 13
    assert model.values["port0_tx_state"] == TransmitState.IDLE


def test_a_link_that_goes_down_leaves_what_was_measured(run: Run, model: TrafficProbe, file: str) -> None:
    def pull(frame: TrafficFrame) -> list[tuple[int, int, TrafficFrame]]:
        if frame.sequence == 12 and frame.number == 0:
            model.values |= {f"port1_{side}_link_up": 0 for side in ("tx", "rx")}
        return [(1, DELAY_TICKS, frame)]

    model.wire = pull  # type: ignore[assignment]
    code, out, err = run("send", file)
    assert code == 1 and "liteprobe: the link of port 1 went down while streams ran (" in err
    assert ", stopped. Clock" in out and 0 < int(cells(out, "voice")[0]) < 20


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "streams:\n  - {length: 60, rat: 5M}\n",
            "streams.yaml:2: unknown key 'rat' of a stream: did you mean 'rate'?",
        ),
        (
            "streams:\n  - {name: a, length: 60, share: 70%}\n  - {name: b, length: 60, share: 40%}\n",
            "streams.yaml:1: the streams of port 0 add up to 110 % of the line (a 70 %, b 40 %): lower the rates",
        ),
        ("streams: [", "streams.yaml:1: this is not YAML"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("streams.yaml").write_text(text)
    code, out, err = run("send", "streams.yaml")
    assert (code, out) == (2, "") and err.startswith(f"liteprobe: {message}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("gone.yaml",),
            "can't read gone.yaml (No such file or directory): name a file of streams",
        ),
        (("FILE", "--rate", "1M"), "FILE says what is sent, so --rate can't: leave one of them out"),
        (("FILE", "--dst-port", "5"), "FILE says what is sent, so --dst-port can't: leave one of them out"),
        (("FILE", "--vlan", "5"), "FILE says what is sent, so --vlan can't: leave one of them out"),
        (
            ("--length", "many"),
            "argument --length: 'many' is not a length: write it like 512, 64-1514 (at random) or imix; see: liteprobe send --help",
        ),
        (
            ("--latency-range", "9us,1us"),
            "argument --latency-range: '9us,1us' holds nothing: give the least delay first; see: liteprobe send --help",
        ),
        (
            ("FILE", "--detach", "--json"),
            "detached streams have no result, so --json is not available with --detach: leave one of them out",
        ),
        (
            ("--detach", "--duration", "1s"),
            "no host is left to stop detached streams after a duration: give each a count, or stop them later",
        ),
        (
            ("--exponential",),
            "exponential intervals need a length of time: give an interval (ns), a rate (b/s), packets a second, a share of the "
            "line",
        ),
        (("--share", "100.0001"), "--share 100.0001% is out of range: give per cent like 12.5%, above 0%, up to 100%"),
        (("--duration", "7ns"), "7ns is less than a tick of the probe's clock: give 8 ns or more"),
        (("--share", "101"), "--share 101% is out of range: give per cent like 12.5%, above 0%, up to 100%"),
        (
            ("--pps", "nan"),
            "argument --pps: 'nan' is not a rate of frames: write it like 20000, 20k or 20kpps; see: liteprobe send --help",
        ),
        (("--transmit", "4"), "there is no transmit port 4: give 0 to 1"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    run: Run, model: TrafficProbe, file: str, arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = run("send", *(file if one == "FILE" else one for one in arguments))
    assert (code, out, err) == (2, "", f"liteprobe: {message.replace('FILE', file)}\n")
