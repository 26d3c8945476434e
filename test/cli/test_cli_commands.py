# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The command line over a model of the probe: what it prints and writes, and how it ends when something is wrong."""

import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from liteprobe.host.cli import main as cli
from liteprobe.host.cli import results
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.trains import ModelFrame, ModelProbe, cable, damaged

DELAY_TICKS = 37
PAPER_LINES = 14


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelProbe:
    """A probe whose ports are joined by a cable; every URL leads to it."""
    made = ModelProbe(cable(DELAY_TICKS))

    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: FakeLink(made, tmp_path))
    return made


Run = Callable[..., tuple[int, str, str]]


# What goes well -----------------------------------------------------------------------------------


def test_train_prints_a_row_a_program(run: Run, model: ModelProbe) -> None:
    code, out, err = run("train", "--length", "60,1514", "--count", "10,20", "--repeat", "3")
    rows = [line.split() for line in out.splitlines() if re.match(r"\s*\d+ ", line)]
    assert (code, err) == (0, "")
    assert [row[:3] for row in rows] == [[length, count, "3"] for length in ("60", "1514") for count in ("10", "20")]
    assert {tuple(row[3:9]) for row in rows} == {
        # Of three trains that are alike: 1 - .05^(1/3) of all may be of any rate.
        ("100.00", "1000.000", "631.597", "1000.000", "1000.000", f"{8 * DELAY_TICKS}.0")
    }


def test_files_hold_the_same_figures_as_the_table(run: Run, model: ModelProbe, tmp_path: Path) -> None:
    paths = {name: tmp_path / f"train.{name}" for name in ("json", "csv", "html")}
    code, _, _ = run(
        "train", "--length", "60", "--count", "10", "--rate", "500M", "--json", str(paths["json"]),
        "--csv", str(paths["csv"]), "--report", str(paths["html"]),
    )  # fmt: skip
    assert code == 0
    (row,) = json.loads(paths["json"].read_text())["rows"]
    assert (row["length"], row["interval_ns"], row["utilisation"]) == (60, 1344.0, 0.5)
    assert row["dispersion_rate_bps"]["mean"] == 5e8 and row["owd_ns"]["mean"] == 8 * DELAY_TICKS
    (line,) = csv.DictReader(paths["csv"].open())
    assert float(line["dispersion_rate_bps.mean"]) == 5e8 and float(line["owd_ns.p99_9"]) == 8 * DELAY_TICKS
    assert "500.000" in paths["html"].read_text()


def test_a_long_run_prints_one_json_document(run: Run, model: ModelProbe, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is written anew now and then; what is printed can't be."""
    monkeypatch.setattr(results, "AGAIN_S", 0.0)
    code, out, _ = run("train", "--length", "60,64,512", "--count", "2", "--json")
    assert code == 0 and [row["length"] for row in json.loads(out)["rows"]] == [60, 64, 512]


def test_json_on_stdout_is_all_that_is_printed(run: Run, model: ModelProbe) -> None:
    code, out, _ = run("train", "--count", "2", "--json", "-")
    assert code == 0 and json.loads(out)["rows"][0]["sent"] == 2


def test_headers_and_pace_reach_the_probe(run: Run, model: ModelProbe) -> None:
    code, _, err = run(
        "train", "--length", "128", "--count", "2", "--interval", "2us", "--gap", "1us", "--fill", "prbs",
        "--src-ip", "2001:2::1", "--dst-ip", "2001:2::2", "--vlan", "5", "--stream-id", "0x22", "--dst-port", "9",
    )  # fmt: skip
    assert (code, err) == (0, "")
    values = {name: model.values[f"port0_tx_{name}"] for name in ("length", "interval_ticks", "gap_ticks", "fill")}
    assert values == {"length": 128, "interval_ticks": 250, "gap_ticks": 125, "fill": 2}
    assert model.values["port0_tx_payload_offset"] == 66
    assert model.values["port1_rx_stream_id"] == 0x22


def test_calibrate_finds_the_wire_and_train_takes_it_out(run: Run, model: ModelProbe, tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    code, out, _ = run("calibrate", "--count", "5", "--repeat", "2", "--json", str(file))
    assert code == 0
    assert [line.split()[1] for line in out.splitlines() if "intercept" in line] == ["296.0000"]
    assert [line.split()[1] for line in out.splitlines() if "slope" in line] == ["0.0000"]
    code, out, _ = run("train", "--count", "5", "--calibration", str(file), "--json", "-")
    assert json.loads(out)["rows"][0]["owd_ns"]["mean"] == pytest.approx(0, abs=1e-9)


def test_calibrate_judges_its_trains(run: Run, model: ModelProbe, tmp_path: Path) -> None:
    words = "calibrate", "--length", "60,512", "--count", "5", "--repeat", "2", "--expect", "lost == 0"
    assert run(*words)[0] == 0
    code, out, _ = run(*words, "--expect", "512.p99 > 1us", "--json", str(tmp_path / "c.json"))
    assert code == 4 and out.splitlines()[-2:][0] == "lost == 0: held: lost is 0" and (tmp_path / "c.json").exists()
    assert out.splitlines()[-1].startswith("512.p99 > 1us: not held: p99 is ")


@pytest.mark.parametrize(("lengths", "measured"), [("600,60,64", 0), ("60,600,64", 1), ("60,64,600", 2)])
def test_calibrate_that_ends_early_shows_the_line_of_two_lengths_or_more_and_leaves_the_file(
    run: Run, model: ModelProbe, tmp_path: Path, lengths: str, measured: int
) -> None:
    model.wire = lambda frame: [(1, DELAY_TICKS, frame)] if frame.length < 600 else []
    file = tmp_path / "calibration.json"
    file.write_text("an earlier one")
    code, out, err = run("calibrate", "--length", lengths, "--count", "5", "--repeat", "2", "--json", str(file))
    assert (code, file.read_text(), len(err.splitlines())) == (1, "an earlier one", 1)
    assert "nothing came back: 10 frames left port 0" in err
    shown = [line.split()[1] for line in out.splitlines() if "intercept" in line or "slope" in line]
    assert shown == (["0.0000", "296.0000"] if measured > 1 else [])
    assert ("what is shown is of 2 lengths of 3, and no file has it" in err) == (measured > 1)


def test_info_says_what_the_probe_is(run: Run, model: ModelProbe) -> None:
    code, out, _ = run("info", "--json")
    found = json.loads(out)
    assert code == 0 and (found["ports"], found["record_depth"], found["tick_ns"]) == (2, 1024, 8.0)
    assert re.search(r"^clock_state +free-running", run("info")[1], re.MULTILINE)


def test_registers_are_written_read_and_listed(run: Run, model: ModelProbe) -> None:
    assert run("regs", "write", "port1_tx_length", "0x123") == (0, "", "")
    assert model.values["port1_tx_length"] == 0x123
    out = run("regs", "read", "port1_tx_length")[1]
    assert out.splitlines()[-2].split() == ["port1_tx_length", "291", "0x00000123"]
    listed = run("regs", "list", "port?_tx_length")[1]
    assert re.findall(r"port\d_tx_length", listed) == ["port0_tx_length", "port1_tx_length"]


def test_completion_is_a_script(run: Run) -> None:
    code, out, _ = run("completion", "bash")
    assert code == 0 and "--calibration" in out and "calibrate" in out


def test_table_fits_a_terminal_of_80_columns(run: Run, model: ModelProbe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("liteprobe.host.cli.tables.PLAIN_WIDTH", 80)
    model.wire = lambda frame: [(1, 1890 + frame.sequence, frame)] * (frame.sequence != 7)
    lines = run("train", "--length", "1514", "--count", "1000", "--repeat", "10", "--rate", "999M")[1].splitlines()
    assert max(map(len, lines)) <= 80 and not any("…" in line for line in lines)
    row = next(line.split() for line in lines if line.strip().startswith("1514"))
    assert row[:3] == ["1514", "1000", "10"] and row[-1] == "1/0/0/0"


def test_output_of_a_pipe_has_no_escapes(run: Run, model: ModelProbe) -> None:
    out = run("train", "--count", "2")[1]
    assert "\x1b" not in out and "1000.000" in out


def test_waiting_time_is_how_long_the_probe_listens_and_what_counts(run: Run, model: ModelProbe) -> None:
    model.wire = lambda frame: [(1, 1_000_000 if frame.sequence == 99 else 10, frame)]  # 8 ms, beyond the usual 2.
    lost = [
        json.loads(run("train", "--json", "-", *options)[1])["rows"][0]["lost"]
        for options in ((), ("--waiting-time", "20ms"), ("--waiting-time", "70ns"))
    ]
    assert lost == [1, 0, 100]


# What goes wrong ----------------------------------------------------------------------------------

USAGE = [
    (("train", "--length", "59"), "length 59 is out of range: give 60 to 9000"),
    (("train", "--length", "9001"), "length 9001 is out of range"),
    (("train", "--length", "64,x"), "'x' is not a whole number: write it like 10"),
    (("train", "--count", "0"), "count 0 is out of range: give 1 to 4294967295"),
    (("train", "--count", "4294967296"), "count 4294967296 is out of range"),
    (("train", "--repeat", "0"), "repeats 0 is out of range"),
    (("train", "--count", "100000", "--repeat", "100000"), "is 10000000000 frames: give 4294967295"),
    (("train", "--rate", "0"), "rate 0 b/s is out of range: give a rate above 0"),
    (
        ("train", "--rate", "2G"),
        "rate 2e+09 b/s is out of range: give a rate above 0, up to 1G, or none for back to back",
    ),
    (
        ("train", "--json", "x.json", "--csv", "./x.json"),
        "--json and --csv are the same file, x.json: give each one of its own",
    ),
    (("train", "--gap", "-1us"), "argument --gap: give it a value"),
    (
        ("build", "--preset", "monitor", "versa_ecp5"),
        "options of the gateware come after BOARD: liteprobe build BOARD --help",
    ),
    (("calibrate", "--slope", "eight"), "'eight' is not a number: write it like 8 or 0.5"),
    (("train", "--rate", "fast"), "'fast' is not a rate: write it like 500M"),
    (("train", "--interval", "-5"), "'-5' has no unit, and is not a time: write it like 1344ns or 1.5us"),
    (("train", "--interval", "12303ns"), "above the line rate for length 1514"),
    (("train", "--interval", "60s"), "above 34.360 s, the most that the probe holds"),
    (("train", "--interval", "2us", "--rate", "1G"), "not allowed with argument"),
    (("train", "--length", "60", "--src-ip", "2001:2::1", "--dst-ip", "2001:2::2"), "give 82 to 9000"),
    (("train", "--src-ip", "2001:2::1"), "of different families"),
    (("train", "--src-mac", "x"), "'x' is not a MAC address"),
    (("train", "--vlan", "70000"), "VLAN tag 70000 is out of range"),
    (("train", "--transmit", "2"), "there is no transmit port 2: give 0 to 1"),
    (("train", "--receive", "-1"), "there is no receive port -1"),
    (("train", "--json", "/nowhere/at/all.json"), "make the folder /nowhere/at first, or name another one"),
    (("train", "--calibration", "/nowhere.json"), "name a calibration"),
    (("train", "--what"), "there is no option '--what'; see: liteprobe train --help"),
    (("train", "--lenght", "60"), "there is no option '--lenght': did you mean --length?"),
    (("train", "--fill", "prsb"), "there is no --fill 'prsb': did you mean prbs?"),
    (("train", "60"), "'60' is one argument too many"),
    (("train", "--waiting-time", "0"), "0 leaves no time: give one above 0, like 1ms"),
    (
        ("send", "--length", "64", "--duration", "2d"),
        "'2d' is not a time: write it like 10s, 100ms, 2h, or 10 for seconds",
    ),
    (("clock", "stauts"), "there is no action 'stauts': did you mean status?"),
    (("trian",), "there is no command 'trian': did you mean train?"),
    (("calibrate", "--length", "60"), "two lengths"),
    (("regs", "read"), "needs a register: see 'liteprobe regs list'"),
    (("regs", "write", "port0_tx_length"), "a value belongs to regs write"),
    (("regs", "read", "port0_tx_lenght"), "did you mean port0_tx_length"),
    (("regs", "write", "probe_ports", "3"), "probe_ports can only be read"),
    (("regs", "write", "port0_tx_length", "4294967296"), "does not fit port0_tx_length"),
    (("dance",), "there is no command 'dance': give one of train, send, replay, sets, emulate, owd,"),
]


def test_without_a_command_help_is_shown_and_the_exit_code_is_2(run: Run) -> None:
    code, out, err = run()
    assert (code, out) == (2, "")
    assert err.startswith("usage: liteprobe") and all(f"\n    {name}" in err for name in cli.COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "said"), USAGE, ids=lambda value: value if isinstance(value, str) else " ".join(value)
)
def test_wrong_use_is_one_line_and_exit_code_2(
    run: Run, model: ModelProbe, arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert said in err and err.startswith("liteprobe: ") and len(err.splitlines()) == 1


@pytest.mark.parametrize("arguments", [("train", "--rate", "2G"), ("train", "--length", "1")])
def test_what_no_probe_can_do_is_refused_before_one_is_opened(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: pytest.fail("a probe was opened"))
    assert run(*arguments)[0] == 2


def test_rate_within_the_tolerance_of_clocks_is_left_to_the_probe(run: Run, model: ModelProbe) -> None:
    code, _, err = run("train", "--rate", "1.0001G")  # 100 ppm: a question of the probe's own clock.
    assert code == 2 and "above the line rate" in err
    model.values["timebase_increment"] = round(8 * 2**40 * (1 - 150e-6))
    code, out, _ = run("train", "--rate", "1.0001G")
    assert code == 0 and "1000.100" in out


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("tcp://x", "is not a probe URL"),
        ("sim://wormhole", "there is no wire 'wormhole'"),
        ("sim://", "names no probe"),
    ],
)
def test_url_that_means_nothing_is_wrong_use(run: Run, url: str, said: str) -> None:
    code, _, err = run("info", "--probe", url)
    assert code == 2 and said in err


def test_unreachable_probe_is_exit_code_3(run: Run) -> None:
    code, out, err = run("info", "--probe", "etherbone://127.0.0.1:9?timeout=0.2")
    assert (code, out) == (3, "") and len(err.splitlines()) == 1


def test_map_of_another_build_is_refused(run: Run, model: ModelProbe) -> None:
    model.values["probe_map_hash"] ^= 1
    code, out, err = run("train")
    assert (code, out) == (1, "")
    assert "is the map of another build" in err and "--map build/BOARD/csr.json" in err


def test_link_that_is_down_is_named(run: Run, model: ModelProbe) -> None:
    model.values["port1_tx_link_up"] = 0
    code, _, err = run("train")
    assert code == 1 and "the link of port 1 is down: plug in its cable" in err


def test_wire_that_leads_nowhere_says_so(run: Run, model: ModelProbe) -> None:
    model.wire = lambda frame: []
    code, _, err = run("train")
    assert code == 1 and "nothing came back: 100 frames left port 0" in err


def test_train_cut_by_the_wire_shows_its_loss(run: Run, model: ModelProbe) -> None:
    model.wire = lambda frame: [(1, 10, frame)] if frame.sequence < 40 else []
    code, out, _ = run("train", "--json", "-")
    (row,) = json.loads(out)["rows"]
    assert code == 0 and (row["received"], row["lost"]) == (40, 60) and row["dispersion_rate_bps"]["mean"] == 1e9


def test_bad_frames_are_counted_and_said(run: Run, model: ModelProbe) -> None:
    def wire(frame: ModelFrame) -> list[tuple[int, int, ModelFrame]]:
        return [(1, 10, damaged(frame) if frame.sequence == 7 else frame)]

    model.wire = wire
    out = run("train")[1]
    assert "1 fcs errors" in out and out.split("\n")[3].split()[-4] == "1"


def test_ring_that_overflows_marks_the_results_incomplete(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: FakeLink(ModelProbe(cable(), depth=16), tmp_path))
    # A host that doesn't drain.
    monkeypatch.setattr("liteprobe.host.run.trains.RunningTrain.fits", property(lambda job: True))
    code, out, _ = run("train", "--length", "60", "--count", "100")
    assert code == 0 and "incomplete" in out and "84 records found the ring full" in out


def test_interrupt_is_exit_code_130(run: Run, model: ModelProbe, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(FakeLink, "wait", interrupt)
    code, _, err = run("train", "--count", "5000")
    assert (code, err) == (130, "liteprobe: interrupted\n")


def test_disk_that_is_full_is_one_line(run: Run, model: ModelProbe) -> None:
    code, _, err = run("train", "--count", "2", "--csv", "/dev/full")
    assert code == 1 and len(err.splitlines()) == 1 and "space" in err


def test_command_in_a_pipe_that_closes_ends_quietly() -> None:
    script = f"{sys.executable} -m liteprobe.host.cli.main completion bash | head -c 10"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_every_command_has_help(run: Run) -> None:
    for name in cli.COMMANDS:
        code, out, err = run(name, "--help")
        assert (code, err) == (0, "") and out.startswith(f"usage: liteprobe {name} ")


@pytest.mark.parametrize(
    ("arguments", "name", "wanted_ns"),
    [
        (["capture", "--duration", "10"], "duration", 10e9),
        (["capture", "--duration", "0.5"], "duration", 5e8),
        (["capture", "--before", "1", "--after", "0"], "before", 1e9),
        (["capture", "--before", "200us"], "before", 2e5),
        (["send", "--length", "64", "--duration", "2"], "duration", 2e9),
        (["send", "--length", "64", "--waiting-time", "2ms"], "waiting_time", 2e6),
        (["send", "--length", "64", "--interval", "1344ns"], "interval", 1344),
        (["train", "--interval", "1.5us"], "interval", 1500),
        (["emulate", "--preset", "dsl", "--duration", "10"], "duration", 10e9),
        (["monitor", "--refresh", "2", "--rates", "10ms"], "interval", 2e9),
        (["clock", "status", "--duration", "3"], "watch", 3e9),
        (["clock", "log", "--out", "x", "--duration", "60"], "span", 60e9),
        (["bring-up", "--duration", "1"], "duration", 1e9),
        (["firmware", "console", "--follow", "2"], "follow", 2e9),
        (["owd", "--from", "sim://", "--discipline", "20", "--period", "1"], "discipline", 20e9),
        (["agent", "run", "x", "--limit", "1"], "limit", 1e9),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_how_long_is_seconds_unless_it_has_a_unit(arguments: list[str], name: str, wanted_ns: float) -> None:
    assert getattr(cli.make_parser().parse_args(arguments), name) == wanted_ns
