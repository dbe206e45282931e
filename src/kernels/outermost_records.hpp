// The outermost of the remaining records, measured exactly in every query.
#pragma once

#include <algorithm>
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
        radii_.push_back(seen_from_.empty() ? 0.0 : std::sqrt(squared_distance(row, seen_from_)));
    }

    // Removes a record; the last record moves to its slot.
    void erase(std::size_t slot) {
        const std::size_t last = records_.size() - 1;
        for (std::size_t j = 0; j < n_dims_; ++j) columns_[j * stride_ + slot] = columns_[j * stride_ + last];
        records_[slot] = records_[last];
        homes_[slot] = homes_[last];
        radii_[slot] = radii_[last];
        records_.pop_back();
        homes_.pop_back();
        radii_.pop_back();
    }

    // Number of records measured at a time: whole chunks of the loops.
    static constexpr std::size_t n_at_once = 128;

    // Squared distances from a point of up to `n_at_once` records, starting at a multiple of that number.
    std::span<const double> distances(const Loops& loops, std::span<const double> point, std::size_t from) {
        const std::size_t n = std::min(n_at_once, records_.size() - from);
        loops.distances(columns_.data() + from, stride_, n, point, distances_.data() + from);
        return {distances_.data() + from, n};
    }

    // The record farthest from a point that moves little between calls. Only records that were about as far from its
    // previous position are measured; if it has moved so much that these are more than a few, all are.
    Farthest farthest(const Loops& loops, std::span<const double> point) {
        if (seen_from_.empty()) return measure_all(loops, point);
        const double moved = std::sqrt(squared_distance(point, seen_from_)) * (1 + slack);
        const double top = records_.empty() ? 0.0 : *std::max_element(radii_.begin(), radii_.end());
        const double least = top * (1 - slack) - 2 * moved;
        // Squares of such small numbers may have lost digits.
        if (top < 1e-140) return measure_all(loops, point);
        Farthest farthest;
        std::size_t n_measured = 0;
        for (std::size_t i = 0; i < records_.size(); ++i) {
            if (radii_[i] < least) continue;
            farthest.offer({distance(i, point), records_[i]});
            ++n_measured;
        }
        if (n_measured > most_measured) seen_from_.clear();
        return farthest;
    }

  private:
    static constexpr std::size_t most_measured = 32;

    Farthest measure_all(const Loops& loops, std::span<const double> point) {
        seen_from_.assign(point.begin(), point.end());
        loops.distances(columns_.data(), stride_, records_.size(), point, distances_.data());
        Farthest farthest;
        for (std::size_t i = 0; i < records_.size(); ++i) {
            farthest.offer({distances_[i], records_[i]});
            radii_[i] = std::sqrt(distances_[i]);
        }
        return farthest;
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
        distances_.resize(stride);
        stride_ = stride;
    }

    std::size_t n_dims_;
    std::size_t stride_ = 0;
    std::vector<double> columns_;
    std::vector<double> distances_;
    std::vector<std::uint32_t> records_;
    std::vector<std::uint32_t> homes_;
    std::vector<double> seen_from_;  // point of the last search among all records, or empty
    std::vector<double> radii_;      // distances from there
};

}  // namespace shoal
