// Searches on where refining ends: random steps between neighbouring cells, taken also when they raise the loss a
// little, less and less so (simulated annealing).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "numeric/centred_rows.hpp"
#include "numeric/portable_random.hpp"
#include "numeric/rows.hpp"
#include "parallel/polling.hpp"
#include "parallel/pool.hpp"
#include "partition/cells.hpp"
#include "search/neighbours.hpp"

namespace shoal {

class Annealer {
  public:
    // Changes the labels in place. They number the cells from 0 without gaps, each with at least k records.
    Annealer(Rows<const double> X, std::size_t k, std::uint64_t seed, std::span<std::int64_t> labels, Poller& poller)
        : k_(k), n_(X.size()), m_(X.dims()), random_(seed), labels_(labels), poller_(poller) {
        std::vector<std::size_t> order(n_);
        std::iota(order.begin(), order.end(), std::size_t{0});
        Pool alone(1);
        rows_ = centred_rows(X, order, alone);
        std::int64_t n_cells = 0;
        for (const std::int64_t label : labels) n_cells = std::max(n_cells, label + 1);
        cells_.resize(static_cast<std::size_t>(n_cells));
        cell_.resize(n_);
        slot_.resize(n_);
        for (Cell& cell : cells_) cell.sums.assign(m_, 0.0);
        for (std::uint32_t i = 0; i < n_; ++i) enter(i, static_cast<std::uint32_t>(labels[i]));
        find_neighbours();
    }

    // Takes `n_steps` random steps, from hot, in shares of the loss of a record, down to hot * e^-fall. The best is
    // kept, also if the poller stops the work.
    void run(std::uint64_t n_steps, double hot, double fall) {
        now_ = best_ = loss_of(cells_);
        kept_ = cell_;
        try {
            cool_down(n_steps, hot, fall);
        } catch (...) {
            write_best();
            throw;
        }
        write_best();
        poller_.finish(static_cast<std::size_t>(n_steps));
    }

  private:
    struct Cell {
        std::vector<std::uint32_t> members;
        std::vector<double> sums;
        double size() const { return static_cast<double>(members.size()); }
    };

    void find_neighbours() {
        const std::size_t width = (m_ + 7) / 8 * 8;
        std::vector<float> floats(n_ * width, 0.0f);
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t j = 0; j < m_; ++j) floats[i * width + j] = static_cast<float>(rows_[i * m_ + j]);
        const std::size_t n_wanted = std::clamp<std::size_t>(2 * k_, 16, 64);
        Pool alone(1);
        lists_ = nearest_neighbours({floats.data(), n_, width}, n_wanted, *loops(), alone, poller_);
        n_listed_ = n_ > 0 ? lists_.size() / n_ : 0;
    }

    const double* row(std::uint32_t record) const { return &rows_[record * m_]; }

    double distance2(std::uint32_t record, const Cell& cell) const {
        const double share = 1 / cell.size();
        double sum = 0;
        for (std::size_t j = 0; j < m_; ++j) {
            const double difference = row(record)[j] - cell.sums[j] * share;
            sum += difference * difference;
        }
        return sum;
    }

    double loss_of(const std::vector<Cell>& cells) const {
        double sum = 0;
        for (const Cell& cell : cells)
            for (const std::uint32_t record : cell.members) sum += distance2(record, cell);
        return sum;
    }

    double cost_to_join(std::uint32_t record, const Cell& cell) const {
        return cell.size() / (cell.size() + 1) * distance2(record, cell);
    }
    double gain_to_leave(std::uint32_t record, const Cell& cell) const {
        return cell.members.size() < 2 ? 0.0 : cell.size() / (cell.size() - 1) * distance2(record, cell);
    }

    void leave(std::uint32_t record) {
        Cell& cell = cells_[cell_[record]];
        cell.members[slot_[record]] = cell.members.back();
        slot_[cell.members.back()] = slot_[record];
        cell.members.pop_back();
        for (std::size_t j = 0; j < m_; ++j) cell.sums[j] -= row(record)[j];
    }
    void enter(std::uint32_t record, std::uint32_t c) {
        Cell& cell = cells_[c];
        cell_[record] = c;
        slot_[record] = static_cast<std::uint32_t>(cell.members.size());
        cell.members.push_back(record);
        for (std::size_t j = 0; j < m_; ++j) cell.sums[j] += row(record)[j];
    }
    void relocate(std::uint32_t record, std::uint32_t c) {
        leave(record);
        enter(record, c);
    }

    std::uint32_t below(std::size_t n) { return random_.below(n); }

    bool accept(double change) {
        return change <= 0 || (change < 20 * temperature_ && random_.share() < exponential(-change / temperature_));
    }

    // One random step; returns by how much it changed the loss.
    double propose() {
        const std::uint32_t x = below(n_);
        const std::uint32_t y = lists_[x * n_listed_ + below(n_listed_)];
        if (y == none || cell_[x] == cell_[y]) return 0;
        const std::uint32_t draw = below(256);
        if (draw == 0) return dissolve(cell_[x]);
        if (draw == 1) return found(x);
        const Cell& A = cells_[cell_[x]];
        const Cell& B = cells_[cell_[y]];
        const bool roomy = B.members.size() < 2 * k_ - 1;
        if (A.members.size() > k_ && roomy && draw % 2 == 0) return move(x, cell_[y]);
        if (roomy && draw % 4 == 1) return replace(x, cell_[y]);
        return swap(x, cell_[y]);
    }

    double move(std::uint32_t x, std::uint32_t b) {
        const double change = cost_to_join(x, cells_[b]) - gain_to_leave(x, cells_[cell_[x]]);
        if (!accept(change)) return 0;
        relocate(x, b);
        return change;
    }

    // The best partner in the other cell.
    double swap(std::uint32_t x, std::uint32_t b) {
        const std::uint32_t a = cell_[x];
        const Cell& A = cells_[a];
        const Cell& B = cells_[b];
        const double share_a = 1 / A.size();
        const double share_b = 1 / B.size();
        across_.resize(m_);
        for (std::size_t j = 0; j < m_; ++j) across_[j] = B.sums[j] * share_b - A.sums[j] * share_a;
        double least = std::numeric_limits<double>::infinity();
        std::uint32_t best = none;
        for (const std::uint32_t y : B.members) {
            double along = 0;
            double apart2 = 0;
            for (std::size_t j = 0; j < m_; ++j) {
                const double delta = row(y)[j] - row(x)[j];
                along += delta * across_[j];
                apart2 += delta * delta;
            }
            const double change = 2 * along - apart2 * (share_a + share_b);
            if (change < least) {
                least = change;
                best = y;
            }
        }
        if (!accept(least)) return 0;
        relocate(x, b);
        relocate(best, a);
        return least;
    }

    // x goes to b, and a record of a third cell that has one to spare takes its place.
    double replace(std::uint32_t x, std::uint32_t b) {
        const std::uint32_t a = cell_[x];
        const std::uint32_t beside = cells_[a].members[below(cells_[a].members.size())];
        if (beside == x) return 0;
        const std::uint32_t z = lists_[beside * n_listed_ + below(n_listed_)];
        if (z == none || cell_[z] == a || cell_[z] == b || cells_[cell_[z]].members.size() <= k_) return 0;
        const std::uint32_t c = cell_[z];
        double change = cost_to_join(x, cells_[b]) - gain_to_leave(x, cells_[a]);
        change -= gain_to_leave(z, cells_[c]);
        relocate(x, b);
        change += cost_to_join(z, cells_[a]);
        if (accept(change)) {
            relocate(z, a);
            return change;
        }
        relocate(x, a);
        return 0;
    }

    // A cell goes; its records join the cells of their neighbours.
    double dissolve(std::uint32_t a) {
        const std::vector<std::uint32_t> members = cells_[a].members;
        double change = 0;
        for (const std::uint32_t record : members) change -= distance2(record, cells_[a]);
        std::size_t n_gone = 0;
        for (const std::uint32_t record : members) {
            double least = std::numeric_limits<double>::infinity();
            std::uint32_t best = none;
            for (std::size_t i = 0; i < n_listed_; ++i) {
                const std::uint32_t y = lists_[record * n_listed_ + i];
                if (y == none || cell_[y] == a || cells_[cell_[y]].members.size() >= 2 * k_ - 1) continue;
                const double cost = cost_to_join(record, cells_[cell_[y]]);
                if (cost < least) {
                    least = cost;
                    best = cell_[y];
                }
            }
            if (best == none) break;
            relocate(record, best);
            change += least;
            ++n_gone;
        }
        if (n_gone == members.size() && accept(change)) {
            empty_.push_back(a);
            return change;
        }
        for (std::size_t i = n_gone; i-- > 0;) relocate(members[i], a);
        return 0;
    }

    // A record and its nearest neighbours that can be spared found a cell.
    double found(std::uint32_t x) {
        if (empty_.empty()) {
            empty_.push_back(static_cast<std::uint32_t>(cells_.size()));
            cells_.emplace_back().sums.assign(m_, 0.0);
        }
        const std::uint32_t a = empty_.back();
        std::fill(cells_[a].sums.begin(), cells_[a].sums.end(), 0.0);
        std::vector<std::pair<std::uint32_t, std::uint32_t>> came;  // records and the cells they came from
        double change = 0;
        for (std::size_t i = 0; i <= n_listed_ && came.size() < k_; ++i) {
            const std::uint32_t record = i == 0 ? x : lists_[x * n_listed_ + i - 1];
            if (record == none || cells_[cell_[record]].members.size() <= k_) {
                if (i == 0) break;
                continue;
            }
            came.emplace_back(record, cell_[record]);
            change -= gain_to_leave(record, cells_[cell_[record]]);
            relocate(record, a);
        }
        if (came.size() == k_) {
            for (const std::uint32_t record : cells_[a].members) change += distance2(record, cells_[a]);
            if (accept(change)) {
                empty_.pop_back();
                return change;
            }
        }
        for (std::size_t i = came.size(); i-- > 0;) relocate(came[i].first, came[i].second);
        return 0;
    }

    void cool_down(std::uint64_t n_steps, double hot, double fall) {
        const double typical = now_ / static_cast<double>(n_);
        if (!(typical > 0) || cells_.size() < 2) n_steps = 0;
        for (std::uint64_t step = 0; step < n_steps; ++step) {
            if (step % 1024 == 0) {
                temperature_ =
                    hot * typical * exponential(-fall * static_cast<double>(step) / static_cast<double>(n_steps));
                poller_.tick(static_cast<std::size_t>(step));
            }
            now_ += propose();
            // Keeping is a copy: only when it is cold enough for a new best to last.
            if (now_ < best_ * (1 - 1e-6) && step % 64 == 0 && step * 2 > n_steps) {
                best_ = now_;
                kept_ = cell_;
            }
        }
    }

    // The labels are kept unless the recomputed loss is below that of the start: the running loss has rounding errors.
    void write_best() {
        const std::vector<std::uint32_t>& kept = now_ <= best_ ? cell_ : kept_;
        const std::vector<std::uint32_t> start(labels_.begin(), labels_.end());
        if (!(loss_of(kept) < loss_of(start))) return;
        number_by_first_record(kept, cells_.size(), labels_);
    }

    double loss_of(const std::vector<std::uint32_t>& cell_of) const {
        std::vector<Cell> cells(cells_.size());
        for (Cell& cell : cells) cell.sums.assign(m_, 0.0);
        for (std::uint32_t i = 0; i < n_; ++i) {
            cells[cell_of[i]].members.push_back(i);
            for (std::size_t j = 0; j < m_; ++j) cells[cell_of[i]].sums[j] += row(i)[j];
        }
        return loss_of(cells);
    }

    static constexpr std::uint32_t none = 0xffffffff;

    std::size_t k_;
    std::size_t n_;
    std::size_t m_;
    PortableRandom random_;
    std::span<std::int64_t> labels_;
    Poller& poller_;
    std::vector<double> rows_;
    std::vector<Cell> cells_;
    std::vector<std::uint32_t> cell_;  // of each record
    std::vector<std::uint32_t> slot_;  // of each record, in its cell
    std::vector<std::uint32_t> empty_;
    std::vector<std::uint32_t> lists_;
    std::size_t n_listed_ = 0;
    std::vector<double> across_;
    double temperature_ = 0;
    double now_ = 0;
    double best_ = 0;
    std::vector<std::uint32_t> kept_;  // the cells of the best so far
};

}  // namespace shoal
