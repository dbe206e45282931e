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
    };

    // Changes the labels in place. They number the cells from 0 without gaps, each with at least k records.
    GuardedSearch(Rows<const double> X, std::size_t k, std::span<const Guarded> guarded, const Loops& loops,
                  std::span<std::int64_t> labels)
        : k_(k), n_(X.size()), m_(X.dims()), guarded_(guarded), loops_(loops), labels_(labels) {
        centre(X);
        std::int64_t n_cells = 0;
        for (const std::int64_t label : labels) n_cells = std::max(n_cells, label + 1);
        cells_.resize(static_cast<std::size_t>(n_cells));
        for (Cell& cell : cells_) {
            cell.sums.assign(m_, 0.0);
            cell.kept.resize(guarded.size());
        }
        for (std::uint32_t i = 0; i < n_; ++i) enter(i, cells_[static_cast<std::size_t>(labels[i])]);
        std::size_t largest = 0;
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
    // What a step must gain, of the squares it is made of, for rounding not to be the reason.
    static constexpr double least_share = 1e-10;

    // What one guarantee knows of a cell.
    struct Kept {
        std::vector<Code> codes;  // ascending
        std::int64_t sum = 0;
    };
    struct Cell {
        std::vector<std::uint32_t> members;
        std::vector<double> sums;
        std::vector<double> centroid;
        std::vector<double> own2;  // squared distances of the members from the centroid
        std::vector<Kept> kept;    // of each guarantee
        double excess = 0;
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

    void centre(Rows<const double> X) {
        const double scale = unit_scale(X.flat());
        std::vector<double> mean(m_, 0.0);
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t j = 0; j < m_; ++j) mean[j] += X[i][j] * scale / static_cast<double>(n_);
        rows_.resize(n_ * m_);
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t j = 0; j < m_; ++j) rows_[i * m_ + j] = X[i][j] * scale - mean[j];
        const double unit = unit_scale(rows_);
        for (double& value : rows_) value *= unit;
    }

    const double* row(std::uint32_t record) const { return &rows_[record * m_]; }
    Code code(std::size_t g, std::uint32_t record) const { return guarded_[g].codes[record]; }

    void enter(std::uint32_t record, Cell& cell) {
        cell.members.push_back(record);
        for (std::size_t j = 0; j < m_; ++j) cell.sums[j] += row(record)[j];
        for (std::size_t g = 0; g < guarded_.size(); ++g) {
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
        for (std::size_t g = 0; g < guarded_.size(); ++g) {
            Kept& kept = cell.kept[g];
            kept.codes.erase(std::lower_bound(kept.codes.begin(), kept.codes.end(), code(g, record)));
            kept.sum -= code(g, record);
        }
    }

    // Recounts what depends on all members.
    void settle(Cell& cell) {
        cell.centroid.resize(m_);
        for (std::size_t j = 0; j < m_; ++j) cell.centroid[j] = cell.sums[j] / cell.weight();
        cell.own2.resize(cell.size());
        for (std::size_t i = 0; i < cell.size(); ++i) cell.own2[i] = distance2(cell.members[i], cell);
        cell.excess = 0;
        for (std::size_t g = 0; g < guarded_.size() && cell.size() > 0; ++g)
            cell.excess += guarded_[g].guarantee->excess(cell.kept[g].codes);
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
            const std::size_t width = (m_ + 7) / 8 * 8;
            std::vector<float> centroids(n_cells * width, 0.0f);
            for (std::size_t c = 0; c < n_cells; ++c)
                for (std::size_t j = 0; j < m_; ++j)
                    centroids[c * width + j] = static_cast<float>(cells_[c].centroid[j]);
            lists_ = nearest_neighbours({centroids.data(), n_cells, width}, n_wanted, loops_, lists_);
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
            for (std::size_t i = 0; i < n_listed_ && cells_[a].size() > 0; ++i) {
                const std::uint32_t b = lists_[a * n_listed_ + i];
                if (b == none || cells_[b].size() == 0) continue;
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

    // Takes the best step between two cells that lowers the loss and keeps every guarantee.
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
            const double change = join * to2 - leave * from.own2[i];
            if (!(change < best.change) || !(change < -least_share * (to2 + from.own2[i]))) continue;
            const std::uint32_t record = from.members[i];
            if (excess_after(from, record, none) > 0 || excess_after(to, none, record) > 0) continue;
            best = sign > 0 ? Step{change, i, none} : Step{change, none, i};
        }
    }

    void find_swap(const Cell& a, const Cell& b, const Pair& pair, Step& best) {
        const double most_lean = *std::ranges::max_element(lean_a_);
        const double radius_a = std::sqrt(*std::ranges::max_element(a.own2));
        set_bounds(a, b);
        radius_.resize(a.size());
        for (std::size_t i = 0; i < a.size(); ++i) radius_[i] = std::sqrt(a.own2[i]);
        for (std::uint32_t y = 0; y < b.size(); ++y) {
            const double lean_y = lean_b_[y] + pair.apart2;
            const double to_a = std::sqrt(std::max(b.own2[y] + 2 * lean_b_[y] + pair.apart2, 0.0));
            const double farthest = radius_a + to_a;
            if (2 * (lean_y - most_lean) - farthest * farthest * pair.share >= best.change) continue;
            for (std::uint32_t x = 0; x < a.size(); ++x) {
                const double along = 2 * (lean_y - lean_a_[x]);
                const double reach = radius_[x] + to_a;
                if (along - reach * reach * pair.share >= best.change) continue;
                if (!within_bounds(a.members[x], b.members[y])) continue;
                const double apart2 = distance2(a.members[x], b.members[y]);
                const double change = along - apart2 * pair.share;
                if (!(change < best.change) || !(change < -least_share * apart2)) continue;
                if (!allowed(a, b, a.members[x], b.members[y])) continue;
                best = {change, x, y};
            }
        }
    }

    // Of each guarantee, by how much a's sum of codes may change in a swap without ruling it out at once.
    void set_bounds(const Cell& a, const Cell& b) {
        bounds_.clear();
        for (std::size_t g = 0; g < guarded_.size(); ++g) {
            const Interval in_a = guarded_[g].guarantee->sums(a.size());
            const Interval in_b = guarded_[g].guarantee->sums(b.size());
            const auto sum_a = static_cast<double>(a.kept[g].sum);
            const auto sum_b = static_cast<double>(b.kept[g].sum);
            bounds_.push_back(
                {std::max(in_a.low - sum_a, sum_b - in_b.high), std::min(in_a.high - sum_a, sum_b - in_b.low)});
        }
    }
    bool within_bounds(std::uint32_t x, std::uint32_t y) const {
        for (std::size_t g = 0; g < bounds_.size(); ++g) {
            const double more = static_cast<double>(code(g, y)) - static_cast<double>(code(g, x));
            if (more != 0 && (more < bounds_[g].low || more > bounds_[g].high)) return false;
        }
        return true;
    }
    bool allowed(const Cell& a, const Cell& b, std::uint32_t x, std::uint32_t y) {
        return excess_after(a, x, y) <= 0 && excess_after(b, y, x) <= 0;
    }

    // The excess of a cell that one record leaves and one enters; either may be none. Cells that are in excess may
    // not get worse, which is all that is asked of them while the loss is lowered.
    double excess_after(const Cell& cell, std::uint32_t leaves, std::uint32_t enters) {
        double excess = 0;
        for (std::size_t g = 0; g < guarded_.size(); ++g) {
            if (leaves != none && enters != none && code(g, leaves) == code(g, enters) && cell.excess <= 0) continue;
            excess += guarded_[g].guarantee->excess(changed(cell.kept[g].codes, g, leaves, enters));
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

    void mend(const Plan& plan, Watch& watch) {
        std::vector<std::uint32_t> failing = in_excess();
        for (bool some = true; some && !failing.empty();) {
            some = false;
            for (const std::uint32_t c : failing) {
                some |= mend(c, neighbours(c));
                watch.tick(0);
            }
            failing = in_excess();
        }
        // Those that the near cells could not help ask farther away, and merge as the last resort.
        while (!failing.empty() && n_alive() > 1) {
            for (const std::uint32_t c : failing) {
                if (cells_[c].size() == 0 || cells_[c].excess <= 0) continue;
                const std::vector<std::uint32_t> wide =
                    nearest_cells(c, std::max<std::size_t>(200, 4 * plan.n_neighbours));
                mend(c, wide);
                if (cells_[c].excess > 0) merge(c, wide);
                watch.tick(0);
            }
            failing = in_excess();
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

    // The step with the least price if that is below `least`: loss per excess that goes away in both cells together.
    Step mending_step(Cell& a, Cell& b, double& least) {
        Step best;
        const Pair pair = lean(a, b);
        const double before = a.excess + b.excess;
        const auto consider = [&](double change, std::uint32_t x, std::uint32_t y) {
            const std::uint32_t leaves = x == none ? none : a.members[x];
            const std::uint32_t enters = y == none ? none : b.members[y];
            const double cost = std::max(change, 0.0) + tiny_;
            if (cost >= least * before || hopeless(a, leaves, enters)) return;
            const double left = excess_after(a, leaves, enters);
            if (left >= a.excess || cost >= least * (before - left)) return;
            const double gone = before - left - excess_after(b, enters, leaves);
            if (!(gone > 1e-12) || cost >= least * gone) return;
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
        for (std::uint32_t x = 0; x < a.size(); ++x)
            for (std::uint32_t y = 0; y < b.size(); ++y)
                consider(
                    2 * (lean_b_[y] + pair.apart2 - lean_a_[x]) - distance2(a.members[x], b.members[y]) * pair.share, x,
                    y);
        return best;
    }

    // Whether the sums alone say that the excess of a cell does not fall.
    bool hopeless(const Cell& cell, std::uint32_t leaves, std::uint32_t enters) const {
        const std::size_t size = cell.size() - (leaves != none) + (enters != none);
        double excess = 0;
        for (std::size_t g = 0; g < guarded_.size(); ++g) {
            std::int64_t sum = cell.kept[g].sum;
            if (leaves != none) sum -= code(g, leaves);
            if (enters != none) sum += code(g, enters);
            excess += std::max(guarded_[g].guarantee->least_excess(size, sum), 0.0);
        }
        return excess >= cell.excess;
    }

    std::vector<std::uint32_t> nearest_cells(std::uint32_t c, std::size_t n_wanted) const {
        std::vector<std::pair<double, std::uint32_t>> found;
        for (std::uint32_t b = 0; b < cells_.size(); ++b) {
            if (b == c || cells_[b].size() == 0) continue;
            double apart2 = 0;
            for (std::size_t j = 0; j < m_; ++j) {
                const double difference = cells_[b].centroid[j] - cells_[c].centroid[j];
                apart2 += difference * difference;
            }
            found.emplace_back(apart2, b);
        }
        n_wanted = std::min(n_wanted, found.size());
        std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(n_wanted), found.end());
        std::vector<std::uint32_t> numbers;
        for (std::size_t i = 0; i < n_wanted; ++i) numbers.push_back(found[i].second);
        return numbers;
    }

    // Merges a cell with the one that mends it for the least loss, or brings most for it.
    void merge(std::uint32_t c, std::span<const std::uint32_t> others) {
        Cell& a = cells_[c];
        std::uint32_t partner = none;
        double least = infinity;
        for (const std::uint32_t o : others) {
            const Cell& b = cells_[o];
            if (b.size() == 0) continue;
            double apart2 = 0;
            for (std::size_t j = 0; j < m_; ++j) {
                const double difference = b.centroid[j] - a.centroid[j];
                apart2 += difference * difference;
            }
            const double cost = a.weight() * b.weight() / (a.weight() + b.weight()) * apart2 + tiny_;
            if (cost >= least * (a.excess + b.excess)) continue;
            const double gone = a.excess + b.excess - excess_together(a, b);
            if (gone > 0 && cost < least * gone) {
                least = cost / gone;
                partner = o;
            }
        }
        if (partner == none) partner = others[0];
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
        for (std::size_t g = 0; g < guarded_.size(); ++g) {
            changed_.clear();
            std::ranges::merge(a.kept[g].codes, b.kept[g].codes, std::back_inserter(changed_));
            excess += guarded_[g].guarantee->excess(changed_);
        }
        return excess;
    }

    void write_labels() {
        std::vector<std::int64_t> cell_of(n_);
        for (std::size_t c = 0; c < cells_.size(); ++c)
            for (const std::uint32_t record : cells_[c].members) cell_of[record] = static_cast<std::int64_t>(c);
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
    std::span<const Guarded> guarded_;
    const Loops& loops_;
    std::span<std::int64_t> labels_;
    std::vector<double> rows_;
    std::vector<Cell> cells_;
    std::vector<std::uint32_t> lists_;  // the cells near each cell
    std::size_t n_listed_ = 0;
    std::vector<std::uint32_t> compared_;  // of each pair: the changes of both when they were last compared
    double tiny_ = 1e-12;
    std::vector<double> across_, lean_a_, lean_b_, radius_;
    std::vector<Interval> bounds_;
    std::vector<Code> changed_;
};

}  // namespace shoal
