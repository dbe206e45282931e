// The centroids of cells, and those near a point. Centroids may be added, move, or be closed to further records.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "numeric/distance.hpp"
#include "numeric/rows.hpp"
#include "numeric/simd.hpp"
#include "parallel/pool.hpp"
#include "search/remaining.hpp"

namespace shoal {

// An index of the centroids that have not moved since it was built, and a list of the others.
class MovingCentroids {
  public:
    MovingCentroids(std::size_t n_dims, Pool& pool, const Loops& loops) : n_dims_(n_dims), pool_(pool), loops_(loops) {}

    // Number of cells, closed ones included.
    std::size_t size() const { return place_.size(); }

    std::span<const double> operator[](std::size_t cell) const { return {&at_[cell * n_dims_], n_dims_}; }

    // Adds a cell; its number is the next one.
    void add(std::span<const double> centroid) {
        at_.insert(at_.end(), centroid.begin(), centroid.end());
        place_.emplace_back();
        put_on_list(place_.size() - 1);
    }

    void move(std::size_t cell, std::span<const double> to) {
        std::copy(to.begin(), to.end(), &at_[cell * n_dims_]);
        if (place_[cell] & on_list) return;
        index_->remove(place_[cell]);
        put_on_list(cell);
    }

    // Closes an open cell for good.
    void close(std::size_t cell) {
        if (place_[cell] & on_list) {
            const std::uint32_t hole = place_[cell] & ~on_list;
            listed_[hole] = listed_.back();
            place_[listed_[hole]] = place_[cell];
            listed_.pop_back();
        } else {
            index_->remove(place_[cell]);
        }
        place_[cell] = closed;
    }

    // Calls offer(cell) for the open cells that may be wanted: all on the list, then those of the index, nearest first
    // and equally near ones by number. These are `n` at first, and then more and more until enough(distance) holds for
    // the squared distance of the last one, which no other is below.
    template <typename Offer, typename Enough>
    void visit(std::span<const double> point, std::size_t n, const Offer& offer, const Enough& enough) {
        if (listed_.size() > most_listed) build();
        for (const std::uint32_t cell : listed_) offer(cell);
        if (!index_ || index_->size() == 0) return;
        if (!scale(point)) return offer_indexed(offer);
        for (;; n *= 4) {
            const auto found = index_->search({scaled_, std::min(n, index_->size()), false, home_}).nearest;
            for (const Candidate& one : found) offer(cells_[one.record]);
            home_ = index_->home(found.front().record);
            if (n >= index_->size() || enough(squared_distance((*this)[cells_[found.back().record]], point))) return;
        }
    }

  private:
    // Up to this number, measuring one by one costs less than a new index.
    static constexpr std::size_t most_listed = 256;
    static constexpr std::uint32_t on_list = 0x80000000;
    static constexpr std::uint32_t closed = 0xffffffff;
    // Beyond this, in units of the index, squares would overflow there.
    static constexpr double too_far = 1e100;

    void put_on_list(std::size_t cell) {
        place_[cell] = static_cast<std::uint32_t>(listed_.size()) | on_list;
        listed_.push_back(static_cast<std::uint32_t>(cell));
    }

    // Brings the point into units of the index; false if it is too far away for them.
    bool scale(std::span<const double> point) {
        scaled_.assign(point.begin(), point.end());
        bool near = true;
        for (double& value : scaled_) near &= std::abs(value *= index_->scale()) <= too_far;
        return near;
    }

    template <typename Offer>
    void offer_indexed(const Offer& offer) const {
        for (std::uint32_t place = 0; place < cells_.size(); ++place)
            if (index_->contains(place)) offer(cells_[place]);
    }

    // Ascending cell numbers, so that of equally near ones the index gives the lowest.
    void build() {
        listed_.clear();
        cells_.clear();
        snapshot_.clear();
        home_ = 0;
        for (std::uint32_t cell = 0; cell < size(); ++cell) {
            if (place_[cell] == closed) continue;
            place_[cell] = static_cast<std::uint32_t>(cells_.size());
            cells_.push_back(cell);
            snapshot_.insert(snapshot_.end(), (*this)[cell].begin(), (*this)[cell].end());
        }
        index_.emplace(Rows<const double>(snapshot_.data(), cells_.size(), n_dims_), pool_, loops_);
    }

    std::size_t n_dims_;
    Pool& pool_;
    const Loops& loops_;
    std::vector<double> at_;             // row by row
    std::vector<std::uint32_t> place_;   // of each cell: in the index, on the list, or closed
    std::vector<std::uint32_t> listed_;  // cells that the index does not know, or not where they are
    std::vector<std::uint32_t> cells_;   // in the order of the index
    std::vector<double> snapshot_;       // what the index was built on
    std::optional<Remaining> index_;
    std::vector<double> scaled_;
    std::uint32_t home_ = 0;  // where the last point was
};

}  // namespace shoal
