// Lowers the loss where no two cells can gain any more by themselves: records of the same values go around in circles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "guarded/cells.hpp"
#include "guarded/cycles.hpp"
#include "parallel/polling.hpp"

namespace shoal {

// Three or more cells each pass a record of one class to the next. No model is affected.
class GuardedRotating {
  public:
    explicit GuardedRotating(GuardedCells& cells) : cells_(cells) {}

    void rotate() {
        for (std::uint32_t kind = 0; kind < cells_.n_classes(); ++kind) {
            find_passes(kind);
            for (std::size_t round = 0; round < most_rotations; ++round) {
                changed_.clear();
                for (const auto& cycle : cycles_.find({cells_.n_listed(), cells_.lists(), cost_})) pass_on(cycle);
                if (changed_.empty()) break;
                for (const std::uint32_t cell : changed_) renew_passes(cell);
                cells_.poller().tick();
            }
        }
    }

  private:
    static constexpr std::uint32_t none = GuardedCells::none;
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    static constexpr std::size_t most_rotations = 50;

    // Of each cell and each of its neighbours, the record of a class that is passed on for the least: how much farther
    // it is from the other centroid.
    void find_passes(std::uint32_t kind) {
        of_kind_.resize(cells_.size());
        cost_.assign(cells_.lists().size(), infinity);
        passed_.assign(cells_.lists().size(), none);
        SharedPoller shared(cells_.poller());
        const double time_per_cell = 50.0 * static_cast<double>(cells_.n_listed());
        cells_.pool().split(cells_.size(), time_per_cell, [&](std::size_t thread, std::size_t from, std::size_t to) {
            for (std::size_t c = from; c < to && shared.goes_on(thread); ++c) find_passes(kind, cells_[c]);
        });
    }
    void find_passes(std::uint32_t kind, const GuardedCells::Cell& cell) {
        of_kind_[cell.number].clear();
        for (const std::uint32_t record : cell.members)
            if (cells_.class_of(record) == kind) of_kind_[cell.number].push_back(record);
        const std::size_t n_listed = cells_.n_listed();
        for (std::size_t way = cell.number * n_listed; way < (cell.number + 1) * n_listed; ++way)
            find_pass(static_cast<std::uint32_t>(way));
    }
    void find_pass(std::uint32_t way) {
        cost_[way] = infinity;
        const std::uint32_t from = giver(way);
        const std::uint32_t to = cells_.lists()[way];
        if (to == none || !cells_[from].is_sound() || !cells_[to].is_sound()) return;
        for (const std::uint32_t record : of_kind_[from]) {
            const double cost = cells_.distance2(record, cells_[to]) - cells_.distance2(record, cells_[from]);
            if (cost >= cost_[way]) continue;
            cost_[way] = cost;
            passed_[way] = record;
        }
    }
    // The ways out of a cell that has changed, and those into it, as far as it is the neighbour of its neighbours.
    void renew_passes(std::uint32_t cell) {
        const std::size_t n_listed = cells_.n_listed();
        for (std::size_t i = 0; i < n_listed; ++i) {
            const auto way = static_cast<std::uint32_t>(cell * n_listed + i);
            find_pass(way);
            const std::uint32_t to = cells_.lists()[way];
            if (to == none) continue;
            for (std::size_t j = 0; j < n_listed; ++j) {
                const auto back = static_cast<std::uint32_t>(to * n_listed + j);
                if (cells_.lists()[back] == cell) find_pass(back);
            }
        }
    }
    // Passes records on around a cycle if the loss falls.
    void pass_on(std::span<const std::uint32_t> cycle) {
        double cost = 0;
        double squares = 0;
        transfers_.clear();
        for (const std::uint32_t way : cycle) {
            const std::uint32_t record = passed_[way];
            transfers_.push_back({record, giver(way), cells_.lists()[way]});
            cost += cost_[way];
            squares += cells_.distance2(record, cells_[giver(way)]);
            squares += cells_.distance2(record, cells_[cells_.lists()[way]]);
        }
        if (cost >= -cells_.rounding(squares) || !cells_.transfer_if_lower(transfers_, room_)) return;
        for (const auto& [record, from, to] : transfers_) {
            std::erase(of_kind_[from], record);
            of_kind_[to].push_back(record);
        }
        changed_.insert(changed_.end(), room_.touched.begin(), room_.touched.end());
    }
    std::uint32_t giver(std::uint32_t way) const { return static_cast<std::uint32_t>(way / cells_.n_listed()); }

    GuardedCells& cells_;
    GuardedCells::Room room_;
    NegativeCycles cycles_;
    std::vector<double> cost_;                         // of each way from a cell to a neighbour
    std::vector<std::uint32_t> passed_;                // the record that goes there
    std::vector<std::uint32_t> changed_;               // cells of the last rotations
    std::vector<std::vector<std::uint32_t>> of_kind_;  // the records of each cell that are of the current class
    std::vector<GuardedCells::Transfer> transfers_;
};

}  // namespace shoal
