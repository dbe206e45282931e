// The cells of a guarded search: records, the state of every model for each cell, and transfers between cells.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "guarded/model_vetoes.hpp"
#include "numeric/centred_rows.hpp"
#include "numeric/rows.hpp"
#include "numeric/simd.hpp"
#include "parallel/polling.hpp"
#include "parallel/pool.hpp"
#include "partition/cells.hpp"
#include "search/neighbours.hpp"

namespace shoal {

class GuardedCells {
  public:
    static constexpr std::uint32_t none = 0xffffffff;

    // The state of one model for a cell.
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
        bool is_sound() const { return size() > 0 && excess <= 0; }
    };
    // A record leaves a cell for another, by their numbers.
    struct Transfer {
        std::uint32_t record, from, to;
    };

    // What a thread needs to change cells. Threads that work at the same time share no cell.
    struct Room {
        std::vector<std::uint32_t> touched;  // the cells of the last transfers
        std::vector<double> shift;
        std::vector<Code> changed;
    };

    // The labels number the cells from 0 without gaps, each with at least k records.
    GuardedCells(Rows<const double> X, std::size_t k, std::span<const Guarded> guarded, Pool& pool, const Loops& loops,
                 std::span<const std::int64_t> labels, Poller& poller)
        : k_(k),
          n_(X.size()),
          m_(X.dims()),
          width_((X.dims() + 7) / 8 * 8),
          pool_(pool),
          loops_(loops),
          poller_(poller) {
        const std::int64_t last = labels.empty() ? -1 : *std::ranges::max_element(labels);
        const Members members(labels, static_cast<std::size_t>(last + 1), pool);
        for (std::size_t c = 0; c < members.n_cells(); ++c)
            original_.insert(original_.end(), members[c].begin(), members[c].end());
        rows_ = centred_rows(X, original_, pool);
        for (const Guarded& each : guarded) {
            guarantees_.push_back(each.guarantee.get());
            std::vector<Code>& codes = codes_.emplace_back(n_);
            for (std::size_t i = 0; i < n_; ++i) codes[i] = each.codes[original_[i]];
        }
        classify();
        most_ = std::max(2 * k - 1, 2 * n_ / std::max<std::size_t>(members.n_cells(), 1));
        build(members);
    }

    std::size_t size() const { return cells_.size(); }
    Cell& operator[](std::size_t c) { return cells_[c]; }
    const Cell& operator[](std::size_t c) const { return cells_[c]; }
    std::span<const Cell> all() const { return cells_; }
    std::size_t n_alive() const {
        return static_cast<std::size_t>(std::ranges::count_if(cells_, [](const Cell& c) { return c.size() > 0; }));
    }
    double loss() const {
        double sum = 0;
        for (const Cell& cell : cells_) sum += cell.loss;
        return sum;
    }

    std::size_t k() const { return k_; }
    std::size_t n_records() const { return n_; }
    std::size_t n_dims() const { return m_; }
    std::size_t n_guarantees() const { return guarantees_.size(); }
    const Guarantee& guarantee(std::size_t g) const { return *guarantees_[g]; }
    Pool& pool() const { return pool_; }
    Poller& poller() const { return poller_; }
    const Loops& loops() const { return loops_; }
    // Centroids as floats, in rows of whole lanes.
    Rows<const float> centroids() const { return {centroids_.data(), cells_.size(), width_}; }

    const double* row(std::uint32_t record) const { return &rows_[record * m_]; }
    Code code(std::size_t g, std::uint32_t record) const { return codes_[g][record]; }
    std::uint8_t class_of(std::uint32_t record) const { return class_of_[record]; }
    std::size_t n_classes() const { return n_classes_; }
    // Whether records of a class have the same codes.
    bool alike() const { return alike_; }

    // Whether a record may move; it may always change places with another.
    bool may_give(const Cell& from, const Cell& to) const { return from.size() > k_ && to.size() < most_; }

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
    double apart2(const Cell& a, const Cell& b) const {
        double sum = 0;
        for (std::size_t j = 0; j < m_; ++j) {
            const double difference = b.centroid[j] - a.centroid[j];
            sum += difference * difference;
        }
        return sum;
    }
    // What rounding can make of squares of this size: of the squares themselves, and of the differences squared.
    double rounding(double squares) const {
        return least_share * squares + coordinate_error * std::sqrt(static_cast<double>(m_) * squares);
    }

    // The excess of a cell that one record leaves and one enters; either may be none.
    double excess_after(const Cell& cell, std::uint32_t leaves, std::uint32_t enters, Room& room) const {
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
            excess += guarantees_[g]->excess(changed(kept.codes, g, leaves, enters, room.changed));
        }
        return excess;
    }
    // The excess of two cells as one.
    double excess_together(const Cell& a, const Cell& b, Room& room) const {
        double excess = 0;
        for (std::size_t g = 0; g < guarantees_.size(); ++g) {
            room.changed.clear();
            std::ranges::merge(a.kept[g].codes, b.kept[g].codes, std::back_inserter(room.changed));
            excess += guarantees_[g]->excess(room.changed);
        }
        return excess;
    }

    // Carries out transfers, whatever they cost.
    void transfer(std::span<const Transfer> transfers, Room& room) {
        list_touched(transfers, room.touched);
        pass_over(transfers, &Transfer::from, &Transfer::to, room);
        for (const std::uint32_t cell : room.touched) ++cells_[cell].n_changes;
    }
    // Applies them if that lowers the recomputed loss of the cells; returns whether it does. The loss of a cell depends
    // on its records alone, so steps between two cells never cycle.
    bool transfer_if_lower(std::span<const Transfer> transfers, Room& room) {
        list_touched(transfers, room.touched);
        const double before = loss_of(room.touched);
        pass_over(transfers, &Transfer::from, &Transfer::to, room);
        if (!(loss_of(room.touched) < before)) {
            pass_over(transfers, &Transfer::to, &Transfer::from, room);
            return false;
        }
        for (const std::uint32_t cell : room.touched) ++cells_[cell].n_changes;
        return true;
    }

    // An empty cell behind the others. Other cells move in memory.
    Cell& add() {
        Cell& cell = cells_.emplace_back();
        cell.number = static_cast<std::uint32_t>(cells_.size() - 1);
        cell.kept.resize(guarantees_.size());
        centroids_.resize(centroids_.size() + width_, 0.0f);
        return cell;
    }
    void remove_last() {
        cells_.pop_back();
        centroids_.resize(centroids_.size() - width_);
    }
    // Gives a cell other members, in any order.
    void refill(Cell& cell, std::vector<std::uint32_t> members) {
        cell.members = std::move(members);
        std::ranges::sort(cell.members);
        fill(cell, room_);
        most_ = std::max(most_, cell.size());
    }

    // Neighbours by centroid; all cells where they are few. Cells that are gone keep their last centroid.
    void find_neighbours(std::size_t n_wanted) {
        const std::size_t n_cells = cells_.size();
        all_listed_ = n_cells <= few_cells;
        if (all_listed_) {
            n_listed_ = n_cells - 1;
            lists_.clear();
            for (std::uint32_t a = 0; a < n_cells; ++a)
                for (std::uint32_t b = 0; b < n_cells; ++b)
                    if (a != b) lists_.push_back(b);
        } else {
            lists_ = nearest_neighbours(centroids(), std::max<std::size_t>(n_wanted, 1), loops_, pool_, poller_);
            n_listed_ = lists_.size() / n_cells;
        }
    }
    // The neighbours of all cells, one after the other, as many for each.
    std::span<const std::uint32_t> lists() const { return lists_; }
    std::size_t n_listed() const { return n_listed_; }
    std::span<const std::uint32_t> neighbours(std::size_t c) const { return lists().subspan(c * n_listed_, n_listed_); }
    bool are_listed(std::size_t a, std::size_t b) const {
        return all_listed_ || std::ranges::find(neighbours(a), static_cast<std::uint32_t>(b)) != neighbours(a).end();
    }

    // Cells are numbered by their first records.
    void write_labels(std::span<std::int64_t> labels) const {
        std::vector<std::uint32_t> cell_of(n_);
        for (const Cell& cell : cells_)
            for (const std::uint32_t record : cell.members) cell_of[original_[record]] = cell.number;
        number_by_first_record(cell_of, cells_.size(), labels);
    }

  private:
    // Maximum number of cells for which all pairs are considered.
    static constexpr std::size_t few_cells = 256;
    // Maximum number of classes of confidential values, and number of bins if there are more.
    static constexpr std::size_t most_classes = 64;
    static constexpr std::size_t n_bins = 16;
    // Minimum gain of a step, relative to the squares it is computed from, to exceed rounding.
    static constexpr double least_share = 1e-10;
    // A few times the rounding error of a coordinate or a centroid: numbers are at most 1.
    static constexpr double coordinate_error = 1e-15;

    // Puts records that all guarantees take for the same into one class; where these would be too many, records of
    // about the same value of the first.
    void classify() {
        class_of_.assign(n_, 0);
        if (codes_.empty()) return;
        const std::vector<std::uint32_t> order = by_codes();
        const auto alike = [&](std::uint32_t i, std::uint32_t j) {
            return std::ranges::all_of(codes_, [&](const auto& codes) { return codes[i] == codes[j]; });
        };
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

    // The records in the order of the codes, those of the first guarantee before those of the second. Sorted by
    // counting, unless codes are far more than records.
    std::vector<std::uint32_t> by_codes() const {
        std::vector<std::uint32_t> order(n_), sorted(n_);
        std::iota(order.begin(), order.end(), 0u);
        for (std::size_t g = codes_.size(); g-- > 0;) {
            const std::vector<Code>& codes = codes_[g];
            const std::size_t n_codes = n_ ? std::size_t{std::ranges::max(codes)} + 1 : 1;
            if (n_codes > 8 * n_ + 1024) {
                std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return codes[i]; });
                continue;
            }
            std::vector<std::uint32_t> next(n_codes + 1, 0);
            for (const Code code : codes) ++next[code + 1];
            for (std::size_t code = 0; code < n_codes; ++code) next[code + 1] += next[code];
            for (const std::uint32_t i : order) sorted[next[codes[i]]++] = i;
            std::swap(order, sorted);
        }
        return order;
    }

    // Records are numbered by the order of the cells.
    void build(const Members& members) {
        std::vector<std::uint32_t> begins;
        for (std::uint32_t c = 0, next = 0; c < members.n_cells(); ++c) {
            add();
            begins.push_back(next);
            next += static_cast<std::uint32_t>(members[c].size());
            most_ = std::max(most_, members[c].size());
        }
        std::vector<Room> rooms(pool_.size());
        pool_.split(begins.size(), time_of_cell(n_, members),
                    [&](std::size_t thread, std::size_t from, std::size_t to) {
                        for (std::size_t c = from; c < to; ++c) {
                            cells_[c].members.resize(members[c].size());
                            std::iota(cells_[c].members.begin(), cells_[c].members.end(), begins[c]);
                            fill(cells_[c], rooms[thread]);
                        }
                    });
    }
    // A guess, in nanoseconds.
    static double time_of_cell(std::size_t n_records, const Members& members) {
        return 150.0 * static_cast<double>(n_records) / static_cast<double>(members.n_cells() + 1);
    }

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

    static void list_touched(std::span<const Transfer> transfers, std::vector<std::uint32_t>& touched) {
        touched.clear();
        for (const Transfer& each : transfers)
            for (const std::uint32_t cell : {each.from, each.to})
                if (std::ranges::find(touched, cell) == touched.end()) touched.push_back(cell);
    }
    double loss_of(std::span<const std::uint32_t> touched) const {
        double sum = 0;
        for (const std::uint32_t cell : touched) sum += cells_[cell].loss;
        return sum;
    }
    using End = std::uint32_t Transfer::*;
    void pass_over(std::span<const Transfer> transfers, End from, End to, Room& room) {
        for (const Transfer& each : transfers) leave(each.record, cells_[each.*from]);
        for (const Transfer& each : transfers) enter(each.record, cells_[each.*to]);
        for (const std::uint32_t cell : room.touched) settle(cells_[cell], room);
    }

    // Recounts everything for the members there are.
    void fill(Cell& cell, Room& room) {
        for (std::size_t g = 0; g < guarantees_.size(); ++g) {
            Kept& kept = cell.kept[g];
            kept.codes.clear();
            for (const std::uint32_t record : cell.members) kept.codes.push_back(code(g, record));
            std::ranges::sort(kept.codes);
            kept.sum = std::accumulate(kept.codes.begin(), kept.codes.end(), std::int64_t{0});
        }
        settle(cell, room);
        ++cell.n_changes;
    }

    // Recounts what depends on all members.
    void settle(Cell& cell, Room& room) {
        cell.excess = 0;
        cell.loss = 0;
        if (cell.size() == 0) return;
        measure(cell, room.shift);
        for (std::size_t g = 0; g < guarantees_.size(); ++g) {
            cell.excess += guarantees_[g]->excess(cell.kept[g].codes);
            cell.kept[g].memory = guarantees_[g]->memory(cell.kept[g].codes);
        }
    }
    // The centroid and the distances from it, seen from the first member: rounding does not grow with the coordinates.
    void measure(Cell& cell, std::vector<double>& shift) {
        const double* first = row(cell.members.front());
        shift.assign(m_, 0.0);
        for (const std::uint32_t record : cell.members)
            for (std::size_t j = 0; j < m_; ++j) shift[j] += row(record)[j] - first[j];
        cell.centroid.resize(m_);
        for (std::size_t j = 0; j < m_; ++j) {
            shift[j] /= cell.weight();
            cell.centroid[j] = first[j] + shift[j];
            centroids_[cell.number * width_ + j] = static_cast<float>(cell.centroid[j]);
        }
        cell.own2.resize(cell.size());
        for (std::size_t i = 0; i < cell.size(); ++i) {
            double sum = 0;
            for (std::size_t j = 0; j < m_; ++j) {
                const double difference = row(cell.members[i])[j] - first[j] - shift[j];
                sum += difference * difference;
            }
            cell.own2[i] = sum;
            cell.loss += sum;
        }
        cell.radius = std::sqrt(*std::ranges::max_element(cell.own2));
    }

    std::span<const Code> changed(std::span<const Code> codes, std::size_t g, std::uint32_t leaves,
                                  std::uint32_t enters, std::vector<Code>& out) const {
        out.assign(codes.begin(), codes.end());
        if (leaves != none) out.erase(std::ranges::lower_bound(out, code(g, leaves)));
        if (enters != none) out.insert(std::ranges::upper_bound(out, code(g, enters)), code(g, enters));
        return out;
    }

    std::size_t k_;
    std::size_t n_;
    std::size_t m_;
    std::size_t most_ = 0;
    std::size_t width_;  // columns in whole lanes, the surplus ones zero
    Pool& pool_;
    const Loops& loops_;
    Poller& poller_;
    std::vector<std::size_t> original_;  // the number in the table of each record
    std::vector<double> rows_;
    std::vector<const Guarantee*> guarantees_;
    std::vector<std::vector<Code>> codes_;  // of each guarantee
    bool alike_ = false;
    std::size_t n_classes_ = 1;
    std::vector<std::uint8_t> class_of_;  // of each record
    std::vector<Cell> cells_;
    std::vector<float> centroids_;
    std::vector<std::uint32_t> lists_;
    std::size_t n_listed_ = 0;
    bool all_listed_ = true;
    Room room_;  // of the calling thread
};

}  // namespace shoal
