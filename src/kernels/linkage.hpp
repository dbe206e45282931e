// What an intruder can link by distance: released points to original records, and records to released points.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
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

// Rows, and the ascending indices of the requested ones.
struct Asked {
    Rows<const double> rows;
    std::span<const std::int64_t> numbers;
};

// The requested points of a set, boxed, with their indices in the set.
class QueryPoints {
  public:
    QueryPoints(const BoxedPoints& all, const Asked& asked, double scale, std::span<const double> middle, Pool& pool)
        : boxes_(&all), asked_(asked.numbers) {
        if (asked_.size() == asked.rows.size()) return;
        std::vector<double> picked;
        picked.reserve(asked_.size() * asked.rows.dims());
        for (const std::int64_t number : asked_) {
            const auto row = asked.rows[static_cast<std::size_t>(number)];
            picked.insert(picked.end(), row.begin(), row.end());
        }
        own_ = std::make_unique<BoxedPoints>(Rows<const double>(picked.data(), asked_.size(), asked.rows.dims()), scale,
                                             middle, pool);
        boxes_ = own_.get();
    }

    const BoxedPoints& boxes() const { return *boxes_; }
    // The indices of the points of a block in the whole set.
    std::vector<std::uint32_t> numbers(std::size_t block) const {
        const auto inside = boxes_->numbers(block);
        std::vector<std::uint32_t> numbers(inside.begin(), inside.end());
        if (own_)
            for (std::uint32_t& number : numbers) number = static_cast<std::uint32_t>(asked_[number]);
        return numbers;
    }

  private:
    const BoxedPoints* boxes_;
    std::span<const std::int64_t> asked_;
    std::unique_ptr<BoxedPoints> own_;
};

// Original records, the points they were released as, and which is whose.
class Linkage {
  public:
    Linkage(Rows<const double> X, Rows<const double> points, std::span<const std::int64_t> labels, Pool& pool,
            const Loops& loops)
        : scale_(std::min(unit_scale(X.flat(), pool), unit_scale(points.flat(), pool))),
          middle_(middle_of(X)),
          records_(X, scale_, middle_, pool),
          points_(points, scale_, middle_, pool),
          members_(labels, points.size()),
          own2_(X.size()),
          pool_(pool),
          loops_(loops) {
        pool_.split(X.size(), 2.0 * static_cast<double>(X.dims()), [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i)
                own2_[i] = scaled_distance(X[i], points[static_cast<std::size_t>(labels[i])]);
        });
    }

    // For each record released as one of the requested points: the number of originals nearer to that point than its
    // own, at most 2, and the number as near, its own included; 0 as near if two are nearer.
    void rank_originals(const Asked& asked, std::span<std::int64_t> ahead, std::span<std::int64_t> ties,
                        Poller& poller) {
        const QueryPoints queries(points_, asked, scale_, middle_, pool_);
        for_each_block(queries.boxes(), records_, poller, [&](std::size_t block, PairSearch& search) {
            const auto numbers = queries.numbers(block);
            std::vector<TwoNearest> found;
            std::array<double, block_size> limits, nearest_member;
            for (std::size_t slot = 0; slot < numbers.size(); ++slot) {
                const TwoNearest members = two_members(numbers[slot]);
                nearest_member[slot] = members.first();
                limits[slot] = members.limit();
                found.emplace_back(limits[slot]);
            }
            search.for_each_near(block, limits, [&](std::size_t slot, std::uint32_t, double distance) {
                found[slot].offer(distance);
                // Once two are nearer than all members, the rest does not matter.
                return found[slot].limit() < nearest_member[slot] ? -1.0 : found[slot].limit();
            });
            for (std::size_t slot = 0; slot < numbers.size(); ++slot)
                for (const std::size_t i : members_[numbers[slot]]) found[slot].place(own2_[i], ahead[i], ties[i]);
        });
    }

    // For each requested record: the number of released records nearer to it than its own, and the number as near, its
    // own included.
    void rank_released(const Asked& asked, std::span<std::int64_t> ahead, std::span<std::int64_t> ties,
                       Poller& poller) {
        const QueryPoints queries(records_, asked, scale_, middle_, pool_);
        for_each_block(queries.boxes(), points_, poller, [&](std::size_t block, PairSearch& search) {
            const auto numbers = queries.numbers(block);
            std::array<double, block_size> limits;
            for (std::size_t slot = 0; slot < numbers.size(); ++slot) limits[slot] = own2_[numbers[slot]];
            search.for_each_near(block, limits, [&](std::size_t slot, std::uint32_t point, double distance) {
                const std::uint32_t i = numbers[slot];
                const auto size = static_cast<std::int64_t>(members_[point].size());
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

    // The nearest two of the records released as this point; where there is one, nothing beyond it matters.
    TwoNearest two_members(std::uint32_t number) const {
        const auto members = members_[number];
        TwoNearest nearest(members.size() == 1 ? own2_[members.front()] : std::numeric_limits<double>::infinity());
        for (const std::size_t i : members) nearest.offer(own2_[i]);
        return nearest;
    }

    std::vector<double> middle_of(Rows<const double> X) const {
        std::vector<double> middle(X.dims(), 0.0);
        for (std::size_t i = 0; i < X.size(); ++i)
            for (std::size_t j = 0; j < X.dims(); ++j) middle[j] += X[i][j] * scale_;
        for (double& value : middle) value /= static_cast<double>(X.size());
        return middle;
    }

    double scaled_distance(std::span<const double> a, std::span<const double> b) const {
        double sum = 0;
        for (std::size_t j = 0; j < a.size(); ++j) {
            const double difference = a[j] * scale_ - b[j] * scale_;
            sum += difference * difference;
        }
        return sum;
    }
    double scale_;
    std::vector<double> middle_;
    BoxedPoints records_;
    BoxedPoints points_;
    Members members_;
    std::vector<double> own2_;  // squared distance of each record from its released point
    Pool& pool_;
    const Loops& loops_;
    std::size_t done_ = 0;  // records that have been ranked, once or twice
};

}  // namespace shoal
