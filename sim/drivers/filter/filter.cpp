// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Gives the filter of two ports words of the bus and keys of frames, and writes what it answers.
//
// All words are u32. The file orders:
// 1 CONTROL; 2 COUNT, COUNT accesses; 3 CYCLES: idle; 4 COUNT0 COUNT1 ACCESSES, keys of port 0, keys of port 1, accesses.
// An access: {address, bit 31: it is a write; data}; with bit 30 not of the bus: the control register takes data. A key: {cycles from the start before to this one; KEY_WORDS words}.
// The file answers: for each read its word; for each key {answer in bits 15..0, cycles from start to done above}, those of port 0
// first, before the reads of the same order. Accesses of order 4 go on while frames come, and end with them or later.
// Ends with 1 when an access isn't answered within 1000 cycles. The output: "<cycles> <longest access>".

#include "../tools/harness.h"

static constexpr unsigned KEY_WORDS = sizeof(Model::key0) / 4;
static constexpr unsigned PORTS = 2;

static FILE *orders;
static uint64_t longest;

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
    check(get(orders, value), "an order is cut short");
    return value;
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
        check(++waited <= 1000, "access %x is not answered", accesses[at].address);
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
    pulse(top.sys_clk);
    now++;
}

static void run(Port (&ports)[PORTS], Bus &bus)
{
    for (Port &port : ports)
        port.next = port.keys.empty() ? 0 : now + port.keys[0].distance;
    const uint64_t started = now;
    uint64_t last = now;
    for (;;) {
        bool waits = !bus.done();
        for (unsigned number = 0; number < PORTS; number++) {
            Port &port = ports[number];
            const bool starts = port.starts.size() < port.keys.size() && now == port.next;
            (number ? top.start1 : top.start0) = starts;
            for (unsigned k = 0; k < KEY_WORDS; k++) // At other times a key is not what is held.
                (number ? top.key1 : top.key0)[k] = starts ? port.keys[port.starts.size()].words[k] : 0x5a5a5a5a * (k + now);
            if (starts) {
                port.starts.push_back(now);
                last = now;
                if (port.starts.size() < port.keys.size())
                    port.next = now + port.keys[port.starts.size()].distance;
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
            check(port.found.size() < port.starts.size(), "port %u answers unasked", number);
            const uint64_t latency = now - port.starts[port.found.size()];
            port.found.push_back((number ? top.answer1 : top.answer0) | latency << 16);
        }
        tick();
        if (!waits && now > last + 200 && now > started + 200)
            break;
    }
    top.start0 = top.start1 = top.bus_stb = 0;
}

static void bench()
{
    orders = opened("orders", "rb");
    FILE *answers = output("answers");
    top.sys_rst = 1;
    for (int k = 0; k < 4; k++)
        tick();
    top.sys_rst = 0;
    for (uint32_t order; get(orders, order);) {
        Port ports[PORTS];
        Bus bus;
        uint32_t counts[PORTS] = {};
        if (order == 1) {
            top.control = word();
            continue;
        }
        if (order == 3) {
            for (uint32_t count = word(); count; count--)
                tick();
            continue;
        }
        check(order == 2 || order == 4, "an order of no kind");
        if (order == 4) {
            counts[0] = word();
            counts[1] = word();
        }
        const uint32_t accesses = word();
        for (unsigned number = 0; number < PORTS; number++)
            get(orders, ports[number].keys, counts[number]);
        get(orders, bus.accesses, accesses);
        run(ports, bus);
        for (const Port &port : ports) {
            check(port.found.size() == port.keys.size(), "%zu keys, %zu answers", port.keys.size(), port.found.size());
            put(answers, port.found);
        }
        put(answers, bus.read);
    }
    printf("%" PRIu64 " %" PRIu64 "\n", now, longest);
}
