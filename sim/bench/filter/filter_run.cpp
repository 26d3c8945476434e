// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Gives a filter_bench words of the bus and keys of frames, and writes what it answers.
//
// Usage: Vfilter_bench ORDERS ANSWERS. All words are u32. Orders:
// 1 CONTROL; 2 COUNT, COUNT accesses; 3 CYCLES: idle; 4 COUNT0 COUNT1 ACCESSES, keys of port 0, keys of port 1, accesses.
// An access: {address, bit 31: it is a write; data}; with bit 30 not of the bus: the control register takes data. A key: {cycles from the start before to this one; KEY_WORDS words}.
// ANSWERS: for each read its word; for each key {answer in bits 15..0, cycles from start to done above}, those of port 0
// first, before the reads of the same order. Accesses of order 4 go on while frames come, and end with them or later.
// Ends with 1 when an access isn't answered within 1000 cycles. The last line of the output: "<cycles> <longest access>".

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "Vfilter_bench.h"

static constexpr unsigned KEY_WORDS = sizeof(Vfilter_bench::key0) / 4;
static constexpr unsigned PORTS = 2;

static Vfilter_bench top;
static FILE *orders, *answers;
static uint64_t cycles, longest;

struct Access {
    uint32_t address, data;
};

struct Key {
    uint32_t distance, words[KEY_WORDS];
};

struct Port {
    std::vector<Key> keys;
    std::vector<uint64_t> starts;
    std::vector<uint32_t> found;
    uint64_t next = 0;
};

static uint32_t word()
{
    uint32_t value;
    if (fread(&value, 4, 1, orders) != 1)
        exit(2);
    return value;
}

static void put(uint32_t value)
{
    fwrite(&value, 4, 1, answers);
}

// One after the other, without a pause.
class Bus {
  public:
    std::vector<Access> accesses;
    std::vector<uint32_t> read;

    bool done() const { return at == accesses.size(); }

    void drive()
    {
        while (!done() && accesses[at].address >> 30 & 1)
            top.control = accesses[at++].data;
        top.bus_stb = !done();
        if (done())
            return;
        top.bus_adr = accesses[at].address & 0x1fff;
        top.bus_we = accesses[at].address >> 31;
        top.bus_dat_w = accesses[at].data;
    }

    void sample()
    {
        if (done())
            return;
        if (++waited > 1000) {
            fprintf(stderr, "access %x is not answered\n", accesses[at].address);
            exit(1);
        }
        if (!top.bus_ack)
            return;
        if (!top.bus_we)
            read.push_back(top.bus_dat_r);
        if (waited > longest)
            longest = waited;
        waited = 0;
        at++;
    }

  private:
    size_t at = 0;
    uint64_t waited = 0;
};

static void tick()
{
    top.sys_clk = 1;
    top.eval();
    top.sys_clk = 0;
    top.eval();
    cycles++;
}

static void run(Port (&ports)[PORTS], Bus &bus)
{
    for (Port &port : ports)
        port.next = port.keys.empty() ? 0 : cycles + port.keys[0].distance;
    const uint64_t started = cycles;
    uint64_t last = cycles;
    for (;;) {
        bool waits = !bus.done();
        for (unsigned number = 0; number < PORTS; number++) {
            Port &port = ports[number];
            const bool starts = port.starts.size() < port.keys.size() && cycles == port.next;
            (number ? top.start1 : top.start0) = starts;
            for (unsigned k = 0; k < KEY_WORDS; k++) // At other times a key is not what is held.
                (number ? top.key1 : top.key0)[k] = starts ? port.keys[port.starts.size()].words[k] : 0x5a5a5a5a * (k + cycles);
            if (starts) {
                port.starts.push_back(cycles);
                last = cycles;
                if (port.starts.size() < port.keys.size())
                    port.next = cycles + port.keys[port.starts.size()].distance;
            }
            waits = waits || port.starts.size() < port.keys.size();
        }
        bus.drive();
        top.eval();
        bus.sample();
        for (unsigned number = 0; number < PORTS; number++) {
            if (!(number ? top.done1 : top.done0))
                continue;
            Port &port = ports[number];
            if (port.found.size() == port.starts.size()) {
                fprintf(stderr, "port %u answers unasked\n", number);
                exit(1);
            }
            const uint64_t latency = cycles - port.starts[port.found.size()];
            port.found.push_back((number ? top.answer1 : top.answer0) | latency << 16);
        }
        tick();
        if (!waits && cycles > last + 200 && cycles > started + 200)
            break;
    }
    top.start0 = top.start1 = top.bus_stb = 0;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    orders = fopen(argv[1], "rb");
    answers = fopen(argv[2], "wb");
    if (!orders || !answers)
        return 2;
    top.sys_rst = 1;
    for (int k = 0; k < 4; k++)
        tick();
    top.sys_rst = 0;
    uint32_t order;
    while (fread(&order, 4, 1, orders) == 1) {
        Port ports[PORTS];
        Bus bus;
        uint32_t counts[PORTS] = {}, accesses = 0;
        if (order == 1) {
            top.control = word();
            continue;
        }
        if (order == 2) {
            accesses = word();
        } else if (order == 3) {
            for (uint32_t count = word(); count; count--)
                tick();
            continue;
        } else if (order == 4) {
            counts[0] = word();
            counts[1] = word();
            accesses = word();
        } else {
            return 2;
        }
        for (unsigned number = 0; number < PORTS; number++) {
            ports[number].keys.resize(counts[number]);
            for (Key &key : ports[number].keys)
                if (fread(&key, sizeof key, 1, orders) != 1)
                    return 2;
        }
        bus.accesses.resize(accesses);
        for (Access &access : bus.accesses)
            if (fread(&access, sizeof access, 1, orders) != 1)
                return 2;
        run(ports, bus);
        for (const Port &port : ports) {
            if (port.found.size() != port.keys.size()) {
                fprintf(stderr, "%zu keys, %zu answers\n", port.keys.size(), port.found.size());
                return 1;
            }
            for (const uint32_t found : port.found)
                put(found);
        }
        for (const uint32_t read : bus.read)
            put(read);
    }
    fclose(answers);
    printf("%lu %lu\n", (unsigned long)cycles, (unsigned long)longest);
    return 0;
}
