// The outermost of the records that remain, measured exactly in every query.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "distance.hpp"
#include "simd.hpp"

namespace shoal {

// Records held column by column in float64, each with the block its neighbours are in.
class Rim {
  public:
    explicit Rim(std::size_t n_dims) : n_dims_(n_dims) {}

    std::size_t size() const { return records_.size(); }
    std::span<const std::uint32_t> records() const { return records_; }
    std::span<std::uint32_t> homes() { return homes_; }

    void clear() {
        records_.clear();
        homes_.clear();
    }

    // Takes a record in; it has the last slot.
    void insert(std::uint32_t record, std::span<const double> row, std::uint32_t home) {
        if (records_.size() == stride_) grow();
        for (std::size_t j = 0; j < n_dims_; ++j) columns_[j * stride_ + records_.size()] = row[j];
        records_.push_back(record);
        homes_.push_back(home);
    }

    // The last record takes the slot.
    void erase(std::size_t slot) {
        const std::size_t last = records_.size() - 1;
        for (std::size_t j = 0; j < n_dims_; ++j) columns_[j * stride_ + slot] = columns_[j * stride_ + last];
        records_[slot] = records_[last];
        homes_[slot] = homes_[last];
        records_.pop_back();
        homes_.pop_back();
    }

    // Squared distances of all its records from a point.
    std::span<const double> distances(const Loops& loops, std::span<const double> point) {
        loops.distances(columns_.data(), stride_, records_.size(), point, distances_.data());
        return {distances_.data(), records_.size()};
    }

    Farthest farthest(const Loops& loops, std::span<const double> point) {
        Farthest farthest;
        const auto distance = distances(loops, point);
        for (std::size_t i = 0; i < distance.size(); ++i) farthest.offer({distance[i], records_[i]});
        return farthest;
    }

  private:
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
};

}  // namespace shoal
