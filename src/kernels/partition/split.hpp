// Farthest-pair splits: a piece is cut in two around its two farthest records, until every piece has fewer than 2k.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "numeric/distance.hpp"
#include "numeric/simd.hpp"
#include "parallel/polling.hpp"
#include "parallel/pool.hpp"
#include "partition/cells.hpp"

namespace shoal {

using Piece = std::vector<std::uint32_t>;  // record numbers

// The work space of one thread, which splits one piece after the other.
//
// Each of the two farthest records takes its k-1 nearest; the one farther from the centroid of the piece goes first,
// the other takes from the rest. Every other record goes to the nearer of the two sides' centroids; those
// equally near to both go last, in record order, to the side with fewer records, the first if equal. Of equally far
// pairs the one with the lowest numbers is taken, of equally far or near records the one with the lowest number.
class Splitter {
  public:
    // `goes_on` is called at intervals; once it returns false, the pieces no longer matter.
    Splitter(Rows<const double> X, double scale, std::size_t k, const Loops& loops, std::function<bool()> goes_on)
        : X_(X),
          scale_(scale),
          k_(k),
          loops_(loops),
          goes_on_(std::move(goes_on)),
          point_(X.dims()),
          centroids_{point_, point_} {}

    // At least 2k records become two pieces of at least k.
    std::pair<Piece, Piece> split(const Piece& piece) {
        lay_out(piece);
        const Pair pair = farthest_pair();
        side_.assign(records_.size(), none);
        const std::size_t low = place_of(pair.low);
        const std::size_t high = place_of(pair.high);
        // Records are distinct, and sorted by distance, unless all are the same.
        const bool low_first = radius_.size() == 1 || squared_radius_[low] >= squared_radius_[high];
        side_[low] = low_first ? first : second;
        side_[high] = low_first ? second : first;
        gather(low_first ? low : high);
        gather(low_first ? high : low);
        join_the_nearer();
        std::pair<Piece, Piece> halves;
        for (std::size_t t = 0; t < records_.size(); ++t)
            (side_[t] == first ? halves.first : halves.second).push_back(records_[t]);
        return halves;
    }

  private:
    enum Side : std::uint8_t { first, second, none };

    struct Pair {
        double distance = -1.0;
        std::uint32_t low = 0;
        std::uint32_t high = 0;

        void offer(double other, std::uint32_t a, std::uint32_t b) {
            if (other < distance) return;
            const Pair offered{other, std::min(a, b), std::max(a, b)};
            if (other > distance || std::pair(offered.low, offered.high) < std::pair(low, high)) *this = offered;
        }
    };

    // Column by column: first the distinct records, those farthest from the centroid in front, then those that repeat
    // one with a lower number and so need not be considered for the farthest pair.
    void lay_out(const Piece& piece) {
        records_ = piece;
        // The loops run over whole chunks of 64, from any record.
        stride_ = piece.size() + 64;
        columns_.resize(X_.dims() * stride_);
        distances_.resize(stride_);
        fill_columns();
        sort_by_distance_from_centroid();
        records_.clear();
        copies_.clear();
        squared_radius_.clear();
        radius_.clear();
        for (std::size_t t = 0; t < outward_.size(); ++t) {
            const auto [distance, record] = outward_[t];
            if (t > 0 && std::ranges::equal(X_[record], X_[outward_[t - 1].record])) {
                copies_.push_back(record);
                continue;
            }
            records_.push_back(record);
            squared_radius_.push_back(distance);
            radius_.push_back(std::sqrt(distance));
        }
        records_.insert(records_.end(), copies_.begin(), copies_.end());
        fill_columns();
    }

    // Those farthest from the centroid first; copies side by side.
    void sort_by_distance_from_centroid() {
        members_.assign(records_.begin(), records_.end());
        centroid_of_members(point_);
        measure(point_);
        outward_.clear();
        for (std::size_t t = 0; t < records_.size(); ++t) outward_.push_back({distances_[t], records_[t]});
        std::ranges::sort(outward_, [this](const Candidate& a, const Candidate& b) {
            if (a.distance != b.distance) return a.distance > b.distance;
            const auto [x, y] = std::ranges::mismatch(X_[a.record], X_[b.record]);
            return x == X_[a.record].end() ? a.record < b.record : *x < *y;
        });
    }

    void fill_columns() {
        for (std::size_t t = 0; t < records_.size(); ++t) {
            const auto row = X_[records_[t]];
            for (std::size_t j = 0; j < row.size(); ++j) columns_[j * stride_ + t] = row[j] * scale_;
        }
    }

    // Squared distances of the records at some positions, all by default.
    void measure(std::span<const double> point) { measure(point, 0, records_.size()); }
    void measure(std::span<const double> point, std::size_t from, std::size_t to) {
        loops_.distances(columns_.data() + from, stride_, to - from, point, distances_.data() + from);
    }

    std::span<const double> coordinates(std::size_t place) {
        for (std::size_t j = 0; j < point_.size(); ++j) point_[j] = columns_[j * stride_ + place];
        return point_;
    }

    std::size_t place_of(std::uint32_t record) const {
        return static_cast<std::size_t>(std::ranges::find(records_, record) - records_.begin());
    }

    // Two records are at most as far apart as the sum of their distances from the centroid. A pair that is far apart,
    // found by alternating searches, rules out all pairs but those far out; these are measured.
    Pair farthest_pair() {
        const std::size_t n_distinct = radius_.size();
        Pair pair;
        if (n_distinct == 1) {
            pair.offer(0.0, records_[0], records_[1]);
            return pair;
        }
        std::size_t place = 0;
        for (int turn = 0; turn < 3; ++turn) place = offer_all(place, pair);
        for (std::size_t t = 0; t < n_distinct; ++t) {
            const std::size_t to = reaching(pair.distance, t);
            if (to <= t + 1 || (t % 64 == 63 && !goes_on_())) break;
            measure(coordinates(t), t + 1, to);
            for (std::size_t u = t + 1; u < to; ++u) pair.offer(distances_[u], records_[t], records_[u]);
        }
        return pair;
    }

    // Considers all pairs with the record at a position; returns the position of the one farthest from it.
    std::size_t offer_all(std::size_t place, Pair& pair) {
        measure(coordinates(place), 0, radius_.size());
        std::size_t farthest = 0;
        for (std::size_t t = 0; t < radius_.size(); ++t) {
            if (distances_[t] > distances_[farthest]) farthest = t;
            if (t != place) pair.offer(distances_[t], records_[place], records_[t]);
        }
        return farthest;
    }

    // Number of records, counted from the outermost, that can be this far from the one at a position. The slack covers
    // all rounding; squares below 1e-290 may have lost digits and rule nothing out.
    std::size_t reaching(double distance, std::size_t place) const {
        if (distance < 1e-290) return radius_.size();
        const double least = std::sqrt(distance) * (1.0 - 1e-9) - radius_[place];
        const auto end = std::ranges::partition_point(radius_, [&](double radius) { return radius >= least; });
        return static_cast<std::size_t>(end - radius_.begin());
    }

    // Adds the k-1 nearest unassigned records to the side of the record at a position, and computes its centroid.
    void gather(std::size_t place) {
        const Side side = side_[place];
        measure(coordinates(place));
        Nearest nearest(k_ - 1);
        for (std::size_t t = 0; t < records_.size(); ++t)
            if (side_[t] == none) nearest.offer({distances_[t], records_[t]});
        members_.assign(1, records_[place]);
        for (std::size_t t = 0; t < records_.size(); ++t) {
            if (side_[t] != none || nearest.limit() < Candidate{distances_[t], records_[t]}) continue;
            side_[t] = side;
            members_.push_back(records_[t]);
        }
        centroid_of_members(centroids_[side]);
    }

    void centroid_of_members(std::span<double> out) const {
        exact_sum(X_, scale_, members_, out);
        for (double& value : out) value /= static_cast<double>(members_.size());
    }

    void join_the_nearer() {
        measure(centroids_[second]);
        to_second_.assign(distances_.begin(), distances_.end());
        measure(centroids_[first]);
        std::size_t n_on[2] = {k_, k_};
        undecided_.clear();
        for (std::size_t t = 0; t < records_.size(); ++t) {
            if (side_[t] != none) continue;
            if (distances_[t] == to_second_[t]) {
                undecided_.push_back(t);
                continue;
            }
            side_[t] = distances_[t] < to_second_[t] ? first : second;
            ++n_on[side_[t]];
        }
        std::ranges::sort(undecided_, {}, [this](std::size_t t) { return records_[t]; });
        for (const std::size_t t : undecided_) {
            side_[t] = n_on[first] <= n_on[second] ? first : second;
            ++n_on[side_[t]];
        }
    }

    Rows<const double> X_;
    double scale_;
    std::size_t k_;
    const Loops& loops_;
    std::function<bool()> goes_on_;
    Piece records_, copies_;  // the current piece
    std::size_t stride_ = 0;
    std::vector<double> columns_, distances_, to_second_;
    std::vector<double> radius_, squared_radius_;  // of the distinct records from the centroid, descending
    std::vector<Candidate> outward_;
    std::vector<Side> side_;
    std::vector<std::size_t> members_, undecided_;
    std::vector<double> point_;
    std::vector<double> centroids_[2];
};

// Splits parts on all threads and writes the cell number of each record; cells are numbered by their first records.
class Splits {
  public:
    Splits(Rows<const double> X, std::size_t k, Pool& pool, const Loops& loops, std::span<std::int64_t> labels)
        : X_(X), scale_(unit_scale(X.flat())), k_(k), pool_(pool), loops_(loops), labels_(labels) {}

    // Each part has at least k records.
    void run(const Members& parts, Poller& poller) {
        for (std::size_t part = 0; part < parts.n_cells(); ++part) put(Piece(parts[part].begin(), parts[part].end()));
        SharedPoller shared(poller);
        const double time = 100.0 * static_cast<double>(X_.size() * X_.dims()) / static_cast<double>(pool_.size());
        pool_.each(pool_.size(), time, [&](std::size_t thread, std::size_t) {
            try {
                work([&] { return shared.goes_on(thread, n_done_); });
            } catch (...) {
                stop();
                throw;
            }
        });
        number_cells();
        poller.finish(X_.size());
    }

  private:
    void work(const std::function<bool()>& goes_on) {
        Splitter splitter(X_, scale_, k_, loops_, goes_on);
        for (Piece piece; goes_on() && take(piece, goes_on);) {
            auto [one, other] = splitter.split(piece);
            put(std::move(one));
            put(std::move(other));
            finish();
        }
    }

    // A piece below 2k is a cell, for now identified by its lowest record; others wait for a thread.
    void put(Piece piece) {
        if (piece.size() < 2 * k_) {
            const std::uint32_t lowest = std::ranges::min(piece);
            for (const std::uint32_t record : piece) labels_[record] = lowest;
            n_done_ += piece.size();
            return;
        }
        const std::lock_guard lock(mutex_);
        waiting_.push_back(std::move(piece));
        ++n_open_;
        changed_.notify_one();
    }

    // Waits for a piece; returns false if none is left and none can come.
    bool take(Piece& piece, const std::function<bool()>& goes_on) {
        std::unique_lock lock(mutex_);
        while (waiting_.empty() && n_open_ > 0 && !stopping_) {
            changed_.wait_for(lock, std::chrono::milliseconds(50));
            lock.unlock();
            goes_on();
            lock.lock();
        }
        if (waiting_.empty() || stopping_) return false;
        piece = std::move(waiting_.back());
        waiting_.pop_back();
        return true;
    }

    // The piece that was taken is split.
    void finish() {
        const std::lock_guard lock(mutex_);
        if (--n_open_ == 0) changed_.notify_all();
    }

    void stop() {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        changed_.notify_all();
    }

    void number_cells() {
        std::vector<std::int64_t> number(labels_.size());
        std::int64_t n_cells = 0;
        for (std::size_t i = 0; i < labels_.size(); ++i) {
            const auto lowest = static_cast<std::size_t>(labels_[i]);
            if (lowest == i) number[i] = n_cells++;
            labels_[i] = number[lowest];
        }
    }

    Rows<const double> X_;
    double scale_;
    std::size_t k_;
    Pool& pool_;
    const Loops& loops_;
    std::span<std::int64_t> labels_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Piece> waiting_;
    std::size_t n_open_ = 0;  // pieces that wait or are being split
    bool stopping_ = false;
    std::atomic<std::size_t> n_done_{0};
};

}  // namespace shoal
