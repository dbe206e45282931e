// Lowers the certainty penalty of some cells: random moves and swaps of records, taken also when they raise the penalty
// a little, less and less so (simulated annealing).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ncp/cells.hpp"
#include "ncp/vetoes.hpp"
#include "numeric/portable_random.hpp"

namespace shoal {

// Where each record looks for other cells: `n_listed` records near it; 0xffffffff where there are fewer.
struct NearRecords {
    std::span<const std::uint32_t> lists;
    std::size_t n_listed;
};

// How many records a cell may have.
struct CellSizes {
    std::size_t least;
    std::size_t most;
};

class NcpAnneal {
  public:
    static constexpr std::uint32_t none = NcpCells::none;

    NcpAnneal(NcpCells& cells, NcpVetoes& vetoes, NearRecords near, CellSizes sizes, std::uint64_t seed)
        : cells_(cells), vetoes_(vetoes), near_(near), sizes_(sizes), random_(seed) {}

    // Takes random steps at a temperature: the penalty by which a step may be worse, on average.
    void run(std::size_t n_steps, double temperature) {
        if (near_.n_listed == 0) return;
        for (std::size_t step = 0; step < n_steps; ++step) {
            const std::uint32_t x = random_.below(cells_.n_records());
            const std::uint32_t y = near_.lists[x * near_.n_listed + random_.below(near_.n_listed)];
            if (y != none && cells_.cell(x) != cells_.cell(y))
                propose(x, cells_.cell(y), temperature * random_.waiting_time());
        }
    }

  private:
    // A gain below this is rounding.
    static constexpr double least_gain = 1e-12;

    // x moves to a cell or changes places with the best of its records, unless all that costs `limit` or more.
    void propose(std::uint32_t x, std::uint32_t b, double limit) {
        const std::uint32_t a = cells_.cell(x);
        const auto size_a = static_cast<double>(cells_.size(a)), size_b = static_cast<double>(cells_.size(b));
        const double joined = cells_.penalty(b, none, x);
        const double left = cells_.penalty(a) - cells_.gain(x);
        // What x changes by itself: nobody who leaves in its place can give back more than it costs its cell now.
        const double alone = size_b * (joined - cells_.penalty(b)) - size_a * cells_.gain(x);
        double best = limit - least_gain;
        bool moves = false;
        std::uint32_t partner = none;
        if (cells_.size(a) > sizes_.least && cells_.size(b) < sizes_.most) {
            const double change = (size_a - 1) * left + (size_b + 1) * joined - cells_.loss(a) - cells_.loss(b);
            if (change < best) {
                best = change;
                moves = true;
            }
        }
        for (const std::uint32_t y : cells_.members(b)) {
            if (alone - size_b * cells_.gain(y) >= best) continue;
            const double change_b = size_b * (cells_.penalty(b, y, x) - cells_.penalty(b));
            if (change_b - size_a * cells_.gain(x) >= best) continue;
            const double change = change_b + size_a * (cells_.penalty(a, x, y) - cells_.penalty(a));
            if (change < best) {
                best = change;
                partner = y;
            }
        }
        if (partner != none || moves) take_step(x, partner, a, b);
    }

    void take_step(std::uint32_t x, std::uint32_t partner, std::uint32_t a, std::uint32_t b) {
        if (!vetoes_.allow(a, x, partner) || !vetoes_.allow(b, partner, x)) return;
        vetoes_.apply(a, x, partner);
        vetoes_.apply(b, partner, x);
        if (partner == none)
            cells_.move(x, b);
        else
            cells_.swap(x, partner);
    }

    NcpCells& cells_;
    NcpVetoes& vetoes_;
    NearRecords near_;
    CellSizes sizes_;
    PortableRandom random_;
};

}  // namespace shoal
