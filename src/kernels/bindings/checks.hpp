// What the kernels take for granted, checked where arrays enter: sizes, ranges of numbers, finite values.
//
// A failed check is a mistake of the caller and becomes a ValueError. Messages never show a value.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "numeric/distance.hpp"
#include "numeric/rows.hpp"
#include "parallel/pool.hpp"

namespace shoal {

// Record numbers take 31 bits; the highest bit of 32 marks where a record is kept.
inline constexpr std::size_t most_records = 0x7fffffff;

inline void check(bool holds, const char* otherwise) {
    if (!holds) throw std::invalid_argument(otherwise);
}

inline bool all_finite(std::span<const double> values) {
    // All exponent bits are set in infinities and in what is not a number; integers keep the loop free of branches.
    constexpr std::uint64_t exponent = 0x7ff0000000000000;
    bool finite = true;
    for (const double value : values) finite &= (std::bit_cast<std::uint64_t>(value) & exponent) != exponent;
    return finite;
}

inline void check_finite(std::span<const double> values) {
    check(all_finite(values), "a value is not finite");
}

// A matrix with at least one record and one column.
inline void check_shape(Rows<const double> X) {
    check(X.size() <= most_records, "more than 2^31 - 1 records");
    check(X.size() > 0 && X.dims() > 0, "the matrix is empty");
}

// The same of finite numbers; `pool` has the threads that look at the values.
inline void check_matrix(Rows<const double> X, Pool& pool) {
    check_shape(X);
    pool.split(X.size(), 0.5 * static_cast<double>(X.dims()), [&](std::size_t, std::size_t from, std::size_t to) {
        check_finite(X.flat().subspan(from * X.dims(), (to - from) * X.dims()));
    });
}
inline void check_matrix(Rows<const double> X) {
    Pool alone(1);
    check_matrix(X, alone);
}

// As `unit_scale`, of numbers that are found to be finite in the same pass.
inline double checked_unit_scale(std::span<const double> values, Pool& pool) {
    constexpr std::uint64_t magnitude = 0x7fffffffffffffff;
    // The bits of a magnitude ascend with it; those of infinities and of what is not a number are the largest.
    std::vector<std::uint64_t> largest(pool.size(), 0);
    pool.split(values.size(), 0.4, [&](std::size_t thread, std::size_t from, std::size_t to) {
        std::array<std::uint64_t, 4> most{};  // that do not wait for one another
        for (; from + most.size() <= to; from += most.size())
            for (std::size_t i = 0; i < most.size(); ++i)
                most[i] = std::max(most[i], std::bit_cast<std::uint64_t>(values[from + i]) & magnitude);
        for (; from < to; ++from) most[0] = std::max(most[0], std::bit_cast<std::uint64_t>(values[from]) & magnitude);
        largest[thread] = std::max(largest[thread], *std::ranges::max_element(most));
    });
    const auto found = std::bit_cast<double>(*std::ranges::max_element(largest));
    check(std::isfinite(found), "a value is not finite");
    return unit_scale(found);
}

// A size of cells that n records can fill.
inline void check_cell_size(std::size_t k, std::size_t n) {
    check(k >= 1 && k <= n, "k is not between 1 and the number of records");
}

inline void check_length(std::size_t found, std::size_t expected) {
    check(found == expected, "arrays that belong together differ in length");
}

// Numbers from 0 to n - 1.
inline void check_numbers(std::span<const std::int64_t> numbers, std::size_t n) {
    const bool inside = std::ranges::all_of(
        numbers, [n](std::int64_t number) { return number >= 0 && static_cast<std::size_t>(number) < n; });
    check(inside, "a number of a cell, record or code is out of range");
}

// The cell of each of n records; cells have numbers below that of the records.
inline void check_labels(std::span<const std::int64_t> labels, std::size_t n) {
    check_length(labels.size(), n);
    check_numbers(labels, n);
}

// The same without gaps: every cell from 0 to the highest number has at least k records. Returns how many cells there
// are.
inline std::size_t check_partition(std::span<const std::int64_t> labels, std::size_t n, std::size_t k) {
    check_cell_size(k, n);
    check_labels(labels, n);
    std::vector<std::size_t> sizes(n / k, 0);
    std::size_t n_cells = 0;
    for (const std::int64_t label : labels) {
        const auto cell = static_cast<std::size_t>(label);
        check(cell < n / k, "there are more cells than records for them");
        ++sizes[cell];
        n_cells = std::max(n_cells, cell + 1);
    }
    for (std::size_t cell = 0; cell < n_cells; ++cell) check(sizes[cell] >= k, "a cell has fewer than k records");
    return n_cells;
}

// Ascending numbers from 0 to n - 1, each at most once.
inline void check_ascending(std::span<const std::int64_t> numbers, std::size_t n) {
    check_numbers(numbers, n);
    check(std::ranges::adjacent_find(numbers, std::greater_equal<>()) == numbers.end(), "the numbers do not ascend");
}

// Lists of neighbours of the first cells, all of the same length and empty places at their ends; each cell behind those
// was cut from one in front of it.
inline void check_neighbours(std::span<const std::int64_t> lists, std::span<const std::int64_t> origins,
                             std::size_t n_cells) {
    constexpr std::int64_t none = 0xffffffff;
    check(origins.size() < n_cells, "there are as many origins as cells");
    const std::size_t n_first = n_cells - origins.size();
    check(lists.size() % n_first == 0, "the lists of neighbours differ in length");
    for (const std::int64_t cell : lists)
        check(cell == none || (cell >= 0 && static_cast<std::size_t>(cell) < n_first), "a neighbour is not a cell");
    for (std::size_t i = 0; i < origins.size(); ++i) check_numbers(origins.subspan(i, 1), n_first + i);
}

// One cell after the other, of at least one row each, n rows in all.
inline void check_sizes(std::span<const std::int64_t> sizes, std::size_t n) {
    std::size_t left = n;
    for (const std::int64_t size : sizes) {
        check(size >= 1 && static_cast<std::size_t>(size) <= left, "the sizes of the cells do not add up");
        left -= static_cast<std::size_t>(size);
    }
    check(left == 0, "the sizes of the cells do not add up");
}

// Offsets of concatenated texts within a number of bytes.
template <class Offset>
void check_offsets(std::span<const Offset> offsets, std::size_t n_bytes) {
    check(!offsets.empty() && offsets.front() >= 0, "offsets of texts begin at 0 or later");
    check(std::ranges::is_sorted(offsets), "offsets of texts descend");
    check(static_cast<std::size_t>(offsets.back()) <= n_bytes, "a text ends behind the last byte");
}

}  // namespace shoal
