// Recoding: whole groups of records change cells, where moves and swaps of single ones cannot lower an ancestor.
//
// A random box that says more than a cell does is tried as a new cell. It takes all records in it that are published
// with a higher penalty now, wherever they are. A cell that would be left with fewer than k records keeps k, or is
// closed: its other records go to the best cells whose boxes they lie in. As in local recoding, but with overlapping
// boxes, a class may take what it says of all its records from any part of the table.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "guarded/model_vetoes.hpp"
#include "ncp/boxes.hpp"
#include "ncp/table.hpp"
#include "numeric/portable_random.hpp"
#include "parallel/polling.hpp"
#include "parallel/pool.hpp"
#include "partition/cells.hpp"

namespace shoal {

// The cells of some records of a table, which change by random steps that lower the penalty and violate no model.
class NcpRecoding {
  public:
    NcpRecoding(const NcpTable& table, std::span<const std::uint32_t> records, std::span<const std::uint32_t> cell_of,
                std::span<const Guarded> guarded, std::size_t k, std::uint64_t seed)
        : boxes_(table, records),
          records_(records),
          guarded_(guarded),
          k_(k),
          random_(seed),
          cell_(cell_of.begin(), cell_of.end()),
          taken_(records.size(), 0) {
        for (std::uint32_t i = 0; i < cell_.size(); ++i) {
            if (cells_.size() <= cell_[i]) cells_.resize(cell_[i] + 1);
            cells_[cell_[i]].members.push_back(i);
        }
        for (Cell& cell : cells_) settle(cell);
    }

    void step() { propose(random_.below(cell_.size())); }

    // The cell of each record; some cells may have none.
    std::span<const std::uint32_t> cells() const { return cell_; }

  private:
    static constexpr std::uint32_t none = 0xffffffff;
    // A gain below this is rounding.
    static constexpr double least_gain = 1e-9;

    enum class Fate { stays, keeps_k, closes };
    struct Cell {
        std::vector<std::uint32_t> members;
        NcpBox box;
        double penalty = 0;
        std::size_t n_taken = 0;  // by the box that is tried
        Fate fate = Fate::stays;
    };

    void propose(std::uint32_t record) {
        const std::uint32_t own = cell_[record];
        NcpBox box = cells_[own].box;
        bool other = false;
        const std::uint32_t n_narrowed = random_.below(10) == 0 ? 0 : 1 + random_.below(2);
        for (std::uint32_t i = 0; i < n_narrowed; ++i) other |= boxes_.narrow(box, record, random_);
        for (std::uint32_t n = random_.below(3); n > 0; --n) other |= boxes_.widen(box, random_);
        const double penalty = boxes_.penalty(box);
        if (other && penalty >= cells_[own].penalty) return;
        take(box, penalty, other ? none : own);
        double change = 0;
        if (group_.size() >= k_ && settle_donors(penalty, change) && change < -least_gain) apply();
        release();
    }

    // Finds the records in a box whose penalty it lowers, and all records of the cell whose box it is.
    void take(const NcpBox& box, double penalty, std::uint32_t own) {
        boxes_.each_covered(box, [&](std::uint32_t i) {
            Cell& cell = cells_[cell_[i]];
            if (cell.penalty <= penalty + least_gain && cell_[i] != own) return;
            group_.push_back(i);
            taken_[i] = 1;
            if (cell.n_taken++ == 0) donors_.push_back(cell_[i]);
        });
    }

    // Decides what becomes of the cells that records were taken from, and by how much the loss changes. Returns whether
    // k records remain for the new one.
    bool settle_donors(double penalty, double& change) {
        std::size_t n_entering = group_.size();
        for (const std::uint32_t d : donors_) {
            Cell& donor = cells_[d];
            change += static_cast<double>(donor.n_taken) * (penalty - donor.penalty);
            const std::size_t n_left = donor.members.size() - donor.n_taken;
            if (n_left > 0 && n_left < k_) donor.fate = Fate::closes;
        }
        for (const std::uint32_t d : donors_) {
            Cell& donor = cells_[d];
            if (donor.fate != Fate::closes) continue;
            const std::size_t n_kept = k_ - (donor.members.size() - donor.n_taken);
            const double cost_of_keeping = static_cast<double>(n_kept) * (donor.penalty - penalty);
            const std::size_t n_moves = moves_.size();
            const double cost_of_closing = close(donor, cost_of_keeping);
            if (cost_of_closing < cost_of_keeping) {
                change += cost_of_closing;
                continue;
            }
            moves_.resize(n_moves);
            donor.fate = Fate::keeps_k;
            change += cost_of_keeping;
            if (n_kept > n_entering) return false;
            n_entering -= n_kept;
        }
        return n_entering >= k_;
    }

    // Finds other cells for what is left of one, which lies outside the box that is tried; returns what that costs, if
    // it is below a limit.
    double close(const Cell& donor, double limit) {
        double cost = 0;
        for (const std::uint32_t i : donor.members) {
            if (taken_[i]) continue;
            double best = std::numeric_limits<double>::infinity();
            std::uint32_t to = none;
            for (std::uint32_t c = 0; c < cells_.size(); ++c) {
                const Cell& cell = cells_[c];
                if (cell.penalty < best && cell.fate == Fate::stays && cell.members.size() > cell.n_taken &&
                    boxes_.covers(cell.box, i)) {
                    best = cell.penalty;
                    to = c;
                }
            }
            cost += best - donor.penalty;
            if (cost >= limit) return cost;
            moves_.push_back({i, to});
        }
        return cost;
    }

    // Changes the cells, unless one of them violates a model afterwards.
    void apply() {
        const std::uint32_t fresh = free_.empty() ? static_cast<std::uint32_t>(cells_.size()) : free_.back();
        std::map<std::uint32_t, std::vector<std::uint32_t>> after;
        for (const std::uint32_t d : donors_) {
            const Cell& donor = cells_[d];
            std::size_t n_kept = donor.fate == Fate::keeps_k ? k_ - (donor.members.size() - donor.n_taken) : 0;
            std::vector<std::uint32_t>& rest = after[d];
            for (const std::uint32_t i : donor.members)
                if (taken_[i] && n_kept == 0)
                    after[fresh].push_back(i);
                else if (taken_[i] || donor.fate != Fate::closes) {
                    rest.push_back(i);
                    n_kept -= taken_[i];
                }
        }
        for (const Move& move : moves_) {
            const auto [cell, added] = after.try_emplace(move.to);
            if (added) cell->second = cells_[move.to].members;
            cell->second.push_back(move.record);
        }
        if (!std::ranges::all_of(after, [&](const auto& cell) { return allowed(cell.second); })) return;
        if (free_.empty())
            cells_.emplace_back();
        else
            free_.pop_back();
        for (auto& [c, members] : after) {
            cells_[c].members = std::move(members);
            for (const std::uint32_t i : cells_[c].members) cell_[i] = c;
            settle(cells_[c]);
            if (cells_[c].members.empty()) free_.push_back(c);
        }
    }

    bool allowed(std::span<const std::uint32_t> members) {
        return members.empty() || std::ranges::all_of(guarded_, [&](const Guarded& each) {
                   codes_.clear();
                   for (const std::uint32_t i : members) codes_.push_back(each.codes[records_[i]]);
                   std::ranges::sort(codes_);
                   return each.guarantee->excess(codes_) <= 0;
               });
    }

    void settle(Cell& cell) {
        if (cell.members.empty()) return;
        cell.box = boxes_.around(cell.members);
        cell.penalty = boxes_.penalty(cell.box);
    }

    // Forgets the box that was tried.
    void release() {
        for (const std::uint32_t i : group_) taken_[i] = 0;
        for (const std::uint32_t d : donors_) {
            cells_[d].n_taken = 0;
            cells_[d].fate = Fate::stays;
        }
        group_.clear();
        donors_.clear();
        moves_.clear();
    }

    struct Move {
        std::uint32_t record;
        std::uint32_t to;
    };

    NcpBoxes boxes_;
    std::span<const std::uint32_t> records_;
    std::span<const Guarded> guarded_;
    std::size_t k_;
    PortableRandom random_;
    std::vector<Cell> cells_;
    std::vector<std::uint32_t> free_;  // cells without records
    std::vector<std::uint32_t> cell_;  // of each record
    // Of the box that is tried: its records, whether a record is one of them, the cells they come from, and the moves
    // of records that are left over.
    std::vector<std::uint32_t> group_;
    std::vector<std::uint8_t> taken_;
    std::vector<std::uint32_t> donors_;
    std::vector<Move> moves_;
    std::vector<Code> codes_;
};

// Recodes blocks of cells side by side. The blocks have no cell in common, and each draws its own random numbers, so
// that the result does not depend on the number of threads.
class NcpRecodingOfBlocks {
  public:
    // Changes the labels in place. They number the cells from 0 without gaps; cells with near numbers share a block.
    NcpRecodingOfBlocks(const NcpTable& table, std::size_t k, std::span<const Guarded> guarded, Pool& pool,
                        std::span<std::int64_t> labels, Poller& poller)
        : table_(table), k_(k), guarded_(guarded), pool_(pool), labels_(labels), poller_(poller) {}

    // Reports records processed to the poller. If it stops the work, the labels are those of that moment.
    void run(std::uint64_t n_steps, std::uint64_t seed) {
        if (n_steps == 0) return;
        const std::vector<Block> blocks = cut_blocks();
        std::vector<std::vector<std::uint32_t>> found;
        for (const Block& block : blocks) found.push_back(block.cells);
        SharedPoller shared(poller_);
        const double time_of_step = 10'000;
        try {
            pool_.each(
                blocks.size(), time_of_step * static_cast<double>(n_steps) / static_cast<double>(blocks.size()),
                [&](std::size_t thread, std::size_t b) {
                    recode(blocks[b], n_steps, mixed_seed(seed, 0, b), thread, shared, found[b]);
                },
                [&] { shared.goes_on(0); });
        } catch (...) {
            write_labels(blocks, found);
            throw;
        }
        write_labels(blocks, found);
        poller_.finish(labels_.size());
    }

  private:
    // Larger blocks take more time for each box, in smaller ones fewer records can come together.
    static constexpr std::size_t block_records = 65'536;

    struct Block {
        std::vector<std::uint32_t> records;
        std::vector<std::uint32_t> cells;  // of the records, from 0 in the block
    };

    std::vector<Block> cut_blocks() const {
        const std::size_t n_cells = static_cast<std::size_t>(*std::ranges::max_element(labels_)) + 1;
        const std::size_t n_blocks = std::min((labels_.size() - 1) / block_records + 1, n_cells);
        std::vector<Block> blocks(n_blocks);
        for (std::uint32_t i = 0; i < labels_.size(); ++i) {
            const auto cell = static_cast<std::size_t>(labels_[i]);
            const std::size_t b = cell * n_blocks / n_cells;
            blocks[b].records.push_back(i);
            blocks[b].cells.push_back(static_cast<std::uint32_t>(cell - (b * n_cells + n_blocks - 1) / n_blocks));
        }
        return blocks;
    }

    void recode(const Block& block, std::uint64_t n_steps, std::uint64_t seed, std::size_t thread, SharedPoller& shared,
                std::span<std::uint32_t> found) const {
        NcpRecoding recoding(table_, block.records, block.cells, guarded_, k_, seed);
        const std::uint64_t n_here = n_steps * block.records.size() / labels_.size();
        try {
            // A step that closes many cells takes milliseconds, so that the poller is asked before each.
            for (std::uint64_t done = 0; done < n_here; ++done) {
                if (!shared.goes_on(thread, done * labels_.size() / n_here)) break;
                recoding.step();
            }
        } catch (...) {
            std::ranges::copy(recoding.cells(), found.begin());
            throw;
        }
        std::ranges::copy(recoding.cells(), found.begin());
    }

    // Numbers the cells of all blocks.
    void write_labels(std::span<const Block> blocks, std::span<const std::vector<std::uint32_t>> found) {
        std::vector<std::uint32_t> cell_of(labels_.size());
        std::uint32_t n_cells = 0;
        for (std::size_t b = 0; b < blocks.size(); ++b) {
            for (std::size_t i = 0; i < found[b].size(); ++i) cell_of[blocks[b].records[i]] = n_cells + found[b][i];
            n_cells += *std::ranges::max_element(found[b]) + 1;
        }
        number_by_first_record(cell_of, n_cells, labels_);
    }

    const NcpTable& table_;
    std::size_t k_;
    std::span<const Guarded> guarded_;
    Pool& pool_;
    std::span<std::int64_t> labels_;
    Poller& poller_;
};

}  // namespace shoal
