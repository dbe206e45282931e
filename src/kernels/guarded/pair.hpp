// Two cells of a search under a veto, and the steps between them that are worth a look.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "guarded/cells.hpp"
#include "guarded/model_vetoes.hpp"

namespace shoal {

// Room to compare one pair of cells after the other.
class GuardedPair {
  public:
    using Cell = GuardedCells::Cell;
    static constexpr std::uint32_t none = GuardedCells::none;

    // A record of a goes to b, one of b to a, or both; by their places in the cells.
    struct Step {
        double change = 0;
        std::uint32_t from_a = none;
        std::uint32_t from_b = none;
        explicit operator bool() const { return from_a != none || from_b != none; }
    };

    explicit GuardedPair(const GuardedCells& cells) : cells_(cells) {}

    // Measures two cells.
    void view(const Cell& a, const Cell& b) {
        a_ = &a;
        b_ = &b;
        across_.resize(cells_.n_dims());
        apart2_ = 0;
        for (std::size_t j = 0; j < across_.size(); ++j) {
            across_[j] = b.centroid[j] - a.centroid[j];
            apart2_ += across_[j] * across_[j];
        }
        share_ = 1 / a.weight() + 1 / b.weight();
        project(a, lean_a_);
        project(b, lean_b_);
    }
    // The squared distance of the centroids.
    double apart2() const { return apart2_; }
    // 1 / size, of both cells together.
    double share() const { return share_; }
    // Whether there are so many pairs of records that not all are considered.
    bool is_large() const { return a_->size() * b_->size() > many_pairs; }
    // Products of the records, seen from the own centroid, with the way from a's centroid to b's.
    std::span<const double> lean_a() const { return lean_a_; }
    std::span<const double> lean_b() const { return lean_b_; }

    // Lists the records that steps are looked for among: all, or, where that would be many pairs, of each class the one
    // that gains most by going over, regardless of which record takes its place.
    void shortlist() {
        shortlist(*a_, lean_a_, 1, slots_a_);
        shortlist(*b_, lean_b_, -1, slots_b_);
    }
    std::span<const std::uint32_t> slots_a() const { return slots_a_; }
    std::span<const std::uint32_t> slots_b() const { return slots_b_; }

    // Squared distances from the centroid of the other cell.
    double a_to_b2(std::size_t x) const { return a_->own2[x] - 2 * lean_a_[x] + apart2_; }
    double b_to_a2(std::size_t y) const { return b_->own2[y] + 2 * lean_b_[y] + apart2_; }
    // What the loss rises by if a record moves.
    double cost_of_a(std::size_t x) const { return cost_of_move(*a_, a_->own2[x], *b_, a_to_b2(x)); }
    double cost_of_b(std::size_t y) const { return cost_of_move(*b_, b_->own2[y], *a_, b_to_a2(y)); }

    // For each model, the bounds on the change of a's sum of codes in a swap, outside of which the excesses are too
    // large; returns whether any swap is within these bounds.
    bool set_bounds(const Cell& a, double excess_a, const Cell& b, double excess_b) {
        bounds_.clear();
        for (std::size_t g = 0; g < cells_.n_guarantees(); ++g) {
            const Interval in_a = cells_.guarantee(g).sums(a.size(), excess_a);
            const Interval in_b = cells_.guarantee(g).sums(b.size(), excess_b);
            const GuardedCells::Kept& kept_a = a.kept[g];
            const GuardedCells::Kept& kept_b = b.kept[g];
            const auto sum_a = static_cast<double>(kept_a.sum);
            const auto sum_b = static_cast<double>(kept_b.sum);
            const Interval bound{std::max(in_a.low - sum_a, sum_b - in_b.high),
                                 std::min(in_a.high - sum_a, sum_b - in_b.low)};
            bounds_.push_back(bound);
            const double most = static_cast<double>(kept_b.codes.back()) - static_cast<double>(kept_a.codes.front());
            const double least = static_cast<double>(kept_b.codes.front()) - static_cast<double>(kept_a.codes.back());
            if (bound.low > bound.high || most < bound.low || least > bound.high) return false;
        }
        return true;
    }
    bool within_bounds(std::uint32_t x, std::uint32_t y) const {
        for (std::size_t g = 0; g < bounds_.size(); ++g) {
            const double more = static_cast<double>(cells_.code(g, y)) - static_cast<double>(cells_.code(g, x));
            if (more < bounds_[g].low || more > bounds_[g].high) return false;
        }
        return true;
    }
    // The transfers of a step.
    std::span<const GuardedCells::Transfer> transfers(const Step& step) {
        transfers_.clear();
        if (step.from_a != none) transfers_.push_back({a_->members[step.from_a], a_->number, b_->number});
        if (step.from_b != none) transfers_.push_back({b_->members[step.from_b], b_->number, a_->number});
        return transfers_;
    }

  private:
    static constexpr std::size_t many_pairs = 1000;

    void project(const Cell& cell, std::vector<double>& out) const {
        out.resize(cell.size());
        for (std::size_t i = 0; i < cell.size(); ++i) {
            const double* row = cells_.row(cell.members[i]);
            double sum = 0;
            for (std::size_t j = 0; j < across_.size(); ++j) sum += (row[j] - cell.centroid[j]) * across_[j];
            out[i] = sum;
        }
    }

    static double cost_of_move(const Cell& from, double own2, const Cell& to, double other2) {
        return to.weight() / (to.weight() + 1) * other2 - from.weight() / (from.weight() - 1) * own2;
    }

    // `sign`: 1 where `across_` leads from the cell to the other, else -1.
    void shortlist(const Cell& cell, std::span<const double> lean, int sign, std::vector<std::uint32_t>& out) {
        out.clear();
        if (!is_large()) {
            out.resize(cell.size());
            std::iota(out.begin(), out.end(), 0u);
            return;
        }
        top_.assign(cells_.n_classes(), {-std::numeric_limits<double>::infinity(), none});
        for (std::uint32_t i = 0; i < cell.size(); ++i) {
            // Seen from the middle between the cells, whose partner is not known yet.
            const double key = sign * 2 * lean[i] + share_ * (cell.own2[i] - sign * lean[i]);
            auto& top = top_[cells_.class_of(cell.members[i])];
            if (key > top.first) top = {key, i};
        }
        for (const auto& [key, i] : top_)
            if (i != none) out.push_back(i);
    }

    const GuardedCells& cells_;
    const Cell* a_ = nullptr;
    const Cell* b_ = nullptr;
    double apart2_ = 0;
    double share_ = 0;
    std::vector<double> across_, lean_a_, lean_b_;
    std::vector<std::uint32_t> slots_a_, slots_b_;
    std::vector<std::pair<double, std::uint32_t>> top_;
    std::vector<Interval> bounds_;
    std::vector<GuardedCells::Transfer> transfers_;
};

}  // namespace shoal
