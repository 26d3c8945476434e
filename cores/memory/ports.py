# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Shares a SDRAM between many users: burst ports that take turns, and a clock of its own for the controller."""

from migen import *
from migen.genlib.roundrobin import SP_CE, RoundRobin

from litex.gen import *
from litex.soc.interconnect import stream, wishbone

from liteprobe.cores.assign import copied
from liteprobe.cores.crossing import HandshakeCrossing, LevelCrossing, NumberCrossing, StreamCrossing
from liteprobe.cores.memory.sdram import BANKS, BURST_WORDS, BurstPort

READS    = 8 # Requests whose words are still to come, at most.
REQUESTS = 8 # Taken by a crossing and not through, at most: they fill the way there and back.
NUMBERS  = 4 # Bits of a request's number: twice as many as REQUESTS.
QUEUE    = 512 # Words: those of REQUESTS that write; those of READS, so that none that is read is ever lost.

# Queued Port --------------------------------------------------------------------------------------

class QueuedPort(BurstPort):
    """Takes requests of a burst port before the one before is through.

    Parameters
    ----------
    banks : int
        As of `BurstPort`.

    Attributes
    ----------
    last, through : Signal(4)
        Number of the last request that was taken, and of the last one of the memory that is through; both wrap.
    """
    def __init__(self, banks=BANKS):
        BurstPort.__init__(self, banks)
        self.last    = Signal(NUMBERS)
        self.through = Signal(NUMBERS)

    def is_through(self, number):
        """Return whether a request is through: true for 8 more requests of the memory, so look each cycle."""
        return ~(self.through - number)[NUMBERS - 1]

# Burst Ports --------------------------------------------------------------------------------------

class BurstPorts(LiteXModule):
    """Joins any number of burst ports to the one of a memory, a request of each in turn.

    What a port asks for is done in the order in which requests were taken, whoever asked: what a port reads after ``takes`` of a
    word of another port is that word. A request waits for one of each other port at the most.

    Parameters
    ----------
    memory : BurstPort or QueuedPort
        Of a `SdramController`, or of a `MemoryCrossing`.
    count : int
        Ports to begin with.

    Attributes
    ----------
    ports : list of BurstPort or QueuedPort, as ``memory``
        Those that there are. `add_port` adds one, until the module is finalized.
    """
    def __init__(self, memory, count=0):
        self.memory = memory
        self.ports  = []
        self.writers = [] # Numbers of the ports that write.
        for _ in range(count):
            self.add_port()

    def add_port(self, writes=True):
        """Return a new port; one that never writes takes fewer wires."""
        assert not self.finalized
        self.ports.append(type(self.memory)(self.memory.banks))
        self.writers += [len(self.ports) - 1]*writes
        return self.ports[-1]

    def do_finalize(self):
        if self.ports:
            self.add_requests()
            self.add_writes()
            self.add_reads()
            self.add_busy()

    def add_requests(self):
        """Let a port ask, then the next one that wants to."""
        memory, ports = self.memory, self.ports
        self.turns = turns = RoundRobin(len(ports), SP_CE)
        layout     = [("port", len(turns.grant)), ("rest", len(memory.request.rest))]
        self.reads = reads = stream.SyncFIFO(layout, READS, buffered=False)
        self.taken = Signal()
        self.owner = Signal.like(turns.grant) # Of the last request that was taken.
        valid      = Signal()
        self.comb += [
            turns.request.eq(Cat([port.request.valid for port in ports])),
            turns.ce.eq(self.taken | ~valid),
            Case(turns.grant, {number: [
                valid.eq(port.request.valid),
                *copied(memory.request, port.request, "address", "rest", "write"),
                port.request.ready.eq(self.taken),
            ] for number, port in enumerate(ports)}),
            memory.request.valid.eq(valid & reads.sink.ready),
            self.taken.eq(memory.request.valid & memory.request.ready),
            reads.sink.valid.eq(self.taken & ~memory.request.write),
            reads.sink.port.eq(turns.grant),
            reads.sink.rest.eq(memory.request.rest),
        ]
        self.sync += If(self.taken, self.owner.eq(turns.grant))

    def add_writes(self):
        """Take the words of the last request: no other is taken before it has given all."""
        memory, ports, writers = self.memory, self.ports, self.writers
        words = {number: memory.write_data.eq(ports[number].write_data) for number in writers}
        if words:
            words["default"] = words.pop(writers[-1])
        self.comb += [
            Case(self.owner, words),
            Case(self.owner, {number: ports[number].takes.eq(memory.takes) for number in writers}),
        ]

    def add_reads(self):
        """Give words to who asked first."""
        memory, first = self.memory, self.reads.source
        got = Signal(len(first.rest)) # Words of that request.
        self.comb += [
            first.ready.eq(memory.gives & (got == first.rest)),
            *[port.read_data.eq(memory.read_data) for port in self.ports],
            *[port.gives.eq(memory.gives & (first.port == number)) for number, port in enumerate(self.ports)],
        ]
        self.sync += If(memory.gives, got.eq(got + 1), If(first.ready, got.eq(0)))

    def add_busy(self):
        """Tell each port whether what it asked for is through."""
        memory, turns = self.memory, self.turns
        for number, port in enumerate(self.ports):
            if not isinstance(memory, QueuedPort):
                self.comb += port.busy.eq(memory.busy & (self.owner == number))
                continue
            self.comb += port.through.eq(memory.through)
            self.sync += If(self.taken & (turns.grant == number),
                port.last.eq(memory.last + 1),
                port.busy.eq(1),
            ).Elif(port.is_through(port.last),
                port.busy.eq(0),
            )

# Memory Crossing ----------------------------------------------------------------------------------

class MemoryCrossing(LiteXModule):
    """Gives ``sys`` the bus and the burst port of a `SdramController` that runs in a clock domain of its own.

    Requests, words to write and words that were read wait in a queue each. A request to write goes on when all its words are in
    the queue.

    An access of the bus doesn't queue: it takes turns with bursts at the controller. So the bus may read a word as it was before
    ``takes``, until the request is through.

    Parameters
    ----------
    sdram : SdramController
        In ``memory``, of any frequency; with bursts, without a late answer.

    Attributes
    ----------
    bus : wishbone.Interface(32)
        An access takes 3 cycles of ``sys`` and 3 of ``memory`` more than it takes the controller.
    burst : QueuedPort
        Takes and gives up to a word a cycle of ``sys``; up to 8 requests are under way. For `BurstPorts`: there is space for the
        words of 8 requests.
    ready : Signal(), out
        As of the controller.

    Limits: both domains are reset together. An access of the bus must not be given up before its answer.
    """
    def __init__(self, sdram):
        self.bus   = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.burst = QueuedPort(sdram.burst.banks)
        self.ready = Signal()

        # # #

        assert QUEUE >= max(READS, REQUESTS)*BURST_WORDS
        self.sdram_ready = crossing = LevelCrossing("sys")
        self.comb += [crossing.i.eq(sdram.ready), self.ready.eq(crossing.o)]
        self.add_requests(sdram.burst)
        self.add_words(sdram.burst)
        self.add_numbers(sdram.burst)
        self.add_bus(sdram.bus)

    def add_requests(self, to):
        """Queue requests, those that write when their words are queued."""
        request = self.burst.request
        layout  = [(name, len(getattr(request, name))) for name in ("address", "rest", "write")]
        self.requests = queue = StreamCrossing(layout, "sys", "memory", REQUESTS)
        self.writes   = Signal() # Words of a request are queued.
        self.fills    = Signal() # One in this cycle.
        self.has_space = Signal()
        self.begins   = Signal()
        self.ends     = Signal()
        address = Signal.like(request.address, reset_less=True)
        count   = Signal.like(request.rest,    reset_less=True)
        rest    = Signal.like(request.rest,    reset_less=True) # Words to come after this one.
        self.comb += [
            self.ends.eq(self.fills & (rest == 0)),
            request.ready.eq(~self.writes & self.has_space),
            self.begins.eq(request.valid & request.ready),
            # Never full: there are fewer requests than places.
            queue.sink.valid.eq((self.begins & ~request.write) | self.ends),
            queue.sink.write.eq(self.writes),
            queue.sink.address.eq(Mux(self.writes, address, request.address)),
            queue.sink.rest.eq(Mux(self.writes, count, request.rest)),
            queue.source.connect(to.request),
        ]
        self.sync += [
            If(self.fills, rest.eq(rest - 1)),
            If(self.ends, self.writes.eq(0)),
            If(self.begins,
                address.eq(request.address),
                count.eq(request.rest),
                rest.eq(request.rest),
                self.writes.eq(request.write),
            ),
        ]

    def add_words(self, to, writes=True, reads=True):
        """Queue words, both ways."""
        if writes:
            self.add_written(to)
        if reads:
            self.add_read(to)

    def add_written(self, to):
        """Queue words to write."""
        burst = self.burst
        self.write_queue = write = StreamCrossing([("data", 32)], "sys", "memory", QUEUE)
        self.comb += [
            write.sink.valid.eq(self.writes),
            write.sink.data.eq(burst.write_data),
            self.fills.eq(self.writes & write.sink.ready),
            burst.takes.eq(self.fills),
            to.write_data.eq(write.source.data),
            write.source.ready.eq(to.takes),
        ]

    def add_read(self, to):
        """Queue words that were read."""
        burst = self.burst
        self.read_queue = read = StreamCrossing([("data", 32)], "memory", "sys", QUEUE)
        self.comb += [
            read.sink.valid.eq(to.gives),
            read.sink.data.eq(to.read_data),
            read.source.ready.eq(1),
            burst.gives.eq(read.source.valid),
            burst.read_data.eq(read.source.data),
        ]

    def add_numbers(self, to):
        """Count requests."""
        burst = self.burst
        self.through = through = NumberCrossing(NUMBERS, "memory", "sys")
        was_busy  = Signal()
        under_way = Signal(NUMBERS)
        self.sync.memory += was_busy.eq(to.busy)
        self.comb += [
            through.step.eq(was_busy & ~to.busy),
            burst.through.eq(through.o),
            under_way.eq(burst.last - burst.through),
            burst.busy.eq(under_way != 0),
            self.has_space.eq(under_way < REQUESTS),
        ]
        self.sync += burst.last.eq(burst.last + self.begins)

    def add_bus(self, to):
        """Have an access done; it stands still from before ``asked`` until its answer."""
        bus = self.bus
        self.access = access = HandshakeCrossing("sys", "memory")
        answer = Signal(32, reset_less=True)
        answer.attr.add("no_retiming")
        self.comb += [
            access.ask.eq(bus.cyc & bus.stb & self.ready & ~access.busy),
            bus.ack.eq(access.done),
            bus.dat_r.eq(answer),
            to.cyc.eq(access.asked),
            to.stb.eq(access.asked),
            *copied(to, bus, "adr", "dat_w", "sel", "we"),
            access.answer.eq(to.ack),
        ]
        self.sync.memory += If(to.ack, answer.eq(to.dat_r))
