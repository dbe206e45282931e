// Lowers the certainty penalty of a partition: blocks of neighbouring cells are annealed side by side.
//
// The blocks of a round have no cell in common, and each draws its own random numbers, so that the result does not
// depend on the number of threads. Every round cuts other blocks, and is colder than the one before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ncp/anneal.hpp"
#include "ncp/cells.hpp"
#include "ncp/table.hpp"
#include "ncp/vetoes.hpp"
#include "numeric/portable_random.hpp"
#include "numeric/rows.hpp"
#include "numeric/simd.hpp"
#include "parallel/polling.hpp"
#include "parallel/pool.hpp"
#include "partition/cells.hpp"
#include "search/neighbours.hpp"
#include "search/spatial_order.hpp"

namespace shoal {

// The penalty of a partition, recounted: that of every cell times its records, summed over the cells.
inline double ncp_loss(const NcpTable& table, const Members& members) {
    double sum = 0;
    for (std::size_t c = 0; c < members.n_cells(); ++c)
        sum += table.penalty(members[c]) * static_cast<double>(members[c].size());
    return sum;
}

class NcpSearch {
  public:
    struct Plan {
        std::uint64_t n_steps;     // random steps, over all records and rounds
        std::size_t n_rounds;      // of other blocks
        std::size_t n_neighbours;  // records near each record
        double hot;                // temperature at first, in shares of the penalty of a record
        double fall;               // it ends at hot * e^-fall, and at 0 for the last steps of all
        std::uint64_t seed;
    };

    // Changes the labels in place. They number the cells from 0 without gaps; each has at least k records and satisfies
    // every model. X says where the records lie: near ones are tried in one cell.
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
          cell_(labels.begin(), labels.end()),
          block_(n_),
          local_(n_),
          local_cell_(n_cells_),
          most_(2 * k - 1) {
        for (std::size_t i = 0; i < n_; ++i)
            std::ranges::transform(X[i], &points_[i * width_], [](double x) { return static_cast<float>(x); });
        const Members members(labels, n_cells_);
        for (std::size_t c = 0; c < n_cells_; ++c) most_ = std::max(most_, members[c].size());
        at_first_ = ncp_loss(table, members);
    }

    // Reports records processed to the poller, n_records per round. If it stops the work, the labels are those of that
    // moment, or the initial ones if these were better.
    void run(const Plan& plan) try {
        if (n_cells_ > 1 && at_first_ > 0 && plan.n_steps > 0) {
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
    // Minimum number of records and cells of a block: they fit into the cache of a core, and there are several blocks
    // for several threads. In smaller ones too many neighbours lie outside.
    static constexpr std::size_t block_records = 8192;
    static constexpr std::size_t block_cells = 512;
    // Steps at one temperature, between two looks at the poller: some milliseconds.
    static constexpr std::size_t steps_at_once = 2048;

    struct Block {
        std::vector<std::uint32_t> records;
        std::vector<std::uint32_t> cells;
    };

    void anneal(const Plan& plan, std::size_t round) {
        const std::vector<Block> blocks = cut_blocks(mixed_seed(plan.seed, round, 0));
        for (std::uint32_t b = 0; b < blocks.size(); ++b) {
            for (std::uint32_t c = 0; c < blocks[b].cells.size(); ++c) local_cell_[blocks[b].cells[c]] = c;
            for (std::uint32_t i = 0; i < blocks[b].records.size(); ++i) {
                block_[blocks[b].records[i]] = b;
                local_[blocks[b].records[i]] = i;
            }
        }
        SharedPoller shared(poller_);
        const double time_of_step = 1'000;
        const double n_steps = static_cast<double>(plan.n_steps) / static_cast<double>(plan.n_rounds);
        pool_.each(
            blocks.size(), time_of_step * n_steps / static_cast<double>(blocks.size()),
            [&](std::size_t thread, std::size_t b) { anneal(plan, round, blocks[b], b, thread, shared); },
            [&] { shared.goes_on(0); });
    }

    void anneal(const Plan& plan, std::size_t round, const Block& block, std::size_t number, std::size_t thread,
                SharedPoller& shared) {
        const std::vector<std::uint32_t> start = local_cells(block);
        const std::vector<std::uint32_t> lists = local_lists(block);
        NcpCells cells(table_, block.records, start);
        NcpVetoes vetoes(guarded_, block.records, start, block.cells.size());
        NcpAnneal search(cells, vetoes, {lists, n_listed_}, {k_, most_}, mixed_seed(plan.seed, round, number + 1));
        const auto write_back = [&] {
            for (std::uint32_t i = 0; i < start.size(); ++i) cell_[block.records[i]] = block.cells[cells.cell(i)];
        };
        const std::uint64_t n_steps = plan.n_steps / plan.n_rounds * block.records.size() / n_;
        try {
            for (std::uint64_t done = 0; done < n_steps; done += steps_at_once) {
                const double share = static_cast<double>(done) / static_cast<double>(n_steps);
                if (!shared.goes_on(thread, records_done(round, share))) break;
                search.run(std::min<std::uint64_t>(steps_at_once, n_steps - done), temperature(plan, round, share));
            }
        } catch (...) {
            write_back();
            throw;
        }
        write_back();
    }

    std::size_t records_done(std::size_t round, double share) const {
        return static_cast<std::size_t>((static_cast<double>(round) + share) * static_cast<double>(n_));
    }

    double temperature(const Plan& plan, std::size_t round, double share_of_round) const {
        const double share = (static_cast<double>(round) + share_of_round) / static_cast<double>(plan.n_rounds);
        const double frozen = 0.95;
        if (share >= frozen) return 0;
        return plan.hot * at_first_ / static_cast<double>(n_) * exponential(-plan.fall * share / frozen);
    }

    // Runs of cells in a spatial order. Columns are stretched at random, so that no two rounds cut at the same places.
    std::vector<Block> cut_blocks(std::uint64_t seed) const {
        const std::vector<float> centroids = stretched_centroids(seed);
        const std::vector<std::uint32_t> order = spatial_order({centroids.data(), n_cells_, width_}, 16, pool_);
        const std::size_t n_blocks = std::max<std::size_t>(n_ / std::max(block_records, block_cells * k_), 1);
        std::vector<Block> blocks(std::min(n_blocks, n_cells_));
        std::vector<std::uint32_t> block_of(n_cells_);
        for (std::size_t place = 0; place < n_cells_; ++place) {
            block_of[order[place]] = static_cast<std::uint32_t>(place * blocks.size() / n_cells_);
            blocks[block_of[order[place]]].cells.push_back(order[place]);
        }
        for (std::uint32_t i = 0; i < n_; ++i) blocks[block_of[cell_[i]]].records.push_back(i);
        return blocks;
    }

    std::vector<float> stretched_centroids(std::uint64_t seed) const {
        PortableRandom random(seed);
        std::vector<float> stretch(width_);
        for (float& factor : stretch) factor = 0.25f + static_cast<float>(random.share());
        std::vector<float> sizes(n_cells_, 0.0f);
        for (const std::uint32_t cell : cell_) ++sizes[cell];
        std::vector<float> centroids(n_cells_ * width_, 0.0f);
        for (std::size_t i = 0; i < n_; ++i)
            for (std::size_t j = 0; j < width_; ++j)
                centroids[cell_[i] * width_ + j] += points_[i * width_ + j] * stretch[j] / sizes[cell_[i]];
        return centroids;
    }

    // The cells of the records of a block, numbered from 0 in it.
    std::vector<std::uint32_t> local_cells(const Block& block) const {
        std::vector<std::uint32_t> cells;
        for (const std::uint32_t record : block.records) cells.push_back(local_cell_[cell_[record]]);
        return cells;
    }

    // The neighbours of the records of a block that are in it too.
    std::vector<std::uint32_t> local_lists(const Block& block) const {
        std::vector<std::uint32_t> lists;
        lists.reserve(block.records.size() * n_listed_);
        for (const std::uint32_t record : block.records)
            for (std::size_t e = 0; e < n_listed_; ++e) {
                const std::uint32_t near = lists_[record * n_listed_ + e];
                lists.push_back(near != none && block_[near] == block_[record] ? local_[near] : none);
            }
        return lists;
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
    std::vector<float> points_;              // in rows of whole lanes
    std::vector<std::uint32_t> cell_;        // of each record
    std::vector<std::uint32_t> block_;       // of each record
    std::vector<std::uint32_t> local_;       // the number of each record in its block
    std::vector<std::uint32_t> local_cell_;  // the number of each cell in its block
    std::size_t most_;                       // records of a cell
    double at_first_ = 0;
    std::vector<std::uint32_t> lists_;
    std::size_t n_listed_ = 0;
};

}  // namespace shoal
