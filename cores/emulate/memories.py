# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Keeps words in LUT RAM, the state of each class, and lists of entries in one block RAM, for the stages of the emulator.

A word in LUT RAM is shown at once, and changed at the end of the cycle. What a list has beyond the block RAM waits in the SDRAM.
"""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.assign import copied
from liteprobe.cores.emulate.layouts import ADDRESS_BITS, CLASS_BITS, ENTRY_WORDS, LANE_BITS, PLACE_BITS, RING_BITS, ring_layout
from liteprobe.cores.formats.emulate import CLASSES, ENTRY_SPACE, LANES

def lut_ports(module, name, bits, depth, readers=1):
    """Give ``module`` a memory; return its port to write, then the ports that show a word at once.

    The module doesn't get it as an attribute: LiteX would give it a page of the CSR bus.
    """
    memory = Memory(bits, depth, name=name)
    ports  = [memory.get_port(write_capable=True), *[memory.get_port(async_read=True) for _ in range(readers)]]
    module.specials += memory, *ports
    return ports

# Class State -------------------------------------------------------------------------------------

class ClassState(LiteXModule):
    """Keeps fields of each class, a memory a field: so any of them is read, changed and written in one cycle.

    Parameters
    ----------
    layout : list
        Of the fields.
    name : str
        Of the memories.

    Attributes
    ----------
    reads : dict of Signal(3), in
        Of each field: the class that ``state`` shows.
    state : Record(layout), out
    number : Signal(3), in
        Class that `put` changes.
    """
    def __init__(self, layout, name):
        self.reads  = {field: Signal(CLASS_BITS, name=f"read_{field}") for field, _ in layout}
        self.state  = Record(layout)
        self.number = Signal(CLASS_BITS)

        # # #

        self.puts   = {field: Signal(name=f"puts_{field}")        for field, _    in layout}
        self.values = {field: Signal(bits, name=f"value_{field}") for field, bits in layout}
        for field, bits in layout:
            write, read = lut_ports(self, f"{name}_{field}", bits, CLASSES)
            self.comb += [
                read.adr.eq(self.reads[field]),
                getattr(self.state, field).eq(read.dat_r),
                write.adr.eq(self.number),
                write.dat_w.eq(self.values[field]),
                write.we.eq(self.puts[field]),
            ]

    def put(self, field, value, condition=1):
        """Return the statements that change a field where the condition holds."""
        return [self.puts[field].eq(condition), self.values[field].eq(value)]

# Entry Lists --------------------------------------------------------------------------------------

class EntryLists(LiteXModule):
    """Queues entries, each list first in, first out. Whoever puts them counts them: no more than there are.

    Parameters
    ----------
    layout : list
        Of an entry.
    entries, lists : int
        A power of two; how many lists.

    Attributes
    ----------
    number : Signal, in
        Of the list that is dealt with.
    put, entry : Signal(), Record(layout), in
        ``entry`` goes after the others of the list; not within two cycles after another ``put`` or a ``drop``.
    head : Record(layout), out
        Of the list, from two cycles after ``number``, ``put`` or ``drop`` were given.
    drop : Signal(), in
        The head leaves the list; not within two cycles after a ``put``, a ``drop`` or a change of ``number``.
    is_there : Signal(lists), out
        Which lists have an entry.
    accepts, lacks, calls, fills : constants, and idle : Signal(), in
        As of `SpilledLists`: all of a list is here.
    """
    def __init__(self, layout, entries, lists):
        self.number   = Signal(max=lists)
        self.put      = Signal()
        self.entry    = Record(layout)
        self.head     = Record(layout)
        self.drop     = Signal()
        self.is_there = Signal(lists)
        self.accepts  = Constant(1)
        self.idle     = Signal()
        self.lacks, self.calls, self.fills = [Constant(0)]*3

        # # #

        # Else LiteX gives the memories a page of the CSR bus.
        self.autocsr_exclude = {"memory", "links"}
        bits        = log2_int(entries)
        fresh       = Signal(bits + 1) # Entries from here on were never used, so nothing has to be filled at the start.
        is_fresh    = Signal()
        free        = Signal(bits)     # Those that were, and are free again, are linked from this one on.
        number      = Signal(bits)     # That is used next.
        self.memory = memory = Memory(len(self.entry.raw_bits()), entries, name="entries")
        self.links  = links = Memory(bits, entries, name="links")
        write, read = memory.get_port(write_capable=True, mode=READ_FIRST), memory.get_port(mode=READ_FIRST)
        # While nothing is linked the first port shows what is free after ``free``.
        link,  next = links.get_port(write_capable=True, mode=READ_FIRST), links.get_port(mode=READ_FIRST)
        self.specials += memory, links, write, read, link, next
        put_first, first = lut_ports(self, "heads", bits, lists)
        put_last,  last  = lut_ports(self, "tails", bits, lists)
        is_empty = Signal()
        is_only  = Signal()
        self.comb += [
            is_empty.eq(~(self.is_there >> self.number)[0]),
            is_only.eq(first.dat_r == last.dat_r),
            is_fresh.eq(~fresh[-1]),
            number.eq(Mux(is_fresh, fresh, free)),
            write.adr.eq(number),
            write.dat_w.eq(self.entry.raw_bits()),
            write.we.eq(self.put),
            link.adr.eq(free),
            If(self.put, link.adr.eq(last.dat_r)),
            If(self.drop, link.adr.eq(first.dat_r)),
            link.dat_w.eq(Mux(self.drop, free, number)),
            link.we.eq((self.put & ~is_empty) | self.drop),
            read.adr.eq(first.dat_r),
            next.adr.eq(first.dat_r),
            self.head.raw_bits().eq(read.dat_r),
            first.adr.eq(self.number),
            last.adr.eq(self.number),
            put_first.adr.eq(self.number),
            put_last.adr.eq(self.number),
            put_first.dat_w.eq(Mux(self.put, number, next.dat_r)),
            put_first.we.eq((self.put & is_empty) | (self.drop & ~is_only)),
            put_last.dat_w.eq(number),
            put_last.we.eq(self.put),
        ]
        self.sync += [
            If(self.put & is_fresh, fresh.eq(fresh + 1)),
            If(self.put & ~is_fresh, free.eq(link.dat_r)),
            If(self.drop, free.eq(first.dat_r)),
        ]
        for n in range(lists):
            self.sync += If(self.number == n,
                If(self.put, self.is_there[n].eq(1)),
                If(self.drop & is_only, self.is_there[n].eq(0)),
            )

# Spilled Lists ------------------------------------------------------------------------------------

WINDOW  = 12 # Entries of a list: with fewer in block RAM more are fetched.
GROUP   = 8  # That a burst takes, at most; their words are within a row of the memory.
RESERVE = WINDOW + GROUP # Places in block RAM that each list can have at any time.

class SpilledLists(LiteXModule):
    """Queues entries as `EntryLists` does; those between the first and the last ones of a list may lie in a `SpillStore`.

    An entry goes to block RAM where there is space and none of its list is in the store; else to the store, from where it comes
    back when few of the list are left in block RAM.

    Parameters
    ----------
    layout, entries, lists : as of `EntryLists`
        ``entries`` in block RAM: more than RESERVE for each list.

    Attributes
    ----------
    number, put, entry, head, drop, is_there : as of `EntryLists`
        ``put`` only where ``accepts``, which is known from two cycles after ``number``. ``head`` only where not ``lacks``.
    accepts : Signal(), out
        The store or block RAM takes an entry.
    lacks : Signal(), out
        The list has entries, but none of them is here.
    idle : Signal(), in
        Neither ``number`` is used in the cycle after, nor ``head`` in the two cycles after; no ``put`` nor ``drop`` in this one and
        the two after.
    calls, fills : Signal(), out
        An entry wants to come back; one does so in this cycle, for the one before was ``idle``.
    over, back : Endpoint(spill_layout), out and in
        To and from a `SpillStore`.
    wants : Signal(lists), out
        Lists of which entries are to come back.
    """
    def __init__(self, layout, entries, lists):
        self.pool     = pool = EntryLists(layout, entries, lists)
        self.number   = Signal(max=lists)
        self.put      = Signal()
        self.entry    = Record(layout)
        self.head     = pool.head
        self.drop     = pool.drop
        self.is_there = Signal(lists)
        self.accepts  = Signal()
        self.lacks    = Signal()
        self.idle     = Signal()
        self.calls    = Signal()
        self.fills    = Signal()
        self.over     = over = stream.Endpoint(spill_layout)
        self.back     = back = stream.Endpoint(spill_layout)
        self.wants    = Signal(lists)

        # # #

        assert entries > lists*RESERVE
        bits       = len(self.entry.raw_bits())
        goes_over  = Signal()
        is_over    = Signal(lists) # Some of the list are in the store, or on their way.
        is_low     = Signal(lists, reset=2**lists - 1) # Few are here.
        to_pool    = Signal()
        left       = Signal(max=entries + 1, reset=entries) # Places in block RAM.
        has_space  = Signal()
        recent     = Signal(2)     # Something was put or dropped in the last two cycles.
        # What was done is counted a cycle later.
        number     = Signal(max=lists, reset_less=True) # Of the list that was dealt with;
        was_there  = Signal(reset_less=True)            # it had entries here.
        puts       = Signal() # Into the pool,
        drops      = Signal() # from there;
        went_over  = Signal()
        filled     = Signal()
        here       = Signal(max=entries + 1) # Of that list,
        there      = Signal(PLACE_BITS)      # and in the store.
        here_next  = Signal.like(here)
        there_next = Signal.like(there)
        put_here, get_here   = lut_ports(self, "here", len(here), lists)
        put_there, get_there = lut_ports(self, "there", len(there), lists)
        self.comb += [
            self.is_there.eq(pool.is_there | is_over),
            self.lacks.eq(((is_over & ~pool.is_there) >> self.number)[0]),
            self.wants.eq(is_over & is_low & Replicate(recent == 0, lists)), # Else they may be old.
            self.accepts.eq(to_pool | over.ready),
            self.calls.eq(back.valid),
            back.ready.eq(self.fills),
            goes_over.eq(self.put & ~to_pool),
            over.valid.eq(goes_over),
            over.list.eq(self.number),
            over.bits.eq(self.entry.raw_bits()),
            pool.number.eq(Mux(self.fills, back.list, self.number)),
            pool.entry.raw_bits().eq(Mux(self.fills, back.bits[:bits], self.entry.raw_bits())),
            pool.put.eq(self.fills | (self.put & to_pool)),
            here.eq(Mux(was_there, get_here.dat_r, 0)),
            there.eq(Mux((is_over >> number)[0], get_there.dat_r, 0)),
            here_next.eq(Mux(drops, here - 1, here + 1)),
            there_next.eq(Mux(filled, there - 1, there + 1)),
            *[port.adr.eq(number) for port in (put_here, get_here, put_there, get_there)],
            put_here.we.eq(puts | drops),
            put_here.dat_w.eq(here_next),
            put_there.we.eq(filled | went_over),
            put_there.dat_w.eq(there_next),
        ]
        self.sync += [
            self.fills.eq(self.idle & back.valid & (recent == 0) & ~self.fills),
            number.eq(pool.number),
            was_there.eq((pool.is_there >> pool.number)[0]),
            puts.eq(pool.put),
            drops.eq(pool.drop),
            went_over.eq(goes_over),
            filled.eq(self.fills),
            recent.eq(Cat(pool.put | pool.drop | goes_over, recent[0])),
            left.eq(left + pool.drop - pool.put),
            # All others can have theirs, and this one what is fetched. A cycle or two late.
            has_space.eq(left > (lists - 1)*RESERVE + GROUP + 2),
            to_pool.eq(~(is_over >> self.number)[0] & (has_space | (is_low >> self.number)[0])),
        ]
        for n in range(lists):
            self.sync += If(number == n,
                # As ``here_next`` and ``there_next`` say, and doesn't wait for their sums.
                If(put_here.we, is_low[n].eq(Mux(drops, here <= WINDOW, here < WINDOW - 1))),
                If(put_there.we, is_over[n].eq(~filled | (there != 1))),
            )

# Spill Store --------------------------------------------------------------------------------------

spill_layout = [
    ("list", LANE_BITS),
    ("bits", 32*ENTRY_WORDS),
]
QUEUE_WORDS = 512 # Of entries on their way to the memory; of those on their way from there.
RUNS        = 16  # Of entries that follow one another in a list, on their way to the memory.
FETCHES     = 8   # Bursts on their way from there, at most.

class SpillStore(LiteXModule):
    """Keeps entries of two `SpilledLists` in a memory: of the queues, then of the lanes; each list in a ring of its own.

    An entry takes ENTRY_WORDS. The ring of a list has space for an entry for each ENTRY_SPACE words of the ring of octets of its
    lane; whoever puts them counts them. What comes at once for one list goes in one burst, and comes back in bursts of GROUP.

    Parameters
    ----------
    port : BurstPort
        What it reads after ``takes`` of a word that it wrote is that word.
    address : int
        Where the rings are in the memory, words: those of queues, and those of lanes from ``words`` / 4 on.
    words : int
        Of the store of octets.

    Attributes
    ----------
    start : Signal(), in
        Pulse, with the reset: the lists are empty; what was asked for before comes to nothing.
    rings : Endpoint(ring_layout), in
        Where the rings of octets are; ``ready`` is not driven.
    overs, backs : two Endpoint(spill_layout), in and out
    wants : two Signal(9), in
        As of `SpilledLists`: of queues, of lanes.
    """
    def __init__(self, port, address, words):
        self.start = Signal()
        self.rings = stream.Endpoint(ring_layout)
        self.overs = [stream.Endpoint(spill_layout, name=f"{name}_over") for name in ("queue", "lane")]
        self.backs = [stream.Endpoint(spill_layout, name=f"{name}_back") for name in ("queue", "lane")]
        self.wants = [Signal(LANES, name=f"{name}_wants") for name in ("queue", "lane")]

        # # #

        self.port     = port
        self.regions  = [address, address + words//4]
        self.at       = Signal(LANE_BITS + 1) # List at hand: of which kind, then its number.
        self.fetching = [Signal(LANES, name=f"{name}_fetching") for name in ("queue", "lane")] # Some of it comes.
        self.count    = Signal(max=GROUP + 1) # Of entries of a burst.
        self.fetches  = stream.SyncFIFO([("at", len(self.at)), ("count", len(self.count))], FETCHES, buffered=False)
        self.add_over()
        self.add_back()
        self.add_bursts()

    def add_over(self):
        """Queue the words of entries, and note how many in a row are of one list."""
        layout = [("at", len(self.at)), ("count", max(1, GROUP.bit_length()))]
        self.queue = queue = stream.SyncFIFO([("data", 32)], QUEUE_WORDS, buffered=True)
        self.runs  = runs  = stream.SyncFIFO(layout, RUNS, buffered=False)
        self.run   = run   = Record(layout) # That is written.
        kind      = Signal() # Whose turn it is.
        of        = Signal.like(self.at)
        bits      = Signal(32*ENTRY_WORDS, reset_less=True)
        left      = Signal(max=ENTRY_WORDS + 1)
        is_open   = Signal()
        has_space = Signal()
        ends      = Signal()
        last      = Record(layout) # The run that goes on.
        goes_on   = Signal()
        self.takes_run = Signal()
        self.comb += [
            is_open.eq((left == 0) & has_space),
            *[over.ready.eq(is_open & (kind == n)) for n, over in enumerate(self.overs)],
            queue.sink.valid.eq(left != 0),
            queue.sink.data.eq(bits[:32]),
            ends.eq(left == 1),
            goes_on.eq((last.at == of) & (last.count != GROUP)),
            runs.sink.valid.eq(ends & ~goes_on & (last.count != 0)),
            *copied(runs.sink, last, "at", "count"),
            runs.source.ready.eq(run.count == 0),
        ]
        self.sync += [
            kind.eq(~kind),
            has_space.eq((queue.level < QUEUE_WORDS - 2*ENTRY_WORDS) & (runs.level < RUNS - 2)),
            If(left != 0,
                bits.eq(bits[32:]),
                left.eq(left - 1),
            ),
            *[If(over.valid & over.ready,
                of.eq(Cat(over.list, Constant(n, 1))),
                bits.eq(over.bits),
                left.eq(ENTRY_WORDS),
            ) for n, over in enumerate(self.overs)],
            If(run.count == 0,
                If(runs.source.valid,
                    run.at.eq(runs.source.at),
                    run.count.eq(runs.source.count),
                ).Elif(~ends,
                    run.raw_bits().eq(last.raw_bits()),
                    last.count.eq(0),
                ),
            ),
            If(ends,
                last.at.eq(of),
                last.count.eq(Mux(goes_on, last.count + 1, 1)),
            ),
            If(self.takes_run, run.count.eq(run.count - self.count)),
        ]

    def add_back(self):
        """Put words together again, and give entries to their lists."""
        fetches = self.fetches.source
        self.words = words = stream.SyncFIFO([("data", 32)], QUEUE_WORDS, buffered=True)
        bits  = Signal(32*ENTRY_WORDS, reset_less=True)
        have  = Signal(max=ENTRY_WORDS + 1)
        given = Signal.like(self.count)
        gives = Signal()
        # What was asked for before a start still comes.
        self.owed     = owed  = Signal(max=QUEUE_WORDS + 1, reset_less=True)
        self.is_stale = stale = Signal(reset_less=True)
        self.held     = held  = Signal.like(owed) # Words that were asked for, and are not put together yet.
        self.asks     = asks  = Signal()
        takes = Signal()
        asked = Signal.like(owed)
        self.comb += [
            asked.eq(Mux(asks, Cat(Constant(0, log2_int(ENTRY_WORDS)), self.count), 0)),
            words.sink.valid.eq(self.port.gives & ~stale),
            words.sink.data.eq(self.port.read_data),
            words.source.ready.eq(have != ENTRY_WORDS),
            takes.eq(words.source.valid & words.source.ready),
            *[back.valid.eq((have == ENTRY_WORDS) & (fetches.at[-1] == n)) for n, back in enumerate(self.backs)],
            *[statement for back in self.backs for statement in (back.list.eq(fetches.at), back.bits.eq(bits))],
            gives.eq(Mux(fetches.at[-1], self.backs[1].ready, self.backs[0].ready) & (have == ENTRY_WORDS)),
            fetches.ready.eq(gives & (given == fetches.count - 1)),
        ]
        self.sync += [
            owed.eq(owed + asked - self.port.gives),
            If(self.start, stale.eq(1)).Elif(owed == 0, stale.eq(0)),
            held.eq(held + asked - takes),
            If(takes,
                bits.eq(Cat(bits[32:], words.source.data)),
                have.eq(have + 1),
            ),
            If(gives,
                have.eq(0),
                given.eq(Mux(fetches.ready, 0, given + 1)),
            ),
        ]
        for kind, fetching in enumerate(self.fetching):
            for n in range(LANES):
                self.sync += [
                    If(fetches.ready & (fetches.at == (kind << LANE_BITS | n)), fetching[n].eq(0)),
                    If(asks & (self.at == (kind << LANE_BITS | n)), fetching[n].eq(1)),
                ]

    def add_bursts(self):
        """Write runs, and read what lists want, a burst of either in turn."""
        port, at, run, count = self.port, self.at, self.run, self.count
        look     = Signal(LANE_BITS) # Lists that are looked at, of both kinds.
        wanted   = Signal.like(at)   # Is to be read,
        is_wanted = Signal()
        writes   = Signal()
        wrote    = Signal()
        position = Signal(PLACE_BITS, reset_less=True) # Of the first entry,
        there    = Signal(PLACE_BITS, reset_less=True) # and how many there are to be written or read.
        base     = Signal(ADDRESS_BITS, reset_less=True)
        mask     = Signal(ADDRESS_BITS, reset_less=True)
        place    = Signal(ADDRESS_BITS, reset_less=True)
        to_group = Signal(max=GROUP + 1)
        given    = Signal(max=GROUP*ENTRY_WORDS)
        clears   = Signal()
        reads    = Signal()
        puts     = Signal()
        size     = Signal(RING_BITS)
        put_ring, ring       = lut_ports(self, "rings", ADDRESS_BITS + RING_BITS, LANES)
        put_written, written = lut_ports(self, "written", PLACE_BITS, 2 << LANE_BITS) # Entries of each list, modulo,
        put_read, read       = lut_ports(self, "read", PLACE_BITS, 2 << LANE_BITS)    # and those that were read.
        share = log2_int(ENTRY_SPACE//ENTRY_WORDS) # So much smaller is the ring of a list.
        self.comb += [
            put_ring.adr.eq(self.rings.lane),
            put_ring.dat_w.eq(Cat(self.rings.base, self.rings.bits)),
            put_ring.we.eq(self.rings.valid),
            ring.adr.eq(at[:LANE_BITS]),
            size.eq(ring.dat_r[ADDRESS_BITS:]),
            *[one.adr.eq(at) for one in (written, put_written, read, put_read)],
            put_written.we.eq(clears | puts),
            put_read.we.eq(clears | reads),
            put_written.dat_w.eq(Mux(clears, 0, position + count)),
            put_read.dat_w.eq(Mux(clears, 0, position + count)),
            to_group.eq(GROUP - position[:log2_int(GROUP)]),
            port.request.address.eq(place),
            port.request.rest.eq(Cat(Constant(ENTRY_WORDS - 1, log2_int(ENTRY_WORDS)), (count - 1)[:log2_int(GROUP)])),
            port.request.write.eq(writes),
            port.write_data.eq(self.queue.source.data),
            self.asks.eq(reads),
            self.fetches.sink.valid.eq(reads),
            self.fetches.sink.at.eq(at),
            self.fetches.sink.count.eq(count),
            self.takes_run.eq(puts),
        ]
        self.sync += If(~is_wanted,
            look.eq(Mux(look == LANES - 1, 0, look + 1)),
            *[If(((wants & ~fetching) >> look)[0], is_wanted.eq(1), wanted.eq(Cat(look, Constant(kind, 1))))
                for kind, (wants, fetching) in enumerate(zip(self.wants, self.fetching))],
        )
        can_read  = Signal()
        has_space = Signal()
        self.comb += has_space.eq(self.held < QUEUE_WORDS - GROUP*ENTRY_WORDS)
        self.fsm = fsm = FSM(reset_state="CLEAR")
        fsm.act("CLEAR",
            clears.eq(1),
            NextValue(at, at + 1),
            If(at == 2**len(at) - 1, NextState("CHOOSE")),
        )
        fsm.act("CHOOSE",
            # Never does it wait for what was read before: who is to take that may wait for a write.
            can_read.eq(is_wanted & has_space & self.fetches.sink.ready & ~self.is_stale),
            writes.eq((run.count != 0) & ~(wrote & can_read)),
            NextValue(wrote, writes),
            NextValue(at, Mux(writes, run.at, wanted)),
            If(writes | can_read, NextState("LOOK")),
        )
        # It stands as long as the state machine is at the burst.
        writes_now = Signal()
        self.sync += If(fsm.ongoing("CHOOSE"), writes_now.eq(writes))
        self.comb += If(~fsm.ongoing("CHOOSE"), writes.eq(writes_now))
        fsm.act("LOOK",
            NextValue(position, Mux(writes, written.dat_r, read.dat_r)),
            NextValue(there, Mux(writes, run.count, written.dat_r - read.dat_r)),
            NextValue(base, ring.dat_r[share:ADDRESS_BITS]),
            NextValue(mask, ((1 << size) - 1) >> share),
            NextState("COUNT"),
        )
        fsm.act("COUNT",
            NextValue(count, Mux(there < to_group, there, to_group)),
            NextValue(place, (Cat(Constant(0, log2_int(ENTRY_WORDS)), position) & mask) | base),
            NextState("PLACE"),
        )
        fsm.act("PLACE",
            NextValue(place, place + Mux(at[-1], *reversed(self.regions))),
            If(count == 0, # It isn't written yet.
                NextValue(is_wanted, 0),
                NextState("CHOOSE"),
            ).Else(
                NextState("ASK"),
            ),
        )
        fsm.act("ASK",
            port.request.valid.eq(1),
            If(port.request.valid & port.request.ready,
                If(writes,
                    NextState("GIVE"),
                ).Else(
                    reads.eq(1),
                    NextValue(is_wanted, 0),
                    NextState("CHOOSE"),
                ),
            ),
        )
        fsm.act("GIVE",
            self.queue.source.ready.eq(port.takes),
            If(port.takes,
                NextValue(given, given + 1),
                If(given == port.request.rest,
                    NextValue(given, 0),
                    puts.eq(1),
                    NextState("CHOOSE"),
                ),
            ),
        )
