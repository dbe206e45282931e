// The border of a stream: values on their way into the window, and cells on their way out, rows cell after cell.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "numeric/rows.hpp"

namespace shoal {

// The mean, seen from the first value, so that the mean of equal ones is that one.
inline double mean_of(std::span<const double> cell) {
    const auto n = static_cast<double>(cell.size());
    double sum = 0;
    for (const double value : cell) sum += value - cell[0];
    const double mean = cell[0] + sum / n;
    if (std::isfinite(mean)) return mean;
    sum = 0;
    for (const double value : cell) sum += value / n;
    return sum;
}

// The mean of the values that are not NaN; NaN where those are less than half of the cell.
inline double mean_of_present(std::span<const double> cell) {
    std::vector<double> present;
    for (const double value : cell)
        if (!std::isnan(value)) present.push_back(value);
    return 2 * present.size() < cell.size() ? std::numeric_limits<double>::quiet_NaN() : mean_of(present);
}

// Writes for each value the mean of its cell; returns whether any is NaN.
inline bool cell_means(std::span<const double> values, std::span<const std::int64_t> sizes, double* out) {
    bool any_missing = false;
    for (const std::int64_t size : sizes) {
        const auto cell = values.first(static_cast<std::size_t>(size));
        double mean = cell.empty() ? 0.0 : mean_of(cell);
        if (std::isnan(mean)) mean = mean_of_present(cell);
        any_missing |= std::isnan(mean);
        out = std::fill_n(out, size, mean);
        values = values.subspan(cell.size());
    }
    return any_missing;
}

// Whether any cell has different values.
template <class T>
bool differ_within_cells(std::span<const T> values, std::span<const std::int64_t> sizes) {
    bool differ = false;
    for (const std::int64_t size : sizes) {
        const auto cell = values.first(static_cast<std::size_t>(size));
        for (const T value : cell) differ |= value != cell[0];
        values = values.subspan(cell.size());
    }
    return differ;
}

// Where the values of a column lie on its range, from 0 to `weight`: those outside on the border, those that are
// missing in the middle, all at 0 where the range is too narrow to divide by. Counts those outside.
inline void place(std::span<const double> column, double low, double high, double weight, Rows<double> X, std::size_t j,
                  std::int64_t& outside) {
    // Halved, since the difference of two numbers may exceed every double.
    const double half_low = low / 2;
    const double width = high / 2 - half_low;
    const double per_unit = width > 0 && std::isfinite(1 / width) ? 1 / width : 0.0;
    double* out = X.flat().data() + j;
    std::int64_t n_outside = 0;
    for (std::size_t i = 0; i < column.size(); ++i) {
        const double value = column[i];
        const double share = std::isnan(value) ? 0.5 : (value / 2 - half_low) * per_unit;
        n_outside += (value < low) | (value > high);
        out[i * X.dims()] = std::min(std::max(share, 0.0), 1.0) * weight;
    }
    outside = n_outside;
}

// The smallest number of different keys in a cell.
inline std::size_t least_different(std::span<const std::uint64_t> keys, std::span<const std::int64_t> sizes) {
    std::size_t least = std::numeric_limits<std::size_t>::max();
    std::vector<std::uint64_t> cell;
    const std::uint64_t* from = keys.data();
    for (const std::int64_t size : sizes) {
        cell.assign(from, from + size);
        std::sort(cell.begin(), cell.end());
        least = std::min(least, static_cast<std::size_t>(std::unique(cell.begin(), cell.end()) - cell.begin()));
        from += size;
    }
    return least;
}

// For each cell, the first row that holds the most frequent key; of equally frequent ones the one that `rank` puts
// first.
inline void most_frequent(std::span<const std::uint64_t> keys, std::span<const std::int64_t> ranks,
                          std::span<const std::int64_t> sizes, std::span<std::int64_t> winners) {
    std::size_t start = 0;
    for (std::size_t c = 0; c < sizes.size(); ++c) {
        const auto size = static_cast<std::size_t>(sizes[c]);
        std::size_t best = start;
        std::size_t best_count = 0;
        for (std::size_t i = start; i < start + size; ++i) {
            const auto count = static_cast<std::size_t>(std::count(&keys[start], &keys[start] + size, keys[i]));
            if (count > best_count || (count == best_count && ranks[i] < ranks[best])) {
                best = i;
                best_count = count;
            }
        }
        winners[c] = static_cast<std::int64_t>(best);
        start += size;
    }
}

}  // namespace shoal
