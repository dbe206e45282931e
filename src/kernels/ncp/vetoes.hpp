// The models that cells must keep satisfying while records change places: the codes of every cell, and what they veto.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "guarded/model_vetoes.hpp"

namespace shoal {

class NcpVetoes {
  public:
    static constexpr std::uint32_t none = 0xffffffff;

    // The records of some cells, numbered anew from 0, and the cell of each.
    NcpVetoes(std::span<const Guarded> guarded, std::span<const std::uint32_t> records,
              std::span<const std::uint32_t> cell_of, std::size_t n_cells) {
        for (const Guarded& each : guarded) {
            Kept& kept = kept_.emplace_back(each.guarantee.get(), std::vector<Code>(), n_cells);
            for (const std::uint32_t i : records) kept.codes.push_back(each.codes[i]);
            for (std::size_t i = 0; i < records.size(); ++i) kept.of_cell[cell_of[i]].push_back(kept.codes[i]);
            for (std::vector<Code>& codes : kept.of_cell) std::ranges::sort(codes);
        }
    }

    // Whether a cell satisfies every model after one record has left it and another has entered; either may be none.
    bool allow(std::uint32_t cell, std::uint32_t leaves, std::uint32_t enters) {
        return std::ranges::all_of(kept_, [&](const Kept& kept) {
            if (leaves != none && enters != none && kept.codes[leaves] == kept.codes[enters]) return true;
            changed_ = kept.of_cell[cell];
            change(changed_, kept, leaves, enters);
            return kept.guarantee->excess(changed_) <= 0;
        });
    }

    void apply(std::uint32_t cell, std::uint32_t leaves, std::uint32_t enters) {
        for (Kept& kept : kept_) change(kept.of_cell[cell], kept, leaves, enters);
    }

  private:
    struct Kept {
        Kept(const Guarantee* of, std::vector<Code> codes_of, std::size_t n_cells)
            : guarantee(of), codes(std::move(codes_of)), of_cell(n_cells) {}
        const Guarantee* guarantee;
        std::vector<Code> codes;                 // of each record
        std::vector<std::vector<Code>> of_cell;  // ascending
    };

    static void change(std::vector<Code>& codes, const Kept& kept, std::uint32_t leaves, std::uint32_t enters) {
        if (leaves != none) codes.erase(std::ranges::lower_bound(codes, kept.codes[leaves]));
        if (enters != none) codes.insert(std::ranges::upper_bound(codes, kept.codes[enters]), kept.codes[enters]);
    }

    std::vector<Kept> kept_;
    std::vector<Code> changed_;
};

}  // namespace shoal
