// This file is part of LiteProbe.
// SPDX-License-Identifier: BSD-2-Clause

#include "truth.h"

#include "spec.h"
#include "timing.h"

namespace liteprobe {

namespace {

constexpr size_t BUFFER = 1 << 20;
constexpr uint8_t PORTS_PER_PROBE = 16;   // In rows.
constexpr unsigned PCAPS_PER_PROBE = 3;

std::FILE *open_for_writing(const std::string &path) {
    std::FILE *file = std::fopen(path.c_str(), "wb");
    if (!file)
        throw UsageError("can't write " + path + ": give a path in a folder that exists and may be written");
    std::setvbuf(file, nullptr, _IOFBF, BUFFER);
    return file;
}

void write(std::FILE *file, const void *data, size_t size) {
    if (std::fwrite(data, 1, size, file) != size)
        throw std::runtime_error("can't write the truth or pcap file: is the disk full?");
}

}  // namespace

void Truth::open_rows(const std::string &path) { rows_ = open_for_writing(path); }

void Truth::open_pcaps(const std::string &prefix, const std::vector<std::string> &ports) {
    // Magic of nanosecond stamps, version 2.4, snap length, link type 1 (Ethernet).
    const uint32_t header[6] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 65535, 1};
    for (auto &port : ports)
        for (const char *direction : {"out", "in"}) {
            pcaps_.push_back(open_for_writing(prefix + "." + port + "." + direction + ".pcap"));
            write(pcaps_.back(), header, sizeof(header));
        }
}

void Truth::row(const TruthRow &row) {
    if (rows_)
        write(rows_, &row, sizeof(row));
}

void Truth::packet(unsigned port, Direction direction, uint64_t sfd_tick, const uint8_t *content, size_t size) {
    packet_at(port, direction, sfd_tick * NS_PER_TICK, content, size);
}

void Truth::packet_at(unsigned port, Direction direction, uint64_t ns, const uint8_t *content, size_t size) {
    if (pcaps_.empty() || size < FCS)
        return;
    uint32_t kept = static_cast<uint32_t>(size - FCS);
    const uint32_t header[4] = {static_cast<uint32_t>(ns / 1'000'000'000), static_cast<uint32_t>(ns % 1'000'000'000), kept, kept};
    std::FILE *file = pcaps_[2 * port + direction];
    write(file, header, sizeof(header));
    write(file, content, kept);
}

void Truth::flush() {
    if (rows_)
        std::fflush(rows_);
    for (auto *file : pcaps_)
        std::fflush(file);
}

void Truth::close() {
    if (rows_)
        std::fclose(rows_);
    for (auto *file : pcaps_)
        std::fclose(file);
    rows_ = nullptr;
    pcaps_.clear();
}

// View ------------------------------------------------------------------------------------------------

void TruthView::row(const TruthRow &row) {
    TruthRow moved = row;
    moved.sfd_tick = time_(row.sfd_tick) + late_ps_;
    if (row.port == TIMING_PORT) {  // Its moment is in picoseconds of true time already.
        moved.port = static_cast<uint8_t>(TIMING_PORT - probe_);
    } else {
        moved.port = static_cast<uint8_t>(row.port + PORTS_PER_PROBE * probe_);
        moved.origin_tick = row.origin_tick ? time_(row.origin_tick) : 0;
    }
    whole_.row(moved);
}

void TruthView::packet(unsigned port, Direction direction, uint64_t sfd_tick, const uint8_t *content, size_t size) {
    whole_.packet_at(port + PCAPS_PER_PROBE * probe_, direction, (time_(sfd_tick) + late_ps_) / 1000, content, size);
}

}  // namespace liteprobe
