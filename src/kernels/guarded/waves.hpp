// Steps between cells, in an order for parallel threads whose result is that of one after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace shoal {

// Items, each of which reads and changes some cells. In a wave no two have a cell in common, and each item is in a
// later wave than those before it that have a cell in common with it. So the items of a wave can be worked on in any
// order.
template <class Item>
class GuardedWaves {
  public:
    explicit GuardedWaves(std::size_t n_cells = 0) : n_before_(n_cells, 0) {}

    // The next item; cells that are 0xffffffff do not count.
    void add(Item item, std::span<const std::uint32_t> cells) {
        std::size_t wave = 0;
        for (const std::uint32_t cell : cells)
            if (cell != none) wave = std::max(wave, n_before_[cell]);
        for (const std::uint32_t cell : cells)
            if (cell != none) n_before_[cell] = wave + 1;
        if (wave == waves_.size()) waves_.emplace_back();
        waves_[wave].push_back(std::move(item));
        ++n_items_;
    }

    std::size_t n_items() const { return n_items_; }
    std::span<std::vector<Item>> all() { return waves_; }

  private:
    static constexpr std::uint32_t none = 0xffffffff;

    std::vector<std::size_t> n_before_;  // of each cell: waves up to the last one that it is in
    std::vector<std::vector<Item>> waves_;
    std::size_t n_items_ = 0;
};

}  // namespace shoal
