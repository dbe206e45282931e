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

#include "numeric/simd.hpp"

namespace shoal {

// Codes of points in one lattice.
class CodedBlocks {
  public:
    // From here a coordinate is cut off: codes are stored plus 64, and the sum of two products has to fit 16 bits.
    static constexpr float most_steps = 63;

    // The first coordinates are coded, which hold most of every distance.
    CodedBlocks(std::size_t n_blocks, std::size_t n_dims, float per_step)
        : n_dims_(std::min(n_dims, most_coded)),
          n_sections_((n_dims_ + section_size - 1) / section_size),
          per_step_(per_step),
          sections_(n_blocks * n_sections_, CodedSection::of_zeros()),
          boxes_(n_blocks * n_sections_, CodedBox::of_zeros()) {}

    // Codes a block, whose points come column by column, and returns the largest squared length, in steps, of what
    // rounding changed of a point.
    float code(std::size_t block, const float* tile) {
        const PerPoint shares = kept_shares(tile);
        PerPoint error2{};
        // Two columns at a time, whose codes lie side by side; the one after the last is 0.
        for (std::size_t j = 0; j < n_dims_; j += 2) {
            CodedSection& section = sections_[block * n_sections_ + j / section_size];
            CodedBox& box = boxes_[block * n_sections_ + j / section_size];
            const std::size_t column = j % section_size;
            const Codes first = codes_of(tile + j * block_size, shares, error2);
            const Codes second = j + 1 < n_dims_ ? codes_of(tile + (j + 1) * block_size, shares, error2) : Codes{};
            put(section, column / 2, first, second);
            put(box, column, first);
            put(box, column + 1, second);
        }
        for (std::size_t s = 0; s < n_sections_; ++s)
            for (std::int16_t& norm : sections_[block * n_sections_ + s].half_norms)
                norm = static_cast<std::int16_t>(norm / 2);
        return *std::ranges::max_element(error2);
    }

    float per_step() const { return per_step_; }
    std::size_t n_sections() const { return n_sections_; }
    std::span<const CodedSection> operator[](std::size_t block) const {
        return std::span(sections_).subspan(block * n_sections_, n_sections_);
    }

    std::span<const CodedBox> box(std::size_t block) const {
        return std::span(boxes_).subspan(block * n_sections_, n_sections_);
    }

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
    using PerPoint = std::array<float, block_size>;
    using Codes = std::array<std::int16_t, block_size>;

    // Half the squared distance of two points of this length still fits 16 bits, rounding included.
    static constexpr float most_length = 120;
    // Adding this to a small number leaves its nearest integer in the last bits.
    static constexpr float rounder = 12582912.0f;

    // What fills up the last block is not a number, which has no integer.
    float cut_off(float value) const {
        const float steps = std::min(std::max(value * per_step_, -most_steps), most_steps);
        return steps == steps ? steps : 0.0f;
    }

    // The share of each point that is inside the ball.
    PerPoint kept_shares(const float* tile) const {
        PerPoint length2{};
        for (std::size_t j = 0; j < n_dims_; ++j)
            for (std::size_t i = 0; i < block_size; ++i) {
                const float steps = cut_off(tile[j * block_size + i]);
                length2[i] += steps * steps;
            }
        PerPoint shares;
        for (std::size_t i = 0; i < block_size; ++i)
            shares[i] = length2[i] > most_length * most_length ? most_length / std::sqrt(length2[i]) : 1.0f;
        return shares;
    }

    // The codes of a column; adds what rounding changed.
    Codes codes_of(const float* column, const PerPoint& shares, PerPoint& error2) const {
        Codes codes;
        for (std::size_t i = 0; i < block_size; ++i) {
            const float steps = cut_off(column[i]) * shares[i];
            const float code = (steps + rounder) - rounder;
            error2[i] += (steps - code) * (steps - code);
            codes[i] = static_cast<std::int16_t>(static_cast<std::int32_t>(code));
        }
        return codes;
    }

    // Two columns of a section; adds to the norms.
    static void put(CodedSection& section, std::size_t pair, const Codes& first, const Codes& second) {
        std::uint8_t* out = section.codes[pair];
        for (std::size_t i = 0; i < block_size; ++i) {
            out[2 * i] = static_cast<std::uint8_t>(CodedSection::zero_code + first[i]);
            out[2 * i + 1] = static_cast<std::uint8_t>(CodedSection::zero_code + second[i]);
        }
        for (std::size_t i = 0; i < block_size; ++i)
            section.half_norms[i] =
                static_cast<std::int16_t>(section.half_norms[i] - first[i] * first[i] - second[i] * second[i]);
    }

    static void put(CodedBox& box, std::size_t column, const Codes& codes) {
        std::int16_t low = codes[0];
        std::int16_t high = codes[0];
        for (const std::int16_t code : codes) low = std::min(low, code);
        for (const std::int16_t code : codes) high = std::max(high, code);
        box.low[column] = static_cast<std::uint8_t>(CodedSection::zero_code + low);
        box.high[column] = static_cast<std::uint8_t>(CodedSection::zero_code + high);
    }

    std::size_t n_dims_;
    std::size_t n_sections_;
    float per_step_;
    std::vector<CodedSection> sections_;
    std::vector<CodedBox> boxes_;
};

}  // namespace shoal
