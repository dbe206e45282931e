// The second phase of TFRP: cells are dissolved into their neighbours where that lowers the SSE.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "numeric/distance.hpp"
#include "numeric/exact_sum.hpp"
#include "numeric/rows.hpp"
#include "numeric/simd.hpp"
#include "parallel/polling.hpp"
#include "parallel/pool.hpp"
#include "partition/cells.hpp"
#include "search/moving_centroids.hpp"

namespace shoal {

// Changes labels; the numbers of dissolved cells are then unused. No number of X exceeds 1 in magnitude.
class CellDissolver {
  public:
    CellDissolver(Rows<const double> X, std::size_t k, Pool& pool, const Loops& loops, std::span<std::int64_t> labels)
        : X_(X), k_(k), labels_(labels), cells_(cells_of(labels)), centroids_(X.dims(), pool, loops) {
        for (std::size_t c = 0; c < cells_.size(); ++c) {
            centroids_.add(cells_[c].mean);
            if (cells_[c].members.size() >= full()) centroids_.close(c);
        }
    }

    void run(Poller& poller) {
        std::vector<std::size_t> order(cells_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return cells_[a].gse > cells_[b].gse; });
        for (const std::size_t cell : order) {
            if (cells_[cell].members.size() < 2 * k_) consider(cell);
            poller.tick(0);
        }
        for (std::size_t c = 0; c < cells_.size(); ++c)
            for (const std::size_t record : cells_[c].members) labels_[record] = static_cast<std::int64_t>(c);
    }

  private:
    struct Cell {
        std::vector<std::size_t> members;  // ascending
        std::vector<double> mean;
        double gse = 0;
    };
    struct Grown {
        std::size_t target;
        Cell cell;
    };

    static constexpr std::uint32_t none = 0xffffffff;

    std::size_t full() const { return 4 * k_ - 1; }

    std::vector<Cell> cells_of(std::span<const std::int64_t> labels) const {
        const auto n_cells = static_cast<std::size_t>(*std::max_element(labels.begin(), labels.end())) + 1;
        const Members members(labels, n_cells);
        std::vector<Cell> cells(n_cells);
        for (std::size_t c = 0; c < n_cells; ++c) {
            cells[c].members.assign(members[c].begin(), members[c].end());
            measure(cells[c]);
        }
        return cells;
    }

    void measure(Cell& cell) const {
        cell.mean.resize(X_.dims());
        exact_sum(X_, 1.0, cell.members, cell.mean);
        for (double& value : cell.mean) value /= static_cast<double>(cell.members.size());
        ExactSums total(1);
        for (const std::size_t i : cell.members) add(total, squared_distance(X_[i], cell.mean));
        cell.gse = total[0];
    }

    static void add(ExactSums& total, double value) { total.add({&value, 1}); }

    // Dissolves the cell if the SSE of the cells involved decreases.
    void consider(std::size_t cell) {
        std::vector<Grown> grown = offers(cell);
        if (grown.empty()) return;
        ExactSums before(1);
        ExactSums after(1);
        add(before, cells_[cell].gse);
        for (Grown& one : grown) {
            std::sort(one.cell.members.begin(), one.cell.members.end());
            measure(one.cell);
            add(before, cells_[one.target].gse);
            add(after, one.cell.gse);
        }
        if (!(after[0] < before[0])) return;
        cells_[cell] = {};
        centroids_.close(cell);
        for (Grown& one : grown) {
            if (one.cell.members.size() < full())
                centroids_.move(one.target, one.cell.mean);
            else
                centroids_.close(one.target);
            cells_[one.target] = std::move(one.cell);
        }
    }

    // The other cells after the members of this one are assigned, the outermost first; empty if there is no room for
    // one of them.
    std::vector<Grown> offers(std::size_t cell) {
        std::vector<Grown> grown;
        std::vector<std::uint32_t> barred{static_cast<std::uint32_t>(cell)};
        for (const std::size_t record : outermost_first(cells_[cell])) {
            const std::uint32_t target = nearest(X_[record], barred);
            if (target == none) return {};
            auto one = std::find_if(grown.begin(), grown.end(), [&](const Grown& g) { return g.target == target; });
            if (one == grown.end()) one = grown.insert(one, {target, {cells_[target].members, {}, 0}});
            one->cell.members.push_back(record);
            if (one->cell.members.size() >= full()) barred.push_back(target);
        }
        return grown;
    }

    // The open cell with the nearest centroid, except for barred ones; ties go to the lowest number.
    std::uint32_t nearest(std::span<const double> point, std::span<const std::uint32_t> barred) {
        Candidate best{std::numeric_limits<double>::infinity(), none};
        const auto offer = [&](std::uint32_t cell) {
            const Candidate found{squared_distance_up_to(best.distance, centroids_[cell], point), cell};
            if (found < best && std::find(barred.begin(), barred.end(), cell) == barred.end()) best = found;
        };
        // One more than are barred, so that one of them is not.
        centroids_.visit(point, barred.size() + 1, offer, [](double) { return true; });
        return best.record;
    }

    std::vector<std::size_t> outermost_first(const Cell& cell) const {
        std::vector<Candidate> order;
        for (const std::size_t i : cell.members)
            order.push_back({-squared_distance(X_[i], cell.mean), static_cast<std::uint32_t>(i)});
        std::sort(order.begin(), order.end());
        std::vector<std::size_t> records;
        for (const Candidate& one : order) records.push_back(one.record);
        return records;
    }

    Rows<const double> X_;
    std::size_t k_;
    std::span<std::int64_t> labels_;
    std::vector<Cell> cells_;
    MovingCentroids centroids_;
};

}  // namespace shoal
