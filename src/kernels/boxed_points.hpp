// Points in blocks of neighbours with bounding boxes, and a search for near pairs between two sets of points.
//
// Floats exclude whole blocks by their boxes, then single points. The caller measures the remaining pairs in float64.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "rows.hpp"
#include "simd.hpp"
#include "spatial_order.hpp"

namespace shoal {

// Turns rows into floats: scaled by a power of two and relative to a centre. Columns of large variance come first, so
// that a few columns exclude most pairs.
class FloatFrame {
  public:
    FloatFrame(Rows<const double> points, double scale)
        : scale_(scale), middle_(points.dims(), 0.0), columns_(points.dims()) {
        const auto n = static_cast<double>(points.size());
        for (std::size_t i = 0; i < points.size(); ++i)
            for (std::size_t j = 0; j < points.dims(); ++j) middle_[j] += points[i][j] * scale_ / n;
        std::vector<double> spread(points.dims(), 0.0);
        for (std::size_t i = 0; i < points.size(); ++i)
            for (std::size_t j = 0; j < points.dims(); ++j) {
                const double away = points[i][j] * scale_ - middle_[j];
                spread[j] += away * away;
            }
        std::iota(columns_.begin(), columns_.end(), std::size_t{0});
        std::ranges::stable_sort(columns_, [&](std::size_t a, std::size_t b) { return spread[a] > spread[b]; });
    }

    void place(std::span<const double> row, std::span<float> out) const {
        for (std::size_t j = 0; j < out.size(); ++j) {
            const std::size_t column = columns_[j];
            out[j] = static_cast<float>(row[column] * scale_ - middle_[column]);
        }
    }

  private:
    double scale_;
    std::vector<double> middle_;
    std::vector<std::size_t> columns_;
};

// Points as floats in one frame.
class BoxedPoints {
  public:
    // In this order, 64 to a block.
    BoxedPoints(Rows<const float> points, std::vector<std::uint32_t> order)
        : n_dims_(points.dims()),
          n_blocks_((points.size() + block_size - 1) / block_size),
          order_(std::move(order)),
          // The last block is padded with NaN, which is near nothing.
          tiles_(n_blocks_ * block_size * n_dims_, std::numeric_limits<float>::quiet_NaN()),
          low_(n_blocks_ * n_dims_, std::numeric_limits<float>::infinity()),
          high_(n_blocks_ * n_dims_, -std::numeric_limits<float>::infinity()),
          lower_(low_.size()),
          upper_(low_.size()) {
        for (std::size_t place = 0; place < order_.size(); ++place) put(place, points[order_[place]]);
        for (std::size_t block = 0; block < n_blocks_; ++block)
            for (std::size_t j = 0; j < n_dims_; ++j) {
                lower_[j * n_blocks_ + block] = low_[block * n_dims_ + j];
                upper_[j * n_blocks_ + block] = high_[block * n_dims_ + j];
            }
    }
    // In a spatial order.
    BoxedPoints(Rows<const float> points, Pool& pool) : BoxedPoints(points, spatial_order(points, block_size, pool)) {}

    std::size_t n_dims() const { return n_dims_; }
    std::size_t n_blocks() const { return n_blocks_; }
    const std::vector<std::uint32_t>& order() const { return order_; }
    // The largest distance from the centre.
    double radius() const { return radius_; }
    // The indices of the points in a block.
    std::span<const std::uint32_t> numbers(std::size_t block) const {
        const std::size_t first = block * block_size;
        return std::span(order_).subspan(first, std::min(block_size, order_.size() - first));
    }
    // The coordinates of a block, column by column.
    const float* tile(std::size_t block) const { return &tiles_[block * block_size * n_dims_]; }
    // The box around a block.
    std::span<const float> low(std::size_t block) const { return {&low_[block * n_dims_], n_dims_}; }
    std::span<const float> high(std::size_t block) const { return {&high_[block * n_dims_], n_dims_}; }
    // All boxes, column by column.
    const float* lower() const { return lower_.data(); }
    const float* upper() const { return upper_.data(); }

  private:
    void put(std::size_t place, std::span<const float> point) {
        const std::size_t block = place / block_size;
        double radius2 = 0;
        for (std::size_t j = 0; j < n_dims_; ++j) {
            radius2 += static_cast<double>(point[j]) * point[j];
            tiles_[(block * n_dims_ + j) * block_size + place % block_size] = point[j];
            low_[block * n_dims_ + j] = std::min(low_[block * n_dims_ + j], point[j]);
            high_[block * n_dims_ + j] = std::max(high_[block * n_dims_ + j], point[j]);
        }
        radius_ = std::max(radius_, std::sqrt(radius2));
    }

    std::size_t n_dims_;
    std::size_t n_blocks_;
    double radius_ = 0;
    std::vector<std::uint32_t> order_;
    std::vector<float> tiles_;
    std::vector<float> low_, high_, lower_, upper_;
};

// Finds the targets near each point of a block of queries; holds the working memory of one thread.
class PairSearch {
  public:
    PairSearch(const BoxedPoints& queries, const BoxedPoints& targets, const Loops& loops)
        : queries_(queries),
          targets_(targets),
          loops_(loops),
          // A coordinate has a relative error of 2^-24, and of 2^-53 before, so a distance has that of the two radii,
          // which are rounded too.
          error_((queries.radius() + targets.radius()) * 6.2e-8 + 1e-44 * static_cast<double>(queries.n_dims())),
          // Each float operation has a relative error of 2^-24.
          rounding_(1 + 1.3e-7 * static_cast<double>(queries.n_dims() + 4)),
          // Squares may underflow, or lose digits.
          vanishing_(1.2e-38 * static_cast<double>(queries.n_dims() + 1)),
          points_(block_size * queries.n_dims()),
          gaps_(targets.n_blocks()) {}

    // Calls found(slot, index) for each target within the squared limit of the query in a slot of the block, and for
    // some beyond. The value it returns is the new limit, which may only decrease.
    template <class Found>
    void for_each_near(std::size_t block, std::span<const double> limits, const Found& found) {
        const Probes probes = pose(block, limits);
        choose(block);
        for (const std::uint32_t b : near_) {
            const std::uint64_t which = loops_.touch(probes, targets_.low(b).data(), targets_.high(b).data());
            loops_.screen(probes, which, targets_.tile(b), hits_.data());
            for (std::uint64_t left = which; left; left &= left - 1) {
                const auto slot = static_cast<std::size_t>(std::countr_zero(left));
                if (!hits_[slot]) continue;
                double limit = 0;
                for (std::uint64_t hits = hits_[slot]; hits; hits &= hits - 1)
                    limit = found(slot, targets_.numbers(b)[static_cast<std::size_t>(std::countr_zero(hits))]);
                float_limits_[slot] = float_limit(limit);
            }
        }
    }

  private:
    static constexpr std::size_t n_first = 8;

    // The queries as floats, and their limits; empty slots have a negative limit.
    Probes pose(std::size_t block, std::span<const double> limits) {
        const std::size_t n = queries_.numbers(block).size();
        for (std::size_t slot = 0; slot < n; ++slot)
            for (std::size_t j = 0; j < queries_.n_dims(); ++j)
                points_[slot * queries_.n_dims() + j] = queries_.tile(block)[j * block_size + slot];
        float_limits_.fill(-1.0f);
        for (std::size_t slot = 0; slot < n; ++slot) float_limits_[slot] = float_limit(limits[slot]);
        return {queries_.n_dims(), points_.data(), queries_.tile(block), float_limits_.data()};
    }

    // The blocks of targets within the limit of the box of the queries, the nearest few first.
    void choose(std::size_t block) {
        const float limit = *std::ranges::max_element(float_limits_);
        loops_.gaps(targets_.lower(), targets_.upper(), targets_.n_blocks(), queries_.low(block), queries_.high(block),
                    gaps_.data());
        near_.clear();
        for (std::uint32_t b = 0; b < targets_.n_blocks(); ++b)
            if (gaps_[b] <= limit) near_.push_back(b);
        const auto first = near_.begin() + static_cast<std::ptrdiff_t>(std::min(n_first, near_.size()));
        std::ranges::partial_sort(near_, first, {}, [&](std::uint32_t b) { return std::pair(gaps_[b], b); });
    }

    // Upper bound on the float sum of squares of any point within the limit, and of a box around it.
    float float_limit(double limit) const {
        if (limit < 0) return -1.0f;
        const double reach = std::sqrt(limit) * (1 + 1e-15 * static_cast<double>(queries_.n_dims() + 4)) + error_;
        return std::nextafter(static_cast<float>(reach * reach * rounding_ + vanishing_),
                              std::numeric_limits<float>::infinity());
    }

    const BoxedPoints& queries_;
    const BoxedPoints& targets_;
    const Loops& loops_;
    double error_, rounding_, vanishing_;
    std::vector<float> points_;
    std::array<float, block_size> float_limits_;
    std::array<std::uint64_t, block_size> hits_;
    std::vector<float> gaps_;
    std::vector<std::uint32_t> near_;
};

}  // namespace shoal
