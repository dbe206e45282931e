// Records cut in two halves of equal size, across a direction.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "bindings/checks.hpp"
#include "numeric/distance.hpp"
#include "numeric/large_array.hpp"
#include "numeric/rows.hpp"
#include "numeric/selection.hpp"
#include "parallel/pool.hpp"

namespace shoal {

// Numbers of records, ascending.
struct Half {
    std::size_t size = 0;
    std::unique_ptr<std::int64_t[]> records;
};

// The half of some records with the lower products with `direction`, of equal ones those with lower numbers, and the
// others. Rows stay where they are.
class Halving {
  public:
    // `records` ascend; `scale` is such that no sum of products overflows.
    Halving(Rows<const double> X, double scale, std::span<const std::int64_t> records,
            std::span<const double> direction, Pool& pool)
        : n_(records.size()),
          pool_(pool),
          n_pieces_((n_ + piece_size - 1) / piece_size),
          along_(large_array<Product>(n_)) {
        pool.split(n_, 2.0 * static_cast<double>(X.dims()), [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i) {
                if (i + n_ahead < to) fetch(X[static_cast<std::size_t>(records[i + n_ahead])]);
                const auto row = X[static_cast<std::size_t>(records[i])];
                double product = 0;
                for (std::size_t j = 0; j < X.dims(); ++j) product += row[j] * scale * direction[j];
                check(std::isfinite(product), "a value is not finite");
                along_[i] = {product, static_cast<std::uint32_t>(records[i])};
            }
        });
        middle_ = of_rank(n_ / 2);
    }

    std::pair<Half, Half> halves() const {
        const std::vector<std::size_t> n_low = counts_below(middle_);
        std::pair<Half, Half> found{empty_half(n_ / 2), empty_half(n_ - n_ / 2)};
        std::vector<std::size_t> begins(n_pieces_, 0);
        for (std::size_t piece = 1; piece < n_pieces_; ++piece) begins[piece] = begins[piece - 1] + n_low[piece - 1];
        pool_.each(n_pieces_, time_of_piece, [&](std::size_t, std::size_t piece) {
            std::size_t low = begins[piece];
            std::size_t high = piece * piece_size - low;
            for (const Product& item : in_piece(piece)) {
                if (item < middle_)
                    found.first.records[low++] = item.record;
                else
                    found.second.records[high++] = item.record;
            }
        });
        return found;
    }

  private:
    struct Product {
        double along;
        std::uint32_t record;
        friend bool operator<(const Product& a, const Product& b) {
            return a.along < b.along || (a.along == b.along && a.record < b.record);
        }
    };
    static constexpr std::size_t piece_size = 8192;
    static constexpr std::size_t n_samples = 8192;
    static constexpr std::size_t n_ahead = 16;

    static void fetch(std::span<const double> row) {
        for (std::size_t j = 0; j < row.size(); j += 8) __builtin_prefetch(&row[j]);
    }

    std::span<const Product> in_piece(std::size_t piece) const {
        const std::size_t from = piece * piece_size;
        return {&along_[from], std::min(piece_size, n_ - from)};
    }

    // The product of a given rank. A sample says between which two it lies, most probably; only what is between
    // these is ranked.
    Product of_rank(std::size_t rank) const {
        std::vector<Product> sample;
        for (std::size_t i = 0; i < n_samples; ++i) sample.push_back(along_[n_ * i / n_samples]);
        std::sort(sample.begin(), sample.end());
        const Product low = sample[n_samples * 48 / 100];
        const Product high = sample[n_samples * 52 / 100];
        std::vector<std::vector<Product>> between(n_pieces_);
        std::vector<std::size_t> n_below(n_pieces_, 0);
        pool_.each(n_pieces_, time_of_piece, [&](std::size_t, std::size_t piece) {
            std::size_t n_lower = 0;
            for (const Product& item : in_piece(piece)) {
                if (item < low)
                    ++n_lower;
                else if (item < high)
                    between[piece].push_back(item);
            }
            n_below[piece] = n_lower;
        });
        std::vector<Product> ranked;
        for (const auto& items : between) ranked.insert(ranked.end(), items.begin(), items.end());
        const std::size_t first = std::accumulate(n_below.begin(), n_below.end(), std::size_t{0});
        if (rank < first || rank - first >= ranked.size()) {
            ranked.assign(&along_[0], &along_[0] + n_);
        } else {
            rank -= first;
        }
        const auto found = ranked.begin() + static_cast<std::ptrdiff_t>(rank);
        select_nth(ranked.begin(), found, ranked.end());
        return *found;
    }

    std::vector<std::size_t> counts_below(const Product& limit) const {
        std::vector<std::size_t> counts(n_pieces_, 0);
        pool_.each(n_pieces_, time_of_piece, [&](std::size_t, std::size_t piece) {
            counts[piece] = static_cast<std::size_t>(
                std::ranges::count_if(in_piece(piece), [&](const Product& item) { return item < limit; }));
        });
        return counts;
    }

    static Half empty_half(std::size_t size) { return {size, std::make_unique_for_overwrite<std::int64_t[]>(size)}; }

    static constexpr double time_of_piece = 2.0 * piece_size;

    std::size_t n_;
    Pool& pool_;
    std::size_t n_pieces_;
    LargeArray<Product> along_;
    Product middle_;
};

}  // namespace shoal
