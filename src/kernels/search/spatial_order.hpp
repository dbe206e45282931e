// An order of records in which every run of neighbours in the order is a neighbourhood in space.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "numeric/rows.hpp"
#include "numeric/selection.hpp"
#include "parallel/pool.hpp"

namespace shoal {

// Halves the records along the column in which they spread most, again and again, down to runs of `leaf`.
class SpatialOrder {
  public:
    SpatialOrder(Rows<const float> X, std::size_t leaf, Pool& pool) : X_(X), leaf_(leaf), keyed_(X.size()) {
        std::iota(keyed_.begin(), keyed_.end(), std::uint64_t{0});
        std::vector<Run> runs{{0, X.size()}};
        // Halves are halved side by side, until there are enough of them to be halved to the end.
        for (std::size_t n_runs = 1; n_runs < 4 * pool.size() && X.size() / n_runs > worth_sharing; n_runs *= 2) {
            std::vector<Run> halves(2 * n_runs);
            pool.each(n_runs, time_of(X.size() / n_runs), [&](std::size_t, std::size_t r) {
                const std::size_t middle = halve(runs[r]);
                halves[2 * r] = {runs[r].from, middle};
                halves[2 * r + 1] = {middle, runs[r].to};
            });
            runs = std::move(halves);
        }
        pool.each(runs.size(), 10 * time_of(X.size() / runs.size()),
                  [&](std::size_t, std::size_t r) { halve_to_the_end(runs[r]); });
    }

    std::uint32_t operator[](std::size_t i) const { return record_of(keyed_[i]); }
    std::vector<std::uint32_t> records() const {
        std::vector<std::uint32_t> order(keyed_.size());
        std::ranges::transform(keyed_, order.begin(), record_of);
        return order;
    }

  private:
    struct Run {
        std::size_t from, to;
    };
    static constexpr std::size_t worth_sharing = 4096;
    // A value and a record as one number, which is compared faster than two. The bits of negative floats are in
    // descending order, and -0 is 0.
    static std::uint64_t key(float value, std::uint32_t record) {
        const auto bits = std::bit_cast<std::uint32_t>(value + 0.0f);
        const std::uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
        return std::uint64_t{ascending} << 32 | record;
    }
    static std::uint32_t record_of(std::uint64_t key) { return static_cast<std::uint32_t>(key); }
    static double time_of(std::size_t n) { return 15.0 * static_cast<double>(n); }

    void halve_to_the_end(Run run) {
        while (run.to - run.from > leaf_) {
            const std::size_t middle = halve(run);
            halve_to_the_end({run.from, middle});
            run.from = middle;
        }
    }

    // Where the second half begins. A run of no more than a leaf is all in the second.
    std::size_t halve(const Run& run) {
        const auto [from, to] = run;
        const std::size_t column = widest(from, to);
        for (std::size_t i = from; i < to; ++i) {
            if (i + 16 < to) __builtin_prefetch(&X_[record_of(keyed_[i + 16])][column]);
            const std::uint32_t record = record_of(keyed_[i]);
            keyed_[i] = key(X_[record][column], record);
        }
        const std::size_t n_leaves = (to - from + leaf_ - 1) / leaf_;
        const std::size_t middle = from + n_leaves / 2 * leaf_;
        // By value, then by record number: equal records stay in order.
        select_nth(keyed_.begin() + from, keyed_.begin() + middle, keyed_.begin() + to);
        return middle;
    }

    // The column with the greatest range, in a sample.
    std::size_t widest(std::size_t from, std::size_t to) const {
        const std::size_t every = std::max<std::size_t>((to - from) / 64, 1);
        std::vector<float> least(X_.dims(), std::numeric_limits<float>::infinity());
        std::vector<float> greatest(X_.dims(), -std::numeric_limits<float>::infinity());
        for (std::size_t i = from; i < to; i += every) {
            const auto row = X_[record_of(keyed_[i])];
            for (std::size_t j = 0; j < X_.dims(); ++j) {
                least[j] = std::min(least[j], row[j]);
                greatest[j] = std::max(greatest[j], row[j]);
            }
        }
        std::size_t best = 0;
        for (std::size_t j = 1; j < X_.dims(); ++j)
            if (greatest[j] - least[j] > greatest[best] - least[best]) best = j;
        return best;
    }

    Rows<const float> X_;
    std::size_t leaf_;
    std::vector<std::uint64_t> keyed_;
};

inline std::vector<std::uint32_t> spatial_order(Rows<const float> X, std::size_t leaf, Pool& pool) {
    return SpatialOrder(X, leaf, pool).records();
}

}  // namespace shoal
