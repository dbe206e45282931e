// The nearest neighbours of every point among the others, in near-linear time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "numeric/large_array.hpp"
#include "numeric/rows.hpp"
#include "numeric/simd.hpp"
#include "parallel/polling.hpp"
#include "parallel/pool.hpp"
#include "search/spatial_order.hpp"

namespace shoal {

// Lists of the `n_wanted` nearest found, nearest first, one after the other; where a point has fewer, the rest is
// 0xffffffff. Points lie in tiles of 64 neighbours. The points of a tile look for theirs in it and in the tiles around,
// nearest first, 128 at most, so that the lists are exact in small sets and nearly so in large ones. Tiles whose box is
// farther away than all that was found are passed over, and most points are ruled out 64 at a time.
class NeighbourSearch {
  public:
    NeighbourSearch(Rows<const float> points, std::size_t n_wanted, const Loops& loops, Pool& pool)
        : points_(points),
          loops_(loops),
          n_wanted_(std::min(n_wanted, points.size() > 0 ? points.size() - 1 : 0)),
          n_dims_(n_used_columns(pool)),
          rounding_(1 + 2.4e-7f * static_cast<float>(n_dims_ + 4)),
          n_tiles_((points.size() + block_size - 1) / block_size),
          order_(spatial_order(points, block_size, pool)),
          columns_(large_array<float>(n_tiles_ * block_size * n_dims_)),
          low_(n_tiles_ * n_dims_, infinity),
          high_(n_tiles_ * n_dims_, -infinity),
          means_(n_tiles_ * points.dims(), 0.0f) {
        const double time_of_tile = 3.0 * static_cast<double>(block_size * n_dims_);
        pool.split(n_tiles_, time_of_tile, [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t tile = from; tile < to; ++tile) fill(tile);
        });
    }

    // The points in an order in which each run of them is a neighbourhood.
    const std::vector<std::uint32_t>& order() const { return order_; }

    std::vector<std::uint32_t> run(Pool& pool, Poller& poller) const {
        std::vector<std::uint32_t> lists(points_.size() * n_wanted_, none);
        if (n_wanted_ == 0) return lists;
        SharedPoller shared(poller);
        std::vector<std::unique_ptr<Room>> rooms(pool.size());
        pool.each(n_tiles_, 50'000.0, [&](std::size_t thread, std::size_t tile) {
            if (!shared.goes_on(thread)) return;
            if (!rooms[thread]) rooms[thread] = std::make_unique<Room>(*this);
            search(tile, *rooms[thread], lists);
        });
        return lists;
    }

  private:
    static constexpr float infinity = std::numeric_limits<float>::infinity();
    static constexpr std::uint32_t none = 0xffffffff;
    static constexpr std::size_t most_tiles = 128;

    // A point, or a tile, and how far away it is.
    using Found = std::pair<float, std::uint32_t>;

    // What one thread works with: the points of a tile, and what they have found so far.
    struct Room {
        explicit Room(const NeighbourSearch& of)
            : points(block_size * of.n_dims_),
              found(block_size * of.n_wanted_),
              all_tiles(of.n_tiles_),
              apart(of.n_tiles_),
              tiles(of.n_tiles_) {
            std::iota(all_tiles.begin(), all_tiles.end(), 0u);
        }
        std::vector<float> points;
        std::array<float, block_size> limits;
        std::vector<Found> found;
        std::vector<std::uint32_t> all_tiles;
        std::vector<float> apart;
        std::vector<Found> tiles;
        std::array<std::uint64_t, block_size> hits;
    };

    // Rows are filled up with columns of zeros.
    std::size_t n_used_columns(Pool& pool) const {
        std::vector<std::size_t> n_used(pool.size(), 1);
        pool.split(points_.size(), 5.0, [&](std::size_t thread, std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i)
                for (std::size_t j = points_.dims(); j > n_used[thread]; --j)
                    if (points_[i][j - 1] != 0) n_used[thread] = j;
        });
        return std::ranges::max(n_used);
    }

    std::span<const std::uint32_t> numbers(std::size_t tile) const {
        const std::size_t first = tile * block_size;
        return std::span(order_).subspan(first, std::min(block_size, order_.size() - first));
    }

    void fill(std::size_t tile) {
        const auto inside = numbers(tile);
        const auto size = static_cast<float>(inside.size());
        // What fills the last tile up is not a number, so it is near nothing.
        std::fill_n(&columns_[tile * n_dims_ * block_size], n_dims_ * block_size,
                    std::numeric_limits<float>::quiet_NaN());
        for (std::size_t slot = 0; slot < inside.size(); ++slot) {
            const auto point = points_[inside[slot]];
            for (std::size_t j = 0; j < n_dims_; ++j) {
                columns_[(tile * n_dims_ + j) * block_size + slot] = point[j];
                low_[tile * n_dims_ + j] = std::min(low_[tile * n_dims_ + j], point[j]);
                high_[tile * n_dims_ + j] = std::max(high_[tile * n_dims_ + j], point[j]);
                means_[tile * points_.dims() + j] += point[j] / size;
            }
        }
    }

    void search(std::size_t tile, Room& room, std::vector<std::uint32_t>& lists) const {
        const auto mine = numbers(tile);
        const Probes probes = pose(tile, room);
        std::fill(room.found.begin(), room.found.end(), Found{infinity, none});
        for (const auto& [apart, other] : nearest_tiles(tile, room)) {
            std::uint64_t which = loops_.touch(probes, &low_[other * n_dims_], &high_[other * n_dims_]);
            room.hits.fill(~std::uint64_t{0});
            loops_.screen(probes, which, &columns_[other * block_size * n_dims_], room.hits.data());
            for (; which; which &= which - 1) {
                const auto slot = static_cast<std::size_t>(std::countr_zero(which));
                std::uint64_t hits = room.hits[slot];
                if (other == tile) hits &= ~(std::uint64_t{1} << slot);
                if (hits)
                    take(mine[slot], hits, numbers(other), std::span(room.found).subspan(slot * n_wanted_),
                         room.limits[slot]);
            }
        }
        for (std::size_t slot = 0; slot < mine.size(); ++slot)
            std::transform(room.found.data() + slot * n_wanted_, room.found.data() + (slot + 1) * n_wanted_,
                           lists.data() + mine[slot] * n_wanted_, [](const Found& item) { return item.second; });
    }

    // The points of a tile, one after the other; empty slots have no neighbours.
    Probes pose(std::size_t tile, Room& room) const {
        const auto mine = numbers(tile);
        room.limits.fill(-1.0f);
        std::fill_n(room.limits.begin(), mine.size(), infinity);
        for (std::size_t slot = 0; slot < mine.size(); ++slot)
            std::copy_n(points_[mine[slot]].begin(), n_dims_, &room.points[slot * n_dims_]);
        return {n_dims_, room.points.data(), &columns_[tile * block_size * n_dims_], room.limits.data()};
    }

    // The tile itself, then the others by the distance of their means.
    std::span<const Found> nearest_tiles(std::size_t tile, Room& room) const {
        loops_.gather(means_.data(), points_.dims(), room.all_tiles, &means_[tile * points_.dims()], room.apart.data());
        room.apart[tile] = -1.0f;
        for (std::uint32_t other = 0; other < n_tiles_; ++other) room.tiles[other] = {room.apart[other], other};
        const auto end = room.tiles.begin() + static_cast<std::ptrdiff_t>(std::min(most_tiles, n_tiles_));
        std::partial_sort(room.tiles.begin(), end, room.tiles.end());
        return {room.tiles.begin(), end};
    }

    // Puts points of another tile in their places among those that a point has found.
    void take(std::uint32_t point, std::uint64_t hits, std::span<const std::uint32_t> others, std::span<Found> found,
              float& limit) const {
        std::array<std::uint32_t, block_size> near;
        std::array<float, block_size> distances;
        std::size_t n_near = 0;
        for (; hits; hits &= hits - 1) near[n_near++] = others[static_cast<std::size_t>(std::countr_zero(hits))];
        loops_.gather(points_.flat().data(), points_.dims(), {near.data(), n_near}, points_[point].data(),
                      distances.data());
        for (std::size_t e = 0; e < n_near; ++e) {
            const Found item{distances[e], near[e]};
            std::size_t at = n_wanted_ - 1;
            if (!(item < found[at])) continue;
            for (; at > 0 && item < found[at - 1]; --at) found[at] = found[at - 1];
            found[at] = item;
        }
        // Distances are added up in another order where points are ruled out: none may be lost to rounding there.
        limit = found[n_wanted_ - 1].first * rounding_ + std::numeric_limits<float>::min();
    }

    Rows<const float> points_;
    const Loops& loops_;
    std::size_t n_wanted_;
    std::size_t n_dims_;
    float rounding_;
    std::size_t n_tiles_;
    std::vector<std::uint32_t> order_;
    LargeArray<float> columns_;      // the points of each tile, column by column
    std::vector<float> low_, high_;  // the box around each tile
    std::vector<float> means_;
};

// `points` are in rows of a multiple of 8 columns, the surplus ones zero.
inline std::vector<std::uint32_t> nearest_neighbours(Rows<const float> points, std::size_t n_wanted, const Loops& loops,
                                                     Pool& pool, Poller& poller) {
    return NeighbourSearch(points, n_wanted, loops, pool).run(pool, poller);
}

}  // namespace shoal
