// Rotation to principal axes, so that a few coordinates hold most of every distance.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "numeric/rows.hpp"

namespace shoal {

// Eigenvectors of a symmetric matrix (as rows) and its eigenvalues, largest first, by cyclic Jacobi rotations.
struct Eigen {
    std::vector<double> values;
    std::vector<double> vectors;

    Eigen(std::vector<double> A, std::size_t n) : values(n), vectors(n * n) {
        std::vector<double> V(n * n, 0.0);
        for (std::size_t i = 0; i < n; ++i) V[i * n + i] = 1.0;
        for (int sweep = 0; sweep < 30; ++sweep) {
            double off = 0;
            double on = 0;
            for (std::size_t i = 0; i < n; ++i)
                for (std::size_t j = 0; j < n; ++j) (i == j ? on : off) += A[i * n + j] * A[i * n + j];
            if (off <= 1e-24 * on) break;
            for (std::size_t p = 0; p < n; ++p)
                for (std::size_t q = p + 1; q < n; ++q) rotate(A, V, n, p, q);
        }
        std::vector<std::size_t> order(n);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return A[a * n + a] > A[b * n + b]; });
        for (std::size_t i = 0; i < n; ++i) {
            values[i] = A[order[i] * n + order[i]];
            std::copy_n(&V[order[i] * n], n, &vectors[i * n]);
        }
    }

  private:
    static void rotate(std::vector<double>& A, std::vector<double>& V, std::size_t n, std::size_t p, std::size_t q) {
        if (A[p * n + q] == 0.0) return;
        const double theta = (A[q * n + q] - A[p * n + p]) / (2 * A[p * n + q]);
        const double t = std::copysign(1.0, theta) / (std::abs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1);
        const double s = t * c;
        for (std::size_t i = 0; i < n; ++i) {
            const double ip = A[i * n + p];
            const double iq = A[i * n + q];
            A[i * n + p] = c * ip - s * iq;
            A[i * n + q] = s * ip + c * iq;
        }
        for (std::vector<double>* M : {&A, &V})
            for (std::size_t i = 0; i < n; ++i) {
                const double pi = (*M)[p * n + i];
                const double qi = (*M)[q * n + i];
                (*M)[p * n + i] = c * pi - s * qi;
                (*M)[q * n + i] = s * pi + c * qi;
            }
    }
};

// Coordinates relative to a centre, rotated if that pays off: if the columns are correlated, boxes around neighbours
// are smaller along the principal axes, and the last axes hold so little variance that they can be left out. Distances
// between rotated points equal those between the points, up to rounding and the axes left out.
class PrincipalAxes {
  public:
    // The axes that are left out hold at most this share of the variance.
    PrincipalAxes(Rows<const double> X, double scale, std::span<const double> middle, double may_leave_out = 1e-6)
        : n_dims_(X.dims()), n_kept_(X.dims()), middle_(middle.begin(), middle.end()) {
        if (n_dims_ < 2 || n_dims_ > max_dims) return;
        Eigen eigen(covariance(X, scale), n_dims_);
        double total = 0;
        double squares = 0;
        for (const double value : eigen.values) {
            total += value;
            squares += value * value;
        }
        // If the variance is similar in all directions, a rotation gains nothing.
        if (!(total * total < round_cloud * static_cast<double>(n_dims_) * squares)) return;
        axes_ = std::move(eigen.vectors);
        double left_out = eigen.values.back();
        // Records are coded in groups of four coordinates: only whole groups are left out.
        while (n_kept_ > 4 && left_out <= may_leave_out * total) left_out += eigen.values[--n_kept_ - 1];
        n_kept_ = std::min((n_kept_ + 3) / 4 * 4, n_dims_);
    }

    std::size_t n_kept() const { return n_kept_; }
    // One row for each axis, those of large variance first; empty without a rotation.
    std::span<const double> axes() const { return axes_; }

    // Writes the kept coordinates of a point and returns an upper bound on the squared length of the others.
    double apply(std::span<const double> point, std::span<double> out) const {
        if (axes_.empty()) {
            for (std::size_t j = 0; j < n_dims_; ++j) out[j] = point[j] - middle_[j];
            return 0.0;
        }
        double whole = 0;
        double kept = 0;
        std::fill_n(out.begin(), n_kept_, 0.0);
        double away[max_dims];
        for (std::size_t j = 0; j < n_dims_; ++j) {
            away[j] = point[j] - middle_[j];
            whole += away[j] * away[j];
        }
        for (std::size_t i = 0; i < n_kept_; ++i) {
            double sum = 0;
            for (std::size_t j = 0; j < n_dims_; ++j) sum += axes_[i * n_dims_ + j] * away[j];
            out[i] = sum;
            kept += sum * sum;
        }
        return n_kept_ == n_dims_ ? 0.0 : std::max(whole - kept, 0.0) + 1e-12 * whole;
    }

  private:
    static constexpr std::size_t max_dims = 64;
    static constexpr double round_cloud = 0.9;

    std::vector<double> covariance(Rows<const double> X, double scale) const {
        const std::size_t every = std::max<std::size_t>(X.size() / 4096, 1);
        std::vector<double> sums(n_dims_ * n_dims_, 0.0);
        std::vector<double> away(n_dims_);
        for (std::size_t i = 0; i < X.size(); i += every) {
            for (std::size_t j = 0; j < n_dims_; ++j) away[j] = X[i][j] * scale - middle_[j];
            for (std::size_t a = 0; a < n_dims_; ++a)
                for (std::size_t b = 0; b < n_dims_; ++b) sums[a * n_dims_ + b] += away[a] * away[b];
        }
        return sums;
    }

    std::size_t n_dims_;
    std::size_t n_kept_;
    std::vector<double> middle_;
    std::vector<double> axes_;  // n_dims_ rows, or empty without a rotation
};

}  // namespace shoal
