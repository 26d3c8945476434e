// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Sends records through a capture_bench, as a host that drains its ring.
//
// Usage: Vcapture_bench RECORDS BLOCKS OPTION=VALUE...
// RECORDS: {u64 cycle; u32 port; u32 flags; u32 head[4]; u32 words; words of the header (28, flag 1); words}, by port in the
// order of time; flag 2: lost already. BLOCKS gets {u32 channel; u32 words; u64 cycle; words} of each block that the host took,
// BLOCKS.order the number of each record that was taken, as it was taken.
// The last line of the output is JSON. Ends with 1, and says why, when a signal isn't as it should be.

#include "capture_host.h"
#include "capture_line.h"
#include "capture_parts.h"

namespace {

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
    uint32_t address = noise * 2654435761u >> 15 & 0x1ffff;
    bool write = chance(128);
    if (write) {
        cpu.queue.push_back({address, noise, true, nullptr});
        cpu_words[address] = noise;
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

void load(const char *path)
{
    FILE *in = fopen(path, "rb");
    uint32_t number = 0;
    check(in, "no file %s", path);
    struct __attribute__((packed)) {
        uint64_t cycle;
        uint32_t port, flags, head[4], words;
    } head;
    while (fread(&head, sizeof(head), 1, in) == 1) {
        Record record = {head.cycle, number++, head.flags, {}, {}, {}};
        memcpy(record.head, head.head, sizeof(head.head));
        record.header.resize(head.flags & 1 ? REST : 0);
        record.words.resize(head.words);
        bool is_whole = fread(record.header.data(), 4, record.header.size(), in) == record.header.size();
        is_whole = is_whole && fread(record.words.data(), 4, record.words.size(), in) == record.words.size();
        check(is_whole && head.port < PORTS, "a record that is cut");
        staging[head.port].records.push_back(std::move(record));
    }
    fclose(in);
}

// Blocks over the bus, one channel after the other.
void read_over_bus(unsigned channel);

void read_words(unsigned channel, uint32_t at, uint32_t word, uint32_t count)
{
    ring.queue.push_back({at + word, 0, false, [=](uint32_t value) {
        check(word || value == host.expected[channel], "channel %u: the probe told of block %u, its header says %u", channel, host.expected[channel], value);
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

// Blocks that came before a trigger: behind what the probe has freed. Then they are sent.
void find_first()
{
    for (unsigned channel = 0; channel < CHANNELS; channel++)
        get(channel, READ, [channel](uint32_t value) {
            host.expected[channel] = host.free_[channel] = freed[channel] = value;
            set(channel, SENT, value);
            if (channel == CHANNELS - 1)
                top.send = option("send", 255);
        });
}

void read_over_bus(unsigned channel)
{
    get(channel, WRITTEN, [channel](uint32_t written) {
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

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    for (int n = 3; n < argc; n++) {
        std::string text = argv[n];
        options[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
    }
    load(argv[1]);
    host.out = fopen(argv[2], "wb");
    noise = option("seed", 1) | 1;
    stall = option("stall", 0), pace = option("pace", 256), cpu_every = option("cpu", 0);
    room = option("room", 4096), places = option("places", 64);
    host.ignore = option("ignore", 0), host.loss = option("loss", 0), host.lag = option("lag", 200);
    host.away_from = option("away_from", 0), host.away_to = option("away_to", 0);
    answer_every = option("answers", 0);
    const std::string way = options.count("way") ? options["way"] : "pins";
    line.port = option("udp_port", 5000);

    has_memory = option("hog", 0);
    chip = new SdramChip<Vcapture_bench>(top, has_memory ? 125 : 50, has_memory ? 80 : 40);
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
    order = fopen((std::string(argv[2]) + ".order").c_str(), "wb");
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
        get(channel, DROPPED, [channel](uint32_t value) { host.dropped[channel] = value; });
        get(channel, TAKEN, [channel](uint32_t value) { host.taken[channel] = value; });
        get(channel, WRITTEN, [channel](uint32_t value) { host.written[channel] = value; if (channel == CHANNELS - 1) host.knows = true; });
    }
    bool has_all = way == "none" || wait([] { return host.has_all(); }, 20 * QUIET);
    wait([] { return false; }, 1000);
    fclose(host.out);
    fclose(order);
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
    return 0;
}
