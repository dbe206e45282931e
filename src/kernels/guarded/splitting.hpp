// Cuts large cells in two where both halves keep every guarantee: that always lowers the loss.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "guarded/cells.hpp"
#include "guarded/repairing.hpp"

namespace shoal {

class GuardedSplitting {
  public:
    GuardedSplitting(GuardedCells& cells, GuardedRepairing& repairing) : cells_(cells), repairing_(repairing) {}

    // Splits cells of 2k records and more; returns whether any was split.
    bool split_large() {
        const std::size_t n_before = cells_.size();
        for (std::size_t c = 0; c < cells_.size(); ++c)
            while (cells_[c].size() >= 2 * cells_.k() && cells_[c].excess <= 0 && split(c)) cells_.poller().tick();
        return cells_.size() > n_before;
    }

  private:
    // Moves the upper half of each class along the widest column. Violations are then repaired between the two cells.
    bool split(std::size_t c) {
        const std::size_t column = widest(cells_[c]);
        std::vector<std::uint32_t> order = cells_[c].members;
        std::ranges::sort(order, {},
                          [&](std::uint32_t i) { return std::tuple(cells_.class_of(i), cells_.row(i)[column], i); });
        std::vector<std::uint32_t> lower, upper;
        std::size_t owed = 0;  // half records, over all classes
        for (std::size_t from = 0, to; from < order.size(); from = to) {
            for (to = from; to < order.size() && cells_.class_of(order[to]) == cells_.class_of(order[from]);) ++to;
            const std::size_t half = (to - from + owed) / 2;
            owed = (to - from + owed) % 2;
            for (std::size_t i = from; i < to; ++i) (i < to - half ? lower : upper).push_back(order[i]);
        }
        GuardedCells::Cell& b = cells_.add();
        GuardedCells::Cell& a = cells_[c];
        cells_.refill(a, std::move(lower));
        cells_.refill(b, std::move(upper));
        if (a.excess > 0) repairing_.repair(a.number, std::span(&b.number, 1));
        if (b.excess > 0) repairing_.repair(b.number, std::span(&a.number, 1));
        if (a.excess <= 0 && b.excess <= 0) return true;
        cells_.refill(a, std::move(order));
        cells_.remove_last();
        return false;
    }

    std::size_t widest(const GuardedCells::Cell& cell) const {
        std::vector<double> squares(cells_.n_dims(), 0.0);
        for (const std::uint32_t record : cell.members)
            for (std::size_t j = 0; j < squares.size(); ++j) {
                const double difference = cells_.row(record)[j] - cell.centroid[j];
                squares[j] += difference * difference;
            }
        return static_cast<std::size_t>(std::ranges::max_element(squares) - squares.begin());
    }

    GuardedCells& cells_;
    GuardedRepairing& repairing_;
};

}  // namespace shoal
