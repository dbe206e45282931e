// Coarse codes of points, 64 to a block: sums of products in 16 bits exclude most pairs that their boxes do not.
//
// A code is a coordinate in steps of a lattice, cut off at the faces of a cube and at a ball, then rounded. Cutting off
// at a convex shape brings no two points farther apart, so that codes can only underestimate a distance, up to
// rounding.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "simd.hpp"

namespace shoal {

// Codes of points in one lattice, of which one step is `1 / per_step` long.
class CodedBlocks {
  public:
    // The first coordinates of a point are coded: they hold most of every distance.
    static constexpr std::size_t most_coded = 16;
    // From here a coordinate is cut off. Codes are stored plus 64, and the sum of two products has to fit 16 bits.
    static constexpr double most_steps = 63;

    CodedBlocks(std::size_t n_blocks, std::size_t n_dims, double per_step)
        : n_coded_(std::min(n_dims, most_coded)),
          n_pairs_((n_coded_ + 1) / 2),
          per_step_(per_step),
          codes_(n_blocks * n_pairs_ * 2 * block_size, zero_code),
          half_norms_(n_blocks * block_size, 0) {}

    // Codes the points of a block and returns the largest distance, in steps, between a point cut off and its code.
    // point_of(slot) is a span of floats.
    template <class PointOf>
    double code(std::size_t block, std::size_t n_points, const PointOf& point_of) {
        double largest_error2 = 0;
        for (std::size_t slot = 0; slot < n_points; ++slot) {
            const auto point = cut_off(point_of(slot));
            double error2 = 0;
            double norm2 = 0;
            for (std::size_t j = 0; j < n_coded_; ++j) {
                const double code = std::nearbyint(point[j]);
                error2 += (point[j] - code) * (point[j] - code);
                norm2 += code * code;
                codes_[place(block, slot, j)] = static_cast<std::uint8_t>(zero_code + static_cast<int>(code));
            }
            half_norms_[block * block_size + slot] = static_cast<std::int16_t>(-static_cast<int>(norm2) / 2);
            largest_error2 = std::max(largest_error2, error2);
        }
        return std::sqrt(largest_error2);
    }

    double per_step() const { return per_step_; }
    CodedBlock operator[](std::size_t block) const {
        return {n_pairs_, &codes_[block * n_pairs_ * 2 * block_size], &half_norms_[block * block_size]};
    }

    // The code of a point, as a query, in which half the square of its length is returned.
    double pose(std::size_t block, std::size_t slot, std::span<std::int8_t> out) const {
        int norm2 = 0;
        for (std::size_t j = 0; j < 2 * n_pairs_; ++j) {
            const int code = codes_[place(block, slot, j)] - zero_code;
            out[j] = static_cast<std::int8_t>(code);
            norm2 += code * code;
        }
        return norm2 / 2.0;
    }

  private:
    static constexpr int zero_code = 64;
    // The product of two points of this length and half the square of one still fit 16 bits, rounding included.
    static constexpr double most_length = 140;

    // Two coordinates of a point side by side, then those of the next point.
    std::size_t place(std::size_t block, std::size_t slot, std::size_t j) const {
        return ((block * n_pairs_ + j / 2) * block_size + slot) * 2 + j % 2;
    }

    std::array<double, most_coded> cut_off(std::span<const float> point) const {
        std::array<double, most_coded> steps{};
        double length2 = 0;
        for (std::size_t j = 0; j < n_coded_; ++j) {
            steps[j] = std::clamp(point[j] * per_step_, -most_steps, most_steps);
            length2 += steps[j] * steps[j];
        }
        if (length2 > most_length * most_length)
            for (double& step : steps) step *= most_length / std::sqrt(length2);
        return steps;
    }

    std::size_t n_coded_;
    std::size_t n_pairs_;
    double per_step_;
    std::vector<std::uint8_t> codes_;
    std::vector<std::int16_t> half_norms_;
};

}  // namespace shoal
