# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Two ports that monitor, from the GMII to their records, compiled: all that comes out is the model's, whatever comes in."""

import random
from dataclasses import replace
from functools import cache

import pytest

from liteprobe.cores.formats import DAMAGE, UnifiedFlag
from liteprobe.sim.drivers.frames import stacks
from liteprobe.sim.drivers.receive.monitor import NO_ERROR, Reader, Sent, check, parity_answer, run, verdict_of
from liteprobe.sim.models.receive.monitor import Answer, MonitorModel, Settings
from liteprobe.sim.models.traffic.trains import ProbeFrame
from liteprobe.sim.models.receive.unified import unified_header

MAC = bytes.fromhex("024c500000aa")
ALWAYS = Reader()
ALL = {"keep_headers": True, "keep_damaged": True, "keep_own": True}


def findings(sent, reader=ALWAYS, drop=False, with_hash=True, **settings):
    """Return what each port did; all of it must be as the model has it."""
    model_settings = Settings(**settings)
    table = settings.pop("table", {})
    pins = {name: int(value) for name, value in settings.items()} | {f"table{n}": value for n, value in table.items()}
    runs = run(sent, reader, pins | {"drop": int(drop)}, with_hash=with_hash)
    found = []
    for port, one in enumerate(runs):
        model = MonitorModel(port, parity_answer(drop), model_settings, MAC if port == 0 else None, with_hash)
        found.append(check(model, sent[port], one))
        assert found[-1].wrong == [], f"port {port}"
    return found


@cache
def mixed(count, seed, least=0):
    """Return broken and whole frames, of ``least`` octets or more, with errors of the MAC and gaps of any kind."""
    rng, sent = random.Random(seed), []
    for frame in stacks.fuzz(count, seed):
        octets = frame.ljust(least, b"\0")
        if rng.random() < 0.1:
            octets = MAC + octets[6:]
        kind = rng.randrange(20)
        gap = rng.choice([12, 12, 12, 13, 14, 15, 16, 100])
        sent.append(Sent(octets, gap, kind == 0, 0 if kind == 1 and octets else NO_ERROR))
    return sent


def test_every_stack_at_line_rate_has_its_record_with_header_and_octets():
    frames = [Sent(frame) for frame in stacks.stacks()]
    for found in findings([frames, frames[::-1]], **ALL):
        assert (found.frames, found.unclassified, found.lost, found.without_header, found.unplaced) == (906, 0, 0, 0, 0)


@pytest.mark.parametrize("drop", [False, True])
def test_shortest_frames_at_line_rate_on_both_ports(drop):
    """84 octets from start to start: 33.6 cycles."""
    ports = [[replace(one, frame=one.frame[:60], gap=12) for one in mixed(3000, 20 + port, 60)] for port in range(2)]
    for found in findings(ports, drop=drop, **ALL):
        assert (found.unclassified, found.lost, found.without_header, found.unplaced) == (0, 0, 0, 0)


def test_frames_that_end_anywhere():
    frames = [frame[:end] for frame in stacks.stacks()[::97] for end in range(len(frame))]
    sent = [Sent(frame, 100) for frame in frames]
    for found in findings([sent, sent[::-1]], **ALL):
        assert (found.frames, found.unclassified, found.lost) == (len(frames), 0, 0)


def test_runts_too_close_to_be_classified_are_counted_and_disturb_no_other():
    for found in findings([mixed(3000, 30), mixed(3000, 31)], **ALL):
        assert found.unclassified > 200
        assert (found.lost, found.unplaced) == (0, 0)


def test_shortest_carriers_are_stamped_and_counted():
    rng = random.Random(5)
    ports = [[Sent(rng.randbytes(rng.choice([0, 0, 1, 2, 3, 20])), rng.choice([1, 2, 12])) for _ in range(2000)] for _ in range(2)]
    for found in findings(ports, **ALL):
        assert found.unclassified > 500


@pytest.mark.parametrize("snap_length", [0, 1, 2, 3, 4, 57, 60, 61, 1500, 4096, 0xFFFF])
def test_trimmed_to_the_octet(snap_length):
    lengths = [60, 61, 62, 63, 64, 1514, 2000, 4095, 4096, 60, 60]
    sent = [Sent((frame * 80)[:length]) for length, frame in zip(lengths * 4, stacks.stacks()[::17])]
    for found in findings([sent, sent[::-1]], snap_length=snap_length, **ALL):
        assert found.without_header == 0
        assert found.lost == 0 or snap_length > 1500


def test_jumbo_frames_and_giants():
    lengths = [9000, 60, 9018, 9019, 60, 65535, 65536, 70000, 60]
    sent = [Sent((frame * 1200)[:length]) for length, frame in zip(lengths, stacks.stacks()[::17])]
    trimmed = findings([sent, sent], snap_length=1000, **ALL)
    whole = findings([sent, sent], **ALL)
    assert [found.lost for found in trimmed] == [0, 0]
    assert all(found.lost > 0 for found in whole)


@pytest.mark.parametrize(
    "reader", [Reader(stall=144), Reader(stall=200), Reader(stall=20, pause=3000), Reader(20, 60, 2000), Reader(skip=128)]
)
def test_what_finds_no_room_is_counted_and_all_else_is_whole(reader):
    for found in findings([mixed(2500, 40, 60), mixed(2500, 41, 60)], reader, **ALL):
        assert found.unclassified == 0
        assert found.lost + found.without_header > 0 or reader.stall < 20 or reader.skip


def test_descriptors_that_find_no_room_are_counted():
    for found in findings([mixed(6000, 50, 60), mixed(6000, 51, 60)], Reader(pause=9000), snap_length=0, **ALL):
        assert found.unplaced > 100
        assert found.lost == 0


@pytest.mark.parametrize("shift", [1, 2, 3, 4])
def test_one_frame_in_so_many_is_kept(shift):
    sent = [Sent(frame) for frame in stacks.stacks()] * 2
    for found in findings([sent, sent], sample_shift=shift, **ALL):
        assert found.kept == -(-704 >> shift)


def on_its_way(frame):
    """Return a frame as it is a hop later: other MACs, another TTL or hop limit, another traffic class."""
    header = unified_header(frame)
    octets = bytearray(b"\x02\x02\x03\x04\x05\x06\x02\x08\x09\x0a\x0b\x0c" + frame[12:])
    if header.ip and header.source and header.macs != bytes(12) and len(header.source) in (4, 16):
        at = frame.find(header.ip[0] + header.ip[1])
        if header.layer3 == 2:
            octets[at + 1], octets[at + 8] = 0x28, 7
        elif header.layer3 == 3:
            octets[at], octets[at + 7] = 0x6A, 7
            octets[at + 1] = octets[at + 1] & 0x0F | 0x50
    return bytes(octets)


def test_ports_with_one_seed_choose_the_same_packets_by_hash():
    frames = [frame for frame in stacks.stacks() if UnifiedFlag.TRANSPORT in unified_header(frame).flags]
    hop = [on_its_way(frame) for frame in frames]
    assert all(one != other for one, other in zip(frames, hop))
    settings = {"sample_shift": 2, "sample_by_hash": True, "sample_seed": 0xC0FFEE, "enable": True}
    model = MonitorModel(0, lambda _: Answer(True, True, 255, None), Settings(**settings))
    chosen = [model.frame(frame, 0).is_kept for frame in frames]
    assert chosen == [model.frame(frame, 0).is_kept for frame in hop]
    assert 0.15 < sum(chosen) / len(chosen) < 0.35
    findings([[Sent(frame) for frame in frames], [Sent(frame) for frame in hop]], **settings)


def test_channels_are_those_of_the_table():
    sent = [Sent(frame) for frame in stacks.stacks()]
    table = {number: (5 * number + 3) % 8 for number in range(0, 128, 3)}
    findings([sent, sent], table=table, **ALL)


@pytest.mark.parametrize("settings", [{}, {"sample_shift": 2, "sample_by_hash": True, "table": {0: 5}}])
def test_without_the_hash_all_else_is_the_same_at_line_rate(settings):
    """Records have hash 0, channel 0 unless a rule names one, and are sampled by count."""
    frames = [Sent(frame) for frame in stacks.stacks()]
    for found in findings([frames, frames[::-1]], with_hash=False, **settings, **ALL):
        assert (found.frames, found.unclassified, found.lost, found.without_header, found.unplaced) == (906, 0, 0, 0, 0)
        assert not settings or found.kept == -(-352 >> 2)


def test_damaged_frames_and_the_probes_own_are_left_out_unless_wanted():
    sent = mixed(2000, 60, 60)
    left_out = findings([sent, sent])[0].kept
    damaged = findings([sent, sent], keep_damaged=True)[0].kept
    own = findings([sent, sent], keep_own=True)[0].kept
    answer = parity_answer()
    headers = [(unified_header(one.frame), one) for one in sent]
    passed = [(header, one) for header, one in headers if answer(header).passed]
    is_damaged = [bool(verdict_of(one) & int(DAMAGE)) for _, one in passed]
    is_own = [one.frame[:6] == MAC for _, one in passed]
    pairs = list(zip(is_damaged, is_own))
    assert left_out == pairs.count((False, False))
    assert damaged == pairs.count((False, False)) + pairs.count((True, False))
    assert own == pairs.count((False, False)) + pairs.count((False, True))


def test_nothing_is_kept_unless_enabled():
    sent = [Sent(frame) for frame in stacks.stacks()]
    assert [found.kept for found in findings([sent, sent], enable=False, **ALL)] == [0, 0]


def test_frames_for_the_probe_reach_it_through_other_traffic_at_line_rate():
    rng, sent, wanted = random.Random(8), [], []
    arp = bytes.fromhex("ffffffffffff0a0000000001080600010800060400010a00000000010a000001") + bytes(6) + bytes.fromhex("0a000002")
    for frame in [*stacks.stacks(), *([stacks.stacks()[0] * 25] * 20)]:
        kind = rng.randrange(8)
        octets = MAC + frame[6:] if kind == 0 else arp.ljust(60, b"\0") if kind == 1 else frame
        damaged = rng.randrange(10) == 0
        sent.append(Sent(octets, bad_fcs=damaged))
        is_probe = UnifiedFlag.PROBE in unified_header(octets).flags
        if kind < 2 and not damaged and not is_probe:
            wanted.append(octets)
    sent.append(Sent(MAC + ProbeFrame(60).octets(5, 6)[6:]))  # A probe's frame is for nobody, whoever it names.
    first, second = run([sent, sent])
    assert len(wanted) > 100
    assert first.management == wanted
    assert (first.counters["management_frames"], first.counters["management_dropped"]) == (len(wanted), 0)
    assert second.management == []
