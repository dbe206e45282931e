// Mends and improves a partition whose cells must keep guarantees about confidential columns.
//
// First the cells that break a guarantee swap and move records with others, whatever brings most for the least loss;
// where that does not end, they merge with a neighbour. Then records swap and move as long as that lowers the loss and
// every guarantee holds: the guarantees have a veto.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "cells.hpp"
#include "distance.hpp"
#include "guarantees.hpp"
#include "neighbours.hpp"
#include "rows.hpp"
#include "simd.hpp"
#include "watch.hpp"

namespace shoal {

class GuardedSearch {
  public:
    struct Plan {
        std::size_t n_rounds;      // at most so many rounds over all pairs of neighbours
        std::size_t n_neighbours;  // cells to look at around each cell
        double least_gain;         // a round that lowers the loss by less than this share is the last
        bool at_any_cost;          // mend every cell: with cells far away, and by merging as the last resort
    };

    // Changes the labels in place. They number the cells from 0 without gaps, each with at least k records.
    GuardedSearch(Rows<const double> X, std::size_t k, std::span<const Guarded> guarded, const Loops& loops,
                  std::span<std::int64_t> labels)
        : k_(k), n_(X.size()), m_(X.dims()), width_((X.dims() + 7) / 8 * 8), loops_(loops), labels_(labels) {
        std::int64_t n_cells = 0;
        for (const std::int64_t label : labels) n_cells = std::max(n_cells, label + 1);
        cells_.resize(static_cast<std::size_t>(n_cells));
        centroids_.assign(cells_.size() * width_, 0.0f);
        number_records(X, guarded);
        std::size_t largest = 0;
        for (std::uint32_t c = 0; c < cells_.size(); ++c) {
            Cell& cell = cells_[c];
            cell.number = c;
            cell.sums.assign(m_, 0.0);
            cell.kept.resize(guarded.size());
        }
        for (std::uint32_t i = 0; i < n_; ++i) enter(i, cells_[static_cast<std::size_t>(labels[original_[i]])]);
        for (Cell& cell : cells_) {
            settle(cell);
            largest = std::max(largest, cell.members.size());
        }
        most_ = std::max({largest, 2 * k - 1, 2 * n_ / std::max<std::size_t>(cells_.size(), 1)});
    }

    // `watch` hears of the records gone through, n_records a round.
    void run(const Plan& plan, Watch& watch) {
        find_neighbours(plan.n_neighbours);
        mend(plan, watch);
        double before = loss();
        for (std::size_t round = 0; round < plan.n_rounds && n_alive() > 1; ++round) {
            if (round > 0 && round < 4) find_neighbours(plan.n_neighbours);
            sweep(round, watch);
            const double after = loss();
            if (!(after < before * (1 - plan.least_gain))) break;
            before = after;
        }
        write_labels();
        watch.finish(plan.n_rounds * n_);
    }

  private:
    static constexpr std::uint32_t none = 0xffffffff;
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    // Up to so many cells all pairs are looked at.
    static constexpr std::size_t few_cells = 256;
    static constexpr int n_prices = 2;
    static constexpr std::size_t many_pairs = 1000;
    // What a step must gain, of the squares it is made of, for rounding not to be the reason.
    static constexpr double least_share = 1e-10;
    // The same where the squares themselves are rounding: numbers are at most 1.
    static constexpr double least_gain = 1e-26;

    // What one guarantee knows of a cell.
    struct Kept {
        std::vector<Code> codes;  // ascending
        std::int64_t sum = 0;
        Wide memory = 0;
    };
    struct Cell {
        std::uint32_t number = 0;
        std::vector<std::uint32_t> members;
        std::vector<double> sums;
        std::vector<double> centroid;
        std::vector<double> own2;  // squared distances of the members from the centroid
        std::vector<Kept> kept;    // of each guarantee
        double excess = 0;
        double radius = 0;
        std::uint32_t n_changes = 0;

        std::size_t size() const { return members.size(); }
        double weight() const { return static_cast<double>(members.size()); }
    };
    // A record of a goes to b, one of b to a, or both; by their places in the cells.
    struct Step {
        double change = 0;
        std::uint32_t from_a = none;
        std::uint32_t from_b = none;
        explicit operator bool() const { return from_a != none || from_b != none; }
    };

    // Copies the records, centred and scaled, cell after cell, so that those met together lie together.
    void number_records(Rows<const double> X, std::span<const Guarded> guarded) {
        const Members members(labels_, cells_.size());
        for (std::size_t c = 0; c < cells_.size(); ++c)
            original_.insert(original_.end(), members[c].begin(), members[c].end());
        const double scale = unit_scale(X.flat());
        std::vector<double> mean(m_, 0.0);
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t j = 0; j < m_; ++j) mean[j] += X[i][j] * scale / static_cast<double>(n_);
        rows_.resize(n_ * m_);
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t j = 0; j < m_; ++j) rows_[i * m_ + j] = X[original_[i]][j] * scale - mean[j];
        const double unit = unit_scale(rows_);
        for (double& value : rows_) value *= unit;
        for (const Guarded& each : guarded) {
            guarantees_.push_back(each.guarantee.get());
            std::vector<Code>& codes = codes_.emplace_back(n_);
            for (std::size_t i = 0; i < n_; ++i) codes[i] = each.codes[original_[i]];
        }
    }

    const double* row(std::uint32_t record) const { return &rows_[record * m_]; }
    Code code(std::size_t g, std::uint32_t record) const { return codes_[g][record]; }

    void enter(std::uint32_t record, Cell& cell) {
        cell.members.push_back(record);
        for (std::size_t j = 0; j < m_; ++j) cell.sums[j] += row(record)[j];
        for (std::size_t g = 0; g < guarantees_.size(); ++g) {
            Kept& kept = cell.kept[g];
            kept.codes.insert(std::upper_bound(kept.codes.begin(), kept.codes.end(), code(g, record)), code(g, record));
            kept.sum += code(g, record);
        }
    }
    void leave(std::size_t slot, Cell& cell) {
        const std::uint32_t record = cell.members[slot];
        cell.members[slot] = cell.members.back();
        cell.members.pop_back();
        for (std::size_t j = 0; j < m_; ++j) cell.sums[j] -= row(record)[j];
        for (std::size_t g = 0; g < guarantees_.size(); ++g) {
            Kept& kept = cell.kept[g];
            kept.codes.erase(std::lower_bound(kept.codes.begin(), kept.codes.end(), code(g, record)));
            kept.sum -= code(g, record);
        }
    }

    // Recounts what depends on all members.
    void settle(Cell& cell) {
        cell.centroid.resize(m_);
        for (std::size_t j = 0; j < m_; ++j) {
            cell.centroid[j] = cell.sums[j] / cell.weight();
            centroids_[cell.number * width_ + j] = static_cast<float>(cell.centroid[j]);
        }
        cell.own2.resize(cell.size());
        for (std::size_t i = 0; i < cell.size(); ++i) cell.own2[i] = distance2(cell.members[i], cell);
        cell.radius = cell.size() > 0 ? std::sqrt(*std::ranges::max_element(cell.own2)) : 0;
        cell.excess = 0;
        for (std::size_t g = 0; g < guarantees_.size() && cell.size() > 0; ++g) {
            cell.excess += guarantees_[g]->excess(cell.kept[g].codes);
            cell.kept[g].memory = guarantees_[g]->memory(cell.kept[g].codes);
        }
        ++cell.n_changes;
    }

    double distance2(std::uint32_t record, const Cell& cell) const {
        double sum = 0;
        for (std::size_t j = 0; j < m_; ++j) {
            const double difference = row(record)[j] - cell.centroid[j];
            sum += difference * difference;
        }
        return sum;
    }
    double distance2(std::uint32_t x, std::uint32_t y) const {
        double sum = 0;
        for (std::size_t j = 0; j < m_; ++j) {
            const double difference = row(x)[j] - row(y)[j];
            sum += difference * difference;
        }
        return sum;
    }

    double loss(const Cell& cell) const { return std::accumulate(cell.own2.begin(), cell.own2.end(), 0.0); }
    double loss() const {
        double sum = 0;
        for (const Cell& cell : cells_) sum += loss(cell);
        return sum;
    }
    std::size_t n_alive() const {
        return static_cast<std::size_t>(std::ranges::count_if(cells_, [](const Cell& c) { return c.size() > 0; }));
    }

    // Neighbours by centroid; all cells where they are few. Cells that are gone keep their last centroid.
    void find_neighbours(std::size_t n_wanted) {
        const std::size_t n_cells = cells_.size();
        if (n_cells <= few_cells) {
            n_listed_ = n_cells - 1;
            lists_.clear();
            for (std::uint32_t a = 0; a < n_cells; ++a)
                for (std::uint32_t b = 0; b < n_cells; ++b)
                    if (a != b) lists_.push_back(b);
        } else {
            Pool alone(1);
            lists_ = nearest_neighbours({centroids_.data(), n_cells, width_}, n_wanted, loops_, alone);
            n_listed_ = lists_.size() / n_cells;
        }
        compared_.assign(lists_.size(), 0);
    }
    std::span<const std::uint32_t> neighbours(std::size_t c) const {
        return std::span(lists_).subspan(c * n_listed_, n_listed_);
    }

    // ---- lowering the loss

    // Once over all pairs of neighbouring cells of which one has changed since they were last compared.
    void sweep(std::size_t round, Watch& watch) {
        for (std::size_t a = 0; a < cells_.size(); ++a) {
            for (std::size_t i = 0; i < n_listed_ && sound(cells_[a]); ++i) {
                const std::uint32_t b = lists_[a * n_listed_ + i];
                if (b == none || !sound(cells_[b])) continue;
                if (b < a && listed(b, a)) continue;
                std::uint32_t& compared = compared_[a * n_listed_ + i];
                if (compared == cells_[a].n_changes + cells_[b].n_changes) continue;
                while (improve(cells_[a], cells_[b])) {
                }
                compared = cells_[a].n_changes + cells_[b].n_changes;
            }
            if (a % 64 == 0) watch.tick(round * n_ + a * n_ / cells_.size());
        }
    }
    static bool sound(const Cell& cell) { return cell.size() > 0 && cell.excess <= 0; }
    bool listed(std::uint32_t a, std::size_t b) const {
        return cells_.size() <= few_cells ||
               std::ranges::find(neighbours(a), static_cast<std::uint32_t>(b)) != neighbours(a).end();
    }

    bool may_give(const Cell& from, const Cell& to) const { return from.size() > k_ && to.size() < most_; }

    // Two cells, and what is the same for all steps between them.
    struct Pair {
        double apart2 = 0;
        double share = 0;
    };

    // Takes the best step between two cells: one that lowers the loss and keeps every guarantee, or, where one of the
    // cells is in excess, one that lowers the loss and the excess at its price, taken together.
    bool improve(Cell& a, Cell& b) {
        Step best;
        const Pair pair = lean(a, b);
        if (may_give(a, b)) find_move(a, b, pair, lean_a_, 1, best);
        if (may_give(b, a)) find_move(b, a, pair, lean_b_, -1, best);
        find_swap(a, b, pair, best);
        if (!best) return false;
        take(a, b, best);
        return true;
    }

    // Products with the way from a's centroid to b's, seen from the own centroid.
    Pair lean(const Cell& a, const Cell& b) {
        Pair pair;
        across_.resize(m_);
        for (std::size_t j = 0; j < m_; ++j) {
            across_[j] = b.centroid[j] - a.centroid[j];
            pair.apart2 += across_[j] * across_[j];
        }
        pair.share = 1 / a.weight() + 1 / b.weight();
        lean(a, lean_a_);
        lean(b, lean_b_);
        return pair;
    }
    void lean(const Cell& cell, std::vector<double>& out) const {
        out.resize(cell.size());
        for (std::size_t i = 0; i < cell.size(); ++i) {
            double sum = 0;
            for (std::size_t j = 0; j < m_; ++j) sum += (row(cell.members[i])[j] - cell.centroid[j]) * across_[j];
            out[i] = sum;
        }
    }

    // `sign`: 1 where `across_` leads from the giving cell to the other, else -1.
    void find_move(const Cell& from, const Cell& to, const Pair& pair, const std::vector<double>& lean, int sign,
                   Step& best) {
        const double leave = from.weight() / (from.weight() - 1);
        const double join = to.weight() / (to.weight() + 1);
        for (std::uint32_t i = 0; i < from.size(); ++i) {
            const double to2 = from.own2[i] - 2 * sign * lean[i] + pair.apart2;
            const std::uint32_t record = from.members[i];
            double change = join * to2 - leave * from.own2[i];
            const double rounding = least_share * (from.own2[i] + pair.apart2) + least_gain;
            if (!worthwhile(from, to, record, none, best.change - rounding, change)) continue;
            best = sign > 0 ? Step{change, i, none} : Step{change, none, i};
        }
    }

    void find_swap(const Cell& a, const Cell& b, const Pair& pair, Step& best) {
        const double most_lean = *std::ranges::max_element(lean_a_);
        const double spare = price_ * (a.excess + b.excess);
        if (spare <= 0 && !set_bounds(a, 0, b, 0)) return;
        radius_.resize(a.size());
        for (std::size_t i = 0; i < a.size(); ++i) radius_[i] = std::sqrt(a.own2[i]);
        // Between large cells the best swap of one record is good enough: looking at all takes too long.
        const bool soon = a.size() * b.size() > many_pairs;
        for (std::size_t i = 0; i < b.size() && !(soon && best); ++i) {
            const auto y = static_cast<std::uint32_t>(soon ? (i + n_taken_) % b.size() : i);
            const double lean_y = lean_b_[y] + pair.apart2;
            const double to_a = std::sqrt(std::max(b.own2[y] + 2 * lean_b_[y] + pair.apart2, 0.0));
            const double farthest = a.radius + to_a;
            if (2 * (lean_y - most_lean) - farthest * farthest * pair.share - spare >= best.change) continue;
            for (std::uint32_t x = 0; x < a.size(); ++x) {
                const double along = 2 * (lean_y - lean_a_[x]);
                const double reach = radius_[x] + to_a;
                if (along - reach * reach * pair.share - spare >= best.change) continue;
                const std::uint32_t record_a = a.members[x];
                const std::uint32_t record_b = b.members[y];
                if (spare <= 0 && !within_bounds(record_a, record_b)) continue;
                double change = along - distance2(record_a, record_b) * pair.share;
                const double rounding = least_share * (a.own2[x] + b.own2[y] + pair.apart2) + least_gain;
                if (!worthwhile(a, b, record_a, record_b, best.change - rounding, change)) continue;
                best = {change, x, y};
            }
        }
    }

    // Whether a step is better than `limit`; adds the price of the excess to the change.
    bool worthwhile(const Cell& a, const Cell& b, std::uint32_t x, std::uint32_t y, double limit, double& change) {
        const double before = a.excess + b.excess;
        if (before <= 0) return change < limit && excess_after(a, x, y) <= 0 && excess_after(b, y, x) <= 0;
        change -= price_ * before;
        limit -= 1e-9 * price_ * before;
        if (change + price_ * (least_after(a, x, y) + least_after(b, y, x)) >= limit) return false;
        change += price_ * excess_after(a, x, y);
        if (change >= limit) return false;
        change += price_ * excess_after(b, y, x);
        return change < limit;
    }

    // Of each guarantee, by how much a's sum of codes may grow in a swap for the excesses not to be ruled out at once;
    // says whether any swap is within these bounds.
    bool set_bounds(const Cell& a, double excess_a, const Cell& b, double excess_b) {
        bounds_.clear();
        for (std::size_t g = 0; g < guarantees_.size(); ++g) {
            const Interval in_a = guarantees_[g]->sums(a.size(), excess_a);
            const Interval in_b = guarantees_[g]->sums(b.size(), excess_b);
            const Kept& kept_a = a.kept[g];
            const Kept& kept_b = b.kept[g];
            const auto sum_a = static_cast<double>(kept_a.sum);
            const auto sum_b = static_cast<double>(kept_b.sum);
            const Interval bound{std::max(in_a.low - sum_a, sum_b - in_b.high),
                                 std::min(in_a.high - sum_a, sum_b - in_b.low)};
            bounds_.push_back(bound);
            const double most = static_cast<double>(kept_b.codes.back()) - static_cast<double>(kept_a.codes.front());
            const double least = static_cast<double>(kept_b.codes.front()) - static_cast<double>(kept_a.codes.back());
            if (most < bound.low || least > bound.high) return false;
        }
        return true;
    }
    bool within_bounds(std::uint32_t x, std::uint32_t y) const {
        for (std::size_t g = 0; g < bounds_.size(); ++g) {
            const double more = static_cast<double>(code(g, y)) - static_cast<double>(code(g, x));
            if (more < bounds_[g].low || more > bounds_[g].high) return false;
        }
        return true;
    }
    // The excess of a cell that one record leaves and one enters; either may be none.
    double excess_after(const Cell& cell, std::uint32_t leaves, std::uint32_t enters) {
        double excess = 0;
        for (std::size_t g = 0; g < guarantees_.size(); ++g) {
            const Kept& kept = cell.kept[g];
            if (leaves != none && enters != none) {
                if (code(g, leaves) == code(g, enters) && cell.excess <= 0) continue;
                const auto swapped = guarantees_[g]->swapped(kept.codes, kept.memory, code(g, leaves), code(g, enters));
                if (swapped) {
                    excess += *swapped;
                    continue;
                }
            }
            excess += guarantees_[g]->excess(changed(kept.codes, g, leaves, enters));
        }
        return excess;
    }
    std::span<const Code> changed(std::span<const Code> codes, std::size_t g, std::uint32_t leaves,
                                  std::uint32_t enters) {
        changed_.assign(codes.begin(), codes.end());
        if (leaves != none) changed_.erase(std::ranges::lower_bound(changed_, code(g, leaves)));
        if (enters != none) changed_.insert(std::ranges::upper_bound(changed_, code(g, enters)), code(g, enters));
        return changed_;
    }

    void take(Cell& a, Cell& b, const Step& step) {
        ++n_taken_;
        const std::uint32_t x = step.from_a == none ? none : a.members[step.from_a];
        const std::uint32_t y = step.from_b == none ? none : b.members[step.from_b];
        if (x != none) leave(step.from_a, a);
        if (y != none) leave(step.from_b, b);
        if (x != none) enter(x, b);
        if (y != none) enter(y, a);
        settle(a);
        settle(b);
    }

    // ---- mending

    // Excess costs more and more; what is left in the end asks farther away, and merges as the last resort.
    void mend(const Plan& plan, Watch& watch) {
        std::vector<std::uint32_t> failing = in_excess();
        if (failing.empty()) return;
        price_ = loss() / static_cast<double>(cells_.size());
        for (int round = 0; round < n_prices && !failing.empty(); ++round, price_ *= 4) {
            for (const std::uint32_t c : failing) {
                for (const std::uint32_t b : neighbours(c)) {
                    if (b == none || cells_[b].size() == 0) continue;
                    if (cells_[c].size() * cells_[b].size() > many_pairs) continue;
                    while (cells_[c].excess > 0 && improve(cells_[c], cells_[b])) {
                    }
                }
                watch.tick(0);
            }
            failing = in_excess();
        }
        for (std::size_t reach = 2 * plan.n_neighbours; !failing.empty() && n_alive() > 1; reach *= 4) {
            const bool everywhere = reach >= cells_.size() && plan.at_any_cost;
            for (const std::uint32_t c : failing) {
                if (cells_[c].size() == 0 || cells_[c].excess <= 0) continue;
                const auto others = nearest_able(cells_[c], reach);
                mend(c, others);
                if (everywhere && cells_[c].excess > 0) merge(c);
                watch.tick(0);
            }
            failing = in_excess();
            if (!plan.at_any_cost) break;
        }
    }

    std::vector<std::uint32_t> in_excess() const {
        std::vector<std::uint32_t> found;
        for (std::uint32_t c = 0; c < cells_.size(); ++c)
            if (cells_[c].size() > 0 && cells_[c].excess > 0) found.push_back(c);
        std::ranges::stable_sort(found, std::greater<>(), [&](std::uint32_t c) { return cells_[c].excess; });
        return found;
    }

    // Takes, as long as there is one, the step with another cell that brings most for its loss. Says whether any was.
    bool mend(std::uint32_t c, std::span<const std::uint32_t> others) {
        bool any = false;
        Cell& a = cells_[c];
        while (a.size() > 0 && a.excess > 0) {
            Step best;
            double least = infinity;
            std::uint32_t partner = none;
            for (const std::uint32_t b : others) {
                if (b == none || b == c || cells_[b].size() == 0) continue;
                if (out_of_reach(a, cells_[b], least)) continue;
                const Step step = mending_step(a, cells_[b], least);
                if (!step) continue;
                best = step;
                partner = b;
            }
            if (partner == none) break;
            take(a, cells_[partner], best);
            any = true;
        }
        return any;
    }

    // Whether two cells are so far apart that no step between them is as cheap as one that is known. A swap costs at
    // least 2 d (d - r) - (d + r)^2 (1/na + 1/nb), d being the way between the centroids and r both radii together; a
    // move at least n/(n+1) (d - r)^2 less what leaving brings, n/(n-1) r^2.
    bool out_of_reach(const Cell& a, const Cell& b, double least) const {
        double apart2 = 0;
        for (std::size_t j = 0; j < m_; ++j) {
            const double difference = b.centroid[j] - a.centroid[j];
            apart2 += difference * difference;
        }
        const double apart = std::sqrt(apart2);
        const double reach = a.radius + b.radius;
        if (apart <= reach) return false;
        const double swap =
            2 * apart * (apart - reach) - (apart + reach) * (apart + reach) * (1 / a.weight() + 1 / b.weight());
        const double smaller = std::min(a.weight(), b.weight());
        const double move =
            smaller / (smaller + 1) * (apart - reach) * (apart - reach) - smaller / (smaller - 1) * reach * reach;
        return std::min(swap, move) >= least * (a.excess + b.excess);
    }

    // The step with the least price if that is below `least`: loss per excess that goes away in both cells together.
    Step mending_step(Cell& a, Cell& b, double& least) {
        Step best;
        const double most_left = enough(a);
        const bool swaps = set_bounds(a, most_left, b, b.excess);
        if (!swaps && !may_give(a, b) && !may_give(b, a)) return best;
        const Pair pair = lean(a, b);
        const double before = a.excess + b.excess;
        const auto consider = [&](double change, std::uint32_t x, std::uint32_t y) {
            const std::uint32_t leaves = x == none ? none : a.members[x];
            const std::uint32_t enters = y == none ? none : b.members[y];
            const double cost = std::max(change, 0.0) + tiny_;
            if (cost >= least * before) return;
            const double left = excess_after(a, leaves, enters);
            // Every step counts, and none at the expense of the other cell: so there are few of them.
            if (left > most_left || cost >= least * (before - left)) return;
            const double other = excess_after(b, enters, leaves);
            const double gone = before - left - other;
            if (other > b.excess || cost >= least * gone) return;
            least = cost / gone;
            best = {change, x, y};
        };
        if (may_give(a, b))
            for (std::uint32_t x = 0; x < a.size(); ++x)
                consider(b.weight() / (b.weight() + 1) * (a.own2[x] - 2 * lean_a_[x] + pair.apart2) -
                             a.weight() / (a.weight() - 1) * a.own2[x],
                         x, none);
        if (may_give(b, a))
            for (std::uint32_t y = 0; y < b.size(); ++y)
                consider(a.weight() / (a.weight() + 1) * (b.own2[y] + 2 * lean_b_[y] + pair.apart2) -
                             b.weight() / (b.weight() - 1) * b.own2[y],
                         none, y);
        if (!swaps) return best;
        for (std::uint32_t y = 0; y < b.size(); ++y) {
            const double to_a = std::sqrt(std::max(b.own2[y] + 2 * lean_b_[y] + pair.apart2, 0.0));
            for (std::uint32_t x = 0; x < a.size(); ++x) {
                if (!within_bounds(a.members[x], b.members[y])) continue;
                const double along = 2 * (lean_b_[y] + pair.apart2 - lean_a_[x]);
                const double reach = std::sqrt(a.own2[x]) + to_a;
                if (along - reach * reach * pair.share >= least * before) continue;
                consider(along - distance2(a.members[x], b.members[y]) * pair.share, x, y);
            }
        }
        return best;
    }

    // A lower bound of the excess after a step, from the sums alone.
    double least_after(const Cell& cell, std::uint32_t leaves, std::uint32_t enters) const {
        const std::size_t size = cell.size() - (leaves != none) + (enters != none);
        double excess = 0;
        for (std::size_t g = 0; g < guarantees_.size(); ++g) {
            std::int64_t sum = cell.kept[g].sum;
            if (leaves != none) sum -= code(g, leaves);
            if (enters != none) sum += code(g, enters);
            excess += std::max(guarantees_[g]->least_excess(size, sum), 0.0);
        }
        return excess;
    }

    // The cells nearest to a cell, nearest first, of those that a swap with it is not ruled out for.
    std::vector<std::uint32_t> nearest_able(const Cell& a, std::size_t n_wanted) {
        std::vector<std::uint32_t> others;
        for (const Cell& cell : cells_)
            if (cell.number != a.number && cell.size() > 0) others.push_back(cell.number);
        std::vector<float> apart2(others.size());
        loops_.gather(centroids_.data(), width_, others, &centroids_[a.number * width_], apart2.data());
        std::vector<std::pair<float, std::uint32_t>> found;
        for (std::size_t i = 0; i < others.size(); ++i) found.emplace_back(apart2[i], others[i]);
        others.clear();
        for (std::size_t from = 0; from < found.size() && others.size() < n_wanted;) {
            const std::size_t to = std::min(std::max(4 * from, 4 * n_wanted), found.size());
            const auto begin = found.begin() + static_cast<std::ptrdiff_t>(from);
            const auto end = found.begin() + static_cast<std::ptrdiff_t>(to);
            if (to < found.size()) std::nth_element(begin, end, found.end());
            std::sort(begin, end);
            for (; from < to && others.size() < n_wanted; ++from) {
                const Cell& b = cells_[found[from].second];
                if (set_bounds(a, enough(a), b, b.excess)) others.push_back(b.number);
            }
            from = to;
        }
        return others;
    }
    // What a step that mends may leave: little, so that few are needed; but one record among many can only do so much.
    static double enough(const Cell& cell) { return cell.excess - std::min(0.3 * cell.excess, 0.25 / cell.weight()); }

    // Merges a cell with the one that mends it for the least loss, or brings most for it.
    void merge(std::uint32_t c) {
        Cell& a = cells_[c];
        std::uint32_t partner = none;
        double least = infinity;
        for (const Cell& b : cells_) {
            if (b.size() == 0 || b.number == c) continue;
            double apart2 = 0;
            for (std::size_t j = 0; j < m_; ++j) {
                const double difference = b.centroid[j] - a.centroid[j];
                apart2 += difference * difference;
            }
            const double cost = a.weight() * b.weight() / (a.weight() + b.weight()) * apart2 + tiny_;
            if (cost >= least * (a.excess + b.excess)) continue;
            const double gone = a.excess + b.excess - excess_together(a, b);
            if (gone < 0.1 * a.excess && partner != none) continue;
            if (cost < least * gone) {
                least = cost / gone;
                partner = b.number;
            }
        }
        Cell& b = cells_[partner];
        for (const std::uint32_t record : a.members) enter(record, b);
        a.members.clear();
        a.own2.clear();
        a.excess = 0;
        most_ = std::max(most_, b.size());
        settle(b);
    }
    double excess_together(const Cell& a, const Cell& b) {
        double excess = 0;
        for (std::size_t g = 0; g < guarantees_.size(); ++g) {
            changed_.clear();
            std::ranges::merge(a.kept[g].codes, b.kept[g].codes, std::back_inserter(changed_));
            excess += guarantees_[g]->excess(changed_);
        }
        return excess;
    }

    void write_labels() {
        std::vector<std::int64_t> cell_of(n_);
        for (std::size_t c = 0; c < cells_.size(); ++c)
            for (const std::uint32_t record : cells_[c].members)
                cell_of[original_[record]] = static_cast<std::int64_t>(c);
        std::vector<std::int64_t> number(cells_.size(), -1);
        std::int64_t next = 0;
        for (std::size_t i = 0; i < n_; ++i) {
            std::int64_t& given = number[static_cast<std::size_t>(cell_of[i])];
            if (given < 0) given = next++;
            labels_[i] = given;
        }
    }

    std::size_t k_;
    std::size_t n_;
    std::size_t m_;
    std::size_t most_ = 0;
    std::size_t width_;  // columns in whole lanes, the surplus ones zero
    const Loops& loops_;
    std::span<std::int64_t> labels_;
    std::vector<std::size_t> original_;  // the number in the table of each record
    std::vector<double> rows_;
    std::vector<const Guarantee*> guarantees_;
    std::vector<std::vector<Code>> codes_;  // of each guarantee
    std::vector<float> centroids_;
    std::vector<Cell> cells_;
    std::vector<std::uint32_t> lists_;  // the cells near each cell
    std::size_t n_listed_ = 0;
    std::vector<std::uint32_t> compared_;  // of each pair: the changes of both when they were last compared
    std::size_t n_taken_ = 0;
    double tiny_ = 1e-12;
    double price_ = 0;  // of excess, in loss
    std::vector<double> across_, lean_a_, lean_b_, radius_;
    std::vector<Interval> bounds_;
    std::vector<Code> changed_;
};

}  // namespace shoal
