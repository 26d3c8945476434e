// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "policer.h"

#include <algorithm>

#include "packets.h"

namespace liteprobe {

Buckets::Buckets(const ServiceSpec &spec)
    : spec_(spec), committed_(static_cast<u128>(spec.cbs) * PPB), excess_(static_cast<u128>(spec.ebs) * PPB) {}

Colour Buckets::take(uint64_t tick, uint64_t octets) {
    const u128 committed_most = static_cast<u128>(spec_.cbs) * PPB, excess_most = static_cast<u128>(spec_.ebs) * PPB;
    const u128 passed = tick - tick_, needed = static_cast<u128>(octets) * PPB;
    tick_ = tick;
    committed_ += passed * spec_.cir;
    u128 overflow = committed_ - std::min(committed_, committed_most);
    committed_ -= overflow;
    excess_ = std::min(excess_ + passed * spec_.eir + (spec_.couples ? overflow : 0), excess_most);
    if (committed_ >= needed) {
        committed_ -= needed;
        return Colour::GREEN;
    }
    if (excess_ >= needed) {
        excess_ -= needed;
        return Colour::YELLOW;
    }
    return Colour::RED;
}

Policer::Policer(const std::vector<ServiceSpec> &services) {
    for (auto &spec : services)
        services_.push_back({spec, Buckets(spec)});
}

Colour Policer::colour(uint64_t tick, const Frame &frame) {
    if (services_.empty())
        return Colour::GREEN;
    const Labels labels = labels_of(frame.content(), frame.size());
    for (auto &service : services_) {
        const int of[] = {0, labels.vlan, labels.dscp, labels.udp_port};
        if (service.spec.match == ServiceSpec::ALL || of[service.spec.match] == static_cast<int>(service.spec.value))
            return service.buckets.take(tick, frame.size());
    }
    return Colour::GREEN;
}

}  // namespace liteprobe
