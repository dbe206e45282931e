// How many numbers lie in an interval around what they were released as.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "measures/co_moments.hpp"
#include "parallel/pool.hpp"

namespace shoal {

// The intervals of each released value: between two numbers, and so far around a centre, in the unit of a column.
struct Intervals {
    std::span<const double> low, high;
    std::span<const double> centre;
    double reach;
};

struct InsideIntervals {
    std::int64_t between = 0;
    std::int64_t within_reach = 0;
};

// Counts the records of a column, record i having been released as value own[i], that lie inside. What is not a number
// holds nothing.
inline InsideIntervals inside_intervals(std::span<const double> numbers, const ScaledColumn& scaled,
                                        std::span<const std::int64_t> own, const Intervals& intervals, Pool& pool) {
    struct alignas(128) Found {
        InsideIntervals counts;
    };
    std::vector<Found> found(pool.size());
    pool.split(own.size(), 2.0, [&](std::size_t thread, std::size_t from, std::size_t to) {
        InsideIntervals counts;
        for (std::size_t i = from; i < to; ++i) {
            const auto value = static_cast<std::size_t>(own[i]);
            // Not a branch, which would be guessed wrong as often as not.
            counts.between +=
                std::size_t{intervals.low[value] <= numbers[i]} & std::size_t{numbers[i] <= intervals.high[value]};
            counts.within_reach += std::abs(scaled[i] - intervals.centre[value]) <= intervals.reach;
        }
        found[thread].counts.between += counts.between;
        found[thread].counts.within_reach += counts.within_reach;
    });
    InsideIntervals all;
    for (const Found& each : found) {
        all.between += each.counts.between;
        all.within_reach += each.counts.within_reach;
    }
    return all;
}

}  // namespace shoal
