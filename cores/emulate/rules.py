# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Names the class of each frame by rules in sequence, of which the first that holds counts."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import wishbone

from liteprobe.cores.assign import copied
from liteprobe.cores.emulate.layouts import CLASS_BITS
from liteprobe.cores.formats import IpProtocol, UnifiedFlag
from liteprobe.cores.formats.emulate import (
    RULES, RULES_MOST, RULE_BLOCK_WORDS, RULE_BOUNDS, RULE_FLAGS_WORD, RULE_HALVES, RULE_KINDS_WORD, RULE_LAYERS_WORD, RULE_RANGES,
    RULE_TURNS, RULE_VERDICTS, UNMATCHED_CLASS,
)
from liteprobe.cores.octets import swapped
from liteprobe.cores.receive.unified.walk import any_of, place

WORDS_BITS   = 5 # Of the number of a word of a header.
VERDICT_BITS = CLASS_BITS + 1
BEYOND, EQUAL = RULE_HALVES, RULE_HALVES + 1 # Lanes of bounds.

# Rule Memory --------------------------------------------------------------------------------------

class RuleMemory(LiteXModule):
    """Keeps what the rules say of the values of half an octet, a lane for each half that is looked up in a cycle.

    Attributes
    ----------
    bus : wishbone.Interface, slave
        As of cores/formats/emulate.py. An access takes four cycles. What was written is read while ``is_idle``, else 0.
    is_idle : Signal(), in
        No rule is asked: the bus may have the lanes.
    reads : Signal(), out
        It has them. Then all lanes but the one that is read say nothing, so that what the matcher makes of them is that lane's:
    in_words, in_bounds : Signal(rules), Signal(rules), in
        Of lanes of words, of lanes of bounds, in the cycle in which they are known.
    addresses, rules : list of Signal(9), list of Signal(rules), in and out
        Of each lane: what is at its address, a cycle later.
    turn, verdicts : Signal(4), Signal, in and out
        The verdicts of the rules of a turn, a cycle later.
    """
    def __init__(self, rules):
        self.bus       = bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.words     = RULE_BLOCK_WORDS*rules//RULES
        self.addresses = [Signal(9, name=f"rule_address_{lane}") for lane in range(EQUAL + 1)]
        self.rules     = []
        self.is_idle   = Signal()
        self.reads     = Signal()
        self.in_words  = Signal(rules)
        self.in_bounds = Signal(rules)
        self.turn      = Signal(max=RULE_TURNS)
        self.verdicts  = Signal(VERDICT_BITS*rules//RULE_TURNS)

        # # #

        address = Signal(max=self.words) # Bits above are those of the memory's place.
        data    = Signal(32)
        writes  = Signal()
        age     = Signal(2) # Of the access.
        is_bound = address[log2_int(RULE_BOUNDS)]
        block_of = address[log2_int(RULE_BLOCK_WORDS):]
        def is_block(block):
            return block_of == block if rules > RULES else 1
        is_verdict = is_bound & address[log2_int(RULE_VERDICTS - RULE_BOUNDS)]
        self.sync += [
            address.eq(bus.adr),
            data.eq(bus.dat_w),
            age.eq(Cat(bus.cyc & bus.stb & ~bus.ack & (age == 0), age[0])),
            bus.ack.eq(age[1]),
            bus.dat_r.eq(0),
        ]
        self.comb += [
            writes.eq(age[0] & bus.we),
            self.reads.eq((age != 0) & ~bus.we & self.is_idle),
        ]
        for lane, reads in enumerate(self.addresses):
            found = []
            if lane < RULE_HALVES:
                is_lane, at = ~is_bound & (address[4:7] == lane), Cat(address[:4], address[7:12])
            else:
                is_lane, at = is_bound & ~is_verdict & (address[4] == (lane == EQUAL)), Cat(address[:4], address[5:10])
            address_ = Signal(len(at), name=f"read_address_{lane}")
            self.comb += address_.eq(Mux(self.reads, at & Replicate(is_lane, len(at)), reads))
            for block in range(rules//RULES):
                # At 0 a lane of words has all rules, of bounds none: no frame has a word 0, and the first steps are of no bound.
                memory = Memory(RULES, 2**len(at), init=[2**RULES - 1] if lane < RULE_HALVES else None)
                memory.attr = {("ram_style", "block")}
                writer, reader = memory.get_port(write_capable=True, mode=READ_FIRST), memory.get_port(mode=READ_FIRST)
                self.specials += memory, writer, reader
                self.comb += [
                    writer.adr.eq(at),
                    writer.dat_w.eq(data),
                    writer.we.eq(writes & is_lane & is_block(block)),
                    reader.adr.eq(address_),
                ]
                found.append(reader.dat_r)
            self.rules.append(Cat(*found))
        verdicts = Memory(len(self.verdicts), RULE_TURNS)
        writer, reader = verdicts.get_port(write_capable=True), verdicts.get_port(async_read=True)
        self.specials += verdicts, writer, reader
        self.comb += [
            writer.adr.eq(address[:4]),
            writer.dat_w.eq(data),
            writer.we.eq(writes & is_verdict & is_block(0)),
            reader.adr.eq(Mux(self.reads, address[:4], self.turn)),
        ]
        self.sync += self.verdicts.eq(reader.dat_r)
        parts  = [slice(RULES*block, RULES*(block + 1)) for block in range(rules//RULES)]
        blocks = [Mux(is_bound, self.in_bounds[part], self.in_words[part]) for part in parts]
        self.sync += If(age[1] & self.reads,
            bus.dat_r.eq(Mux(is_verdict, self.verdicts, Array(blocks)[block_of] if len(blocks) > 1 else blocks[0])),
        )

# Rule Matcher -------------------------------------------------------------------------------------

class RuleMatcher(LiteXModule):
    """Compares the header of a frame with all rules at once, a word of the header a cycle; then asks the rules in their order.

    A frame takes 32 cycles, whatever the rules are, and each may ask for all of the header. Half an octet is the address of a
    memory that says which rules it may be for; those that all halves may be for hold. (T. Ganegedara, V. K. Prasanna: StrideBV:
    Single chip 400G+ packet classification, HPSR 2012; stride 4.) A bound of a range goes through the halves of its field, the
    lowest first, and remembers of each rule whether it holds so far.

    Parameters
    ----------
    rules : int
        A multiple of 32, up to 128.

    Attributes
    ----------
    memory : RuleMemory
        ``memory.bus``.
    looks : Signal(32), in
        As register ``rule_words``; still while frames come.
    write, address, data : Signal(), Signal(5), Signal(32), in
        Words of the header as they pass, as of `UnifiedWalk`.
    closes : Signal(), in
        The frame ends with this cycle, and ``start`` comes with the next.
    start : Signal(), in
        Asks for its class; from 32 cycles apart.
    status, length, flags : Signal(64), Signal(16), Signal(12), in
        Words 4 and 5 of the unified header of that frame, its length and its flags, from the cycle after ``start`` up to the next.
    done, number : Signal(), Signal(3), out
        One cycle, 52 after ``start``; and its class, held until the next ``done``.
    """
    def __init__(self, rules=RULES):
        assert rules % RULES == 0 and rules <= RULES_MOST
        self.memory  = memory = RuleMemory(rules)
        self.looks   = Signal(32)
        self.write   = Signal()
        self.address = Signal(WORDS_BITS)
        self.data    = Signal(32)
        self.closes  = Signal()
        self.start   = Signal()
        self.status  = Signal(64)
        self.length  = Signal(16)
        self.flags   = Signal(12)
        self.done    = Signal()
        self.number  = Signal(CLASS_BITS, reset=UNMATCHED_CLASS)

        # # #

        # Steps: in each a word is read; in the next it is looked up; in the third rules are known.
        # -----------------------------------------------------------------------------------------
        goes   = [Signal(name=f"goes_{age}") for age in range(3)]
        step   = [Signal(WORDS_BITS, name=f"step_{age}") for age in range(3)]
        self.sync += [
            goes[1].eq(goes[0]), goes[2].eq(goes[1]), step[1].eq(step[0]), step[2].eq(step[1]),
            If(goes[0], step[0].eq(step[0] + 1), If(step[0] == 2**WORDS_BITS - 1, goes[0].eq(0))),
            If(self.start, goes[0].eq(1), step[0].eq(0)),
        ]
        word = self.add_record(step)
        for half in range(RULE_HALVES):
            self.comb += memory.addresses[half].eq(Cat(word[4*half:4*half + 4], in_order(step[1])))

        # Rules that all words may be for, and all bounds hold for.
        # ---------------------------------------------------------
        matching = Signal(rules, reset_less=True)
        in_range = Signal(rules, reset_less=True)
        is_begun = Signal()
        is_used  = Signal(reset_less=True)
        number   = in_order(step[1])
        self.comb += [
            memory.in_words.eq(Reduce("AND", memory.rules[:RULE_HALVES])),
            is_begun.eq(goes[2] & (step[2] == 0)), # Word 0 is none.
        ]
        self.sync += [
            memory.is_idle.eq(self.looks == 0),
            is_used.eq((self.looks >> number) & (number > 2)),
            If(is_used & goes[2], matching.eq(matching & memory.in_words)),
            If(is_begun, matching.eq(2**rules - 1), in_range.eq(2**rules - 1)),
        ]
        self.add_bounds(word, step, goes, in_range)
        self.add_verdict(matching & in_range, goes[2] & (step[2] == 2**WORDS_BITS - 1))

    def joined(self, parser):
        """Return statements that join it to a parser with headers."""
        return [
            self.write.eq(parser.walk.sink.valid & (parser.walk.address != 0)),
            *copied(self, parser.walk, "address", "data"),
            self.closes.eq(parser.classifies),
            self.start.eq(parser.asks),
            self.status.eq(parser.headers.status),
            *copied(self, parser, "length", "flags"),
        ]

    def add_record(self, step):
        """Keep the words of the frame that passes, and return those of the one before, in their order."""
        record = Memory(32, 2 << WORDS_BITS)
        record.attr = {("ram_style", "block")}
        writer, reader = record.get_port(write_capable=True, mode=READ_FIRST), record.get_port(mode=READ_FIRST)
        self.specials += record, writer, reader
        passing = Signal() # Half of the memory that the frame that passes has.
        present = Signal(reset_less=True)
        word    = Signal(32)
        self.comb += [
            writer.adr.eq(Cat(self.address, passing)),
            writer.dat_w.eq(self.data),
            writer.we.eq(self.write),
            reader.adr.eq(Cat(in_order(step[0]), present)),
        ]
        self.sync += [
            If(self.closes, passing.eq(~passing)),
            If(self.start, present.eq(~passing)),
        ]
        status    = self.status
        tags, labels, layer3, protocol = status[26:29], status[29:32], status[24:26], status[16:24]
        has_ports = self.flags[log2_int(int(UnifiedFlag.TRANSPORT))] & any_of(
            protocol, IpProtocol.TCP, IpProtocol.UDP, IpProtocol.SCTP)
        self.comb += Case(in_order(step[1]), {
            RULE_FLAGS_WORD  : word.eq(self.flags),
            RULE_LAYERS_WORD : word.eq(Cat(status[:24], tags, Constant(0, 1), labels)),
            RULE_KINDS_WORD  : word.eq(Cat(status[32:40], layer3, has_ports, Constant(0, 5), status[48:])),
            "default"        : word.eq(reader.dat_r),
        })
        return word

    def add_bounds(self, word, step, goes, in_range):
        """Compare fields with the bounds of all rules, half an octet a step, once the ports are known: from step 8 on."""
        ports = Signal(32, reset_less=True)
        self.sync += If(in_order(step[1]) == place("source_port"), ports.eq(word))
        fields = [swapped(ports[:16]), swapped(ports[16:]), self.length]
        half   = Signal(4)
        self.comb += [
            Case(Cat(step[1][:2], step[1][3:]), {
                4*(1 + field) + number: half.eq(value[4*number:4*number + 4])
                for field, value in enumerate(fields) for number in range(4)
            }),
            *[self.memory.addresses[lane].eq(Cat(half, step[1])) for lane in (BEYOND, EQUAL)],
        ]
        holds    = Signal(len(in_range), reset_less=True) # Of a bound, as far as it went.
        now      = self.memory.in_bounds
        is_first = Signal()
        is_used  = Signal()
        beyond, equal = self.memory.rules[BEYOND], self.memory.rules[EQUAL]
        self.comb += [
            is_first.eq((step[2][:2] == 0) | self.memory.reads),
            now.eq(beyond | (equal & (holds | Replicate(is_first, len(now))))),
            is_used.eq(Cat(Constant(0, 1), self.looks[:len(RULE_RANGES)]) >> step[2][3:]),
        ]
        self.sync += [
            holds.eq(now),
            If(goes[2] & (step[2][:2] == 3) & is_used, in_range.eq(in_range & now)),
        ]

    def add_verdict(self, rules, ends):
        """Ask the rules in their order, some in a turn: the first that holds names the class, or says that it isn't that one."""
        memory  = self.memory
        count   = len(memory.verdicts)//VERDICT_BITS
        waiting = Signal(len(rules), reset_less=True)
        turn    = memory.turn
        is_full = Signal() # All rules are known.
        asks    = Signal()
        found   = Signal(reset_less=True)
        denies  = Signal(reset_less=True) # The frame is not of this class.
        denied  = Signal(CLASS_BITS, reset_less=True)
        number  = Signal(CLASS_BITS, reset_less=True)
        state   = (found, number, denies, denied)
        for place_ in range(count):
            has, of, skips, skipped = state
            verdict = memory.verdicts[VERDICT_BITS*place_:VERDICT_BITS*(place_ + 1)]
            class_, is_denial = verdict[:CLASS_BITS], verdict[CLASS_BITS]
            holds = Signal(name=f"holds_{place_}")
            after = (Signal(name=f"found_{place_}"), Signal(CLASS_BITS, name=f"number_{place_}"),
                Signal(name=f"denies_{place_}"), Signal(CLASS_BITS, name=f"denied_{place_}"))
            self.comb += [
                holds.eq(waiting[place_] & ~has & ~(skips & (skipped == class_))),
                after[0].eq(has | (holds & ~is_denial)),
                after[1].eq(Mux(has, of, class_)),
                after[2].eq(skips | (holds & is_denial)),
                after[3].eq(Mux(holds, class_, skipped)),
            ]
            state = after
        self.sync += [
            is_full.eq(ends),
            self.done.eq(0),
            If(asks,
                found.eq(state[0]),
                number.eq(state[1]),
                denies.eq(state[2]),
                denied.eq(state[3]),
                waiting.eq(waiting[count:]),
                turn.eq(turn + 1),
                If(turn == 0, # It is one ahead.
                    turn.eq(0),
                    asks.eq(0),
                    self.done.eq(1),
                    self.number.eq(Mux(state[0], state[1], UNMATCHED_CLASS)),
                ),
            ),
            If(is_full,
                asks.eq(1),
                turn.eq(1),
                found.eq(0),
                denies.eq(0),
                waiting.eq(rules & Replicate(self.looks != 0, len(rules))),
            ),
        ]

def in_order(step):
    """Return the word that is read in a step: the ports before the bounds are, and word 0, which is none, first."""
    return Cat(*reversed([step[bit] for bit in range(WORDS_BITS)]))
