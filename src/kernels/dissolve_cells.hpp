// The second phase of TFRP: cells are dissolved into their neighbours where that lowers the SSE.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "cells.hpp"
#include "distance.hpp"
#include "exact_sum.hpp"
#include "polling.hpp"
#include "pool.hpp"
#include "remaining.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace shoal {

// The centroids of the open cells: an index of those that have not moved, a list of the others.
class Centroids {
  public:
    static constexpr std::int64_t none = -1;

    Centroids(std::vector<double> at, std::size_t n_dims, Pool& pool, const Loops& loops)
        : at_(std::move(at)), n_dims_(n_dims), pool_(pool), loops_(loops), place_(at_.size() / n_dims) {
        open_.assign(place_.size(), true);
        build();
    }

    std::span<const double> operator[](std::size_t cell) const { return {&at_[cell * n_dims_], n_dims_}; }

    // Closes the cell to further records.
    void close(std::size_t cell) {
        leave_index(cell);
        std::erase(moved_, cell);
        open_[cell] = false;
    }

    void move(std::size_t cell, std::span<const double> to) {
        leave_index(cell);
        std::copy(to.begin(), to.end(), &at_[cell * n_dims_]);
        if (std::find(moved_.begin(), moved_.end(), cell) == moved_.end()) moved_.push_back(cell);
        if (moved_.size() > max_moved) build();
    }

    // The nearest cell that is open and not among the full ones; ties go to the lowest number.
    std::int64_t nearest(std::span<const double> point, std::span<const std::size_t> full) {
        Candidate best{std::numeric_limits<double>::infinity(), 0xffffffff};
        const auto allowed = [&](std::size_t cell) { return std::find(full.begin(), full.end(), cell) == full.end(); };
        for (const std::size_t cell : moved_)
            if (allowed(cell)) offer(best, point, cell);
        if (still_ && still_->size() > 0) {
            scaled_.assign(point.begin(), point.end());
            for (double& value : scaled_) value *= still_->scale();
            const auto found =
                still_->search({scaled_, std::min(full.size() + 1, still_->size()), false, home_}).nearest;
            home_ = still_->home(found.front().record);
            for (const Candidate& candidate : found)
                if (allowed(cells_[candidate.record])) {
                    offer(best, point, cells_[candidate.record]);
                    break;
                }
        }
        return best.record == 0xffffffff ? none : best.record;
    }

  private:
    // Up to this number, measuring one by one costs less than a new index.
    static constexpr std::size_t max_moved = 256;
    static constexpr std::uint32_t gone = 0xffffffff;

    // Partial distance search: stops once the sum is too large.
    void offer(Candidate& best, std::span<const double> point, std::size_t cell) const {
        const double* at = &at_[cell * n_dims_];
        double sum = 0;
        for (std::size_t j = 0; j < n_dims_; ++j) {
            const double difference = at[j] - point[j];
            sum += difference * difference;
            if (sum > best.distance) return;
        }
        best = std::min(best, {sum, static_cast<std::uint32_t>(cell)});
    }

    void leave_index(std::size_t cell) {
        if (place_[cell] == gone) return;
        still_->remove(place_[cell]);
        place_[cell] = gone;
    }

    // Ascending cell numbers, so that the index breaks ties by the lowest.
    void build() {
        moved_.clear();
        cells_.clear();
        snapshot_.clear();
        still_.reset();
        home_ = 0;
        for (std::size_t cell = 0; cell < place_.size(); ++cell) {
            place_[cell] = open_[cell] ? static_cast<std::uint32_t>(cells_.size()) : gone;
            if (!open_[cell]) continue;
            cells_.push_back(cell);
            snapshot_.insert(snapshot_.end(), at_.data() + cell * n_dims_, at_.data() + (cell + 1) * n_dims_);
        }
        if (!cells_.empty())
            still_.emplace(Rows<const double>(snapshot_.data(), cells_.size(), n_dims_), pool_, loops_);
    }

    std::vector<double> at_;
    std::size_t n_dims_;
    Pool& pool_;
    const Loops& loops_;
    std::vector<std::uint32_t> place_;  // in the index
    std::vector<bool> open_;
    std::vector<std::size_t> moved_;
    std::vector<std::size_t> cells_;  // in the order of the index
    std::vector<double> snapshot_;    // what the index was built on
    std::optional<Remaining> still_;
    std::vector<double> scaled_;
    std::uint32_t home_ = 0;
};

// Changes labels; the numbers of dissolved cells are then unused. No number of X exceeds 1 in magnitude.
class CellDissolver {
  public:
    CellDissolver(Rows<const double> X, std::size_t k, Pool& pool, const Loops& loops, std::span<std::int64_t> labels)
        : X_(X), k_(k), labels_(labels), cells_(cells_of(labels)), centroids_(means(), X.dims(), pool, loops) {
        for (std::size_t c = 0; c < cells_.size(); ++c)
            if (cells_[c].members.size() >= full()) centroids_.close(c);
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

    std::vector<double> means() const {
        std::vector<double> all;
        for (const Cell& cell : cells_) all.insert(all.end(), cell.mean.begin(), cell.mean.end());
        return all;
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
        std::vector<std::size_t> closed{cell};
        for (const std::size_t record : outermost_first(cells_[cell])) {
            const std::int64_t found = centroids_.nearest(X_[record], closed);
            if (found == Centroids::none) return {};
            const auto target = static_cast<std::size_t>(found);
            auto one = std::find_if(grown.begin(), grown.end(), [&](const Grown& g) { return g.target == target; });
            if (one == grown.end()) one = grown.insert(one, {target, {cells_[target].members, {}, 0}});
            one->cell.members.push_back(record);
            if (one->cell.members.size() >= full()) closed.push_back(target);
        }
        return grown;
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
    Centroids centroids_;
};

}  // namespace shoal
