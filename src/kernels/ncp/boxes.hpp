// What cells publish, as boxes: a range in each ordered column, which is that of an ancestor if the column is a
// hierarchy, and a set in each column of categories. Records in a box can enter its cell at no cost.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "ncp/table.hpp"
#include "numeric/portable_random.hpp"

namespace shoal {

struct NcpBox {
    std::vector<std::uint32_t> low, high;  // ranks of values, both included
    std::vector<std::uint64_t> there;      // bits of categories
};

// Some records of a table, numbered anew from 0, and boxes around them.
class NcpBoxes {
  public:
    NcpBoxes(const NcpTable& table, std::span<const std::uint32_t> records)
        : table_(table),
          n_(records.size()),
          n_words_((n_ + 63) / 64),
          n_ordered_(table.n_ordered()),
          n_categories_(table.n_categories()),
          ranks_(n_ * n_ordered_),
          bits_(n_ * n_categories_),
          values_(n_ordered_),
          at_most_(n_ordered_),
          nodes_(n_ordered_) {
        for (std::size_t j = 0; j < n_ordered_; ++j) add_ordered(j, records);
        for (std::size_t j = 0; j < n_categories_; ++j) add_categories(j, records);
    }

    std::size_t n_records() const { return n_; }

    // Per record, summed over the columns.
    double penalty(const NcpBox& box) const {
        double sum = 0;
        for (std::size_t j = 0; j < n_ordered_; ++j)
            sum += table_.of_ordered(j, values_[j][box.low[j]], values_[j][box.high[j]]);
        for (std::size_t j = 0; j < n_categories_; ++j)
            sum += table_.of_category(j) * static_cast<double>(n_values(box, j) - 1);
        return sum;
    }

    bool covers(const NcpBox& box, std::uint32_t record) const {
        const std::uint32_t* ranks = &ranks_[record * n_ordered_];
        for (std::size_t j = 0; j < n_ordered_; ++j)
            if (ranks[j] < box.low[j] || ranks[j] > box.high[j]) return false;
        const std::uint32_t* bits = &bits_[record * n_categories_];
        for (std::size_t j = 0; j < n_categories_; ++j)
            if (!(box.there[bits[j] / 64] >> (bits[j] % 64) & 1)) return false;
        return true;
    }

    // The smallest box around some records.
    NcpBox around(std::span<const std::uint32_t> members) const {
        NcpBox box{std::vector<std::uint32_t>(n_ordered_, std::numeric_limits<std::uint32_t>::max()),
                   std::vector<std::uint32_t>(n_ordered_, 0), std::vector<std::uint64_t>(n_bits_ / 64, 0)};
        for (const std::uint32_t i : members) {
            for (std::size_t j = 0; j < n_ordered_; ++j) {
                box.low[j] = std::min(box.low[j], ranks_[i * n_ordered_ + j]);
                box.high[j] = std::max(box.high[j], ranks_[i * n_ordered_ + j]);
            }
            for (std::size_t j = 0; j < n_categories_; ++j) set_bit(box, bits_[i * n_categories_ + j]);
        }
        for (std::size_t j = table_.n_numbers(); j < n_ordered_; ++j) set_node(box, j, box.low[j], level(box, j));
        return box;
    }

    // Calls `visit` with every record in a box, in order.
    template <class Visit>
    void each_covered(const NcpBox& box, const Visit& visit) {
        choose_columns(box);
        for (std::size_t w = 0; w < n_words_; ++w) {
            std::uint64_t word =
                w + 1 < n_words_ || n_ % 64 == 0 ? ~std::uint64_t{0} : (std::uint64_t{1} << n_ % 64) - 1;
            for (const std::uint64_t* some : inside_) word &= some[w];
            for (const std::uint64_t* some : outside_) word &= ~some[w];
            for (; word != 0; word &= word - 1) {
                const auto i = static_cast<std::uint32_t>(w * 64 + static_cast<std::size_t>(std::countr_zero(word)));
                if (covers(box, i)) visit(i);
            }
        }
    }

    // Narrows a box in a random column around one of its records. Returns whether it has changed.
    bool narrow(NcpBox& box, std::uint32_t record, PortableRandom& random) const {
        const std::size_t j = random.below(n_ordered_ + n_categories_);
        if (j >= n_ordered_) return keep_one_category(box, record, j - n_ordered_);
        const std::uint32_t rank = ranks_[record * n_ordered_ + j], low = box.low[j], high = box.high[j];
        if (j < table_.n_numbers()) {
            box.low[j] = low + random.below(rank - low + 1);
            box.high[j] = rank + random.below(high - rank + 1);
        } else if (const std::size_t now = level(box, j); now > 0) {
            set_node(box, j, rank, random.below(now));
        }
        return box.low[j] != low || box.high[j] != high;
    }

    // Widens a box in a random column of those that are ordered: a hierarchy to the next node that says less.
    bool widen(NcpBox& box, PortableRandom& random) const {
        if (n_ordered_ == 0) return false;
        const std::size_t j = random.below(n_ordered_);
        const std::uint32_t low = box.low[j], high = box.high[j];
        if (j < table_.n_numbers()) {
            box.low[j] -= std::min(low, random.below(high - low + 2));
            const auto last = static_cast<std::uint32_t>(values_[j].size() - 1);
            box.high[j] += std::min(last - high, random.below(high - low + 2));
        } else {
            const std::size_t n_levels = table_.tree(j).n_levels();
            for (std::size_t up = level(box, j) + 1; up < n_levels && box.low[j] == low && box.high[j] == high; ++up)
                set_node(box, j, low, up);
        }
        return box.low[j] != low || box.high[j] != high;
    }

  private:
    // Maximum number of bins of an ordered column, each with a bit for every record.
    static constexpr std::size_t most_bins = 128;
    // Sets of more categories are not looked up.
    static constexpr std::size_t most_looked_up = 8;

    using Words = std::vector<std::uint64_t>;
    struct Range {
        std::uint32_t low, high;
    };

    void add_ordered(std::size_t j, std::span<const std::uint32_t> records) {
        std::vector<double>& values = values_[j];
        for (const std::uint32_t i : records) values.push_back(table_.ordered(j, i));
        std::ranges::sort(values);
        values.erase(std::unique(values.begin(), values.end()), values.end());
        at_most_[j].assign(std::min(values.size(), most_bins), Words(n_words_, 0));
        for (std::uint32_t i = 0; i < n_; ++i) {
            const std::uint32_t rank = rank_of(j, table_.ordered(j, records[i]));
            ranks_[i * n_ordered_ + j] = rank;
            at_most_[j][bin(j, rank)][i / 64] |= std::uint64_t{1} << i % 64;
        }
        for (std::size_t b = 1; b < at_most_[j].size(); ++b)
            for (std::size_t w = 0; w < n_words_; ++w) at_most_[j][b][w] |= at_most_[j][b - 1][w];
        if (j >= table_.n_numbers()) find_nodes(j);
    }
    std::uint32_t rank_of(std::size_t j, double value) const {
        return static_cast<std::uint32_t>(std::ranges::lower_bound(values_[j], value) - values_[j].begin());
    }
    std::size_t bin(std::size_t j, std::size_t rank) const { return rank * at_most_[j].size() / values_[j].size(); }

    // The ranks below each node above some value, by rank and level.
    void find_nodes(std::size_t j) {
        const LeafOrder& tree = table_.tree(j);
        for (const double place : values_[j])
            for (std::size_t level = 0; level < tree.n_levels(); ++level) {
                const std::size_t node = tree.node(place, level);
                nodes_[j].push_back({rank_of(j, tree.first(node)), rank_of(j, tree.last(node) + 1) - 1});
            }
    }
    std::size_t level(const NcpBox& box, std::size_t j) const {
        return table_.tree(j).level(values_[j][box.low[j]], values_[j][box.high[j]]);
    }
    void set_node(NcpBox& box, std::size_t j, std::uint32_t rank, std::size_t level) const {
        const Range range = nodes_[j][rank * table_.tree(j).n_levels() + level];
        box.low[j] = range.low;
        box.high[j] = range.high;
    }

    // Bits in words of their own for the categories of each column, and the records of each category.
    void add_categories(std::size_t j, std::span<const std::uint32_t> records) {
        first_bits_.push_back(n_bits_);
        std::vector<std::uint32_t> bit(table_.n_values(j), std::numeric_limits<std::uint32_t>::max());
        std::size_t n_found = 0;
        for (std::uint32_t i = 0; i < n_; ++i) {
            std::uint32_t& found = bit[table_.code(j, records[i])];
            if (found == std::numeric_limits<std::uint32_t>::max())
                found = static_cast<std::uint32_t>(n_bits_ + n_found++);
            bits_[i * n_categories_ + j] = found;
        }
        n_bits_ += (n_found + 63) / 64 * 64;
        with_.resize(n_bits_);
        if (n_found > most_bins) return;
        for (std::uint32_t i = 0; i < n_; ++i) {
            Words& words = with_[bits_[i * n_categories_ + j]];
            words.resize(n_words_);
            words[i / 64] |= std::uint64_t{1} << i % 64;
        }
    }
    std::size_t last_bit(std::size_t j) const { return j + 1 < n_categories_ ? first_bits_[j + 1] : n_bits_; }
    std::size_t n_values(const NcpBox& box, std::size_t j) const {
        std::size_t n_found = 0;
        for (std::size_t w = first_bits_[j] / 64; w < last_bit(j) / 64; ++w)
            n_found += static_cast<std::size_t>(std::popcount(box.there[w]));
        return n_found;
    }
    static void set_bit(NcpBox& box, std::size_t bit) { box.there[bit / 64] |= std::uint64_t{1} << bit % 64; }
    bool keep_one_category(NcpBox& box, std::uint32_t record, std::size_t j) const {
        if (n_values(box, j) == 1) return false;
        for (std::size_t w = first_bits_[j] / 64; w < last_bit(j) / 64; ++w) box.there[w] = 0;
        set_bit(box, bits_[record * n_categories_ + j]);
        return true;
    }

    // The bits of records that rule out most of those that are not in a box: all in `inside_`, none in `outside_`.
    void choose_columns(const NcpBox& box) {
        inside_.clear();
        outside_.clear();
        for (std::size_t j = 0; j < n_ordered_; ++j) {
            const std::size_t low = bin(j, box.low[j]), high = bin(j, box.high[j]);
            if (high + 1 < at_most_[j].size()) inside_.push_back(at_most_[j][high].data());
            if (low > 0) outside_.push_back(at_most_[j][low - 1].data());
        }
        unions_.resize(n_categories_);
        for (std::size_t j = 0; j < n_categories_; ++j) look_up_categories(box, j);
    }
    void look_up_categories(const NcpBox& box, std::size_t j) {
        if (n_values(box, j) > most_looked_up || with_[first_bits_[j]].empty()) return;
        unions_[j].assign(n_words_, 0);
        for (std::size_t bit = first_bits_[j]; bit < last_bit(j); ++bit)
            if (box.there[bit / 64] >> (bit % 64) & 1)
                for (std::size_t w = 0; w < n_words_; ++w) unions_[j][w] |= with_[bit][w];
        inside_.push_back(unions_[j].data());
    }

    const NcpTable& table_;
    std::size_t n_, n_words_;
    std::size_t n_ordered_, n_categories_;
    std::vector<std::uint32_t> ranks_;         // of each record in each ordered column
    std::vector<std::uint32_t> bits_;          // of each record: its categories
    std::vector<std::vector<double>> values_;  // of each ordered column, ascending
    std::vector<std::vector<Words>> at_most_;  // of each ordered column and bin: the records up to it
    std::vector<std::vector<Range>> nodes_;    // of each hierarchy, rank and level
    std::vector<std::size_t> first_bits_;      // of each column of categories
    std::size_t n_bits_ = 0;
    std::vector<Words> with_;    // the records of each category
    std::vector<Words> unions_;  // those of the categories of a box, by column
    std::vector<const std::uint64_t*> inside_, outside_;
};

}  // namespace shoal
