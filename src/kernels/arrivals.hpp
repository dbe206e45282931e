// Late records join, one after another, the cells of those that came before; exactly as the plain algorithm does it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "cells.hpp"
#include "distance.hpp"
#include "mdav.hpp"
#include "polling.hpp"
#include "pool.hpp"
#include "remaining.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace shoal {

// Cells as points with sizes, and the question which of them a record should join. Cells may be added and move.
class Hosts {
  public:
    // With `inertial` the squared distance counts n / (n + 1) times for a cell of n records.
    Hosts(std::size_t n_dims, bool inertial, std::size_t least_size, Pool& pool, const Loops& loops)
        : n_dims_(n_dims), inertial_(inertial), least_weight_(weight(least_size)), pool_(pool), loops_(loops) {}

    std::size_t size() const { return sizes_.size(); }
    std::size_t& n_records(std::size_t cell) { return sizes_[cell]; }

    void add(std::span<const double> centroid, std::size_t size) {
        at_.insert(at_.end(), centroid.begin(), centroid.end());
        sizes_.push_back(size);
        place_.push_back(gone);
        moved_.push_back(static_cast<std::uint32_t>(sizes_.size() - 1));
    }

    void move(std::size_t cell, std::span<const double> to) {
        std::copy(to.begin(), to.end(), &at_[cell * n_dims_]);
        if (place_[cell] == gone) return;
        still_->remove(place_[cell]);
        place_[cell] = gone;
        moved_.push_back(static_cast<std::uint32_t>(cell));
    }

    // The cell with the least cost for a point, the lowest number of equally good ones.
    std::size_t best(std::span<const double> point) {
        if (moved_.size() > max_moved) build();
        Candidate best{std::numeric_limits<double>::infinity(), 0xffffffff};
        for (const std::uint32_t cell : moved_) offer(best, point, cell);
        if (still_ && still_->size() > 0) search(best, point);
        return best.record;
    }

  private:
    // Up to this number, measuring one by one costs less than a new index.
    static constexpr std::size_t max_moved = 256;
    static constexpr std::uint32_t gone = 0xffffffff;
    // Beyond this, in units of the index, squares would overflow there.
    static constexpr double too_far = 1e100;

    double weight(std::size_t size) const {
        return inertial_ ? static_cast<double>(size) / static_cast<double>(size + 1) : 1.0;
    }

    void offer(Candidate& best, std::span<const double> point, std::uint32_t cell) const {
        const double distance = squared_distance({&at_[cell * n_dims_], n_dims_}, point);
        best = std::min(best, {weight(sizes_[cell]) * distance, cell});
    }

    // The index handles distances only: it is queried for more and more of the nearest, until no other can cost less.
    void search(Candidate& best, std::span<const double> point) {
        bool far = false;
        scaled_.assign(point.begin(), point.end());
        for (double& value : scaled_) far |= std::abs(value *= still_->scale()) > too_far;
        if (far) {
            for (std::uint32_t cell = 0; cell < size(); ++cell) offer(best, point, cell);
            return;
        }
        for (std::size_t n = inertial_ ? 4 : 1;; n *= 4) {
            const auto found = still_->search({scaled_, std::min(n, still_->size()), false, home_}).nearest;
            for (const Candidate& one : found) offer(best, point, cells_[one.record]);
            home_ = still_->home(found.front().record);
            const std::uint32_t last = cells_[found.back().record];
            const double beyond = squared_distance({&at_[last * n_dims_], n_dims_}, point);
            if (!inertial_ || n >= still_->size() || least_weight_ * beyond > best.distance) return;
        }
    }

    // Ascending cell numbers, so that of equally near ones the index gives the lowest.
    void build() {
        moved_.clear();
        cells_.resize(size());
        snapshot_ = at_;
        home_ = 0;
        for (std::uint32_t cell = 0; cell < size(); ++cell) place_[cell] = cells_[cell] = cell;
        still_.emplace(Rows<const double>(snapshot_.data(), size(), n_dims_), pool_, loops_);
    }

    std::size_t n_dims_;
    bool inertial_;
    double least_weight_;
    Pool& pool_;
    const Loops& loops_;
    std::vector<double> at_;
    std::vector<std::size_t> sizes_;
    std::vector<std::uint32_t> place_;  // in the index
    std::vector<std::uint32_t> moved_;  // cells that the index does not know, or not where they are
    std::vector<std::uint32_t> cells_;  // in the order of the index
    std::vector<double> snapshot_;      // what the index was built on
    std::optional<Remaining> still_;
    std::vector<double> scaled_;
    std::uint32_t home_ = 0;
};

// Fills in the labels of the records after the first `n_base`, in their order. Those of the base number cells of at
// least k records.
class Arrivals {
  public:
    struct Rules {
        bool inertial = false;   // count what a newcomer does to the others in the cell
        bool split_mid = false;  // cut a cell by MDAV as soon as it has 2k records
    };

    Arrivals(Rows<const double> X, std::size_t n_base, std::size_t k, const Rules& rules, Pool& pool,
             const Loops& loops, std::span<std::int64_t> labels)
        : X_(X),
          scale_(unit_scale(X.flat())),
          n_base_(n_base),
          k_(k),
          split_mid_(rules.split_mid),
          loops_(loops),
          labels_(labels),
          hosts_(X.dims(), rules.inertial, k, pool, loops),
          row_(X.dims()) {
        const auto base = labels.first(n_base);
        const Members members(base, static_cast<std::size_t>(*std::max_element(base.begin(), base.end())) + 1);
        for (std::size_t c = 0; c < members.n_cells(); ++c) {
            members_.emplace_back(members[c].begin(), members[c].end());
            hosts_.add(centroid(members_[c]), members_[c].size());
        }
    }

    void run(Poller& poller) {
        std::vector<double> point(X_.dims());
        for (std::size_t i = n_base_; i < X_.size(); ++i) {
            for (std::size_t j = 0; j < point.size(); ++j) point[j] = X_[i][j] * scale_;
            const std::size_t cell = hosts_.best(point);
            labels_[i] = static_cast<std::int64_t>(cell);
            ++hosts_.n_records(cell);
            if (split_mid_) {
                members_[cell].push_back(i);
                if (members_[cell].size() >= 2 * k_) cut(cell);
            }
            poller.tick(i - n_base_);
        }
        poller.finish(X_.size() - n_base_);
    }

  private:
    // Correctly rounded sums, divided.
    std::span<const double> centroid(std::span<const std::size_t> members) {
        exact_sum(X_, scale_, members, row_);
        for (double& value : row_) value /= static_cast<double>(members.size());
        return row_;
    }

    // MDAV's first cell keeps the number; the others get new ones.
    void cut(std::size_t cell) {
        const std::vector<std::size_t> all = std::move(members_[cell]);
        std::vector<double> rows;
        for (const std::size_t i : all) rows.insert(rows.end(), X_[i].begin(), X_[i].end());
        std::vector<std::int64_t> parts(all.size());
        Poller silent([](std::size_t) {});
        Mdav({rows.data(), all.size(), X_.dims()}, k_, alone_, loops_, parts).run(silent);
        const Members split(parts, static_cast<std::size_t>(*std::max_element(parts.begin(), parts.end())) + 1);
        for (std::size_t part = 0; part < split.n_cells(); ++part) {
            const std::size_t number = part == 0 ? cell : hosts_.size();
            std::vector<std::size_t> records;
            for (const std::size_t place : split[part]) records.push_back(all[place]);
            for (const std::size_t i : records) labels_[i] = static_cast<std::int64_t>(number);
            if (part == 0) {
                hosts_.move(cell, centroid(records));
                hosts_.n_records(cell) = records.size();
                members_[cell] = std::move(records);
            } else {
                hosts_.add(centroid(records), records.size());
                members_.push_back(std::move(records));
            }
        }
    }

    Rows<const double> X_;
    double scale_;
    std::size_t n_base_;
    std::size_t k_;
    bool split_mid_;
    const Loops& loops_;
    std::span<std::int64_t> labels_;
    Hosts hosts_;
    std::vector<double> row_;
    std::vector<std::vector<std::size_t>> members_;  // of each cell, ascending
    Pool alone_{1};
};

}  // namespace shoal
