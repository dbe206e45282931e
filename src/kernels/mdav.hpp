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
        : X_(X), k_(k), labels_(labels), remaining_(X, pool, loops), p_(X.dims()), q_(X.dims()), next_(X.dims()) {
        std::fill(labels.begin(), labels.end(), std::int64_t{-1});
    }

    void run(Poller& watch) {
        while (remaining_.size() >= 2 * k_) {
            const std::uint32_t p = remaining_.farthest_from_centroid();
            form_second_cell(form_first_cell(p));
            watch.tick(X_.size() - remaining_.size());
        }
        finish();
        watch.finish(X_.size());
    }

  private:
    static constexpr std::uint32_t none = 0xffffffff;
    static constexpr std::size_t n_spare = 2;

    // What is known of a record that will probably start a cell soon.
    struct Foreseen {
        std::uint32_t record = none;
        Answer answer;
    };

    // The cell of P; returns the farthest from P of those that stay.
    std::uint32_t form_first_cell(std::uint32_t p) {
        const std::uint32_t home = remaining_.home(p);
        remaining_.scaled(p, p_);
        remaining_.remove(p);
        const Answer answer =
            foresees(p) ? std::exchange(foreseen_, {}).answer : remaining_.search({p_, k_ - 1, true, home});
        form_cell(p, answer);
        // The farthest can have gone with the nearest, if all that were measured are equally far, or with another cell.
        for (const Candidate& farthest : answer.farthest)
            if (remaining_.contains(farthest.record)) return farthest.record;
        return remaining_.search({p_, 0, true, home}).farthest.front().record;
    }

    // The cell of Q. The same pass over the records answers for the one that will probably start the next cell. Some of
    // its nearest may leave with Q, so that a few more are asked for; itself is one of those found.
    void form_second_cell(std::uint32_t q) {
        const Question nearest{remaining_.scaled(q, q_), k_ - 1, false, remaining_.home(q)};
        remaining_.expect_question(nearest.home);
        remaining_.remove(q);
        if (foresees(foreseen_.record)) return form_cell(q, remaining_.search(nearest));
        const auto next = remaining_.foresee(p_, q_);
        if (!next) return form_cell(q, remaining_.search(nearest));
        const Question ahead{remaining_.scaled(*next, next_), k_ + n_spare, true, remaining_.home(*next)};
        auto [answer, answer_ahead] = remaining_.search(std::array{nearest, ahead});
        foreseen_ = {*next, std::move(answer_ahead)};
        form_cell(q, answer);
    }

    // The record, which is removed already, and the k-1 nearest of those found that are still there.
    void form_cell(std::uint32_t record, const Answer& found) {
        labels_[record] = n_cells_;
        for (const Candidate& member : found.nearest) remaining_.expect(member.record);
        std::size_t n_missing = k_ - 1;
        for (const Candidate& member : found.nearest) {
            if (n_missing == 0) break;
            if (!remaining_.contains(member.record)) continue;
            labels_[member.record] = n_cells_;
            remaining_.remove(member.record);
            --n_missing;
        }
        ++n_cells_;
    }

    // Whether the nearest of a record are known: enough of those found are still there.
    bool foresees(std::uint32_t record) const {
        if (record == none || record != foreseen_.record || labels_[record] >= 0) return false;
        const auto is_there = [&](const Candidate& other) {
            return other.record != record && remaining_.contains(other.record);
        };
        return std::ranges::count_if(foreseen_.answer.nearest, is_there) >= static_cast<std::ptrdiff_t>(k_ - 1);
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
            remaining_.scaled(record, p_);
            for (std::size_t c = 0; c < n_cells; ++c)
                distance[c] = std::sqrt(squared_distance({&centroids[c * n_dims], n_dims}, p_));
            const double limit = *std::min_element(distance.begin(), distance.end()) * (1 + slack) + 8 * error + 1e-140;
            Candidate nearest{std::numeric_limits<double>::infinity(), 0xffffffffu};
            for (std::size_t c = 0; c < n_cells; ++c) {
                if (distance[c] > limit) continue;
                exact_sum(X_, remaining_.scale(), members[c], row);
                for (double& sum : row) sum /= size;
                nearest = std::min(nearest, {squared_distance(p_, row), static_cast<std::uint32_t>(c)});
            }
            labels_[record] = nearest.record;
        }
    }

    Rows<const double> X_;
    std::size_t k_;
    std::span<std::int64_t> labels_;
    Remaining remaining_;
    std::vector<double> p_, q_, next_;
    Foreseen foreseen_;
    std::int64_t n_cells_ = 0;
};

}  // namespace shoal
