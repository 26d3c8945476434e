// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "addresses.h"

namespace liteprobe {

bool AddressTable::filters(unsigned port, const uint8_t *content, uint64_t tick) {
    while (spec_.age && !ages_.empty() && ages_.begin()->first + spec_.age <= tick) {
        entries_.erase(ages_.begin()->second);
        ages_.erase(ages_.begin());
    }
    learn(port, get_array<6>(content + 6), tick);
    auto found = entries_.find(get_array<6>(content));
    return found != entries_.end() && found->second.port == port;
}

void AddressTable::learn(unsigned port, const MacAddress &source, uint64_t tick) {
    if (source[0] & 1)
        return;  // A group sends nothing.
    auto found = entries_.find(source);
    if (found != entries_.end()) {
        ages_.erase({found->second.seen, source});
    } else {
        const u128 now = static_cast<u128>(tick) * (spec_.learn ? spec_.learn : 1);
        if (entries_.size() >= spec_.table || (spec_.learn && now < free_))
            return;
        free_ = now + TICKS_A_SECOND;
    }
    entries_[source] = {port, tick};
    ages_.insert({tick, source});
}

void AddressTable::clear() {
    entries_.clear();
    ages_.clear();
    free_ = 0;
}

}  // namespace liteprobe
