# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Parts that are built in unasked, and what is said of those that are not."""

from dataclasses import replace

import pytest

from liteprobe.boards import BOARDS, OTHER_NAMES, VERILOG_ONLY, board
from liteprobe.host.cli import main as cli
from liteprobe.host.cli.commands.build import BOARDS as LINES
from liteprobe.soc.build.arguments import config_of, left_out, parse


@pytest.mark.parametrize(
    ("arguments", "ports", "with_cpu", "with_streams"),
    [
        (["colorlight_5a_75b", "--preset", "generator"], 1, False, True),
        (["colorlight_i9", "--preset", "generator"], 2, True, True),
        (["colorlight_i9", "--preset", "tester"], 2, True, False),
        (["colorlight_i9", "--preset", "tester", "--ports", "1"], 1, True, True),
    ],
)
def test_streams_are_sent_by_default_where_there_is_room(arguments, ports, with_cpu, with_streams):
    target = board(arguments[0])
    config = config_of(parse(arguments), target)
    config.check(target)
    assert (config.ports, config.with_cpu, config.sends_streams) == (ports, with_cpu, with_streams)


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (["colorlight_i9", "--replay"], []),
        (["colorlight_i9", "--replay", "--no-discipline"], ["discipline of the clock"]),
        (["colorlight_i9", "--preset", "replay", "--ports", "1"], []),
        (["colorlight_i9", "--preset", "generator", "--replay"], ["configuration sets"]),
        (["colorlight_i9", "--preset", "tester", "--replay"], ["processor", "streams to send", "configuration sets"]),
        (
            ["colorlight_i9", "--preset", "tester", "--replay", "--cpu"],
            ["streams to send", "configuration sets", "flow hash"],
        ),
        (["colorlight_i9", "--preset", "replay"], ["processor", "configuration sets"]),
        (["colorlight_i9", "--preset", "replay", "--sets"], ["processor", "flow hash"]),
        (["colorlight_i9", "--preset", "tester"], ["streams to send"]),
        (["colorlight_5a_75b", "--replay", "--ports", "1", "--link", "own"], ["configuration sets"]),
        (["colorlight_5a_75b", "--preset", "generator"], ["processor"]),
    ],
)
def test_what_a_board_has_no_room_for_is_left_out_unless_asked_for_and_named(arguments, missing):
    target = board(arguments[0])
    config = config_of(parse(arguments), target)
    config.check(target)
    assert list(left_out(config)) == missing


def test_a_tester_with_all_of_replay_does_not_fit_an_i9_and_the_refusal_names_what_to_leave_out():
    target = board("colorlight_i9")
    config = config_of(parse(["colorlight_i9", "--preset", "tester", "--replay", "--sets"]), target)
    with pytest.raises(ValueError, match=r"or no configuration sets \(--no-sets\), or .*--preset generator$"):
        replace(config, with_cpu=True).check(target)


@pytest.mark.parametrize(
    ("arguments", "ports", "link", "with_sets"),
    [
        (["colorlight_5a_75b", "--preset", "replay", "--no-discipline"], 1, "own", False),
        (["colorlight_i9", "--preset", "replay", "--ports", "1"], 1, "own", True),
    ],
)
def test_sets_are_made_by_default_where_there_is_room(arguments, ports, link, with_sets):
    target = board(arguments[0])
    config = config_of(parse(arguments), target)
    config.check(target)
    assert (config.ports, config.link, config.makes_sets) == (ports, link, with_sets)


def test_a_replay_that_is_too_large_names_what_to_leave_out_first():
    target = board("colorlight_5a_75b")
    config = config_of(parse(["colorlight_5a_75b", "--preset", "replay"]), target)
    with pytest.raises(ValueError, match=r"build with no discipline of the clock \(--no-discipline\), or "):
        config.check(target)


@pytest.mark.parametrize(
    ("arguments", "with_hash"),
    [
        (["colorlight_5a_75b", "--preset", "replay", "--no-discipline"], False),
        (["colorlight_5a_75b", "--preset", "replay", "--no-discipline", "--hash"], True),
        (["colorlight_5a_75b", "--preset", "monitor"], True),
        (["colorlight_5a_75b", "--preset", "monitor", "--no-hash"], False),
        (["colorlight_i9", "--preset", "replay", "--ports", "1"], True),
    ],
)
def test_frames_are_hashed_by_default_where_that_is_routed(arguments, with_hash):
    target = board(arguments[0])
    config = config_of(parse(arguments), target)
    config.check(target)
    assert config.with_hash == with_hash


@pytest.mark.parametrize(
    ("arguments", "mac_address", "uart_baud"),
    [
        ([], 0x10E2D5000000, 115200),
        (["--mac-address", "10:e2:d5:00:00:0A", "--uart-baud", "9600"], 0x10E2D500000A, 9600),
        (["--mac-address", "2-0-0-0-0-1"], 0x020000000001, 115200),
    ],
)
def test_addresses_and_the_rate_of_the_serial_link_are_those_that_were_given(arguments, mac_address, uart_baud):
    target = board("colorlight_5a_75b")
    config = config_of(parse(["colorlight_5a_75b", *arguments]), target)
    config.check(target)
    assert (config.mac_address, config.uart_baud) == (mac_address, uart_baud)


@pytest.mark.parametrize("text", ["10:e2:d5:00:00", "10:e2:d5:00:00:0x", "10:e2:d5:00:00:001", "1::2:3:4:5", "110"])
def test_what_is_not_a_mac_address_is_refused_with_one_that_is(capsys, text):
    with pytest.raises(SystemExit) as end:
        parse(["colorlight_5a_75b", "--mac-address", text])
    assert end.value.code == 2 and f"'{text}' is not a MAC address: write it like 10:e2:d5:" in capsys.readouterr().err


# Which boards there are ---------------------------------------------------------------------------


def test_help_names_each_board_and_revision_in_a_line(capsys):
    assert set(LINES) == {*BOARDS, *OTHER_NAMES, *VERILOG_ONLY}
    assert cli.main(["build", "--help"]) == 0
    shown = capsys.readouterr().out.partition("boards:\n")[2]
    assert [line.split(maxsplit=1) for line in shown.splitlines()[: len(LINES)]] == [[*item] for item in LINES.items()]


@pytest.mark.parametrize("name", LINES)
def test_the_line_of_a_board_has_its_name_its_revision_and_its_fpga(name):
    """Of another name: its own revision, and the one whose bitstream it takes."""
    line, module, _, parameters = LINES[name], *{**BOARDS, **VERILOG_ONLY}[OTHER_NAMES.get(name, name)]
    model = line.split(" V", 1)[0] if "revision" in parameters else line.partition(",")[0]
    assert all(word.lower() in model.lower().replace("-", "") for word in module.replace("_5a_", "_5a").split("_"))
    if "revision" in parameters:
        of_name = name.partition("_v")[2].replace("_", ".") or parameters["revision"]
        assert f" V{of_name}" in line
    if name in OTHER_NAMES:
        assert line.endswith(f"the bitstream of V{parameters['revision']}")
    elif name not in VERILOG_ONLY:
        assert f", {'-'.join(board(name).platform.device.split('-')[:2])}: " in line
