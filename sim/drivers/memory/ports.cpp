// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Masters at each burst port of a memory and one at its bus, against a chip that knows its times.
//
// Options:
// mhz, sys_ps, memory_ps (0: no domain of its own), phase_ps; seed, cycles (of sys), most (words of a burst), fixed (all bursts are
// so long), mix (0: each draws; 1: ports 0 and 1 write, 2 and 3 read), idle (256: masters never pause), bus (256: an access after
// the other; 0: none), order (of 256, accesses of the bus to words that ports read or write). Of the chip: banks, cl, turn. apart (1:
// ports aren't ordered, each has an area of its own), streams (1: words follow each other).
// The output is JSON. Ends with 1, and says why, when a word or a signal isn't as it should be.

#include "../tools/harness.h"

#include "chip.h"

namespace {

uint64_t memory_now; // Cycles of the chip's clock.

struct Span {
    uint64_t worst = 0, total = 0, count = 0;
    void add(uint64_t took)
    {
        worst = took > worst ? took : worst;
        total += took;
        count++;
    }
};

// What is in the memory ------------------------------------------------------------------------------

constexpr unsigned PORTS = 4, BUS_WORDS = 1 << 18, WORDS = 1 << 20;
// Areas behind BUS_WORDS: one of each port, one of all ports, one that the bus writes and ports read.
constexpr unsigned OWN = 1 << 16, SHARED = BUS_WORDS + PORTS * OWN, SHARED_WORDS = 1 << 10, TABLE = SHARED + OWN, TABLE_WORDS = 1 << 10;
constexpr unsigned NEAR = 256; // Words of each area where half of the accesses are.

// Words as the takers were told of them, request by request: of the ports, and of what the bus was answered.
std::vector<uint32_t> truth(WORDS);

// The bus --------------------------------------------------------------------------------------------

struct Bus {
    bool is_active = false, is_write = false, is_ordered = false;
    uint32_t address = 0, data = 0, sel = 15, old = 0;
    std::vector<uint32_t> may; // Words that a read may give: as it was at the beginning, or written since.
    uint64_t began = 0;
    Span alone, ordered;

    uint32_t merged() const
    {
        uint32_t mask = 0;
        for (unsigned n = 0; n < 4; n++)
            mask |= sel >> n & 1 ? 0xffu << 8 * n : 0;
        return (old & ~mask) | (data & mask);
    }

    // The bus takes its turn before a burst that was asked for earlier, or amid it.
    void overtakes();
    void add_unsure();

    void drive(unsigned rate, unsigned order)
    {
        if (!is_active && chance(rate)) {
            is_active = true;
            began = now;
            is_ordered = chance(order);
            is_write = chance(128);
            sel = is_write && chance(128) ? draw() & 15 : 15;
            data = draw();
            address = draw() % 64 * 4093 % BUS_WORDS;
            if (is_ordered)
                address = is_write || chance(64) ? TABLE + draw() % TABLE_WORDS : BUS_WORDS + draw() % PORTS * OWN + draw() % NEAR;
            old = truth[address];
            may = {old};
            if (is_write)
                overtakes();
            else
                add_unsure();
        }
        top.bus_stb = is_active;
        top.bus_we = is_write;
        top.bus_sel = is_write ? sel : 15;
        // Nothing holds when nobody asks.
        top.bus_adr = is_active ? address : draw();
        top.bus_dat_w = is_active ? data : draw();
    }

    void sample()
    {
        check(!top.bus_ack || is_active, "an answer that nobody asked for");
        if (!top.bus_ack)
            return;
        if (is_write) {
            truth[address] = merged();
        } else {
            bool is_right = false;
            for (uint32_t word : may)
                is_right |= word == top.bus_dat_r;
            check(is_right, "the bus read %08x from %05x, not %08x (or of %zu newer ones)", top.bus_dat_r, address, old, may.size() - 1);
        }
        (is_ordered ? ordered : alone).add(now - began);
        is_active = false;
    }

    void wrote(uint32_t at, uint32_t word)
    {
        if (is_active && !is_write && at == address)
            may.push_back(word);
    }
};

Bus bus;

// A master at a port ---------------------------------------------------------------------------------

struct Pins {
    CData &valid, &ready, &rest, &write, &takes, &gives, &busy;
    IData &address, &write_data, &read_data;
};

#define PINS(p) {top.p##_valid, top.p##_ready, top.p##_rest, top.p##_write, top.p##_takes, top.p##_gives, top.p##_busy, \
    top.p##_address, top.p##_write_data, top.p##_read_data}

struct Expected {
    uint32_t address;
    std::vector<uint32_t> may; // The word, and what the bus may or may not have written before it was read.
    uint64_t asked;
    bool is_last;
};

struct Master {
    Pins pins;
    unsigned number;
    bool is_asking = false, writes = false, must_land = false;
    uint32_t address = 0, count = 0, left = 0, at = 0;
    uint64_t asked = 0, words = 0;
    std::vector<uint32_t> data;
    std::deque<Expected> expected;
    std::vector<uint32_t> landed; // Addresses of its own area, of the last request that wrote.
    std::map<uint32_t, std::vector<uint32_t>> unsure; // Words before those that it wrote since it wasn't busy.
    Span wait, whole; // Until a request is taken; until its last word was given or taken.

    uint32_t next = 0, rest = 0; // Of a stream: where it goes on, and words of this frame.

    void begin(unsigned most, unsigned fixed, unsigned mix)
    {
        is_asking = true;
        asked = now;
        writes = mix ? number < 2 : chance(128);
        count = fixed ? fixed : 1 + draw() % most;
        unsigned area = mix ? 0 : option("apart", 0) ? draw() & 6 : draw() & 7;
        uint32_t base = area == 7 ? SHARED : area == 6 && !writes ? TABLE : BUS_WORDS + number * OWN;
        uint32_t words = area == 7 ? SHARED_WORDS : area == 6 && !writes ? TABLE_WORDS : OWN;
        if (mix && !writes && !option("apart", 0))
            base = BUS_WORDS + (number - 2) * OWN; // What another one writes.
        if (option("streams", 0)) { // In lines of 64 words, as frames of one length in a ring.
            uint32_t to_line = 64 - (next & 63);
            rest = rest ? rest : fixed;
            count = rest < to_line ? rest : to_line;
            rest -= count;
        }
        address = option("streams", 0) ? base + next % OWN : base + draw() % (base >= SHARED || chance(128) ? words : NEAR);
        if ((address & 255) + count > 256) // Within a row.
            address -= (address & 255) + count - 256;
        next += count;
        data.clear();
        for (uint32_t n = 0; writes && n < count; n++)
            data.push_back(draw());
    }

    void drive(unsigned idle, unsigned most, unsigned fixed, unsigned mix)
    {
        if (!is_asking && !left && chance(idle))
            begin(most, fixed, mix);
        pins.valid = is_asking;
        pins.write = is_asking ? writes : draw() & 1;
        pins.address = is_asking ? address : draw() & (WORDS - 1);
        pins.rest = is_asking ? count - 1 : draw() & 63;
        // The next word is there in the cycle after one was taken.
        pins.write_data = (is_asking || left) && writes ? data[at] : draw();
    }

    void sample()
    {
        bool takes = pins.takes, gives = pins.gives;
        if (takes) {
            check(left > 0, "port %u: a word is taken that nobody offers", number);
            unsure[address + at].push_back(truth[address + at]);
            truth[address + at] = data[at];
            bus.wrote(address + at, data[at]);
            at++, left--, words++;
            if (!left)
                whole.add(now - asked), at = 0, must_land = landed.size();
        }
        if (gives) {
            check(!expected.empty(), "port %u: a word is given that nobody asked for", number);
            Expected &one = expected.front();
            bool is_right = false;
            for (uint32_t word : one.may)
                is_right |= word == pins.read_data;
            check(is_right, "port %u: read %08x from %05x, not %08x", number, pins.read_data, one.address, one.may[0]);
            if (one.is_last)
                whole.add(now - one.asked);
            expected.pop_front();
            words++;
        }
        if (must_land && !pins.busy)
            must_land = false, land();
        if (!left && !pins.busy)
            unsure.clear();
        if (is_asking && pins.ready)
            take();
    }

    void take()
    {
        is_asking = false;
        wait.add(now - asked);
        must_land = false, landed.clear();
        if (writes) {
            left = count, at = 0;
            bool is_own = address >= BUS_WORDS + number * OWN && address + count <= BUS_WORDS + (number + 1) * OWN;
            for (uint32_t n = 0; is_own && n < count; n++)
                landed.push_back(address + n);
            return;
        }
        for (uint32_t n = 0; n < count; n++) {
            expected.push_back({address + n, {truth[address + n]}, asked, n + 1 == count});
            if (bus.is_active && bus.is_write && bus.address == address + n)
                expected.back().may.push_back(bus.merged());
        }
    }

    void land();
};

Master masters[PORTS] = {{PINS(p0), 0}, {PINS(p1), 1}, {PINS(p2), 2}, {PINS(p3), 3}};

void Bus::overtakes()
{
    for (Master &master : masters)
        for (Expected &one : master.expected)
            if (one.address == address)
                one.may.push_back(merged());
}

void Bus::add_unsure()
{
    for (Master &master : masters)
        if (master.unsure.count(address))
            for (uint32_t word : master.unsure[address])
                may.push_back(word);
}

SdramChip *chip;

uint32_t in_chip(uint32_t address) { return chip->words[address]; }

// What it wrote is in the chip when it is busy no more.
void Master::land()
{
    for (uint32_t word : landed)
        check(in_chip(word) == truth[word], "port %u isn't busy, but %05x isn't written yet", number, word);
}

// Clocks ---------------------------------------------------------------------------------------------

uint64_t sys_ps, memory_ps, sys_at, memory_at;

void edge(unsigned most, unsigned fixed, unsigned mix, unsigned idle, unsigned rate, unsigned order)
{
    bool is_sys = sys_at <= memory_at, is_memory = memory_at <= sys_at;
    top.eval();
    if (is_sys) {
        bus.sample();
        for (Master &master : masters)
            master.sample();
    }
    uint32_t rddata = top.dfi_rddata;
    if (is_memory) {
        check(!top.lost, "a word that was read found no room");
        check(!top.empty, "the controller takes a word that isn't there");
        chip->clock(memory_now);
        memory_now++;
    }
    std::swap(rddata, top.dfi_rddata); // Seen after the edge.
    top.sys_clk = is_sys;
    top.memory_clk = is_memory;
    top.eval();
    top.sys_clk = top.memory_clk = 0;
    top.dfi_rddata = rddata;
    if (is_sys) {
        now++;
        sys_at += sys_ps;
        bus.drive(rate, order);
        for (Master &master : masters)
            master.drive(idle, most, fixed, mix);
    }
    if (is_memory)
        memory_at += memory_ps;
    top.eval();
}

void show(const char *name, const Span &span)
{
    printf("\"%s\": [%lu, %lu, %lu], ", name, (unsigned long)span.worst, (unsigned long)span.total, (unsigned long)span.count);
}

} // namespace

static void bench()
{
    noise = option("seed", 1) * 0x9e3779b97f4a7c15 | 1;
    sys_ps = option("sys_ps", 20000);
    memory_ps = option("memory_ps", 0);
    bool has_domain = memory_ps != 0;
    memory_ps = has_domain ? memory_ps : sys_ps;
    memory_at = has_domain ? option("phase_ps", 0) : 0;
    chip = new SdramChip(option("mhz", 50), option("slack", 80), option("banks", 2), option("cl", 2), option("turn", 3));
    unsigned most = option("most", 64), fixed = option("fixed", 0), mix = option("mix", 0);
    unsigned idle = option("idle", 256), rate = option("bus", 0), order = option("order", 128);

    top.sys_rst = top.memory_rst = 1;
    for (int n = 0; n < 40; n++)
        edge(most, fixed, mix, 0, 0, 0);
    top.sys_rst = top.memory_rst = 0;
    // Some ask before the SDRAM is started.
    unsigned early = option("early", 0);
    for (int n = 0; n < 100000 && !top.sdram_ready; n++)
        edge(most, fixed, mix, early, early, order);
    check(top.sdram_ready, "the SDRAM isn't started");
    for (uint64_t end = now + 200; now < end;)
        edge(most, fixed, mix, early, early, order);

    uint64_t from = now, memory_from = memory_now, words[PORTS], total = 0;
    for (Master &master : masters) {
        words[master.number] = master.words;
        master.wait = master.whole = Span();
    }
    bus.alone = bus.ordered = Span();
    for (uint64_t end = now + option("cycles", 100000); now < end;)
        edge(most, fixed, mix, idle, rate, order);
    uint64_t took = now - from, memory_took = memory_now - memory_from;
    printf("{\"words\": [");
    for (Master &master : masters) {
        words[master.number] = master.words - words[master.number];
        total += words[master.number];
        printf("%s%lu", master.number ? ", " : "", (unsigned long)words[master.number]);
    }
    printf("], \"total\": %lu, \"cycles\": %lu, \"memory_cycles\": %lu, ", (unsigned long)total, (unsigned long)took, (unsigned long)memory_took);
    for (Master &master : masters) {
        show(("wait" + std::to_string(master.number)).c_str(), master.wait);
        show(("whole" + std::to_string(master.number)).c_str(), master.whole);
    }
    show("bus", bus.alone);
    show("bus_ordered", bus.ordered);

    // All that was begun ends, and all words are in the chip.
    for (uint64_t end = now + 5000; now < end;)
        edge(most, fixed, mix, 0, 0, 0);
    check(!bus.is_active, "the bus has no answer");
    for (Master &master : masters)
        check(!master.is_asking && !master.left && master.expected.empty() && !master.pins.busy, "port %u isn't through", master.number);
    for (uint32_t n = 0; n < WORDS; n++)
        check(in_chip(n) == truth[n], "word %05x is %08x in the chip, not %08x", n, in_chip(n), truth[n]);
    printf("\"reads\": %lu, \"writes\": %lu, \"refreshes\": %lu}\n", (unsigned long)chip->reads, (unsigned long)chip->writes, (unsigned long)chip->refreshes);
}
