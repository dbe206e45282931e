// Approximate nearest neighbours of every point among the others, in near-linear time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "rows.hpp"
#include "simd.hpp"

namespace shoal {

// Lists of the `n_wanted` nearest found, nearest first, one after the other; where a point has fewer, the rest is
// 0xffffffff. A few trees of random cuts bring near points together in their leaves; then the neighbours of neighbours
// are looked at once. Small sets are searched whole. The lists of an earlier call for points that have since moved a
// little are a good start.
class NeighbourSearch {
  public:
    NeighbourSearch(Rows<const float> points, std::size_t n_wanted, const Loops& loops)
        : points_(points),
          loops_(loops),
          n_wanted_(std::min(n_wanted, points.size() > 0 ? points.size() - 1 : 0)),
          found_(points.size() * n_wanted_, {infinity, none}) {}

    std::vector<std::uint32_t> run(std::span<const std::uint32_t> earlier) {
        if (points_.size() <= small) {
            number_points();
            offer_among(order_);
        } else if (earlier.size() == points_.size() * n_wanted_) {
            for (std::uint32_t i = 0; i < points_.size(); ++i) offer_all(i, listed(earlier, i));
            ask_neighbours();
        } else {
            for (int tree = 0; tree < n_trees; ++tree) {
                number_points();
                split(0, points_.size());
            }
            ask_neighbours();
        }
        std::vector<std::uint32_t> lists(found_.size());
        std::transform(found_.begin(), found_.end(), lists.begin(), [](const auto& item) { return item.second; });
        return lists;
    }

  private:
    using Found = std::pair<float, std::uint32_t>;
    static constexpr float infinity = std::numeric_limits<float>::infinity();
    static constexpr std::uint32_t none = 0xffffffff;
    static constexpr std::size_t small = 2000;
    static constexpr int n_trees = 4;
    static constexpr std::size_t leaf = 48;

    // Offers points to the list of point i.
    void offer_all(std::uint32_t i, std::span<const std::uint32_t> others) {
        distances_.resize(std::max(distances_.size(), others.size()));
        loops_.gather(points_.flat().data(), points_.dims(), others, points_[i].data(), distances_.data());
        for (std::size_t e = 0; e < others.size(); ++e)
            if (others[e] != i) offer(i, others[e], distances_[e]);
    }

    // Offers some points to each other.
    void offer_among(std::span<const std::uint32_t> some) {
        for (std::size_t a = 0; a + 1 < some.size(); ++a) {
            const auto later = some.subspan(a + 1);
            distances_.resize(std::max(distances_.size(), later.size()));
            loops_.gather(points_.flat().data(), points_.dims(), later, points_[some[a]].data(), distances_.data());
            for (std::size_t e = 0; e < later.size(); ++e) {
                offer(some[a], later[e], distances_[e]);
                offer(later[e], some[a], distances_[e]);
            }
        }
    }

    void offer(std::uint32_t i, std::uint32_t j, float distance) {
        Found* list = &found_[i * n_wanted_];
        const Found item{distance, j};
        if (!(item < list[n_wanted_ - 1])) return;
        std::size_t at = n_wanted_ - 1;
        for (std::size_t e = 0; e < n_wanted_; ++e)
            if (list[e].second == j) return;
        for (; at > 0 && item < list[at - 1]; --at) list[at] = list[at - 1];
        list[at] = item;
    }

    // Cuts halfway, by rank, along the line through two random points.
    void split(std::size_t from, std::size_t to) {
        if (to - from <= leaf) {
            offer_among(std::span(order_).subspan(from, to - from));
            return;
        }
        const auto pick = [&] { return order_[from + random_() % (to - from)]; };
        const auto p = points_[pick()];
        const auto q = points_[pick()];
        keyed_.clear();
        for (std::size_t i = from; i < to; ++i) {
            const auto point = points_[order_[i]];
            float along = 0;
            for (std::size_t d = 0; d < points_.dims(); ++d) along += point[d] * (q[d] - p[d]);
            keyed_.emplace_back(along, order_[i]);
        }
        const std::size_t half = (to - from) / 2;
        std::nth_element(keyed_.begin(), keyed_.begin() + static_cast<std::ptrdiff_t>(half), keyed_.end());
        for (std::size_t i = from; i < to; ++i) order_[i] = keyed_[i - from].second;
        split(from, from + half);
        split(from + half, to);
    }

    void ask_neighbours() {
        std::vector<std::uint32_t> before(found_.size());
        std::transform(found_.begin(), found_.end(), before.begin(), [](const auto& item) { return item.second; });
        for (std::uint32_t i = 0; i < points_.size(); ++i)
            for (const std::uint32_t other : listed(before, i)) offer_all(i, listed(before, other));
    }

    // The list of a point, without the places that nobody has taken.
    std::span<const std::uint32_t> listed(std::span<const std::uint32_t> lists, std::uint32_t i) const {
        const auto list = lists.subspan(i * n_wanted_, n_wanted_);
        return list.first(static_cast<std::size_t>(std::find(list.begin(), list.end(), none) - list.begin()));
    }

    void number_points() {
        order_.resize(points_.size());
        std::iota(order_.begin(), order_.end(), 0u);
    }

    Rows<const float> points_;
    const Loops& loops_;
    std::size_t n_wanted_;
    std::mt19937_64 random_;  // always the same cuts
    std::vector<Found> found_;
    std::vector<std::uint32_t> order_;
    std::vector<Found> keyed_;
    std::vector<float> distances_;
};

inline std::vector<std::uint32_t> nearest_neighbours(Rows<const float> points, std::size_t n_wanted, const Loops& loops,
                                                     std::span<const std::uint32_t> earlier) {
    return NeighbourSearch(points, n_wanted, loops).run(earlier);
}

}  // namespace shoal
