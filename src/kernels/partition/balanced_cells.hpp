// Cells that each hold the same share of every part of the confidential column: an initial partition for models.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "numeric/rows.hpp"
#include "numeric/selection.hpp"
#include "parallel/polling.hpp"

namespace shoal {

// The records sorted by code are cut into `size` strata of n / size; each of the n / size cells gets one record of each
// stratum, near each other: all strata are halved recursively along the column of largest variance. The records left
// over are in the central stratum. Strata with the same single value are merged.
class BalancedCells {
  public:
    BalancedCells(Rows<const double> X, std::span<const std::int64_t> codes, std::size_t size, std::size_t parts)
        : X_(X), n_cells_(X.size() / size) {
        for (std::uint32_t i = 0; i < X.size(); ++i) records_.push_back(i);
        std::ranges::sort(records_, {}, [&](std::uint32_t i) { return std::pair(codes[i], i); });
        cut(codes, size, parts);
    }

    void run(std::span<std::int64_t> labels, Poller& poller) {
        std::int64_t next = 0;
        halve(strata_, n_cells_, labels, next, poller);
    }

  private:
    // A range of records of which every cell gets the same number, or one more.
    struct Stratum {
        std::size_t from;
        std::size_t to;
        std::size_t size() const { return to - from; }
    };

    void cut(std::span<const std::int64_t> codes, std::size_t size, std::size_t parts) {
        const std::size_t left_over = records_.size() - size * n_cells_;
        for (std::size_t s = 0, from = 0; s < parts; ++s) {
            const std::size_t quota = size * (s + 1) / parts - size * s / parts;
            const std::size_t to = from + quota * n_cells_ + (s == parts / 2 ? left_over : 0);
            const bool same = !strata_.empty() && codes[records_[strata_.back().from]] == codes[records_[to - 1]];
            if (same)
                strata_.back().to = to;
            else
                strata_.push_back({from, to});
            from = to;
        }
    }

    void halve(const std::vector<Stratum>& strata, std::size_t n_cells, std::span<std::int64_t> labels,
               std::int64_t& next, Poller& poller) {
        poller.tick();
        if (n_cells == 1) {
            for (const Stratum& stratum : strata)
                for (std::size_t i = stratum.from; i < stratum.to; ++i) labels[records_[i]] = next;
            ++next;
            return;
        }
        const std::size_t column = widest(strata);
        const auto before = [&](std::uint32_t a, std::uint32_t b) {
            return std::pair(X_[a][column], a) < std::pair(X_[b][column], b);
        };
        std::vector<Stratum> low = strata;
        std::vector<Stratum> high = strata;
        for (std::size_t s = 0; s < strata.size(); ++s) {
            const auto [from, to] = strata[s];
            const std::size_t middle = from + strata[s].size() / n_cells * (n_cells / 2) +
                                       strata[s].size() % n_cells * (n_cells / 2) / n_cells;
            const auto begin = records_.begin();
            select_nth(begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(middle),
                       begin + static_cast<std::ptrdiff_t>(to), before);
            low[s].to = high[s].from = middle;
        }
        halve(low, n_cells / 2, labels, next, poller);
        halve(high, n_cells - n_cells / 2, labels, next, poller);
    }

    // The column with the greatest variance, in a sample.
    std::size_t widest(const std::vector<Stratum>& strata) const {
        std::size_t n = 0;
        for (const Stratum& stratum : strata) n += stratum.size();
        const std::size_t every = std::max<std::size_t>(n / 256, 1);
        std::vector<std::uint32_t> sample;
        std::size_t skip = 0;
        for (const Stratum& stratum : strata) {
            std::size_t i = stratum.from + skip;
            for (; i < stratum.to; i += every) sample.push_back(records_[i]);
            skip = i - stratum.to;
        }
        std::size_t best = 0;
        double most = -1;
        for (std::size_t j = 0; j < X_.dims(); ++j) {
            double mean = 0;
            for (const std::uint32_t i : sample) mean += X_[i][j] / static_cast<double>(sample.size());
            double variance = 0;
            for (const std::uint32_t i : sample) variance += (X_[i][j] - mean) * (X_[i][j] - mean);
            if (variance > most) {
                most = variance;
                best = j;
            }
        }
        return best;
    }

    Rows<const double> X_;
    std::size_t n_cells_;
    std::vector<std::uint32_t> records_;
    std::vector<Stratum> strata_;
};

}  // namespace shoal
