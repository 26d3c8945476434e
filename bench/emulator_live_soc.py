# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``live_soc`` of the bench ``emulator``: what a host sets at random while frames cross the whole simulated probe."""

import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from liteprobe.cores.formats import TICK_NS
from liteprobe.cores.formats.emulate import BANK_WORDS, DELAY_ENTRIES, ClassCounter
from liteprobe.host.base.errors import UsageError
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.device.registers import Registers
from liteprobe.host.probe import Probe
from liteprobe.host.run.emulate import EmulatorDirection
from liteprobe.host.traffic.network.described import description_of
from liteprobe.host.traffic.network.document import read_network
from liteprobe.host.traffic.network.words import LiveWords
from liteprobe.sim.drivers.system.emulator import FIRST_PROTOCOL, NOWHERE, Emulated, packets
from liteprobe.sim.drivers.tools.figures import Figure, row
from liteprobe.sim.models.emulator.settings import Settings
from liteprobe.sim.system.build import build_probe
from liteprobe.sim.unit.emulator.test_emulator_live import FIRST, NAMES, setting

BEFORE = 10  # Settings without traffic: how long one takes is known from them.
SPARE = 1.1
LOAD = 0.6
DRAIN_S = 0.03  # The longest queues at the least rates: 60 frames of 1514 octets at 50 Mb/s take half of it.
#: Classes by what they match in `FIRST`: here protocols that the reference knows frames by.
MATCHES = {"udp": 0, "tcp": 1, "icmp": 2}


class Written(EmulatorDirection):
    """Keeps what a host writes for its changes."""

    def __init__(self, registers: Registers, number: int) -> None:
        super().__init__(registers, number)
        self.kept: list[LiveWords] = []

    def write_live(self, bank: int, words: LiveWords, whole: Sequence[int]) -> None:
        """Keep it, and write it."""
        self.kept.append(words)
        super().write_live(bank, words, whole)


def tables_of(words: LiveWords) -> dict[int, int]:
    """Return the words behind the banks that a change writes, by their places."""
    found = dict(enumerate(words.delays))
    for first, patterns in words.patterns.items():
        found |= {DELAY_ENTRIES + first + place: word for place, word in enumerate(patterns)}
    return found


@row("emulator", "live_soc")
def test_live_soc(is_full: bool) -> Iterator[Figure]:
    """Settings at random by the host in mid-traffic, through registers and gateware: each frame at the pins against the reference.

    As ``live``, of which those that are refused are left out and counted.
    """
    count, chance, text = 1000 if is_full else 60, random.Random(1), FIRST
    for match, number in MATCHES.items():
        text = text.replace(f"match: {match}", f"match: ip proto {FIRST_PROTOCOL + number}")
    folder = build_probe("own", with_cpu=False, preset="emulator")
    with tempfile.TemporaryDirectory() as name:
        files = Path(name)
        url = sim_url(NOWHERE, build=folder, link="own", pcap=files / "pins", truth=files / "truth")
        with Probe(url) as probe:
            emulation = probe.emulate(read_network(text))
            one = emulation._directions[0]
            assert one.words
            padding = [0] * (BANK_WORDS - len(one.words.banks[0]))
            first = Settings([*one.words.banks[0], *padding], one.words.delays, one.words.patterns)
            one.port = port = Written(probe.registers, 0)
            emulated = Emulated(probe, files, [0, 0, 0, 0])
            switches: list[tuple[int, list[int], dict[int, int]]] = []
            refused = 0

            def set_some(how_many: int) -> None:
                nonlocal refused
                until = len(switches) + how_many
                while len(switches) < until:
                    probe.wait(chance.choice([20e-6, 70e-6, 200e-6]))
                    port.kept.clear()
                    try:
                        at_s = emulation.set_words(*[setting(chance) for _ in range(chance.choice([1, 1, 1, 2, 4]))])
                    except UsageError:
                        refused += 1
                        continue
                    (words,) = port.kept
                    switches.append((round(at_s * 1e9 / TICK_NS), [*words.bank, *padding], tables_of(words)))

            began = emulated.link.now_ns()
            set_some(BEFORE)
            each_ns = (emulated.link.now_ns() - began) / BEFORE
            lengths = (60, 1514)
            frames = round(count * each_ns * SPARE * LOAD / (TICK_NS * (sum(lengths) / 2 + 24)))
            made = packets(frames, 1, LOAD, lengths, [*NAMES])
            begun, start = len(switches), emulated.link.now_ns()
            emulated.play_on({0: made})
            set_some(count)
            in_traffic = sum(
                at * TICK_NS < made[-1].time_ns - made[0].time_ns + start - began for at, *_ in switches[begun:]
            )
            left_s = (start + made[-1].time_ns - made[0].time_ns - emulated.link.now_ns()) / 1e9
            probe.wait(max(left_s, 0.0) + DRAIN_S)
            found = emulated.compare(0, first, switches, drained=round(DRAIN_S * 1e9 / TICK_NS))
            is_seen = bool(emulated.compare(0, first))  # Else the changes would have done nothing.
            held = one.port.look()[0]
            seen = description_of(one.port.read_bank(held))
            late = emulated.total(0, ClassCounter.LATE)
            arrived = emulated.total(0, ClassCounter.ARRIVED)
            live = one.live.document
            emulation.stop()
    for line in found[:20]:
        print(line)
    yield Figure("live_soc_set", in_traffic, "changes", count, is_least=True)
    yield Figure("live_soc_frames", arrived, "frames", frames, is_least=True)
    yield Figure("live_soc_off", len(found), "findings", 0)
    yield Figure("live_soc_unseen", int(not is_seen), "runs", 0)
    yield Figure("live_soc_late", late, "frames", 0)
    yield Figure("live_soc_seen_off", int(seen is None or seen.live.document != live), "networks", 0)
    yield Figure("live_soc_refused", refused, "changes", 0, is_least=True)
