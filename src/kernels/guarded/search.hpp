// Repairs and improves a partition whose cells must satisfy models of confidential columns.
//
// First the cells that violate a model swap and move records with others, the steps that improve most per loss first;
// if that does not suffice, they are merged with a neighbour. Then records swap and move as long as that lowers the
// loss and violates no model.
#pragma once

#include <cstdint>
#include <span>

#include "guarded/cells.hpp"
#include "guarded/improving.hpp"
#include "guarded/model_vetoes.hpp"
#include "guarded/repairing.hpp"
#include "guarded/rotating.hpp"
#include "guarded/splitting.hpp"
#include "numeric/rows.hpp"
#include "numeric/simd.hpp"
#include "parallel/polling.hpp"
#include "parallel/pool.hpp"

namespace shoal {

class GuardedSearch {
  public:
    struct Plan {
        std::size_t n_rounds;      // maximum number of rounds over all pairs of neighbours
        std::size_t n_neighbours;  // cells to look at around each cell
        double least_gain;         // a round that lowers the loss by less than this share is the last
        bool at_any_cost;          // repair every cell: with cells far away, and by merging as the last resort
    };

    // Changes the labels in place. They number the cells from 0 without gaps, each with at least k records. Reports the
    // records processed to `poller`, n_records per round.
    GuardedSearch(Rows<const double> X, std::size_t k, std::span<const Guarded> guarded, Pool& pool, const Loops& loops,
                  std::span<std::int64_t> labels, Poller& poller)
        : labels_(labels),
          poller_(poller),
          cells_(X, k, guarded, pool, loops, labels, poller),
          repairing_(cells_),
          splitting_(cells_, repairing_),
          improving_(cells_),
          rotating_(cells_) {}

    void run(const Plan& plan) {
        find_neighbours(plan);
        repairing_.repair(plan.n_neighbours, plan.at_any_cost);
        improve(plan);
        cells_.write_labels(labels_);
        poller_.finish(plan.n_rounds * cells_.n_records());
    }

  private:
    void improve(const Plan& plan) {
        double before = cells_.loss();
        bool has_split = false;
        for (std::size_t round = 0; round < plan.n_rounds && cells_.n_alive() > 1; ++round) {
            if (round == 1) find_neighbours(plan);
            improving_.sweep(round);
            // As long as pairs of cells gain much, that takes less time.
            const bool slow = cells_.loss() > 0.9 * before;
            if (slow && cells_.alike()) rotating_.rotate();
            const bool fresh = slow && !has_split && splitting_.split_large();
            has_split |= slow;
            if (fresh) find_neighbours(plan);
            const double after = cells_.loss();
            if (!fresh && !(after < before * (1 - plan.least_gain))) break;
            before = after;
        }
        if (!has_split) splitting_.split_large();
    }

    void find_neighbours(const Plan& plan) {
        cells_.find_neighbours(plan.n_neighbours);
        improving_.neighbours_changed();
    }

    std::span<std::int64_t> labels_;
    Poller& poller_;
    GuardedCells cells_;
    GuardedRepairing repairing_;
    GuardedSplitting splitting_;
    GuardedImproving improving_;
    GuardedRotating rotating_;
};

}  // namespace shoal
