// The normalised certainty penalty (NCP): how much less a cell says about its records when it publishes the range of
// their numbers, the set of their categories, or their lowest common ancestor in a hierarchy.
//
// The penalty of a cell in a column is a share of what the column could lose: its range over that of the column, its
// further categories over those of the column, or the further leaves below the ancestor over those of the hierarchy.
// Xu et al., Utility-based anonymization using local recoding, KDD 2006.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "numeric/rows.hpp"

namespace shoal {

// Leaves in an order in which those below any node are neighbours: the ancestor of a set is that of its ends.
class LeafOrder {
  public:
    // `nodes`: the node of each leaf at every level, from itself to the root. `n_below`: leaves below each node.
    LeafOrder(Rows<const std::int32_t> nodes, std::span<const std::int64_t> n_below)
        : n_levels_(nodes.dims()), places_(nodes.size()), nodes_(nodes.flat().size()) {
        std::vector<std::size_t> order(nodes.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
            return std::lexicographical_compare(nodes[a].rbegin(), nodes[a].rend(), nodes[b].rbegin(), nodes[b].rend());
        });
        for (std::size_t place = 0; place < order.size(); ++place) {
            places_[order[place]] = static_cast<double>(place);
            std::ranges::copy(nodes[order[place]], &nodes_[place * n_levels_]);
        }
        const double others = std::max(static_cast<double>(nodes.size()) - 1, 1.0);
        for (const std::int64_t below : n_below) shares_.push_back(static_cast<double>(below - 1) / others);
        find_ends();
    }

    std::size_t n_levels() const { return n_levels_; }
    double place(std::size_t leaf) const { return places_[leaf]; }
    std::size_t node(double place, std::size_t level) const {
        return static_cast<std::size_t>(nodes_[static_cast<std::size_t>(place) * n_levels_ + level]);
    }
    // The places of the first and of the last leaf below a node.
    double first(std::size_t node) const { return first_[node]; }
    double last(std::size_t node) const { return last_[node]; }

    // The level of the lowest common ancestor of all leaves from one place to another, and what is lost by it.
    std::size_t level(double low, double high) const {
        const std::int32_t* a = &nodes_[static_cast<std::size_t>(low) * n_levels_];
        const std::int32_t* b = &nodes_[static_cast<std::size_t>(high) * n_levels_];
        std::size_t level = 0;
        while (a[level] != b[level]) ++level;
        return level;
    }
    double penalty(double low, double high) const { return shares_[node(low, level(low, high))]; }

  private:
    void find_ends() {
        first_.assign(shares_.size(), static_cast<double>(places_.size()));
        last_.assign(shares_.size(), 0.0);
        for (std::size_t at = 0; at < nodes_.size(); ++at) {
            const auto node = static_cast<std::size_t>(nodes_[at]);
            const auto place = static_cast<double>(at / n_levels_);
            first_[node] = std::min(first_[node], place);
            last_[node] = std::max(last_[node], place);
        }
    }

    std::size_t n_levels_;
    std::vector<double> places_;        // of each leaf
    std::vector<std::int32_t> nodes_;   // of the leaf at each place, level by level
    std::vector<double> shares_;        // of each node
    std::vector<double> first_, last_;  // of each node
};

// The records of a table as the penalty sees them. Every number is a share of the range of its column, or `missing`.
class NcpTable {
  public:
    // A cell in which a number is missing for some records and known for others says nothing about it: penalty 1.
    static constexpr double missing = 2;

    explicit NcpTable(std::size_t n_records) : n_(n_records) {}

    // Values that are not numbers are missing. `width` is the range of the column, which may exceed that of the values.
    void add_numbers(std::span<const double> values, double width, double weight) {
        std::vector<double>& column = numbers_.emplace_back(n_, missing);
        double low = std::numeric_limits<double>::infinity();
        for (const double value : values) low = std::min(low, std::isnan(value) ? low : value);
        for (std::size_t i = 0; i < n_; ++i)
            if (!std::isnan(values[i])) column[i] = width > 0 ? (values[i] - low) / width : 0.0;
        number_weights_.push_back(weight);
    }
    void add_tree(std::span<const std::int64_t> leaves, LeafOrder order, double weight) {
        std::vector<double>& column = trees_.emplace_back(n_);
        for (std::size_t i = 0; i < n_; ++i) column[i] = order.place(static_cast<std::size_t>(leaves[i]));
        orders_.push_back(std::move(order));
        tree_weights_.push_back(weight);
    }
    void add_categories(std::span<const std::int64_t> codes, std::size_t n_values, double weight) {
        categories_.emplace_back(codes.begin(), codes.end());
        shares_.push_back(n_values > 1 ? weight / static_cast<double>(n_values - 1) : 0.0);
        n_values_.push_back(n_values);
    }

    std::size_t size() const { return n_; }
    std::size_t n_numbers() const { return numbers_.size(); }
    std::size_t n_ordered() const { return numbers_.size() + trees_.size(); }
    std::size_t n_categories() const { return categories_.size(); }
    // A number, or the place of a leaf.
    double ordered(std::size_t column, std::size_t record) const {
        return column < numbers_.size() ? numbers_[column][record] : trees_[column - numbers_.size()][record];
    }
    std::uint32_t code(std::size_t column, std::size_t record) const { return categories_[column][record]; }

    double of_numbers(std::size_t column, double low, double high) const {
        return std::min(high - low, 1.0) * number_weights_[column];
    }
    double of_tree(std::size_t column, double low, double high) const {
        const std::size_t tree = column - numbers_.size();
        return orders_[tree].penalty(low, high) * tree_weights_[tree];
    }
    double of_ordered(std::size_t column, double low, double high) const {
        return column < numbers_.size() ? of_numbers(column, low, high) : of_tree(column, low, high);
    }
    const LeafOrder& tree(std::size_t column) const { return orders_[column - numbers_.size()]; }
    // Of each category of a cell after the first.
    double of_category(std::size_t column) const { return shares_[column]; }
    std::size_t n_values(std::size_t column) const { return n_values_[column]; }

    // The penalty of records that are published together, per record and summed over the columns.
    double penalty(std::span<const std::size_t> records) const {
        if (records.empty()) return 0;
        double sum = 0;
        for (std::size_t j = 0; j < n_ordered(); ++j) {
            double low = ordered(j, records[0]), high = low;
            for (const std::size_t i : records) {
                low = std::min(low, ordered(j, i));
                high = std::max(high, ordered(j, i));
            }
            sum += of_ordered(j, low, high);
        }
        std::vector<std::uint32_t> found;
        for (std::size_t j = 0; j < n_categories(); ++j) {
            found.clear();
            for (const std::size_t i : records) found.push_back(code(j, i));
            std::ranges::sort(found);
            const auto n_found = std::distance(found.begin(), std::unique(found.begin(), found.end()));
            sum += of_category(j) * static_cast<double>(n_found - 1);
        }
        return sum;
    }

  private:
    std::size_t n_;
    std::vector<std::vector<double>> numbers_, trees_;
    std::vector<std::vector<std::uint32_t>> categories_;
    std::vector<LeafOrder> orders_;
    std::vector<double> number_weights_, tree_weights_;
    std::vector<double> shares_;
    std::vector<std::size_t> n_values_;
};

}  // namespace shoal
