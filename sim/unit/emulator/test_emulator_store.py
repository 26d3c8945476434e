# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Octets on their way through the emulator: mover, store and forward source, whatever holds them up, against what came in."""

import random
from types import SimpleNamespace

import pytest
from migen import *
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import IP, UDP, IPOption_NOP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether

from litex.gen import *

from liteprobe.cores.emulate.forward import ForwardSource
from liteprobe.cores.emulate.store import BlockStore, FrameMover, SdramStore
from liteprobe.cores.formats.emulate import LANES
from liteprobe.cores.memory.ports import BurstPorts
from liteprobe.sim.drivers.memory.block_memory import BlockMemory
from liteprobe.sim.drivers.tools.steps import pulse, wait_cycles, wait_until

WORDS, BUFFER, SHOWN = 16384, 128, 16
BITS = [11] + [9]*7 + [12] # Of each lane; the last one takes jumbo frames.
PLACE = 16384 # In the SDRAM.
JUMBO, WHOLE = 9018, (3, 9) # Frames that are as long, for certain.

class Path(LiteXModule):
    """A mover, a store, and a forward source, joined as a direction joins them."""
    def __init__(self, kind):
        if kind == "block":
            self.store = store = BlockStore(WORDS, BUFFER)
        else:
            self.memory = memory = BlockMemory(2*PLACE)
            self.ports  = ports  = BurstPorts(memory.burst, 2)
            self.store  = store  = SdramStore(*ports.ports, PLACE, WORDS, BUFFER)
        self.mover   = mover   = FrameMover(store)
        self.forward = forward = ForwardSource(BUFFER, SHOWN)
        self.comb += [
            forward.read.connect(store.read),
            store.read_data.connect(forward.read_data),
            forward.level.eq(store.level),
            forward.is_idle.eq(store.is_idle),
            mover.lane.eq(forward.lane),
            forward.position.eq(mover.position),
        ]

def frames_of(rand, count):
    """Return random frames: where their words go, and what is done to them."""
    ends, made = [0]*LANES, []
    for number in range(count):
        lane   = LANES - 1 if number in WHOLE else rand.randrange(LANES)
        most   = JUMBO if lane == LANES - 1 else 1514
        length = most if number in WHOLE else rand.choice([60, 61, 63, 64, rand.randint(60, 300), rand.randint(60, most), most])
        frame  = SimpleNamespace(lane=lane, length=length, keep=number in WHOLE or rand.random() < 0.9, twice=rand.random() < 0.2,
            corrupt=rand.random() < 0.3, mended=rand.randrange(2), bit=rand.choice([0, 8*length - 1, rand.randrange(8*length)]),
            octets=rand.randbytes(length), words=-(-length//4), position=ends[lane] % (1 << 22), number=number % 8)
        ends[lane] += frame.words*frame.keep
        frame.marked, frame.ip, frame.wanted, frame.gone = 0, rand.randrange(32), frame.octets, rand.random() < 0.15
        if not frame.gone and rand.random() < 0.6:
            mark(rand, frame)
        made.append(frame)
    return made

def mark(rand, frame):
    """Make the frame one of IP that is marked, behind tags and labels; say what it must become, with what scapy makes of it."""
    is_ipv6, tags, labels = rand.random() < 0.5, rand.randrange(5), rand.randrange(5)
    below = [Dot1Q(vlan=7) for _ in range(tags)] + [MPLS(label=n, s=n == labels - 1) for n in range(labels)]
    def packet(ecn):
        tos = frame.number << 5 | ecn
        body = IPv6(tc=tos)/UDP() if is_ipv6 else IP(tos=tos, id=frame.length, options=[IPOption_NOP()]*(frame.lane % 3))/UDP()
        whole = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        for one in below:
            whole = whole/one
        return bytes(whole/body/frame.octets)
    before, after = packet(rand.choice([1, 2, 3])), packet(3)
    if frame.keep and len(frame.octets) >= 14 + 4*(tags + labels) + 40:
        frame.octets, frame.wanted = before[:frame.length], after[:frame.length]
        frame.marked, frame.ip = 1, (tags + labels) | is_ipv6 << 4

def words_of(octets):
    octets += bytes(-len(octets) % 4)
    return [int.from_bytes(octets[n:n + 4], "little") for n in range(0, len(octets), 4)]

class Run:
    """Drives a `Path` with frames, each side at a pace that changes all the time."""

    def __init__(self, kind, seed, count):
        self.rand   = random.Random(f"{kind} {seed}")
        self.dut    = Path(kind)
        self.frames = frames_of(self.rand, count)
        self.kept   = [frame for frame in self.frames if frame.keep]
        self.room   = [1 << bits for bits in BITS] # Words, which only a verdict takes, as the engine does.
        self.freed  = []
        run_simulation(self.dut, [self.watch(), self.receive(), self.leave(), self.send()])

    def pauses(self):
        """Wait for some cycles, or for none, as the mood of this time is."""
        mood = self.rand.choice([0, 0, 3, 40])
        yield from wait_cycles(self.rand.randrange(mood + 1))

    def give(self, endpoint, **fields):
        for name, value in fields.items():
            yield getattr(endpoint, name).eq(value)
        yield endpoint.valid.eq(1)
        yield
        yield from wait_until(endpoint.ready)
        yield endpoint.valid.eq(0)

    def begin(self):
        dut = self.dut
        at  = 0
        for lane in sorted(range(LANES), key=lambda lane: -BITS[lane]): # The largest first: each at a multiple of its size.
            for name, value in (("lane", lane), ("base", at), ("bits", BITS[lane]), ("valid", 1)):
                yield getattr(dut.store.rings, name).eq(value)
            yield
            at += 1 << BITS[lane]
        yield dut.store.rings.valid.eq(0)
        yield from pulse(dut.forward.start)
        yield from wait_cycles(30)

    def receive(self):
        yield from self.begin()
        mover = self.dut.mover
        for frame in self.frames:
            yield from self.pauses()
            while frame.keep and self.room[frame.lane] < frame.words:
                yield
            self.room[frame.lane] -= frame.words*frame.keep
            yield from self.give(mover.verdicts, keep=frame.keep, lane=frame.lane, position=frame.position)
            frame.decided = True
            yield mover.descriptor.words.eq(frame.words)
            yield mover.descriptor.valid.eq(1)
            yield
            yield from wait_until(mover.descriptor.ready)
            skips = yield mover.skip
            assert skips == (not frame.keep)
            yield mover.descriptor.valid.eq(0)
            for index, word in enumerate(words_of(frame.octets) if frame.keep else []):
                yield from self.pauses() if self.rand.random() < 0.02 else ()
                yield from self.give(mover.data, data=word, last=index == frame.words - 1)

    def leave(self):
        for frame in self.kept:
            while not hasattr(frame, "decided"):
                yield
            yield from self.pauses()
            names = ("lane", "length", "position", "twice", "corrupt", "mended", "bit", "number", "marked", "ip", "gone")
            fields = {name: getattr(frame, name) for name in names}
            yield from self.give(self.dut.forward.departures, due=0, **fields)

    def send(self):
        forward = self.dut.forward
        for frame in [one for one in self.kept if not one.gone for _ in range(1 + one.twice)]:
            yield from wait_until(forward.source.valid)
            assert (yield forward.source.length) == frame.length
            assert (yield forward.spoils) == (frame.corrupt and not frame.mended)
            got = []
            while len(got) < frame.words:
                yield from self.pauses() if self.rand.random() < 0.02 else ()
                yield forward.fetch.ready.eq(1)
                yield
                if (yield forward.fetch.valid):
                    got.append((yield forward.fetch.data))
                yield forward.fetch.ready.eq(0)
            wanted = bytearray(frame.wanted)
            if frame.corrupt:
                wanted[frame.bit//8] ^= 1 << frame.bit % 8
            assert got == words_of(bytes(wanted))
            yield
            yield from pulse(forward.source.ready)
            yield
        yield from wait_cycles(20)
        assert self.freed == [(frame.lane, frame.words) for frame in self.kept]

    @passive
    def watch(self):
        forward = self.dut.forward
        while True:
            yield
            if (yield forward.freed):
                lane, words = (yield forward.freed_lane), (yield forward.freed_words)
                self.freed.append((lane, words))
                self.room[lane] += words

@pytest.mark.parametrize(("seed", "count"), [(0, 16), pytest.param(1, 35, marks=pytest.mark.full)])
@pytest.mark.parametrize("kind", ["block", "sdram"])
def test_each_frame_leaves_as_it_came_but_for_the_bit_that_is_wrong(kind, seed, count):
    run = Run(kind, seed, count)
    assert any(frame.position + frame.words > 1 << BITS[frame.lane] for frame in run.kept) # A ring was gone round.
    assert max(frame.length for frame in run.kept) == JUMBO
    for name in ("twice", "corrupt", "marked", "gone"):
        assert {getattr(frame, name) for frame in run.kept} == {False, True}
