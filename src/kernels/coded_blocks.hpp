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

// Codes of points in one lattice.
class CodedBlocks {
  public:
    // From here a coordinate is cut off: codes are stored plus 64, and the sum of two products has to fit 16 bits.
    static constexpr float most_steps = 63;

    // The first coordinates are coded, which hold most of every distance.
    CodedBlocks(std::size_t n_blocks, std::size_t n_dims, double per_step)
        : n_dims_(std::min(n_dims, most_coded)),
          n_sections_((n_dims_ + section_size - 1) / section_size),
          per_step_(per_step),
          sections_(n_blocks * n_sections_, CodedSection::of_zeros()),
          boxes_(n_blocks * n_sections_) {
        for (CodedBox& box : boxes_) std::ranges::fill(box.low, 255);
    }

    // Codes a point and returns the squared length, in steps, of what rounding changed.
    float code(std::size_t block, std::size_t slot, std::span<const float> point) {
        std::array<float, most_coded> steps{};
        cut_off(point, steps);
        std::array<float, n_lanes> error2{};
        std::array<std::int32_t, most_coded> codes;
        for (std::size_t j = 0; j < most_coded; ++j) {
            const float code = (steps[j] + rounder) - rounder;
            steps[j] -= code;
            codes[j] = static_cast<std::int32_t>(code);
        }
        for (std::size_t j = 0; j < most_coded; ++j) error2[j % n_lanes] += steps[j] * steps[j];
        for (std::size_t s = 0; s < n_sections_; ++s) {
            CodedSection& section = sections_[block * n_sections_ + s];
            std::int32_t norm2 = 0;
            for (std::size_t j = s * section_size; j < (s + 1) * section_size; ++j) norm2 += codes[j] * codes[j];
            section.half_norms[slot] = static_cast<std::int16_t>(-norm2 / 2);
            std::array<std::uint8_t, section_size> stored;
            for (std::size_t j = 0; j < section_size; ++j)
                stored[j] = static_cast<std::uint8_t>(CodedSection::zero_code + codes[s * section_size + j]);
            CodedBox& box = boxes_[block * n_sections_ + s];
            for (std::size_t j = 0; j < section_size; ++j) {
                box.low[j] = std::min(box.low[j], stored[j]);
                box.high[j] = std::max(box.high[j], stored[j]);
            }
            for (std::size_t j = 0; j < section_size; ++j) section.codes[j / 2][2 * slot + j % 2] = stored[j];
        }
        return sum(error2);
    }

    double per_step() const { return per_step_; }
    std::size_t n_sections() const { return n_sections_; }
    std::span<const CodedSection> operator[](std::size_t block) const {
        return {&sections_[block * n_sections_], n_sections_};
    }

    std::span<const CodedBox> box(std::size_t block) const { return {&boxes_[block * n_sections_], n_sections_}; }

    // A point as a query.
    void pose(std::size_t block, std::size_t slot, std::span<CodedProbe> out) const {
        for (std::size_t s = 0; s < n_sections_; ++s) {
            const CodedSection& section = sections_[block * n_sections_ + s];
            std::int32_t shift = section.half_norms[slot];
            for (std::size_t j = 0; j < section_size; ++j) {
                const std::int32_t code = section.codes[j / 2][2 * slot + j % 2] - CodedSection::zero_code;
                out[s].codes[j] = static_cast<std::int8_t>(code);
                shift -= CodedSection::zero_code * code;
            }
            const std::size_t n_used = std::min(n_dims_ - s * section_size, section_size);
            out[s].n_pairs = static_cast<std::uint16_t>((n_used + 1) / 2);
            out[s].shift = static_cast<std::int16_t>(shift);
        }
    }

  private:
    static constexpr std::size_t section_size = CodedSection::n_columns;
    static constexpr std::size_t most_coded = 2 * section_size;
    static constexpr std::size_t n_lanes = 4;
    // Half the squared distance of two points of this length still fits 16 bits, rounding included.
    static constexpr float most_length = 120;
    // Adding this to a small number leaves its nearest integer in the last bits.
    static constexpr float rounder = 12582912.0f;

    void cut_off(std::span<const float> point, std::span<float, most_coded> steps) const {
        const auto per_step = static_cast<float>(per_step_);
        std::array<float, n_lanes> length2{};
        for (std::size_t j = 0; j < n_dims_; ++j) {
            steps[j] = std::clamp(point[j] * per_step, -most_steps, most_steps);
            length2[j % n_lanes] += steps[j] * steps[j];
        }
        const float length = std::sqrt(sum(length2));
        if (length > most_length)
            for (float& step : steps) step *= most_length / length;
    }

    static float sum(const std::array<float, n_lanes>& parts) { return (parts[0] + parts[1]) + (parts[2] + parts[3]); }

    std::size_t n_dims_;
    std::size_t n_sections_;
    double per_step_;
    std::vector<CodedSection> sections_;
    std::vector<CodedBox> boxes_;
};

}  // namespace shoal
