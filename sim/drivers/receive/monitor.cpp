// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Plays octets into the ports of a monitor and writes what comes out.
//
// Files, for each port n: wire<n>, records {u32 idle octets before; u32 count; u32 place of an RX_ER, or more than that; octets};
// and, written: seen<n> {u32 length | is classified << 31; u32 cycle}, measured<n>, records<n> and management<n>, of the layouts
// below. Options: ``stall``, of 256 cycles, those in which the reader of a port takes nothing (at random); ``skip``, of 256 records,
// those of which it takes the descriptor alone; ``pause``, it takes nothing at all in every second stretch of so many cycles
// (0: never); settings by their names; table<n> of the channel table; place<n> of the places of stamps. Clocks: 50 MHz for sys,
// 125 MHz for the others. Output: a line "<port> <words of its snapshot>" for each port. Ends with 1 when what comes out has no
// form.

#include "../tools/harness.h"

static uint64_t quiet;
static unsigned stall, skip, pause_cycles;

// What a port has on its pins in a cycle of sys.
struct Pins {
    bool seen, classified, measured, is_probe, passed, is_bare;
    uint32_t length, measured_length, flags, stream_id, sequence, bit_errors;
    uint64_t stamp, tx_stamp;
    bool descriptor, has_header, lost, header, header_last, data, data_last, management, management_last;
    uint32_t head[4], hash, words, header_word, data_word, management_word, management_last_be;
};

struct Wire {
    std::vector<uint8_t> content;
    size_t at = 0, left = 0, place = 0, error_at = 0;
    uint64_t idle = 0;
    bool done = false;

    // The next octet time.
    void step(bool &valid, uint8_t &octet, bool &error)
    {
        valid = error = false;
        while (!left && !idle) {
            if (at == content.size()) {
                done = true;
                return;
            }
            uint32_t head[3];
            memcpy(head, &content[at], 12);
            at += 12;
            idle = head[0];
            left = head[1];
            error_at = head[2];
            place = 0;
        }
        if (idle) {
            idle--;
            return;
        }
        valid = true;
        octet = content[at++];
        error = place++ == error_at;
        left--;
    }
};

struct Port {
    int number;
    Wire wire;
    FILE *seen, *measured, *records, *management;
    uint32_t header_left = 0, data_left = 0;
    bool takes_descriptor = false, takes_words = false, skips = false;

    void open(int n)
    {
        number = n;
        const std::string end = std::to_string(n);
        wire.content = load<uint8_t>("wire" + end);
        seen = output("seen" + end);
        measured = output("measured" + end);
        records = output("records" + end);
        management = output("management" + end);
    }

    void choose()
    {
        const bool rests = (pause_cycles && now / pause_cycles % 2) || chance(stall);
        takes_descriptor = !rests && !header_left && !data_left;
        takes_words = !rests;
        skips = chance(skip);
    }

    void take(const Pins &pins)
    {
        if (pins.seen) {
            put(seen, std::vector<uint32_t>{pins.length | (uint32_t)pins.classified << 31, (uint32_t)now});
            quiet = 0;
        }
        if (pins.measured)
            put(measured, std::vector<uint32_t>{(uint32_t)pins.stamp, (uint32_t)(pins.stamp >> 32), (uint32_t)pins.tx_stamp,
                (uint32_t)(pins.tx_stamp >> 32), pins.sequence, pins.measured_length | pins.flags << 16,
                pins.stream_id | pins.is_probe << 16 | pins.passed << 17 | pins.is_bare << 18, (uint32_t)now,
                pins.bit_errors});
        if (takes_words && header_left && pins.header) {
            put(records, std::vector<uint32_t>{pins.header_word});
            check(pins.header_last == (--header_left == 0), "port %d: last of a header is elsewhere", number);
            quiet = 0;
        } else if (takes_words && !header_left && data_left && pins.data) {
            put(records, std::vector<uint32_t>{pins.data_word});
            check(pins.data_last == (--data_left == 0), "port %d: last of data is elsewhere", number);
            quiet = 0;
        }
        if (takes_descriptor && pins.descriptor) {
            put(records, std::vector<uint32_t>{pins.head[0], pins.head[1], pins.head[2], pins.head[3], pins.hash,
                (uint32_t)pins.has_header | (uint32_t)pins.lost << 1 | (uint32_t)skips << 2, pins.words});
            header_left = pins.has_header && !skips ? 28 : 0;
            data_left = skips ? 0 : pins.words;
            quiet = 0;
        }
        if (pins.management)
            put(management, std::vector<uint32_t>{pins.management_word, pins.management_last_be | (uint32_t)pins.management_last << 8});
    }
};

static Port ports[2];

#define PORT(n) \
    static void give##n(Port &port) \
    { \
        port.choose(); \
        top.p##n##_descriptor_ready = port.takes_descriptor; \
        top.p##n##_header_ready = port.takes_words && port.header_left; \
        top.p##n##_data_ready = port.takes_words && !port.header_left && port.data_left; \
        top.p##n##_measured_ready = 1; \
        top.eval(); \
        port.skips |= top.p##n##_descriptor_lost; \
        top.p##n##_skip = port.skips; \
        top.p##n##_management_source_ready = 1; \
    } \
    static Pins pins##n() \
    { \
        return {(bool)top.p##n##_seen, (bool)top.p##n##_is_classified, (bool)top.p##n##_measured_valid, \
            (bool)top.p##n##_measured_is_probe, (bool)top.p##n##_measured_passed, \
            (bool)top.p##n##_measured_is_bare, top.p##n##_length, \
            top.p##n##_measured_length, top.p##n##_measured_flags, top.p##n##_measured_stream_id, top.p##n##_measured_sequence, \
            top.p##n##_measured_bit_errors, top.p##n##_measured_stamp, top.p##n##_measured_tx_stamp, (bool)top.p##n##_descriptor_valid, \
            (bool)top.p##n##_descriptor_has_header, (bool)top.p##n##_descriptor_lost, (bool)top.p##n##_header_valid, \
            (bool)top.p##n##_header_last, (bool)top.p##n##_data_valid, (bool)top.p##n##_data_last, \
            (bool)top.p##n##_management_source_valid, (bool)top.p##n##_management_source_last, \
            {top.p##n##_descriptor_head0, top.p##n##_descriptor_head1, top.p##n##_descriptor_head2, top.p##n##_descriptor_head3}, \
            top.p##n##_descriptor_hash, top.p##n##_descriptor_words, top.p##n##_header_data, top.p##n##_data_data, \
            top.p##n##_management_source_data, top.p##n##_management_source_last_be}; \
    } \
    static void play##n(Port &port) \
    { \
        bool valid, error; \
        uint8_t octet = 0; \
        port.wire.step(valid, octet, error); \
        top.p##n##_sink_valid = valid; \
        top.p##n##_sink_data = octet; \
        top.p##n##_sink_error = error; \
    } \
    static uint32_t read##n(unsigned address);
PORT(0)
PORT(1)

static void sys_step()
{
    give0(ports[0]);
    give1(ports[1]);
    top.eval();
    ports[0].take(pins0());
    ports[1].take(pins1());
    top.sys_clk = 1;
    top.eval();
    top.sys_clk = 0;
    now++;
    quiet++;
}

// One octet time, and the cycles of sys that begin in it.
static void step(bool plays)
{
    static uint64_t time, next = 3;
    if (plays) {
        play0(ports[0]);
        play1(ports[1]);
    }
    top.eval();
    top.eth_rx_clk = top.timebase_clk = 1;
    top.eval();
    top.eth_rx_clk = top.timebase_clk = 0;
    top.eval();
    time += 8;
    while (next < time) {
        sys_step();
        next += 20;
    }
}

#define READ(n) \
    static uint32_t read##n(unsigned address) \
    { \
        top.p##n##_bus_adr = address; \
        top.p##n##_bus_cyc = top.p##n##_bus_stb = 1; \
        unsigned waited = 0; \
        do { \
            check(waited++ <= 1000, "port %d: no answer from the snapshot", n); \
            sys_step(); \
            top.eval(); \
        } while (!top.p##n##_bus_ack); \
        const uint32_t word = top.p##n##_bus_dat_r; \
        sys_step(); \
        top.p##n##_bus_cyc = top.p##n##_bus_stb = 0; \
        sys_step(); \
        return word; \
    }
READ(0)
READ(1)

static void set(const std::string &name, uint32_t value)
{
#define SETTING(pin) if (name == #pin) { top.pin = value; return; }
    SETTING(snap_length) SETTING(keep_headers) SETTING(keep_damaged) SETTING(keep_own) SETTING(enable) SETTING(sample_shift)
    SETTING(sample_by_hash) SETTING(sample_seed) SETTING(drop) SETTING(stream_base)
    if (name.rfind("place", 0) == 0) { // Nothing passes: a few cycles are enough.
        top.place_write = 1;
        top.place_number = atoi(name.c_str() + 5);
        top.place_value = value;
        for (int n = 0; n < 12; n++)
            step(false);
        top.place_write = 0;
        step(false), step(false), step(false);
        return;
    }
    check(name.rfind("table", 0) == 0, "no setting %s", name.c_str());
    top.table_write = 1;
    top.table_number = atoi(name.c_str() + 5);
    top.table_value = value;
    step(false), step(false), step(false);
    top.table_write = 0;
}

static void bench()
{
    for (int n = 0; n < 2; n++)
        ports[n].open(n);
    stall = option("stall");
    skip = option("skip");
    pause_cycles = option("pause");
    for (const char *own : {"stall", "skip", "pause"}) // What is left are settings.
        options.erase(own);
    top.sys_rst = top.timebase_rst = top.eth_rx_rst = 1;
    for (int n = 0; n < 20; n++)
        step(false);
    const auto set_all = [&](bool places) {
        for (const auto &[name, text] : options)
            if ((name.rfind("place", 0) == 0) == places)
                set(name, strtoul(text.c_str(), nullptr, 0));
    };
    top.sys_rst = 0; // Places are written by a bus.
    set_all(true);
    top.sys_rst = 1;
    set_all(false); // The table is a memory: a reset doesn't hold it.
    for (int n = 0; n < 20; n++)
        step(false);
    top.sys_rst = top.timebase_rst = top.eth_rx_rst = 0;
    for (int n = 0; n < 20; n++)
        step(false);
    while (!ports[0].wire.done || !ports[1].wire.done)
        step(true);
    quiet = 0;
    while (quiet < 1000 + 2 * pause_cycles)
        step(true);
    top.latch = 1;
    step(false), step(false), step(false);
    top.latch = 0;
    for (int n = 0; n < 500; n++)
        step(false);
    for (int n = 0; n < 2; n++) {
        printf("%d", n);
        for (unsigned word = 0; word < 64; word++)
            printf(" %u", n ? read1(word) : read0(word));
        printf("\n");
    }
}
