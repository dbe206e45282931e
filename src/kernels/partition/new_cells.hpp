// New cells out of what neighbouring cells have to spare.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "numeric/simd.hpp"
#include "parallel/polling.hpp"
#include "partition/cell_tiles.hpp"

namespace shoal {

// Neighbouring cells of more than k records may together have enough for another cell. It is formed around the record
// with the largest loss, then again around the mean of the records gathered; no cell falls below k.
class NewCells {
  public:
    // `lists` holds the cells near each of the first `n_used` cells, as many for each.
    NewCells(CellTiles& cells, std::size_t k, const Loops& loops, std::span<const std::uint32_t> lists,
             std::size_t n_used)
        : cells_(cells), k_(k), loops_(loops), lists_(lists), n_listed_(lists.size() / n_used), n_used_(n_used) {}

    struct Opened {
        std::uint32_t cell;
        std::uint32_t origin;  // the cell whose record it was gathered around
        std::vector<std::uint32_t> givers;
    };

    // Fills empty cells from `next` on.
    std::vector<Opened> open(std::size_t next, Poller& poller) {
        std::vector<Opened> opened;
        for (const auto& [worst, origin] : worst_first()) {
            poller.tick();
            if (next == cells_.n_cells()) break;
            if (n_spare(origin) == 0 || !look_around(origin)) continue;
            gather_around(farthest_record(origin));
            gather(mean_of_chosen().data());
            if (!pays()) continue;
            opened.push_back({static_cast<std::uint32_t>(next), origin, take(next)});
            ++next;
        }
        return opened;
    }

  private:
    static constexpr std::uint32_t none = 0xffffffff;
    // What a new cell may cost in proportion to what its records cost where they are: they will soon swap for better.
    static constexpr double patience = 1.3;

    // A record by the place of its cell in near_ and its slot there.
    struct Offer {
        float distance;
        std::uint32_t place, slot;
        bool operator>(const Offer& other) const {
            if (distance != other.distance) return distance > other.distance;
            return place != other.place ? place > other.place : slot > other.slot;
        }
    };

    std::size_t n_spare(std::size_t cell) const { return cells_.size(cell) > k_ ? cells_.size(cell) - k_ : 0; }

    std::vector<std::pair<float, std::uint32_t>> worst_first() const {
        std::vector<std::pair<float, std::uint32_t>> order;
        for (std::uint32_t c = 0; c < n_used_; ++c)
            if (n_spare(c) > 0) order.emplace_back(-cells_.view(c, false).radius, c);
        std::sort(order.begin(), order.end());
        return order;
    }

    // Lists the cells around that can give; returns whether they have enough.
    bool look_around(std::uint32_t origin) {
        near_.assign(1, origin);
        std::size_t total = n_spare(origin);
        for (const std::uint32_t other : lists_.subspan(origin * n_listed_, n_listed_)) {
            if (other == none || n_spare(other) == 0) continue;
            near_.push_back(other);
            total += n_spare(other);
        }
        return total >= k_;
    }

    std::size_t farthest_record(std::size_t cell) const {
        const CellView view = cells_.view(cell, false);
        return static_cast<std::size_t>(std::max_element(view.own2, view.own2 + view.size) - view.own2);
    }

    void gather_around(std::size_t slot) {
        const CellView view = cells_.view(near_.front(), false);
        std::vector<float> at(cells_.dims());
        for (std::size_t j = 0; j < at.size(); ++j) at[j] = view.tile[j * cells_.capacity() + slot];
        gather(at.data());
    }

    // Chooses the k nearest records, from each cell no more than it can spare.
    void gather(const float* at) {
        offers_.clear();
        left_.clear();
        for (std::uint32_t place = 0; place < near_.size(); ++place) {
            offer_all(place, at);
            left_.push_back(n_spare(near_[place]));
        }
        std::make_heap(offers_.begin(), offers_.end(), std::greater<>());
        for (chosen_.clear(); chosen_.size() < k_; offers_.pop_back()) {
            std::pop_heap(offers_.begin(), offers_.end(), std::greater<>());
            if (left_[offers_.back().place] == 0) continue;
            --left_[offers_.back().place];
            chosen_.push_back(offers_.back());
        }
    }

    void offer_all(std::uint32_t place, const float* at) {
        across_.resize(cells_.dims());
        apart2_.resize(cells_.capacity());
        cells_.distances_from(at, near_[place], loops_, across_.data(), apart2_.data());
        for (std::uint32_t slot = 0; slot < cells_.size(near_[place]); ++slot)
            offers_.push_back({apart2_[slot], place, slot});
    }

    std::vector<float> mean_of_chosen() const {
        std::vector<float> mean(cells_.dims(), 0.0f);
        for (const Offer& one : chosen_) {
            const CellView view = cells_.view(near_[one.place], false);
            for (std::size_t j = 0; j < mean.size(); ++j) mean[j] += view.tile[j * cells_.capacity() + one.slot];
        }
        for (float& value : mean) value /= static_cast<float>(chosen_.size());
        return mean;
    }

    bool pays() const {
        double cost = 0;
        double saved = 0;
        for (const Offer& one : chosen_) {
            const CellView view = cells_.view(near_[one.place], false);
            const auto size = static_cast<double>(view.size);
            cost += one.distance;
            saved += view.own2[one.slot] * size / (size - 1);
        }
        return cost < patience * saved;
    }

    // Moves the chosen records; higher slots first, as a cell's last record takes the slot of one that leaves.
    std::vector<std::uint32_t> take(std::size_t to) {
        std::sort(chosen_.begin(), chosen_.end(), [](const Offer& a, const Offer& b) {
            return a.place != b.place ? a.place < b.place : a.slot > b.slot;
        });
        std::vector<std::uint32_t> givers;
        for (const Offer& one : chosen_) {
            cells_.transfer(near_[one.place], one.slot, to);
            if (givers.empty() || givers.back() != near_[one.place]) givers.push_back(near_[one.place]);
        }
        return givers;
    }

    CellTiles& cells_;
    std::size_t k_;
    const Loops& loops_;
    std::span<const std::uint32_t> lists_;
    std::size_t n_listed_;
    std::size_t n_used_;
    std::vector<std::uint32_t> near_;
    std::vector<std::size_t> left_;  // what each of them can still give
    std::vector<Offer> offers_, chosen_;
    std::vector<float> across_, apart2_;
};

}  // namespace shoal
