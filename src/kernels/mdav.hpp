// MDAV, exactly as the plain float64 algorithm does it.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "cells.hpp"
#include "distance.hpp"
#include "polling.hpp"
#include "remaining.hpp"

namespace shoal {

// Writes the cell number of each record; cells are numbered in the order in which they are formed.
class Mdav {
  public:
    Mdav(Rows<const double> X, std::size_t k, Pool& pool, const Loops& loops, std::span<std::int64_t> labels)
        : X_(X), k_(k), labels_(labels), remaining_(X, pool, loops), point_(X.dims()) {
        std::fill(labels.begin(), labels.end(), std::int64_t{-1});
    }

    void run(Poller& watch) {
        while (remaining_.size() >= 2 * k_) {
            const std::uint32_t p = remaining_.farthest_from_centroid();
            const Farthest from_p = form_cell(p, true);
            form_cell(from_p.record, false);
            watch.tick(X_.size() - remaining_.size());
        }
        finish();
        watch.finish(X_.size());
    }

  private:
    // The record and its k-1 nearest leave together; returns the farthest from it of those that stay, if asked.
    Farthest form_cell(std::uint32_t record, bool wants_farthest) {
        const std::uint32_t home = remaining_.home(record);
        remaining_.remove(record);
        remaining_.scaled(record, point_);
        Remaining::Answer answer = remaining_.search(point_, k_ - 1, wants_farthest, home);
        labels_[record] = n_cells_;
        for (const Candidate& member : answer.nearest) remaining_.expect(member.record);
        for (const Candidate& member : answer.nearest) {
            labels_[member.record] = n_cells_;
            remaining_.remove(member.record);
        }
        ++n_cells_;
        // Only where all that were measured are equally far can the farthest have gone with the nearest.
        if (wants_farthest && labels_[answer.farthest.record] >= 0)
            return remaining_.search(point_, 0, true, home).farthest;
        return answer.farthest;
    }

    // k to 2k-1 records are a cell of their own; fewer join, each, the cell with the nearest centroid.
    void finish() {
        std::vector<std::uint32_t> left;
        for (std::size_t i = 0; i < X_.size(); ++i)
            if (labels_[i] < 0) left.push_back(static_cast<std::uint32_t>(i));
        if (left.size() >= k_) {
            for (const std::uint32_t record : left) labels_[record] = n_cells_;
            ++n_cells_;
        } else if (!left.empty()) {
            join_nearest(left);
        }
    }

    // Plain sums find the cells that could be nearest; exact sums decide among those.
    void join_nearest(const std::vector<std::uint32_t>& left) {
        const std::size_t n_dims = X_.dims();
        const auto n_cells = static_cast<std::size_t>(n_cells_);
        const auto size = static_cast<double>(k_);
        // Those left over as one more cell.
        for (const std::uint32_t record : left) labels_[record] = n_cells_;
        const Members members(labels_, n_cells + 1);
        std::vector<double> centroids(n_cells * n_dims, 0.0);
        std::vector<double> row(n_dims);
        for (std::size_t c = 0; c < n_cells; ++c)
            for (const std::size_t member : members[c]) {
                remaining_.scaled(member, row);
                for (std::size_t j = 0; j < n_dims; ++j) centroids[c * n_dims + j] += row[j] / size;
            }
        // Each coordinate of a plain centroid is within 2k roundings of at most 1.
        const double error = 4e-16 * size * std::sqrt(static_cast<double>(n_dims));
        std::vector<double> distance(n_cells);
        for (const std::uint32_t record : left) {
            remaining_.scaled(record, point_);
            for (std::size_t c = 0; c < n_cells; ++c)
                distance[c] = std::sqrt(squared_distance({&centroids[c * n_dims], n_dims}, point_));
            const double limit = *std::min_element(distance.begin(), distance.end()) * (1 + slack) + 8 * error + 1e-140;
            Candidate nearest{std::numeric_limits<double>::infinity(), 0xffffffffu};
            for (std::size_t c = 0; c < n_cells; ++c) {
                if (distance[c] > limit) continue;
                exact_sum(X_, remaining_.scale(), members[c], row);
                for (double& sum : row) sum /= size;
                nearest = std::min(nearest, {squared_distance(point_, row), static_cast<std::uint32_t>(c)});
            }
            labels_[record] = nearest.record;
        }
    }

    Rows<const double> X_;
    std::size_t k_;
    std::span<std::int64_t> labels_;
    Remaining remaining_;
    std::vector<double> point_;
    std::int64_t n_cells_ = 0;
};

}  // namespace shoal
