# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what the monitor is held to: every figure against its target.

Prints one line a figure (``name value unit target ok|short``), writes build/bench/monitor.json, and ends with 1 when one
falls short. Captures come from the source packages of tcpdump and nDPI, which apt fetches at the first run; tshark says
what is in them.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import board_builds
import monitor_filters
import pytest
from parsed_frames import captured, off_model, parsed

from liteprobe.cores.formats import UNIFIED_OCTETS, Layer3, UnifiedFlag
from liteprobe.sim.drivers.capture import capture as capture_bench
from liteprobe.sim.drivers.frames import stacks
from liteprobe.sim.drivers.measure import rate as rate_bench
from liteprobe.sim.drivers.measure import streams as meters_bench
from liteprobe.sim.drivers.pcie import limits as pcie_limits
from liteprobe.sim.drivers.receive import monitor as monitor_bench
from liteprobe.sim.drivers.receive import unified as unified_bench
from liteprobe.sim.drivers.receive.monitor import Sent, check, parity_answer
from liteprobe.sim.drivers.receive.toeplitz import TCP, VECTORS, hashes, header_of
from liteprobe.sim.drivers.system import host_speed
from liteprobe.sim.drivers.system import monitoring as monitor_line_rate
from liteprobe.sim.drivers.system.monitoring import monitored
from liteprobe.sim.drivers.tools.figures import ROOT, Figure, note, row
from liteprobe.sim.models.receive.monitor import MonitorModel, Settings, flow_hash
from liteprobe.sim.models.receive.unified import WITH_PORTS, UnifiedHeader, unified_header
from liteprobe.sim.system.build import build_probe

LINE_RATE = 1e9 / 672  # Frames of 60 octets in a second.
HEADERS_BY_UDP = 1e9 / 8 / 1538 * 364 / 32  # A gigabit carries no more: 364 words a datagram, 32 a header.


@row("monitor")
def test_stacks() -> Iterator[Figure]:
    """Every stack of headers."""
    yield from parsed("stacks", stacks.stacks(), unified_bench.run)


@row("monitor")
def test_corpora() -> Iterator[Figure]:
    """Every frame of the captures."""
    yield from parsed("corpora", captured(), unified_bench.run)


@row("monitor")
def test_cuts() -> Iterator[Figure]:
    """Every stack, cut at every octet."""
    frames = [frame[:end] for frame in stacks.stacks() for end in range(len(frame) + 1)]
    yield from off_model("cuts", frames, unified_bench.run)[1]


@row("monitor")
def test_fuzz(is_full: bool) -> Iterator[Figure]:
    """Broken frames through the gateware, and against tshark; a hundred times as many through the model."""
    yield from parsed("fuzz", list(stacks.fuzz(100_000 if is_full else 10_000, seed=4)), unified_bench.run)
    count = 1_000_000 if is_full else 100_000
    whole = sum(len(unified_header(frame).octets()) == UNIFIED_OCTETS for frame in stacks.fuzz(count, seed=5))
    yield Figure("fuzz_through_model", whole, "headers", count, is_least=True)


@row("monitor")
def test_measure(is_full: bool) -> Iterator[Figure]:
    """Streams with every fault through the meters; and rates, of a clock that is set and steered."""
    frames = 1_000_000 if is_full else 100_000
    outcome = meters_bench.random_run(frames, seed=6)
    rates = rate_bench.random_run(frames, seed=7, interval_ns=123_457)
    for found in [*outcome.found, *rates.found]:
        note(f"measure: {found}")
    yield Figure("measure_frames", outcome.frames, "frames", frames, is_least=True)
    yield Figure("measure_streams", outcome.streams, "stream ids", 100, is_least=True)
    yield Figure("measure_accumulators_compared", outcome.words, "words", frames // 4, is_least=True)
    yield Figure("measure_accumulators_off", outcome.off_words, "words", 0)
    yield Figure("measure_bins_compared", outcome.bins, "bins", frames // 4, is_least=True)
    yield Figure("measure_bins_off", outcome.off_bins + outcome.off_saturated, "bins", 0)
    yield Figure("measure_rate_intervals", rates.intervals, "intervals", frames // 1000, is_least=True)
    yield Figure("measure_rates_off", rates.off, "intervals", 0)


@row("monitor")
def test_expressions(is_full: bool) -> Iterator[Figure]:
    """Filter expressions over captures and made frames: libpcap, this host, the probe's tables."""
    yield from monitor_filters.expressions(captured(), is_full)


@row("monitor")
def test_host(is_full: bool) -> Iterator[Figure]:
    """A recorded capture of 60-octet frames to files, from a file and over UDP."""
    folder = ROOT / "build" / "bench" / "host"
    frames, headers = host_speed.recordings(folder, 6_000_000 if is_full else 3_000_000)
    for name, blocks, ending, over_udp in (
        ("pcapng", frames, "pcapng", LINE_RATE),
        ("parquet", headers, "parquet", HEADERS_BY_UDP),
    ):
        runs = {"from_file": (host_speed.from_file, LINE_RATE), "by_udp": (host_speed.from_network, over_udp)}
        for way, (take, target) in runs.items():
            path = folder / f"{way}.{ending}"
            speed = host_speed.best(lambda take=take, blocks=blocks, path=path: take(blocks, path))  # type: ignore[misc]
            yield Figure(f"host_{name}_{way}", speed.rate, "packets/s", target, is_least=True)
            yield Figure(f"host_{name}_{way}_cores", speed.cores(target), "cores", 2)
            yield Figure(f"host_{name}_{way}_never_came", speed.never_came, "blocks", 0)
        seconds = speed.seconds + host_speed.synced(path)
        yield Figure(f"host_{name}_on_disk", speed.packets / seconds, "packets/s", target, is_least=True)


def wrong_on(ports: Sequence[Sequence[Sent]], name: str, settings: dict[str, int]) -> Iterator[Figure]:
    """Play frames into both ports; count what is not as the model has it, and what was lost."""
    runs = monitor_bench.run(ports, settings=settings)
    mac = monitor_bench.MAC.to_bytes(6)
    for port, (sent, one) in enumerate(zip(ports, runs, strict=True)):
        model = MonitorModel(port, parity_answer(), Settings(**settings), mac if port == 0 else None)  # type: ignore[arg-type]
        found = check(model, sent, one)
        for wrong in found.wrong[:3]:
            note(f"{name}, port {port}: {wrong}")
        losses = found.unclassified + found.lost + found.without_header + found.unplaced
        yield Figure(f"{name}_port{port}_off_model", len(found.wrong), "findings", 0)
        yield Figure(f"{name}_port{port}_lost", losses, "frames", 0)
        yield Figure(f"{name}_port{port}_frames", one.counters["classified"], "frames", len(sent), is_least=True)
        yield Figure(f"{name}_port{port}_records", found.kept, "records", one.counters["kept"], is_least=True)


@row("monitor")
def test_line_rate(is_full: bool) -> Iterator[Figure]:
    """Shortest frames back to back on both ports, all features on: each record, header, octet and counter is the model's."""
    count = 100_000 if is_full else 20_000
    ports = [[Sent(frame[:60].ljust(60, b"\0")) for frame in stacks.fuzz(count, seed)] for seed in (6, 7)]
    yield from wrong_on(
        ports, "line_rate", {"keep_headers": 1, "sample_shift": 1, "sample_by_hash": 1, "sample_seed": 99}
    )
    yield from wrong_on(
        ports, "line_rate_count", {"keep_headers": 1, "sample_shift": 1, "keep_damaged": 1, "keep_own": 1}
    )


@row("monitor")
def test_probe(is_full: bool) -> Iterator[Figure]:
    """Shortest frames back to back on both ports of the whole simulated probe: filter, channels, SDRAM, meters, UDP."""
    count = 100_000 if is_full else 20_000
    with TemporaryDirectory() as files, monitored(build_probe("own", preset="monitor"), Path(files)) as monitor:
        found = monitor_line_rate.line_rate(monitor, count)
    for line in found.counters_off:
        note(f"probe: {line}")
    yield Figure("probe_line_rate_frames", found.frames, "frames", 2 * count, is_least=True)
    yield Figure("probe_line_rate_not_back_to_back", found.spacings_off, "frames", 0)
    yield Figure("probe_line_rate_records", found.records, "records", count // 2, is_least=True)
    yield Figure("probe_line_rate_records_off_pins", found.records_off, "records", 0)
    yield Figure("probe_line_rate_counters_off", len(found.counters_off), "counters", 0)
    yield Figure("probe_line_rate_dropped", found.dropped, "frames", 0)


def records_of(frames: Sequence[bytes]) -> list[tuple[bytes, int, int]]:
    """Return each frame with its flow hash and its channel, as the gateware has them."""
    sent, found = [Sent(frame) for frame in frames], []
    halves = [sent[::2], sent[1::2]]
    for drop in (0, 1):  # The filter of the bench passes half of them, then the others.
        runs = monitor_bench.run(halves, settings={"snap_length": 0, "keep_damaged": 1, "keep_own": 1, "drop": drop})
        for half, one in zip(halves, runs, strict=True):
            by_stamp = dict(zip(monitor_bench.stamps(half), half, strict=True))
            for kept in one.kept:
                frame = by_stamp[int.from_bytes(kept.head[:8], "little")].frame
                found.append((frame, kept.hash, kept.head[15] & 15))
    return found


def random_flows(count: int, seed: int) -> list[bytes]:
    """Return a frame of each of ``count`` flows of UDP over IPv4."""
    rng = random.Random(seed)
    start = bytes(12) + bytes.fromhex("08004500002e0000000040110000")
    return [start + rng.randbytes(12) + bytes.fromhex("001a0000") + bytes(18) for _ in range(count)]


def flow_of(header: UnifiedHeader) -> tuple[bytes, ...]:
    """Return what both directions of a flow have in common; all fragments between two addresses are one flow."""
    ends = [(header.source, header.ports[:2]), (header.destination, header.ports[2:])]
    has_ports = UnifiedFlag.TRANSPORT in header.flags and header.protocol in WITH_PORTS
    if not has_ports or UnifiedFlag.FRAGMENT in header.flags:
        return tuple(sorted(address for address, _ in ends))
    return tuple(b"".join(end) for end in sorted(ends))


@row("monitor")
def test_toeplitz(is_full: bool) -> Iterator[Figure]:
    """Microsoft's vectors; flows of the captures, each in one channel; the load of the channels."""
    wrong = 0
    for column, flags in ((5, TCP), (4, UnifiedFlag.NONE)):
        headers_ = [header_of(*vector[:4], flags=flags) for vector in VECTORS]
        found = hashes(headers_, sorts=0)
        wrong += sum(value != vector[column] for (value, _), vector in zip(found, VECTORS, strict=True))
    yield Figure("toeplitz_vectors_wrong", wrong, "hashes", 0)
    # Headers are all in the first 160 octets, but where a stack is deeper than any of them.
    frames = [frame[:160].ljust(60, b"\0") for frame in captured()]
    if not is_full:
        frames = frames[::5]
    rng = random.Random(9)
    # The same flows with a tag in front, of odd and even VLANs: the filter of the bench names a channel for odd ones.
    tagged = [
        frame[:12] + b"\x81\x00" + rng.randrange(1, 4095).to_bytes(2) + frame[12:156]
        for frame in rng.sample(frames, 4000)
    ]
    frames += tagged
    channels, off = defaultdict(set), 0
    named, answer = Counter[bool](), parity_answer()
    records = records_of(frames)
    for frame, value, channel in records:
        header = unified_header(frame)
        off += value != flow_hash(header)
        asked = answer(header).channel
        if asked is not None:  # The filter of the bench names a channel for odd VLANs, whatever the flow.
            named[channel == asked] += 1
        elif header.layer3 is not Layer3.NONE:
            channels[flow_of(header)].add(channel)
    yield Figure("toeplitz_captured_frames", len(records), "frames", len(frames), is_least=True)
    yield Figure("toeplitz_off_model", off, "frames", 0)
    note(f"toeplitz: {named.total()} frames left out of flows: the filter names their channel")
    yield Figure("toeplitz_named_channels", named.total(), "frames", 1000, is_least=True)
    yield Figure("toeplitz_named_channels_off", named[False], "frames", 0)
    yield Figure("toeplitz_flows", len(channels), "flows", 1000, is_least=True)
    yield Figure("toeplitz_flows_split", sum(len(found) > 1 for found in channels.values()), "flows", 0)
    load = Counter(channel for _, _, channel in records_of(random_flows(100_000, seed=8)))
    yield Figure("toeplitz_random_flows", load.total(), "flows", 100_000, is_least=True)
    worst = max(abs(load[channel] * 8 / load.total() - 1) for channel in range(8))
    yield Figure("toeplitz_imbalance", 100 * worst, "%", 5)


#: What is asked for of the lengths that are always measured (Mb/s of frames). Block RAM: a port at line rate. SDRAM: what is left
#: of 1.6 Gb/s for in and out.
CAPTURED_MBPS = {
    "blockram": {60: 714, 512: 955, 1514: 984},
    "sdram": {60: 570, 512: 700, 1514: 720},
    "udp": {60: 570, 512: 700, 1514: 720},
    "udp_blockram": {60: 714, 512: 900, 1514: 930},
}


@row("monitor")
@pytest.mark.parametrize("way", CAPTURED_MBPS)
def test_capture(way: str, is_full: bool) -> Iterator[Figure]:
    """The greatest rate of frames of each length that a transport of the capture keeps whole, and what is beyond."""
    least, transport = CAPTURED_MBPS[way], capture_bench.TRANSPORTS[way]
    for length in capture_bench.LENGTHS if is_full else least:
        if length in least or transport.with_sdram or length < 9000:
            reached = capture_bench.limit(transport, length)
            asked = least.get(length, min(least.values()))
            yield Figure(f"capture_{way}_{length}", reached / 1e6, "Mb/s", asked, is_least=True)
            dropped, wrong = capture_bench.beyond(transport, length, 1.5 * reached)
            yield Figure(f"capture_{way}_{length}_beyond_dropped", dropped, "frames", 1, is_least=True)
            yield Figure(f"capture_{way}_{length}_beyond_wrong", len(wrong), "streams", 0)
    rate = capture_bench.block_rate(transport, 1514) / 1e6
    yield Figure(f"capture_{way}_blocks", rate, "Mb/s", capture_bench.LEAST_BLOCKS[way], is_least=True)


@row("monitor")
def test_capture_pcie() -> Iterator[Figure]:
    """Frames of two lines through capture and DMA: most with nothing dropped, and drops told and counted beyond."""
    found = pcie_limits.measure()
    for length in pcie_limits.LENGTHS:
        paces = [one for one in found if one.length == length]
        whole = [one.offered for one in paces if not one.counted and not one.told]
        line_rate = next(one.offered for one in paces if one.pace == 1)
        yield Figure(f"pcie_whole_{length}B", max(whole, default=0.0), "Mb/s", int(line_rate), is_least=True)
        beyond = [one for one in paces if one.counted or one.told]
        yield Figure(
            f"pcie_drops_miscounted_{length}B", sum(abs(one.counted - one.told) for one in beyond), "frames", 0
        )


@row("monitor")
def test_board() -> Iterator[Figure]:
    """The Colorlight 5A-75B as a monitor, three seeds; as a probe of trains it is in ``./run bench clock board``."""
    yield from board_builds.figures(ROOT / "build" / "colorlight_5a_75b_monitor", "--preset", "monitor")
