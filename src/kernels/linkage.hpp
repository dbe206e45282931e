// What an intruder can link by distance: released points to original records, and records to released points.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "cells.hpp"
#include "crowd.hpp"
#include "distance.hpp"
#include "pool.hpp"
#include "rows.hpp"
#include "simd.hpp"
#include "watch.hpp"

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
        : scale_(std::min(unit_scale(X.flat()), unit_scale(points.flat()))),
          records_(X, scale_),
          points_(points, scale_),
          members_(labels, points.size()),
          own2_(X.size()),
          pool_(pool),
          loops_(loops) {
        pool_.split(X.size(), [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i)
                own2_[i] = scaled_distance(X[i], points[static_cast<std::size_t>(labels[i])]);
        });
    }

    // For each record, how many originals are nearer to its released point than it is itself, 2 standing for more too,
    // and how many as near, itself included; 0 as near where two are nearer.
    void rank_originals(std::span<std::int64_t> ahead, std::span<std::int64_t> ties, Watch& watch) {
        for_each_block(points_, watch, [&](std::size_t block, std::span<double> point, Vicinity& vicinity) {
            const auto numbers = points_.numbers(block);
            double farthest = 0;
            for (const std::uint32_t p : numbers) farthest = std::max(farthest, second_member(p));
            vicinity.enter(points_, block, farthest);
            for (std::size_t slot = 0; slot < numbers.size(); ++slot) {
                points_.point(block, slot, point);
                const TwoNearest found = two_nearest(point, numbers[slot], vicinity);
                for (const std::size_t i : members_[numbers[slot]]) found.place(own2_[i], ahead[i], ties[i]);
            }
        });
    }

    // For each record, how many released records are nearer to it than its own, and how many as near, that one
    // included.
    void rank_released(std::span<std::int64_t> ahead, std::span<std::int64_t> ties, Watch& watch) {
        for_each_block(records_, watch, [&](std::size_t block, std::span<double> point, Vicinity& vicinity) {
            const auto numbers = records_.numbers(block);
            double farthest = 0;
            for (const std::uint32_t i : numbers) farthest = std::max(farthest, own2_[i]);
            vicinity.enter(records_, block, farthest);
            for (std::size_t slot = 0; slot < numbers.size(); ++slot) {
                const std::uint32_t i = numbers[slot];
                records_.point(block, slot, point);
                vicinity.for_each_within(point, own2_[i], [&](std::size_t b) {
                    const Within within = loops_.within(points_.tile(b), point, own2_[i]);
                    ahead[i] += n_released(b, within.nearer);
                    ties[i] += n_released(b, within.equal);
                    return own2_[i];
                });
            }
        });
    }

  private:
    // So many blocks for each thread between two looks at the watch.
    static constexpr std::size_t n_at_once = 16;

    // Calls task(block, room for a point, vicinity in the other crowd) for each block of a crowd, on all threads; each
    // takes the next block when it is done with one.
    template <class Task>
    void for_each_block(const Crowd& crowd, Watch& watch, const Task& task) {
        const Crowd& other = &crowd == &points_ ? records_ : points_;
        std::vector<Vicinity> vicinities(pool_.size(), Vicinity(other, loops_));
        for (std::size_t start = 0; start < crowd.n_blocks(); start += n_at_once * pool_.size()) {
            const std::size_t end = std::min(start + n_at_once * pool_.size(), crowd.n_blocks());
            std::atomic<std::size_t> next{start};
            pool_.split(pool_.size(), [&](std::size_t thread, std::size_t, std::size_t) {
                std::vector<double> point(crowd.n_dims());
                for (std::size_t block; (block = next.fetch_add(1)) < end;) task(block, point, vicinities[thread]);
            });
            watch.tick(done_ + own2_.size() * end / crowd.n_blocks());
        }
        done_ += own2_.size();
    }

    TwoNearest two_nearest(std::span<const double> point, std::uint32_t number, Vicinity& vicinity) const {
        TwoNearest found(second_member(number));
        double nearest_member = std::numeric_limits<double>::infinity();
        for (const std::size_t i : members_[number]) nearest_member = std::min(nearest_member, own2_[i]);
        vicinity.for_each_within(point, found.limit(), [&](std::size_t block) {
            const double* tile = records_.tile(block);
            const Within within = loops_.within(tile, point, found.limit());
            for (std::uint64_t left = within.nearer | within.equal; left; left &= left - 1)
                found.offer(tile_distance(tile, static_cast<std::size_t>(std::countr_zero(left)), point));
            // Once two are nearer than all members, the rest does not matter.
            return found.limit() < nearest_member ? -1.0 : found.limit();
        });
        return found;
    }

    // The squared distance of the second nearest of the records released as this point, or of the only one.
    double second_member(std::uint32_t number) const {
        TwoNearest members(std::numeric_limits<double>::infinity());
        for (const std::size_t i : members_[number]) members.offer(own2_[i]);
        return members_[number].size() == 1 ? own2_[members_[number].front()] : members.limit();
    }

    std::int64_t n_released(std::size_t block, std::uint64_t which) const {
        std::int64_t sum = 0;
        for (; which; which &= which - 1)
            sum += static_cast<std::int64_t>(
                members_[points_.numbers(block)[static_cast<std::size_t>(std::countr_zero(which))]].size());
        return sum;
    }

    double scaled_distance(std::span<const double> a, std::span<const double> b) const {
        double sum = 0;
        for (std::size_t j = 0; j < a.size(); ++j) {
            const double difference = a[j] * scale_ - b[j] * scale_;
            sum += difference * difference;
        }
        return sum;
    }
    static double tile_distance(const double* tile, std::size_t slot, std::span<const double> point) {
        double sum = 0;
        for (std::size_t j = 0; j < point.size(); ++j) {
            const double difference = tile[j * block_size + slot] - point[j];
            sum += difference * difference;
        }
        return sum;
    }

    double scale_;
    Crowd records_;
    Crowd points_;
    Members members_;
    std::vector<double> own2_;  // squared distance of each record from its released point
    Pool& pool_;
    const Loops& loops_;
    std::size_t done_ = 0;  // records that have been ranked, once or twice
};

}  // namespace shoal
