// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "wire.h"

#include <algorithm>
#include <numeric>

namespace liteprobe {

namespace {

constexpr uint32_t SHORTEST = 64;  // Octets with FCS: what a cut-through wire may corrupt before it knows the length.
constexpr uint64_t STREAMS = 16;   // Random streams of one port.
enum Stream : uint64_t { FRAMES, CROSS_FIRST, CROSS_LAST };

}  // namespace

// Path ------------------------------------------------------------------------------------------------

Path::Path(const WireSpec &spec, unsigned from, Tap &in, Feeder &out)
    : spec_(spec), in_(in), out_(out), random_(spec.seed, STREAMS * from + FRAMES) {}

void Path::decide(Frame &frame, uint32_t corruptible) {
    bool lost = random_.happens(spec_.loss);
    bool corrupt = random_.happens(spec_.corrupt);
    uint64_t where = random_.below(8ull * std::max<uint32_t>(corruptible, 1));
    entered_++;
    if (spec_.cut_after && entered_ > spec_.cut_after) {
        frame.fate = CUT;
    } else if (lost) {
        frame.fate = LOST;
    } else if (corrupt && corruptible) {
        frame.fate = CORRUPTED;
        frame.corrupt_octet = static_cast<uint32_t>(where / 8);
        frame.corrupt_bit = where % 8;
    }
}

// Cable -----------------------------------------------------------------------------------------------

void CablePath::began(const FramePtr &frame) {
    decide(*frame, SHORTEST);
    if (frame->fate != DELIVERED && frame->fate != CORRUPTED)
        return;
    Delivery delivery{frame, frame->first_tick + spec_.delay};
    delivery.fate = frame->fate;
    delivery.cut_through = true;
    out_.from_wire(std::move(delivery));
}

void CablePath::ended(const FramePtr &frame, uint64_t) {
    if (frame->fate == CORRUPTED && frame->corrupt_octet >= frame->size())
        frame->fate = DELIVERED;
    in_.record(*frame);
}

// Cross traffic ---------------------------------------------------------------------------------------

CrossTraffic::CrossTraffic(const WireSpec &spec, uint64_t load_ppb, uint64_t numerator, uint64_t denominator,
                           uint64_t seed_stream)
    : random_(spec.seed, seed_stream), poisson_(spec.cross_poisson) {
    if (!load_ppb)
        return;
    u128 octets = spec.cross_size + FCS + PREAMBLE + IFG;
    mean_ = (octets * numerator * PPB << 32) / (static_cast<u128>(denominator) * load_ppb);
    next_ = poisson_ ? interval() : (mean_ * (random_.next() >> 32)) >> 32;
}

// Hop -------------------------------------------------------------------------------------------------

Hop::Hop(const WireSpec &spec, uint64_t rate, uint64_t load_ppb, uint64_t seed_stream)
    : queue_(spec.queue), numerator_(LINE_RATE / std::gcd(LINE_RATE, rate)), denominator_(rate / std::gcd(LINE_RATE, rate)),
      cross_octets_(spec.cross_size + FCS + PREAMBLE), cross_(spec, load_ppb, numerator_, denominator_, seed_stream) {}

Hop::Service Hop::offer(uint64_t arrival, uint64_t octets) {
    while (cross_.next_tick() <= arrival)
        offer_cross();
    return serve(arrival, octets);
}

Hop::Service Hop::offer_cross() {
    Service service = serve(cross_.next_tick(), cross_octets_);
    cross_.step();
    return service;
}

Hop::Service Hop::serve(uint64_t arrival, uint64_t octets) {
    u128 now = static_cast<u128>(arrival) * denominator_;
    while (!starts_.empty() && starts_.front() <= now)
        starts_.pop_front();
    if (starts_.size() >= queue_)
        return {false, 0, 0};
    u128 start = std::max(now, free_);
    u128 end = start + static_cast<u128>(octets) * numerator_;
    free_ = end + static_cast<u128>(IFG) * numerator_;
    starts_.push_back(start);
    return {true, static_cast<uint64_t>(start / denominator_), static_cast<uint64_t>((end + denominator_ - 1) / denominator_)};
}

// Switch ----------------------------------------------------------------------------------------------

SwitchPath::SwitchPath(const WireSpec &spec, unsigned from, Tap &in, Feeder &out) : Path(spec, from, in, out) {
    if (spec.two_hops())
        first_ = std::make_unique<Hop>(spec, spec.rate, spec.cross, STREAMS * from + CROSS_FIRST);
    last_ = std::make_unique<Hop>(spec, LINE_RATE, spec.two_hops() ? spec.cross2 : spec.cross, STREAMS * from + CROSS_LAST);
    update_due();
}

void SwitchPath::ended(const FramePtr &frame, uint64_t tick) {
    decide(*frame, frame->size());
    bool duplicate = random_.happens(spec_.duplicate);
    bool reorder = random_.happens(spec_.reorder);
    if (frame->sfd == NO_SFD && frame->fate != CUT)
        frame->fate = LOST;  // A switch finds no frame without a start.
    if (frame->fate == CUT || frame->fate == LOST) {
        in_.record(*frame);
        return;
    }
    Heap &heap = first_ ? at_first_ : at_last_;
    uint64_t arrival = tick + spec_.latency + (reorder ? spec_.reorder_by : 0);
    heap.push({arrival, order_++, frame, false});
    if (duplicate)
        heap.push({arrival, order_++, frame, true});
    update_due();
}

void SwitchPath::advance(uint64_t tick) {
    while (!at_first_.empty() && at_first_.top().tick <= tick) {
        Arrival arrival = at_first_.top();
        at_first_.pop();
        at_first(arrival);
    }
    if (spec_.cross_deliver)
        deliver_cross(tick);
    while (!at_last_.empty() && at_last_.top().tick <= tick) {
        Arrival arrival = at_last_.top();
        at_last_.pop();
        at_last(arrival);
    }
    update_due();
}

void SwitchPath::at_first(const Arrival &arrival) {
    Hop::Service service = first_->offer(arrival.tick, arrival.frame->octets.size());
    if (!service.accepted)
        return drop(arrival);
    at_last_.push({service.last_tick + spec_.latency2, order_++, arrival.frame, arrival.is_copy});
}

void SwitchPath::at_last(const Arrival &arrival) {
    Hop::Service service = last_->offer(arrival.tick, arrival.frame->octets.size());
    if (!service.accepted)
        return drop(arrival);
    Delivery delivery{arrival.frame, service.first_tick};
    delivery.fate = arrival.is_copy ? DUPLICATE : arrival.frame->fate;
    out_.from_wire(std::move(delivery));
    if (!arrival.is_copy)
        in_.record(*arrival.frame);
}

void SwitchPath::deliver_cross(uint64_t tick) {
    while (last_->next_cross() <= tick) {
        Hop::Service service = last_->offer_cross();
        if (!service.accepted)
            continue;
        // To a MAC of nobody, EtherType 88B5 (local experiment, IEEE 802).
        std::vector<uint8_t> content = {0x02, 0, 0, 0, 0xff, 0x02, 0x02, 0, 0, 0, 0xff, 0x01, 0x88, 0xB5};
        content.resize(spec_.cross_size, 0);
        Delivery delivery{make_frame(std::move(content)), service.first_tick};
        delivery.foreign = true;
        out_.from_wire(std::move(delivery));
    }
}

// A copy that finds the queue full leaves no trace: its original has its own row.
void SwitchPath::drop(const Arrival &arrival) {
    if (arrival.is_copy)
        return;
    arrival.frame->fate = QUEUE_DROP;
    in_.record(*arrival.frame);
}

void SwitchPath::update_due() {
    due_ = spec_.cross_deliver ? last_->next_cross() : NEVER;
    for (Heap *heap : {&at_first_, &at_last_})
        if (!heap->empty())
            due_ = std::min(due_, heap->top().tick);
}

void SwitchPath::close() {
    for (Heap *heap : {&at_first_, &at_last_})
        for (; !heap->empty(); heap->pop())
            if (!heap->top().is_copy) {
                heap->top().frame->fate = IN_FLIGHT;
                in_.record(*heap->top().frame);
            }
}

std::unique_ptr<Path> make_path(const WireSpec &spec, unsigned from, Tap &in, Feeder &out) {
    if (spec.kind == WireKind::SWITCH)
        return std::make_unique<SwitchPath>(spec, from, in, out);
    return std::make_unique<CablePath>(spec, from, in, out);
}

}  // namespace liteprobe
