// Pairs of neighbouring cells, in an order for parallel threads that does not depend on their number.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "numeric/large_array.hpp"
#include "parallel/pool.hpp"

namespace shoal {

struct Pair {
    std::uint32_t a, b;
    std::uint32_t compared;  // change counters of both cells when they were last compared
};

// Cells belong to regions. First come the pairs within each region; then the pairs between two regions, in the order of
// a round-robin tournament or, where there are many regions, by the number of pairs. A game, which is all pairs of two
// regions or within one, waits only for the earlier games of its regions: games played at the same time share no cell.
class Pairings {
  public:
    // `lists` holds the cells near each cell, as many for each; `order` puts cells that are near each other side by
    // side.
    Pairings(std::span<const std::uint32_t> lists, std::span<const std::uint32_t> order, std::uint32_t compared,
             Pool& pool) {
        const std::size_t n_cells = order.size();
        n_regions_ = n_cells < worth_it ? 1 : n_cells < worth_more ? 16 : 64;
        std::vector<std::uint8_t> regions(n_cells);
        for (std::size_t place = 0; place < n_cells; ++place)
            regions[order[place]] = static_cast<std::uint8_t>(place * n_regions_ / n_cells);
        list_pairs(lists, regions, compared, pool);
        list_games();
    }
    Pairings() = default;

    // Calls play(thread, pair) for every pair, and rest(share done) at intervals on the calling thread.
    template <class Play, class Rest>
    void tour(Pool& pool, const Play& play, const Rest& rest) {
        Schedule schedule(games_, n_regions_);
        std::atomic<bool> stopped{false};
        const double time = 500.0 * static_cast<double>(n_pairs_) / static_cast<double>(games_.size() + 1);
        pool.each(games_.size(), time, [&](std::size_t thread, std::size_t n_before) {
            const Game& game = schedule.next();
            // After an exception here, the other threads must not wait for ever.
            const Leave leave{schedule, game};
            if (stopped) return;
            try {
                for (Pair& pair : game.pairs) play(thread, pair);
                if (thread == 0) rest(static_cast<double>(n_before) / static_cast<double>(games_.size()));
            } catch (...) {
                stopped = true;
                throw;
            }
        });
        rest(1.0);
    }

  private:
    static constexpr std::uint32_t none = 0xffffffff;
    // Fewer cells are processed before a second thread has started; more justify more regions.
    static constexpr std::size_t worth_it = 1024;
    static constexpr std::size_t worth_more = 16384;

    struct Game {
        std::size_t a, b;              // its regions
        std::uint32_t turn_a, turn_b;  // number of earlier games of each
        std::span<Pair> pairs;
        std::size_t chain;  // pairs in the longest chain of games that begins with this one
    };

    // Hands out games whose regions have finished all their earlier games: the first in order that is ready.
    class Schedule {
      public:
        Schedule(std::span<const Game> games, std::size_t n_regions)
            : games_(games), turns_(n_regions), taken_(games.size()) {}

        // Called once for each game. One of the remaining games is ready, or will be when a running one ends.
        const Game& next() {
            const Game* game = nullptr;
            Pool::wait_until([&] { return (game = take()) != nullptr; });
            return *game;
        }

        void finish(const Game& game) {
            turns_[game.a].fetch_add(1, std::memory_order_release);
            if (game.a != game.b) turns_[game.b].fetch_add(1, std::memory_order_release);
        }

      private:
        const Game* take() {
            std::size_t first = first_.load(std::memory_order_relaxed);
            while (first < games_.size() && taken_[first].load(std::memory_order_relaxed)) ++first;
            first_.store(first, std::memory_order_relaxed);
            for (std::size_t g = first; g < std::min(first + n_ahead, games_.size()); ++g)
                if (is_ready(games_[g]) && !taken_[g].load(std::memory_order_relaxed) && !taken_[g].exchange(true))
                    return &games_[g];
            return nullptr;
        }

        bool is_ready(const Game& game) const {
            return turns_[game.a].load(std::memory_order_acquire) == game.turn_a &&
                   turns_[game.b].load(std::memory_order_acquire) == game.turn_b;
        }

        static constexpr std::size_t n_ahead = 512;
        std::span<const Game> games_;
        std::vector<std::atomic<std::uint32_t>> turns_;  // finished games of each region
        std::vector<std::atomic<bool>> taken_;
        std::atomic<std::size_t> first_{0};  // all games before it are taken
    };

    struct Leave {
        Schedule& schedule;
        const Game& game;
        ~Leave() { schedule.finish(game); }
    };

    // Game after game, within each in the order of the cells. Each thread lists the pairs of some cells.
    void list_pairs(std::span<const std::uint32_t> lists, std::span<const std::uint8_t> regions, std::uint32_t compared,
                    Pool& pool) {
        const std::size_t n_cells = regions.size();
        const std::size_t n_pieces = (n_cells + piece_size - 1) / piece_size;
        const std::size_t n_games = n_regions_ * n_regions_;
        std::vector<std::vector<Pair>> listed(n_pieces);
        // Position of the next pair of each piece in each game; at first the number of its pairs there.
        std::vector<std::vector<std::size_t>> next(n_pieces, std::vector<std::size_t>(n_games, 0));
        const auto game = [&](const Pair& pair) { return number(regions[pair.a], regions[pair.b]); };
        const double time = 500.0 * piece_size;
        pool.each(n_pieces, time, [&](std::size_t, std::size_t piece) {
            const std::size_t end = std::min((piece + 1) * piece_size, n_cells);
            listed[piece] = once_each(lists, n_cells, piece * piece_size, end, compared);
            for (const Pair& pair : listed[piece]) ++next[piece][game(pair)];
        });
        starts_.assign(n_games + 1, 0);
        std::size_t n_pairs = 0;
        for (std::size_t g = 0; g < n_games; ++g) {
            starts_[g] = n_pairs;
            for (auto& places : next) n_pairs += std::exchange(places[g], n_pairs);
        }
        starts_[n_games] = n_pairs;
        pairs_ = large_array<Pair>(n_pairs);
        n_pairs_ = n_pairs;
        pool.each(n_pieces, time, [&](std::size_t, std::size_t piece) {
            for (const Pair& pair : listed[piece]) pairs_[next[piece][game(pair)]++] = pair;
        });
    }

    // The pairs of some cells. If two cells are in each other's lists, the pair belongs to the lower number.
    static std::vector<Pair> once_each(std::span<const std::uint32_t> lists, std::size_t n_cells, std::size_t from,
                                       std::size_t to, std::uint32_t compared) {
        std::vector<Pair> pairs;
        const std::size_t n_listed = lists.size() / n_cells;
        pairs.reserve((to - from) * n_listed * 2 / 3);
        for (auto a = static_cast<std::uint32_t>(from); a < to; ++a)
            for (const std::uint32_t b : lists.subspan(a * n_listed, n_listed)) {
                if (b == none) continue;
                const auto other = lists.subspan(b * n_listed, n_listed);
                if (b < a && std::find(other.begin(), other.end(), a) != other.end()) continue;
                pairs.push_back({a, b, compared});
            }
        return pairs;
    }

    std::size_t number(std::size_t region, std::size_t other) const {
        return std::max(region, other) * n_regions_ + std::min(region, other);
    }

    // The games that have pairs, round by round. Where there are many, those with most pairs come first after the games
    // within regions: only a few games of a round are large, and many threads would wait for these.
    void list_games() {
        games_.clear();
        for (std::size_t round = 0; round < n_regions_; ++round)
            for (const auto& [a, b] : games_of(round)) {
                const std::size_t g = number(a, b);
                const std::span pairs(&pairs_[starts_[g]], starts_[g + 1] - starts_[g]);
                if (!pairs.empty()) games_.push_back({a, b, 0, 0, pairs, 0});
            }
        if (n_regions_ > 16)
            std::stable_sort(games_.begin(), games_.end(), [](const Game& one, const Game& other) {
                const bool alone = one.a == one.b;
                if (alone != (other.a == other.b)) return alone;
                return one.pairs.size() > other.pairs.size();
            });
        std::vector<std::uint32_t> turns(n_regions_, 0);
        for (Game& game : games_) {
            game.turn_a = turns[game.a]++;
            game.turn_b = game.a == game.b ? game.turn_a : turns[game.b]++;
        }
        begin_with_longest_chains();
    }

    // A game is followed by the later ones of its regions, these by those of their regions, and so on. Threads that are
    // free take the game with the most pairs in such a chain first: the longest chain bounds the time of all. A game
    // comes before those that wait for it, as its chains are longer.
    void begin_with_longest_chains() {
        std::vector<std::size_t> chain(n_regions_, 0);
        for (auto game = games_.rbegin(); game != games_.rend(); ++game) {
            game->chain = game->pairs.size() + std::max(chain[game->a], chain[game->b]);
            chain[game->a] = chain[game->b] = game->chain;
        }
        std::ranges::stable_sort(games_, std::greater<>(), &Game::chain);
    }

    // Round 0: each region by itself. Then the last region stays fixed and the others rotate.
    std::vector<std::pair<std::size_t, std::size_t>> games_of(std::size_t round) const {
        std::vector<std::pair<std::size_t, std::size_t>> games;
        if (round == 0) {
            for (std::size_t region = 0; region < n_regions_; ++region) games.emplace_back(region, region);
            return games;
        }
        const std::size_t circle = n_regions_ - 1;
        games.emplace_back(circle, round - 1);
        for (std::size_t i = 1; i < n_regions_ / 2; ++i)
            games.emplace_back((round - 1 + i) % circle, (round - 1 + circle - i) % circle);
        return games;
    }

    static constexpr std::size_t piece_size = 4096;

    std::size_t n_regions_ = 1;
    std::vector<std::size_t> starts_;
    LargeArray<Pair> pairs_;  // game after game
    std::size_t n_pairs_ = 0;
    std::vector<Game> games_;
};

}  // namespace shoal
