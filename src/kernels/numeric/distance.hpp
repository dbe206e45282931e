// The arithmetic that decides: squared differences, added in column order, in float64, never fused.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "numeric/rows.hpp"
#include "parallel/pool.hpp"

namespace shoal {

// Slack for the rounding of the float64 arithmetic itself, which is of the order of 1e-16 a column.
inline constexpr double slack = 1e-9;
// Squares below this may have lost digits or underflowed: such distances exclude nothing.
inline constexpr double vanishing = 1e-290;

inline double squared_distance(std::span<const double> a, std::span<const double> b) {
    double sum = 0.0;
    for (std::size_t j = 0; j < a.size(); ++j) {
        const double difference = a[j] - b[j];
        sum += difference * difference;
    }
    return sum;
}

// Partial distance search: the squared distance, or some number above the limit if that is above it. The limit is
// looked at every few columns, since a branch in every column costs more than it saves.
inline double squared_distance_up_to(double limit, std::span<const double> a, std::span<const double> b) {
    constexpr std::size_t n_columns = 16;
    double sum = 0.0;
    for (std::size_t from = 0; from < a.size() && sum <= limit; from += n_columns)
        for (std::size_t j = from; j < std::min(from + n_columns, a.size()); ++j) {
            const double difference = a[j] - b[j];
            sum += difference * difference;
        }
    return sum;
}

// The power of two that brings the largest magnitude into [1/2, 1), so that squares neither underflow nor overflow.
inline double unit_scale(double largest) {
    int exponent = 0;
    std::frexp(largest, &exponent);
    // 2^1023 is the largest power there is; data below 2^-1023 are then still far from where squares vanish at 1.
    return largest == 0.0 ? 1.0 : std::ldexp(1.0, std::min(-exponent, 1023));
}

inline double largest_magnitude(std::span<const double> values) {
    // Several at a time, since each comparison waits for the one before.
    constexpr std::size_t n_lanes = 16;
    std::array<double, n_lanes> largest{};
    std::size_t i = 0;
    for (; i + n_lanes <= values.size(); i += n_lanes)
        for (std::size_t lane = 0; lane < n_lanes; ++lane)
            largest[lane] = std::max(largest[lane], std::abs(values[i + lane]));
    for (; i < values.size(); ++i) largest[0] = std::max(largest[0], std::abs(values[i]));
    return *std::ranges::max_element(largest);
}

inline double unit_scale(std::span<const double> values) {
    return unit_scale(largest_magnitude(values));
}

// The same on all threads.
inline double unit_scale(std::span<const double> values, Pool& pool) {
    std::vector<double> largest(pool.size(), 0.0);
    pool.split(values.size(), 0.5, [&](std::size_t thread, std::size_t from, std::size_t to) {
        largest[thread] = std::max(largest[thread], largest_magnitude(values.subspan(from, to - from)));
    });
    return unit_scale(*std::max_element(largest.begin(), largest.end()));
}

// A record and its squared distance from the point of a query; nearer first, then by record number.
struct Candidate {
    double distance;
    std::uint32_t record;

    friend bool operator<(const Candidate& a, const Candidate& b) {
        return a.distance < b.distance || (a.distance == b.distance && a.record < b.record);
    }
};

// The farther first, then by record number.
inline bool is_farther(const Candidate& a, const Candidate& b) {
    return a.distance > b.distance || (a.distance == b.distance && a.record < b.record);
}

// The farthest record so far; of equally far ones the one with the lowest number.
struct Farthest {
    double distance = -1.0;
    std::uint32_t record = std::numeric_limits<std::uint32_t>::max();

    // Returns whether the other is taken.
    bool offer(const Candidate& other) {
        if (other.distance < distance || (other.distance == distance && other.record > record)) return false;
        distance = other.distance;
        record = other.record;
        return true;
    }
};

// The k nearest candidates seen, of those below a limit that may come from elsewhere.
class Nearest {
  public:
    explicit Nearest(std::size_t k, Candidate limit = {std::numeric_limits<double>::infinity(), 0xffffffffu})
        : k_(k), limit_(limit) {
        heap_.reserve(k);
    }

    // Adds the candidate if it is among the k nearest; returns whether the limit has changed.
    bool offer(const Candidate& candidate) {
        if (k_ == 0 || !(candidate < limit_)) return false;
        if (heap_.size() == k_) {
            std::pop_heap(heap_.begin(), heap_.end());
            heap_.pop_back();
        }
        heap_.push_back(candidate);
        std::push_heap(heap_.begin(), heap_.end());
        if (heap_.size() < k_) return false;
        limit_ = std::min(limit_, heap_.front());
        return true;
    }

    // Starts again without candidates and without a limit.
    void restart(std::size_t k) {
        k_ = k;
        limit_ = {std::numeric_limits<double>::infinity(), 0xffffffffu};
        heap_.clear();
        heap_.reserve(k);
    }

    // Only candidates up to this distance matter any more.
    void limit_to(double distance) { limit_ = std::min(limit_, {distance, 0xffffffffu}); }

    const Candidate& limit() const { return limit_; }
    std::size_t k() const { return k_; }
    std::span<const Candidate> found() const { return heap_; }
    // Nearest first; no more candidates may follow.
    std::vector<Candidate> sorted() {
        std::sort(heap_.begin(), heap_.end());
        return heap_;
    }

  private:
    std::size_t k_;
    Candidate limit_;
    std::vector<Candidate> heap_;
};

}  // namespace shoal
