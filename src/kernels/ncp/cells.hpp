// Cells under the certainty penalty, with what is needed to compute quickly what a record costs its cell or another.
//
// Of each cell and ordered column the two lowest and the two highest values are kept, and of each category whether it
// occurs, and whether once: the ends and the categories are then known for the cell without any record and with any.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "ncp/table.hpp"

namespace shoal {

class NcpCells {
  public:
    static constexpr std::uint32_t none = 0xffffffff;

    // Some records of a table, numbered anew from 0, and the cell of each, numbered from 0 without gaps.
    NcpCells(const NcpTable& table, std::span<const std::uint32_t> records, std::span<const std::uint32_t> cell_of)
        : table_(table),
          n_ordered_(table.n_ordered()),
          n_categories_(table.n_categories()),
          cell_(records.size()),
          slot_(records.size()),
          gain_(records.size()),
          ordered_(records.size() * n_ordered_),
          bits_(records.size() * n_categories_) {
        for (std::size_t i = 0; i < records.size(); ++i)
            for (std::size_t j = 0; j < n_ordered_; ++j) ordered_[i * n_ordered_ + j] = table.ordered(j, records[i]);
        number_categories(records);
        for (std::uint32_t i = 0; i < records.size(); ++i) {
            while (members_.size() <= cell_of[i]) add();
            put(i, cell_of[i]);
        }
        for (std::uint32_t c = 0; c < members_.size(); ++c) settle(c);
    }

    std::size_t n_records() const { return cell_.size(); }
    std::size_t n_cells() const { return members_.size(); }
    std::span<const std::uint32_t> members(std::uint32_t cell) const { return members_[cell]; }
    std::size_t size(std::uint32_t cell) const { return members_[cell].size(); }
    std::uint32_t cell(std::uint32_t record) const { return cell_[record]; }
    std::span<const std::uint32_t> cells() const { return cell_; }

    // Per record, summed over the columns; 0 of a cell without records.
    double penalty(std::uint32_t cell) const { return penalty_[cell]; }
    double loss(std::uint32_t cell) const { return penalty_[cell] * static_cast<double>(size(cell)); }
    // By how much the penalty of its cell falls without a record.
    double gain(std::uint32_t record) const { return gain_[record]; }

    // The penalty of a cell that one record leaves and another enters; either may be none. It has others as well.
    double penalty(std::uint32_t cell, std::uint32_t leaves, std::uint32_t enters) const {
        double sum = categories_[cell];
        const double* low = &ends_[cell * 4 * n_ordered_];
        const double *next_low = low + n_ordered_, *high = next_low + n_ordered_, *next_high = high + n_ordered_;
        const double* out = leaves == none ? nullptr : &ordered_[leaves * n_ordered_];
        const double* in = enters == none ? nullptr : &ordered_[enters * n_ordered_];
        for (std::size_t j = 0; j < n_ordered_; ++j) {
            double least = low[j], greatest = high[j];
            if (out) {
                least = out[j] == least ? next_low[j] : least;
                greatest = out[j] == greatest ? next_high[j] : greatest;
            }
            if (in) {
                least = std::min(least, in[j]);
                greatest = std::max(greatest, in[j]);
            }
            sum += table_.of_ordered(j, least, greatest);
        }
        const std::uint64_t* there = &there_[cell * n_words_];
        const std::uint64_t* twice = &twice_[cell * n_words_];
        const std::uint32_t* gone = leaves == none ? nullptr : &bits_[leaves * n_categories_];
        const std::uint32_t* come = enters == none ? nullptr : &bits_[enters * n_categories_];
        for (std::size_t j = 0; j < n_categories_; ++j) {
            if (gone && come && gone[j] == come[j]) continue;
            if (gone && !has(twice, gone[j])) sum -= table_.of_category(j);
            if (come && !has(there, come[j])) sum += table_.of_category(j);
        }
        return sum;
    }

    void move(std::uint32_t record, std::uint32_t to) {
        const std::uint32_t from = cell_[record];
        take(record);
        put(record, to);
        settle(from);
        settle(to);
    }
    void swap(std::uint32_t x, std::uint32_t y) {
        const std::uint32_t a = cell_[x], b = cell_[y];
        take(x);
        take(y);
        put(x, b);
        put(y, a);
        settle(a);
        settle(b);
    }

  private:
    static bool has(const std::uint64_t* words, std::uint32_t bit) { return words[bit / 64] >> (bit % 64) & 1; }

    // A bit for each category that occurs in these records.
    void number_categories(std::span<const std::uint32_t> records) {
        std::uint32_t n_bits = 0;
        for (std::size_t j = 0; j < n_categories_; ++j) {
            std::vector<std::uint32_t> number(table_.n_values(j), none);
            for (std::size_t i = 0; i < records.size(); ++i) {
                std::uint32_t& bit = number[table_.code(j, records[i])];
                if (bit == none) bit = n_bits++;
                bits_[i * n_categories_ + j] = bit;
            }
        }
        n_words_ = (n_bits + 63) / 64;
    }

    void add() {
        members_.emplace_back();
        penalty_.push_back(0);
        categories_.push_back(0);
        ends_.resize(ends_.size() + 4 * n_ordered_);
        there_.resize(there_.size() + n_words_);
        twice_.resize(twice_.size() + n_words_);
    }
    void put(std::uint32_t record, std::uint32_t cell) {
        cell_[record] = cell;
        slot_[record] = static_cast<std::uint32_t>(members_[cell].size());
        members_[cell].push_back(record);
    }
    void take(std::uint32_t record) {
        std::vector<std::uint32_t>& members = members_[cell_[record]];
        members[slot_[record]] = members.back();
        slot_[members.back()] = slot_[record];
        members.pop_back();
    }

    // Recounts what is kept of a cell.
    void settle(std::uint32_t cell) {
        settle_ends(cell);
        settle_categories(cell);
        penalty_[cell] = size(cell) == 0 ? 0 : penalty(cell, none, none);
        for (const std::uint32_t i : members_[cell])
            gain_[i] = size(cell) == 1 ? 0 : penalty_[cell] - penalty(cell, i, none);
    }
    void settle_ends(std::uint32_t cell) {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        double* low = &ends_[cell * 4 * n_ordered_];
        double *next_low = low + n_ordered_, *high = next_low + n_ordered_, *next_high = high + n_ordered_;
        std::fill_n(low, 2 * n_ordered_, infinity);
        std::fill_n(high, 2 * n_ordered_, -infinity);
        for (const std::uint32_t i : members_[cell]) {
            const double* row = &ordered_[i * n_ordered_];
            for (std::size_t j = 0; j < n_ordered_; ++j) {
                next_low[j] = std::min(next_low[j], std::max(low[j], row[j]));
                low[j] = std::min(low[j], row[j]);
                next_high[j] = std::max(next_high[j], std::min(high[j], row[j]));
                high[j] = std::max(high[j], row[j]);
            }
        }
    }
    void settle_categories(std::uint32_t cell) {
        std::uint64_t* there = &there_[cell * n_words_];
        std::uint64_t* twice = &twice_[cell * n_words_];
        std::fill_n(there, n_words_, 0);
        std::fill_n(twice, n_words_, 0);
        double sum = 0;
        for (std::size_t j = 0; j < n_categories_; ++j) {
            std::size_t n_found = 0;
            for (const std::uint32_t i : members_[cell]) {
                const std::uint32_t bit = bits_[i * n_categories_ + j];
                const std::uint64_t mask = std::uint64_t{1} << (bit % 64);
                n_found += !(there[bit / 64] & mask);
                twice[bit / 64] |= there[bit / 64] & mask;
                there[bit / 64] |= mask;
            }
            if (n_found > 0) sum += table_.of_category(j) * static_cast<double>(n_found - 1);
        }
        categories_[cell] = sum;
    }

    const NcpTable& table_;
    std::size_t n_ordered_;
    std::size_t n_categories_;
    std::size_t n_words_ = 0;
    std::vector<std::uint32_t> cell_, slot_;  // of each record: its cell, and where it stands in it
    std::vector<double> gain_;
    std::vector<double> ordered_;      // of each record: numbers and places of leaves
    std::vector<std::uint32_t> bits_;  // of each record: its categories
    std::vector<std::vector<std::uint32_t>> members_;
    std::vector<double> penalty_;
    std::vector<double> categories_;    // the part of the penalty that is due to categories
    std::vector<double> ends_;          // of each cell: lowest, next to lowest, highest, next to highest of each column
    std::vector<std::uint64_t> there_;  // of each cell: the categories that occur
    std::vector<std::uint64_t> twice_;  // and those that occur more than once
};

}  // namespace shoal
