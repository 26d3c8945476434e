# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The management stack: what it answers to frames of every length, decoded by scapy."""

import random
import struct
from collections import Counter

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from litex.tools.remote.etherbone import EtherbonePacket
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from liteprobe.sim.drivers.management.stack import IP_ADDRESS, RAM_WORDS, write_management
from liteprobe.sim.drivers.tools.wire import run_wire_test, with_full

HOST_IP = "192.168.1.100"
HOST_MAC = "02:00:00:00:00:01"
PROBE_MAC = "10:e2:d5:00:00:00"
SHORTEST = 60


STALLS = with_full(["none", "both"], ["source", "sink"])


def test_management_stack_answers_frames_of_every_tail_and_survives_broken_ones():
    run_wire_test(__file__, "management_bench", write_management, "management")


class Bench:
    """The stack on a clock: frames in, frames out."""

    def __init__(self, dut, stalls):
        self.dut = dut
        self.random = random.Random(cocotb.RANDOM_SEED)
        self.with_idle = stalls in ("sink", "both")
        self.with_stall = stalls in ("source", "both")
        self.answers = []

    async def start(self):
        """Reset the stack and let the host's address be known."""
        dut = self.dut
        Clock(dut.sys_clk, 20, unit="ns").start()
        dut.sink_valid.value = dut.source_ready.value = 0
        dut.lease.value, dut.is_held.value, dut.granted.value = 0x8000, 0, 0
        dut.sys_rst.value = 1
        await ClockCycles(dut.sys_clk, 4)
        dut.sys_rst.value = 0
        await ClockCycles(dut.sys_clk, 4)
        cocotb.start_soon(self.take())

    async def send(self, frame):
        """Offer a frame, padded as on a wire, word by word."""
        dut, octets = self.dut, bytes(frame).ljust(SHORTEST, b"\0")
        for start in range(0, len(octets), 4):
            while self.with_idle and self.random.random() < 0.3:
                await RisingEdge(dut.sys_clk)
            word, is_last = octets[start : start + 4], start + 4 >= len(octets)
            dut.sink_valid.value = 1
            dut.sink_data.value = int.from_bytes(word.ljust(4, b"\xaa"), "little")
            dut.sink_last.value = is_last
            dut.sink_last_be.value = 1 << (len(word) - 1) if is_last else 0
            await RisingEdge(dut.sys_clk)
            while not dut.sink_ready.value:
                await RisingEdge(dut.sys_clk)
            dut.sink_valid.value = 0

    async def take(self):
        """Collect what comes out."""
        dut, octets = self.dut, b""
        while True:
            dut.source_ready.value = not self.with_stall or self.random.random() < 0.6
            await RisingEdge(dut.sys_clk)
            if not (dut.source_valid.value and dut.source_ready.value):
                continue
            word = int(dut.source_data.value).to_bytes(4, "little")
            if not dut.source_last.value:
                octets += word
                continue
            last_be = int(dut.source_last_be.value)
            assert last_be in (1, 2, 4, 8), f"last_be is {last_be:04b}"
            self.answers.append(octets + word[: last_be.bit_length()])
            octets = b""

    async def ask(self, frame):
        """Send a frame and return the answer, decoded; tell the probe the host's address when it asks."""
        already = len(self.answers)
        await with_timeout(self.send(frame), 100, "us")
        for _ in range(3000):
            if len(self.answers) == already:
                await RisingEdge(self.dut.sys_clk)
                continue
            answer = Ether(self.answers[already])
            if ARP not in answer or answer[ARP].op != 1:
                return answer
            assert answer[ARP].pdst == HOST_IP
            await with_timeout(self.send(is_at()), 100, "us")
            already += 1
        raise AssertionError(f"no answer to {frame.summary()}")


def to_probe():
    return Ether(src=HOST_MAC, dst=PROBE_MAC) / IP(src=HOST_IP, dst=IP_ADDRESS)


def who_has():
    return Ether(src=HOST_MAC, dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=HOST_MAC, psrc=HOST_IP, pdst=IP_ADDRESS)


def is_at():
    return Ether(src=HOST_MAC, dst=PROBE_MAC) / ARP(
        op=2, hwsrc=HOST_MAC, psrc=HOST_IP, hwdst=PROBE_MAC, pdst=IP_ADDRESS
    )


def etherbone(record, guard=(0, 0)):
    return to_probe() / UDP(sport=1234, dport=1234) / (struct.pack(">HBBHH", 0x4E6F, 0x10, 0x44, *guard) + record)


def write(address, words):
    head = struct.pack(">BBBBI", 0, 0x0F, len(words), 0, address)
    return etherbone(head + struct.pack(f">{len(words)}I", *words))


def read(addresses, base=0):
    head = struct.pack(">BBBBI", 0, 0x0F, 0, len(addresses), base)
    return etherbone(head + struct.pack(f">{len(addresses)}I", *addresses))


async def bench_of(dut, stalls, is_known=True):
    """Return a bench; ``is_known``: it has heard the address of the host."""
    bench = Bench(dut, stalls)
    await bench.start()
    if is_known:
        await bench.ask(who_has())
    return bench


@cocotb.test()
@cocotb.parametrize(stalls=STALLS)
async def arp_names_the_mac_address(dut, stalls):
    bench = await bench_of(dut, stalls, is_known=False)
    answer = await bench.ask(who_has())
    assert answer.dst == HOST_MAC
    assert (answer[ARP].op, answer[ARP].hwsrc, answer[ARP].psrc) == (2, PROBE_MAC, IP_ADDRESS)
    assert (answer[ARP].hwdst, answer[ARP].pdst) == (HOST_MAC, HOST_IP)


@cocotb.test()
@cocotb.parametrize(stalls=STALLS)
async def ping_returns_every_payload(dut, stalls):
    bench = await bench_of(dut, stalls)
    for length in [*range(1, 41), 56, 63, 64]:
        payload = bench.random.randbytes(length)
        answer = await bench.ask(to_probe() / ICMP(id=length, seq=7) / payload)
        assert (answer[ICMP].type, answer[ICMP].id, answer[ICMP].seq) == (0, length, 7)
        assert bytes(answer[ICMP].payload)[:length] == payload, length
        assert answer[IP].len == 28 + length
        good = answer[IP].copy()
        del good[IP].chksum
        del good[ICMP].chksum
        assert bytes(IP(bytes(good)))[: answer[IP].len] == bytes(answer[IP])[: answer[IP].len]


@cocotb.test()
@cocotb.parametrize(stalls=STALLS)
async def etherbone_reads_what_it_wrote_in_bursts_of_every_length(dut, stalls):
    bench = await bench_of(dut, stalls)
    memory = {}
    for count in [1, 2, 3, 7, 15, 16, 17, 31, 63, 64, 65, 200]:
        start = bench.random.randrange(RAM_WORDS - count)
        words = [bench.random.getrandbits(32) for _ in range(count)]
        memory |= {4 * (start + number): word for number, word in enumerate(words)}
        await bench.send(write(4 * start, words))
        addresses = [bench.random.choice(list(memory)) for _ in range(count)]
        answer = await bench.ask(read(addresses, base=0x1000 + count))
        payload = bytes(answer[Raw])[: answer[UDP].len - 8]
        assert (answer[IP].dst, answer[UDP].dport) == (HOST_IP, 1234)
        assert payload[:2] == b"\x4e\x6f"
        assert payload[8:16] == struct.pack(">BBBBI", 0, 0x0F, count, 0, 0x1000 + count)
        assert list(struct.unpack(f">{count}I", payload[16:])) == [memory[address] for address in addresses]


@cocotb.test()
@cocotb.parametrize(stalls=STALLS)
async def a_record_may_write_and_then_read(dut, stalls):
    bench = await bench_of(dut, stalls, is_known=False)
    for writes, reads in [(1, 1), (200, 150)]:
        words = [bench.random.getrandbits(32) for _ in range(writes)]
        places = [bench.random.randrange(writes) for _ in range(reads)]
        record = struct.pack(f">BBBBI{writes}I", 0, 0x0F, writes, reads, 0x20, *words)
        record += struct.pack(f">I{reads}I", 0x77, *(0x20 + 4 * place for place in places))
        answer = await bench.ask(etherbone(record))
        assert list(struct.unpack(f">{reads}I", bytes(answer[Raw])[16:])) == [words[place] for place in places]


@cocotb.test()
@cocotb.parametrize(stalls=STALLS)
async def frames_for_others_are_not_answered_and_block_nothing(dut, stalls):
    bench = await bench_of(dut, stalls)
    others = [
        Ether(src=HOST_MAC, dst=PROBE_MAC, type=0x88B5) / bytes(46),
        Ether(src=HOST_MAC, dst=PROBE_MAC, type=0x86DD) / bytes(1500),
        Ether(src=HOST_MAC, dst=PROBE_MAC) / IP(src=HOST_IP, dst="192.168.1.51") / UDP(sport=1, dport=1234) / bytes(31),
        to_probe() / UDP(sport=1, dport=4321) / bytes(33),
        to_probe() / UDP(sport=1234, dport=1234) / b"no Etherbone at all",
        Ether(src=HOST_MAC, dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=HOST_MAC, psrc=HOST_IP, pdst="192.168.1.9"),
        to_probe() / ICMP(type=3) / bytes(28),
    ]
    before = len(bench.answers)
    for frame in others:
        await with_timeout(bench.send(frame), 100, "us")
        await ClockCycles(dut.sys_clk, 400)
    assert len(bench.answers) == before
    await bench.send(write(0x40, [0x12345678]))
    answer = await bench.ask(read([0x40]))
    assert bytes(answer[Raw])[16:20] == struct.pack(">I", 0x12345678)


@cocotb.test()
@cocotb.parametrize(stalls=STALLS)
async def broken_records_are_dropped_and_block_nothing(dut, stalls):
    bench = await bench_of(dut, stalls)
    await bench.send(write(0x40, [0x12345678]))
    before = len(bench.answers)
    broken = [
        bytes([0, 0x0F, 0, 10]) + bytes(4 * 5),  # Fewer addresses than counted.
        bytes([0, 0x0F, 0, 2]) + bytes(4 * 9),  # More.
        bytes([0, 0x0F, 255, 0]) + bytes(4 * 100),
        bytes([0, 0x0F, 0, 0]) + bytes(8),
        bytes([0, 0x0F, 0, 1]) + bytes(9),  # No whole words.
    ]
    for record in broken:
        await with_timeout(bench.send(etherbone(record)), 100, "us")
        await ClockCycles(dut.sys_clk, 1000)
    await with_timeout(bench.send(bytes(read([0x40] * 64))[:200]), 100, "us")  # Cut, as no FCS would let through.
    await ClockCycles(dut.sys_clk, 1000)
    assert len(bench.answers) == before
    answer = await bench.ask(read([0x40, 0x40]))
    assert bytes(answer[Raw])[16:24] == struct.pack(">II", 0x12345678, 0x12345678)


@cocotb.test()
async def a_record_whose_last_octets_did_not_come_writes_nothing(dut):
    bench = await bench_of(dut, "none")
    words = [bench.random.getrandbits(32) for _ in range(16)]
    await bench.send(write(0x40, words))
    before = len(bench.answers)
    for cut in range(1, 10):
        wrong = bytes(write(0x40, [word ^ 0xFFFFFFFF for word in words]))[:-cut]
        await with_timeout(bench.send(wrong), 100, "us")
        await with_timeout(bench.send(bytes(read([0x40] * 16))[:-cut]), 100, "us")
        await with_timeout(bench.send(bytes(to_probe() / ICMP() / bytes(40))[:-cut]), 100, "us")
        await ClockCycles(dut.sys_clk, 300)
    assert len(bench.answers) == before
    answer = await bench.ask(read([0x40 + 4 * number for number in range(16)]))
    assert list(struct.unpack(">16I", bytes(answer[Raw])[16:])) == words


def discovery(flags, payload=bytes(4), identifier=bytes(4)):
    return to_probe() / UDP(sport=4321, dport=1234) / (b"\x4e\x6f" + bytes([flags, 0x44]) + identifier + payload)


@cocotb.test()
@cocotb.parametrize(stalls=STALLS)
async def a_probe_of_etherbone_returns_with_the_flag_of_a_reply(dut, stalls):
    bench = await bench_of(dut, stalls, is_known=False)
    probe = EtherbonePacket(32)
    probe.pf = 1
    probe.encode()  # As LiteX's own client begins.
    questions = [to_probe() / UDP(sport=4321, dport=1234) / (bytes(probe.bytes) + bytes(4)), discovery(0x11)]
    questions += [discovery(0x11, bench.random.randbytes(4), bench.random.randbytes(4)) for _ in range(9)]
    for question in questions:
        asked = bytes(question[Raw])
        answer = await bench.ask(question)
        assert (answer.src, answer.dst, answer[IP].src, answer[IP].dst) == (PROBE_MAC, HOST_MAC, IP_ADDRESS, HOST_IP)
        assert (answer[UDP].sport, answer[UDP].dport, answer[IP].len, answer[UDP].len) == (1234, 4321, 40, 20)
        assert bytes(answer[Raw]) == asked[:2] + b"\x12" + asked[3:]
        good = answer[IP].copy()
        del good.chksum
        assert answer[IP].chksum == IP(bytes(good)).chksum
        reply = EtherbonePacket(32, asked[:2] + b"\x12" + asked[3:8])
        reply.decode()
        assert (reply.pr, reply.pf) == (1, 0)
    before = len(bench.answers)
    for flags in (0x12, 0x13, 0x01, 0x21, 0x15, 0x19):  # What answers answers, and two probes would never end.
        await bench.send(discovery(flags))
    await bench.send(discovery(0x11, b""))
    await bench.send(discovery(0x11, bytes(8)))
    await bench.send(write(0x40, [0x12345678]))
    answer = await bench.ask(read([0x40]))
    assert len(bench.answers) == before + 1
    assert bytes(answer[Raw])[16:20] == struct.pack(">I", 0x12345678)


@cocotb.test()
@cocotb.parametrize(stalls=STALLS)
async def empty_and_too_long_datagrams_and_a_strange_padding_of_arp_leave_45_reads_in_a_row_whole(dut, stalls):
    bench = await bench_of(dut, stalls, is_known=False)
    words = [bench.random.getrandbits(32) for _ in range(RAM_WORDS // 2)]
    await bench.send(write(0, words))
    stamp = struct.pack(">IIQ", 0x4C500007, 7, 2**40)  # A header of the probe's own frames.
    arp = Ether(bytes(who_has()) + (stamp * 2)[:18])
    strange = [
        to_probe() / UDP(sport=1, dport=1234),
        to_probe() / UDP(sport=1, dport=1234, len=0),
        to_probe() / UDP(sport=1, dport=1234) / bytes(1473),
        to_probe() / UDP(sport=1, dport=1234) / (b"\x4e\x6f\x10\x44" + bytes(1469)),
        to_probe() / UDP(sport=1, dport=1234) / (b"\x4e\x6f\x11\x44" + bytes(1469)),
        to_probe() / UDP(sport=1, dport=1234) / b"\x4e",
    ]
    already = len(bench.answers)
    for number in range(45):
        await with_timeout(bench.send(read([4 * number, 4 * (number + 1)], base=number)), 100, "us")
        await with_timeout(bench.send(strange[number % len(strange)]), 100, "us")
        if number % 9 == 0:
            await with_timeout(bench.send(arp), 100, "us")
    await ClockCycles(dut.sys_clk, 600)
    answers = [Ether(answer) for answer in bench.answers[already:]]
    arps = [answer for answer in answers if ARP in answer]
    payloads = [bytes(answer[Raw])[12:24] for answer in answers if UDP in answer]
    assert [(answer[ARP].op, answer[ARP].hwsrc, answer.dst, len(answer)) for answer in arps] == 5 * [
        (2, PROBE_MAC, HOST_MAC, 42)
    ]
    assert payloads == [struct.pack(">III", number, *words[number : number + 2]) for number in range(45)]


# Lease and order ---------------------------------------------------------------------------------

class Ledger:
    """Counts writes, worked out from the text of cores/formats/probe.py alone."""

    def __init__(self):
        self.lease, self.is_held, self.done = 0x8000, False, 0

    def takes(self, lease, order):
        """Return whether the writes of a request are done, and note it."""
        if lease != self.lease:
            return (lease, order) == (0, 0) and not self.is_held
        if order == 0:
            return True
        is_newer = order != self.done and (order - self.done) % 65536 < 32768
        if is_newer:
            self.done = order
        return is_newer


async def set_lease(bench, ledger, lease, is_held):
    """Begin another lease, as `Lease` shows it."""
    dut = bench.dut
    ledger.lease, ledger.is_held, ledger.done = lease, is_held, 0
    dut.lease.value, dut.is_held.value, dut.granted.value = lease, is_held, 1
    await RisingEdge(dut.sys_clk)
    dut.granted.value = 0
    await RisingEdge(dut.sys_clk)


async def count(signal, clock, counts, name):
    while True:
        await RisingEdge(clock)
        counts[name] += bool(signal.value)


@cocotb.test()
@cocotb.parametrize(stalls=STALLS)
async def writes_are_done_once_in_order_and_by_the_holder_alone(dut, stalls):
    bench = await bench_of(dut, stalls)
    ledger, memory, counts, expected = Ledger(), dict.fromkeys(range(8), 0), Counter(), Counter()
    for name in ("heard", "skipped"):
        cocotb.start_soon(count(getattr(dut, name), dut.sys_clk, counts, name))
    await bench.send(write(0, list(memory.values())))
    await bench.ask(read([0]))  # The write is done, before the lease changes.
    order, sent = 0, []
    for _ in range(400):
        kind = bench.random.random()
        if kind < 0.03:
            await set_lease(bench, ledger, 0x8000 | bench.random.randrange(4), bench.random.random() < 0.8)
            for order in bench.random.choice([[0], [32_760], [32_760, 65_520]]):  # A host that has been at it for long.
                await bench.send(etherbone(struct.pack(">BBBBII", 0, 15, 1, 0, 0x100, 0), (ledger.lease, order)))
                assert ledger.takes(ledger.lease, order)
                expected["heard"] += 1
        if kind < 0.4 or not sent:
            order = order % 65535 + 1
            sent.append((ledger.lease, order))
        guard = bench.random.choice(
            [sent[-1]] * 6 + [bench.random.choice(sent[-9:]), (0, 0), (ledger.lease, 0), (0x8000 | bench.random.randrange(4), 9)]
        )
        words = [bench.random.getrandbits(32) for _ in range(bench.random.choice([0, 1, 1, 2]))]
        place = bench.random.randrange(6)
        is_done = bool(words) and ledger.takes(*guard)
        if is_done:
            memory |= {place + number: word for number, word in enumerate(words)}
        expected["heard"] += guard[0] == ledger.lease
        expected["skipped"] += bool(words) and not is_done
        record = struct.pack(">BBBB", 0, 15, len(words), 8)
        record += struct.pack(f">I{len(words)}I", 4 * place, *words) if words else b""
        answer = await bench.ask(etherbone(record + struct.pack(">I8I", 0x99, *range(0, 32, 4)), guard))
        payload = bytes(answer[Raw])
        assert struct.unpack(">HH", payload[4:8]) == (ledger.lease, ledger.done), f"seed {cocotb.RANDOM_SEED}"
        assert list(struct.unpack(">8I", payload[16:48])) == list(memory.values()), f"seed {cocotb.RANDOM_SEED}"
    assert counts == expected
    assert counts["skipped"] > 100
