// A cell out of the records that remain, around one of them.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel/polling.hpp"
#include "search/remaining.hpp"

namespace shoal {

// The record and its k-1 nearest leave together; the record first, then by distance.
inline std::vector<std::int64_t> gather(Remaining& remaining, std::uint32_t record, std::size_t k,
                                        std::span<double> point) {
    const std::uint32_t home = remaining.home(record);
    remaining.remove(record);
    const Answer answer = remaining.search({remaining.scaled(record, point), k - 1, false, home});
    std::vector<std::int64_t> members{record};
    for (const Candidate& member : answer.nearest) {
        members.push_back(member.record);
        remaining.remove(member.record);
    }
    remaining.tidy();
    return members;
}

// The record leaves, and after it, k-1 times, the one nearest to the mean of those that left.
inline std::vector<std::int64_t> grow(Remaining& remaining, std::uint32_t record, std::size_t k,
                                      std::span<double> point, Poller& poller) {
    std::vector<std::int64_t> members;
    std::vector<double> total(point.size(), 0.0);
    while (true) {
        const std::uint32_t home = remaining.home(record);
        remaining.scaled(record, point);
        remaining.remove(record);
        members.push_back(record);
        if (members.size() == k) break;
        for (std::size_t j = 0; j < point.size(); ++j) {
            total[j] += point[j];
            point[j] = total[j] / static_cast<double>(members.size());
        }
        record = remaining.search({point, 1, false, home}).nearest.front().record;
        poller.tick();
    }
    remaining.tidy();
    return members;
}

}  // namespace shoal
