# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""``liteprobe emulate`` over a model of the probe: what it prints and writes, and how it ends."""

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from rich.console import Console

from liteprobe.cores.formats.emulate import UNMATCHED_CLASS, ClassCounter
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.cli.commands import emulate
from liteprobe.host.probe import Probe
from liteprobe.host.report import emulate_page
from liteprobe.host.run.emulate import ClassDelays, ClassLook, ClassQueue, DirectionLook, Emulation, EmulationLook
from liteprobe.host.traffic.network.document import read_network
from liteprobe.host.traffic.presets import PRESETS
from liteprobe.sim.drivers.system.fake_link import FakeLink, fake_emulator
from liteprobe.sim.models.probe.emulator import EmulatorProbe

Run = Callable[..., tuple[int, str, str]]
REST = UNMATCHED_CLASS
DOCUMENT = """\
name: line
both: {rate: 10Mbit, delay: 5ms, queue: 10, overhead: 0}
there:
  classes:
    - {name: voice, match: udp port 5060, delay: 1ms, overhead: usual, loss_pattern: none}
  loss_pattern: '01'
changes:
  - {at: 50ms, there: {delay: 7ms, classes: {voice: {loss: 100%}}}}
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EmulatorProbe:
    """A probe that emulates, whose ports have traffic; every URL leads to it."""
    found, _ = fake_emulator(tmp_path)
    found.offer(0, 0, 100, 125_000)
    found.offer(0, REST, 1000, 125_000, 62_500)
    found.offer(1, REST, 60, 12_500)
    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: FakeLink(found, tmp_path))
    return found


@pytest.fixture
def document(tmp_path: Path) -> str:
    (tmp_path / "line.yaml").write_text(DOCUMENT)
    return str(tmp_path / "line.yaml")


def lines_with(text: str, *words: str) -> list[str]:
    """Return the lines that have all words, their spaces as one, without frames."""
    plain = [" ".join(line.strip("│ ").split()) for line in text.splitlines()]
    return [line for line in plain if all(word in line for word in words)]


# What goes well ----------------------------------------------------------------------------------------


def test_results_are_a_table_a_document_and_a_page(
    run: Run, model: EmulatorProbe, document: str, tmp_path: Path
) -> None:
    options = ("--duration", "200ms", "--refresh", "20ms")
    files = ("--json", str(tmp_path / "e.json"), "--report", str(tmp_path / "e.html"))
    code, out, err = run("emulate", document, *options, *files)
    assert (code, err) == (0, f"report: {tmp_path / 'e.html'}\n")
    assert re.search(r"\n200\.[0-9]{3} ms, stopped after its time by this host\. Clock free-running\.", out)
    content = json.loads((tmp_path / "e.json").read_text())
    assert (content["format"], content["end"], content["notes"]) == ("liteprobe-emulation", "done", [])
    assert content["network"]["there"]["classes"] == [
        {"name": "voice", "match": "udp port 5060", "delay": "1ms"},
        {"name": "rest", "delay": "5ms", "queue": 10, "overhead": 0, "loss_pattern": "01"},
    ]
    voice, rest = content["there"]["classes"]
    assert rest["counts"]["lost"] == rest["counts"]["arrived"] // 2 == 100
    assert voice["counts"]["lost"] == voice["counts"]["arrived"] - voice["counts"]["sent"] == 151
    assert (voice["delays"]["least_ns"], rest["delays"]["least_ns"]) == (
        1_099_200,
        5_800_000,
    )  # Its overhead is 24 octets.
    assert rest["delays"]["most_ns"] == 7_800_000
    assert len(voice["delays"]["edges_ns"]) == len(voice["delays"]["counts"]) + 1 == 33
    (shown,) = lines_with(out, "voice", "151")
    assert shown == "voice 201 50 0 151 0 0 0 0"
    mean, (least, most) = rest["sent_mean_bps"] / 1e6, rest["delays"]["mean_bounds_ns"]
    (shown,) = [line for line in lines_with(out, "rest", "7.800") if f" {mean:.3f} " in line]
    assert f"5.800 {(least + most) / 2e6:.3f}±{(most - least) / 2e6:.3f} 7.800" in shown and "lately" not in out
    html = (tmp_path / "e.html").read_text()
    assert "<title>A network, emulated: line</title>" in html and html.count("<svg") == 8
    for words in ("delay: 7ms", "loss pattern of 2 frames; queue of 10 frames; delay 5ms", ">151<", "7.800000"):
        assert words in html
    assert model.running == [None, None]


def test_json_to_stdout_stands_in_the_place_of_the_table(run: Run, model: EmulatorProbe, document: str) -> None:
    code, out, err = run("emulate", document, "--duration", "100ms", "--json")
    assert (code, err) == (0, "") and json.loads(out)["back"]["classes"][0]["counts"]["sent"] > 900


def test_a_check_shows_what_is_asked_for_without_a_probe(
    run: Run, document: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: pytest.fail("a probe was opened"))
    code, out, _ = run("emulate", document, "--check")
    assert code == 0
    assert lines_with(out, "there: port 0 → port 1") == ["there: port 0 → port 1, 10Mbit, strict"]
    assert lines_with(out, "voice", "udp port 5060") == ["voice udp port 5060 delay 1ms"]
    assert lines_with(out, "the rest", "pattern") == [
        "rest the rest loss pattern of 2 frames; queue of 10 frames; delay 5ms"
    ]
    assert lines_with(out, "from 0.05 s") == [
        "from 0.05 s, there: class 'voice': loss 100%; delay 1ms",
        "from 0.05 s, there: class 'rest': loss pattern of 2 frames; queue of 10 frames; delay 7ms",
    ]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_printed_as_a_document_that_reads_again(run: Run, name: str, tmp_path: Path) -> None:
    code, out, err = run("emulate", "--preset", name, "--yaml")
    assert (code, err, read_network(out).name) == (0, "", name)
    (tmp_path / "again.yaml").write_text(out)
    assert run("emulate", str(tmp_path / "again.yaml"), "--yaml")[1] == out


def test_netem_is_translated_and_what_differs_is_said_on_stderr(run: Run, model: EmulatorProbe) -> None:
    code, out, err = run(
        "emulate", "--from-netem", "delay 20ms 1ms", "--netem-back", "loss 100%", "--duration", "100ms", "--json"
    )
    content = json.loads(out)
    assert code == 0 and err.splitlines()[0].startswith("Jitter doesn't reorder here")
    there, back = (content[way]["classes"][0] for way in ("there", "back"))
    assert there["delays"]["least_ns"] >= 19_000_000 and there["delays"]["most_ns"] <= 21_000_000
    assert back["counts"]["lost"] == back["counts"]["arrived"] > 900


def test_detached_it_is_looked_at_and_stopped_by_others(run: Run, model: EmulatorProbe, document: str) -> None:
    code, out, _ = run("emulate", document, "--detach")
    where = "--probe sim://emulator"
    assert (code, out) == (
        0,
        f"running; liteprobe emulate --attach {where} looks at it, liteprobe stop {where} ends it\n",
    )
    code, out, _ = run("emulate", "--attach", "--duration", "300ms")
    assert code == 0 and len(lines_with(out, "voice")) == 3 and all(model.running)
    assert " ms, left running. " in out
    code, out, _ = run("emulate", "--attach", "--set", "there.voice.delay=3ms", "--set", "both.rate=20Mbit")
    assert (code, out.split()[:2]) == (0, ["holds", "from"]) and all(model.running)
    code, out, err = run("emulate", "--attach", "--set", "there.voice.delay=9s")
    assert (code, out) == (2, "") and "'there.voice.delay=9s': delay 9s is out of range" in err and all(model.running)
    code, out, err = run("emulate", "--attach", "--set", "back.delay=6ms", "--duration", "1ms", "--json")
    content = json.loads(out)
    assert err.startswith("holds from ") and content["network"]["there"]["rate"] == "20Mbit"
    assert content["network"]["changes"][-1]["back"] == {"delay": "6ms"} and content["back"]["state"] == 3
    code, out, _ = run("stop")
    assert (code, out, model.running) == (0, "port 0: stopped\nport 1: stopped\n", [None, None])
    code, _, err = run("emulate", "--attach")
    assert (code, err) == (2, "liteprobe: no network runs on this probe: start one\n")


def test_the_schema_is_printed(run: Run) -> None:
    code, out, _ = run("emulate", "--schema")
    assert code == 0 and json.loads(out)["$defs"]["direction"]["properties"]["delay"]["description"]


# How it ends -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "signal", "ends"),
    [
        ([], 2, (0, "stopped", "")),
        ([], 15, (143, "interrupted", "liteprobe: terminated; what is shown is until then\n")),
        (["--duration", "10s"], 2, (130, "interrupted", "liteprobe: interrupted; what is shown is until then\n")),
    ],
)
def test_a_signal_stops_it_and_shows_what_came(
    run: Run, model: EmulatorProbe, monkeypatch: pytest.MonkeyPatch, options: list[str], signal: int, ends: object
) -> None:
    wait, waits = Probe.wait, []

    def interrupted(probe: Probe, seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 4:
            raise Interrupted(signal)
        wait(probe, seconds)

    monkeypatch.setattr(Probe, "wait", interrupted)
    code, out, err = run("emulate", "--preset", "dsl", *options, "--json")
    assert (code, json.loads(out)["end"], err) == ends
    assert model.running == [None, None]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no network is given: give one of a file, --preset, --from-netem, --attach"),
        (["a.yaml", "--preset", "dsl"], "a file and --preset are given: give one of"),
        (["--preset", "dls"], "there is no preset 'dls': did you mean 'dsl'?"),
        (["no-such.yaml"], "can't read no-such.yaml"),
        (["--netem-back", "loss 1%", "--preset", "dsl"], "--netem-back goes with --from-netem"),
        (["--expected", "50M", "--preset", "dsl"], "--expected goes with --from-netem"),
        (["--from-netem", "slot 1ms"], "netem's 'slot' can't be done"),
        (["--preset", "dsl", "--duration", "10d"], "'10d' is not a time: write it like 10s"),
        (["--preset", "dsl", "--duration", "1e99s"], "up to 26 days: give --duration less"),
        (["--preset", "dsl", "--detach", "--duration", "1s"], "--detach leaves at once"),
        (["--attach", "--check"], "--attach has no network to show"),
        (["--preset", "dsl", "--set", "there.rate=1Mbit"], "--set changes a network that runs: give --attach, too"),
    ],
)
def test_what_is_asked_for_wrongly_is_refused_before_a_probe_is_opened(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: pytest.fail("a probe was opened"))
    code, out, err = run("emulate", *arguments)
    assert (code, out) == (2, "") and words in err


def test_no_result_is_written_over_the_network(run: Run, document: str) -> None:
    before = Path(document).read_text()
    code, _, err = run("emulate", document, "--json", document)
    said = f"the network and --json are the same file, {document}: give each one of its own"
    assert (code, err) == (2, f"liteprobe: {said}\n") and Path(document).read_text() == before


def test_a_long_delay_of_netem_fits_where_less_is_expected(run: Run, model: EmulatorProbe) -> None:
    words = ("emulate", "--from-netem", "delay 200ms limit 60000", "--duration", "100ms")
    code, _, err = run(*words)
    assert code == 2 and "or with 'expected' " in err
    assert run(*words, "--expected", "50M")[0] == 0


def test_what_the_probe_cannot_hold_is_refused_and_nothing_runs(run: Run, model: EmulatorProbe) -> None:
    model.values["direction0_store_words"] = 1 << 12
    code, _, err = run("emulate", "--preset", "satellite", "--duration", "1s")
    assert code == 2 and "the store of this probe has 16.0 KiB for 'there'" in err
    assert model.running == [None, None]


def test_the_limits_of_a_probe_are_shown_and_true(run: Run, model: EmulatorProbe, tmp_path: Path) -> None:
    """Each delay is taken with its rate, and the longest queue; a fifth more is refused at full length."""
    shown = run("emulate", "--limits")[1]
    assert "2 directions, each of" in shown
    for board in ("colorlight_i9", "versa_ecp5"):
        code, out, _ = run("emulate", "--limits", "--board", board)
        assert code == 0
        rates = ("1Gbit", "100Mbit", "10Mbit", "1Mbit")
        for rate in rates:
            (row,) = lines_with(out, f"delay at {rate},")
            delays = re.findall(r"[0-9]+\.[0-9]{3}", row)
            assert len(delays) == 4
            for delay, is_taken in [*((one, True) for one in delays), (f"{1.2 * float(delays[-1]):.3f}", False)]:
                link = "" if rate == "1Gbit" else f"rate: {rate}, "
                (tmp_path / "typed.yaml").write_text(f"there: {{{link}delay: {delay}ms}}")
                code, _, err = run("emulate", str(tmp_path / "typed.yaml"), "--check", "--board", board)
                assert code == (0 if is_taken else 2), (rate, delay, err)
        (row,) = lines_with(out, "queue, at most")
        frames = row.split()[-2].replace(",", "")
        (tmp_path / "typed.yaml").write_text(f"there: {{rate: 1Gbit, queue: {frames}}}")
        assert run("emulate", str(tmp_path / "typed.yaml"), "--check", "--board", board)[0] == 0


def test_a_check_is_as_of_a_board(run: Run, document: str, tmp_path: Path) -> None:
    out = run("emulate", "--from-netem", "delay 20ms loss 1%", "--check", "--board", "colorlight_5a_75b")[1]
    assert lines_with(out, "Checked as of colorlight_5a_75b: 1 direction, each of 2.00 MiB")
    for arguments, words in (
        ((document, "--check", "--board", "colorlight_i5"), "emulates a network from port 0 to port 1 alone"),
        ((document, "--check", "--board", "i9"), "no emulator is built for board 'i9': give one of"),
        ((document, "--board", "colorlight_i9"), "--board goes with --check or --limits"),
        (("--from-netem", "rate 8kbit", "--check", "--board", "colorlight_i9"), "give that or more"),
        (("--from-netem", "delay 2s rate 100mbit", "--check"), "give class 'rest' a delay of "),
    ):
        code, _, err = run("emulate", *arguments)
        assert code == 2 and words in err


# Screens -----------------------------------------------------------------------------------------------


def screen(look: object, width: int, height: int, turn: int = 0) -> str:
    console = Console(
        width=width, height=height, force_terminal=True, color_system=None, record=True, file=io.StringIO()
    )
    console.print(emulate.live(look, "sim://emulator", turn), height=height)  # type: ignore[arg-type]
    return console.export_text()


@pytest.mark.parametrize("width", [80, 120])
def test_a_screen_that_is_large_has_both_directions(model: EmulatorProbe, tmp_path: Path, width: int) -> None:
    with Probe(FakeLink(model, tmp_path)) as probe, probe.emulate(read_network(DOCUMENT)) as emulation:
        probe.wait(0.1)
        emulation.look()
        model.shown[0][REST][ClassCounter.NO_STORE] = 7
        model.values["direction0_damaged"] = 3
        look = emulation.look()
    wide = screen(look, width, 60)
    assert lines_with(wide, "liteprobe emulate")[0].startswith(
        "liteprobe emulate sim://emulator 100.125 ms change 1 of 1"
    )
    assert lines_with(wide, "3 bad FCS or length") == ["! 3 bad FCS or length"]
    assert all(len(line) <= width for line in wide.splitlines())
    assert [len(lines_with(wide, way)) for way in ("port 0 → port 1", "port 1 → port 0")] == [1, 1]
    (outcomes,) = [line for line in lines_with(wide, "rest") if " 7 " in line]
    assert outcomes.split()[-2:] == ["7", "0"]
    (voice,) = lines_with(wide, "voice delay")
    assert voice == "voice delay 1.049 ms █ 2.097 ms 1.099 ms to 1.399 ms"


def grown(look: EmulationLook, draw: Random) -> EmulationLook:
    """Return a look with random names and figures, of up to ten digits, in place of those that it has."""

    def number() -> int:
        return draw.randrange(10 ** draw.randint(1, 10))

    def one(each: ClassLook, place: int) -> ClassLook:
        counts = replace(each.counts, **{name: number() for name in vars(each.counts)})
        most = number()
        queue = ClassQueue(min(number(), most), number(), most)
        bins = (*(number() * (draw.random() < 0.3) for _ in range(31)), 1)
        delays = replace(each.delays, least_ns=float(number()), most_ns=1e9 + number(), counts=bins)
        rates = [draw.uniform(0, 1e9) for _ in range(4)]
        name = "".join(draw.choice("abcxyz -") for _ in range(draw.randint(1, 14))).strip(" -") or "x"
        return replace(
            each,
            name=f"{name}{place}",
            counts=counts,
            queue=queue,
            delays=delays,
            arrived_bps=rates[0],
            sent_bps=rates[1],
        )

    ways = {}
    for direction in look.directions:
        classes = tuple(one(direction.classes[0], place) for place in range(draw.randint(1, 8)))
        ways[direction.way] = replace(direction, classes=classes, damaged=number(), is_link_up=draw.random() < 0.8)
    return replace(look, there=ways["there"], back=ways["back"])


@pytest.mark.parametrize(
    ("width", "height"),
    [(40, 20), *(pytest.param(*size, marks=pytest.mark.full) for size in ((80, 24), (60, 12), (200, 60)))],
)
def test_pages_of_a_small_screen_have_every_figure_of_both_directions_together(
    model: EmulatorProbe, tmp_path: Path, width: int, height: int
) -> None:
    """Figures are those of the looks; a page has its number, and nothing is cut in silence."""
    with Probe(FakeLink(model, tmp_path)) as probe, probe.emulate(read_network(DOCUMENT)) as emulation:
        probe.wait(0.05)
        plain = emulation.look()
    for look in [plain, *(grown(plain, Random(seed)) for seed in range(2))]:
        pages = [screen(look, width, height)]
        count = re.search("page 1/([0-9]+)", pages[0])
        pages += [screen(look, width, height, turn) for turn in range(1, int(count[1]) if count else 1)]
        assert all(len(text.splitlines()) <= height for text in pages)
        assert all(len(line) <= width and "…" not in line for text in pages for line in text.splitlines())
        assert all(f"page {number}/{len(pages)}" in text for number, text in enumerate(pages, 1) if len(pages) > 1)
        joined = "".join("".join(pages).replace("│", " ").split())
        for direction in look.directions:
            assert [f"{direction.way}:port" in joined, direction.is_link_up or "itslinkisdown" in joined] == [
                True,
                True,
            ]
            for one in direction.classes:
                names = ("arrived", "sent", "discarded", "lost", "full", "early", "no_store", "late")
                counts = (getattr(one.counts, name) for name in names)
                figures = [f"{count:,}" for count in (*counts, one.queue.frames, one.queue.octets, one.queue.most)]
                figures += [f"{bps / 1e6:,.3f}" for bps in (one.arrived_bps, one.sent_bps) if bps is not None]
                figures += [emulate.span(one.delays), one.name] * bool(any(one.delays.counts))
                for figure in figures:
                    assert figure.replace(" ", "") in joined, (one.name, figure)


def test_both_directions_are_on_the_first_page_of_80_by_24_and_of_40_by_20(
    model: EmulatorProbe, tmp_path: Path
) -> None:
    with Probe(FakeLink(model, tmp_path)) as probe, probe.emulate(read_network(DOCUMENT)) as emulation:
        probe.wait(0.1)
        look = emulation.look()
    for width, height in ((80, 24), (40, 20)):
        for turn in range(2):
            shown = screen(look, width, height, turn)
            for name in ("there voice", "there rest", "back rest"):
                assert lines_with(shown, name), (shown, name)
            assert "100.078 ms" in shown


@pytest.mark.parametrize("is_dumb", [False, True])
def test_without_a_screen_a_line_says_what_each_direction_did_since_the_line_before(
    run: Run, model: EmulatorProbe, document: str, monkeypatch: pytest.MonkeyPatch, is_dumb: bool
) -> None:
    """1000 octets each ms there, 60 each 0.1 ms back; of there each second frame is lost."""
    if is_dumb:
        monkeypatch.setattr("rich.console.Console.is_terminal", property(lambda console: True))
        monkeypatch.setenv("TERM", "dumb")
    out = run("emulate", document, "--duration", "100ms", "--refresh", "10ms", "--every", "1ns")[1]
    pattern = (
        r"([\d.]+) ms   there ([\d.]+) Mb/s in, [\d.]+ out, \d+ wait, (\d+) dropped   back ([\d.]+) Mb/s .* [01] of 1"
    )
    found = [re.fullmatch(pattern, line) for line in out.splitlines() if "s   there " in line]
    assert len(found) > 9 and all(found), repr(out)
    lines = [[float(figure) for figure in one.groups()] for one in found if one]
    whole = [one for before, one in pairwise(lines) if one[0] - before[0] > 9]
    assert len(whole) > 7
    for _, there, _, back in whole:  # Give or take a frame.
        assert [there, back] == pytest.approx([8.8, 4.8], abs=0.9)
    lost = sum(dropped for at, _, dropped, _ in lines if at < 45)
    assert lost == pytest.approx(20, abs=1)  # Then voice is lost, too.
    assert not any("s   there " in line for line in run("emulate", document, "--duration", "100ms")[1].splitlines())


def test_an_emulation_of_a_view_is_made_of_looks(model: EmulatorProbe, tmp_path: Path) -> None:
    with Probe(FakeLink(model, tmp_path)) as probe:
        emulation = Emulation(probe, read_network("there: {background: {kind: constant, rate: 1Mbit}}"))
        emulation.begin()
        model.shown[0][REST][ClassCounter.BACKGROUND] = 1234
        model.shown[0][REST][ClassCounter.BACKGROUND_DROPPED] = 99
        shown = screen(emulation.look(), 120, 60)
        emulation.stop()
    assert lines_with(shown, "background", "dropped") and lines_with(shown, "1,234", "99")


def test_a_small_screen_cuts_no_figure_and_an_empty_queue_has_an_empty_bar(
    model: EmulatorProbe, tmp_path: Path
) -> None:
    with Probe(FakeLink(model, tmp_path)) as probe, probe.emulate(read_network(DOCUMENT)) as emulation:
        probe.wait(0.1)
        look = emulation.look()
    small = [screen(look, 60, 20, turn) for turn in range(2)]
    assert lines_with(small[0], "class", "sent", "dropped", "wait")
    assert lines_with(small[0], "voice") and not any("…" in text for text in small)
    assert lines_with(screen(look, 120, 80), "rest ··········")


def test_a_report_says_rates_and_changes_in_words_and_marks_them_on_its_plots(
    run: Run, model: EmulatorProbe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of the other way isn't this one's; one after the end is said, and not drawn."""
    (tmp_path / "n.yaml").write_text(
        "there: {rate: 10Mbit}\nback: {delay: 1ms}\nchanges:\n"
        "- {at: 20ms, there: {rate: 2Mbit}}\n- {at: 40ms, back: {loss: 5%}}\n"
        "- {at: 60ms, both: {rate: 500kbit}}\n- {at: 5s, there: {rate: none}}\n"
    )
    drawn: dict[str, list[float]] = {}

    def svg(figure: Figure, name: str) -> str:
        marks = [one for one in figure.axes[0].collections if isinstance(one, LineCollection)]
        drawn[name] = [round(segment[0][0], 9) for one in marks for segment in one.get_segments()]
        return "<svg></svg>"

    monkeypatch.setattr(emulate_page, "svg", svg)
    assert run("emulate", str(tmp_path / "n.yaml"), "--duration", "100ms", "--report", str(tmp_path / "n.html"))[0] == 0
    html = (tmp_path / "n.html").read_text()
    for words in (
        "there: 10 Mb/s, from 0.02 s on 2 Mb/s, from 0.06 s on 500 kb/s, from 5 s on no rate.",
        "back: no rate, from 0.06 s on 500 kb/s.",
        "5 s (not reached)",
        "Dotted: 2 changes.",
    ):
        assert words in html, words
    assert html.index("loss 5%") > html.index("From port 1 to port 0")
    wanted = {"there": [0.02, 0.06], "back": [0.04, 0.06]}
    for way, marks in wanted.items():
        assert {name: drawn[f"emulate-{name}-{way}"] for name in ("rates", "queues", "means")} == {
            "rates": marks,
            "queues": marks,
            "means": marks,
        }


@pytest.mark.parametrize(
    ("least_ms", "most_ms", "scale"), [(1, 100, "log"), (4, 21, "log"), (4, 19, "linear"), (5, 5, "linear")]
)
def test_delays_are_drawn_over_their_logarithm_where_they_span_more_than_a_factor_of_five(
    monkeypatch: pytest.MonkeyPatch, least_ms: float, most_ms: float, scale: str
) -> None:
    """Over less, a logarithmic axis has a tick or none."""
    monkeypatch.setattr(emulate_page, "svg", lambda figure, _: figure.axes[0].get_xscale())
    some = ClassDelays(1e6 * least_ms, 1e6 * most_ms, 0.0, None, 0.0, 0.0, (0, 0, 3, *[0] * 29), 8.0)
    none = ClassDelays(None, None, None, None, None, 0.0, (0,) * 32, 8.0)

    def drawn(*delays: ClassDelays) -> str:
        classes = [SimpleNamespace(name=str(number), delays=one) for number, one in enumerate(delays)]
        return emulate_page.draw_delays(cast(DirectionLook, SimpleNamespace(classes=classes, way="there")))

    assert (drawn(none, some), drawn(none)) == (scale, "linear")
