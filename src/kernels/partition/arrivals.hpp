// Late records join, one after another, the cells of those that came before; exactly as the plain algorithm does it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "numeric/distance.hpp"
#include "numeric/rows.hpp"
#include "numeric/simd.hpp"
#include "parallel/polling.hpp"
#include "parallel/pool.hpp"
#include "partition/cells.hpp"
#include "partition/mdav.hpp"
#include "search/moving_centroids.hpp"

namespace shoal {

// Cells as points with sizes, and the question which of them a record should join. Cells may be added and move.
class Hosts {
  public:
    // With `inertial` the squared distance counts n / (n + 1) times for a cell of n records.
    Hosts(std::size_t n_dims, bool inertial, std::size_t least_size, Pool& pool, const Loops& loops)
        : inertial_(inertial), least_weight_(weight(least_size)), centroids_(n_dims, pool, loops) {}

    std::size_t size() const { return sizes_.size(); }
    std::size_t& n_records(std::size_t cell) { return sizes_[cell]; }

    void add(std::span<const double> centroid, std::size_t size) {
        centroids_.add(centroid);
        sizes_.push_back(size);
    }

    void move(std::size_t cell, std::span<const double> to) { centroids_.move(cell, to); }

    // The cell with the least cost for a point, the lowest number of equally good ones.
    std::size_t best(std::span<const double> point) {
        Candidate best{std::numeric_limits<double>::infinity(), 0xffffffff};
        const auto offer = [&](std::uint32_t cell) {
            const Candidate found{weight(sizes_[cell]) * squared_distance(centroids_[cell], point), cell};
            if (found < best) best = found;
        };
        // The nearest is the best, or with weights one of the nearest: as soon as no farther one can cost less.
        const auto enough = [&](double beyond) { return !inertial_ || least_weight_ * beyond > best.distance; };
        centroids_.visit(point, inertial_ ? 4 : 1, offer, enough);
        return best.record;
    }

  private:
    double weight(std::size_t size) const {
        return inertial_ ? static_cast<double>(size) / static_cast<double>(size + 1) : 1.0;
    }

    bool inertial_;
    double least_weight_;
    MovingCentroids centroids_;
    std::vector<std::size_t> sizes_;
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
