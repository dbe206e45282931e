// Repairs cells that violate a model by the swaps and moves with other cells that improve most per loss.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "guarded/cells.hpp"
#include "guarded/pair.hpp"
#include "guarded/waves.hpp"
#include "numeric/selection.hpp"
#include "parallel/polling.hpp"

namespace shoal {

// Repairs one cell after the other. Each thread has its own.
class GuardedRepairer {
  public:
    using Cell = GuardedCells::Cell;
    // Where a step costs nothing, the one that brings most is taken.
    static constexpr double tiny = 1e-12;

    explicit GuardedRepairer(GuardedCells& cells) : cells_(cells), pair_(cells) {}

    // Takes, as long as there is one, the step with another cell that improves most per loss. All cells are tried once,
    // then those with a good step again, until none has one. Terminates, since each step removes a share of the excess
    // (see `enough`). `goes_on` is asked at intervals.
    template <class GoesOn>
    void repair(std::uint32_t c, std::span<const std::uint32_t> others, const GoesOn& goes_on) {
        const Cell& a = cells_[c];
        for (bool all = true; a.size() > 0 && a.excess > 0;) {
            if (all) {
                offers_.clear();
                for (const std::uint32_t b : others) offers_.emplace_back(0.0, b);
            }
            const Offer best = best_offer(a, goes_on);
            if (best.partner == none && all) return;
            all = best.partner == none;
            if (!all) cells_.transfer(best.transfers, room_);
        }
    }

    // Whether a swap between two cells is not ruled out.
    bool is_able(const Cell& a, const Cell& b) { return pair_.set_bounds(a, enough(a), b, b.excess); }

  private:
    static constexpr std::uint32_t none = GuardedCells::none;
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    static constexpr std::size_t n_offers = 4;

    using Step = GuardedPair::Step;
    struct Offer {
        std::uint32_t partner = none;
        std::vector<GuardedCells::Transfer> transfers = {};
    };

    // Finds the steps of the cells in the list; keeps the cells with the best ones, and their steps.
    template <class GoesOn>
    Offer best_offer(const Cell& a, const GoesOn& goes_on) {
        Offer best;
        double least = infinity;
        found_.clear();
        for (const auto& [price, b] : offers_) {
            if (b == none || b == a.number || cells_[b].size() == 0) continue;
            double limit = 1.3 * least;
            if (out_of_reach(a, cells_[b], limit)) continue;
            if (++n_asked_ % 16 == 0 && !goes_on()) return {};
            const Step step = repairing_step(a, cells_[b], limit);
            if (!step) continue;
            found_.emplace_back(limit, b);
            if (limit >= least) continue;
            least = limit;
            const auto transfers = pair_.transfers(step);
            best = {b, {transfers.begin(), transfers.end()}};
        }
        std::ranges::sort(found_);
        found_.resize(std::min(found_.size(), n_offers));
        std::swap(offers_, found_);
        return best;
    }

    // Whether two cells are so far apart that no step between them is as cheap as one that is known. A swap costs at
    // least 2 d (d - r) - (d + r)^2 (1/na + 1/nb), d being the way between the centroids and r both radii together; a
    // move at least n/(n+1) (d - r)^2 less what leaving brings, n/(n-1) r^2.
    bool out_of_reach(const Cell& a, const Cell& b, double least) const {
        const double apart = std::sqrt(cells_.apart2(a, b));
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
    Step repairing_step(const Cell& a, const Cell& b, double& least) {
        Step best;
        const double most_left = enough(a);
        const bool swaps = pair_.set_bounds(a, most_left, b, b.excess);
        if (!swaps && !cells_.may_give(a, b) && !cells_.may_give(b, a)) return best;
        pair_.view(a, b);
        pair_.shortlist();
        const double before = a.excess + b.excess;
        const auto consider = [&](double change, std::uint32_t x, std::uint32_t y) {
            const std::uint32_t leaves = x == none ? none : a.members[x];
            const std::uint32_t enters = y == none ? none : b.members[y];
            const double cost = std::max(change, 0.0) + tiny;
            if (cost >= least * before) return;
            const double left = cells_.excess_after(a, leaves, enters, room_);
            // Every step counts, and none at the expense of the other cell: so there are few of them.
            if (left > most_left || cost >= least * (before - left)) return;
            const double other = cells_.excess_after(b, enters, leaves, room_);
            const double gone = before - left - other;
            if (other > b.excess || cost >= least * gone) return;
            least = cost / gone;
            best = {change, x, y};
        };
        if (cells_.may_give(a, b))
            for (const std::uint32_t x : pair_.slots_a()) consider(pair_.cost_of_a(x), x, none);
        if (cells_.may_give(b, a))
            for (const std::uint32_t y : pair_.slots_b()) consider(pair_.cost_of_b(y), none, y);
        if (!swaps) return best;
        for (const std::uint32_t y : pair_.slots_b()) {
            const double lean_y = pair_.lean_b()[y] + pair_.apart2();
            const double to_a = std::sqrt(std::max(pair_.b_to_a2(y), 0.0));
            for (const std::uint32_t x : pair_.slots_a()) {
                if (!pair_.within_bounds(a.members[x], b.members[y])) continue;
                const double along = 2 * (lean_y - pair_.lean_a()[x]);
                const double reach = std::sqrt(a.own2[x]) + to_a;
                const double gone = most_gone(a, b, a.members[x], b.members[y]);
                if (along - reach * reach * pair_.share() >= least * gone) continue;
                const double change = along - cells_.distance2(a.members[x], b.members[y]) * pair_.share();
                if (std::max(change, 0.0) + tiny >= least * gone) continue;
                consider(change, x, y);
            }
        }
        return best;
    }
    // Excess that a step may leave: little, so few steps are needed; but one record changes a large cell little.
    static double enough(const Cell& cell) { return cell.excess - std::min(0.3 * cell.excess, 0.25 / cell.weight()); }
    // How much excess a swap takes away at most.
    double most_gone(const Cell& a, const Cell& b, std::uint32_t x, std::uint32_t y) const {
        double effect = 0;
        for (std::size_t g = 0; g < cells_.n_guarantees(); ++g)
            effect += cells_.guarantee(g).most_effect(cells_.code(g, x), cells_.code(g, y));
        return std::min(a.excess, effect / a.weight()) + std::min(b.excess, effect / b.weight());
    }

    GuardedCells& cells_;
    GuardedPair pair_;
    GuardedCells::Room room_;
    std::vector<std::pair<double, std::uint32_t>> offers_, found_;  // prices and cells
    std::size_t n_asked_ = 0;                                       // cells asked for steps, for `goes_on`
};

// All cells in excess.
class GuardedRepairing {
  public:
    using Cell = GuardedCells::Cell;

    explicit GuardedRepairing(GuardedCells& cells)
        : cells_(cells), repairers_(cells.pool().size(), GuardedRepairer(cells)) {}

    // Cells in excess ask those near them, then farther away; at any cost they merge as the last resort.
    void repair(std::size_t n_neighbours, bool at_any_cost) {
        repair_with_neighbours();
        std::vector<std::uint32_t> failing = in_excess();
        for (std::size_t reach = 2 * std::max<std::size_t>(n_neighbours, 1); !failing.empty() && cells_.n_alive() > 1;
             reach *= 4) {
            const bool everywhere = reach >= cells_.size() && at_any_cost;
            list_alive();
            for (const std::uint32_t c : failing) {
                if (cells_[c].size() == 0 || cells_[c].excess <= 0) continue;
                auto others = near_able(cells_[c], reach);
                if (others.empty()) others = nearest_able(cells_[c], reach);
                repair(c, others);
                if (everywhere && cells_[c].excess > 0) merge(c);
            }
            failing = in_excess();
            if (!at_any_cost) break;
        }
    }

    // One cell, by steps with some others.
    void repair(std::uint32_t c, std::span<const std::uint32_t> others) {
        repairers_.front().repair(c, others, [&] {
            cells_.poller().tick();
            return true;
        });
    }

  private:
    static constexpr std::uint32_t none = GuardedCells::none;
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    static constexpr double tiny = GuardedRepairer::tiny;
    // In nanoseconds.
    static constexpr double time_of_repair = 20'000;

    // On all threads. A repair reads and changes a cell and its neighbours.
    void repair_with_neighbours() {
        GuardedWaves<std::uint32_t> waves(cells_.size());
        for (const std::uint32_t c : in_excess()) {
            std::vector<std::uint32_t> around{c};
            around.insert(around.end(), cells_.neighbours(c).begin(), cells_.neighbours(c).end());
            waves.add(c, around);
        }
        SharedPoller shared(cells_.poller());
        for (const std::vector<std::uint32_t>& wave : waves.all())
            cells_.pool().each(wave.size(), time_of_repair, [&](std::size_t thread, std::size_t i) {
                if (!shared.goes_on(thread)) return;
                repairers_[thread].repair(wave[i], cells_.neighbours(wave[i]), [&] { return shared.goes_on(thread); });
            });
    }

    std::vector<std::uint32_t> in_excess() const {
        std::vector<std::uint32_t> found;
        for (const Cell& cell : cells_.all())
            if (cell.size() > 0 && cell.excess > 0) found.push_back(cell.number);
        std::ranges::stable_sort(found, std::greater<>(), [&](std::uint32_t c) { return cells_[c].excess; });
        return found;
    }
    void list_alive() {
        alive_.clear();
        for (const Cell& cell : cells_.all())
            if (cell.size() > 0) alive_.push_back(cell.number);
    }

    // Cells near to a cell that a swap with it is not ruled out for: neighbours, their neighbours, and so on. None
    // where that leads too far.
    std::vector<std::uint32_t> near_able(const Cell& a, std::size_t n_wanted) {
        std::vector<std::uint32_t> able;
        std::vector<std::uint32_t> found{a.number};
        met_.resize(cells_.size(), 0);
        met_[a.number] = ++n_walks_;
        for (std::size_t next = 0; next < found.size() && able.size() < n_wanted; ++next) {
            for (const std::uint32_t b : cells_.neighbours(found[next])) {
                if (b == none || std::exchange(met_[b], n_walks_) == n_walks_ || cells_[b].size() == 0) continue;
                found.push_back(b);
                if (repairers_.front().is_able(a, cells_[b])) able.push_back(b);
            }
            if (found.size() > 100 * n_wanted) return {};
        }
        return able.size() < n_wanted ? std::vector<std::uint32_t>{} : able;
    }

    // The cells nearest to a cell, nearest first, of those alive that a swap with it is not ruled out for.
    std::vector<std::uint32_t> nearest_able(const Cell& a, std::size_t n_wanted) {
        const Rows<const float> centroids = cells_.centroids();
        apart2_.resize(alive_.size());
        cells_.loops().gather(centroids.flat().data(), centroids.dims(), alive_, centroids[a.number].data(),
                              apart2_.data());
        // Distances are not negative: their bits are in the same order, and a number is compared faster than a pair.
        keys_.resize(alive_.size());
        for (std::size_t i = 0; i < alive_.size(); ++i)
            keys_[i] = std::uint64_t{std::bit_cast<std::uint32_t>(apart2_[i])} << 32 | alive_[i];
        std::vector<std::uint32_t> able;
        for (std::size_t from = 0; from < keys_.size() && able.size() < n_wanted;) {
            const std::size_t to = std::min(std::max(4 * from, 4 * n_wanted), keys_.size());
            const auto begin = keys_.begin() + static_cast<std::ptrdiff_t>(from);
            const auto end = keys_.begin() + static_cast<std::ptrdiff_t>(to);
            if (to < keys_.size()) select_nth(begin, end, keys_.end());
            std::sort(begin, end);
            for (; from < to && able.size() < n_wanted; ++from) {
                const Cell& b = cells_[keys_[from] & none];
                if (b.number == a.number || b.size() == 0) continue;
                if (repairers_.front().is_able(a, b)) able.push_back(b.number);
            }
        }
        return able;
    }

    // Merges a cell with the one that improves most per loss; if none improves anything, with the nearest. A single
    // remaining cell cannot be merged.
    void merge(std::uint32_t c) {
        const Cell& a = cells_[c];
        std::uint32_t partner = none;
        std::uint32_t nearest = none;
        double least = infinity;
        double least_cost = infinity;
        for (const Cell& b : cells_.all()) {
            if (b.size() == 0 || b.number == c) continue;
            const double cost = a.weight() * b.weight() / (a.weight() + b.weight()) * cells_.apart2(a, b) + tiny;
            if (cost < least_cost) {
                least_cost = cost;
                nearest = b.number;
            }
            if (cost >= least * (a.excess + b.excess)) continue;
            const double gone = a.excess + b.excess - cells_.excess_together(a, b, room_);
            if (gone <= 0 || (gone < 0.1 * a.excess && partner != none)) continue;
            if (cost < least * gone) {
                least = cost / gone;
                partner = b.number;
            }
        }
        if (partner == none) partner = nearest;
        if (partner == none) return;
        std::vector<std::uint32_t> together = cells_[partner].members;
        together.insert(together.end(), a.members.begin(), a.members.end());
        cells_.refill(cells_[partner], std::move(together));
        cells_.refill(cells_[c], {});
    }

    GuardedCells& cells_;
    std::vector<GuardedRepairer> repairers_;  // of each thread
    GuardedCells::Room room_;
    std::vector<std::uint32_t> alive_;
    std::vector<float> apart2_;
    std::vector<std::uint64_t> keys_;
    std::vector<std::uint32_t> met_;  // on which walk each cell was met last
    std::uint32_t n_walks_ = 0;
};

}  // namespace shoal
