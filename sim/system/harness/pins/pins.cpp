// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "pins.h"

#include <algorithm>
#include <stdexcept>

#include "management.h"

namespace liteprobe {

// Tap -------------------------------------------------------------------------------------------------

void Tap::begin(uint64_t tick) {
    frame_ = std::make_shared<Frame>();
    frame_->octets.reserve(1600);
    frame_->first_tick = tick;
    frame_->number = count_++;
    announced_ = false;
    if (!link_up)
        frame_->cut = 0;
    if (sink && !management && link_up) {
        announced_ = true;
        sink->began(frame_);
    }
}

void Tap::set_link(bool is_up) {
    link_up = is_up;
    if (!is_up && frame_)
        frame_->cut = std::min(frame_->cut, static_cast<uint32_t>(frame_->octets.size()));
}

bool Tap::is_management(const Frame &frame) const {
    return management && (!sink || is_for_client(frame.content(), frame.size()));
}

void Tap::announce() {
    announced_ = true;
    frame_->management = is_management(*frame_);
    if (!frame_->management && sink && frame_->cut == NO_CUT)
        sink->began(frame_);
}

void Tap::end(uint64_t tick) {
    FramePtr frame = std::move(frame_);
    frame_ = nullptr;
    frame->complete = true;
    if (frame->sfd != NO_SFD)
        truth_.packet(port_, OUT, frame->sfd_tick(), frame->content(), frame->size());
    if (frame->cut != NO_CUT) {
        frame->fate = CUT;
        record(*frame);
    } else if (frame->management) {
        record(*frame);
        management->ended(frame, tick);
    } else if (sink) {
        if (!announced_)
            sink->began(frame);
        sink->ended(frame, tick);
    } else {
        record(*frame);
    }
}

void Tap::record(const Frame &frame) {
    if (!rows)
        return;
    uint32_t size = frame.size();
    uint8_t flags = fcs_is_right(frame.content(), size) ? 0 : BAD_FCS;
    flags |= (frame.sfd == NO_SFD ? MISSING_SFD : 0) | (frame.management ? FOREIGN : 0);
    truth_.row({frame.sfd_tick(), frame.number, size > FCS ? size - FCS : 0, static_cast<uint8_t>(port_), OUT, frame.fate,
                flags, probe_sequence(frame.content(), size), 0});
}

// Feeder ----------------------------------------------------------------------------------------------

constexpr uint64_t DRIFT_TICKS = 4;  // More than 10^4 octets drift at 200 ppm.
constexpr uint64_t LEAST_IFG = 8;    // What a clock-compensating repeater may leave.

void Feeder::set_link(bool is_up) {
    link_up = is_up;
    if (!is_up && current_.frame)
        current_.cut = std::min(current_.cut, static_cast<uint32_t>(index_));
}

void Feeder::from_wire(Delivery delivery) {
    if (asynchronous && delivery.cut_through)
        delivery.earliest += DRIFT_TICKS;
    wire_.push_back(std::move(delivery));
    update_wake();
}

void Feeder::from_client(const FramePtr &frame) {
    Delivery delivery{frame, 0};
    delivery.foreign = true;
    client_.push_back(std::move(delivery));
    update_wake();
}

void Feeder::update_wake() {
    wake_ = client_.empty() ? NEVER : client_.front().earliest;
    if (!wire_.empty())
        wake_ = std::min(wake_, wire_.front().earliest);
}

bool Feeder::is_free_for(const Delivery &delivery, uint64_t tick) const {
    uint64_t idle = own_tick_ - idle_since_;
    if (tick < delivery.earliest)
        return false;
    if (!delivery.cut_through)
        return idle >= IFG;
    return idle >= (asynchronous ? LEAST_IFG : IFG) || tick == delivery.earliest;
}

// Starts the next frame when the line is free: turn by turn where both sides have one.
void Feeder::choose(uint64_t tick) {
    bool wire = !wire_.empty() && is_free_for(wire_.front(), tick);
    bool client = !client_.empty() && is_free_for(client_.front(), tick);
    if (!wire && !client)
        return;
    bool take_client = client && (!wire || !client_was_last_);
    auto &queue = take_client ? client_ : wire_;
    Delivery delivery = std::move(queue.front());
    queue.pop_front();
    client_was_last_ = take_client;
    update_wake();
    if (!link_up) {
        finish(delivery, tick, CUT, 0);
        return;
    }
    current_ = std::move(delivery);
    index_ = 0;
    sfd_tick_ = tick;
    emit(tick);
}

void Feeder::emit(uint64_t tick) {
    const Frame &frame = *current_.frame;
    uint32_t cut = std::min(frame.cut, current_.cut);
    if (index_ < std::min<size_t>(frame.octets.size(), cut)) {
        valid = 1;
        data = frame.octets[index_];
        if (index_ == frame.sfd)
            sfd_tick_ = tick;
        else if (frame.corrupt_octet != NO_SFD && index_ == static_cast<size_t>(frame.sfd) + 1 + frame.corrupt_octet)
            data ^= 1 << frame.corrupt_bit;
        index_++;
        return;
    }
    if (index_ < cut && !frame.complete)
        throw std::runtime_error("the receive clock has overtaken a frame on the wire: give --ppm within +-200");
    valid = 0;
    data = 0;
    idle_since_ = own_tick_;
    finish(current_, sfd_tick_, cut == NO_CUT ? current_.fate : CUT, index_);
    current_ = Delivery{};
}

void Feeder::finish(const Delivery &delivery, uint64_t sfd_tick, Fate fate, size_t octets) {
    const Frame &frame = *delivery.frame;
    uint32_t size = frame.size();
    if (fate == CUT && octets)
        size = frame.sfd < octets ? static_cast<uint32_t>(octets) - frame.sfd - 1 : 0;
    uint32_t sequence = probe_sequence(frame.content(), size);
    bool is_corrupt = frame.corrupt_octet < size;
    if (fate == CORRUPTED && !is_corrupt)
        fate = DELIVERED;  // A runt ended before the octet that should have gone wrong.
    std::vector<uint8_t> content(frame.content(), frame.content() + size);
    if (is_corrupt)
        content[frame.corrupt_octet] ^= 1 << frame.corrupt_bit;
    if (frame.sfd < octets && fate != IN_FLIGHT && size >= FCS)
        truth_.packet(port_, IN, sfd_tick, content.data(), size);
    uint8_t flags = fcs_is_right(content.data(), size) ? 0 : BAD_FCS;
    flags |= (frame.sfd == NO_SFD ? MISSING_SFD : 0) | (delivery.foreign ? FOREIGN : 0);
    if (rows)
        truth_.row({sfd_tick, count_, size > FCS ? size - FCS : 0, static_cast<uint8_t>(port_), IN, fate, flags, sequence,
                    delivery.foreign ? 0 : frame.sfd_tick()});
    count_++;
}

void Feeder::close() {
    if (current_.frame)
        finish(current_, sfd_tick_, IN_FLIGHT, index_);
    for (auto *queue : {&wire_, &client_})
        for (auto &delivery : *queue)
            finish(delivery, delivery.earliest, IN_FLIGHT, 0);
    current_ = Delivery{};
    wire_.clear();
    client_.clear();
}

}  // namespace liteprobe
