# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Probe URLs: what they ask for, and what is said of those that can't be understood."""

from dataclasses import replace
from pathlib import Path

import pytest

from liteprobe.host.base.errors import NoProbeError, UsageError
from liteprobe.host.device.link.etherbone import EtherboneLink
from liteprobe.host.device.link.sim import SimOptions
from liteprobe.host.device.link.sim_stations import StationsAsked
from liteprobe.host.device.link.url import (
    ProbeURL,
    open_link,
    other_of_pair,
    parse,
    sim10g_options,
    sim_options,
    sim_url,
)


@pytest.mark.parametrize(
    ("url", "parsed"),
    [
        ("sim://loopback", ProbeURL("sim", "loopback")),
        ("sim://cable?delay=1us", ProbeURL("sim", "cable", {"delay": "1us"})),
        ("etherbone://10.0.0.50", ProbeURL("etherbone", "10.0.0.50")),
        ("etherbone://probe.lan:1235?timeout=2", ProbeURL("etherbone", "probe.lan:1235", {"timeout": "2"})),
        ("uart:///dev/ttyUSB0?baud=1000000", ProbeURL("uart", "/dev/ttyUSB0", {"baud": "1000000"})),
    ],
)
def test_url_is_taken_apart(url: str, parsed: ProbeURL) -> None:
    assert parse(url) == parsed


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("sim://loopback", SimOptions("loopback")),
        ("sim://cable?delay=1us&link=shared", SimOptions("cable?delay=1us", link="shared")),
        (
            "sim://switch?latency=3us&cpu=0&rate=1G&truth=a.bin&queue=64&pcap=b&loss=0&build=c",
            SimOptions("switch?latency=3us&rate=1G&queue=64&loss=0", "own", False, Path("a.bin"), Path("b"), Path("c")),
        ),
    ],
)
def test_options_of_the_host_are_kept_from_the_wire(url: str, options: SimOptions) -> None:
    assert sim_options(url) == options


@pytest.mark.parametrize(
    ("url", "stations"),
    [
        ("sim://emulator", StationsAsked()),
        ("sim://emulator?files=7&octets=700&keep=0&seed=9", StationsAsked(True, 7, 700, False, 9)),
        ("sim://emulator?stations=web", StationsAsked()),
        ("sim://emulator?stations=none", StationsAsked(is_web=False)),
        (
            "sim://emulator?play=a.pcap,b.pcap&repeats=0",
            StationsAsked(False, play=(Path("a.pcap"), Path("b.pcap")), repeats=0),
        ),
    ],
)
def test_an_emulator_has_stations_and_ports_that_nothing_else_joins(url: str, stations: StationsAsked) -> None:
    assert sim_options(url) == SimOptions("cable?loss=100%", with_cpu=False, preset="emulator", stations=stations)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("sim10g://loopback", SimOptions("loopback", with_cpu=False, is_10g=True)),
        (
            "sim10g://switch?latency=3us&rate=2.5G&queue=9&preset=train&ppm=-20&truth=a&build=b",
            SimOptions(
                "switch?latency=30000.000ns&rate=250000000&queue=9",
                with_cpu=False,
                is_10g=True,
                ppm=-20.0,
                truth=Path("a"),
                build=Path("b"),
            ),
        ),
    ],
)
def test_a_probe_of_10_gigabit_has_times_and_rates_of_the_harness(url: str, options: SimOptions) -> None:
    assert sim10g_options(url) == options


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sim10g://device", "at 10 Gb/s there is no wire 'device', only loopback, cable, switch"),
        ("sim10g://loopback?preset=tester", "the preset of a probe of 10 Gb/s is train, generator, replay"),
        ("sim10g://cable?latency=3us", "at 10 Gb/s a cable has no option 'latency'"),
        ("sim10g://cable?delay=3", "delay '3' is not a time, like 3us"),
        ("sim10g://switch?rate=20G", "rate '20G' is not a rate from 10M to 10G"),
        ("sim10g://switch?rate=1M", "rate '1M' is not a rate from 10M to 10G"),
        ("sim10g://loopback?ppm=300", "ppm '300' is not a number within 200"),
        ("sim10g://loopback?ppm=nan", "ppm 'nan' is not a number within 200"),
        ("sim10g://loopback?pps=1ms", "at 10 Gb/s a loopback has no option 'pps'"),
    ],
)
def test_what_a_probe_of_10_gigabit_cannot_be_is_refused(url: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_link(url)
    assert words in str(caught.value)
    assert "sim10g://switch?latency=3us" in str(caught.value)


def test_the_files_of_a_site_are_unlike_and_have_the_octets_that_were_asked_for() -> None:
    assert StationsAsked(files=4, octets=80).lengths == (10, 20, 40, 10)
    assert sum(StationsAsked(files=499, octets=1_600_001).lengths) == 1_600_001


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sim://emulator?stations=ftp", "stations is web or none"),
        ("sim://emulator?delay=1ms", "an emulator has no option 'delay=1ms'"),
        ("sim://emulator?files=0", "files '0' is not a number from 1 to 65536"),
        ("sim://emulator?seed=0", "seed '0' is not a number from 1"),
        ("sim://emulator?stations=web&play=a.pcap", "leave out play or stations=web"),
        ("sim://emulator?play=a.pcap&files=3", "files is for stations=web"),
        ("sim://emulator?repeats=3", "repeats is for captures"),
        ("sim://emulator?play=a,b,c", "3 captures for 2 ports"),
    ],
)
def test_what_an_emulator_cannot_be_is_refused(url: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        sim_options(url)
    assert words in str(caught.value)


@pytest.mark.parametrize("path", ["a & b/c=d", "100%", "a%26b", "x?y#z", "Größe/\udcff", "sim://a"])
def test_a_path_of_any_characters_comes_through_a_url(path: str) -> None:
    options = SimOptions("switch?loss=1%&seed=2", "shared", True, Path(path), Path(path + "&"), Path("&" + path))
    url = sim_url(options.wire, link="shared", truth=Path(path), pcap=path + "&", build=Path("&" + path))
    assert sim_options(url) == options
    assert sim_options(sim_url("loopback", truth=path)) == SimOptions("loopback", truth=Path(path))


def test_a_url_of_plain_names_reads_as_it_is_typed() -> None:
    assert sim_url("loopback") == "sim://loopback"
    assert (
        sim_url("cable?delay=1us", cpu="0", truth=Path("/a/b.truth")) == "sim://cable?delay=1us&cpu=0&truth=/a/b.truth"
    )


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [("etherbone://127.0.0.1", "127.0.0.1", 1234), ("etherbone://localhost:99/", "localhost", 99)],
)
def test_etherbone_opens_host_and_port(url: str, host: str, port: int) -> None:
    link = open_link(url)
    assert isinstance(link, EtherboneLink)
    assert (link.host, link.port) == (host, port)
    link.close()


@pytest.mark.parametrize(
    ("url", "why", "example"),
    [
        ("", "is not a probe URL", "sim://switch"),
        ("loopback", "is not a probe URL", "etherbone://192.168.1.50"),
        ("http://10.0.0.50", "is not a probe URL", "uart:///dev/ttyUSB0"),
        ("sim://", "it names no probe", "sim://switch"),
        ("sim:///", "it names no probe", "sim://switch"),
        ("sim://hub", "there is no wire 'hub', only loopback, cable, switch", "sim://switch"),
        ("sim://cable?delay", "option 'delay' has no name or no value", "sim://switch"),
        ("sim://cable?delay=", "option 'delay=' has no name or no value", "sim://switch"),
        ("sim://cable?delay=1us&delay=2us", "option 'delay' is given twice", "sim://switch"),
        ("sim://cable?link=uart", "link is own or shared", "sim://switch"),
        ("sim://cable?cpu=yes", "cpu is 0 or 1", "sim://switch"),
        ("etherbone://10.0.0.50:", "port '' is not a number", "etherbone://192"),
        ("etherbone://10.0.0.50:x", "port 'x' is not a number", "etherbone://192"),
        ("etherbone://10.0.0.50:0", "port '0' is not a number", "etherbone://192"),
        ("etherbone://10.0.0.50:65536", "it needs HOST or HOST:PORT", "etherbone://192"),
        ("etherbone://:1234", "it needs HOST or HOST:PORT", "etherbone://192"),
        ("etherbone://10.0.0.50?baud=9600", "there is no option 'baud', only timeout", "etherbone://192"),
        ("etherbone://10.0.0.50?timeout=soon", "timeout 'soon' is not a number of seconds", "etherbone://192"),
        ("uart:///dev/ttyUSB0?baud=fast", "baud 'fast' is not a number", "uart:///dev"),
        ("uart:///dev/ttyUSB0?speed=9600", "there is no option 'speed', only baud", "uart:///dev"),
    ],
)
def test_malformed_url_is_a_usage_error_with_an_example(url: str, why: str, example: str) -> None:
    with pytest.raises(UsageError) as error:
        open_link(url)
    assert why in str(error.value)
    assert f"write it like {example}" in str(error.value) or example in str(error.value)
    assert error.value.exit_code == 2


def test_a_serial_device_that_is_not_there_is_no_probe() -> None:
    with pytest.raises(NoProbeError, match="can't open /dev/no-such-tty at 115200 baud") as error:
        open_link("uart:///dev/no-such-tty")
    assert error.value.exit_code == 3


# A pair -------------------------------------------------------------------------------------------


def test_a_pair_is_two_probes_of_one_simulation() -> None:
    url = "sim://pair?oscillators=1.5,-2&wire=switch&latency=3us&pps=2ms&jitter=0ns&receivers=a%2520b,c&probe=b&cpu=0"
    wanted = SimOptions(
        "switch?latency=3us",
        "own",
        False,
        pps_ns=2_000_000,
        receivers=(Path("a%20b"), Path("c")),
        oscillators=(1.5, -2.0),
        probe="b",
    )
    assert sim_options(url) == wanted
    assert sim_options("sim://pair?delay=1us") == SimOptions("cable?delay=1us", oscillators=(20.0, -30.0), jitter_ns=8)
    assert sim_options("sim://loopback?pps=1ms") == SimOptions("loopback", pps_ns=1_000_000)


def test_the_other_of_a_pair_differs_in_nothing_else() -> None:
    for url in ("sim://pair", "sim://pair?delay=1us&pps=1ms", "sim://pair?probe=a&truth=x%26y"):
        other = other_of_pair(url)
        assert other is not None and sim_options(other) == replace(sim_options(url), probe="b")
        again = other_of_pair(other)
        assert again is not None and sim_options(again) == sim_options(url)
    assert other_of_pair("sim://cable") is None and other_of_pair("etherbone://10.0.0.1") is None


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sim://pair?probe=c", "probe is a or b"),
        ("sim://pair?wire=loopback", "cable or switch"),
        ("sim://pair?oscillators=20", "two numbers within 200 ppm"),
        ("sim://pair?oscillators=20,201", "two numbers within 200 ppm"),
        ("sim://pair?oscillators=20,nan", "two numbers within 200 ppm"),
        ("sim://pair?receivers=a,b,c", "3 receivers for 2 probes"),
        ("sim://cable?receivers=a,b", "2 receivers for 1 probes"),
        ("sim://cable?pps=0ms", "pps '0ms' is not a time"),
        ("sim://cable?pps=1.5ms", "pps '1.5ms' is not a time"),
        ("sim://cable?jitter=8", "jitter '8' is not a time"),
    ],
)
def test_a_pair_or_a_receiver_that_can_not_be_is_told(url: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        sim_options(url)
