// Cells whose records move or swap: coordinates in float32 for the search, sums in float64 for decisions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "numeric/distance.hpp"
#include "numeric/large_array.hpp"
#include "numeric/rows.hpp"
#include "numeric/simd.hpp"
#include "parallel/pool.hpp"
#include "partition/cells.hpp"

namespace shoal {

class CellTiles {
  public:
    // With space for `n_spare` more cells, which are empty.
    CellTiles(Rows<const double> X, std::size_t k, std::span<std::int64_t> labels, Pool& pool, std::size_t n_spare = 0)
        : X_(X), labels_(labels), pool_(pool), n_dims_(X.dims()), width_((X.dims() + 7) / 8 * 8) {
        n_cells_ = n_labelled() + n_spare;
        const Members members(labels, n_cells_, pool);
        sizes_.resize(n_cells_);
        for (std::size_t c = 0; c < n_cells_; ++c) sizes_[c] = members[c].size();
        // Capacity for half as many records again, rounded up to whole lanes.
        const std::size_t largest = n_cells_ ? *std::max_element(sizes_.begin(), sizes_.end()) : 0;
        capacity_ = (std::max(largest, k + std::max<std::size_t>(k / 2, 2)) + 7) / 8 * 8;
        most_ = std::min(capacity_, std::max(largest, 2 * k - 1));
        centre();
        fill(members);
    }

    std::size_t n_records() const { return X_.size(); }
    std::size_t n_cells() const { return n_cells_; }
    std::size_t size(std::size_t cell) const { return sizes_[cell]; }
    std::size_t most() const { return most_; }
    std::size_t dims() const { return n_dims_; }
    std::size_t capacity() const { return capacity_; }
    std::uint32_t record(std::size_t cell, std::size_t slot) const { return records_[cell * capacity_ + slot]; }
    Rows<const float> centroids() const { return centroids(n_cells_); }
    // Centroids of the first `n` cells.
    Rows<const float> centroids(std::size_t n) const { return {centroids_.get(), n, width_}; }

    CellView view(std::size_t cell, bool gives) const {
        return {sizes_[cell], tile(cell), &own2_[cell * capacity_], &centroids_[cell * width_], radius_[cell], gives};
    }

    // Sum of squared distances from the centroid, in float32.
    double loss(std::size_t cell) const {
        double sum = 0;
        for (std::size_t i = 0; i < sizes_[cell]; ++i) sum += own2_[cell * capacity_ + i];
        return sum;
    }
    double loss() const {
        std::vector<double> losses(n_cells_);
        pool_.split(n_cells_, static_cast<double>(capacity_), [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t c = from; c < to; ++c) losses[c] = loss(c);
        });
        return std::accumulate(losses.begin(), losses.end(), 0.0);
    }

    // The same in float64.
    double precise_loss(std::size_t cell) const {
        double sum = 0;
        for (std::size_t i = 0; i < sizes_[cell]; ++i) sum += distance2(record(cell, i), cell);
        return sum;
    }
    double precise_loss() const {
        double sum = 0;
        for (std::size_t c = 0; c < n_cells_; ++c) sum += precise_loss(c);
        return sum;
    }

    // Rounding error of a gain computed from squares of this size: that of the squares themselves and, since
    // coordinates and means of up to 1 are rounded too, of the differences. Smaller gains could alternate for ever.
    double rounding(double squares) const {
        return least_share * squares + coordinate_error * std::sqrt(static_cast<double>(n_dims_) * squares);
    }

    // Squared distances of the records of a cell from a point, in float32; `across` is work space for a point.
    void distances_from(const float* point, std::size_t cell, const Loops& loops, float* across, float* out) const {
        const CellView from = view(cell, false);
        float apart2 = 0;
        float along = 0;
        for (std::size_t j = 0; j < n_dims_; ++j) {
            across[j] = point[j] - from.centroid[j];
            apart2 += across[j] * across[j];
            along += from.centroid[j] * across[j];
        }
        loops.products(from.tile, capacity_, from.size, {across, n_dims_}, out);
        for (std::size_t i = 0; i < from.size; ++i) out[i] = from.own2[i] - 2 * (out[i] - along) + apart2;
    }

    // A coordinate of a record as stored in the cells: relative to the mean, in units of the largest.
    double value(std::size_t record, std::size_t j) const { return (X_[record][j] * scale_ - mean_[j]) * unit_; }

    // Squared distances of a record from the mean of a cell, and of two records.
    double distance2(std::uint32_t record, std::size_t cell) const {
        const auto size = static_cast<double>(sizes_[cell]);
        double sum = 0;
        for (std::size_t j = 0; j < n_dims_; ++j) {
            const double difference = value(record, j) - sums_[cell * n_dims_ + j] / size;
            sum += difference * difference;
        }
        return sum;
    }
    double apart2(std::uint32_t record, std::uint32_t other) const {
        double sum = 0;
        for (std::size_t j = 0; j < n_dims_; ++j) {
            const double difference = value(record, j) - value(other, j);
            sum += difference * difference;
        }
        return sum;
    }

    double cost_to_join(std::uint32_t record, std::size_t cell) const {
        const auto size = static_cast<double>(sizes_[cell]);
        return size / (size + 1) * distance2(record, cell);
    }

    // Moves a record if that lowers the loss in float64.
    bool move(std::size_t from, std::size_t slot, std::size_t to) {
        const auto size = static_cast<double>(sizes_[from]);
        const double leave = size / (size - 1) * distance2(record(from, slot), from);
        if (!(cost_to_join(record(from, slot), to) < leave - rounding(leave))) return false;
        transfer(from, slot, to);
        return true;
    }

    // Swaps two records if that lowers the loss in float64.
    bool swap(std::size_t a, std::size_t slot_a, std::size_t b, std::size_t slot_b) {
        const std::uint32_t x = record(a, slot_a);
        const std::uint32_t y = record(b, slot_b);
        const auto size_a = static_cast<double>(sizes_[a]);
        const auto size_b = static_cast<double>(sizes_[b]);
        double change = 0;
        double squares = 0;
        for (std::size_t j = 0; j < n_dims_; ++j) {
            const double delta = value(y, j) - value(x, j);
            const double across = sums_[b * n_dims_ + j] / size_b - sums_[a * n_dims_ + j] / size_a;
            change += 2 * delta * across - delta * delta * (1 / size_a + 1 / size_b);
            squares += delta * delta + across * across;
        }
        if (!(change < -rounding(squares))) return false;
        put(a, slot_a, y);
        put(b, slot_b, x);
        add(a, x, -1.0);
        add(a, y, 1.0);
        add(b, y, -1.0);
        add(b, x, 1.0);
        settle(a);
        settle(b);
        return true;
    }

    // Moves a record unconditionally; it gets the last slot.
    void transfer(std::size_t from, std::size_t slot, std::size_t to) {
        const std::uint32_t moved = record(from, slot);
        add(from, moved, -1.0);
        add(to, moved, 1.0);
        put(to, sizes_[to]++, moved);
        --sizes_[from];
        if (slot != sizes_[from]) put(from, slot, record(from, sizes_[from]));
        settle(from);
        settle(to);
    }

    // Writes the labels; empty cells leave no gap in the numbers.
    void write_labels() {
        std::vector<std::int64_t> numbers(n_cells_, 0);
        for (std::size_t c = 1; c < n_cells_; ++c) numbers[c] = numbers[c - 1] + (sizes_[c - 1] > 0);
        pool_.split(n_cells_, 2.0 * static_cast<double>(capacity_), [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t c = from; c < to; ++c)
                for (std::size_t i = 0; i < sizes_[c]; ++i) labels_[record(c, i)] = numbers[c];
        });
    }

  private:
    static constexpr double least_share = 1e-9;
    // Sums are updated incrementally: they round at every step.
    static constexpr double coordinate_error = 1e-14;

    const float* tile(std::size_t cell) const { return &tiles_[cell * n_dims_ * capacity_]; }

    std::size_t n_labelled() const {
        std::vector<std::int64_t> highest(pool_.size(), -1);
        pool_.split(labels_.size(), 0.5, [&](std::size_t thread, std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i) highest[thread] = std::max(highest[thread], labels_[i]);
        });
        return static_cast<std::size_t>(*std::max_element(highest.begin(), highest.end()) + 1);
    }

    // Values are relative to the mean and scaled so that the largest is about 1: offsets do not cost digits of floats.
    void centre() {
        scale_ = unit_scale(X_.flat(), pool_);
        mean_ = mean_of_all();
        std::vector<double> largest(pool_.size(), 0.0);
        pool_.split(X_.size(), static_cast<double>(n_dims_), [&](std::size_t thread, std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i)
                for (std::size_t j = 0; j < n_dims_; ++j)
                    largest[thread] = std::max(largest[thread], std::abs(X_[i][j] * scale_ - mean_[j]));
        });
        unit_ = unit_scale(*std::max_element(largest.begin(), largest.end()));
    }

    // Sums of pieces of a fixed size, added in their order: rounding must not depend on the threads.
    std::vector<double> mean_of_all() {
        constexpr std::size_t piece_size = 65536;
        const std::size_t n_pieces = (X_.size() + piece_size - 1) / piece_size;
        std::vector<std::vector<double>> sums(n_pieces, std::vector<double>(n_dims_, 0.0));
        pool_.each(n_pieces, static_cast<double>(piece_size * n_dims_), [&](std::size_t, std::size_t piece) {
            const std::size_t end = std::min((piece + 1) * piece_size, X_.size());
            for (std::size_t i = piece * piece_size; i < end; ++i)
                for (std::size_t j = 0; j < n_dims_; ++j) sums[piece][j] += X_[i][j] * scale_;
        });
        std::vector<double> mean(n_dims_, 0.0);
        for (const auto& sum : sums)
            for (std::size_t j = 0; j < n_dims_; ++j) mean[j] += sum[j];
        for (double& value : mean) value /= static_cast<double>(X_.size());
        return mean;
    }

    void fill(const Members& members) {
        // Each thread clears, and so allocates, the parts that it fills.
        records_ = large_array<std::uint32_t>(n_cells_ * capacity_);
        own2_ = large_array<float>(n_cells_ * capacity_);
        sums_ = large_array<double>(n_cells_ * n_dims_);
        centroids_ = large_array<float>(n_cells_ * width_);
        radius_ = large_array<float>(n_cells_);
        tiles_ = large_array<float>(n_cells_ * n_dims_ * capacity_);
        const double time = 5.0 * static_cast<double>(capacity_ * n_dims_);
        pool_.split(n_cells_, time, [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t c = from; c < to; ++c) fill(c, members[c]);
        });
    }

    void fill(std::size_t c, std::span<const std::size_t> members) {
        std::fill_n(&records_[c * capacity_], capacity_, 0u);
        std::fill_n(&own2_[c * capacity_], capacity_, 0.0f);
        std::fill_n(&sums_[c * n_dims_], n_dims_, 0.0);
        std::fill_n(&centroids_[c * width_], width_, 0.0f);
        radius_[c] = 0;
        std::fill_n(&tiles_[c * n_dims_ * capacity_], n_dims_ * capacity_, 0.0f);
        for (std::size_t i = 0; i < members.size(); ++i) {
            put(c, i, static_cast<std::uint32_t>(members[i]));
            add(c, static_cast<std::uint32_t>(members[i]), 1.0);
        }
        settle(c);
    }

    void put(std::size_t cell, std::size_t slot, std::uint32_t record) {
        records_[cell * capacity_ + slot] = record;
        float* column = &tiles_[cell * n_dims_ * capacity_ + slot];
        for (std::size_t j = 0; j < n_dims_; ++j) column[j * capacity_] = static_cast<float>(value(record, j));
    }

    void add(std::size_t cell, std::uint32_t record, double sign) {
        for (std::size_t j = 0; j < n_dims_; ++j) sums_[cell * n_dims_ + j] += sign * value(record, j);
    }

    // Centroid, distances from it and radius after a change.
    void settle(std::size_t c) {
        if (sizes_[c] == 0) return;
        float* own2 = &own2_[c * capacity_];
        std::fill_n(own2, sizes_[c], 0.0f);
        for (std::size_t j = 0; j < n_dims_; ++j) {
            const auto mean = static_cast<float>(sums_[c * n_dims_ + j] / static_cast<double>(sizes_[c]));
            centroids_[c * width_ + j] = mean;
            const float* column = tile(c) + j * capacity_;
            for (std::size_t i = 0; i < sizes_[c]; ++i) own2[i] += (column[i] - mean) * (column[i] - mean);
        }
        radius_[c] = std::sqrt(*std::max_element(own2, own2 + sizes_[c]));
    }

    Rows<const double> X_;
    std::span<std::int64_t> labels_;
    Pool& pool_;
    std::size_t n_dims_;
    std::size_t width_;  // of a centroid: columns in whole lanes, the surplus ones zero
    std::size_t n_cells_ = 0;
    std::size_t capacity_ = 0;
    std::size_t most_ = 0;
    double scale_ = 1;
    double unit_ = 1;
    std::vector<double> mean_;
    std::vector<std::size_t> sizes_;
    LargeArray<std::uint32_t> records_;
    LargeArray<float> tiles_, own2_, centroids_, radius_;
    LargeArray<double> sums_;
};

}  // namespace shoal
