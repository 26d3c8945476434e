// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Sends records through a capture, and drains its ring as a host does.
//
// The file records: {u64 cycle; u32 port; u32 flags; u32 head[4]; u32 words; words of the header (28, flag 1); words}, by port in the
// order of time; flag 2: lost already. The file blocks gets {u32 channel; u32 words; u64 cycle; words} of each block that the host took,
// order the number of each record that was taken, as it was taken.
// The output is JSON. Ends with 1, and says why, when a signal isn't as it should be.

#include "../memory/chip.h"
#include "../tools/harness.h"

namespace {

constexpr unsigned PORTS = 2, CHANNELS = 8, CHANNEL_WORDS = 16, BLOCK = 368, REST = 28;
enum Word { BASE, BLOCKS, READ, SENT, WRITTEN, DROPPED, TAKEN };
constexpr uint64_t QUIET = 400000;

// Staging of a port -----------------------------------------------------------------------------------

FILE *order; // Gets the number of each record in RECORDS, in the order in which they were taken; not of those that a capture that ends throws away.

struct Record {
    uint64_t cycle;
    uint32_t number, flags, head[4];
    std::vector<uint32_t> header, words;
};

// The pins of one port.
struct Pins {
    CData &valid, &ready, &has_header, &lost, &skip, &header_valid, &header_ready, &header_last, &data_valid, &data_ready, &data_last;
    SData &words;
    IData &head0, &head1, &head2, &head3, &header, &data;
};

#define PINS(p) {top.p##_descriptor_valid, top.p##_descriptor_ready, top.p##_descriptor_has_header, top.p##_descriptor_lost, top.p##_skip, \
    top.p##_header_valid, top.p##_header_ready, top.p##_header_last, top.p##_data_valid, top.p##_data_ready, top.p##_data_last, \
    top.p##_descriptor_words, top.p##_descriptor_head0, top.p##_descriptor_head1, top.p##_descriptor_head2, top.p##_descriptor_head3, \
    top.p##_header_data, top.p##_data_data}

struct Staging {
    Pins pins;
    std::deque<Record> records, waiting;
    size_t used = 0, header_at = 0, data_at = 0;
    bool is_open = false; // A descriptor was taken.
    unsigned pause = 0;
    uint64_t missed = 0, overflowed = 0;
    bool stalls_header = false, stalls_data = false;

    void arrive(size_t room, size_t places)
    {
        while (!records.empty() && records.front().cycle <= now) {
            Record &record = records.front();
            if (waiting.size() >= places) {
                missed++;
            } else {
                if (used + record.words.size() > room && !(record.flags & 2)) {
                    record.flags |= 2;
                    overflowed++;
                }
                if (record.flags & 2)
                    record.words.clear();
                used += record.words.size();
                waiting.push_back(std::move(record));
            }
            records.pop_front();
        }
    }

    void drive(unsigned stall)
    {
        bool has = !waiting.empty();
        pins.valid = has && !is_open && !pause;
        if (has) {
            const Record &record = waiting.front();
            pins.has_header = record.flags & 1;
            pins.lost = record.flags >> 1 & 1;
            pins.words = record.words.size();
            pins.head0 = record.head[0];
            pins.head1 = record.head[1];
            pins.head2 = record.head[2];
            pins.head3 = record.head[3];
            // A word that was shown stays.
            stalls_header = stalls_header && chance(stall);
            stalls_data = stalls_data && chance(stall);
            pins.header_valid = is_open && header_at < record.header.size() && !stalls_header;
            pins.data_valid = is_open && data_at < record.words.size() && !stalls_data;
            pins.header = pins.header_valid ? record.header[header_at] : 0xbad0bad0;
            pins.data = pins.data_valid ? record.words[data_at] : 0xbad1bad1;
            pins.header_last = header_at + 1 == record.header.size();
            pins.data_last = data_at + 1 == record.words.size();
        } else {
            pins.header_valid = pins.data_valid = 0;
        }
    }

    void pop()
    {
        if (order && !top.discards)
            put(order, waiting.front().number);
        used -= waiting.front().words.size();
        waiting.pop_front();
        is_open = false;
        header_at = data_at = 0;
    }

    void sample()
    {
        if (pause)
            pause--;
        if (pins.valid && pins.ready) {
            check(!pins.lost || pins.skip, "a lost record was taken without skip");
            if (pins.skip) {
                pop();
                pause = 2;
                return;
            }
            is_open = true;
        }
        if (pins.header_valid && pins.header_ready) {
            header_at++;
            stalls_header = true;
        }
        if (pins.data_valid && pins.data_ready) {
            check(header_at == waiting.front().header.size(), "octets were taken before the header");
            data_at++;
            stalls_data = true;
        }
        if (is_open && header_at == waiting.front().header.size() && data_at == waiting.front().words.size())
            pop();
    }
};

Staging staging[PORTS] = {{PINS(p0), {}, {}}, {PINS(p1), {}, {}}};

// A bus -----------------------------------------------------------------------------------------------

struct Access {
    uint32_t address, data;
    bool write;
    std::function<void(uint32_t)> then;
};

struct Bus {
    IData &address, &dat_w;
    CData &we, &stb, &ack;
    IData &dat_r;
    std::deque<Access> queue;
    uint64_t began = 0, worst = 0, total = 0, count = 0;

    void drive()
    {
        if (queue.empty()) {
            stb = 0;
            return;
        }
        if (!stb)
            began = now;
        stb = 1;
        we = queue.front().write;
        address = queue.front().address;
        dat_w = queue.front().data;
    }

    void sample()
    {
        if (!stb || !ack)
            return;
        uint64_t took = now - began;
        worst = std::max(worst, took);
        total += took;
        count++;
        Access access = std::move(queue.front());
        queue.pop_front();
        if (access.then)
            access.then(dat_r);
        began = now + 1;
    }
};

#define BUS(p) {top.p##_adr, top.p##_dat_w, top.p##_we, top.p##_stb, top.p##_ack, top.p##_dat_r, {}}

Bus table = BUS(table), ring = BUS(ring), cpu = BUS(cpu);

void set(unsigned channel, Word word, uint32_t value) { table.queue.push_back({channel * CHANNEL_WORDS + word, value, true, nullptr}); }

void ask(unsigned channel, Word word, std::function<void(uint32_t)> then)
{
    table.queue.push_back({channel * CHANNEL_WORDS + word, 0, false, std::move(then)});
}

// The chip --------------------------------------------------------------------------------------------

SdramChip *chip;

// Host ------------------------------------------------------------------------------------------------

struct Host {
    FILE *out;
    uint32_t expected[CHANNELS] = {}, written[CHANNELS] = {}, dropped[CHANNELS] = {}, taken[CHANNELS] = {}, free_[CHANNELS] = {};
    uint64_t asked_at[CHANNELS] = {}, looked_at = 0, blocks = 0, octets = 0, resent = 0, first_at = 0, last_at = 0;
    unsigned ignore, loss, lag;
    uint64_t away_from, away_to;
    bool knows = false; // ``written`` of all channels is known, and won't change.
    std::deque<std::pair<uint64_t, unsigned>> later;

    bool is_away() const { return now >= away_from && now < away_to; }

    void ask_again(unsigned channel)
    {
        if (asked_at[channel] && now - asked_at[channel] < 3000)
            return;
        asked_at[channel] = now;
        resent++;
        set(channel, SENT, expected[channel]);
    }

    void take(unsigned channel, const std::vector<uint32_t> &words)
    {
        blocks++;
        if (is_away() || chance(loss))
            return;
        if (words[0] != expected[channel]) {
            if ((int32_t)(words[0] - expected[channel]) > 0)
                ask_again(channel);
            return;
        }
        asked_at[channel] = 0;
        put(out, channel);
        put(out, (uint32_t)words.size());
        put(out, now);
        put(out, words);
        if (!first_at)
            first_at = now;
        last_at = now;
        octets += 4 * words.size();
        expected[channel]++;
        if (!(ignore >> channel & 1))
            later.push_back({now + lag, channel});
    }

    void step()
    {
        while (!later.empty() && later.front().first <= now) {
            unsigned channel = later.front().second;
            later.pop_front();
            set(channel, READ, ++free_[channel]);
        }
        if (is_away() || now - looked_at < 5000 || !table.queue.empty())
            return;
        looked_at = now;
        for (unsigned channel = 0; channel < CHANNELS; channel++)
            ask(channel, WRITTEN, [this, channel](uint32_t value) {
                // Nothing new since the last look: it got lost.
                if (value == written[channel] && value != expected[channel])
                    ask_again(channel);
                written[channel] = value;
            });
    }

    bool has_all() const { return knows && memcmp(expected, written, sizeof(written)) == 0; }
};

Host host;

// Line ------------------------------------------------------------------------------------------------

struct Line {
    std::vector<uint8_t> octets;
    uint64_t frames = 0, answers = 0, worst_answer = 0;
    uint16_t port;
    std::deque<uint64_t> asked; // When each answer was given to the probe.

    uint32_t get(size_t at, int count) const
    {
        uint32_t value = 0;
        while (count--)
            value = value << 8 | octets[at++];
        return value;
    }

    void clock()
    {
        if (top.gmii_valid) {
            octets.push_back(top.gmii_data);
            return;
        }
        if (!octets.empty())
            end();
        octets.clear();
    }

    void end()
    {
        check(octets.size() >= 72 && octets[7] == 0xd5, "a frame of %zu octets", octets.size());
        uint32_t crc = ~0u;
        for (size_t at = 8; at < octets.size(); at++) {
            crc ^= octets[at];
            for (int bit = 0; bit < 8; bit++)
                crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
        }
        check(crc == 0xdebb20e3, "a frame with a wrong FCS");
        octets.erase(octets.begin(), octets.begin() + 8);
        size_t size = octets.size() - 4;
        if (get(12, 2) != 0x0800) {
            answers++;
            worst_answer = std::max(worst_answer, now - asked.front());
            asked.pop_front();
            return;
        }
        frames++;
        uint32_t sum = 0;
        for (size_t at = 14; at < 34; at += 2)
            sum += get(at, 2);
        check((sum & 0xffff) + (sum >> 16) == 0xffff, "a wrong checksum of IP");
        check(get(0, 2) == 0x024c && get(2, 4) == 0x50000007 && get(6, 2) == 0x10e2 && get(8, 4) == 0xd5000000, "wrong MAC addresses");
        check(get(14, 2) == 0x4500 && get(16, 2) == size - 14 && get(23, 1) == 17, "not an IP datagram as it should be");
        check(get(26, 4) == 0xc0a80132 && get(30, 4) == 0xc0a80163, "wrong IP addresses");
        check(get(34, 2) == 1235 && get(38, 2) == size - 34 && get(40, 2) == 0, "a wrong header of UDP");
        std::vector<uint32_t> words((size - 42) / 4);
        memcpy(words.data(), octets.data() + 42, 4 * words.size());
        unsigned channel = get(36, 2) - port;
        check(channel < CHANNELS && channel == (words[3] >> 8 & 15), "a block of channel %u on the port of %u", words[3] >> 8 & 15, channel);
        host.take(channel, words);
    }
};

std::vector<uint32_t> block;

void sample_block()
{
    if (!top.block_valid || !top.block_ready)
        return;
    block.push_back(top.block_data);
    check(block.size() <= BLOCK, "a block without an end");
    check(top.block_last == (block.size() == top.block_words), "word %zu of %u: last is %d", block.size(), top.block_words, top.block_last);
    if (top.block_last) {
        host.take(top.block_channel, block);
        block.clear();
    }
}

// What goes out ---------------------------------------------------------------------------------------

Line line;
uint64_t answer_every, answer_at;
unsigned answer_word;
constexpr unsigned ANSWER_WORDS = 16;

void drive_answer()
{
    if (answer_word == ANSWER_WORDS)
        top.answer_valid = 0;
    if (answer_every && !top.answer_valid && now >= answer_at) {
        answer_word = 0;
        answer_at = now + answer_every;
        line.asked.push_back(now);
        top.answer_valid = 1;
    }
    top.answer_data = answer_word == 3 ? 0x00000608 : answer_word; // EtherType of ARP.
    top.answer_last = answer_word == ANSWER_WORDS - 1;
    top.answer_last_be = top.answer_last << 3;
}

void sample_answer()
{
    if (top.answer_valid && top.answer_ready)
        answer_word++;
}

// Clocks ----------------------------------------------------------------------------------------------

uint64_t units; // Of 4 ns.
uint64_t memory_now;
bool has_memory; // A clock of its own, 125 MHz.
unsigned stall, pace, cpu_every;
size_t room, places;
std::map<uint32_t, uint32_t> cpu_words;

void drive_cpu()
{
    if (!cpu_every || !cpu.queue.empty() || now % cpu_every)
        return;
    uint32_t address = draw(1 << 17);
    bool write = chance(128);
    if (write) {
        const uint32_t word = draw();
        cpu.queue.push_back({address, word, true, nullptr});
        cpu_words[address] = word;
    } else {
        cpu.queue.push_back({address, 0, false, [address](uint32_t value) {
            auto found = cpu_words.find(address);
            check(value == (found == cpu_words.end() ? 0 : found->second), "the processor read another word than it wrote");
        }});
    }
}

void sample()
{
    for (Staging &port : staging)
        port.sample();
    table.sample();
    ring.sample();
    cpu.sample();
    sample_block();
    sample_answer();
    check(!top.dropped, "a management frame was dropped: %lu blocks, %lu answers", (unsigned long)line.frames, (unsigned long)line.answers);
}

void edge(bool is_sys, bool is_timebase, bool is_memory)
{
    top.eval();
    if (is_sys)
        sample();
    uint32_t rddata = top.dfi_rddata;
    if (is_timebase)
        line.clock();
    if (is_memory)
        chip->clock(memory_now++);
    std::swap(rddata, top.dfi_rddata); // Seen after the edge.
    top.sys_clk = is_sys;
    top.timebase_clk = is_timebase;
    top.memory_clk = is_memory;
    top.eval();
    top.sys_clk = top.timebase_clk = top.memory_clk = 0;
    top.dfi_rddata = rddata;
    top.eval();
}

void cycle()
{
    for (Staging &port : staging) {
        port.arrive(room, places);
        port.drive(stall);
    }
    table.drive();
    ring.drive();
    cpu.drive();
    drive_answer();
    top.block_ready = !top.to_udp && chance(pace);
    // Five units of 4 ns: the edge of sys is in the last one, those of timebase, and of a memory of its own clock, at even units.
    for (int unit = 0; unit < 5; unit++, units++) {
        bool is_sys = unit == 4, is_even = units % 2 == 0;
        bool is_timebase = top.to_udp && is_even, is_memory = has_memory ? is_even : is_sys;
        if (is_sys || is_timebase || is_memory)
            edge(is_sys, is_timebase, is_memory);
    }
    now++;
    host.step();
    drive_cpu();
}

void load_records()
{
    FILE *in = opened("records", "rb");
    uint32_t number = 0;
    struct __attribute__((packed)) {
        uint64_t cycle;
        uint32_t port, flags, head[4], words;
    } head;
    while (get(in, head)) {
        Record record = {head.cycle, number++, head.flags, {}, {}, {}};
        memcpy(record.head, head.head, sizeof(head.head));
        get(in, record.header, head.flags & 1 ? REST : 0);
        get(in, record.words, head.words);
        check(head.port < PORTS, "a record of no port");
        staging[head.port].records.push_back(std::move(record));
    }
}

// Blocks over the bus, one channel after the other.
void read_over_bus(unsigned channel);

void read_words(unsigned channel, uint32_t at, uint32_t word, uint32_t count)
{
    ring.queue.push_back({at + word, 0, false, [=](uint32_t value) {
        check(word || value == host.expected[channel], "channel %u: the probe reported block %u, its header says %u", channel, host.expected[channel], value);
        block.push_back(value);
        uint32_t total = word == 1 ? (value & 0xffff) + 4 : count;
        if (word + 1 != total)
            return read_words(channel, at, word + 1, total);
        host.take(channel, block);
        block.clear();
        read_over_bus((channel + 1) % CHANNELS);
    }});
}

uint32_t bases[CHANNELS], sizes[CHANNELS], freed[CHANNELS];

// Blocks that came before a trigger: after what the probe has freed. Then they are sent.
void find_first()
{
    for (unsigned channel = 0; channel < CHANNELS; channel++)
        ask(channel, READ, [channel](uint32_t value) {
            host.expected[channel] = host.free_[channel] = freed[channel] = value;
            set(channel, SENT, value);
            if (channel == CHANNELS - 1)
                top.send = option("send", 255);
        });
}

void read_over_bus(unsigned channel)
{
    ask(channel, WRITTEN, [channel](uint32_t written) {
        if (written == host.expected[channel] || !sizes[channel])
            return read_over_bus((channel + 1) % CHANNELS);
        read_words(channel, (bases[channel] + host.expected[channel] % sizes[channel]) * BLOCK, 0, 5);
    });
}

uint64_t fired_at;

bool wait(const std::function<bool()> &is_done, uint64_t most)
{
    for (uint64_t end = now + most; now < end; cycle())
        if (is_done())
            return true;
    return false;
}

void show(const char *name, const uint32_t *values)
{
    printf("\"%s\": [", name);
    for (unsigned channel = 0; channel < CHANNELS; channel++)
        printf("%s%u", channel ? ", " : "", values[channel]);
    printf("], ");
}

} // namespace

static void bench()
{
    load_records();
    host.out = output("blocks");
    noise = option("seed", 1) | 1;
    stall = option("stall", 0), pace = option("pace", 256), cpu_every = option("cpu", 0);
    room = option("room", 4096), places = option("places", 64);
    host.ignore = option("ignore", 0), host.loss = option("loss", 0), host.lag = option("lag", 200);
    host.away_from = option("away_from", 0), host.away_to = option("away_to", 0);
    answer_every = option("answers", 0);
    const std::string way = options.count("way") ? options["way"] : "pins";
    line.port = option("udp_port", 5000);

    has_memory = option("hog", 0);
    chip = new SdramChip(has_memory ? 125 : 50, has_memory ? 80 : 40);
    top.sys_rst = top.timebase_rst = top.memory_rst = 1;
    top.to_udp = way == "udp";
    top.flush_us = option("flush", 1000);
    top.trigger_wanted = options.count("trigger");
    top.trigger_channels = option("trigger", 0);
    top.trigger_before = option("before", 0);
    top.udp_port = line.port;
    bool keeps = answer_every;
    answer_every = 0;
    std::vector<Record> none;
    std::deque<Record> held[PORTS];
    for (unsigned port = 0; port < PORTS; port++)
        held[port].swap(staging[port].records);
    for (int n = 0; n < 8; n++)
        cycle();
    top.sys_rst = top.timebase_rst = top.memory_rst = 0;
    unsigned every = cpu_every;
    cpu_every = 0;
    wait([] { return top.sdram_ready; }, 100000);
    top.hog = option("hog", 0) > 1;
    // The table: "base.blocks,base.blocks,..."
    const char *text = options["channels"].c_str();
    for (unsigned channel = 0; channel < CHANNELS && *text; channel++) {
        bases[channel] = strtoul(text, const_cast<char **>(&text), 0);
        sizes[channel] = strtoul(text + 1, const_cast<char **>(&text), 0);
        text += *text == ',';
        set(channel, BASE, bases[channel]);
        set(channel, BLOCKS, sizes[channel]);
    }
    wait([] { return table.queue.empty(); }, 10000);
    for (unsigned rounds = option("rounds", 1); rounds; rounds--) {
        top.enable = 1;
        check(wait([] { return top.running; }, 1000), "the capture doesn't begin");
        for (unsigned channel = 0; channel < CHANNELS; channel++)
            host.expected[channel] = host.free_[channel] = option("number", 0);
        host.knows = false;
        if (rounds > 1) { // Rounds before the last one are cut short.
            for (unsigned port = 0; port < PORTS; port++)
                for (size_t n = 0; n < 20 && n < held[port].size(); n++)
                    staging[port].records.push_back(held[port][n]);
            wait([] { return false; }, 700 * rounds);
            top.enable = 0;
            check(wait([] { return !top.running; }, 20000), "the capture doesn't end");
            wait([] { return staging[0].waiting.empty() && staging[1].waiting.empty() && table.queue.empty(); }, 5000);
        }
    }
    // Cycles of records count from here.
    uint64_t begin = now;
    order = output("order");
    for (unsigned port = 0; port < PORTS; port++) {
        staging[port].records.swap(held[port]);
        for (Record &record : staging[port].records)
            record.cycle += begin;
        staging[port].missed = staging[port].overflowed = 0;
    }
    host.away_from += begin;
    host.away_to += begin;
    answer_every = keeps ? option("answers", 0) : 0;
    answer_at = begin;
    cpu_every = every;
    bool has_trigger = top.trigger_wanted;
    top.send = way == "pins" && !has_trigger ? option("send", 255) : 0;
    top.mask = option("send", 255);
    top.start = way == "udp";
    cycle();
    top.start = 0;
    if (way == "bus")
        read_over_bus(0);
    auto is_through = [] {
        for (Staging &port : staging)
            if (!port.records.empty() || !port.waiting.empty())
                return false;
        return true;
    };
    if (has_trigger) {
        wait([&] { return top.trigger_fired || is_through(); }, option("most", 50'000'000));
        fired_at = top.trigger_fired ? now : 0;
        if (fired_at) {
            check(!top.trigger_waits, "a trigger that has fired waits");
            find_first();
        }
    }
    check(wait(is_through, option("most", 50'000'000)), "records are left");
    uint64_t through = now;
    wait([] { return false; }, option("after", 100));
    top.enable = 0;
    check(wait([] { return !top.running; }, QUIET), "the capture doesn't end");
    if (way == "bus")
        wait([] { return false; }, 2 * QUIET / 4);
    if (has_trigger && !fired_at) {
        check(!top.trigger_waits && !top.trigger_fired, "a capture that has ended waits");
        find_first();
        wait([] { return table.queue.empty(); }, QUIET);
    }
    // Whatever the last look at the table said, now it is still.
    table.queue.clear();
    top.table_stb = 0;
    cycle();
    cycle();
    if (way == "bus")
        read_over_bus(0);
    for (unsigned channel = 0; channel < CHANNELS; channel++) {
        ask(channel, DROPPED, [channel](uint32_t value) { host.dropped[channel] = value; });
        ask(channel, TAKEN, [channel](uint32_t value) { host.taken[channel] = value; });
        ask(channel, WRITTEN, [channel](uint32_t value) { host.written[channel] = value; if (channel == CHANNELS - 1) host.knows = true; });
    }
    bool has_all = way == "none" || wait([] { return host.has_all(); }, 20 * QUIET);
    wait([] { return false; }, 1000);
    printf("{");
    show("written", host.written);
    show("received", host.expected);
    show("dropped", host.dropped);
    show("taken", host.taken);
    show("freed", freed);
    printf("\"fired_at\": %lu, ", (unsigned long)(fired_at ? fired_at - begin : 0));
    printf("\"has_all\": %s, \"cycles\": %lu, \"end\": %lu, ", has_all ? "true" : "false", (unsigned long)(through - begin), (unsigned long)(now - begin));
    printf("\"missed\": %lu, \"overflowed\": %lu, ", (unsigned long)(staging[0].missed + staging[1].missed), (unsigned long)(staging[0].overflowed + staging[1].overflowed));
    printf("\"blocks\": %lu, \"octets\": %lu, \"resent\": %lu, ", (unsigned long)host.blocks, (unsigned long)host.octets, (unsigned long)host.resent);
    printf("\"first\": %lu, \"last\": %lu, ", (unsigned long)(host.first_at - begin), (unsigned long)(host.last_at - begin));
    printf("\"cpu\": %lu, \"cpu_worst\": %lu, \"cpu_cycles\": %lu, ", (unsigned long)cpu.count, (unsigned long)cpu.worst, (unsigned long)cpu.total);
    printf("\"sdram_reads\": %lu, \"sdram_writes\": %lu, ", (unsigned long)chip->reads, (unsigned long)chip->writes);
    printf("\"frames\": %lu, \"answers\": %lu, \"answer_worst\": %lu}\n", (unsigned long)line.frames, (unsigned long)line.answers, (unsigned long)line.worst_answer);
}
