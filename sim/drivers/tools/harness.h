// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// What all benches of compiled cores share: the model, options, files, checks, random numbers, clocks and an access of a bus.
//
// A bench includes this, and defines bench(). Its program takes options NAME=VALUE, reads and writes files of the folder in which
// it runs, and ends with 1, and says why, when something is not as it should be. See compiled.py.

#pragma once

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model.h" // Written by compiled.py: names what Verilator makes of the bench's module, as Model.

static Model top;
static uint64_t now; // Cycles of sys.

static void bench();

// Checks ---------------------------------------------------------------------------------------------

[[noreturn, gnu::format(printf, 1, 2)]] inline void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "cycle %" PRIu64 ": ", now);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    exit(1);
}

template <class... Values> void check(bool is_right, const char *format, Values... values)
{
    if (!is_right)
        fail(format, values...);
}

// Options --------------------------------------------------------------------------------------------

inline std::map<std::string, std::string> options;

inline uint64_t option(const char *name, uint64_t otherwise = 0)
{
    const auto found = options.find(name);
    return found == options.end() ? otherwise : strtoull(found->second.c_str(), nullptr, 0);
}

// Files ----------------------------------------------------------------------------------------------

inline FILE *opened(const std::string &name, const char *mode)
{
    FILE *file = fopen(name.c_str(), mode);
    check(file, "no file %s", name.c_str());
    return file;
}

inline FILE *output(const std::string &name) { return opened(name, "wb"); }

// Reads a value; false at the end of the file.
template <class T> bool get(FILE *file, T &value) { return fread(&value, sizeof value, 1, file) == 1; }

// Reads so many values into ``to``, which must all be there.
template <class T> void get(FILE *file, std::vector<T> &to, size_t count)
{
    to.resize(count);
    check(fread(to.data(), sizeof(T), count, file) == count, "a file is cut short");
}

template <class T> void put(FILE *file, const T &value) { fwrite(&value, sizeof value, 1, file); }

template <class T> void put(FILE *file, const std::vector<T> &values) { fwrite(values.data(), sizeof(T), values.size(), file); }

// Returns all that a file holds.
template <class T> std::vector<T> load(const std::string &name)
{
    std::vector<T> all;
    FILE *file = opened(name, "rb");
    for (T one; get(file, one);)
        all.push_back(one);
    fclose(file);
    return all;
}

// Random numbers, the same in each run ---------------------------------------------------------------

inline uint64_t noise = 88172645463325252u;

inline uint32_t draw()
{
    noise ^= noise << 13;
    noise ^= noise >> 7;
    noise ^= noise << 17;
    return noise >> 16;
}

inline uint32_t draw(uint32_t below)
{
    const uint32_t drawn = draw();
    return below ? drawn % below : 0;
}

inline bool chance(uint32_t of_256) { return draw(256) < of_256; }

// Clocks and buses -----------------------------------------------------------------------------------

inline void pulse(CData &clock)
{
    clock = 1;
    top.eval();
    clock = 0;
    top.eval();
}

// Reads or writes a word at the pins adr, dat_w, we, stb, ack, dat_r; ``step`` lets a cycle pass.
template <class Pins, class Step> uint32_t access(Pins &pins, uint32_t address, bool is_write, uint32_t word, Step step)
{
    pins.adr = address;
    pins.dat_w = word;
    pins.we = is_write;
    pins.stb = 1;
    pins.eval();
    for (int n = 0; !pins.ack; n++) {
        check(n < 10000, "no answer of the bus at %05x", address);
        step();
        pins.eval();
    }
    const uint32_t found = pins.dat_r;
    step();
    pins.stb = pins.we = 0;
    step();
    return found;
}

int main(int argc, char **argv)
{
    for (int n = 1; n < argc; n++) {
        const std::string text = argv[n];
        options[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
    }
    bench();
    return 0;
}
