// Records as searches see them: from the mean, in units of the largest number.
#pragma once

#include <span>
#include <vector>

#include "distance.hpp"
#include "rows.hpp"

namespace shoal {

// The records in some order, one after the other, centred and scaled so that the largest number is about 1: an offset
// does not take the digits of differences.
inline std::vector<double> centred_rows(Rows<const double> X, std::span<const std::size_t> order) {
    const double scale = unit_scale(X.flat());
    std::vector<double> mean(X.dims(), 0.0);
    for (std::size_t i = 0; i < X.size(); ++i)
        for (std::size_t j = 0; j < X.dims(); ++j) mean[j] += X[i][j] * scale / static_cast<double>(X.size());
    std::vector<double> rows;
    rows.reserve(X.size() * X.dims());
    for (const std::size_t i : order)
        for (std::size_t j = 0; j < X.dims(); ++j) rows.push_back(X[i][j] * scale - mean[j]);
    const double unit = unit_scale(rows);
    for (double& value : rows) value *= unit;
    return rows;
}

}  // namespace shoal
