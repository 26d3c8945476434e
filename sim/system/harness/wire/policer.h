// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

// Polices frames by service: the bandwidth profile algorithm of MEF 10.3, section 12.2, colour-blind. All integers.
#pragma once

#include <vector>

#include "frame.h"
#include "random.h"
#include "spec.h"

namespace liteprobe {

enum class Colour { GREEN, YELLOW, RED };

// Two token buckets, full at first; a token is 10^-9 octets, so that a rate in bits a second is tokens a tick of 8 ns.
class Buckets {
public:
    explicit Buckets(const ServiceSpec &spec);
    Colour take(uint64_t tick, uint64_t octets);

private:
    ServiceSpec spec_;
    u128 committed_, excess_;
    uint64_t tick_ = 0;
};

class Policer {
public:
    explicit Policer(const std::vector<ServiceSpec> &services);
    // The colour of a frame whose last octet came at `tick`, by the first service that it belongs to; green: none has it.
    Colour colour(uint64_t tick, const Frame &frame);

private:
    struct Service {
        ServiceSpec spec;
        Buckets buckets;
    };
    std::vector<Service> services_;
};

}  // namespace liteprobe
