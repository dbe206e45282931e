// Pairs of neighbouring cells, in an order that several threads can go through and that does not depend on how many.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "pool.hpp"

namespace shoal {

struct Pair {
    std::uint32_t a, b;
    std::uint32_t compared;  // the changes of both when they were last compared
};

// Cells belong to sixteen regions. First the pairs within each region are gone through, all regions at once; then the
// regions meet in pairs as in a tournament: eight games at a time, fifteen times, until each has met each. Games that
// are played at the same time share no cell.
class Pairings {
  public:
    // `lists` holds the cells near each cell, as many for each; `order` puts cells that are near each other side by
    // side.
    Pairings(std::span<const std::uint32_t> lists, std::span<const std::uint32_t> order, std::uint32_t compared) {
        const std::size_t n_cells = order.size();
        n_regions_ = n_cells < worth_it ? 1 : most_regions;
        std::vector<std::uint8_t> regions(n_cells);
        for (std::size_t place = 0; place < n_cells; ++place)
            regions[order[place]] = static_cast<std::uint8_t>(place * n_regions_ / n_cells);
        const auto game = [&](const Pair& pair) { return number(regions[pair.a], regions[pair.b]); };
        std::vector<Pair> listed = once_each(lists, n_cells, compared);
        for (const Pair& pair : listed) ++starts_[game(pair) + 1];
        for (std::size_t g = 1; g < starts_.size(); ++g) starts_[g] += starts_[g - 1];
        auto next = starts_;
        pairs_.resize(listed.size());
        for (const Pair& pair : listed) pairs_[next[game(pair)]++] = pair;
    }
    Pairings() = default;

    // Calls play(thread, pair) for every pair, and rest(share done) between the rounds.
    template <class Play, class Rest>
    void tour(Pool& pool, const Play& play, const Rest& rest) {
        for (std::size_t round = 0; round < n_rounds(); ++round) {
            const auto games = games_of(round);
            const double time = 500.0 * static_cast<double>(pairs_.size() / n_rounds() / games.size());
            pool.each(games.size(), time, [&](std::size_t thread, std::size_t g) {
                for (Pair& pair : pairs_of(games[g])) play(thread, pair);
            });
            rest(static_cast<double>(round + 1) / static_cast<double>(n_rounds()));
        }
    }

  private:
    static constexpr std::uint32_t none = 0xffffffff;
    static constexpr std::size_t most_regions = 16;
    // Fewer cells are done before a second thread is awake.
    static constexpr std::size_t worth_it = 1024;

    // Where each of two cells has the other in its list, the lower number has the pair.
    static std::vector<Pair> once_each(std::span<const std::uint32_t> lists, std::size_t n_cells,
                                       std::uint32_t compared) {
        std::vector<Pair> pairs;
        const std::size_t n_listed = lists.size() / n_cells;
        pairs.reserve(lists.size() * 2 / 3);
        for (std::uint32_t a = 0; a < n_cells; ++a)
            for (const std::uint32_t b : lists.subspan(a * n_listed, n_listed)) {
                if (b == none) continue;
                const auto other = lists.subspan(b * n_listed, n_listed);
                if (b < a && std::find(other.begin(), other.end(), a) != other.end()) continue;
                pairs.push_back({a, b, compared});
            }
        return pairs;
    }

    static std::size_t number(std::size_t region, std::size_t other) {
        return std::max(region, other) * most_regions + std::min(region, other);
    }

    std::span<Pair> pairs_of(std::size_t game) {
        return std::span(pairs_).subspan(starts_[game], starts_[game + 1] - starts_[game]);
    }

    std::size_t n_rounds() const { return n_regions_; }

    // Round 0: each region by itself. Then the last stays where it is, and the others move round.
    std::vector<std::size_t> games_of(std::size_t round) const {
        std::vector<std::size_t> games;
        if (round == 0) {
            for (std::size_t region = 0; region < n_regions_; ++region) games.push_back(number(region, region));
            return games;
        }
        const std::size_t circle = n_regions_ - 1;
        games.push_back(number(circle, round - 1));
        for (std::size_t i = 1; i < n_regions_ / 2; ++i)
            games.push_back(number((round - 1 + i) % circle, (round - 1 + circle - i) % circle));
        return games;
    }

    std::size_t n_regions_ = 1;
    std::array<std::size_t, most_regions * most_regions + 1> starts_{};
    std::vector<Pair> pairs_;  // game after game
};

}  // namespace shoal
