# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The frame parser at 32 and 64 bits, at every word tail, against the model and scapy's frames."""

import random

import pytest
from migen import passive, run_simulation

from liteprobe.cores.formats import DAMAGE, RecordFlag
from liteprobe.cores.receive.parse import FrameParser
from liteprobe.sim.bench.frames.probe_frames import headers_length, other_frame, probe_frame
from liteprobe.sim.models.receive import probe_header

PROBE_FIELDS = ("probe_length", "probe_flags", "stream_id", "sequence", "tx_stamp")


def words_of(frame, data_width):
    """Return (data, last_be, last) of each word; a frame of no octets is one word without any."""
    lanes = data_width // 8
    words = [frame[k : k + lanes] for k in range(0, len(frame), lanes)] or [b""]
    return [
        (int.from_bytes(word, "little"), 1 << len(word) >> 1 if k == len(words) - 1 else 0, k == len(words) - 1)
        for k, word in enumerate(words)
    ]


def parse(frames, data_width, idle=lambda: 0, verdict=None):
    """Run the parser; return each report as a dictionary, the probe's fields only of probe frames."""
    dut = FrameParser(data_width)
    reports = []

    def drive():
        for name, value in (verdict or {}).items():
            yield getattr(dut.sink, name).eq(value)
        for number, frame in enumerate(frames):
            for data, last_be, last in words_of(frame, data_width):
                for _ in range(idle()):
                    yield dut.sink.valid.eq(0)
                    yield
                yield dut.sink.valid.eq(1)
                yield dut.sink.data.eq(data)
                yield dut.sink.last_be.eq(last_be)
                yield dut.sink.last.eq(last)
                yield dut.sink.number.eq(number % 16)
                yield
        yield dut.sink.valid.eq(0)
        for _ in range(5):
            yield

    @passive
    def watch():
        while True:
            yield
            if (yield dut.source.valid):
                names = ["number", "length", "runt", "giant", "is_probe", "fcs_error", "symbol_error"]
                if (yield dut.source.is_probe):
                    names += PROBE_FIELDS
                report = {}
                for name in names:
                    report[name] = yield getattr(dut.source, name)
                reports.append(report)

    run_simulation(dut, [drive(), watch()])
    return reports


def expected(number, frame, fcs_error=0, symbol_error=0):
    report = {
        "number": number % 16,
        "length": len(frame),
        "runt": len(frame) < 60,
        "giant": len(frame) > 9018,
        "is_probe": 0,
        "fcs_error": fcs_error,
        "symbol_error": symbol_error,
    }
    header = probe_header(frame)
    if header is not None:
        flags = (
            RecordFlag.FCS_ERROR * fcs_error
            | RecordFlag.SYMBOL_ERROR * symbol_error
            | RecordFlag.RUNT * report["runt"]
            | RecordFlag.GIANT * report["giant"]
            | RecordFlag.LENGTH_ERROR * header.length_error
        )
        fields = (len(frame), flags, header.stream_id, header.sequence, header.tx_stamp)
        report |= {"is_probe": 1, **dict(zip(PROBE_FIELDS, fields, strict=True))}
    return report


@pytest.mark.parametrize("data_width", [32, 64])
@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("tags", [0, 1, 2])
def test_fields_of_every_layout_at_every_tail(data_width, version, tags):
    shortest = headers_length(tags, version) + 18
    frames = [
        probe_frame(0xF0000000 + extra, 0x0123456789ABCDEF + extra, shortest + extra, 0xBEE0 + extra, tags, version)
        for extra in range(9)
    ]
    reports = parse(frames, data_width)
    assert [report["sequence"] for report in reports] == [0xF0000000 + extra for extra in range(9)]
    assert [report["tx_stamp"] for report in reports] == [0x0123456789ABCDEF + extra for extra in range(9)]
    assert [report["stream_id"] for report in reports] == [0xBEE0 + extra for extra in range(9)]
    assert [report["probe_length"] for report in reports] == [shortest + extra for extra in range(9)]
    assert [report["probe_flags"] for report in reports] == [0] * 9
    assert reports == [expected(number, frame) for number, frame in enumerate(frames)]


@pytest.mark.parametrize("data_width", [32, 64])
@pytest.mark.parametrize("version", [4, 6])
def test_frame_that_ends_anywhere_is_reported(data_width, version):
    whole = probe_frame(0x11223344, 0x5566778899AABBCC, 92, 7, 1, version)
    frames = [whole[:end] for end in range(93)]
    assert parse(frames, data_width) == [expected(number, frame) for number, frame in enumerate(frames)]


@pytest.mark.parametrize("data_width", [32, 64])
def test_idle_cycles_change_nothing(data_width):
    rng = random.Random(1)
    frames = [probe_frame(k, k, 60 + k, version=rng.choice([4, 6])) for k in range(6)] + [other_frame(1), b"", b"a"]
    rng.shuffle(frames)
    busy = parse(frames, data_width)
    assert parse(frames, data_width, idle=lambda: rng.randrange(3)) == busy
    assert busy == [expected(number, frame) for number, frame in enumerate(frames)]


@pytest.mark.parametrize("data_width", [32, 64])
def test_flipped_header_octets_agree_with_the_model(data_width):
    rng = random.Random(2)
    frames = []
    for place in range(12, 66):
        frame = bytearray(probe_frame(5, 6, 66, tags=place % 2, version=4 if place % 3 else 6))
        if place < len(frame):
            frame[place] ^= 1 << rng.randrange(8)
        frames.append(bytes(frame))
    reports = parse(frames, data_width)
    assert reports == [expected(number, frame) for number, frame in enumerate(frames)]
    assert 10 < sum(report["is_probe"] for report in reports) < 50


@pytest.mark.parametrize(("fcs_error", "symbol_error"), [(1, 0), (0, 1), (1, 1)])
def test_verdict_of_the_wire_is_in_the_flags(fcs_error, symbol_error):
    frame = probe_frame(1, 2)
    reports = parse([frame], 32, verdict={"fcs_error": fcs_error, "symbol_error": symbol_error})
    assert reports == [expected(0, frame, fcs_error, symbol_error)]
    assert reports[0]["probe_flags"] & int(DAMAGE)


def test_cut_frames_are_not_reported():
    assert parse([probe_frame(1, 2)], 32, verdict={"overflow": 1}) == []


def test_padding_up_to_60_is_no_length_error_and_further_is():
    short = probe_frame(1, 2)
    # An IP packet of 45 octets: one octet of padding at 60, two at 61.
    broken = short[:16] + (45).to_bytes(2) + short[18:38] + (25).to_bytes(2) + short[40:]
    reports = parse([broken, broken + b"\0"], 32)
    assert [report["probe_flags"] for report in reports] == [0, int(RecordFlag.LENGTH_ERROR)]
