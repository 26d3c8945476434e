# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes a network as a YAML document, or as plain data."""

from fractions import Fraction
from typing import Any

import yaml

from liteprobe.host.traffic.intervals import Number, exact
from liteprobe.host.traffic.network import (
    Background,
    Bernoulli,
    Direction,
    GilbertElliott,
    Jitter,
    LossList,
    LossPattern,
    Network,
    Queue,
    TrafficClass,
)
from liteprobe.host.traffic.network.network import DIRECTIONS, REST

TIME_UNITS = (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1))
RATE_UNITS = (("Gbit", 10**9), ("Mbit", 10**6), ("kbit", 10**3), ("bit", 1))
DIGITS = 12  # Behind the point.


def write_network(network: Network) -> str:
    """Return a network as a YAML document, which reads as the same network."""
    text: str = yaml.safe_dump(network_document(network), sort_keys=False, allow_unicode=True, width=120)
    return text


def network_document(network: Network) -> dict[str, Any]:
    """Return a network as the plain data of its document."""
    found: dict[str, Any] = {"name": network.name}
    if network.about:
        found["about"] = network.about
    found["seed"] = network.seed
    found |= {way: one for way in DIRECTIONS if (one := _direction(getattr(network, way)))}
    changes = []
    for state, change in enumerate(network.changes):
        before, after = network.at(state), network.at(state + 1)
        changed = {way: _changed(getattr(before, way), getattr(after, way)) for way in DIRECTIONS}
        changes.append({"at": time_text(change.at_ns)} | {way: one for way, one in changed.items() if one})
    return found | ({"changes": changes} if changes else {})


def time_text(time_ns: Number) -> str:
    """Return a time with the largest unit in which it is 1 or more."""
    return _with_unit(exact(time_ns), TIME_UNITS)


def rate_text(rate_bps: Number) -> str:
    """Return a rate with the largest unit in which it is 1 or more."""
    return _with_unit(exact(rate_bps), RATE_UNITS)


def share_text(share: Number) -> str:
    """Return a share as per cent."""
    return f"{decimal(100 * exact(share))}%"


def decimal(value: Fraction) -> str:
    """Return a number with up to 12 digits behind the point."""
    whole, rest = divmod(round(value * 10**DIGITS), 10**DIGITS)
    return f"{whole}.{rest:0{DIGITS}d}".rstrip("0").rstrip(".")


# # #

#: What is written in a change for what is no longer there.
CLEARED: dict[str, Any] = {
    "jitter": "none",
    "queue": {},
    "weight": 1,
    "bucket": "none",
    "overhead": 24,
    "loss": "0%",
    "loss_pattern": "none",
    "loss_late": False,
    "duplicate": "0%",
    "corrupt": "0%",
    "mended": False,
    "reorder": "none",
    "background": "none",
    "discard": False,
    "loss_list": "none",
    "delay": "least",
    "expected": "none",
    "service": "strict",
    "rate": "none",
}


def _with_unit(value: Fraction, units: tuple[tuple[str, int], ...]) -> str:
    unit, factor = next((one for one in units if value >= one[1]), units[-1])
    return decimal(value / factor) + unit


def _direction(direction: Direction) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if direction.rate_bps is not None:
        found["rate"] = rate_text(direction.rate_bps)
    if direction.trace:
        found["trace"] = direction.trace.name
    if direction.service != "strict":
        found["service"] = direction.service
    for one in direction.classes:
        if one.match is None and one.name == REST and one.seed is None:
            found |= _treatment(one)
            continue
        own: dict[str, Any] = {"name": one.name}
        own |= {"match": one.match} if one.match is not None else {}
        own |= _treatment(one) | ({} if one.seed is None else {"seed": one.seed})
        found.setdefault("classes", []).append(own)
    return found


def _changed(before: Direction, after: Direction) -> dict[str, Any]:
    """Return what a change says."""
    first, second = _direction(before), _direction(after)
    found = _difference(first, second)
    classes = {}
    for old, new in zip(first.get("classes", ()), second.get("classes", ()), strict=True):
        if changed := _difference(old, new):
            classes[new["name"]] = changed
    return found | ({"classes": classes} if classes else {})


def _difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    keys = [key for key in dict.fromkeys([*before, *after]) if key != "classes" and before.get(key) != after.get(key)]
    found = {key: after[key] for key in keys if key in after}
    gone = {key: CLEARED[key] for key in keys if key not in after}
    if "loss_list" in gone:
        gone["loss_pattern"] = gone.pop("loss_list")
    if "loss_list" in found or "loss_pattern" in found:
        gone.pop("loss_pattern", None)
    return found | gone


def _treatment(one: TrafficClass) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if one.delay_ns is not None:
        found["delay"] = time_text(one.delay_ns)
    if one.jitter:
        found["jitter"] = _jitter(one.jitter)
    if one.queue != Queue():
        found["queue"] = _queue(one.queue)
    if one.bucket:
        found["bucket"] = {"rate": rate_text(one.bucket.rate_bps), "burst": one.bucket.burst}
    if isinstance(one.loss, Bernoulli):
        found["loss"] = share_text(one.loss.share)
    if isinstance(one.loss, GilbertElliott):
        found["loss"] = {name: share_text(getattr(one.loss, name)) for name in ("p", "r", "h", "k")}
    if isinstance(one.pattern, LossPattern):
        found["loss_pattern"] = one.pattern.bits
    if isinstance(one.pattern, LossList):
        found["loss_list"] = list(one.pattern.numbers)
    if one.reorder:
        found["reorder"] = {"share": share_text(one.reorder.share), "extent": time_text(one.reorder.extent_ns)}
    if one.background:
        found["background"] = _background(one.background)
    shares = {"duplicate": one.duplicate, "corrupt": one.corrupt}
    found |= {name: share_text(share) for name, share in shares.items() if share}
    flags = {"loss_late": one.is_lost_late, "mended": one.is_mended, "discard": one.discard}
    found |= {name: True for name, is_set in flags.items() if is_set}
    usual = TrafficClass()
    found |= {name: getattr(one, name) for name in ("weight", "overhead") if getattr(one, name) != getattr(usual, name)}
    if one.expected_bps is not None:
        found["expected"] = rate_text(one.expected_bps)
    return found


def _jitter(jitter: Jitter) -> dict[str, Any]:
    found: dict[str, Any] = {"distribution": jitter.kind}
    if jitter.kind == "table":
        found["table"] = [time_text(one) for one in jitter.table_ns]
    else:
        found["spread"] = time_text(jitter.spread_ns)
    return found | ({"correlation": share_text(jitter.correlation)} if jitter.correlation else {})


def _queue(queue: Queue) -> Any:
    if queue.octets is None and queue.red is None:
        return queue.frames
    found: dict[str, Any] = {
        name: getattr(queue, name) for name in ("frames", "octets") if getattr(queue, name) is not None
    }
    if queue.red:
        red = queue.red
        found["red"] = {"least": red.least, "most": red.most, "share": share_text(red.share), "weight": red.weight}
    return found


def _background(one: Background) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": one.kind}
    if one.kind == "pattern":
        found["entries"] = [{"after": time_text(time), "length": length} for time, length in one.entries]
    else:
        found["length"] = one.length
    if one.rate_bps is not None:
        found["rate"] = rate_text(one.rate_bps)
    if one.share is not None:
        found["share"] = share_text(one.share)
    if one.interval_ns is not None:
        found["interval"] = time_text(one.interval_ns)
    if one.burst:
        found |= {"burst": _number(one.burst), "pause": time_text(one.pause_ns)}
    return found | ({"phase": time_text(one.phase_ns)} if one.phase_ns else {})


def _number(value: Number) -> int | float:
    number = exact(value)
    return int(number) if number.denominator == 1 else float(number)
