// MDAV, exactly as the plain float64 algorithm does it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "numeric/distance.hpp"
#include "parallel/polling.hpp"
#include "partition/cells.hpp"
#include "search/next_starts.hpp"
#include "search/remaining.hpp"

namespace shoal {

// Writes the cell number of each record; cells are numbered in the order in which they are formed.
class Mdav {
  public:
    Mdav(Rows<const double> X, std::size_t k, Pool& pool, const Loops& loops, std::span<std::int64_t> labels)
        : X_(X), k_(k), labels_(labels), remaining_(X, pool, loops), next_starts_(remaining_, k) {
        for (std::vector<double>& point : points_) point.resize(X.dims());
        std::fill(labels.begin(), labels.end(), std::int64_t{-1});
    }

    void run(Poller& watch) {
        while (remaining_.size() >= 2 * k_) {
            const std::uint32_t p = remaining_.farthest_from_centroid();
            const std::uint32_t q = form_first_cell(p);
            form_cell(q, answer_about(q, false));
            watch.tick(X_.size() - remaining_.size());
        }
        finish();
        watch.finish(X_.size());
    }

  private:
    // Spare ones among the nearest that are asked for ahead, since some may leave with other cells.
    static constexpr std::size_t n_spare = 3;

    // The cell of P; returns the farthest from P of those that stay.
    std::uint32_t form_first_cell(std::uint32_t p) {
        const std::uint32_t home = remaining_.home(p);
        const Answer answer = answer_about(p, true);
        form_cell(p, answer);
        // The farthest can have gone with the nearest, if all that were measured are equally far, or with another cell.
        for (const Candidate& farthest : answer.farthest)
            if (remaining_.contains(farthest.record)) return farthest.record;
        return remaining_.search({remaining_.scaled(p, points_.front()), 0, true, home}).farthest.front().record;
    }

    // Removes a record and says what the nearest and the farthest of the others are. If that is not known yet, the same
    // pass over the records answers for others that will probably start a cell soon. Some of their nearest may leave
    // before, so that a few more are asked for; the record itself is one of those found.
    Answer answer_about(std::uint32_t record, bool with_farthest) {
        if (auto known = next_starts_.take(record, with_farthest)) {
            remaining_.remove(record);
            return std::move(*known);
        }
        questions_.clear();
        ask(record, k_ - 1, with_farthest);
        remaining_.remove(record);
        look_ahead();
        std::array<Answer, Remaining::most_questions> answers;
        remaining_.search(questions_, answers);
        for (std::size_t i = 1; i < questions_.size(); ++i) {
            expect(answers[i]);
            next_starts_.keep(asked_[i], questions_[i].wants_farthest, std::move(answers[i]));
        }
        return std::move(answers.front());
    }

    // Adds questions about records that will probably start cells soon: about the outermost ones and, where the answer
    // is known, about the farthest from these.
    void look_ahead() {
        const std::size_t n_at_once = next_starts_.n_at_once();
        if (n_at_once == 1) return;
        taken_.clear();
        for (const Candidate& next : remaining_.outermost(2 * n_at_once)) {
            if (questions_.size() == n_at_once) return;
            if (is_taken(next.record)) continue;
            taken_.push_back(next.record);
            const Answer* known = next_starts_.find(next.record, true);
            if (!known) {
                ask(next.record, k_ + n_spare, true);
                continue;
            }
            take_nearest(*known);
            const auto stays = [&](const Candidate& one) {
                return remaining_.contains(one.record) && !is_taken(one.record);
            };
            const auto farthest = std::ranges::find_if(known->farthest, stays);
            if (farthest == known->farthest.end()) continue;
            taken_.push_back(farthest->record);
            if (const Answer* known_too = next_starts_.find(farthest->record, false))
                take_nearest(*known_too);
            else
                ask(farthest->record, k_ + n_spare, false);
        }
    }

    void ask(std::uint32_t record, std::size_t n_nearest, bool with_farthest) {
        const std::size_t i = questions_.size();
        asked_[i] = record;
        questions_.push_back(
            {remaining_.scaled(record, points_[i]), n_nearest, with_farthest, remaining_.home(record)});
    }

    // Of those that a foreseen cell will probably have.
    void take_nearest(const Answer& answer) {
        for (const Candidate& one : std::span(answer.nearest).first(std::min(k_, answer.nearest.size())))
            taken_.push_back(one.record);
    }
    bool is_taken(std::uint32_t record) const { return std::ranges::find(taken_, record) != taken_.end(); }

    // Says that the nearest will be asked about soon.
    void expect(const Answer& answer) const {
        for (const Candidate& one : answer.nearest) remaining_.expect(one.record);
    }

    // The record, which is removed already, and the k-1 nearest of those found that are still there.
    void form_cell(std::uint32_t record, const Answer& found) {
        labels_[record] = n_cells_;
        expect(found);
        for (const Candidate& member : found.nearest) remaining_.expect_removal(member.record);
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
        std::vector<double> point(n_dims);
        for (std::size_t c = 0; c < n_cells; ++c)
            for (const std::size_t member : members[c]) {
                remaining_.scaled(member, row);
                for (std::size_t j = 0; j < n_dims; ++j) centroids[c * n_dims + j] += row[j] / size;
            }
        // Each coordinate of a plain centroid is within 2k roundings of at most 1.
        const double error = 4e-16 * size * std::sqrt(static_cast<double>(n_dims));
        std::vector<double> distance(n_cells);
        for (const std::uint32_t record : left) {
            remaining_.scaled(record, point);
            for (std::size_t c = 0; c < n_cells; ++c)
                distance[c] = std::sqrt(squared_distance({&centroids[c * n_dims], n_dims}, point));
            const double limit = *std::min_element(distance.begin(), distance.end()) * (1 + slack) + 8 * error + 1e-140;
            Candidate nearest{std::numeric_limits<double>::infinity(), 0xffffffffu};
            for (std::size_t c = 0; c < n_cells; ++c) {
                if (distance[c] > limit) continue;
                exact_sum(X_, remaining_.scale(), members[c], row);
                for (double& sum : row) sum /= size;
                nearest = std::min(nearest, {squared_distance(point, row), static_cast<std::uint32_t>(c)});
            }
            labels_[record] = nearest.record;
        }
    }

    Rows<const double> X_;
    std::size_t k_;
    std::span<std::int64_t> labels_;
    Remaining remaining_;
    NextStarts next_starts_;
    std::vector<Question> questions_;
    std::array<std::uint32_t, Remaining::most_questions> asked_;         // the records they are about
    std::array<std::vector<double>, Remaining::most_questions> points_;  // and where these are
    std::vector<std::uint32_t> taken_;                                   // records that will probably not start a cell
    std::int64_t n_cells_ = 0;
};

}  // namespace shoal
