// The outermost of the remaining records, measured exactly in every query.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "numeric/distance.hpp"
#include "numeric/selection.hpp"
#include "numeric/simd.hpp"

namespace shoal {

// Records stored column by column in float64, each with the block of its neighbours.
class OutermostRecords {
  public:
    explicit OutermostRecords(std::size_t n_dims) : n_dims_(n_dims) {}

    static constexpr std::uint32_t none = 0xffffffff;

    std::size_t n_slots() const { return records_.size(); }
    // Of each slot, or none.
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

    // Removes a record. Its slot stays empty, so that little is written that other threads have read.
    void erase(std::size_t slot) {
        records_[slot] = none;
        ++n_empty_;
        if (ranks_[slot] != none) outward_[ranks_[slot]].slot = none;
    }

    // Whether there are many empty slots.
    bool has_gaps() const { return n_empty_ > n_at_once && n_empty_ > records_.size() / 4; }

    // Moves records to the first slots.
    void close_gaps() {
        std::size_t n = 0;
        for (std::size_t slot = 0; slot < records_.size(); ++slot) {
            if (records_[slot] == none) continue;
            for (std::size_t j = 0; j < n_dims_; ++j) columns_[j * stride_ + n] = columns_[j * stride_ + slot];
            records_[n] = records_[slot];
            homes_[n] = homes_[slot];
            ranks_[n] = ranks_[slot];
            if (ranks_[n] != none) outward_[ranks_[n]].slot = static_cast<std::uint32_t>(n);
            ++n;
        }
        for (auto* numbers : {&records_, &homes_, &ranks_}) numbers->resize(n);
        n_empty_ = 0;
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
        for (std::size_t i = 0; i < n; ++i)
            if (records_[from + i] != none) found({distance[i], records_[from + i]});
    }

    // The record farthest from a point that moves little between calls, and how far the second is. Only records that
    // were about as far from its previous position are measured; if it has moved so much that these are more than a
    // few, all are. Of records that are not measured, none is the farthest from any point within `blur` of this one.
    struct FarthestTwo : Farthest {
        double second = -1;
        void offer(const Candidate& other) {
            const double before = distance;
            second = std::max(second, Farthest::offer(other) ? before : other.distance);
        }
    };
    FarthestTwo farthest(const Loops& loops, std::span<const double> point, double blur = 0) {
        if (seen_from_.empty()) return measure_all(loops, point);
        while (first_ < outward_.size() && outward_[first_].slot == none) ++first_;
        const double top = first_ < outward_.size() ? outward_[first_].radius : 0.0;
        const double moved = (std::sqrt(squared_distance(point, seen_from_)) + blur) * (1 + slack);
        const double least = top * (1 - slack) - 2 * moved;
        // Squares of such small numbers may have lost digits.
        if (top < 1e-140 || !(beyond_ < least)) return measure_all(loops, point);
        FarthestTwo farthest;
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

    // About the n farthest from such a point, the farthest first.
    std::span<const Candidate> outermost(const Loops& loops, std::span<const double> point, std::size_t n) {
        if (seen_from_.empty()) measure_all(loops, point);
        outermost_.clear();
        for (std::size_t i = first_; i < outward_.size() && outermost_.size() < n; ++i)
            if (const std::uint32_t slot = outward_[i].slot; slot != none)
                outermost_.push_back({distance(slot, point), records_[slot]});
        std::ranges::sort(outermost_, is_farther);
        return outermost_;
    }

  private:
    static constexpr std::size_t most_measured = 32;
    static constexpr std::size_t most_ranked = 256;

    // How far from the point of the last search among all records a record is.
    struct Ranked {
        double radius;
        std::uint32_t slot;  // none, once it is erased
    };

    // Ranks the farthest ones for the next calls.
    FarthestTwo measure_all(const Loops& loops, std::span<const double> point) {
        seen_from_.assign(point.begin(), point.end());
        outward_.clear();
        FarthestTwo farthest;
        std::uint32_t slot = 0;
        for (std::size_t from = 0; from < records_.size(); from += n_at_once)
            measure(loops, point, from, [&](const Candidate& candidate) {
                farthest.offer(candidate);
                while (records_[slot] == none) ++slot;
                outward_.push_back({std::sqrt(candidate.distance), slot++});
            });
        rank();
        return farthest;
    }

    void rank() {
        const auto farther = [](const Ranked& one, const Ranked& other) {
            return one.radius > other.radius || (one.radius == other.radius && one.slot < other.slot);
        };
        first_ = 0;
        beyond_ = -1;
        if (outward_.size() > most_ranked) {
            const auto end = outward_.begin() + static_cast<std::ptrdiff_t>(most_ranked);
            select_nth(outward_.begin(), end, outward_.end(), farther);
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
    std::size_t n_empty_ = 0;
    std::vector<double> seen_from_;     // point of the last search among all records, or empty
    std::vector<Ranked> outward_;       // the farthest from there, the farthest first
    std::vector<std::uint32_t> ranks_;  // of each record there, or none
    std::size_t first_ = 0;             // all before it are erased
    std::vector<Candidate> outermost_;  // room to work in
    double beyond_ = -1;                // no record that is not ranked is farther from there
};

}  // namespace shoal
