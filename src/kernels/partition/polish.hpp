// Steps that involve more than two records: chains over three cells, and two cells repartitioned.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "numeric/simd.hpp"
#include "parallel/polling.hpp"
#include "partition/cell_tiles.hpp"

namespace shoal {

// For partitions that moves and swaps no longer improve. A step is kept only if the loss, recomputed in float64,
// decreases; `changed` is called for each cell that has changed.
class Polish {
  public:
    // `lists` holds the cells near each of the first `n_used` cells, as many for each.
    Polish(CellTiles& cells, std::size_t k, const Loops& loops, std::span<const std::uint32_t> lists,
           std::size_t n_used, Poller& poller)
        : cells_(cells),
          k_(k),
          loops_(loops),
          lists_(lists),
          n_listed_(lists.size() / n_used),
          n_used_(n_used),
          poller_(poller) {}

    // A record moves on to a second cell and one from there to a third, which has room for it or gives one to the
    // first. Each cell takes part once.
    template <class Changed>
    void pass_on(const Changed& changed) {
        measure_ways();
        std::vector<bool> done(n_used_, false);
        for (std::uint32_t a = 0; a < n_used_; ++a) {
            poller_.tick();
            const Chain chain = done[a] ? Chain{} : best_chain(a, done);
            if (chain.gain <= 0 || !take(a, chain)) continue;
            for (const std::uint32_t cell : {a, chain.b, chain.c}) {
                done[cell] = true;
                changed(cell);
            }
        }
    }

    // The records of two neighbouring cells are cut across the line between two that are far apart.
    template <class Changed>
    void cut_anew(const Changed& changed) {
        for (std::uint32_t a = 0; a < n_used_; ++a) {
            poller_.tick();
            for (std::size_t i = 0; i < std::min(n_nearest, n_listed_); ++i) {
                const std::uint32_t b = lists_[a * n_listed_ + i];
                if (!usable(a) || !usable(b) || !cut_pair(a, b)) continue;
                changed(a);
                changed(b);
            }
        }
    }

  private:
    static constexpr std::uint32_t none = 0xffffffff;
    // Cells farther away are hardly ever cut in another way together.
    static constexpr std::size_t n_nearest = 3;

    // The record of a cell that costs least in another one, and how much more it costs there.
    struct Way {
        float cost = std::numeric_limits<float>::infinity();
        std::uint32_t record = none;
    };
    struct Chain {
        double gain = 0;
        std::uint32_t b = none, c = none;
        std::uint32_t to_b = none, to_c = none, to_a = none;  // records; to_a is none where the chain is open
    };

    bool usable(std::uint32_t cell) const { return cell != none && cells_.size(cell) > 0; }

    void measure_ways() {
        ways_.assign(lists_.size(), Way{});
        std::vector<float> across(cells_.dims());
        std::vector<float> apart2(cells_.capacity());
        for (std::uint32_t a = 0; a < n_used_; ++a) {
            poller_.tick();
            for (std::size_t i = 0; i < n_listed_ && usable(a); ++i)
                if (usable(lists_[a * n_listed_ + i]))
                    ways_[a * n_listed_ + i] = way(a, lists_[a * n_listed_ + i], across.data(), apart2.data());
        }
    }

    Way way(std::uint32_t a, std::uint32_t b, float* across, float* apart2) const {
        cells_.distances_from(cells_.view(b, false).centroid, a, loops_, across, apart2);
        Way best;
        for (std::size_t i = 0; i < cells_.size(a); ++i)
            if (const float cost = apart2[i] - cells_.view(a, false).own2[i]; cost < best.cost)
                best = {cost, cells_.record(a, i)};
        return best;
    }

    // The best chain that begins with a record that is better off in the next cell.
    Chain best_chain(std::uint32_t a, const std::vector<bool>& done) const {
        Chain best;
        for (std::size_t i = 0; i < n_listed_; ++i) {
            const std::uint32_t b = lists_[a * n_listed_ + i];
            const Way& first = ways_[a * n_listed_ + i];
            if (!(first.cost < 0) || done[b] || cells_.size(b) == cells_.capacity()) continue;
            for (std::size_t e = 0; e < n_listed_; ++e) {
                const std::uint32_t c = lists_[b * n_listed_ + e];
                const Way& second = ways_[b * n_listed_ + e];
                if (second.record == none || c == a || done[c] || cells_.size(c) == cells_.capacity()) continue;
                offer_open(best, a, b, c, first, second);
                offer_closed(best, a, b, c, first, second);
            }
        }
        return best;
    }

    void offer_open(Chain& best, std::uint32_t a, std::uint32_t b, std::uint32_t c, const Way& first,
                    const Way& second) const {
        if (first.cost + second.cost >= 0 || cells_.size(a) <= k_ || cells_.size(c) >= cells_.most()) return;
        const auto size = static_cast<double>(cells_.size(a));
        const double before = size / (size - 1) * cells_.distance2(first.record, a);
        const double after = replaced(b, second.record, first.record) + cells_.cost_to_join(second.record, c);
        const double gain = before - after;
        if (gain > best.gain && gain > cells_.rounding(before)) best = {gain, b, c, first.record, second.record, none};
    }

    void offer_closed(Chain& best, std::uint32_t a, std::uint32_t b, std::uint32_t c, const Way& first,
                      const Way& second) const {
        const auto back = lists_.subspan(c * n_listed_, n_listed_);
        const auto at = std::find(back.begin(), back.end(), a);
        if (at == back.end()) return;
        const Way& third = ways_[c * n_listed_ + static_cast<std::size_t>(at - back.begin())];
        if (!(first.cost + second.cost + third.cost < 0)) return;
        const double gain = -replaced(a, first.record, third.record) - replaced(b, second.record, first.record) -
                            replaced(c, third.record, second.record);
        if (gain > best.gain && gain > cells_.rounding(cells_.distance2(first.record, a)))
            best = {gain, b, c, first.record, second.record, third.record};
    }

    // What the loss of a cell rises by if one record takes the place of another.
    double replaced(std::uint32_t cell, std::uint32_t out, std::uint32_t in) const {
        return cells_.distance2(in, cell) - cells_.distance2(out, cell) -
               cells_.apart2(in, out) / static_cast<double>(cells_.size(cell));
    }

    bool take(std::uint32_t a, const Chain& chain) {
        const double before = loss(a, chain);
        transfer(a, chain.to_b, chain.b);
        transfer(chain.b, chain.to_c, chain.c);
        if (chain.to_a != none) transfer(chain.c, chain.to_a, a);
        if (loss(a, chain) < before) return true;
        if (chain.to_a != none) transfer(a, chain.to_a, chain.c);
        transfer(chain.c, chain.to_c, chain.b);
        transfer(chain.b, chain.to_b, a);
        return false;
    }
    double loss(std::uint32_t a, const Chain& chain) const {
        return cells_.precise_loss(a) + cells_.precise_loss(chain.b) + cells_.precise_loss(chain.c);
    }
    void transfer(std::uint32_t from, std::uint32_t record, std::uint32_t to) {
        cells_.transfer(from, slot(from, record), to);
    }

    std::size_t slot(std::uint32_t cell, std::uint32_t record) const {
        std::size_t at = 0;
        while (cells_.record(cell, at) != record) ++at;
        return at;
    }

    bool cut_pair(std::uint32_t a, std::uint32_t b) {
        pool(a, b);
        const std::size_t n_a = cells_.size(a);
        for (std::uint32_t i = 0; i < members_.size(); ++i) order_[i] = {0.0, i};
        double best = cost_of_cut(n_a);
        best -= cells_.rounding(best);
        put_in_line();
        std::size_t cut = 0;
        for (std::size_t n = k_; n + k_ <= members_.size(); ++n) {
            if (n > cells_.most() || members_.size() - n > cells_.most()) continue;
            const double cost = cost_of_cut(n);
            if (cost < best) {
                best = cost;
                cut = n;
            }
        }
        if (cut == 0) return false;
        rearrange(a, b, n_a, cut);
        return true;
    }

    // The records of both cells, seen from their common mean.
    void pool(std::uint32_t a, std::uint32_t b) {
        members_.clear();
        for (const std::uint32_t cell : {a, b})
            for (std::size_t i = 0; i < cells_.size(cell); ++i) members_.push_back(cells_.record(cell, i));
        const std::size_t m = cells_.dims();
        rows_.resize(members_.size() * m);
        order_.resize(members_.size());
        for (std::size_t j = 0; j < m; ++j) {
            double sum = 0;
            for (const std::uint32_t record : members_) sum += cells_.value(record, j);
            const double mean = sum / static_cast<double>(members_.size());
            for (std::size_t i = 0; i < members_.size(); ++i) rows_[i * m + j] = cells_.value(members_[i], j) - mean;
        }
    }

    // By where they lie between the record farthest from the mean and the one farthest from that.
    void put_in_line() {
        const std::size_t m = cells_.dims();
        const std::vector<double> mean(m, 0.0);
        const std::size_t p = farthest(mean.data());
        const std::size_t q = farthest(&rows_[p * m]);
        for (std::uint32_t i = 0; i < members_.size(); ++i) {
            double along = 0;
            for (std::size_t j = 0; j < m; ++j) along += rows_[i * m + j] * (rows_[q * m + j] - rows_[p * m + j]);
            order_[i] = {along, i};
        }
        std::sort(order_.begin(), order_.end());
    }

    std::size_t farthest(const double* point) const {
        const std::size_t m = cells_.dims();
        std::size_t best = 0;
        double most = -1;
        for (std::size_t i = 0; i < members_.size(); ++i) {
            double sum = 0;
            for (std::size_t j = 0; j < m; ++j) sum += (rows_[i * m + j] - point[j]) * (rows_[i * m + j] - point[j]);
            if (sum > most) {
                most = sum;
                best = i;
            }
        }
        return best;
    }

    // What the first n in line and the others lose.
    double cost_of_cut(std::size_t n) const { return cost_of_part(0, n) + cost_of_part(n, members_.size()); }
    double cost_of_part(std::size_t from, std::size_t to) const {
        const std::size_t m = cells_.dims();
        double squares = 0;
        for (std::size_t j = 0; j < m; ++j) {
            double mean = 0;
            for (std::size_t i = from; i < to; ++i) mean += rows_[order_[i].second * m + j];
            mean /= static_cast<double>(to - from);
            for (std::size_t i = from; i < to; ++i) {
                const double difference = rows_[order_[i].second * m + j] - mean;
                squares += difference * difference;
            }
        }
        return squares;
    }

    // The first `cut` in line make up cell a. Always from the larger cell, so that none gets too large in between.
    void rearrange(std::uint32_t a, std::uint32_t b, std::size_t n_a, std::size_t cut) {
        std::vector<std::uint32_t> from_a;
        std::vector<std::uint32_t> from_b;
        for (std::size_t i = 0; i < order_.size(); ++i) {
            const std::uint32_t member = order_[i].second;
            if (member < n_a && i >= cut) from_a.push_back(members_[member]);
            if (member >= n_a && i < cut) from_b.push_back(members_[member]);
        }
        while (!from_a.empty() || !from_b.empty()) {
            const bool a_gives = from_b.empty() || (!from_a.empty() && cells_.size(a) >= cells_.size(b));
            auto& leaving = a_gives ? from_a : from_b;
            const std::uint32_t from = a_gives ? a : b;
            transfer(from, leaving.back(), a_gives ? b : a);
            leaving.pop_back();
        }
    }

    CellTiles& cells_;
    std::size_t k_;
    const Loops& loops_;
    std::span<const std::uint32_t> lists_;
    std::size_t n_listed_;
    std::size_t n_used_;
    Poller& poller_;
    std::vector<Way> ways_;  // from each cell to each of those near it
    std::vector<std::uint32_t> members_;
    std::vector<double> rows_;
    std::vector<std::pair<double, std::uint32_t>> order_;
};

}  // namespace shoal
