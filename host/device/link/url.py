# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads probe URLs: which probe, over which link."""

import os
import re
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from liteprobe.cores.formats import DEFAULT_PRESET, PRESETS
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.probe_url import full_url
from liteprobe.host.base.units import PREFIXES, TIMES, split
from liteprobe.host.base.validate import validated
from liteprobe.host.device.link.base import Link
from liteprobe.host.device.link.etherbone import DEFAULT_PORT, EtherboneLink, Patience
from liteprobe.host.device.link.pcie import DeviceFile, PcieLink
from liteprobe.host.device.link.sim import PROBES, SimLink, SimOptions
from liteprobe.host.device.link.sim_stations import ReflectorAsked, StationsAsked
from liteprobe.host.device.link.uart import DEFAULT_BAUD, UARTLink, open_line

EXAMPLES = {
    "sim": "sim://switch?latency=3us",
    "sim10g": "sim10g://switch?latency=3us",
    "etherbone": "etherbone://192.168.1.50",
    "uart": "uart:///dev/ttyUSB0",
    "pcie": "pcie:///dev/litepcie0",
}
WIRES = ("loopback", "cable", "switch", "device", "router")
PAIR = "pair"  # Two probes, joined by a cable or a switch.
PAIR_WIRES = ("cable", "switch")
EMULATOR = "emulator"  # A probe that emulates, and a station at each port.
EMULATOR_WIRE = "cable?loss=100%"  # Ports that nothing joins but the network.
STATIONS = ("web", "none")
#: The least and the most of each option, and whether it is for stations=web; else it is for captures.
STATION_NUMBERS = {
    "files": (1, 65_536, True),
    "octets": (0, 2**31, True),
    "keep": (0, 1, True),
    "seed": (1, 2**32, True),
    "repeats": (0, 10**9, False),
}
EMULATOR_OPTIONS = ("stations", *STATION_NUMBERS)
EMULATED = "emulated"  # A probe that sends streams, and an emulator between its ports.
EMULATED_OPTIONS = {"preset": "tester", "cpu": "0", "oscillators": "0,0", "peer": EMULATOR}
REFLECTOR = "reflector"  # A probe that sends streams, and a reflector of STAMP at each port.
REFLECTOR_OPTIONS = ("stateful", "format", "hold", "loss", "seed")
FORMATS = ("ntp", "ptp")
PAIR_OPTIONS = ("probe", "oscillators", "wire", "peer")
PAIR_OSCILLATORS = "20,-30"  # ppm.
PPM_MOST = 200
SIM_PORTS = 2
# At 1 kHz neither the oscillator's noise nor the receiver's moves the PPS over a tick, as both do at 1 Hz.
JITTER_NS = 8
SIM_PATHS = ("truth", "pcap", "build", "flash", "extend")
_SIM_OWN = "link cpu scope preset network pps jitter receivers play"
SIM_OPTIONS = (*_SIM_OWN.split(), *SIM_PATHS)  # The wire has all others.
SIM_LINKS = ("own", "shared")
#: Of a probe of 10 Gb/s: options of the host, and of each wire by what they are.
#: The second one measures streams, with histograms, and sends trains; the third one replays traces, too.
PRESETS_10G = (DEFAULT_PRESET, "generator", "replay")
SIM_10G_OPTIONS = ("truth", "build", "network", "ppm")
_EVERY_WIRE = dict.fromkeys(("loss", "corrupt", "cut_after", "seed"), "")
_SWITCH = "queue duplicate reorder cross cross2 cross_size cross_model cross_deliver"
_SWITCH_10G = dict.fromkeys(_SWITCH.split(), "") | dict.fromkeys(("latency", "latency2", "reorder_by"), "time")
WIRES_10G = {
    "loopback": _EVERY_WIRE | {"delay": "time"},
    "cable": _EVERY_WIRE | {"delay": "time"},
    "switch": _EVERY_WIRE | _SWITCH_10G | {"rate": "rate"},
}


@dataclass(frozen=True)
class ProbeURL:
    """A probe URL, taken apart."""

    scheme: str  # ``sim``, ``sim10g``, ``etherbone``, ``uart`` or ``pcie``.
    target: str  # What stands between ``://`` and ``?``: wire, host and port, or device.
    options: dict[str, str] = field(default_factory=dict)  # What stands behind ``?``, as it stands there.


def parse(url: str) -> ProbeURL:
    """Take a probe URL apart; raises UsageError when it can't be understood; the message has an example."""
    scheme, separator, rest = full_url(url).partition("://")
    if not separator or scheme not in EXAMPLES:
        raise UsageError(f"'{url}' is not a probe URL: write it like {', '.join(EXAMPLES.values())}")
    target, _, query = rest.partition("?")
    options: dict[str, str] = {}
    for item in query.split("&") if query else []:
        name, equals, value = item.partition("=")
        if not (name and equals and value):
            raise _bad(url, f"option '{item}' has no name or no value")
        if name in options:
            raise _bad(url, f"option '{name}' is given twice")
        options[name] = value
    if not target.strip("/"):
        raise _bad(url, "it names no probe")
    return ProbeURL(scheme, target, options)


@validated
def sim_url(wire: str, **options: str | Path) -> str:
    """Return the URL of a simulated probe with this wire and these options; paths may hold any character.

    In a URL ``&`` parts options, so it stands as ``%26`` in a path, and ``%`` as ``%25``.

    Source: RFC 3986, section 2.1.
    """
    texts = {name: quote(os.fsencode(value)) if name in SIM_PATHS else value for name, value in options.items()}
    joined = "&".join(f"{name}={text}" for name, text in texts.items())
    return f"sim://{wire}{'&' if '?' in wire else '?'}{joined}" if joined else f"sim://{wire}"


@validated
def open_link(url: str) -> Link:
    """Open the link to the probe at ``url``.

    Raises UsageError when the URL can't be understood, NoProbeError when its host or device can't be reached.
    """
    parsed = parse(url)
    if parsed.scheme == "sim":
        return SimLink(sim_options(url))
    if parsed.scheme == "sim10g":
        return SimLink(sim10g_options(url))
    if parsed.scheme == "uart":
        _only(url, parsed, ("baud",))
        baud = _number(url, "baud", parsed.options.get("baud", str(DEFAULT_BAUD)))
        return UARTLink(open_line(parsed.target, baud), parsed.target)
    if parsed.scheme == "pcie":
        _only(url, parsed, ())
        return PcieLink(DeviceFile(parsed.target), parsed.target)
    _only(url, parsed, ("timeout",))
    host, port = _host_and_port(url, parsed)
    timeout_s = parsed.options.get("timeout")
    return EtherboneLink(host, port, None if timeout_s is None else Patience(_seconds(url, timeout_s)))


def sim_options(url: str) -> SimOptions:
    """Return what a ``sim://`` URL asks for: the host's options, and the wire's in one specification."""
    parsed = parse(url)
    wire = parsed.target.strip("/")
    if wire not in (known := (*WIRES, PAIR, EMULATOR, EMULATED, REFLECTOR)):
        raise _bad(url, f"there is no wire '{wire}', only {', '.join(known)}")
    more = {PAIR: PAIR_OPTIONS, EMULATOR: EMULATOR_OPTIONS, REFLECTOR: REFLECTOR_OPTIONS}
    names = (*SIM_OPTIONS, *more.get(wire, ()))
    own = {name: value for name, value in parsed.options.items() if name in names}
    of_wire = [f"{name}={value}" for name, value in parsed.options.items() if name not in names]
    is_pair = wire == PAIR
    if wire == EMULATED:
        return _emulated(url)
    if wire == EMULATOR:
        if of_wire:
            raise _bad(url, f"an emulator has no option '{of_wire[0]}'")
        return _emulator(url, own)
    if wire == REFLECTOR:
        if of_wire:
            raise _bad(url, f"a reflector has no option '{of_wire[0]}'")
        return _reflector(url, own)
    wire = _one_of(url, own, "wire", PAIR_WIRES, "cable", "a pair is joined by") if is_pair else wire
    link = _one_of(url, own, "link", SIM_LINKS, "own")
    preset = _one_of(url, own, "preset", tuple(PRESETS), DEFAULT_PRESET)
    with_cpu = _one_of(url, own, "cpu", ("0", "1"), "1") == "1"
    # Not in the wire's options: a part of the frames may be a percentage.
    paths: dict[str, Any] = {name: _path(own[name]) for name in SIM_PATHS if name in own}
    return SimOptions(
        wire + ("?" + "&".join(of_wire) if of_wire else ""),
        link,
        with_cpu,
        **paths,
        pps_ns=_time_ns(url, "pps", own["pps"]) if "pps" in own else None,
        jitter_ns=_time_ns(url, "jitter", own["jitter"], 0) if "jitter" in own else JITTER_NS * is_pair,
        receivers=_files(url, own["receivers"], 1 + is_pair, ("receivers", "probes")) if "receivers" in own else (),
        play=_files(url, own["play"], SIM_PORTS, ("captures", "ports")) if "play" in own else (),
        preset=preset,
        scope=_one_of(url, own, "scope", ("0", "1"), "0") == "1",
        network=own.get("network", ""),
        oscillators=_oscillators(url, own.get("oscillators", PAIR_OSCILLATORS)) if is_pair else (),
        probe=_one_of(url, own, "probe", PROBES, "a") if is_pair else own.get("probe", "a"),
        peer=_one_of(url, own, "peer", tuple(PRESETS), preset) if "peer" in own else "",
    )


def sim10g_options(url: str) -> SimOptions:
    """Return what a ``sim10g://`` URL asks for; times and rates of its wire are then those of the harness (`SimOptions.is_10g`)."""
    parsed = parse(url)
    name = parsed.target.strip("/")
    if name not in WIRES_10G:
        raise _bad(url, f"at 10 Gb/s there is no wire '{name}', only {', '.join(WIRES_10G)}")
    own = {option: text for option, text in parsed.options.items() if option in SIM_10G_OPTIONS}
    preset = _one_of(url, parsed.options, "preset", PRESETS_10G, DEFAULT_PRESET, "the preset of a probe of 10 Gb/s is")
    of_wire = []
    for option, text in parsed.options.items():
        if option in own or option == "preset":
            continue
        if option not in WIRES_10G[name]:
            raise _bad(url, f"at 10 Gb/s a {name} has no option '{option}'")
        of_wire.append(f"{option}={_in_harness(url, option, text, WIRES_10G[name][option])}")
    try:
        ppm = float(own.get("ppm", 0))
    except ValueError:
        ppm = PPM_MOST + 1
    if not abs(ppm) <= PPM_MOST:
        raise _bad(url, f"ppm '{own['ppm']}' is not a number within {PPM_MOST}")
    paths: dict[str, Any] = {option: _path(own[option]) for option in ("truth", "build") if option in own}
    wire = name + ("?" + "&".join(of_wire) if of_wire else "")
    return SimOptions(
        wire, with_cpu=False, preset=preset, is_10g=True, ppm=ppm, network=own.get("network", ""), **paths
    )


def _in_harness(url: str, name: str, text: str, kind: str) -> str:
    """Return a time, or a rate, as the harness takes it, whose line has 1 Gb/s; what is neither, as it is."""
    scale = SimOptions(is_10g=True).time_scale
    if kind == "time":
        if not (found := split(text, TIMES)):
            raise _bad(url, f"{name} '{text}' is not a time, like 3us")
        return f"{float(scale * Fraction(found[0]) * Fraction(found[1])):.3f}ns"
    if kind == "rate":
        found = split(text, {"": 1, **PREFIXES})
        rate = Fraction(found[0]) * Fraction(found[1]) if found else Fraction(0)
        if not 10**7 <= rate <= 10**10:
            raise _bad(url, f"{name} '{text}' is not a rate from 10M to 10G")
        return f"{int(rate / scale)}"
    return text


def _emulated(url: str) -> SimOptions:
    """Return what ``sim://emulated`` asks for: a pair whose other probe emulates the network of a document."""
    options = dict(parse(url).options)
    if "by" not in options:
        raise _bad(url, "it has no document of a network: add by=network.yaml")
    document = _path(options.pop("by"))
    query = "&".join(f"{name}={value}" for name, value in (EMULATED_OPTIONS | options).items())
    return replace(sim_options(f"sim://{PAIR}?{query}"), emulates=document)


def _emulator(url: str, own: dict[str, str]) -> SimOptions:
    """Return what ``sim://emulator`` asks for: a cable's options, and stations."""
    of_stations = {name: own.pop(name) for name in (*EMULATOR_OPTIONS, "play") if name in own}
    query = "&".join(f"{name}={value}" for name, value in ({"preset": "emulator", "cpu": "0"} | own).items())
    options = sim_options(f"sim://{EMULATOR_WIRE}&{query}")
    usual = "none" if "play" in of_stations else "web"
    is_web = _one_of(url, of_stations, "stations", STATIONS, usual) == "web"
    if is_web and "play" in of_stations:
        raise _bad(url, "a station plays captures or has a TCP/IP stack: leave out play or stations=web")
    found = {}
    for name, (least, most, of_web) in STATION_NUMBERS.items():
        if name not in of_stations:
            continue
        if of_web != is_web:
            raise _bad(url, f"{name} is for {'stations=web' if of_web else 'captures'}")
        text = of_stations[name]
        if not (text.isascii() and text.isdecimal() and least <= int(text) <= most):
            raise _bad(url, f"{name} '{text}' is not a number from {least} to {most}")
        found[name] = int(text)
    is_kept = bool(found.pop("keep", 1))
    play = _files(url, of_stations["play"], SIM_PORTS, ("captures", "ports")) if "play" in of_stations else ()
    return replace(options, stations=StationsAsked(is_web=is_web, is_kept=is_kept, play=play, **found))


def _reflector(url: str, own: dict[str, str]) -> SimOptions:
    """Return what ``sim://reflector`` asks for: a cable that joins nothing, and a reflector at each port."""
    given = {name: own.pop(name) for name in REFLECTOR_OPTIONS if name in own}
    query = "&".join(f"{name}={value}" for name, value in ({"preset": "tester", "cpu": "0"} | own).items())
    options = sim_options(f"sim://{EMULATOR_WIRE}&{query}")
    seed, loss = given.get("seed", "1"), given.get("loss", "0%")
    if not re.fullmatch(r"[0-9]{1,9}", seed):
        raise _bad(url, f"seed '{seed}' is not a whole number")
    if not re.fullmatch(r"[0-9]{1,2}(\.[0-9]{1,6})?%", loss):
        raise _bad(url, f"loss '{loss}' is not a percentage below 100%, like 2%")
    asked = ReflectorAsked(
        is_stateful=_one_of(url, given, "stateful", ("0", "1"), "0") == "1",
        is_ptp=_one_of(url, given, "format", FORMATS, "ntp") == "ptp",
        hold_ns=_time_ns(url, "hold", given.get("hold", "1us")),
        loss=float(loss[:-1]) / 100,
        seed=int(seed),
    )
    return replace(options, reflector=asked)


def emulated_by(url: str) -> Path | None:
    """Return the document of the network that the other probe of a ``sim://emulated`` emulates; None of any other URL.

    The other probe itself has none.
    """
    if EMULATED not in url:  # What is no URL at all is refused where it is opened.
        return None
    parsed = parse(url)
    if parsed.scheme != "sim" or parsed.target.strip("/") != EMULATED:
        return None
    options = sim_options(url)
    return options.emulates if PROBES.index(options.probe) == 0 else None


def other_of_pair(url: str) -> str | None:
    """Return the URL of the other probe of the same pair; None when ``url`` names no pair."""
    if parse(url).scheme != "sim" or not sim_options(url).oscillators:
        return None
    other = PROBES[1 - PROBES.index(sim_options(url).probe)]
    head, _, query = url.partition("?")
    options = [item for item in query.split("&") if item and not item.startswith("probe=")]
    return f"{head}?{'&'.join([*options, f'probe={other}'])}"


def _oscillators(url: str, text: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if len(found) != len(PROBES) or not all(abs(ppm) <= PPM_MOST for ppm in found):
        raise _bad(url, f"oscillators '{text}' are not two numbers within {PPM_MOST} ppm, like {PAIR_OSCILLATORS}")
    return found


def _files(url: str, text: str, most: int, what: tuple[str, str]) -> tuple[Path, ...]:
    found = tuple(map(_path, text.split(",")))
    if len(found) > most:
        raise _bad(url, f"there are {len(found)} {what[0]} for {most} {what[1]}")
    return found


def _time_ns(url: str, name: str, text: str, least: int = 1) -> int:
    found = split(text, TIMES, "[0-9]{1,99}")
    if not found or int(found[0]) < least:
        raise _bad(url, f"{name} '{text}' is not a time in whole units, like 1ms")
    return int(found[0]) * int(found[1])


def _path(text: str) -> Path:
    return Path(os.fsdecode(unquote_to_bytes(os.fsencode(text))))


def _one_of(url: str, own: dict[str, str], name: str, words: tuple[str, ...], usual: str, what: str = "") -> str:
    """Return an option that is one of some words; ``what``: its message, up to them."""
    if (word := own.get(name, usual)) not in words:
        raise _bad(url, f"{what or f'{name} is'} {(', ' if len(words) > 2 else ' or ').join(words)}")
    return word


def _bad(url: str, why: str) -> UsageError:
    return UsageError(f"'{url}' can't be understood ({why}): write it like {EXAMPLES[url.partition('://')[0]]}")


def _only(url: str, parsed: ProbeURL, names: tuple[str, ...]) -> None:
    for name in parsed.options:
        if name not in names:
            raise _bad(url, f"there is no option '{name}', only {', '.join(names) or 'none'}")


def _number(url: str, name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise _bad(url, f"{name} '{text}' is not a number")
    return int(text)


def _seconds(url: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 3600:
        raise _bad(url, f"timeout '{text}' is not a number of seconds")
    return seconds


def _host_and_port(url: str, parsed: ProbeURL) -> tuple[str, int]:
    if parsed.target.count(":") > 1:
        raise _bad(url, "that is an IPv6 address, and probes speak IPv4 alone")
    host, colon, text = parsed.target.rstrip("/").partition(":")
    port = _number(url, "port", text) if colon else DEFAULT_PORT
    if not host or "/" in host or port > 0xFFFF:
        raise _bad(url, "it needs HOST or HOST:PORT")
    return host, port
