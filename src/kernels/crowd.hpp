// Points in blocks of neighbours with boxes around them, and which of them are within a distance of a point.
//
// No margins: boxes and sums are float64, and rounding is monotone. What the box of a block computes to, column by
// column, is never more than what a point in it computes to; what a part of a sum computes to never more than the
// whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "rows.hpp"
#include "simd.hpp"
#include "spatial_order.hpp"

namespace shoal {

class Crowd {
  public:
    // Takes the points times a power of two.
    Crowd(Rows<const double> points, double scale)
        : n_dims_(points.dims()),
          n_blocks_((points.size() + block_size - 1) / block_size),
          order_(spatial_order_of(points, scale)),
          // What fills the last block up is not a number, so it is near nothing.
          tiles_(n_blocks_ * block_size * n_dims_, std::numeric_limits<double>::quiet_NaN()),
          lower_(n_blocks_ * n_dims_, std::numeric_limits<double>::infinity()),
          upper_(n_blocks_ * n_dims_, -std::numeric_limits<double>::infinity()) {
        for (std::size_t place = 0; place < order_.size(); ++place) {
            const auto point = points[order_[place]];
            const std::size_t block = place / block_size;
            for (std::size_t j = 0; j < n_dims_; ++j) {
                const double value = point[j] * scale;
                tiles_[tile_at(block) + j * block_size + place % block_size] = value;
                lower_[j * n_blocks_ + block] = std::min(lower_[j * n_blocks_ + block], value);
                upper_[j * n_blocks_ + block] = std::max(upper_[j * n_blocks_ + block], value);
            }
        }
    }

    std::size_t n_dims() const { return n_dims_; }
    std::size_t n_blocks() const { return n_blocks_; }
    // The numbers of the points in a block.
    std::span<const std::uint32_t> numbers(std::size_t block) const {
        const std::size_t first = block * block_size;
        return std::span(order_).subspan(first, std::min(block_size, order_.size() - first));
    }
    // The coordinates of a block, column by column.
    const double* tile(std::size_t block) const { return &tiles_[tile_at(block)]; }
    void point(std::size_t block, std::size_t slot, std::span<double> out) const {
        for (std::size_t j = 0; j < n_dims_; ++j) out[j] = tile(block)[j * block_size + slot];
    }
    // The boxes, column by column.
    std::span<const double> lower() const { return lower_; }
    std::span<const double> upper() const { return upper_; }

  private:
    std::size_t tile_at(std::size_t block) const { return block * block_size * n_dims_; }

    // Floats are fine enough for an order, once what all points share is gone.
    static std::vector<std::uint32_t> spatial_order_of(Rows<const double> points, double scale) {
        std::vector<double> middle(points.dims(), 0.0);
        for (std::size_t i = 0; i < points.size(); ++i)
            for (std::size_t j = 0; j < points.dims(); ++j)
                middle[j] += points[i][j] * scale / static_cast<double>(points.size());
        std::vector<float> near(points.size() * points.dims());
        for (std::size_t i = 0; i < points.size(); ++i)
            for (std::size_t j = 0; j < points.dims(); ++j)
                near[i * points.dims() + j] = static_cast<float>(points[i][j] * scale - middle[j]);
        return spatial_order({near.data(), points.size(), points.dims()}, block_size);
    }

    std::size_t n_dims_;
    std::size_t n_blocks_;
    std::vector<std::uint32_t> order_;
    std::vector<double> tiles_;
    std::vector<double> lower_, upper_;
};

// The part of a crowd that is within reach of a block of questions, and room to work in for one thread.
class Vicinity {
  public:
    Vicinity(const Crowd& crowd, const Loops& loops)
        : crowd_(crowd), loops_(loops), gaps_(crowd.n_blocks()), low_(crowd.n_dims()), high_(crowd.n_dims()) {}

    // Keeps the blocks that a point in the box of another crowd's block can reach within a squared distance.
    void enter(const Crowd& other, std::size_t block, double limit2) {
        for (std::size_t j = 0; j < low_.size(); ++j) {
            low_[j] = other.lower()[j * other.n_blocks() + block];
            high_[j] = other.upper()[j * other.n_blocks() + block];
        }
        loops_.gaps({crowd_.n_blocks(), crowd_.lower().data(), crowd_.upper().data()}, low_, high_, gaps_.data());
        blocks_.clear();
        for (std::uint32_t b = 0; b < crowd_.n_blocks(); ++b)
            if (gaps_[b] <= limit2) blocks_.push_back(b);
        lower_.resize(blocks_.size() * low_.size());
        upper_.resize(blocks_.size() * low_.size());
        for (std::size_t j = 0; j < low_.size(); ++j)
            for (std::size_t i = 0; i < blocks_.size(); ++i) {
                lower_[j * blocks_.size() + i] = crowd_.lower()[j * crowd_.n_blocks() + blocks_[i]];
                upper_[j * blocks_.size() + i] = crowd_.upper()[j * crowd_.n_blocks() + blocks_[i]];
            }
    }

    // Calls visit(block) for the blocks that a point can reach, the nearest first and the others in any order; it
    // returns the squared distance that is still of interest.
    template <class Visit>
    void for_each_within(std::span<const double> point, double limit2, const Visit& visit) {
        if (blocks_.empty()) return;
        loops_.gaps({blocks_.size(), lower_.data(), upper_.data()}, point, point, gaps_.data());
        const auto first = static_cast<std::size_t>(
            std::min_element(gaps_.begin(), gaps_.begin() + static_cast<std::ptrdiff_t>(blocks_.size())) -
            gaps_.begin());
        if (gaps_[first] <= limit2) limit2 = visit(blocks_[first]);
        for (std::size_t i = 0; i < blocks_.size(); ++i)
            if (gaps_[i] <= limit2 && i != first) limit2 = visit(blocks_[i]);
    }

  private:
    const Crowd& crowd_;
    const Loops& loops_;
    std::vector<double> gaps_;
    std::vector<double> low_, high_;
    std::vector<std::uint32_t> blocks_;
    std::vector<double> lower_, upper_;  // of these blocks, column by column
};

}  // namespace shoal
