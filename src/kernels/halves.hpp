// Records cut in two halves of equal size, across a direction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "distance.hpp"
#include "pool.hpp"
#include "rows.hpp"

namespace shoal {

// Numbers of records, ascending, and their rows.
struct Half {
    std::size_t size = 0;
    std::unique_ptr<std::int64_t[]> records;
    std::unique_ptr<double[]> rows;
};

// The half with the lower products with `direction`, of equal ones those with lower numbers, and the others.
class Halving {
  public:
    Halving(Rows<const double> X, std::span<const double> direction, Pool& pool)
        : X_(X),
          pool_(pool),
          n_pieces_((X.size() + piece_size - 1) / piece_size),
          along_(std::make_unique_for_overwrite<Product[]>(X.size())) {
        // Scaled, so that no sum of products overflows.
        const double scale = unit_scale(X.flat(), pool);
        pool.split(X.size(), 2.0 * static_cast<double>(X.dims()), [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i) {
                double product = 0;
                for (std::size_t j = 0; j < X.dims(); ++j) product += X[i][j] * scale * direction[j];
                along_[i] = {product, static_cast<std::uint32_t>(i)};
            }
        });
        middle_ = of_rank(X.size() / 2);
    }

    std::pair<Half, Half> halves() const {
        const std::vector<std::size_t> n_low = counts_below(middle_);
        std::pair<Half, Half> found{empty_half(X_.size() / 2), empty_half(X_.size() - X_.size() / 2)};
        std::vector<std::size_t> begins(n_pieces_, 0);
        for (std::size_t piece = 1; piece < n_pieces_; ++piece) begins[piece] = begins[piece - 1] + n_low[piece - 1];
        pool_.each(n_pieces_, 4.0 * static_cast<double>(piece_size * X_.dims()), [&](std::size_t, std::size_t piece) {
            std::size_t low = begins[piece];
            std::size_t high = piece * piece_size - low;
            for (const Product& item : in_piece(piece)) {
                const bool is_low = item < middle_;
                put(item.second, is_low ? found.first : found.second, (is_low ? low : high)++);
            }
        });
        return found;
    }

  private:
    using Product = std::pair<double, std::uint32_t>;
    static constexpr std::size_t piece_size = 8192;
    static constexpr std::size_t n_samples = 8192;

    std::span<const Product> in_piece(std::size_t piece) const {
        const std::size_t from = piece * piece_size;
        return {&along_[from], std::min(piece_size, X_.size() - from)};
    }

    // The product of a given rank. A sample says between which two it lies, most probably; only what is between
    // these is ranked.
    Product of_rank(std::size_t rank) const {
        std::vector<Product> sample;
        for (std::size_t i = 0; i < n_samples; ++i) sample.push_back(along_[X_.size() * i / n_samples]);
        std::ranges::sort(sample);
        const Product low = sample[n_samples * 48 / 100];
        const Product high = sample[n_samples * 52 / 100];
        std::vector<std::vector<Product>> between(n_pieces_);
        std::vector<std::size_t> n_below(n_pieces_, 0);
        pool_.each(n_pieces_, time_of_piece, [&](std::size_t, std::size_t piece) {
            for (const Product& item : in_piece(piece)) {
                if (item < low)
                    ++n_below[piece];
                else if (item < high)
                    between[piece].push_back(item);
            }
        });
        std::vector<Product> ranked;
        for (const auto& items : between) ranked.insert(ranked.end(), items.begin(), items.end());
        const std::size_t first = std::accumulate(n_below.begin(), n_below.end(), std::size_t{0});
        if (rank < first || rank - first >= ranked.size()) {
            ranked.assign(&along_[0], &along_[0] + X_.size());
        } else {
            rank -= first;
        }
        const auto found = ranked.begin() + static_cast<std::ptrdiff_t>(rank);
        std::nth_element(ranked.begin(), found, ranked.end());
        return *found;
    }

    std::vector<std::size_t> counts_below(const Product& limit) const {
        std::vector<std::size_t> counts(n_pieces_, 0);
        pool_.each(n_pieces_, time_of_piece, [&](std::size_t, std::size_t piece) {
            for (const Product& item : in_piece(piece)) counts[piece] += item < limit;
        });
        return counts;
    }

    // The threads that fill it are the first to touch its pages.
    Half empty_half(std::size_t size) const {
        return {size, std::make_unique_for_overwrite<std::int64_t[]>(size),
                std::make_unique_for_overwrite<double[]>(size * X_.dims())};
    }

    void put(std::uint32_t record, Half& half, std::size_t place) const {
        half.records[place] = record;
        std::ranges::copy(X_[record], &half.rows[place * X_.dims()]);
    }

    static constexpr double time_of_piece = 2.0 * piece_size;

    Rows<const double> X_;
    Pool& pool_;
    std::size_t n_pieces_;
    std::unique_ptr<Product[]> along_;
    Product middle_;
};

}  // namespace shoal
