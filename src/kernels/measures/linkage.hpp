// What an intruder can link by distance: released points to original records, and records to released points.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "bindings/checks.hpp"
#include "numeric/distance.hpp"
#include "numeric/rows.hpp"
#include "numeric/simd.hpp"
#include "parallel/polling.hpp"
#include "parallel/pool.hpp"
#include "partition/cells.hpp"
#include "search/boxed_points.hpp"

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
class Linkage {
  public:
    Linkage(Rows<const double> X, Rows<const double> points, std::span<const std::int64_t> labels, Pool& pool,
            const Loops& loops)
        : X_(X),
          labels_(labels),
          released_(points),
          members_(labels, points.size()),
          scale_(std::min(checked_unit_scale(X.flat(), pool), checked_unit_scale(points.flat(), pool))),
          pool_(pool),
          loops_(loops),
          frame_(points, scale_, loops),
          points_(boxed(points)),
          records_(boxed_records()) {}

    // For each record released as one of the requested points, by ascending indices: the number of originals nearer to
    // that point than its own, at most 2, and the number as near, its own included; 0 as near if two are nearer.
    void rank_originals(std::span<const std::int64_t> asked, std::span<std::int64_t> ahead,
                        std::span<std::int64_t> ties, Poller& poller) {
        for_each_block(released_, asked, points_, records_, poller, [&](const Queries& queries, PairSearch& search) {
            std::vector<std::vector<double>> own2;
            std::vector<TwoNearest> found;
            std::array<double, block_size> limits, nearest_member;
            for (std::size_t slot = 0; slot < queries.numbers.size(); ++slot) {
                if (slot + 1 < queries.numbers.size())
                    for (const std::size_t i : members_[queries.numbers[slot + 1]]) fetch(X_[i]);
                own2.push_back(member_distances(queries.numbers[slot]));
                const TwoNearest members = two_nearest(own2.back());
                nearest_member[slot] = members.first();
                limits[slot] = members.limit();
                found.emplace_back(limits[slot]);
            }
            const auto fetch_record = [&](std::uint32_t i) { fetch(X_[i]); };
            search.for_each_near(queries.block, limits, fetch_record, [&](std::size_t slot, std::uint32_t i) {
                const double limit = found[slot].limit();
                const double distance = distance_up_to(limit, X_[i], released_[queries.numbers[slot]]);
                if (distance <= limit) found[slot].offer(distance);
                // Once two are nearer than all members, the rest does not matter.
                return found[slot].limit() < nearest_member[slot] ? -1.0 : found[slot].limit();
            });
            for (std::size_t slot = 0; slot < queries.numbers.size(); ++slot) {
                const auto members = members_[queries.numbers[slot]];
                for (std::size_t m = 0; m < members.size(); ++m)
                    found[slot].place(own2[slot][m], ahead[members[m]], ties[members[m]]);
            }
        });
    }

    // For each requested record, by ascending indices: the number of released records nearer to it than its own, and
    // the number as near, its own included.
    void rank_released(std::span<const std::int64_t> asked, std::span<std::int64_t> ahead, std::span<std::int64_t> ties,
                       Poller& poller) {
        for_each_block(X_, asked, records_, points_, poller, [&](const Queries& queries, PairSearch& search) {
            std::array<double, block_size> own2;
            for (std::size_t slot = 0; slot < queries.numbers.size(); ++slot) own2[slot] = own(queries.numbers[slot]);
            const auto fetch_point = [&](std::uint32_t point) { fetch(released_[point]); };
            search.for_each_near(queries.block, own2, fetch_point, [&](std::size_t slot, std::uint32_t point) {
                const std::size_t i = queries.numbers[slot];
                const auto size = static_cast<std::int64_t>(members_[point].size());
                const double distance = distance_up_to(own2[slot], X_[i], released_[point]);
                if (distance < own2[slot]) ahead[i] += size;
                if (distance == own2[slot]) ties[i] += size;
                return own2[slot];
            });
        });
    }

  private:
    // A block of queries, and the indices of its points.
    struct Queries {
        std::size_t block;
        std::vector<std::size_t> numbers;
    };

    BoxedPoints boxed(Rows<const double> rows) const {
        return boxed(rows.size(), [&](std::size_t i) { return rows[i]; });
    }
    BoxedPoints boxed(Rows<const double> rows, std::span<const std::int64_t> asked) const {
        return boxed(asked.size(), [&](std::size_t place) { return rows[static_cast<std::size_t>(asked[place])]; });
    }
    // In a spatial order.
    template <class RowOf>
    BoxedPoints boxed(std::size_t n, const RowOf& row_of) const {
        const auto in_order = [&](Rows<const float> floats) { return spatial_order(floats, block_size, pool_); };
        return {n, row_of, in_order, frame_, pool_};
    }
    // In few dimensions the records follow their points, which saves most of the time to put them in order. In many,
    // the boxes around several cells would overlap.
    BoxedPoints boxed_records() const {
        if (frame_.n_dims() > few_dims) return boxed(X_);
        const auto in_order = [&](Rows<const float> floats) {
            std::vector<std::uint32_t> order;
            order.reserve(floats.size());
            for (const std::uint32_t point : points_.order())
                for (const std::size_t i : members_[point]) order.push_back(static_cast<std::uint32_t>(i));
            return order;
        };
        return {X_.size(), [&](std::size_t i) { return X_[i]; }, in_order, frame_, pool_};
    }

    // Calls task(queries, search) for each block of the requested rows, on all threads, which take blocks in order.
    // `all` are all rows.
    template <class Task>
    void for_each_block(Rows<const double> rows, std::span<const std::int64_t> asked, const BoxedPoints& all,
                        const BoxedPoints& targets, Poller& poller, const Task& task) {
        if (asked.size() == rows.size()) return for_each_block(all, asked, targets, poller, task);
        for_each_block(boxed(rows, asked), asked, targets, poller, task);
    }
    template <class Task>
    void for_each_block(const BoxedPoints& boxes, std::span<const std::int64_t> asked, const BoxedPoints& targets,
                        Poller& poller, const Task& task) {
        std::vector<PairSearch> searches(pool_.size(), PairSearch(boxes, targets, loops_));
        SharedPoller shared(poller);
        // At least as long as it takes to look at every box.
        pool_.each(boxes.n_blocks(), 1'000.0 + static_cast<double>(targets.n_blocks()) * 20.0,
                   [&](std::size_t thread, std::size_t block) {
                       if (!shared.goes_on(thread, done_ + X_.size() * block / boxes.n_blocks())) return;
                       Queries queries{block, {}};
                       for (const std::uint32_t place : boxes.numbers(block))
                           queries.numbers.push_back(static_cast<std::size_t>(asked[place]));
                       task(queries, searches[thread]);
                   });
        done_ += X_.size();
    }

    // The first columns mostly show that a pair is beyond the limit.
    static void fetch(std::span<const double> row) {
        for (std::size_t j = 0; j < row.size() && j < 32; j += 8) __builtin_prefetch(&row[j]);
    }

    // Squared distance of a record from its released point.
    double own(std::size_t i) const {
        return distance_up_to(std::numeric_limits<double>::infinity(), X_[i],
                              released_[static_cast<std::size_t>(labels_[i])]);
    }
    std::vector<double> member_distances(std::size_t point) const {
        std::vector<double> own2;
        for (const std::size_t i : members_[point]) own2.push_back(own(i));
        return own2;
    }

    // The nearest two of the records released as a point; where there is one, nothing beyond it matters.
    static TwoNearest two_nearest(std::span<const double> own2) {
        TwoNearest nearest(own2.size() == 1 ? own2.front() : std::numeric_limits<double>::infinity());
        for (const double distance : own2) nearest.offer(distance);
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
    Pool& pool_;
    const Loops& loops_;
    FloatFrame frame_;
    BoxedPoints points_;
    BoxedPoints records_;
    std::size_t done_ = 0;  // records that have been ranked, once or twice
};

}  // namespace shoal
