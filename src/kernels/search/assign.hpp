// Which of some points each record is nearest to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "numeric/rows.hpp"
#include "numeric/simd.hpp"
#include "parallel/polling.hpp"
#include "parallel/pool.hpp"

namespace shoal {

// Writes the number of the nearest point of each record, the lowest of equally near ones. Brute force, many points at a
// time: made for some hundred points.
inline void assign(Rows<const double> X, Rows<const double> points, Pool& pool, const Loops& loops,
                   std::span<std::int64_t> nearest, Poller& poller) {
    // Column by column; the loops run over whole chunks of 64.
    const std::size_t stride = points.size() + 64;
    std::vector<double> columns(points.dims() * stride);
    for (std::size_t p = 0; p < points.size(); ++p)
        for (std::size_t j = 0; j < points.dims(); ++j) columns[j * stride + p] = points[p][j];
    // A square and a sum, some at a time.
    const double time = 0.2 * static_cast<double>(points.size() * points.dims());
    SharedPoller shared(poller, 64);
    pool.split(X.size(), time, [&](std::size_t thread, std::size_t from, std::size_t to) {
        std::vector<double> distances(points.size());
        for (std::size_t i = from; i < to && shared.goes_on(thread); ++i) {
            loops.distances(columns.data(), stride, points.size(), X[i], distances.data());
            nearest[i] = std::ranges::min_element(distances) - distances.begin();
        }
    });
}

}  // namespace shoal
