// Lowers the loss under a veto: records move and swap between neighbouring cells as long as every guarantee holds.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <tuple>
#include <vector>

#include "guarded/cells.hpp"
#include "guarded/pair.hpp"
#include "guarded/waves.hpp"
#include "parallel/polling.hpp"

namespace shoal {

// Improves one pair of cells after the other. Each thread has its own.
class GuardedImprover {
  public:
    using Cell = GuardedCells::Cell;

    explicit GuardedImprover(GuardedCells& cells) : cells_(cells), pair_(cells) {}

    // Takes the best steps between two cells, at most two per record; returns whether none is left.
    template <class GoesOn>
    bool improve_fully(const Cell& a, const Cell& b, const GoesOn& goes_on) {
        for (std::size_t n_left = 2 * (a.size() + b.size()); n_left > 0 && goes_on(); --n_left)
            if (!improve(a, b)) return true;
        return false;
    }

  private:
    using Step = GuardedPair::Step;
    // Class, key and slot of a record.
    using Ranked = std::tuple<std::uint8_t, double, std::uint32_t>;
    static constexpr std::uint32_t none = GuardedCells::none;

    // Takes the best step between two cells that lowers the loss and violates no model.
    bool improve(const Cell& a, const Cell& b) {
        Step best;
        pair_.view(a, b);
        if (cells_.alike() && exchange_alike(a, b)) return true;
        pair_.shortlist();
        if (cells_.may_give(a, b))
            for (const std::uint32_t x : pair_.slots_a()) {
                const double change = pair_.cost_of_a(x);
                if (worthwhile(best, change, a.own2[x], a, a.members[x], b, none)) best = {change, x, none};
            }
        if (cells_.may_give(b, a))
            for (const std::uint32_t y : pair_.slots_b()) {
                const double change = pair_.cost_of_b(y);
                if (worthwhile(best, change, b.own2[y], a, none, b, b.members[y])) best = {change, none, y};
            }
        find_swap(a, b, best);
        return best && cells_.transfer_if_lower(pair_.transfers(best), room_);
    }

    void find_swap(const Cell& a, const Cell& b, Step& best) {
        if (!pair_.set_bounds(a, 0, b, 0)) return;
        const double share = pair_.share();
        const double most_lean = std::ranges::max(pair_.lean_a());
        radius_.resize(a.size());
        for (std::size_t i = 0; i < a.size(); ++i) radius_[i] = std::sqrt(a.own2[i]);
        for (const std::uint32_t y : pair_.slots_b()) {
            const double lean_y = pair_.lean_b()[y] + pair_.apart2();
            const double to_a = std::sqrt(std::max(pair_.b_to_a2(y), 0.0));
            const double farthest = a.radius + to_a;
            if (2 * (lean_y - most_lean) - farthest * farthest * share >= best.change) continue;
            for (const std::uint32_t x : pair_.slots_a()) {
                const double along = 2 * (lean_y - pair_.lean_a()[x]);
                const double reach = radius_[x] + to_a;
                if (along - reach * reach * share >= best.change) continue;
                if (!pair_.within_bounds(a.members[x], b.members[y])) continue;
                const double change = along - cells_.distance2(a.members[x], b.members[y]) * share;
                if (worthwhile(best, change, a.own2[x] + b.own2[y], a, a.members[x], b, b.members[y]))
                    best = {change, x, y};
            }
        }
    }

    // Whether a step is better than the best so far, by more than rounding, and violates no model. x moves from a to b,
    // y from b to a; either may be none.
    bool worthwhile(const Step& best, double change, double own2, const Cell& a, std::uint32_t x, const Cell& b,
                    std::uint32_t y) {
        if (change >= best.change || change >= best.change - cells_.rounding(own2 + pair_.apart2())) return false;
        return cells_.excess_after(a, x, y, room_) <= 0 && cells_.excess_after(b, y, x, room_) <= 0;
    }

    // Exchanges records of the same values: all of a class that are nearer to the other cell along the line between the
    // centroids, the farthest first. No model is affected, and since the loss is concave in the two sums, it decreases
    // by more than the sum of the single gains.
    bool exchange_alike(const Cell& a, const Cell& b) {
        if (!pair_.is_large() || !alike_would_gain(a, b)) return false;
        by_class(a, pair_.lean_a(), -1, ranked_a_);
        by_class(b, pair_.lean_b(), 1, ranked_b_);
        transfers_.clear();
        for (std::size_t i = 0, j = 0; i < ranked_a_.size() && j < ranked_b_.size();) {
            const auto [class_a, key_a, x] = ranked_a_[i];
            const auto [class_b, key_b, y] = ranked_b_[j];
            if (class_a != class_b) {
                ++(class_a < class_b ? i : j);
                continue;
            }
            const double change = 2 * (key_a + key_b + pair_.apart2());
            if (change < -cells_.rounding(a.own2[x] + b.own2[y] + pair_.apart2())) {
                transfers_.push_back({a.members[x], a.number, b.number});
                transfers_.push_back({b.members[y], b.number, a.number});
                ++i;
                ++j;
            } else {
                // Nothing more in this class.
                while (i < ranked_a_.size() && std::get<0>(ranked_a_[i]) == class_a) ++i;
            }
        }
        return !transfers_.empty() && cells_.transfer_if_lower(transfers_, room_);
    }
    // Whether a record of some class that leans most to the other cell leans more than the one it would change with.
    bool alike_would_gain(const Cell& a, const Cell& b) {
        most_lean_.assign(cells_.n_classes(), -std::numeric_limits<double>::infinity());
        for (std::size_t i = 0; i < a.size(); ++i) {
            double& most = most_lean_[cells_.class_of(a.members[i])];
            most = std::max(most, pair_.lean_a()[i]);
        }
        for (std::size_t i = 0; i < b.size(); ++i)
            if (pair_.lean_b()[i] + pair_.apart2() < most_lean_[cells_.class_of(b.members[i])]) return true;
        return false;
    }
    // The members of a cell by class and, within it, by how far they lean.
    void by_class(const Cell& cell, std::span<const double> lean, int sign, std::vector<Ranked>& out) const {
        out.clear();
        for (std::uint32_t i = 0; i < cell.size(); ++i)
            out.emplace_back(cells_.class_of(cell.members[i]), sign * lean[i], i);
        std::ranges::sort(out);
    }

    GuardedCells& cells_;
    GuardedPair pair_;
    GuardedCells::Room room_;
    std::vector<double> radius_, most_lean_;
    std::vector<Ranked> ranked_a_, ranked_b_;
    std::vector<GuardedCells::Transfer> transfers_;
};

// All pairs of neighbouring cells, on all threads. A veto depends on the two cells of a step alone, so that pairs
// without a common cell are independent.
class GuardedImproving {
  public:
    explicit GuardedImproving(GuardedCells& cells)
        : cells_(cells), improvers_(cells.pool().size(), GuardedImprover(cells)) {}

    // To be called when the neighbours of cells have changed.
    void neighbours_changed() {
        pairs_ = GuardedWaves<Pair>(cells_.size());
        for (std::uint32_t a = 0; a < cells_.size(); ++a) {
            for (const std::uint32_t b : cells_.neighbours(a)) {
                if (b == none || (b < a && cells_.are_listed(b, a))) continue;
                pairs_.add({a, b, 0}, std::array{a, b});
            }
            cells_.poller().tick();
        }
    }

    // Once over all pairs of neighbouring cells of which one has changed since they were last compared.
    void sweep(std::size_t round) {
        SharedPoller shared(cells_.poller(), 16);
        std::size_t n_done = 0;
        for (std::vector<Pair>& wave : pairs_.all()) {
            due_.clear();
            for (Pair& pair : wave)
                if (is_due(pair)) due_.push_back(&pair);
            // Pairs take very unequal times, from which a pace would conclude that other programs hold the cores.
            cells_.pool().each(due_.size(), time_per_pair_, [&](std::size_t thread, std::size_t i) {
                const auto begin = std::chrono::steady_clock::now();
                compare(*due_[i], improvers_[thread], [&] { return shared.goes_on(thread); });
                if (thread == 0) learn(std::chrono::steady_clock::now() - begin);
            });
            n_done += wave.size();
            cells_.poller().tick(round * cells_.n_records() + n_done * cells_.n_records() / pairs_.n_items());
        }
    }

  private:
    static constexpr std::uint32_t none = GuardedCells::none;
    struct Pair {
        std::uint32_t a, b;
        std::uint32_t compared;  // the changes of both when they were last compared
    };

    // Whether one of two cells has changed since they were last compared. Other pairs of a wave do not affect that.
    bool is_due(const Pair& pair) const {
        const GuardedCells::Cell& a = cells_[pair.a];
        const GuardedCells::Cell& b = cells_[pair.b];
        return pair.compared != a.n_changes + b.n_changes && a.is_sound() && b.is_sound();
    }

    template <class GoesOn>
    void compare(Pair& pair, GuardedImprover& improver, const GoesOn& goes_on) const {
        const GuardedCells::Cell& a = cells_[pair.a];
        const GuardedCells::Cell& b = cells_[pair.b];
        if (improver.improve_fully(a, b, goes_on)) pair.compared = a.n_changes + b.n_changes;
    }

    // A pair after which the calling thread had lost its core for a while counts no more than some others.
    void learn(std::chrono::duration<double, std::nano> time) {
        time_per_pair_ += (std::min(time.count(), 16 * time_per_pair_) - time_per_pair_) / 32;
    }

    GuardedCells& cells_;
    double time_per_pair_ = 4'000;            // of the last ones, in nanoseconds; a guess at first
    std::vector<Pair*> due_;                  // those of a wave that are compared
    std::vector<GuardedImprover> improvers_;  // of each thread
    GuardedWaves<Pair> pairs_;
};

}  // namespace shoal
