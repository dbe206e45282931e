// Mends and improves a partition whose cells must keep guarantees about confidential columns.
//
// First the cells that break a guarantee swap and move records with others, whatever brings most for the least loss;
// where that does not end, they merge with a neighbour. Then records swap and move as long as that lowers the loss and
// every guarantee holds: the guarantees have a veto.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "cells.hpp"
#include "cycles.hpp"
#include "distance.hpp"
#include "model_vetoes.hpp"
#include "neighbours.hpp"
#include "polling.hpp"
#include "rows.hpp"
#include "simd.hpp"

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
            cell.kept.resize(guarded.size());
        }
        for (std::uint32_t i = 0; i < n_; ++i)
            cells_[static_cast<std::size_t>(labels[original_[i]])].members.push_back(i);
        for (Cell& cell : cells_) {
            fill(cell);
            largest = std::max(largest, cell.members.size());
        }
        most_ = std::max({largest, 2 * k - 1, 2 * n_ / std::max<std::size_t>(cells_.size(), 1)});
    }

    // Reports the records gone through to `watch`, n_records a round.
    void run(const Plan& plan, Watch& watch) {
        watch_ = &watch;
        find_neighbours(plan.n_neighbours);
        mend(plan);
        double before = loss();
        bool split = false;
        for (std::size_t round = 0; round < plan.n_rounds && n_alive() > 1; ++round) {
            if (round == 1) find_neighbours(plan.n_neighbours);
            sweep(round);
            // As long as pairs of cells gain much, that takes less time.
            const bool slow = loss() > 0.9 * before;
            if (slow && alike_) rotate();
            const bool fresh = slow && !std::exchange(split, split || slow) && split_large();
            if (fresh) find_neighbours(plan.n_neighbours);
            const double after = loss();
            if (!fresh && !(after < before * (1 - plan.least_gain))) break;
            before = after;
        }
        if (!split) split_large();
        write_labels();
        watch.finish(plan.n_rounds * n_);
    }

  private:
    static constexpr std::uint32_t none = 0xffffffff;
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    // Up to so many cells all pairs are looked at.
    static constexpr std::size_t few_cells = 256;
    static constexpr std::size_t n_offers = 4;
    static constexpr std::size_t many_pairs = 1000;
    // Records are told apart by so many classes of confidential values, or else put into so many.
    static constexpr std::size_t most_classes = 64;
    static constexpr std::size_t n_bins = 16;
    static constexpr std::size_t most_rotations = 50;
    // What a step must gain, of the squares it is made of, for rounding not to be the reason.
    static constexpr double least_share = 1e-10;
    // How far rounding puts a coordinate or a centroid off, a few times over: numbers are at most 1.
    static constexpr double coordinate_error = 1e-15;

    // What one guarantee knows of a cell.
    struct Kept {
        std::vector<Code> codes;  // ascending
        std::int64_t sum = 0;
        Wide memory = 0;
    };
    struct Cell {
        std::uint32_t number = 0;
        std::vector<std::uint32_t> members;  // ascending: what is computed from them depends on nothing else
        std::vector<double> centroid;
        std::vector<double> own2;  // squared distances of the members from the centroid
        std::vector<Kept> kept;    // of each guarantee
        double loss = 0;
        double excess = 0;
        double radius = 0;
        std::uint32_t n_changes = 0;

        std::size_t size() const { return members.size(); }
        double weight() const { return static_cast<double>(members.size()); }
    };
    // A record leaves a cell for another, by their numbers.
    struct Transfer {
        std::uint32_t record, from, to;
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
        classify();
    }

    // Puts records that all guarantees take for the same into one class; where these would be too many, records of
    // about the same value of the first.
    void classify() {
        class_of_.assign(n_, 0);
        if (codes_.empty()) return;
        std::vector<std::uint32_t> order(n_);
        std::iota(order.begin(), order.end(), 0u);
        const auto alike = [&](std::uint32_t i, std::uint32_t j) {
            return std::ranges::all_of(codes_, [&](const auto& codes) { return codes[i] == codes[j]; });
        };
        std::ranges::sort(order, [&](std::uint32_t i, std::uint32_t j) {
            for (const auto& codes : codes_)
                if (codes[i] != codes[j]) return codes[i] < codes[j];
            return false;
        });
        n_classes_ = 1;
        for (std::size_t i = 1; i < n_; ++i) n_classes_ += !alike(order[i - 1], order[i]);
        alike_ = n_classes_ <= most_classes;
        std::uint32_t current = 0;
        for (std::size_t i = 0; i < n_; ++i) {
            const bool differs = i > 0 && !alike(order[i - 1], order[i]);
            if (differs && (alike_ || i * n_bins / n_ > current)) ++current;
            class_of_[order[i]] = static_cast<std::uint8_t>(current);
        }
        n_classes_ = current + 1u;
    }

    const double* row(std::uint32_t record) const { return &rows_[record * m_]; }
    Code code(std::size_t g, std::uint32_t record) const { return codes_[g][record]; }

    void enter(std::uint32_t record, Cell& cell) {
        cell.members.insert(std::ranges::lower_bound(cell.members, record), record);
        for (std::size_t g = 0; g < guarantees_.size(); ++g) {
            Kept& kept = cell.kept[g];
            kept.codes.insert(std::ranges::upper_bound(kept.codes, code(g, record)), code(g, record));
            kept.sum += code(g, record);
        }
    }
    void leave(std::uint32_t record, Cell& cell) {
        cell.members.erase(std::ranges::lower_bound(cell.members, record));
        for (std::size_t g = 0; g < guarantees_.size(); ++g) {
            Kept& kept = cell.kept[g];
            kept.codes.erase(std::ranges::lower_bound(kept.codes, code(g, record)));
            kept.sum -= code(g, record);
        }
    }

    // Carries out the transfers listed, whatever they cost.
    void transfer() {
        list_touched();
        pass_over();
        for (const std::uint32_t cell : touched_) ++cells_[cell].n_changes;
    }
    // Carries them out if that lowers the loss of the cells, computed anew; says whether it does. The loss of a cell
    // depends on its records alone, so steps between two cells never lead back to where they began.
    bool transfer_if_lower() {
        list_touched();
        const double before = loss_of_touched();
        pass_over();
        if (loss_of_touched() < before) {
            for (const std::uint32_t cell : touched_) ++cells_[cell].n_changes;
            return true;
        }
        for (Transfer& each : transfers_) std::swap(each.from, each.to);
        pass_over();
        return false;
    }
    void list_touched() {
        touched_.clear();
        for (const Transfer& each : transfers_)
            for (const std::uint32_t cell : {each.from, each.to})
                if (std::ranges::find(touched_, cell) == touched_.end()) touched_.push_back(cell);
    }
    double loss_of_touched() const {
        double sum = 0;
        for (const std::uint32_t cell : touched_) sum += cells_[cell].loss;
        return sum;
    }
    void pass_over() {
        for (const Transfer& each : transfers_) leave(each.record, cells_[each.from]);
        for (const Transfer& each : transfers_) enter(each.record, cells_[each.to]);
        for (const std::uint32_t cell : touched_) settle(cells_[cell]);
    }

    // Recounts everything for the members there are, in any order.
    void fill(Cell& cell) {
        std::ranges::sort(cell.members);
        for (std::size_t g = 0; g < guarantees_.size(); ++g) {
            Kept& kept = cell.kept[g];
            kept.codes.clear();
            for (const std::uint32_t record : cell.members) kept.codes.push_back(code(g, record));
            std::ranges::sort(kept.codes);
            kept.sum = std::accumulate(kept.codes.begin(), kept.codes.end(), std::int64_t{0});
        }
        settle(cell);
        ++cell.n_changes;
    }

    // Recounts what depends on all members.
    void settle(Cell& cell) {
        cell.excess = 0;
        if (cell.size() == 0) return;
        measure(cell);
        for (std::size_t g = 0; g < guarantees_.size(); ++g) {
            cell.excess += guarantees_[g]->excess(cell.kept[g].codes);
            cell.kept[g].memory = guarantees_[g]->memory(cell.kept[g].codes);
        }
    }
    // The centroid and the distances from it, seen from the first member: rounding does not grow with the coordinates.
    void measure(Cell& cell) {
        const double* first = row(cell.members.front());
        shift_.assign(m_, 0.0);
        for (const std::uint32_t record : cell.members)
            for (std::size_t j = 0; j < m_; ++j) shift_[j] += row(record)[j] - first[j];
        cell.centroid.resize(m_);
        for (std::size_t j = 0; j < m_; ++j) {
            shift_[j] /= cell.weight();
            cell.centroid[j] = first[j] + shift_[j];
            centroids_[cell.number * width_ + j] = static_cast<float>(cell.centroid[j]);
        }
        cell.own2.resize(cell.size());
        cell.loss = 0;
        for (std::size_t i = 0; i < cell.size(); ++i) {
            double sum = 0;
            for (std::size_t j = 0; j < m_; ++j) {
                const double difference = row(cell.members[i])[j] - first[j] - shift_[j];
                sum += difference * difference;
            }
            cell.own2[i] = sum;
            cell.loss += sum;
        }
        cell.radius = std::sqrt(*std::ranges::max_element(cell.own2));
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

    double loss() const {
        double sum = 0;
        for (const Cell& cell : cells_) sum += cell.loss;
        return sum;
    }
    // What rounding can make of squares of this size: of the squares themselves, and of the differences squared.
    double rounding(double squares) const {
        return least_share * squares + coordinate_error * std::sqrt(static_cast<double>(m_) * squares);
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
            n_wanted = std::max<std::size_t>(n_wanted, 1);
            lists_ = nearest_neighbours({centroids_.data(), n_cells, width_}, n_wanted, loops_, alone, *watch_);
            n_listed_ = lists_.size() / n_cells;
        }
        compared_.assign(lists_.size(), 0);
    }
    std::span<const std::uint32_t> neighbours(std::size_t c) const {
        return std::span(lists_).subspan(c * n_listed_, n_listed_);
    }

    // ---- lowering the loss

    // Once over all pairs of neighbouring cells of which one has changed since they were last compared.
    void sweep(std::size_t round) {
        for (std::size_t a = 0; a < cells_.size(); ++a) {
            for (std::size_t i = 0; i < n_listed_ && sound(cells_[a]); ++i) {
                const std::uint32_t b = lists_[a * n_listed_ + i];
                if (b == none || !sound(cells_[b])) continue;
                if (b < a && listed(b, a)) continue;
                std::uint32_t& compared = compared_[a * n_listed_ + i];
                if (compared == cells_[a].n_changes + cells_[b].n_changes) continue;
                if (improve_fully(cells_[a], cells_[b])) compared = cells_[a].n_changes + cells_[b].n_changes;
            }
            watch_->tick(round * n_ + a * n_ / cells_.size());
        }
    }
    // Takes the best steps between two cells, one after the other, as many as two a record; says whether none is left.
    bool improve_fully(Cell& a, Cell& b) {
        for (std::size_t n_left = 2 * (a.size() + b.size()); n_left > 0; --n_left) {
            if (!improve(a, b)) return true;
            watch_->tick();
        }
        return false;
    }
    static bool sound(const Cell& cell) { return cell.size() > 0 && cell.excess <= 0; }
    bool listed(std::uint32_t a, std::size_t b) const {
        return cells_.size() <= few_cells ||
               std::ranges::find(neighbours(a), static_cast<std::uint32_t>(b)) != neighbours(a).end();
    }

    bool may_give(const Cell& from, const Cell& to) const { return from.size() > k_ && to.size() < most_; }

    // Class, key and slot of a record.
    using Ranked = std::tuple<std::uint8_t, double, std::uint32_t>;

    // Two cells, and what is the same for all steps between them.
    struct Pair {
        double apart2 = 0;
        double share = 0;
    };

    // Takes the best step between two cells that lowers the loss and keeps every guarantee.
    bool improve(Cell& a, Cell& b) {
        Step best;
        const Pair pair = lean(a, b);
        if (alike_ && exchange_alike(a, b, pair)) return true;
        shortlist(a, b, pair);
        if (may_give(a, b)) find_move(a, b, pair, 1, best);
        if (may_give(b, a)) find_move(b, a, pair, -1, best);
        find_swap(a, b, pair, best);
        if (!best) return false;
        list(a, b, best);
        return transfer_if_lower();
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

    // Records of the same values change places: all of a class that are nearer to the other cell along the way between
    // the centroids, the farthest first. No guarantee can tell, and since the loss is concave in where the two sums
    // are, it falls by more than the ways add up to.
    bool exchange_alike(Cell& a, Cell& b, const Pair& pair) {
        if (a.size() * b.size() <= many_pairs || !alike_would_gain(a, b, pair)) return false;
        by_class(a, lean_a_, -1, ranked_a_);
        by_class(b, lean_b_, 1, ranked_b_);
        transfers_.clear();
        for (std::size_t i = 0, j = 0; i < ranked_a_.size() && j < ranked_b_.size();) {
            const auto [class_a, key_a, x] = ranked_a_[i];
            const auto [class_b, key_b, y] = ranked_b_[j];
            if (class_a != class_b) {
                ++(class_a < class_b ? i : j);
                continue;
            }
            if (2 * (key_a + key_b + pair.apart2) < -rounding(a.own2[x] + b.own2[y] + pair.apart2)) {
                transfers_.push_back({a.members[x], a.number, b.number});
                transfers_.push_back({b.members[y], b.number, a.number});
                ++i;
                ++j;
            } else {
                // Nothing more in this class.
                while (i < ranked_a_.size() && std::get<0>(ranked_a_[i]) == class_a) ++i;
            }
        }
        return !transfers_.empty() && transfer_if_lower();
    }
    // Whether a record of some class that leans most to the other cell leans more than the one it would change with.
    bool alike_would_gain(const Cell& a, const Cell& b, const Pair& pair) {
        top_.assign(n_classes_, {-infinity, none});
        for (std::size_t i = 0; i < a.size(); ++i) {
            double& most = top_[class_of_[a.members[i]]].first;
            most = std::max(most, lean_a_[i]);
        }
        for (std::size_t i = 0; i < b.size(); ++i)
            if (lean_b_[i] + pair.apart2 < top_[class_of_[b.members[i]]].first) return true;
        return false;
    }
    // The members of a cell by class and, within it, by how far they lean.
    void by_class(const Cell& cell, const std::vector<double>& lean, int sign, std::vector<Ranked>& out) const {
        out.clear();
        for (std::uint32_t i = 0; i < cell.size(); ++i) out.emplace_back(class_of_[cell.members[i]], sign * lean[i], i);
        std::ranges::sort(out);
    }

    // Lists the records that steps between two cells are looked for among: all, or, where that would be many pairs, of
    // each class the one that gains most by going over, if who takes its place is not looked at.
    void shortlist(const Cell& a, const Cell& b, const Pair& pair) {
        shortlist(a, lean_a_, 1, a.size() * b.size() > many_pairs, pair, slots_a_);
        shortlist(b, lean_b_, -1, a.size() * b.size() > many_pairs, pair, slots_b_);
    }
    void shortlist(const Cell& cell, const std::vector<double>& lean, int sign, bool few, const Pair& pair,
                   std::vector<std::uint32_t>& out) {
        out.clear();
        if (!few) {
            out.resize(cell.size());
            std::iota(out.begin(), out.end(), 0u);
            return;
        }
        top_.assign(n_classes_, {-infinity, none});
        for (std::uint32_t i = 0; i < cell.size(); ++i) {
            // Seen from the middle between the cells, whose partner is not known yet.
            const double key = sign * 2 * lean[i] + pair.share * (cell.own2[i] - sign * lean[i]);
            auto& top = top_[class_of_[cell.members[i]]];
            if (key > top.first) top = {key, i};
        }
        for (const auto& [key, i] : top_)
            if (i != none) out.push_back(i);
    }

    // `sign`: 1 where `across_` leads from the giving cell to the other, else -1.
    void find_move(const Cell& from, const Cell& to, const Pair& pair, int sign, Step& best) {
        const double leave = from.weight() / (from.weight() - 1);
        const double join = to.weight() / (to.weight() + 1);
        const std::vector<double>& lean = sign > 0 ? lean_a_ : lean_b_;
        for (const std::uint32_t i : sign > 0 ? slots_a_ : slots_b_) {
            const double to2 = from.own2[i] - 2 * sign * lean[i] + pair.apart2;
            const std::uint32_t record = from.members[i];
            const double change = join * to2 - leave * from.own2[i];
            if (change >= best.change) continue;
            const double limit = best.change - rounding(from.own2[i] + pair.apart2);
            if (!worthwhile(from, to, record, none, limit, change)) continue;
            best = sign > 0 ? Step{change, i, none} : Step{change, none, i};
        }
    }

    void find_swap(const Cell& a, const Cell& b, const Pair& pair, Step& best) {
        const double most_lean = *std::ranges::max_element(lean_a_);
        if (!set_bounds(a, 0, b, 0)) return;
        radius_.resize(a.size());
        for (std::size_t i = 0; i < a.size(); ++i) radius_[i] = std::sqrt(a.own2[i]);
        for (const std::uint32_t y : slots_b_) {
            const double lean_y = lean_b_[y] + pair.apart2;
            const double to_a = std::sqrt(std::max(b.own2[y] + 2 * lean_b_[y] + pair.apart2, 0.0));
            const double farthest = a.radius + to_a;
            if (2 * (lean_y - most_lean) - farthest * farthest * pair.share >= best.change) continue;
            for (const std::uint32_t x : slots_a_) {
                const double along = 2 * (lean_y - lean_a_[x]);
                const double reach = radius_[x] + to_a;
                if (along - reach * reach * pair.share >= best.change) continue;
                const std::uint32_t record_a = a.members[x];
                const std::uint32_t record_b = b.members[y];
                if (!within_bounds(record_a, record_b)) continue;
                const double change = along - distance2(record_a, record_b) * pair.share;
                if (change >= best.change) continue;
                const double limit = best.change - rounding(a.own2[x] + b.own2[y] + pair.apart2);
                if (!worthwhile(a, b, record_a, record_b, limit, change)) continue;
                best = {change, x, y};
            }
        }
    }

    // Whether a step is better than `limit` and no guarantee says no.
    bool worthwhile(const Cell& a, const Cell& b, std::uint32_t x, std::uint32_t y, double limit, double change) {
        return change < limit && excess_after(a, x, y) <= 0 && excess_after(b, y, x) <= 0;
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
            if (bound.low > bound.high || most < bound.low || least > bound.high) return false;
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

    void list(const Cell& a, const Cell& b, const Step& step) {
        transfers_.clear();
        if (step.from_a != none) transfers_.push_back({a.members[step.from_a], a.number, b.number});
        if (step.from_b != none) transfers_.push_back({b.members[step.from_b], b.number, a.number});
    }

    // Records of the same values change places all around: three and more cells each pass one on to the next, where no
    // two of them can gain any more by themselves. No guarantee can tell.
    void rotate() {
        for (std::uint32_t kind = 0; kind < n_classes_; ++kind) {
            find_passes(kind);
            for (std::size_t round = 0; round < most_rotations; ++round) {
                dirty_.clear();
                for (const auto& cycle : cycles_.find({n_listed_, lists_, pass_cost_})) pass_on(cycle);
                if (dirty_.empty()) break;
                for (const std::uint32_t cell : dirty_) renew_passes(cell);
                watch_->tick();
            }
        }
    }
    // Of each cell and each of its neighbours, the record of a class that is passed on for the least: how much farther
    // it is from the other centroid.
    void find_passes(std::uint32_t kind) {
        of_kind_.resize(cells_.size());
        pass_cost_.assign(lists_.size(), infinity);
        passed_.assign(lists_.size(), none);
        for (const Cell& cell : cells_) {
            of_kind_[cell.number].clear();
            for (const std::uint32_t record : cell.members)
                if (class_of_[record] == kind) of_kind_[cell.number].push_back(record);
        }
        for (std::uint32_t way = 0; way < lists_.size(); ++way) {
            find_pass(way);
            if (way % n_listed_ == 0) watch_->tick();
        }
    }
    void find_pass(std::uint32_t way) {
        pass_cost_[way] = infinity;
        const std::uint32_t from = static_cast<std::uint32_t>(way / n_listed_);
        const std::uint32_t to = lists_[way];
        if (to == none || !sound(cells_[from]) || !sound(cells_[to])) return;
        for (const std::uint32_t record : of_kind_[from]) {
            const double cost = distance2(record, cells_[to]) - distance2(record, cells_[from]);
            if (cost >= pass_cost_[way]) continue;
            pass_cost_[way] = cost;
            passed_[way] = record;
        }
    }
    // The ways out of a cell that has changed, and those into it, as far as it is the neighbour of its neighbours.
    void renew_passes(std::uint32_t cell) {
        for (std::size_t i = 0; i < n_listed_; ++i) {
            const auto way = static_cast<std::uint32_t>(cell * n_listed_ + i);
            find_pass(way);
            if (lists_[way] == none) continue;
            for (std::size_t j = 0; j < n_listed_; ++j) {
                const auto back = static_cast<std::uint32_t>(lists_[way] * n_listed_ + j);
                if (lists_[back] == cell) find_pass(back);
            }
        }
    }
    // Passes records on around a cycle if the loss falls.
    void pass_on(std::span<const std::uint32_t> cycle) {
        double cost = 0;
        double squares = 0;
        transfers_.clear();
        for (const std::uint32_t way : cycle) {
            const auto from = static_cast<std::uint32_t>(way / n_listed_);
            transfers_.push_back({passed_[way], from, lists_[way]});
            cost += pass_cost_[way];
            squares += distance2(passed_[way], cells_[from]) + distance2(passed_[way], cells_[lists_[way]]);
        }
        if (cost >= -rounding(squares) || !transfer_if_lower()) return;
        for (const auto& [record, from, to] : transfers_) {
            std::erase(of_kind_[from], record);
            of_kind_[to].push_back(record);
        }
        dirty_.insert(dirty_.end(), touched_.begin(), touched_.end());
    }

    // ---- mending

    // Cells in excess ask those near them, then farther away; they merge as the last resort.
    void mend(const Plan& plan) {
        std::vector<std::uint32_t> failing = in_excess();
        if (failing.empty()) return;
        for (const std::uint32_t c : failing) mend(c, neighbours(c));
        failing = in_excess();
        for (std::size_t reach = 2 * std::max<std::size_t>(plan.n_neighbours, 1); !failing.empty() && n_alive() > 1;
             reach *= 4) {
            const bool everywhere = reach >= cells_.size() && plan.at_any_cost;
            list_alive();
            for (const std::uint32_t c : failing) {
                if (cells_[c].size() == 0 || cells_[c].excess <= 0) continue;
                auto others = near_able(cells_[c], reach);
                if (others.empty()) others = nearest_able(cells_[c], reach);
                mend(c, others);
                if (everywhere && cells_[c].excess > 0) merge(c);
            }
            failing = in_excess();
            if (!plan.at_any_cost) break;
        }
    }

    void list_alive() {
        alive_.clear();
        for (const Cell& cell : cells_)
            if (cell.size() > 0) alive_.push_back(cell.number);
    }

    std::vector<std::uint32_t> in_excess() const {
        std::vector<std::uint32_t> found;
        for (std::uint32_t c = 0; c < cells_.size(); ++c)
            if (cells_[c].size() > 0 && cells_[c].excess > 0) found.push_back(c);
        std::ranges::stable_sort(found, std::greater<>(), [&](std::uint32_t c) { return cells_[c].excess; });
        return found;
    }

    // Takes, as long as there is one, the step with another cell that brings most for its loss. All are asked once;
    // then those again that had a good offer, until none of them has one any more. Ends, since each step takes a share
    // of the excess away (see `enough`).
    void mend(std::uint32_t c, std::span<const std::uint32_t> others) {
        Cell& a = cells_[c];
        for (bool all = true; a.size() > 0 && a.excess > 0;) {
            if (all) {
                offers_.clear();
                for (const std::uint32_t b : others) offers_.emplace_back(0.0, b);
            }
            std::uint32_t partner = none;
            const Step best = best_offer(a, partner);
            if (partner == none && all) return;
            all = partner == none;
            if (all) continue;
            list(a, cells_[partner], best);
            transfer();
        }
    }
    // Asks the cells in the list for steps; keeps the best in it, with what they offer.
    Step best_offer(Cell& a, std::uint32_t& partner) {
        Step best;
        double least = infinity;
        found_.clear();
        for (const auto& [price, b] : offers_) {
            if (b == none || b == a.number || cells_[b].size() == 0) continue;
            double limit = 1.3 * least;
            if (out_of_reach(a, cells_[b], limit)) continue;
            watch_->tick();
            const Step step = mending_step(a, cells_[b], limit);
            if (!step) continue;
            found_.emplace_back(limit, b);
            if (limit >= least) continue;
            least = limit;
            best = step;
            partner = b;
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
        shortlist(a, b, pair);
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
            for (const std::uint32_t x : slots_a_)
                consider(b.weight() / (b.weight() + 1) * (a.own2[x] - 2 * lean_a_[x] + pair.apart2) -
                             a.weight() / (a.weight() - 1) * a.own2[x],
                         x, none);
        if (may_give(b, a))
            for (const std::uint32_t y : slots_b_)
                consider(a.weight() / (a.weight() + 1) * (b.own2[y] + 2 * lean_b_[y] + pair.apart2) -
                             b.weight() / (b.weight() - 1) * b.own2[y],
                         none, y);
        if (!swaps) return best;
        for (const std::uint32_t y : slots_b_) {
            const double to_a = std::sqrt(std::max(b.own2[y] + 2 * lean_b_[y] + pair.apart2, 0.0));
            for (const std::uint32_t x : slots_a_) {
                if (!within_bounds(a.members[x], b.members[y])) continue;
                const double along = 2 * (lean_b_[y] + pair.apart2 - lean_a_[x]);
                const double reach = std::sqrt(a.own2[x]) + to_a;
                const double gone = most_gone(a, b, a.members[x], b.members[y]);
                if (along - reach * reach * pair.share >= least * gone) continue;
                const double change = along - distance2(a.members[x], b.members[y]) * pair.share;
                if (std::max(change, 0.0) + tiny_ >= least * gone) continue;
                consider(change, x, y);
            }
        }
        return best;
    }

    // How much excess a swap takes away at most.
    double most_gone(const Cell& a, const Cell& b, std::uint32_t x, std::uint32_t y) const {
        double effect = 0;
        for (std::size_t g = 0; g < guarantees_.size(); ++g)
            effect += guarantees_[g]->most_effect(code(g, x), code(g, y));
        return std::min(a.excess, effect / a.weight()) + std::min(b.excess, effect / b.weight());
    }

    // Cells near to a cell that a swap with it is not ruled out for: neighbours, their neighbours, and so on. None
    // where that leads too far.
    std::vector<std::uint32_t> near_able(const Cell& a, std::size_t n_wanted) {
        std::vector<std::uint32_t> able;
        std::vector<std::uint32_t> found{a.number};
        met_.resize(cells_.size(), 0);
        met_[a.number] = ++n_walks_;
        for (std::size_t next = 0; next < found.size() && able.size() < n_wanted; ++next) {
            for (const std::uint32_t b : neighbours(found[next])) {
                if (b == none || std::exchange(met_[b], n_walks_) == n_walks_ || cells_[b].size() == 0) continue;
                found.push_back(b);
                if (set_bounds(a, enough(a), cells_[b], cells_[b].excess)) able.push_back(b);
            }
            if (found.size() > 100 * n_wanted) return {};
        }
        return able.size() < n_wanted ? std::vector<std::uint32_t>{} : able;
    }

    // The cells nearest to a cell, nearest first, of those alive that a swap with it is not ruled out for.
    std::vector<std::uint32_t> nearest_able(const Cell& a, std::size_t n_wanted) {
        apart2_.resize(alive_.size());
        loops_.gather(centroids_.data(), width_, alive_, &centroids_[a.number * width_], apart2_.data());
        // Distances are not negative: their bits are in the same order, and a number is compared faster than a pair.
        keys_.resize(alive_.size());
        for (std::size_t i = 0; i < alive_.size(); ++i)
            keys_[i] = std::uint64_t{std::bit_cast<std::uint32_t>(apart2_[i])} << 32 | alive_[i];
        std::vector<std::uint32_t> able;
        for (std::size_t from = 0; from < keys_.size() && able.size() < n_wanted;) {
            const std::size_t to = std::min(std::max(4 * from, 4 * n_wanted), keys_.size());
            const auto begin = keys_.begin() + static_cast<std::ptrdiff_t>(from);
            const auto end = keys_.begin() + static_cast<std::ptrdiff_t>(to);
            if (to < keys_.size()) std::nth_element(begin, end, keys_.end());
            std::sort(begin, end);
            for (; from < to && able.size() < n_wanted; ++from) {
                const Cell& b = cells_[keys_[from] & none];
                if (b.number == a.number || b.size() == 0) continue;
                if (set_bounds(a, enough(a), b, b.excess)) able.push_back(b.number);
            }
        }
        return able;
    }
    // What a step that mends may leave: little, so that few are needed; but one record among many can only do so much.
    static double enough(const Cell& cell) { return cell.excess - std::min(0.3 * cell.excess, 0.25 / cell.weight()); }

    // Merges a cell with the one that brings most for its loss; where none brings anything, with the nearest. The last
    // cell there is has none to merge with.
    void merge(std::uint32_t c) {
        Cell& a = cells_[c];
        std::uint32_t partner = none;
        std::uint32_t nearest = none;
        double least = infinity;
        double least_cost = infinity;
        for (const Cell& b : cells_) {
            if (b.size() == 0 || b.number == c) continue;
            double apart2 = 0;
            for (std::size_t j = 0; j < m_; ++j) {
                const double difference = b.centroid[j] - a.centroid[j];
                apart2 += difference * difference;
            }
            const double cost = a.weight() * b.weight() / (a.weight() + b.weight()) * apart2 + tiny_;
            if (cost < least_cost) {
                least_cost = cost;
                nearest = b.number;
            }
            if (cost >= least * (a.excess + b.excess)) continue;
            const double gone = a.excess + b.excess - excess_together(a, b);
            if (gone <= 0 || (gone < 0.1 * a.excess && partner != none)) continue;
            if (cost < least * gone) {
                least = cost / gone;
                partner = b.number;
            }
        }
        if (partner == none) partner = nearest;
        if (partner == none) return;
        Cell& b = cells_[partner];
        b.members.insert(b.members.end(), a.members.begin(), a.members.end());
        most_ = std::max(most_, b.size());
        fill(b);
        empty(a);
    }
    void empty(Cell& cell) {
        cell.members.clear();
        cell.own2.clear();
        cell.loss = 0;
        cell.excess = 0;
        ++cell.n_changes;
    }
    // Cuts cells of 2k records and more in two where both halves keep everything: that always lowers the loss. Says
    // whether any was.
    bool split_large() {
        const std::size_t n_before = cells_.size();
        for (std::size_t c = 0; c < cells_.size(); ++c)
            while (cells_[c].size() >= 2 * k_ && cells_[c].excess <= 0 && split(c)) watch_->tick();
        return cells_.size() > n_before;
    }
    // The upper half of each class goes, along the widest column. What is then off is mended between the two.
    bool split(std::size_t c) {
        const std::size_t column = widest(cells_[c]);
        std::vector<std::uint32_t> order = cells_[c].members;
        std::ranges::sort(order, {}, [&](std::uint32_t i) { return std::tuple(class_of_[i], row(i)[column], i); });
        add_cell();
        Cell& a = cells_[c];
        Cell& b = cells_.back();
        a.members.clear();
        std::size_t owed = 0;  // half records, over all classes
        for (std::size_t from = 0, to; from < order.size(); from = to) {
            for (to = from; to < order.size() && class_of_[order[to]] == class_of_[order[from]];) ++to;
            const std::size_t half = (to - from + owed) / 2;
            owed = (to - from + owed) % 2;
            for (std::size_t i = from; i < to; ++i) (i < to - half ? a : b).members.push_back(order[i]);
        }
        fill(a);
        fill(b);
        if (a.excess > 0) mend(a.number, std::span(&b.number, 1));
        if (b.excess > 0) mend(b.number, std::span(&a.number, 1));
        if (a.excess <= 0 && b.excess <= 0) return true;
        a.members = order;
        fill(a);
        cells_.pop_back();
        centroids_.resize(centroids_.size() - width_);
        return false;
    }
    void add_cell() {
        Cell& cell = cells_.emplace_back();
        cell.number = static_cast<std::uint32_t>(cells_.size() - 1);
        cell.kept.resize(guarantees_.size());
        centroids_.resize(centroids_.size() + width_, 0.0f);
    }
    std::size_t widest(const Cell& cell) const {
        std::vector<double> spread(m_, 0.0);
        for (const std::uint32_t record : cell.members)
            for (std::size_t j = 0; j < m_; ++j) {
                const double difference = row(record)[j] - cell.centroid[j];
                spread[j] += difference * difference;
            }
        return static_cast<std::size_t>(std::ranges::max_element(spread) - spread.begin());
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
    Watch* watch_ = nullptr;
    std::vector<std::size_t> original_;  // the number in the table of each record
    std::vector<double> rows_;
    std::vector<const Guarantee*> guarantees_;
    std::vector<std::vector<Code>> codes_;  // of each guarantee
    std::vector<float> centroids_;
    std::vector<Cell> cells_;
    std::vector<std::uint32_t> lists_;  // the cells near each cell
    std::size_t n_listed_ = 0;
    std::vector<std::uint32_t> compared_;  // of each pair: the changes of both when they were last compared
    double tiny_ = 1e-12;
    std::vector<double> across_, lean_a_, lean_b_, radius_, shift_;
    std::vector<Transfer> transfers_;     // the step at hand
    std::vector<std::uint32_t> touched_;  // the cells of the last transfers
    std::vector<Interval> bounds_;
    std::vector<std::uint32_t> alive_;
    std::vector<float> apart2_;
    std::vector<std::uint64_t> keys_;
    std::vector<std::uint32_t> met_;  // on which walk each cell was met last
    std::uint32_t n_walks_ = 0;
    std::vector<std::pair<double, std::uint32_t>> offers_, found_;  // prices and cells
    std::vector<Code> changed_;
    NegativeCycles cycles_;
    std::vector<double> pass_cost_;
    std::vector<std::uint32_t> passed_, dirty_;
    std::vector<std::vector<std::uint32_t>> of_kind_;  // the records of each cell that are of the class looked at
    bool alike_ = false;                               // whether records of a class have the same codes
    std::size_t n_classes_ = 1;
    std::vector<std::uint8_t> class_of_;  // of each record
    std::vector<std::uint32_t> slots_a_, slots_b_;
    std::vector<std::pair<double, std::uint32_t>> top_;
    std::vector<Ranked> ranked_a_, ranked_b_;
};

}  // namespace shoal
