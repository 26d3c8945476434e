// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "device.h"

#include <algorithm>
#include <numeric>

#include "router.h"

namespace liteprobe {

namespace {

constexpr uint32_t CUT_CORRUPTIBLE = 64;  // Octets with FCS, as on a cable.

}  // namespace

// Output ----------------------------------------------------------------------------------------------

Output::Output(const WireSpec &spec, Feeder &feeder_)
    : feeder(feeder_), spec_(spec), rate_numerator_(LINE_RATE / std::gcd(LINE_RATE, spec.rate)),
      rate_denominator_(spec.rate / std::gcd(LINE_RATE, spec.rate)),
      packet_numerator_(spec.device.packets ? TICKS_A_SECOND / std::gcd(TICKS_A_SECOND, spec.device.packets) : 0),
      packet_denominator_(spec.device.packets ? spec.device.packets / std::gcd(TICKS_A_SECOND, spec.device.packets) : 1),
      parts_(static_cast<u128>(rate_denominator_) * packet_denominator_) {}

// When the server is done with the last frame; its length is known by now, for it came by the same line as this one.
u128 Output::first_free() const {
    if (!last_)
        return 0;
    u128 line = static_cast<u128>(last_->octets.size() + IFG) * rate_numerator_ * packet_denominator_;
    u128 packet = static_cast<u128>(packet_numerator_) * rate_denominator_;
    return last_start_ + std::max(line, packet);
}

Output::Service Output::serve(uint64_t arrival, const FramePtr &frame) {
    const Window &reboot = spec_.device.reboot, &pause = spec_.device.pause;
    if (reboot.begun(arrival) != reboots_) {
        reboots_ = reboot.begun(arrival);
        waiting_.clear();
        octets_ = 0;
        last_ = nullptr;
    }
    if (reboot.contains(arrival))
        return {Outcome::REBOOTED, 0};
    const u128 now = arrival * parts_;
    while (!waiting_.empty() && waiting_.front().until <= now) {
        octets_ -= waiting_.front().octets;
        waiting_.pop_front();
    }
    const uint64_t octets = frame->size();
    if (waiting_.size() >= spec_.queue || (spec_.device.buffer && octets_ + octets > spec_.device.buffer))
        return {Outcome::FULL, 0};
    u128 start = std::max(now, first_free());
    if (uint64_t tick = static_cast<uint64_t>(start / parts_); pause.contains(tick))
        start = pause.end(tick) * parts_;
    if (start > now) {
        waiting_.push_back({start, octets});
        octets_ += octets;
    }
    last_start_ = start;
    last_ = frame;
    if (uint64_t dies = reboot.next(arrival); dies != NEVER && start >= dies * parts_)
        return {Outcome::REBOOTED, 0};
    return {Outcome::SENT, static_cast<uint64_t>((start + parts_ - 1) / parts_)};
}

// Device ----------------------------------------------------------------------------------------------

Device::Device(const WireSpec &spec, SetLink set_link)
    : spec_(spec), set_link_(std::move(set_link)), policers_(DEVICE_PORTS, Policer(spec.device.services)),
      addresses_(spec_.device) {
    if (spec_.device.flap.length)
        flap_due_ = spec_.device.flap.at;
    due_ = flap_due_;
}

void Device::attach(unsigned port, Tap &in, Feeder &out) {
    taps_[port] = &in;
    outputs_[1 - port] = std::make_unique<Output>(spec_, out);
}

void Device::settle(unsigned port, const FramePtr &frame, Fate fate) {
    if (fate != DELIVERED || frame->fate != CORRUPTED)
        frame->fate = fate;
    frame->settled = true;
    if (frame->complete)
        record(port, frame);
}

void Device::record(unsigned port, const FramePtr &frame) {
    if (frame->fate == CORRUPTED && frame->corrupt_octet >= frame->size())
        frame->fate = DELIVERED;  // It ended before that octet.
    taps_[port]->record(*frame);
}

void Device::take(unsigned port, const FramePtr &frame, uint64_t tick) {
    if (spec_.device.reboot.begun(tick) != reboots_) {
        reboots_ = spec_.device.reboot.begun(tick);
        rebooted();
    }
    const DeviceSpec &device = spec_.device;
    const bool is_sound = cuts_through() || fcs_is_right(frame->content(), frame->size());
    if (frame->fate == CUT || frame->fate == LOST)
        return settle(port, frame, frame->fate);
    if (device.largest && frame->size() > device.largest)
        return settle(port, frame, LOST);
    if (!is_sound || device.does == Does::DROP || (device.fault_size && frame->size() == device.fault_size) ||
        device.reboot.contains(tick) || (device.load && is_above_load(port, *frame, tick)))
        return settle(port, frame, LOST);
    if (policers_[port].colour(tick, *frame) == Colour::RED)
        return settle(port, frame, REFUSED);
    if (device.storm && (frame->content()[0] & 1) && is_storm(port, tick))
        return settle(port, frame, LOST);
    if (device.table && addresses_.filters(port, frame->content(), tick))
        return settle(port, frame, REFUSED);
    if (device.answers_all)
        answer_for_others(port, *frame, tick);
    forward(port, frame, tick);
}

// A bucket of `load_burst` octets of the line, kept as the time at which it would be full again.
bool Device::is_above_load(unsigned port, const Frame &frame, uint64_t tick) {
    const uint64_t share = spec_.device.load;
    const u128 now = static_cast<u128>(tick) * share, depth = static_cast<u128>(spec_.device.load_burst) * PPB;
    const u128 full = std::max(load_full_[port], now) + static_cast<u128>(frame.octets.size() + IFG) * PPB;
    if (full > now + depth)
        return true;
    load_full_[port] = full;
    return false;
}

// Frames to groups pass no closer than `storm` a second.
bool Device::is_storm(unsigned port, uint64_t tick) {
    const u128 now = static_cast<u128>(tick) * spec_.device.storm;
    if (now < storm_free_[port])
        return true;
    storm_free_[port] = now + TICKS_A_SECOND;
    return false;
}

void Device::forward(unsigned port, const FramePtr &frame, uint64_t tick) {
    if (spec_.device.does == Does::RETURN)
        return send(port, frame, tick, port);
    send(1 - port, frame, tick, port);
    if (spec_.device.does != Does::FLOOD)
        return;
    for (uint64_t copy = 1; copy < spec_.device.copies; copy++)
        send(1 - port, frame, tick, NOBODY);
    for (uint64_t copy = 0; copy < spec_.device.copies; copy++)
        send(port, frame, tick, NOBODY);
}

void Device::answer_for_others(unsigned port, const Frame &frame, uint64_t tick) {
    const uint8_t *content = frame.content();
    if (frame.size() < 14 + FCS)
        return;
    auto question = question_of(static_cast<uint16_t>(get_number(content + 12, 2)), content + 14, frame.size() - 14 - FCS);
    if (!question)
        return;
    question->sender = question->told.value_or(get_array<6>(content + 6));
    send_own(port, answer_to(*question, mac(port), false), tick);
}

void Device::send(unsigned port, const FramePtr &frame, uint64_t tick, unsigned from, FramePtr original) {
    arrivals_.push({tick + spec_.latency, order_++, port, from, frame, original ? original : frame, false});
    update_due();
}

void Device::send_own(unsigned port, Octets content, uint64_t tick) {
    FramePtr frame = make_frame(std::move(content));
    arrivals_.push({tick + spec_.latency, order_++, port, NOBODY, frame, frame, true});
    update_due();
}

void Device::advance(uint64_t tick) {
    if (flap_due_ <= tick)
        flap(tick);
    while (!arrivals_.empty() && arrivals_.top().tick <= tick) {
        Arrival arrival = arrivals_.top();
        arrivals_.pop();
        leave(arrival);
    }
    update_due();
}

void Device::leave(const Arrival &arrival) {
    const bool is_counted = arrival.from != NOBODY;
    if (is_counted && arrival.original->cut != NO_CUT)
        return;  // Its link dropped before it was whole, and its row is written.
    Output::Service service = outputs_[arrival.port]->serve(arrival.tick, arrival.frame);
    if (service.outcome != Output::Outcome::SENT) {
        if (is_counted)
            settle(arrival.from, arrival.original, service.outcome == Output::Outcome::FULL ? QUEUE_DROP : LOST);
        return;
    }
    Delivery delivery{arrival.frame, service.first_tick};
    delivery.foreign = arrival.is_own;
    delivery.fate = is_counted || arrival.is_own ? arrival.frame->fate : DUPLICATE;
    delivery.cut_through = cuts_through();
    outputs_[arrival.port]->feeder.from_wire(std::move(delivery));
    if (is_counted)
        settle(arrival.from, arrival.original, DELIVERED);
}

void Device::flap(uint64_t tick) {
    const Window &flap = spec_.device.flap;
    const bool is_down = flap.contains(tick);
    if (is_down != is_flapped_)
        set_link_(spec_.device.flap_port, !is_down);
    is_flapped_ = is_down;
    flap_due_ = is_down ? flap.end(tick) : flap.next(tick);
}

void Device::update_due() {
    due_ = std::min(flap_due_, own_due());
    if (!arrivals_.empty())
        due_ = std::min(due_, arrivals_.top().tick);
}

void Device::close() {
    for (; !arrivals_.empty(); arrivals_.pop())
        if (const Arrival &arrival = arrivals_.top(); arrival.from != NOBODY && arrival.original->cut == NO_CUT)
            settle(arrival.from, arrival.original, IN_FLIGHT);
}

std::shared_ptr<Device> make_device(const WireSpec &spec, Device::SetLink set_link) {
    if (spec.kind == WireKind::ROUTER)
        return std::make_shared<Router>(spec, std::move(set_link));
    return std::make_shared<Device>(spec, std::move(set_link));
}

// Path ------------------------------------------------------------------------------------------------

DevicePath::DevicePath(const WireSpec &spec, unsigned port, Tap &in, Feeder &out, std::shared_ptr<Device> device)
    : Path(spec, port, in, out), port_(port), device_(std::move(device)) {
    device_->attach(port, in, out);
}

void DevicePath::take(const FramePtr &frame, uint64_t tick, uint32_t corruptible) {
    decide(*frame, corruptible);
    if (frame->complete && frame->sfd == NO_SFD && frame->fate != CUT)
        frame->fate = LOST;  // Nobody finds a frame without a start.
    device_->take(port_, frame, tick);
}

void DevicePath::began(const FramePtr &frame) {
    if (device_->cuts_through())
        take(frame, frame->first_tick, CUT_CORRUPTIBLE);
}

void DevicePath::ended(const FramePtr &frame, uint64_t tick) {
    if (!device_->cuts_through())
        return take(frame, tick, frame->size());
    if (frame->settled)
        device_->record(port_, frame);
}

void DevicePath::close() {
    if (!port_)
        device_->close();
}

}  // namespace liteprobe
