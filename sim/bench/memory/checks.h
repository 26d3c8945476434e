// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Options of a bench, and what ends it with the cycle in which something was wrong. It uses now; included in a namespace.
#pragma once

std::map<std::string, std::string> options;

uint64_t option(const char *name, uint64_t otherwise)
{
    auto found = options.find(name);
    return found == options.end() ? otherwise : strtoull(found->second.c_str(), nullptr, 0);
}

void check(bool is_right, const char *format, ...)
{
    if (is_right)
        return;
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "cycle %lu: ", (unsigned long)now);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    exit(1);
}
