// Sums over the records of each cell, free of rounding on the way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "numeric/distance.hpp"
#include "numeric/exact_sum.hpp"
#include "numeric/large_array.hpp"
#include "numeric/rows.hpp"
#include "parallel/pool.hpp"

namespace shoal {

// The records of each cell, one cell after the other, in record order.
class Members {
  public:
    Members(std::span<const std::int64_t> labels, std::size_t n_cells, Pool& pool)
        : begin_(n_cells + 1, 0), records_(large_array<std::size_t>(labels.size())) {
        // Every thread reads all labels, and counts and lists the records of its own cells.
        const std::size_t n_parts = std::min(pool.size(), labels.size() / 65536 + 1);
        const auto for_records = [&](const auto& visit) {
            pool.each(n_parts, static_cast<double>(labels.size()), [&](std::size_t, std::size_t part) {
                const std::size_t from = n_cells * part / n_parts;
                const std::size_t n_own = n_cells * (part + 1) / n_parts - from;
                for (std::size_t i = 0; i < labels.size(); ++i)
                    if (const auto cell = static_cast<std::size_t>(labels[i]); cell - from < n_own) visit(cell, i);
            });
        };
        for_records([&](std::size_t cell, std::size_t) { ++begin_[cell + 1]; });
        for (std::size_t c = 0; c < n_cells; ++c) begin_[c + 1] += begin_[c];
        std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
        for_records([&](std::size_t cell, std::size_t i) { records_[next[cell]++] = i; });
    }
    Members(std::span<const std::int64_t> labels, std::size_t n_cells) {
        Pool alone(1);
        *this = Members(labels, n_cells, alone);
    }

    std::size_t n_cells() const { return begin_.size() - 1; }
    std::span<const std::size_t> operator[](std::size_t cell) const {
        return {&records_[begin_[cell]], begin_[cell + 1] - begin_[cell]};
    }

  private:
    std::vector<std::size_t> begin_;
    LargeArray<std::size_t> records_;
};

// Writes labels that number the cells in the order of their first records, without gaps.
inline void number_by_first_record(std::span<const std::uint32_t> cell_of, std::size_t n_cells,
                                   std::span<std::int64_t> labels) {
    std::vector<std::int64_t> number(n_cells, -1);
    std::int64_t next = 0;
    for (std::size_t i = 0; i < cell_of.size(); ++i) {
        if (number[cell_of[i]] < 0) number[cell_of[i]] = next++;
        labels[i] = number[cell_of[i]];
    }
}

// Writes where each code first occurs; after the last record if it does not.
inline void first_places(std::span<const std::int64_t> codes, std::span<std::int64_t> first) {
    std::ranges::fill(first, static_cast<std::int64_t>(codes.size()));
    for (std::size_t i = codes.size(); i-- > 0;)
        first[static_cast<std::size_t>(codes[i])] = static_cast<std::int64_t>(i);
}

// Correctly rounded sums of the records of a cell, scaled, into `out`.
inline void exact_sum(Rows<const double> X, double scale, std::span<const std::size_t> members, std::span<double> out) {
    ExactSums sums(X.dims());
    std::vector<double> row(X.dims());
    for (const std::size_t i : members) {
        for (std::size_t j = 0; j < X.dims(); ++j) row[j] = X[i][j] * scale;
        sums.add(row);
    }
    for (std::size_t j = 0; j < X.dims(); ++j) out[j] = sums[j];
}

// About how many nanoseconds the sums of a cell take.
inline double time_of_cell(Rows<const double> X, const Members& members) {
    return 5.0 * static_cast<double>(X.flat().size()) / static_cast<double>(members.n_cells() + 1);
}

// Correctly rounded sums of the records of each cell.
inline void cell_sums(Rows<const double> X, const Members& members, Rows<double> sums, Pool& pool) {
    const double scale = unit_scale(X.flat(), pool);
    pool.split(members.n_cells(), time_of_cell(X, members), [&](std::size_t, std::size_t from, std::size_t to) {
        for (std::size_t c = from; c < to; ++c) {
            exact_sum(X, scale, members[c], sums[c]);
            for (double& sum : sums[c]) sum /= scale;
        }
    });
}

// The squared distances of the records of each cell from its mean, summed.
inline void cell_spread(Rows<const double> X, const Members& members, std::span<double> spread, Pool& pool) {
    const double scale = unit_scale(X.flat(), pool);
    pool.split(members.n_cells(), 2 * time_of_cell(X, members), [&](std::size_t, std::size_t from, std::size_t to) {
        std::vector<double> mean(X.dims());
        std::vector<double> row(X.dims());
        for (std::size_t c = from; c < to; ++c) {
            exact_sum(X, scale, members[c], mean);
            for (double& value : mean) value /= static_cast<double>(members[c].size());
            ExactSums total(1);
            for (const std::size_t i : members[c]) {
                for (std::size_t j = 0; j < X.dims(); ++j) row[j] = X[i][j] * scale;
                const double distance = squared_distance(row, mean);
                total.add({&distance, 1});
            }
            spread[c] = total[0] / scale / scale;
        }
    });
}

}  // namespace shoal
