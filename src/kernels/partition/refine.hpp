// Makes a partition better: records move and swap between neighbouring cells as long as that lowers the loss.
//
// The loss is the sum of squared distances from the means of the cells (SSE). Every step is looked for in float32, many
// records at a time, and taken only if float64 confirms that it lowers the loss; so the loss only ever falls.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "numeric/rows.hpp"
#include "numeric/simd.hpp"
#include "parallel/polling.hpp"
#include "parallel/pool.hpp"
#include "partition/cell_tiles.hpp"
#include "partition/new_cells.hpp"
#include "partition/pairings.hpp"
#include "partition/polish.hpp"
#include "search/neighbours.hpp"
#include "search/spatial_order.hpp"

namespace shoal {

class Refiner {
  public:
    struct Plan {
        std::size_t n_rounds = 10;      // maximum number of rounds over all pairs of neighbours
        std::size_t n_neighbours = 20;  // cells to look at around each cell
        double least_gain = 0.005;      // a round that lowers the loss by less than this share is the last
        bool thorough = false;          // steps of more than two records at the end
    };

    // Changes the labels in place. They number the cells from 0 without gaps, each with at least k records. Up to
    // `n_spare` more cells may be opened.
    Refiner(Rows<const double> X, std::size_t k, Pool& pool, const Loops& loops, std::span<std::int64_t> labels,
            std::size_t n_spare = 0)
        : cells_(X, k, labels, pool, n_spare),
          n_used_(cells_.n_cells() - n_spare),
          k_(k),
          pool_(pool),
          loops_(loops),
          rooms_(pool.size(), std::vector<float>(cells_.dims() + 2 * cells_.capacity())),
          n_changes_(cells_.n_cells(), 0) {}

    // Reports records processed to `watch`, n_records per round. If it stops the work, the labels are those of that
    // moment.
    void run(const Plan& plan, Poller& watch) try {
        double before = cells_.loss();
        for (std::size_t round = 0; round < plan.n_rounds && n_used_ > 1; ++round) {
            // Cells move little once the first rounds are over, so their neighbours stay.
            if (round == 0 || round == 2) find_neighbours(plan, watch);
            sweep(watch);
            if (round % 2 == 0) dissolve_costly_cells(watch);
            const double after = cells_.loss();
            if (!(after < before * (1 - plan.least_gain))) break;
            before = after;
        }
        if (plan.thorough && n_used_ > 1) polish(watch);
        cells_.write_labels();
        watch.finish(plan.n_rounds * cells_.n_records());
    } catch (...) {
        cells_.write_labels();
        throw;
    }

    // What is known of the cells before a partition is refined around some of them.
    struct Before {
        std::vector<std::uint32_t> touched;  // cells that have changed since the partition was refined
        std::vector<std::uint32_t>
            neighbours;                      // lists of the first cells, as `nearest_neighbours` returns them; or none
        std::vector<std::uint32_t> origins;  // the cells that those behind the first ones were cut from
    };

    // The same around the cells that have been touched since a partition was refined: two others are not compared until
    // one of them changes. First cells are opened out of what their neighbours have to spare, which may cost more than
    // the steps that follow win: then the labels stay.
    void run_around(const Before& before_now, const Plan& plan, Poller& watch) {
        const double at_first = cells_.precise_loss();
        for (const std::uint32_t cell : before_now.touched) n_changes_[cell] = 1;
        looked_at_.assign(cells_.n_cells(), 0);
        if (n_used_ > 1) {
            if (before_now.neighbours.empty())
                find_neighbours(plan, watch);
            else
                inherit_neighbours(before_now);
            const std::size_t n_before = n_used_;
            open_cells(watch);
            // Where many are new, the lists that were passed on are poor.
            if (n_used_ - n_before > n_before / 8) {
                find_neighbours(plan, watch);
                open_cells(watch);
            }
            pairings_ = Pairings(lists_, spatial_order(cells_.centroids(n_used_), block_size, pool_), 0, pool_);
        }
        double before = cells_.loss();
        for (std::size_t round = 0; round < plan.n_rounds && n_used_ > 1; ++round) {
            sweep(watch);
            dissolve_costly_cells(watch);
            const double after = cells_.loss();
            if (!(after < before * (1 - plan.least_gain))) break;
            before = after;
        }
        if (cells_.precise_loss() < at_first) cells_.write_labels();
        watch.finish(plan.n_rounds * cells_.n_records());
    }

  private:
    static constexpr std::uint32_t none = 0xffffffff;

    void open_cells(Poller& watch) {
        for (const auto& [cell, origin, givers] : NewCells(cells_, k_, loops_, lists_, n_used_).open(n_used_, watch)) {
            ++n_changes_[cell];
            for (const std::uint32_t giver : givers) ++n_changes_[giver];
            settle_beside(origin);
            ++n_used_;
        }
    }

    void inherit_neighbours(const Before& before) {
        lists_ = before.neighbours;
        n_listed_ = lists_.size() / (n_used_ - before.origins.size());
        for (const std::uint32_t origin : before.origins) settle_beside(origin);
    }

    // The next cell takes over the neighbours of the one it comes from, and becomes the last neighbour of those.
    void settle_beside(std::uint32_t origin) {
        const auto cell = static_cast<std::uint32_t>(lists_.size() / n_listed_);
        const auto list = near(origin);
        const std::vector<std::uint32_t> around(list.begin(), list.end());
        lists_.insert(lists_.end(), around.begin(), around.end());
        near(cell).back() = origin;
        near(origin).back() = cell;
        for (const std::uint32_t other : around)
            if (other != none) near(other).back() = cell;
    }

    std::span<std::uint32_t> near(std::size_t cell) { return std::span(lists_).subspan(cell * n_listed_, n_listed_); }

    void find_neighbours(const Plan& plan, Poller& watch) {
        const NeighbourSearch search(cells_.centroids(n_used_), plan.n_neighbours, loops_, pool_);
        lists_ = search.run(pool_, watch);
        n_listed_ = lists_.size() / n_used_;
        pairings_ = Pairings(lists_, search.order(), none, pool_);
    }

    // Once over all pairs of neighbouring cells of which one has changed since they were last compared.
    void sweep(Poller& watch) {
        const auto n_records = static_cast<double>(cells_.n_records());
        SharedPoller shared(watch, 64);
        pairings_.tour(
            pool_,
            [&](std::size_t thread, Pair& pair) {
                const auto [a, b, compared] = pair;
                if (compared == n_changes_[a] + n_changes_[b] || cells_.size(a) == 0 || cells_.size(b) == 0) return;
                if (shared.goes_on(thread) && improve_fully(a, b, rooms_[thread].data()))
                    pair.compared = n_changes_[a] + n_changes_[b];
            },
            [&](double share) { watch.tick(static_cast<std::size_t>((n_sweeps_ + share) * n_records)); });
        ++n_sweeps_;
    }

    // Chains and new cuts, then moves and swaps where something has changed.
    void polish(Poller& watch) {
        const auto changed = [&](std::uint32_t cell) { ++n_changes_[cell]; };
        Polish polish(cells_, k_, loops_, lists_, n_used_, watch);
        polish.pass_on(changed);
        polish.cut_anew(changed);
        sweep(watch);
    }

    bool may_give(std::size_t from, std::size_t to) const {
        return cells_.size(from) > k_ && cells_.size(to) < cells_.most();
    }

    // Takes the best steps between two cells, one after the other, at most two per record; returns whether none is
    // left.
    bool improve_fully(std::size_t a, std::size_t b, float* room) {
        for (std::size_t n_left = 2 * (cells_.size(a) + cells_.size(b)); n_left > 0; --n_left) {
            if (!improve(a, b, room)) return true;
            ++n_changes_[a];
            ++n_changes_[b];
        }
        return false;
    }

    // Takes the best step between two cells if there is one that lowers the loss.
    bool improve(std::size_t a, std::size_t b, float* room) {
        const PairStep step = loops_.compare(cells_.view(a, may_give(a, b)), cells_.view(b, may_give(b, a)),
                                             cells_.dims(), cells_.capacity(), room);
        if (step.gain <= 0) return false;
        if (step.from_a == PairStep::none) return cells_.move(b, step.from_b, a);
        if (step.from_b == PairStep::none) return cells_.move(a, step.from_a, b);
        return cells_.swap(a, step.from_a, b, step.from_b);
    }

    // Scatters cells over their neighbours where that costs less than they lose by themselves; the costliest first.
    void dissolve_costly_cells(Poller& watch) {
        std::vector<double> costs(n_used_, 0.0);
        SharedPoller shared(watch, 16);
        pool_.split(n_used_, 2'000.0, [&](std::size_t thread, std::size_t from, std::size_t to) {
            for (std::size_t c = from; c < to && shared.goes_on(thread); ++c)
                if (cells_.size(c) > 0 && worth_a_look(c) && least_cost(c) < cells_.loss(c)) costs[c] = cells_.loss(c);
        });
        std::vector<std::pair<double, std::uint32_t>> costly;
        for (std::uint32_t c = 0; c < n_used_; ++c)
            if (costs[c] > 0) costly.emplace_back(-costs[c], c);
        std::sort(costly.begin(), costly.end());
        for (const auto& [negative_loss, c] : costly) {
            dissolve(c);
            watch.tick();
        }
    }

    // Around touched cells only those that have changed since the last time.
    bool worth_a_look(std::size_t cell) {
        if (looked_at_.empty()) return true;
        return std::exchange(looked_at_[cell], n_changes_[cell]) != n_changes_[cell];
    }

    // What scattering a cell would cost at least: each record to the cell nearest to it, as if alone.
    double least_cost(std::size_t c) const {
        const CellView cell = cells_.view(c, false);
        std::vector<float> least(cells_.capacity(), std::numeric_limits<float>::infinity());
        std::vector<float> apart2(cells_.capacity());
        std::vector<float> across(cells_.dims());
        for (std::size_t i = 0; i < n_listed_; ++i) {
            const std::uint32_t b = lists_[c * n_listed_ + i];
            if (b == none || cells_.size(b) == 0 || cells_.size(b) >= cells_.most()) continue;
            const CellView other = cells_.view(b, false);
            cells_.distances_from(other.centroid, c, loops_, across.data(), apart2.data());
            const auto size = static_cast<float>(other.size);
            for (std::size_t r = 0; r < cell.size; ++r) least[r] = std::min(least[r], size / (size + 1) * apart2[r]);
        }
        double sum = 0;
        for (std::size_t r = 0; r < cell.size; ++r) sum += least[r];
        return sum;
    }

    // One record after the other, for real; taken back if it does not pay in the end.
    void dissolve(std::size_t c) {
        const double own = cells_.precise_loss(c);
        std::vector<std::uint32_t> targets;
        double cost = 0;
        while (cells_.size(c) > 0) {
            const std::size_t last = cells_.size(c) - 1;
            std::uint32_t best = none;
            double least = std::numeric_limits<double>::infinity();
            for (std::size_t i = 0; i < n_listed_; ++i) {
                const std::uint32_t b = lists_[c * n_listed_ + i];
                if (b == none || cells_.size(b) == 0 || cells_.size(b) >= cells_.most()) continue;
                const double join = cells_.cost_to_join(cells_.record(c, last), b);
                if (join < least) {
                    least = join;
                    best = b;
                }
            }
            if (best == none || cost + least >= own - cells_.rounding(own)) break;
            cost += least;
            cells_.transfer(c, last, best);
            targets.push_back(best);
        }
        if (cells_.size(c) == 0) {
            for (const std::uint32_t target : targets) ++n_changes_[target];
            return;
        }
        for (std::size_t i = targets.size(); i-- > 0;) cells_.transfer(targets[i], cells_.size(targets[i]) - 1, c);
    }

    CellTiles cells_;
    std::size_t n_used_;  // the cells behind are spare
    std::size_t k_;
    Pool& pool_;
    const Loops& loops_;
    std::vector<std::vector<float>> rooms_;  // of each thread
    std::vector<std::uint32_t> lists_;       // the cells near each cell
    std::size_t n_listed_ = 0;
    Pairings pairings_;
    std::vector<std::uint32_t> n_changes_;  // how often each cell has changed
    std::vector<std::uint32_t> looked_at_;  // the changes of each cell when it was last considered for scattering
    double n_sweeps_ = 0;
};

}  // namespace shoal
