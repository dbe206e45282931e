// What an intruder can link by distance: released points to original records, and records to released points.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "boxed_points.hpp"
#include "cells.hpp"
#include "distance.hpp"
#include "polling.hpp"
#include "pool.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace shoal {

// The two nearest of what was offered, and how many are equally near as each.
class TwoNearest {
  public:
    // Nothing beyond the cap matters.
    explicit TwoNearest(double cap) : cap_(cap) {}

    void offer(double distance) {
        if (distance < first_) {
            second_ = first_;
            n_second_ = n_first_;
            first_ = distance;
            n_first_ = 1;
        } else if (distance == first_) {
            ++n_first_;
        } else if (distance < second_) {
            second_ = distance;
            n_second_ = 1;
        } else if (distance == second_) {
            ++n_second_;
        }
    }

    double first() const { return first_; }
    double limit() const { return std::min(cap_, n_first_ > 1 ? first_ : second_); }

    // How many are nearer than one of those offered, 2 standing for more too, and how many as near, itself included; 0
    // as near where two are nearer.
    void place(double distance, std::int64_t& ahead, std::int64_t& ties) const {
        ahead = distance == first_ ? 0 : distance == second_ && n_first_ == 1 ? 1 : 2;
        ties = ahead == 0 ? n_first_ : ahead == 1 ? n_second_ : 0;
    }

  private:
    double cap_;
    double first_ = std::numeric_limits<double>::infinity();
    double second_ = std::numeric_limits<double>::infinity();
    std::int64_t n_first_ = 0;
    std::int64_t n_second_ = 0;
};

// Original records, the points they were released as, and which is whose.
//
// Only the points are put in a spatial order. The records of a point lie around it, so that they follow its place.
class Linkage {
  public:
    Linkage(Rows<const double> X, Rows<const double> points, std::span<const std::int64_t> labels, Pool& pool,
            const Loops& loops)
        : X_(X),
          labels_(labels),
          released_(points),
          members_(labels, points.size()),
          scale_(std::min(unit_scale(X.flat(), pool), unit_scale(points.flat(), pool))),
          frame_(points, scale_),
          own2_(X.size()),
          pool_(pool),
          loops_(loops),
          points_(boxed(points)),
          records_(boxed_records()) {}

    // For each record released as one of the requested points, by ascending indices: the number of originals nearer to
    // that point than its own, at most 2, and the number as near, its own included; 0 as near if two are nearer.
    void rank_originals(std::span<const std::int64_t> asked, std::span<std::int64_t> ahead,
                        std::span<std::int64_t> ties, Poller& poller) {
        const BoxedPoints queries = boxed(released_, asked);
        for_each_block(queries, records_, poller, [&](std::size_t block, PairSearch& search) {
            const auto numbers = picked(asked, queries.numbers(block));
            std::vector<TwoNearest> found;
            std::array<double, block_size> limits, nearest_member;
            for (std::size_t slot = 0; slot < numbers.size(); ++slot) {
                const TwoNearest members = two_members(numbers[slot]);
                nearest_member[slot] = members.first();
                limits[slot] = members.limit();
                found.emplace_back(limits[slot]);
            }
            search.for_each_near(block, limits, [&](std::size_t slot, std::uint32_t i) {
                const double limit = found[slot].limit();
                const double distance = distance_up_to(limit, X_[i], released_[numbers[slot]]);
                if (distance <= limit) found[slot].offer(distance);
                // Once two are nearer than all members, the rest does not matter.
                return found[slot].limit() < nearest_member[slot] ? -1.0 : found[slot].limit();
            });
            for (std::size_t slot = 0; slot < numbers.size(); ++slot)
                for (const std::size_t i : members_[numbers[slot]]) found[slot].place(own2_[i], ahead[i], ties[i]);
        });
    }

    // For each requested record, by ascending indices: the number of released records nearer to it than its own, and
    // the number as near, its own included.
    void rank_released(std::span<const std::int64_t> asked, std::span<std::int64_t> ahead, std::span<std::int64_t> ties,
                       Poller& poller) {
        const BoxedPoints queries = boxed(X_, asked);
        for_each_block(queries, points_, poller, [&](std::size_t block, PairSearch& search) {
            const auto numbers = picked(asked, queries.numbers(block));
            std::array<double, block_size> limits;
            for (std::size_t slot = 0; slot < numbers.size(); ++slot) limits[slot] = own2_[numbers[slot]];
            search.for_each_near(block, limits, [&](std::size_t slot, std::uint32_t point) {
                const std::size_t i = numbers[slot];
                const auto size = static_cast<std::int64_t>(members_[point].size());
                const double distance = distance_up_to(own2_[i], X_[i], released_[point]);
                if (distance < own2_[i]) ahead[i] += size;
                if (distance == own2_[i]) ties[i] += size;
                return own2_[i];
            });
        });
    }

  private:
    // Calls task(block, search) for each block of queries, on all threads, which take blocks in order.
    template <class Task>
    void for_each_block(const BoxedPoints& queries, const BoxedPoints& targets, Poller& poller, const Task& task) {
        std::vector<PairSearch> searches(pool_.size(), PairSearch(queries, targets, loops_));
        SharedPoller shared(poller);
        // At least as long as it takes to look at every box.
        pool_.each(queries.n_blocks(), 1'000.0 + static_cast<double>(targets.n_blocks()) * 20.0,
                   [&](std::size_t thread, std::size_t block) {
                       if (shared.goes_on(thread, done_ + own2_.size() * block / queries.n_blocks()))
                           task(block, searches[thread]);
                   });
        done_ += own2_.size();
    }

    // The requested indices at some places.
    static std::vector<std::size_t> picked(std::span<const std::int64_t> asked, std::span<const std::uint32_t> places) {
        std::vector<std::size_t> numbers;
        for (const std::uint32_t place : places) numbers.push_back(static_cast<std::size_t>(asked[place]));
        return numbers;
    }

    BoxedPoints boxed(Rows<const double> rows, std::span<const std::int64_t> asked) const {
        return boxed(asked.size(), [&](std::size_t place) { return rows[static_cast<std::size_t>(asked[place])]; });
    }
    BoxedPoints boxed(Rows<const double> rows) const {
        return boxed(rows.size(), [&](std::size_t i) { return rows[i]; });
    }
    // Boxes n points, row_of(0) to row_of(n - 1).
    template <class RowOf>
    BoxedPoints boxed(std::size_t n, const RowOf& row_of) const {
        std::vector<float> floats(n * X_.dims());
        pool_.split(n, static_cast<double>(X_.dims()), [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i)
                frame_.place(row_of(i), std::span(floats).subspan(i * X_.dims(), X_.dims()));
        });
        return {Rows<const float>(floats.data(), n, X_.dims()), pool_};
    }

    // The records, those of a released point side by side, in the order of the points. On the way, the distance of each
    // record from its own point is measured.
    BoxedPoints boxed_records() {
        std::vector<std::uint32_t> order;
        order.reserve(X_.size());
        for (const std::uint32_t point : points_.order())
            for (const std::size_t i : members_[point]) order.push_back(static_cast<std::uint32_t>(i));
        std::vector<float> floats(X_.flat().size());
        pool_.split(X_.size(), 3 * static_cast<double>(X_.dims()), [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i) {
                own2_[i] = distance_up_to(std::numeric_limits<double>::infinity(), X_[i],
                                          released_[static_cast<std::size_t>(labels_[i])]);
                frame_.place(X_[i], std::span(floats).subspan(i * X_.dims(), X_.dims()));
            }
        });
        return {{floats.data(), X_.size(), X_.dims()}, std::move(order)};
    }

    // The nearest two of the records released as this point; where there is one, nothing beyond it matters.
    TwoNearest two_members(std::size_t number) const {
        const auto members = members_[number];
        TwoNearest nearest(members.size() == 1 ? own2_[members.front()] : std::numeric_limits<double>::infinity());
        for (const std::size_t i : members) nearest.offer(own2_[i]);
        return nearest;
    }

    // The exact squared distance, on which decisions are based, or for a pair beyond the limit a part of it beyond the
    // limit.
    double distance_up_to(double limit, std::span<const double> a, std::span<const double> b) const {
        double sum = 0;
        for (std::size_t j = 0; j < a.size() && sum <= limit;)
            for (const std::size_t stop = std::min(j + 8, a.size()); j < stop; ++j) {
                const double difference = a[j] * scale_ - b[j] * scale_;
                sum += difference * difference;
            }
        return sum;
    }

    Rows<const double> X_;
    std::span<const std::int64_t> labels_;  // the point of each record
    Rows<const double> released_;
    Members members_;
    double scale_;
    FloatFrame frame_;
    std::vector<double> own2_;  // squared distance of each record from its released point
    Pool& pool_;
    const Loops& loops_;
    BoxedPoints points_;
    BoxedPoints records_;
    std::size_t done_ = 0;  // records that have been ranked, once or twice
};

}  // namespace shoal
