// Points in blocks of neighbours with boxes around them, and which of them are near the points of another crowd.
//
// Floats rule out, first whole blocks by their boxes, then points; what is left is measured in float64, which decides.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "rows.hpp"
#include "simd.hpp"
#include "spatial_order.hpp"

namespace shoal {

class BoxedPoints {
  public:
    // Takes the points times a power of two; floats are seen from a middle, which crowds that meet have in common.
    BoxedPoints(Rows<const double> points, double scale, std::span<const double> middle, Pool& pool)
        : n_dims_(points.dims()),
          n_blocks_((points.size() + block_size - 1) / block_size),
          // What fills the last block up is not a number, so it is near nothing.
          tiles_(n_blocks_ * block_size * n_dims_, std::numeric_limits<double>::quiet_NaN()),
          floats_(tiles_.size(), std::numeric_limits<float>::quiet_NaN()),
          low_(n_blocks_ * n_dims_, std::numeric_limits<float>::infinity()),
          high_(n_blocks_ * n_dims_, -std::numeric_limits<float>::infinity()),
          lower_(low_.size()),
          upper_(low_.size()) {
        order(points, scale, middle, pool);
        for (std::size_t place = 0; place < order_.size(); ++place) put(place, points[order_[place]], scale, middle);
        for (std::size_t block = 0; block < n_blocks_; ++block)
            for (std::size_t j = 0; j < n_dims_; ++j) {
                lower_[j * n_blocks_ + block] = low_[block * n_dims_ + j];
                upper_[j * n_blocks_ + block] = high_[block * n_dims_ + j];
            }
    }

    std::size_t n_dims() const { return n_dims_; }
    std::size_t n_blocks() const { return n_blocks_; }
    // The largest distance from the middle.
    double radius() const { return radius_; }
    // The numbers of the points in a block.
    std::span<const std::uint32_t> numbers(std::size_t block) const {
        const std::size_t first = block * block_size;
        return std::span(order_).subspan(first, std::min(block_size, order_.size() - first));
    }
    // The coordinates of a block, column by column, as they are and as floats seen from the middle.
    const double* tile(std::size_t block) const { return &tiles_[block * block_size * n_dims_]; }
    const float* floats(std::size_t block) const { return &floats_[block * block_size * n_dims_]; }
    // The box around the floats of a block.
    std::span<const float> low(std::size_t block) const { return {&low_[block * n_dims_], n_dims_}; }
    std::span<const float> high(std::size_t block) const { return {&high_[block * n_dims_], n_dims_}; }
    // All boxes, column by column.
    const float* lower() const { return lower_.data(); }
    const float* upper() const { return upper_.data(); }

  private:
    void order(Rows<const double> points, double scale, std::span<const double> middle, Pool& pool) {
        std::vector<float> near(points.size() * n_dims_);
        for (std::size_t i = 0; i < points.size(); ++i)
            for (std::size_t j = 0; j < n_dims_; ++j)
                near[i * n_dims_ + j] = static_cast<float>(points[i][j] * scale - middle[j]);
        order_ = spatial_order({near.data(), points.size(), n_dims_}, block_size, pool);
    }

    void put(std::size_t place, std::span<const double> point, double scale, std::span<const double> middle) {
        const std::size_t block = place / block_size;
        double radius2 = 0;
        for (std::size_t j = 0; j < n_dims_; ++j) {
            const double value = point[j] * scale;
            const double away = value - middle[j];
            const auto rounded = static_cast<float>(away);
            radius2 += away * away;
            tiles_[(block * n_dims_ + j) * block_size + place % block_size] = value;
            floats_[(block * n_dims_ + j) * block_size + place % block_size] = rounded;
            low_[block * n_dims_ + j] = std::min(low_[block * n_dims_ + j], rounded);
            high_[block * n_dims_ + j] = std::max(high_[block * n_dims_ + j], rounded);
        }
        radius_ = std::max(radius_, std::sqrt(radius2));
    }

    std::size_t n_dims_;
    std::size_t n_blocks_;
    double radius_ = 0;
    std::vector<std::uint32_t> order_;
    std::vector<double> tiles_;
    std::vector<float> floats_;
    std::vector<float> low_, high_, lower_, upper_;
};

// A block of one crowd, the hosts, meets another crowd, the guests; room to work in for one thread.
class PairSearch {
  public:
    PairSearch(const BoxedPoints& hosts, const BoxedPoints& guests, const Loops& loops)
        : hosts_(hosts),
          guests_(guests),
          loops_(loops),
          // A coordinate is off by 2^-24 of its size, and by 2^-53 before, so a distance by as much of the two radii.
          error_((hosts.radius() + guests.radius()) * 6.1e-8 + 1e-44 * static_cast<double>(hosts.n_dims())),
          // Each operation on floats is off by 2^-24 of its result.
          rounding_(1 + 1.3e-7 * static_cast<double>(hosts.n_dims() + 4)),
          // Squares may vanish, or lose digits.
          vanishing_(1.2e-38 * static_cast<double>(hosts.n_dims() + 1)),
          points_(block_size * hosts.n_dims()),
          gaps_(guests.n_blocks()) {}

    // Calls found(slot, number, squared distance) for each guest within the squared limit of the host in a slot of the
    // block, and for some beyond. What it returns is the limit from then on, and may only fall.
    template <class Found>
    void meet(std::size_t block, std::span<const double> limits, const Found& found) {
        const Probes probes = pose(block, limits);
        choose(block);
        for (const std::uint32_t b : near_) {
            const std::uint64_t which = loops_.touch(probes, guests_.low(b).data(), guests_.high(b).data());
            loops_.screen(probes, which, guests_.floats(b), hits_.data());
            for (std::uint64_t left = which; left; left &= left - 1) {
                const auto slot = static_cast<std::size_t>(std::countr_zero(left));
                if (!hits_[slot]) continue;
                double limit = 0;
                for (std::uint64_t hits = hits_[slot]; hits; hits &= hits - 1) {
                    const auto guest = static_cast<std::size_t>(std::countr_zero(hits));
                    const double distance = measure(hosts_.tile(block) + slot, guests_.tile(b) + guest);
                    limit = found(slot, guests_.numbers(b)[guest], distance);
                }
                float_limits_[slot] = float_limit(limit);
            }
        }
    }

  private:
    static constexpr std::size_t n_first = 8;

    // The hosts as floats, and how far they reach; slots that nobody is in reach nothing.
    Probes pose(std::size_t block, std::span<const double> limits) {
        const std::size_t n = hosts_.numbers(block).size();
        for (std::size_t slot = 0; slot < n; ++slot)
            for (std::size_t j = 0; j < hosts_.n_dims(); ++j)
                points_[slot * hosts_.n_dims() + j] = hosts_.floats(block)[j * block_size + slot];
        float_limits_.fill(-1.0f);
        for (std::size_t slot = 0; slot < n; ++slot) float_limits_[slot] = float_limit(limits[slot]);
        return {hosts_.n_dims(), points_.data(), hosts_.floats(block), float_limits_.data()};
    }

    // The blocks of guests within reach of the box of the hosts, the nearest few first.
    void choose(std::size_t block) {
        const float limit = *std::ranges::max_element(float_limits_);
        loops_.gaps(guests_.lower(), guests_.upper(), guests_.n_blocks(), hosts_.low(block), hosts_.high(block),
                    gaps_.data());
        near_.clear();
        for (std::uint32_t b = 0; b < guests_.n_blocks(); ++b)
            if (gaps_[b] <= limit) near_.push_back(b);
        const auto first = near_.begin() + static_cast<std::ptrdiff_t>(std::min(n_first, near_.size()));
        std::ranges::partial_sort(near_, first, {}, [&](std::uint32_t b) { return std::pair(gaps_[b], b); });
    }

    // The deciding arithmetic, on two points of two tiles.
    double measure(const double* here, const double* there) const {
        double sum = 0;
        for (std::size_t j = 0; j < hosts_.n_dims(); ++j) {
            const double difference = there[j * block_size] - here[j * block_size];
            sum += difference * difference;
        }
        return sum;
    }

    // No point within the limit has a larger sum of squares in floats than this, nor has a box around it.
    float float_limit(double limit) const {
        if (limit < 0) return -1.0f;
        const double reach = std::sqrt(limit) * (1 + 1e-15 * static_cast<double>(hosts_.n_dims() + 4)) + error_;
        return std::nextafter(static_cast<float>(reach * reach * rounding_ + vanishing_),
                              std::numeric_limits<float>::infinity());
    }

    const BoxedPoints& hosts_;
    const BoxedPoints& guests_;
    const Loops& loops_;
    double error_, rounding_, vanishing_;
    std::vector<float> points_;
    std::array<float, block_size> float_limits_;
    std::array<std::uint64_t, block_size> hits_;
    std::vector<float> gaps_;
    std::vector<std::uint32_t> near_;
};

}  // namespace shoal
