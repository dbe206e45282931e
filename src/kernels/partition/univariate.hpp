// The cheapest cells on a line: optimal univariate microaggregation.
//
// The least cost of the first j records is the least of cost(first i) + cost(cell i..j), over last cells of k to 2k-1
// records: a longer one is never cheaper than its two halves. What cells on a line cost is Monge, cost(a, c) +
// cost(b, d) <= cost(a, d) + cost(b, c) for a <= b <= c <= d, so the best i never falls as j grows, and k neighbouring
// j are settled by halving: the middle one first, the others on its two sides. O(n log k) in all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "numeric/distance.hpp"
#include "parallel/polling.hpp"

namespace shoal {

// A sum of costs in two doubles: what an outlier costs at one end does not swallow what the other cells differ by.
struct Total {
    double high = 0.0;
    double low = 0.0;

    Total plus(double cost) const {
        const double sum = high + cost;
        const double part = sum - high;
        const double lost = (high - (sum - part)) + (cost - part) + low;
        const double top = sum + lost;
        return {top, lost - (top - sum)};
    }
    friend bool operator<(const Total& a, const Total& b) {
        return a.high < b.high || (a.high == b.high && a.low < b.low);
    }
};

// Neighbours on the line, met one by one from one end outwards.
struct Stretch {
    double size = 0.0;
    double reach = 0.0;   // how far their mean is from the end
    double spread = 0.0;  // their squared distances from the mean, summed

    // The next one, and how far it is from the end: at least as far as all before.
    void extend(double distance) {
        size += 1.0;
        const double step = distance - reach;
        reach += step / size;
        spread += step * (distance - reach);
    }
};

class Univariate {
  public:
    // The values ascend.
    Univariate(std::span<const double> values, std::size_t k)
        : k_(k), values_(values.begin(), values.end()), best_(values.size() + 1), from_(values.size() + 1, 0) {
        const double scale = unit_scale(values);
        for (double& value : values_) value *= scale;
    }

    // Returns how many records each cell takes, from the lowest values to the highest.
    std::vector<std::int64_t> run(Poller& poller) {
        const std::size_t n = values_.size();
        settle_single_cells();
        for (border_ = 2 * k_; border_ <= n; border_ += k_) {
            measure();
            const std::size_t last = std::min(border_ + k_ - 1, n);
            settle(border_, last, first_, last - k_);
            poller.tick(border_);
        }
        poller.finish(n);
        return sizes();
    }

  private:
    // Fewer than 2k records are one cell.
    void settle_single_cells() {
        Stretch all;
        for (std::size_t j = 1; j <= std::min(2 * k_ - 1, values_.size()); ++j) {
            all.extend(values_[j - 1] - values_[0]);
            best_[j] = Total{}.plus(all.spread);
        }
    }

    // Every last cell of the next k rows contains the border. It is measured in its two sides, each from the border
    // outwards: nothing is ever subtracted that could cancel, whatever the offset of the data and wherever the gaps.
    void measure() {
        first_ = std::max(k_, border_ - 2 * k_ + 1);
        left_.assign(1, {});
        for (std::size_t i = border_; i-- > first_;) {
            left_.push_back(left_.back());
            left_.back().extend(values_[border_ - 1] - values_[i]);
        }
        right_.assign(1, {});
        for (std::size_t j = border_; j < std::min(border_ + k_ - 1, values_.size()); ++j) {
            right_.push_back(right_.back());
            right_.back().extend(values_[j] - values_[border_]);
        }
        gap_ = border_ < values_.size() ? values_[border_] - values_[border_ - 1] : 0.0;
    }

    double cost(std::size_t i, std::size_t j) const {
        const Stretch& left = left_[border_ - i];
        const Stretch& right = right_[j - border_];
        const double apart = left.reach + gap_ + right.reach;
        return left.spread + right.spread + left.size * right.size / (left.size + right.size) * (apart * apart);
    }

    // Rows j_first to j_last, whose best i are known to lie between i_first and i_last; of equals the highest i.
    void settle(std::size_t j_first, std::size_t j_last, std::size_t i_first, std::size_t i_last) {
        const std::size_t j = j_first + (j_last - j_first) / 2;
        const std::size_t lowest = std::max(i_first, j - 2 * k_ + 1);
        std::size_t i = std::min(i_last, j - k_);
        std::size_t found = i;
        Total least = best_[i].plus(cost(i, j));
        while (i-- > lowest) {
            const Total total = best_[i].plus(cost(i, j));
            if (!(total < least)) continue;
            least = total;
            found = i;
        }
        best_[j] = least;
        from_[j] = static_cast<std::uint32_t>(found);
        if (j > j_first) settle(j_first, j - 1, i_first, found);
        if (j < j_last) settle(j + 1, j_last, found, i_last);
    }

    std::vector<std::int64_t> sizes() const {
        std::vector<std::int64_t> sizes;
        for (std::size_t j = values_.size(); j > 0; j = from_[j])
            sizes.push_back(static_cast<std::int64_t>(j - from_[j]));
        std::reverse(sizes.begin(), sizes.end());
        return sizes;
    }

    std::size_t k_;
    std::vector<double> values_;
    std::vector<Total> best_;          // what the first j records cost at least
    std::vector<std::uint32_t> from_;  // where their last cell begins
    std::size_t border_ = 0;
    std::size_t first_ = 0;
    double gap_ = 0.0;
    std::vector<Stretch> left_, right_;  // by number of records on that side of the border
};

}  // namespace shoal
