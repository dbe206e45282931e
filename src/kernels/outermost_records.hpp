// The outermost of the remaining records, measured exactly in every query.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "distance.hpp"
#include "simd.hpp"

namespace shoal {

// Records stored column by column in float64, each with the block of its neighbours.
class OutermostRecords {
  public:
    explicit OutermostRecords(std::size_t n_dims) : n_dims_(n_dims) {}

    std::size_t size() const { return records_.size(); }
    std::span<const std::uint32_t> records() const { return records_; }
    std::span<std::uint32_t> homes() { return homes_; }

    // Adds a record in the last slot.
    void insert(std::uint32_t record, std::span<const double> row, std::uint32_t home) {
        if (records_.size() == stride_) grow();
        for (std::size_t j = 0; j < n_dims_; ++j) columns_[j * stride_ + records_.size()] = row[j];
        records_.push_back(record);
        homes_.push_back(home);
        ranks_.push_back(none);
        seen_from_.clear();
    }

    // Removes a record; the last record moves to its slot.
    void erase(std::size_t slot) {
        const std::size_t last = records_.size() - 1;
        for (std::size_t j = 0; j < n_dims_; ++j) columns_[j * stride_ + slot] = columns_[j * stride_ + last];
        records_[slot] = records_[last];
        homes_[slot] = homes_[last];
        if (ranks_[slot] != none) outward_[ranks_[slot]].slot = none;
        if (slot != last && ranks_[last] != none) outward_[ranks_[last]].slot = static_cast<std::uint32_t>(slot);
        ranks_[slot] = ranks_[last];
        records_.pop_back();
        homes_.pop_back();
        ranks_.pop_back();
    }

    // Number of records measured at a time: a chunk of the loops.
    static constexpr std::size_t n_at_once = 64;
    std::size_t n_chunks() const { return (records_.size() + n_at_once - 1) / n_at_once; }

    // Calls found(candidate) for up to `n_at_once` records, starting at a multiple of that number.
    template <class Found>
    void measure(const Loops& loops, std::span<const double> point, std::size_t from, const Found& found) const {
        std::array<double, n_at_once> distance;
        const std::size_t n = std::min(n_at_once, records_.size() - from);
        loops.distances(columns_.data() + from, stride_, n, point, distance.data());
        for (std::size_t i = 0; i < n; ++i) found({distance[i], records_[from + i]});
    }

    // The record farthest from a point that moves little between calls. Only records that were about as far from its
    // previous position are measured; if it has moved so much that these are more than a few, all are.
    Farthest farthest(const Loops& loops, std::span<const double> point) {
        if (seen_from_.empty()) return measure_all(loops, point);
        while (first_ < outward_.size() && outward_[first_].slot == none) ++first_;
        const double top = first_ < outward_.size() ? outward_[first_].radius : 0.0;
        const double moved = std::sqrt(squared_distance(point, seen_from_)) * (1 + slack);
        const double least = top * (1 - slack) - 2 * moved;
        // Squares of such small numbers may have lost digits.
        if (top < 1e-140 || !(beyond_ < least)) return measure_all(loops, point);
        Farthest farthest;
        std::size_t n_measured = 0;
        for (std::size_t i = first_; i < outward_.size() && outward_[i].radius >= least; ++i) {
            const std::uint32_t slot = outward_[i].slot;
            if (slot == none) continue;
            farthest.offer({distance(slot, point), records_[slot]});
            ++n_measured;
        }
        if (n_measured > most_measured) seen_from_.clear();
        return farthest;
    }

  private:
    static constexpr std::size_t most_measured = 32;
    static constexpr std::size_t most_ranked = 256;
    static constexpr std::uint32_t none = 0xffffffff;

    // How far from the point of the last search among all records a record is.
    struct Ranked {
        double radius;
        std::uint32_t slot;  // none, once it is erased
    };

    // Ranks the farthest ones for the next calls.
    Farthest measure_all(const Loops& loops, std::span<const double> point) {
        seen_from_.assign(point.begin(), point.end());
        outward_.clear();
        Farthest farthest;
        for (std::size_t from = 0; from < records_.size(); from += n_at_once)
            measure(loops, point, from, [&](const Candidate& candidate) {
                farthest.offer(candidate);
                outward_.push_back({std::sqrt(candidate.distance), static_cast<std::uint32_t>(outward_.size())});
            });
        rank();
        return farthest;
    }

    void rank() {
        const auto farther = [](const Ranked& one, const Ranked& other) { return one.radius > other.radius; };
        first_ = 0;
        beyond_ = -1;
        if (outward_.size() > most_ranked) {
            const auto end = outward_.begin() + static_cast<std::ptrdiff_t>(most_ranked);
            std::ranges::nth_element(outward_, end, farther);
            beyond_ = end->radius;
            outward_.erase(end, outward_.end());
        }
        std::ranges::sort(outward_, farther);
        std::ranges::fill(ranks_, none);
        for (std::uint32_t i = 0; i < outward_.size(); ++i) ranks_[outward_[i].slot] = i;
    }

    double distance(std::size_t slot, std::span<const double> point) const {
        double sum = 0;
        for (std::size_t j = 0; j < n_dims_; ++j) {
            const double difference = columns_[j * stride_ + slot] - point[j];
            sum += difference * difference;
        }
        return sum;
    }

    void grow() {
        // Loops run over whole chunks of 64.
        const std::size_t stride = 2 * stride_ + 256;
        std::vector<double> columns(n_dims_ * stride, 0.0);
        for (std::size_t j = 0; j < n_dims_; ++j)
            std::copy_n(columns_.begin() + static_cast<std::ptrdiff_t>(j * stride_), records_.size(),
                        columns.begin() + static_cast<std::ptrdiff_t>(j * stride));
        columns_ = std::move(columns);
        stride_ = stride;
    }

    std::size_t n_dims_;
    std::size_t stride_ = 0;
    std::vector<double> columns_;
    std::vector<std::uint32_t> records_;
    std::vector<std::uint32_t> homes_;
    std::vector<double> seen_from_;     // point of the last search among all records, or empty
    std::vector<Ranked> outward_;       // the farthest from there, the farthest first
    std::vector<std::uint32_t> ranks_;  // of each record there, or none
    std::size_t first_ = 0;             // all before it are erased
    double beyond_ = -1;                // no record that is not ranked is farther from there
};

}  // namespace shoal
