// Specialisation: parts of the table are cut, column by column, into groups that say more, as long as each keeps k.
//
// Top-down specialisation (Fung, Wang and Yu, ICDE 2005) within each part. Of all cuts the one is taken that lowers the
// certainty penalty of its column most for the entropy of the groups: only so much can be cut before groups fall below
// k. A hierarchy is cut into the children of the common ancestor, categories into single ones, or the largest of these
// is cut off if it has a fair share of the records; numbers are cut at the median. Groups of fewer than k records stay
// together. The time is near-linear in the records.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "ncp/table.hpp"
#include "parallel/polling.hpp"

namespace shoal {

class NcpSpecialise {
  public:
    NcpSpecialise(const NcpTable& table, std::size_t k, Poller& poller)
        : table_(table), k_(k), poller_(poller), records_(table.size()) {}

    // Writes cells of at least k records, numbered from 0 without gaps: neighbours in the tree of cuts have
    // neighbouring numbers. Reports records that are in their cells to the poller.
    void run(std::span<std::int64_t> labels) {
        std::iota(records_.begin(), records_.end(), std::uint32_t{0});
        std::vector<std::span<std::uint32_t>> parts{records_};
        std::int64_t n_cells = 0;
        std::size_t n_done = 0;
        while (!parts.empty()) {
            poller_.tick(n_done);
            const std::span<std::uint32_t> part = parts.back();
            parts.pop_back();
            if (find_cut(part)) {
                add_groups(part, parts);
                continue;
            }
            for (const std::uint32_t i : part) labels[i] = n_cells;
            ++n_cells;
            n_done += part.size();
        }
        poller_.finish(n_done);
    }

  private:
    // Gains that differ by less than this share are equal: the first is taken.
    static constexpr double rounding = 1e-9;
    // The largest child or category is cut off alone if it has at least this share of the records (1 in 64).
    // Otherwise a column of many small categories would be cut one by one, in quadratic time.
    static constexpr std::size_t largest_share = 64;

    // Looks for the best cut, and leaves the group of each record of the part in `best_`.
    bool find_cut(std::span<const std::uint32_t> part) {
        best_gain_ = 0;
        if (part.size() < 2 * k_) return false;
        for (std::size_t j = 0; j < table_.n_ordered() + table_.n_categories(); ++j) {
            poller_.tick();
            tell_apart(part, j);
            try_groups(part, j);
            if (counts_.size() <= 2 || std::ranges::max(counts_) * largest_share < part.size()) continue;
            keep_largest_apart();
            try_groups(part, j);
        }
        return best_gain_ > 0;
    }

    // Writes the values that distinguish the records of a part in a column, numbered from 0, to `codes_`, and counts
    // them.
    void tell_apart(std::span<const std::uint32_t> part, std::size_t j) {
        codes_.resize(part.size());
        if (j < table_.n_numbers())
            tell_halves_apart(part, j);
        else if (j < table_.n_ordered())
            tell_children_apart(part, j);
        else
            for (std::size_t i = 0; i < part.size(); ++i) codes_[i] = table_.code(j - table_.n_ordered(), part[i]);
        number_codes();
    }

    // 0 below the cut nearest to the median that leaves k on both sides, 1 above, 2 where missing.
    void tell_halves_apart(std::span<const std::uint32_t> part, std::size_t j) {
        values_.clear();
        for (const std::uint32_t i : part)
            if (table_.ordered(j, i) != NcpTable::missing) values_.push_back(table_.ordered(j, i));
        std::ranges::sort(values_);
        const std::size_t n = values_.size();
        std::size_t best = 0, nearest = n + 1;
        for (std::size_t cut = k_; cut + k_ <= n; ++cut) {
            const std::size_t off = 2 * cut > n ? 2 * cut - n : n - 2 * cut;
            if (values_[cut] == values_[cut - 1] || off >= nearest) continue;
            best = cut;
            nearest = off;
        }
        for (std::size_t i = 0; i < part.size(); ++i) {
            const double value = table_.ordered(j, part[i]);
            codes_[i] = value == NcpTable::missing ? 2 : best > 0 && value >= values_[best];
        }
    }

    void tell_children_apart(std::span<const std::uint32_t> part, std::size_t j) {
        const LeafOrder& tree = table_.tree(j);
        double low = table_.ordered(j, part[0]), high = low;
        for (const std::uint32_t i : part) {
            low = std::min(low, table_.ordered(j, i));
            high = std::max(high, table_.ordered(j, i));
        }
        const std::size_t level = tree.level(low, high);
        for (std::size_t i = 0; i < part.size(); ++i)
            codes_[i] = static_cast<std::uint32_t>(tree.node(table_.ordered(j, part[i]), level - (level > 0)));
    }

    void number_codes() {
        found_.assign(codes_.begin(), codes_.end());
        std::ranges::sort(found_);
        found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
        counts_.assign(found_.size(), 0);
        for (std::uint32_t& code : codes_) {
            code = static_cast<std::uint32_t>(std::ranges::lower_bound(found_, code) - found_.begin());
            ++counts_[code];
        }
    }

    void keep_largest_apart() {
        const auto largest = static_cast<std::uint32_t>(std::ranges::max_element(counts_) - counts_.begin());
        const std::size_t count = counts_[largest];
        for (std::uint32_t& code : codes_) code = code == largest;
        counts_ = {codes_.size() - count, count};
    }

    // Groups the distinguished values, and keeps the groups if they are the best so far.
    void try_groups(std::span<const std::uint32_t> part, std::size_t j) {
        if (!number_groups()) return;
        groups_.resize(part.size());
        for (std::size_t i = 0; i < part.size(); ++i) groups_[i] = group_of_[codes_[i]];
        const double gain = gain_of_groups(part, j);
        if (gain <= best_gain_ * (1 + rounding)) return;
        best_gain_ = gain;
        best_ = groups_;
    }

    // A group for each value of at least k records and one for the rest, with the smallest of them if it has too few.
    // Returns whether there are several.
    bool number_groups() {
        std::size_t n_small = 0, least = counts_.size();
        for (std::size_t v = 0; v < counts_.size(); ++v)
            if (counts_[v] < k_)
                n_small += counts_[v];
            else if (least == counts_.size() || counts_[v] < counts_[least])
                least = v;
        const bool joined = n_small > 0 && n_small < k_ && least < counts_.size();
        n_groups_ = n_small > 0;
        group_of_.assign(counts_.size(), 0);
        for (std::uint32_t v = 0; v < counts_.size(); ++v)
            if (counts_[v] >= k_ && !(joined && v == least)) group_of_[v] = static_cast<std::uint32_t>(n_groups_++);
        return n_groups_ > 1;
    }

    // By how much the groups lower the penalty of a column, over their entropy.
    double gain_of_groups(std::span<const std::uint32_t> part, std::size_t j) {
        sizes_.assign(n_groups_, 0);
        for (const std::uint32_t group : groups_) ++sizes_[group];
        const auto n = static_cast<double>(part.size());
        const double before = penalties(part, j);
        double after = 0, entropy = 0;
        for (std::size_t g = 0; g < n_groups_; ++g) {
            const double share = static_cast<double>(sizes_[g]) / n;
            after += share * of_group_[g];
            entropy -= share * std::log(share);
        }
        return (before - after) / entropy;
    }

    // The penalty of the part in a column; that of each group goes into `of_group_`.
    double penalties(std::span<const std::uint32_t> part, std::size_t j) {
        of_group_.resize(n_groups_);
        if (j >= table_.n_ordered()) return category_penalties(part, j - table_.n_ordered());
        low_.assign(n_groups_ + 1, std::numeric_limits<double>::infinity());
        high_.assign(n_groups_ + 1, -std::numeric_limits<double>::infinity());
        for (std::size_t i = 0; i < part.size(); ++i) {
            const double value = table_.ordered(j, part[i]);
            low_[groups_[i]] = std::min(low_[groups_[i]], value);
            high_[groups_[i]] = std::max(high_[groups_[i]], value);
        }
        for (std::size_t g = 0; g < n_groups_; ++g) {
            of_group_[g] = table_.of_ordered(j, low_[g], high_[g]);
            low_.back() = std::min(low_.back(), low_[g]);
            high_.back() = std::max(high_.back(), high_[g]);
        }
        return table_.of_ordered(j, low_.back(), high_.back());
    }

    double category_penalties(std::span<const std::uint32_t> part, std::size_t j) {
        pairs_.clear();
        for (std::size_t i = 0; i < part.size(); ++i) pairs_.emplace_back(groups_[i], table_.code(j, part[i]));
        std::ranges::sort(pairs_);
        pairs_.erase(std::unique(pairs_.begin(), pairs_.end()), pairs_.end());
        // The groups have no category in common.
        std::ranges::fill(of_group_, -table_.of_category(j));
        for (const auto& [group, code] : pairs_) of_group_[group] += table_.of_category(j);
        return table_.of_category(j) * static_cast<double>(pairs_.size() - 1);
    }

    // Sorts the records of a part by group, and adds the groups to the parts.
    void add_groups(std::span<std::uint32_t> part, std::vector<std::span<std::uint32_t>>& parts) {
        const std::size_t n_groups = std::size_t{*std::ranges::max_element(best_)} + 1;
        std::vector<std::size_t> begin(n_groups + 1, 0);
        for (const std::uint32_t group : best_) ++begin[group + 1];
        std::partial_sum(begin.begin(), begin.end(), begin.begin());
        const std::vector<std::uint32_t> before(part.begin(), part.end());
        std::vector<std::size_t> next = begin;
        for (std::size_t i = 0; i < before.size(); ++i) part[next[best_[i]]++] = before[i];
        for (std::size_t g = 0; g < n_groups; ++g) parts.push_back(part.subspan(begin[g], begin[g + 1] - begin[g]));
    }

    const NcpTable& table_;
    std::size_t k_;
    Poller& poller_;
    std::vector<std::uint32_t> records_;  // part by part
    std::vector<double> values_;
    std::vector<std::uint32_t> codes_, found_;  // of the records of a part in a column
    std::vector<std::size_t> counts_;           // of each code
    std::vector<std::uint32_t> group_of_;       // of each code
    std::size_t n_groups_ = 0;
    std::vector<std::uint32_t> groups_, best_;  // of each record of a part
    double best_gain_ = 0;
    std::vector<std::size_t> sizes_;  // of each group
    std::vector<double> low_, high_, of_group_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs_;
};

}  // namespace shoal
