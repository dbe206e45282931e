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
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "numeric/distance.hpp"
#include "numeric/principal_axes.hpp"
#include "numeric/rows.hpp"
#include "numeric/simd.hpp"
#include "search/coded_blocks.hpp"
#include "search/spatial_order.hpp"

namespace shoal {

// Turns rows into floats: scaled by a power of two, relative to a centre, and along the principal axes, so that a few
// coordinates exclude most pairs. The last axes are left out, by which distances can only decrease.
class FloatFrame {
  public:
    FloatFrame(Rows<const double> X, double scale, const Loops& loops)
        : scale_(scale), middle_(middle_of(X, scale)), loops_(loops) {
        const PrincipalAxes turn(X, scale, middle_, may_leave_out);
        const bool turned = !turn.axes().empty();
        // Whole registers: the axes that fill them cost nothing.
        width_ = turned ? (turn.n_kept() + 7) / 8 * 8 : X.dims();
        n_dims_ = std::min(width_, X.dims());
        if (turned) axes_.resize(X.dims() * width_, 0.0f);
        for (std::size_t axis = 0; turned && axis < n_dims_; ++axis)
            for (std::size_t j = 0; j < X.dims(); ++j)
                axes_[j * width_ + axis] = static_cast<float>(turn.axes()[axis * X.dims() + j]);
        per_step_ = CodedBlocks::most_steps / (usual_extent * mean_extent(X));
    }

    // Number of coordinates.
    std::size_t n_dims() const { return n_dims_; }
    // Number of first coordinates by which points are put in order: along principal axes a few tell most, and stay in
    // the cache.
    std::size_t n_ordering() const { return axes_.empty() ? width_ : std::min<std::size_t>(width_, 8); }
    // Steps of the lattice of the codes in a unit.
    double per_step() const { return per_step_; }
    // Room for the coordinates of a row.
    std::size_t width() const { return width_; }

    // Upper bound on the distance between a row as floats and the row along exact axes, relative to its length. Each
    // float operation has a relative error of 2^-24.
    double error() const {
        if (axes_.empty()) return 6.1e-8;
        return 6.1e-8 * (1 + std::sqrt(static_cast<double>(width_)) * static_cast<double>(middle_.size() + 2));
    }

    // Writes the coordinates and returns the length of the whole row; `away` is work space for a row.
    double place(std::span<const double> row, std::span<float> away, std::span<float> out) const {
        const float length2 = loops_.turn({width_, axes_, middle_, scale_}, row, away.data(), out.data());
        return std::sqrt(static_cast<double>(length2) + 1e-38) * 1.001;
    }

  private:
    static constexpr double may_leave_out = 0.05;
    // Codes reach this many times as far as the mean magnitude of the widest coordinate: 2.4 standard deviations of
    // Gaussian records.
    static constexpr double usual_extent = 3;

    // The largest mean magnitude of a coordinate, in a sample.
    double mean_extent(Rows<const double> X) const {
        const std::size_t every = std::max<std::size_t>(X.size() / 4096, 1);
        std::vector<float> away(X.dims()), point(width_);
        std::vector<double> sums(width_, 0.0);
        for (std::size_t i = 0; i < X.size(); i += every) {
            place(X[i], away, point);
            for (std::size_t j = 0; j < n_dims_; ++j) sums[j] += std::abs(point[j]);
        }
        const double largest = sums.empty() ? 0.0 : *std::ranges::max_element(sums);
        return std::max(largest * static_cast<double>(every) / static_cast<double>(X.size() + 1), 1e-30);
    }

    static std::vector<double> middle_of(Rows<const double> X, double scale) {
        std::vector<double> middle(X.dims(), 0.0);
        for (std::size_t i = 0; i < X.size(); ++i)
            for (std::size_t j = 0; j < X.dims(); ++j) middle[j] += X[i][j] * scale;
        for (double& value : middle) value /= static_cast<double>(std::max<std::size_t>(X.size(), 1));
        return middle;
    }

    double scale_;
    std::vector<double> middle_;
    const Loops& loops_;
    std::size_t n_dims_ = 0;
    std::size_t width_ = 0;
    double per_step_ = 1;
    std::vector<float> axes_;  // column by column, width_ numbers each; empty without a rotation
};

// In so few dimensions boxes around neighbours are small, and leave little for codes to exclude.
inline constexpr std::size_t few_dims = 4;

// Points as floats in one frame, in an order in which neighbours are near each other.
class BoxedPoints {
  public:
    // Boxes n points, row_of(0) to row_of(n - 1), in the order in_order(floats).
    template <class RowOf, class InOrder>
    BoxedPoints(std::size_t n, const RowOf& row_of, const InOrder& in_order, const FloatFrame& frame, Pool& pool)
        : n_dims_(frame.n_dims()),
          n_blocks_((n + block_size - 1) / block_size),
          tiles_(std::make_unique_for_overwrite<float[]>(n_blocks_ * block_size * n_dims_)),
          low_(n_blocks_ * n_dims_, std::numeric_limits<float>::infinity()),
          high_(n_blocks_ * n_dims_, -std::numeric_limits<float>::infinity()),
          lower_(low_.size()),
          upper_(low_.size()),
          codes_(n_blocks_, n_dims_ > few_dims ? n_dims_ : 0, static_cast<float>(frame.per_step())) {
        const std::size_t width = frame.width();
        const std::size_t n_ordering = frame.n_ordering();
        const auto floats = std::make_unique_for_overwrite<float[]>(n * width);
        const auto ordering = std::make_unique_for_overwrite<float[]>(n_ordering < width ? n * n_ordering : 0);
        std::vector<double> radius(pool.size(), 0.0);
        pool.split(n, 4.0 * static_cast<double>(width), [&](std::size_t thread, std::size_t from, std::size_t to) {
            std::vector<float> away(n ? row_of(0).size() : 0);
            for (std::size_t i = from; i < to; ++i) {
                radius[thread] = std::max(radius[thread], frame.place(row_of(i), away, {&floats[i * width], width}));
                if (n_ordering < width) std::copy_n(&floats[i * width], n_ordering, &ordering[i * n_ordering]);
            }
        });
        error_ = *std::ranges::max_element(radius) * frame.error();
        const Rows<const float> points(floats.get(), n, width);
        order_ = in_order(n_ordering < width ? Rows<const float>(ordering.get(), n, n_ordering) : points);
        std::vector<double> code_error(pool.size(), 0.0);
        pool.split(n_blocks_, 2.0 * static_cast<double>(block_size * n_dims_),
                   [&](std::size_t thread, std::size_t from, std::size_t to) {
                       for (std::size_t block = from; block < to; ++block)
                           code_error[thread] = std::max(code_error[thread], fill(block, points));
                   });
        code_error_ = *std::ranges::max_element(code_error);
    }

    std::size_t n_dims() const { return n_dims_; }
    std::size_t n_blocks() const { return n_blocks_; }
    const std::vector<std::uint32_t>& order() const { return order_; }
    // Upper bound on the distance of the floats from the points.
    double error() const { return error_; }
    // Coarse codes of the points, and an upper bound on their rounding, in steps.
    const CodedBlocks& codes() const { return codes_; }
    double code_error() const { return code_error_; }
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
    static void fetch(std::span<const float> point) {
        for (std::size_t j = 0; j < point.size(); j += 16) __builtin_prefetch(&point[j]);
    }
    // Returns how far, in steps, the codes of the block are from its points.
    double fill(std::size_t block, Rows<const float> points) {
        float* low = &low_[block * n_dims_];
        float* high = &high_[block * n_dims_];
        float* tile = &tiles_[block * block_size * n_dims_];
        const auto inside = numbers(block);
        for (std::size_t slot = 0; slot < inside.size(); ++slot) {
            if (slot + 8 < inside.size()) fetch(points[inside[slot + 8]]);
            const auto point = points[inside[slot]];
            for (std::size_t j = 0; j < n_dims_; ++j) tile[j * block_size + slot] = point[j];
            for (std::size_t j = 0; j < n_dims_; ++j) {
                low[j] = std::min(low[j], point[j]);
                high[j] = std::max(high[j], point[j]);
            }
        }
        const auto pad = [&](float value) {
            for (std::size_t j = 0; j < n_dims_; ++j)
                std::fill(tile + j * block_size + inside.size(), tile + (j + 1) * block_size, value);
        };
        pad(0.0f);
        const float error2 = codes_.code(block, tile);
        // NaN is near nothing.
        pad(std::numeric_limits<float>::quiet_NaN());
        for (std::size_t j = 0; j < n_dims_; ++j) {
            lower_[j * n_blocks_ + block] = low[j];
            upper_[j * n_blocks_ + block] = high[j];
        }
        return std::sqrt(error2);
    }

    std::size_t n_dims_;
    std::size_t n_blocks_;
    double error_ = 0;
    std::vector<std::uint32_t> order_;
    std::unique_ptr<float[]> tiles_;
    std::vector<float> low_, high_, lower_, upper_;
    CodedBlocks codes_;
    double code_error_ = 0;
};

// Finds the targets near each point of a block of queries; holds the working memory of one thread.
class PairSearch {
  public:
    PairSearch(const BoxedPoints& queries, const BoxedPoints& targets, const Loops& loops)
        : queries_(queries),
          targets_(targets),
          loops_(loops),
          error_((queries.error() + targets.error()) * (1 + 1e-9) + 1e-40),
          // Each float operation has a relative error of 2^-24.
          rounding_(1 + 1.3e-7 * static_cast<double>(queries.n_dims() + 4)),
          // Squares may underflow, or lose digits.
          vanishing_(1.2e-38 * static_cast<double>(queries.n_dims() + 1)),
          code_error_(queries.code_error() + targets.code_error() + 1e-3),
          points_(block_size * queries.n_dims()),
          coded_(block_size * queries.codes().n_sections()),
          gaps_(targets.n_blocks()) {}

    // Calls found(slot, index) for each target within the squared limit of the query in a slot of the block, and for
    // some beyond. The value it returns is the new limit, which may only decrease.
    // Before, fetch(index) is called for the targets of a block.
    template <class Fetch, class Found>
    void for_each_near(std::size_t block, std::span<const double> limits, const Fetch& fetch, const Found& found) {
        pose(block, limits);
        const Probes probes{queries_.n_dims(), points_.data(), queries_.tile(block), float_limits_.data()};
        const CodedProbes coded{queries_.codes()[block], coded_.data(), at_most_.data(), at_least_.data()};
        const bool by_codes = codes_tell();
        choose(block);
        for (const std::uint32_t b : near_) {
            std::uint64_t which;
            if (by_codes) {
                which = loops_.touch_codes(coded, targets_.codes().box(b));
                which = loops_.sift(coded, which, targets_.codes()[b], hits_.data());
            } else {
                which = loops_.touch(probes, targets_.low(b).data(), targets_.high(b).data());
                hits_.fill(~std::uint64_t{0});
            }
            loops_.screen(probes, which, targets_.tile(b), hits_.data());
            const auto numbers = targets_.numbers(b);
            for (; which; which &= which - 1) {
                const auto slot = static_cast<std::size_t>(std::countr_zero(which));
                for (std::uint64_t hits = hits_[slot]; hits; hits &= hits - 1) {
                    const std::uint32_t number = numbers[static_cast<std::size_t>(std::countr_zero(hits))];
                    fetch(number);
                    pending_[n_pending_++] = {static_cast<std::uint32_t>(slot), number};
                    if (n_pending_ == pending_.size()) measure_pending(found);
                }
            }
        }
        measure_pending(found);
    }

  private:
    static constexpr std::size_t n_first = 8;
    // Where rounding may be more than a third of a limit in steps, floats exclude more.
    static constexpr double coarse = 3;

    // The queries as floats and as codes, and their limits; empty slots have a negative limit.
    void pose(std::size_t block, std::span<const double> limits) {
        const std::size_t n = queries_.numbers(block).size();
        float_limits_.fill(-1.0f);
        at_most_.fill(-1);
        for (std::size_t slot = 0; slot < n; ++slot) {
            for (std::size_t j = 0; j < queries_.n_dims(); ++j)
                points_[slot * queries_.n_dims() + j] = queries_.tile(block)[j * block_size + slot];
            const std::size_t n_sections = queries_.codes().n_sections();
            queries_.codes().pose(block, slot, std::span(coded_).subspan(slot * n_sections, n_sections));
            limit_to(slot, limits[slot]);
        }
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

    // Sets the upper bound on the float sum of squares of any point within the limit, and of a box around it, and the
    // same in steps.
    void limit_to(std::size_t slot, double limit) {
        if (limit < 0) {
            float_limits_[slot] = -1.0f;
            at_most_[slot] = -1;
            return;
        }
        const double reach = std::sqrt(limit) * (1 + 1e-15 * static_cast<double>(queries_.n_dims() + 4)) + error_;
        float_limits_[slot] = std::nextafter(static_cast<float>(reach * reach * rounding_ + vanishing_),
                                             std::numeric_limits<float>::infinity());
        const double steps = reach * targets_.codes().per_step() * (1 + 1e-6) + code_error_;
        at_most_[slot] = static_cast<std::int16_t>(std::min(std::ceil(steps * steps), 32767.0));
        at_least_[slot] = static_cast<std::int16_t>(std::max(std::floor(-steps * steps / 2), -32768.0));
    }

    template <class Found>
    void measure_pending(const Found& found) {
        for (std::size_t i = 0; i < n_pending_; ++i)
            limit_to(pending_[i].slot, found(pending_[i].slot, pending_[i].number));
        n_pending_ = 0;
    }

    // Whether the codes are fine enough for the limits.
    bool codes_tell() const {
        const double most = *std::ranges::max_element(at_most_);
        return targets_.codes().n_sections() > 0 && std::sqrt(std::max(most, 0.0)) >= coarse * code_error_;
    }

    const BoxedPoints& queries_;
    const BoxedPoints& targets_;
    const Loops& loops_;
    double error_, rounding_, vanishing_, code_error_;
    std::vector<float> points_;
    std::vector<CodedProbe> coded_;
    std::array<std::int16_t, block_size> at_most_{}, at_least_{};
    std::array<float, block_size> float_limits_{};
    std::array<std::uint64_t, block_size> hits_{};
    std::vector<float> gaps_;
    std::vector<std::uint32_t> near_;
    struct Pending {
        std::uint32_t slot, number;
    };
    std::array<Pending, 32> pending_{};
    std::size_t n_pending_ = 0;
};

}  // namespace shoal
