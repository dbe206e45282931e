// Records cut in two halves of equal size, across a direction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "distance.hpp"
#include "pool.hpp"
#include "rows.hpp"

namespace shoal {

// Numbers of records, ascending, and their rows.
struct Half {
    std::vector<std::int64_t> records;
    std::unique_ptr<double[]> rows;
};

// The half with the lower products with `direction`, of equal ones those with lower numbers, and the others.
class Halving {
  public:
    Halving(Rows<const double> X, std::span<const double> direction, Pool& pool)
        : X_(X), pool_(pool), along_(X.size()) {
        // Scaled, so that no sum of products overflows.
        const double scale = unit_scale(X.flat(), pool);
        pool.split(X.size(), 2.0 * static_cast<double>(X.dims()), [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i) {
                double product = 0;
                for (std::size_t j = 0; j < X.dims(); ++j) product += X[i][j] * scale * direction[j];
                along_[i] = {product, static_cast<std::uint32_t>(i)};
            }
        });
        auto ranked = along_;
        const auto middle = ranked.begin() + static_cast<std::ptrdiff_t>(X.size() / 2);
        std::nth_element(ranked.begin(), middle, ranked.end());
        middle_ = *middle;
    }

    std::pair<Half, Half> halves() const {
        Half low, high;
        low.records.reserve(X_.size() / 2);
        high.records.reserve(X_.size() - X_.size() / 2);
        for (const auto& item : along_) (item < middle_ ? low : high).records.push_back(item.second);
        take_rows(low);
        take_rows(high);
        return {std::move(low), std::move(high)};
    }

  private:
    void take_rows(Half& half) const {
        const std::size_t n_dims = X_.dims();
        half.rows = std::make_unique_for_overwrite<double[]>(half.records.size() * n_dims);
        const double time = 3.0 * static_cast<double>(n_dims);
        pool_.split(half.records.size(), time, [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i)
                std::ranges::copy(X_[static_cast<std::size_t>(half.records[i])], &half.rows[i * n_dims]);
        });
    }

    Rows<const double> X_;
    Pool& pool_;
    std::vector<std::pair<double, std::uint32_t>> along_;
    std::pair<double, std::uint32_t> middle_;
};

}  // namespace shoal
