# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Describes a direction in words of its bank that no gateware reads, so that any host knows what holds.

A bank is written whole before it is switched to: so its description holds from the same tick as its settings.
Stands alone: it is neither the document nor the settings.

Layout, from word ``TEXT_WORD`` of a bank: ``MARK`` and the octets of the text; changes that were made until then; CRC-32 of all
settings before, these two words and the text; the text: JSON, deflated (RFC 1951) with the dictionary ``KNOWN``.
"""

import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from liteprobe.cores.formats.emulate import BANK_WORDS
from liteprobe.host.base.errors import UsageError
from liteprobe.host.traffic.network.document import LiveDirection
from liteprobe.host.traffic.network.network import BandwidthTrace
from liteprobe.host.traffic.network.words import SETTINGS_WORDS

HEAD_WORDS = 3
TEXT_WORD = -(-SETTINGS_WORDS // 32) * 32
OCTETS_MOST = 4 * (BANK_WORDS - TEXT_WORD - HEAD_WORDS)
MARK = 0x4C50
#: What texts are likely to have, the likeliest last. It never changes: texts of other versions couldn't be read.
KNOWN = (
    b'"after":"mended":true"correlation":"paretonormal""uniform""table":["entries":[{"interval":"phase":"stopped":true'
    b'"kind":"random on-off""kind":"exponential""kind":"constant""pattern""burst":"pause":"loss_list":[1,2,"loss_pattern":"0001'
    b'"octets":15000"red":{"least":"most":"share":"5%","weight":9"expected":"service":"weighted""discard":true"loss_late":true'
    b'"corrupt":"0.1%","duplicate":"0.1%","reorder":{"share":"1%","extent":"1ms"},"bucket":{"rate":"1Mbit","burst":15000},'
    b'"background":{"kind":"length":1514"jitter":{"distribution":"normal","spread":"5ms"},"loss":{"p":"0.5%","r":"20%"},'
    b'"overhead":0,"queue":{"frames":100},"queue":100,"delay":"10ms","loss":"1%","udp port 5060""tcp port 443""ether proto 0x'
    b'"vlan 10""dst host 10.0.0.1"{"name":"voice","match":"ip[1] & 0xfc == 0xb8"{"name":"web","match":"tcp port 80"},"rate":'
    b'"100Mbit"{"name":"network","seed":1,"begun":0,"held":"","direction":{"rate":"10Mbit","delay":"10ms","classes":[{"name":"'
)


@dataclass(frozen=True)
class Described:
    """Holds what a bank says of its direction."""

    network: str  # The name of the network.
    seed: int
    held: str  # The class that held frames back since the start; "": none did.
    changes: int  # Made in this direction since the start.
    at_ticks: int  # Since the start, from which on it holds; 0: from the start, or since it was set.
    live: LiveDirection


def described(one: Described, bank: Sequence[int]) -> tuple[int, ...]:
    """Return a bank with its description; where that is too long it has the number of changes alone."""
    document = one.live.document
    if trace := one.live.direction.trace:
        document["trace"] = [trace.name, str(trace.rate_bps)]
    plain = {"name": one.network, "seed": one.seed, "begun": one.at_ticks, "held": one.held, "direction": document}
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, KNOWN)
    text = squeeze.compress(json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode()) + squeeze.flush()
    if len(text) > OCTETS_MOST:
        text = b""
    settings = [*bank, *[0] * (TEXT_WORD - len(bank))]
    words = struct.unpack(f"<{-(-len(text) // 4)}I", text + bytes(-len(text) % 4))
    head = (MARK << 16 | len(text), one.changes)
    return (*settings, *head, _sum([*settings, *head], text), *words)


def description_of(bank: Sequence[int]) -> Described | None:
    """Return what a bank says; None: nothing that this host understands."""
    changes, text = _text(bank)
    if changes is None or not text:
        return None
    try:
        plain = json.loads(zlib.decompressobj(-15, KNOWN).decompress(text).decode())
        document: dict[str, Any] = plain["direction"]
        trace = document.pop("trace", None)
        live = LiveDirection.read(document, _stand_in(*trace) if trace else None)
        return Described(plain["name"], plain["seed"], plain["held"], changes, plain["begun"], live)
    except (zlib.error, ValueError, KeyError, TypeError, UsageError):
        return None  # Of another version.


# # #


def _text(bank: Sequence[int]) -> tuple[int | None, bytes]:
    mark, length = divmod(bank[TEXT_WORD], 1 << 16)
    words = bank[TEXT_WORD + HEAD_WORDS :]
    text = struct.pack(f"<{len(words)}I", *words)[:length]
    if mark != MARK or _sum(bank[: TEXT_WORD + 2], text) != bank[TEXT_WORD + 2]:
        return None, b""
    return bank[TEXT_WORD + 1], text


def _sum(words: Sequence[int], text: bytes) -> int:
    return zlib.crc32(text, zlib.crc32(struct.pack(f"<{len(words)}I", *words)))


def _stand_in(name: str, rate_bps: str) -> BandwidthTrace:
    """Return a trace of a name and mean rate, for one that only the host that began it has."""
    return BandwidthTrace((8000,), (round(Fraction(rate_bps)),), name)
