// Sums that records are taken out of, with a bound on their error: cheaper than exact ones, and enough for most rounds.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "numeric/exact_sum.hpp"

namespace shoal {

// The rounding error of each subtraction is computed exactly and added up beside the sum. No number taken out exceeds 1
// in magnitude.
class RunningSums {
  public:
    // Begins with the sums of n records.
    void restart(const ExactSums& sums, std::size_t n_dims, std::size_t n) {
        n_ = static_cast<double>(n);
        n_subtracted_ = 0;
        sums_.resize(n_dims);
        for (std::size_t j = 0; j < n_dims; ++j) sums_[j] = sums[j];
        errors_.assign(n_dims, 0.0);
    }

    void subtract(std::span<const double> row, double scale) {
        ++n_subtracted_;
        for (std::size_t j = 0; j < row.size(); ++j) {
            const double value = row[j] * scale;
            const double difference = sums_[j] - value;
            const double taken = sums_[j] - difference;
            const double left = difference + taken;
            errors_[j] += (sums_[j] - left) + (taken - value);
            sums_[j] = difference;
        }
    }

    double operator[](std::size_t column) const { return sums_[column] + errors_[column]; }

    // No sum is wrong by more: its last rounding and that of the initial one, and the roundings of the sum of errors,
    // each of which is at most one rounding of a sum of n numbers.
    double error() const {
        constexpr double rounding = 0x1p-52;
        return n_ * rounding * (2 + n_subtracted_ * n_subtracted_ * rounding);
    }

  private:
    std::vector<double> sums_, errors_;
    double n_ = 0;  // no sum is larger in magnitude
    double n_subtracted_ = 0;
};

}  // namespace shoal
