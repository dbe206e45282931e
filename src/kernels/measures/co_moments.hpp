// Means and covariances of columns, at any offset and magnitude, and the same for any number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "parallel/pool.hpp"

namespace shoal {

// The numbers ``values * 2**exponent - origin``.
struct ScaledColumn {
    ScaledColumn(const double* values, int exponent, double origin)
        : values(values),
          first_factor(std::ldexp(1.0, exponent / 2)),
          second_factor(std::ldexp(1.0, exponent - exponent / 2)),
          origin(origin) {}

    double operator[](std::size_t i) const { return values[i] * first_factor * second_factor - origin; }

    const double* values;
    double first_factor, second_factor;  // the power of two itself may be out of range
    double origin;
};

// Sums over pieces of the records, always the same pieces. Within a piece the mean is subtracted before anything is
// multiplied, so that the digits that all records share cancel.
class CoMoments {
  public:
    // `weights` is null if all records weigh the same.
    CoMoments(std::vector<ScaledColumn> columns, const double* weights, std::size_t n_records, Pool& pool)
        : columns_(std::move(columns)),
          weights_(weights),
          n_records_(n_records),
          pieces_((n_records + piece_size - 1) / piece_size) {
        const auto m = static_cast<double>(columns_.size());
        const double time = (2 * m + 0.25 * m * m) * static_cast<double>(std::min(piece_size, n_records));
        pool.split(pieces_.size(), time, [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t p = from; p < to; ++p) pieces_[p] = summed(p * piece_size);
        });
    }

    // Writes the means, and the matrix of covariances.
    void write(std::span<double> means, std::span<double> covariance) const {
        const std::size_t m = columns_.size();
        double total = 0;
        for (const Piece& piece : pieces_) total += piece.weight;
        std::fill(means.begin(), means.end(), 0.0);
        std::fill(covariance.begin(), covariance.end(), 0.0);
        for (const Piece& piece : pieces_)
            for (std::size_t a = 0; a < m; ++a) means[a] += piece.means[a] * (piece.weight / total);
        for (const Piece& piece : pieces_)
            for (std::size_t a = 0; a < m; ++a)
                for (std::size_t b = 0; b <= a; ++b) {
                    const double apart = (piece.means[a] - means[a]) * (piece.means[b] - means[b]);
                    covariance[a * m + b] += piece.products[a * m + b] / total + apart * (piece.weight / total);
                }
        for (std::size_t a = 0; a < m; ++a)
            for (std::size_t b = 0; b < a; ++b) covariance[b * m + a] = covariance[a * m + b];
    }

  private:
    struct Piece {
        double weight = 0;
        std::vector<double> means;
        std::vector<double> products;  // of the distances from the means; the lower triangle
    };

    static constexpr std::size_t piece_size = 1 << 14;
    static constexpr std::size_t block_size = 256;  // its columns stay in the cache
    static constexpr std::size_t n_lanes = 8;       // sums that the compiler can add to at once

    Piece summed(std::size_t begin) const {
        const std::size_t m = columns_.size();
        const std::size_t n = std::min(piece_size, n_records_ - begin);
        const double* weights = weights_ ? weights_ + begin : nullptr;
        Piece piece{static_cast<double>(n), std::vector<double>(m), std::vector<double>(m * m, 0.0)};
        if (weights) piece.weight = sum(n, [&](std::size_t i) { return weights[i]; });
        for (std::size_t a = 0; a < m; ++a) {
            const ScaledColumn column = columns_[a];
            const double total = weights ? sum(n, [&](std::size_t i) { return column[begin + i] * weights[i]; })
                                         : sum(n, [&](std::size_t i) { return column[begin + i]; });
            piece.means[a] = total / piece.weight;
        }
        std::vector<double> rows(2 * m * block_size);
        for (std::size_t from = 0; from < n; from += block_size)
            add_products(piece, begin + from, std::min(block_size, n - from), rows.data());
        return piece;
    }

    void add_products(Piece& piece, std::size_t begin, std::size_t n, double* rows) const {
        const std::size_t m = columns_.size();
        double* weighted = weights_ ? rows + m * block_size : rows;
        for (std::size_t a = 0; a < m; ++a) {
            const ScaledColumn column = columns_[a];
            const double mean = piece.means[a];
            double* row = rows + a * block_size;
            for (std::size_t i = 0; i < n; ++i) row[i] = column[begin + i] - mean;
            if (!weights_) continue;
            for (std::size_t i = 0; i < n; ++i) weighted[a * block_size + i] = row[i] * weights_[begin + i];
        }
        for (std::size_t a = 0; a < m; ++a)
            for (std::size_t b = 0; b <= a; ++b) {
                const double* one = weighted + a * block_size;
                const double* other = rows + b * block_size;
                piece.products[a * m + b] += sum(n, [&](std::size_t i) { return one[i] * other[i]; });
            }
    }

    // The sum of term(0) to term(n - 1), by halves, so that roundings do not add up.
    template <class Term>
    static double sum(std::size_t n, Term term) {
        return sum(0, n, term);
    }

    template <class Term>
    static double sum(std::size_t from, std::size_t to, Term term) {
        if (to - from > block_size) {
            const std::size_t middle = from + (to - from) / 2 / n_lanes * n_lanes;
            return sum(from, middle, term) + sum(middle, to, term);
        }
        double lanes[n_lanes] = {};
        const std::size_t whole = from + (to - from) / n_lanes * n_lanes;
        for (std::size_t i = from; i < whole; i += n_lanes)
            for (std::size_t lane = 0; lane < n_lanes; ++lane) lanes[lane] += term(i + lane);
        for (std::size_t i = whole; i < to; ++i) lanes[i - whole] += term(i);
        double total = 0;
        for (const double lane : lanes) total += lane;
        return total;
    }

    std::vector<ScaledColumn> columns_;
    const double* weights_;
    std::size_t n_records_;
    std::vector<Piece> pieces_;
};

}  // namespace shoal
