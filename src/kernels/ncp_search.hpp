// Lowers the certainty penalty of a partition: blocks of neighbouring cells are annealed one by one, on several
// threads.
//
// The blocks of a round have no cell in common, and each draws its own random numbers, so that the result does not
// depend on the number of threads. Every round cuts other blocks, and is colder than the one before.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "cells.hpp"
#include "ncp_anneal.hpp"
#include "ncp_cells.hpp"
#include "ncp_table.hpp"
#include "ncp_vetoes.hpp"
#include "neighbours.hpp"
#include "polling.hpp"
#include "pool.hpp"
#include "rows.hpp"
#include "simd.hpp"
#include "spatial_order.hpp"

namespace shoal {

// The penalty of a partition, recounted: that of every cell times its records, summed over the cells.
inline double ncp_loss(const NcpTable& table, const Members& members) {
    double sum = 0;
    std::vector<std::uint32_t> records;
    for (std::size_t c = 0; c < members.n_cells(); ++c) {
        records.assign(members[c].begin(), members[c].end());
        if (!records.empty()) sum += table.penalty(records) * static_cast<double>(records.size());
    }
    return sum;
}

class NcpSearch {
  public:
    struct Plan {
        std::size_t n_rounds;      // of other blocks
        std::size_t n_steps;       // random steps per record, over all rounds
        std::size_t n_neighbours;  // records near each record
        double hot;                // temperature at first, in shares of the penalty of a record
        double fall;               // it ends at hot * e^-fall; the last of the rounds is as cold as can be
        std::uint64_t seed;
    };

    // Changes the labels in place. They number the cells from 0 without gaps, each with at least k records that satisfy
    // every model.
    NcpSearch(const NcpTable& table, Rows<const double> X, std::size_t k, std::span<const Guarded> guarded, Pool& pool,
              const Loops& loops, std::span<std::int64_t> labels, Poller& poller)
        : table_(table),
          k_(k),
          guarded_(guarded),
          pool_(pool),
          loops_(loops),
          labels_(labels),
          poller_(poller),
          n_(X.size()),
          width_((X.dims() + 7) / 8 * 8),
          n_cells_(static_cast<std::size_t>(*std::ranges::max_element(labels)) + 1),
          points_(n_ * width_, 0.0f),
          cell_(labels.begin(), labels.end()) {
        for (std::size_t i = 0; i < n_; ++i) std::ranges::copy(X[i], &points_[i * width_]);
        const Members members(labels, n_cells_);
        most_ = 2 * k - 1;
        for (std::size_t c = 0; c < n_cells_; ++c) most_ = std::max(most_, members[c].size());
        at_first_ = ncp_loss(table, members);
    }

    // If the poller stops the work, the labels are the best of then.
    void run(const Plan& plan) try {
        if (n_cells_ > 1 && at_first_ > 0) {
            lists_ = nearest_neighbours({points_.data(), n_, width_}, plan.n_neighbours, loops_, pool_, poller_);
            n_listed_ = lists_.size() / n_;
            for (std::size_t round = 0; round < plan.n_rounds; ++round) anneal(plan, round);
        }
        write_labels();
        poller_.finish(plan.n_rounds * n_);
    } catch (...) {
        write_labels();
        throw;
    }

  private:
    static constexpr std::uint32_t none = NcpCells::none;
    // Records of a block: they stay in the cache of a core, and several blocks keep several threads busy.
    static constexpr std::size_t least_block = 8192;
    static constexpr std::size_t cells_of_block = 512;
    // How many times the temperature falls in a round.
    static constexpr std::size_t n_stages = 16;

    struct Block {
        std::vector<std::uint32_t> records;
        std::vector<std::uint32_t> cells;
    };

    void anneal(const Plan& plan, std::size_t round) {
        const std::vector<Block> blocks = cut_blocks(plan.seed + round);
        std::vector<std::uint32_t> local(n_);  // the number of each record in its block
        for (const Block& block : blocks)
            for (std::uint32_t i = 0; i < block.records.size(); ++i) local[block.records[i]] = i;
        std::vector<std::uint32_t> block_of(n_);
        for (std::uint32_t b = 0; b < blocks.size(); ++b)
            for (const std::uint32_t i : blocks[b].records) block_of[i] = b;
        SharedPoller shared(poller_);
        const double time = 1e3 * static_cast<double>(plan.n_steps * least_block);
        pool_.each(blocks.size(), time, [&](std::size_t thread, std::size_t b) {
            const Block& block = blocks[b];
            // Lists of records in the same block.
            std::vector<std::uint32_t> lists(block.records.size() * n_listed_, none);
            for (std::size_t i = 0; i < block.records.size(); ++i)
                for (std::size_t e = 0; e < n_listed_; ++e) {
                    const std::uint32_t near = lists_[block.records[i] * n_listed_ + e];
                    if (near != none && block_of[near] == b) lists[i * n_listed_ + e] = local[near];
                }
            std::vector<std::uint32_t> cell_of(block.records.size());
            std::vector<std::uint32_t> number(n_cells_, none);
            for (std::uint32_t c = 0; c < block.cells.size(); ++c) number[block.cells[c]] = c;
            for (std::size_t i = 0; i < cell_of.size(); ++i) cell_of[i] = number[cell_[block.records[i]]];
            NcpCells cells(table_, block.records, cell_of);
            NcpVetoes vetoes(guarded_, block.records, cell_of, block.cells.size());
            NcpAnneal search(cells, vetoes, {lists, n_listed_}, k_, most_, mixed(plan.seed, round, b));
            for (std::size_t stage = 0; stage < n_stages && shared.goes_on(thread, round * n_ + n_ * b / blocks.size());
                 ++stage)
                search.run(block.records.size() * plan.n_steps / (plan.n_rounds * n_stages),
                           temperature(plan, round, stage));
            for (std::size_t i = 0; i < cell_of.size(); ++i) cell_[block.records[i]] = block.cells[cells.cell(i)];
        });
    }

    double temperature(const Plan& plan, std::size_t round, std::size_t stage) const {
        const std::size_t n_all = plan.n_rounds * n_stages;
        const std::size_t now = round * n_stages + stage;
        if (now + 1 == n_all) return 0;
        return plan.hot * at_first_ / static_cast<double>(n_) *
               std::exp(-plan.fall * static_cast<double>(now) / static_cast<double>(n_all));
    }

    static std::uint64_t mixed(std::uint64_t seed, std::uint64_t round, std::uint64_t block) {
        std::uint64_t z = seed + 0x9e3779b97f4a7c15 * (round * 0x100000001 + block + 1);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }

    std::vector<Block> cut_blocks(std::uint64_t seed) const {
        std::vector<float> centroids(n_cells_ * width_, 0.0f);
        std::vector<std::size_t> sizes(n_cells_, 0);
        for (std::size_t i = 0; i < n_; ++i) ++sizes[cell_[i]];
        std::mt19937_64 random(seed);
        std::vector<float> factor(width_);
        for (float& f : factor) f = 0.25f + static_cast<float>(random() >> 40) * 0x1.0p-24f;
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t j = 0; j < width_; ++j)
                centroids[cell_[i] * width_ + j] +=
                    points_[i * width_ + j] * factor[j] / static_cast<float>(sizes[cell_[i]]);
        const std::vector<std::uint32_t> order = spatial_order({centroids.data(), n_cells_, width_}, 16, pool_);
        const std::size_t n_blocks = std::max<std::size_t>(n_ / std::max(least_block, cells_of_block * k_), 1);
        std::vector<std::uint32_t> block_of(n_cells_);
        std::vector<Block> blocks(n_blocks);
        for (std::size_t place = 0; place < n_cells_; ++place) {
            block_of[order[place]] = static_cast<std::uint32_t>(place * n_blocks / n_cells_);
            blocks[block_of[order[place]]].cells.push_back(order[place]);
        }
        for (std::uint32_t i = 0; i < n_; ++i) blocks[block_of[cell_[i]]].records.push_back(i);
        return blocks;
    }

    void write_labels() {
        std::vector<std::int64_t> found(n_);
        number_by_first_record(cell_, n_cells_, found);
        if (ncp_loss(table_, Members(found, n_cells_)) < at_first_) std::ranges::copy(found, labels_.begin());
    }

    const NcpTable& table_;
    std::size_t k_;
    std::span<const Guarded> guarded_;
    Pool& pool_;
    const Loops& loops_;
    std::span<std::int64_t> labels_;
    Poller& poller_;
    std::size_t n_;
    std::size_t width_;
    std::size_t n_cells_;
    std::vector<float> points_;
    std::vector<std::uint32_t> cell_;  // of each record
    std::size_t most_ = 0;
    double at_first_ = 0;
    std::vector<std::uint32_t> lists_;
    std::size_t n_listed_ = 0;
};

}  // namespace shoal
