// Records as searches see them: from the mean, in units of the largest number.
#pragma once

#include <span>
#include <vector>

#include "numeric/distance.hpp"
#include "numeric/rows.hpp"
#include "parallel/pool.hpp"

namespace shoal {

// The records in some order, one after the other, centred and scaled so that the largest number is about 1: an offset
// does not take the digits of differences.
inline std::vector<double> centred_rows(Rows<const double> X, std::span<const std::size_t> order, Pool& pool) {
    const double scale = unit_scale(X.flat(), pool);
    std::vector<double> mean(X.dims(), 0.0);
    for (std::size_t i = 0; i < X.size(); ++i)
        for (std::size_t j = 0; j < X.dims(); ++j) mean[j] += X[i][j] * scale / static_cast<double>(X.size());
    std::vector<double> rows(order.size() * X.dims());
    pool.split(order.size(), 3.0 * static_cast<double>(X.dims()), [&](std::size_t, std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < to; ++i)
            for (std::size_t j = 0; j < X.dims(); ++j) rows[i * X.dims() + j] = X[order[i]][j] * scale - mean[j];
    });
    const double unit = unit_scale(rows, pool);
    pool.split(rows.size(), 0.5, [&](std::size_t, std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < to; ++i) rows[i] *= unit;
    });
    return rows;
}

}  // namespace shoal
