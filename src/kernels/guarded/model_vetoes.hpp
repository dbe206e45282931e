// Privacy models as conditions on cells, decided from the confidential values of their records alone.
//
// Values are codes 0, 1, ... up to n_values - 1: ranks where the column is ordered. A cell is given by the ascending
// codes of its records. Integer arithmetic is used wherever possible, so that a bound met exactly counts as met.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace shoal {

using Code = std::uint32_t;
__extension__ typedef __int128 Wide;

// A share given as a fraction of whole numbers.
struct Fraction {
    std::int64_t over;
    std::int64_t under;
};

// The range of codes that a swap or a move may add to a cell's sum without being ruled out.
struct Interval {
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
};

class Guarantee {
  public:
    virtual ~Guarantee() = default;
    // By how much a cell violates the model, in any unit; exactly 0 if it is satisfied.
    virtual double excess(std::span<const Code> codes) const = 0;
    // Data of a cell that speed up the next query.
    virtual Wide memory(std::span<const Code>) const { return 0; }
    // The excess after one code has replaced another, where that is cheaper than a recount.
    virtual std::optional<double> swapped(std::span<const Code>, Wide, Code, Code) const { return std::nullopt; }
    // Maximum change of the excess when one code replaces another, times the size of the cell.
    virtual double most_effect(Code, Code) const { return std::numeric_limits<double>::infinity(); }
    // The range of code sums outside of which the excess of a cell of this size is above `excess`; slightly too wide.
    virtual Interval sums(std::size_t, double) const { return {}; }
};

// t-closeness of an ordered column: the earth mover's distance between the ranks in a cell and in the table.
class OrderedCloseness final : public Guarantee {
  public:
    // `counts`: how often each value occurs in the table.
    OrderedCloseness(std::span<const std::int64_t> counts, Fraction t) : t_(t), n_values_(counts.size()) {
        std::int64_t n = 0;
        below_.push_back(0);
        for (std::size_t i = 0; i < counts.size(); ++i) {
            n += counts[i];
            below_.push_back(below_.back() + n);
            at_.insert(at_.end(), static_cast<std::size_t>(counts[i]), static_cast<Code>(i));
            total_ += static_cast<std::int64_t>(i) * counts[i];
        }
        n_ = n;
        for (std::size_t size = 1; size <= looked_up && n > 0; ++size)
            for (std::size_t u = 1; u <= size; ++u) turns_.push_back(turn(u, size));
    }

    double excess(std::span<const Code> codes) const override {
        if (n_values_ < 2 || codes.empty()) return 0;
        // Every sum below stays under size * n * n_values.
        const auto size = static_cast<Wide>(codes.size());
        if (size * n_ * static_cast<Wide>(n_values_) < (Wide{1} << 62)) return over(work<std::int64_t>(codes), size);
        return over(work<Wide>(codes), size);
    }

    double most_effect(Code leaves, Code enters) const override {
        const double steps = std::abs(static_cast<double>(enters) - static_cast<double>(leaves));
        return n_values_ < 2 ? 0 : steps / static_cast<double>(n_values_ - 1) * (1 + 1e-9);
    }

    Interval sums(std::size_t size, double excess) const override {
        const double t = static_cast<double>(t_.over) / static_cast<double>(t_.under) + excess;
        const double mean = static_cast<double>(total_) / static_cast<double>(n_);
        const double reach = t * static_cast<double>(n_values_ - 1) * (1 + 1e-9);
        return {(mean - reach) * static_cast<double>(size) - 1e-6, (mean + reach) * static_cast<double>(size) + 1e-6};
    }

  private:
    // The sum over all values of |size * N_i - n * (records of the cell up to i)|: the distance is that, divided by
    // size * n * (n_values - 1). Between two neighbouring records of the cell the second part is constant and the first
    // ascends, so their difference changes its sign once, at a position that is looked up; H sums N on both sides.
    template <class Whole>
    Whole work(std::span<const Code> codes) const {
        const auto size = static_cast<Whole>(codes.size());
        const auto n = static_cast<Whole>(n_);
        const Code* turns = codes.size() <= looked_up ? &turns_[codes.size() * (codes.size() - 1) / 2] : nullptr;
        Whole sum = size * static_cast<Whole>(below_[codes[0]]);
        for (std::size_t u = 1; u <= codes.size(); ++u) {
            const std::size_t from = codes[u - 1];
            const std::size_t to = u < codes.size() ? codes[u] : n_values_;
            if (from == to) continue;
            const Whole level = static_cast<Whole>(u) * n;
            const std::size_t turn =
                std::clamp<std::size_t>(turns ? turns[u - 1] : this->turn(u, codes.size()), from, to);
            const auto before = static_cast<Whole>(below_[turn] - below_[from]);
            const auto after = static_cast<Whole>(below_[to] - below_[turn]);
            sum += level * static_cast<Whole>(turn - from) - size * before;
            sum += size * after - level * static_cast<Whole>(to - turn);
        }
        return sum;
    }

    // The first value up to which the table holds at least the share u / size of its records.
    Code turn(std::size_t u, std::size_t size) const {
        const Wide records = (static_cast<Wide>(u) * n_ + static_cast<Wide>(size) - 1) / static_cast<Wide>(size);
        return at_[static_cast<std::size_t>(records - 1)];
    }

    double over(Wide work, Wide size) const {
        const Wide all = size * n_ * static_cast<Wide>(n_values_ - 1);
        if (work * t_.under <= all * t_.over) return 0;
        const double t = static_cast<double>(t_.over) / static_cast<double>(t_.under);
        return std::max(static_cast<double>(work) / static_cast<double>(all) - t, 1e-12);
    }

    // Up to this size of a cell, the position of the sign change is looked up, which saves a division per record.
    static constexpr std::size_t looked_up = 64;

    Fraction t_;
    std::size_t n_values_;
    std::int64_t n_ = 0;
    std::int64_t total_ = 0;
    std::vector<std::int64_t> below_;  // sums of N_j over all j < i
    std::vector<Code> at_;             // the code of the record at each position of the sorted table
    std::vector<Code> turns_;          // of size 1, of size 2, ...
};

// Calls what(code, count) for every value in a cell.
template <class What>
void for_each_value(std::span<const Code> codes, const What& what) {
    for (std::size_t i = 0; i < codes.size();) {
        std::size_t end = i + 1;
        while (end < codes.size() && codes[end] == codes[i]) ++end;
        what(codes[i], static_cast<std::int64_t>(end - i));
        i = end;
    }
}

// t-closeness of a nominal column: half the absolute differences between the shares in a cell and in the table.
class NominalCloseness final : public Guarantee {
  public:
    NominalCloseness(std::span<const std::int64_t> counts, Fraction t) : t_(t), counts_(counts.begin(), counts.end()) {
        for (const std::int64_t count : counts) n_ += count;
    }

    double excess(std::span<const Code> codes) const override { return over(memory(codes), codes.size()); }

    // Positive and negative differences cancel: half the absolute sum is the sum of the positive ones.
    Wide memory(std::span<const Code> codes) const override {
        Wide sum = 0;
        for_each_value(codes, [&](Code code, std::int64_t count) { sum += more(code, count, codes.size()); });
        return sum;
    }

    double most_effect(Code leaves, Code enters) const override { return leaves == enters ? 0 : 1 + 1e-9; }

    std::optional<double> swapped(std::span<const Code> codes, Wide sum, Code leaves, Code enters) const override {
        const auto count = [&](Code code) {
            const auto [first, last] = std::equal_range(codes.begin(), codes.end(), code);
            return static_cast<std::int64_t>(last - first);
        };
        const std::int64_t fewer = count(leaves);
        const std::int64_t greater = count(enters);
        if (leaves != enters) {
            sum += more(leaves, fewer - 1, codes.size()) - more(leaves, fewer, codes.size());
            sum += more(enters, greater + 1, codes.size()) - more(enters, greater, codes.size());
        }
        return over(sum, codes.size());
    }

  private:
    Wide more(Code code, std::int64_t count, std::size_t size) const {
        return std::max<Wide>(static_cast<Wide>(count) * n_ - static_cast<Wide>(size) * counts_[code], 0);
    }
    double over(Wide sum, std::size_t size) const {
        const Wide all = static_cast<Wide>(size) * n_;
        if (sum * t_.under <= all * t_.over) return 0;
        const double t = static_cast<double>(t_.over) / static_cast<double>(t_.under);
        return std::max(static_cast<double>(sum) / static_cast<double>(all) - t, 1e-12);
    }

    Fraction t_;
    std::vector<std::int64_t> counts_;
    std::int64_t n_ = 0;
};

// A minimum number of different values.
class DistinctDiversity final : public Guarantee {
  public:
    explicit DistinctDiversity(std::int64_t l) : l_(l) {}

    double excess(std::span<const Code> codes) const override {
        std::int64_t distinct = 0;
        for_each_value(codes, [&](Code, std::int64_t) { ++distinct; });
        return distinct >= l_ ? 0 : static_cast<double>(l_ - distinct) / static_cast<double>(l_);
    }

  private:
    std::int64_t l_;
};

// An entropy of at least that of l equally frequent values.
class EntropyDiversity final : public Guarantee {
  public:
    explicit EntropyDiversity(std::int64_t l) : log_l_(fixed(std::log(static_cast<double>(l)))) {}

    double excess(std::span<const Code> codes) const override {
        const auto size = static_cast<std::int64_t>(codes.size());
        Wide sum = 0;  // of count * log(count)
        for_each_value(codes, [&](Code, std::int64_t count) { sum += static_cast<Wide>(count) * log_of(count); });
        const Wide missing = sum - static_cast<Wide>(size) * (log_of(size) - log_l_);
        // The last digit of logarithms is not reliable.
        if (missing <= 2 * static_cast<Wide>(size)) return 0;
        return static_cast<double>(missing) / static_cast<double>(static_cast<Wide>(size) * log_l_);
    }

  private:
    // In integer units of 2^-40, so that last-bit differences between mathematical libraries do not matter.
    static std::int64_t fixed(double value) { return std::llround(std::ldexp(value, 40)); }
    static std::int64_t log_of(std::int64_t count) { return fixed(std::log(static_cast<double>(count))); }

    std::int64_t log_l_;
};

// Recursive (c, l)-diversity: the most frequent value is rarer than c times all from the l-th most frequent on.
class RecursiveDiversity final : public Guarantee {
  public:
    RecursiveDiversity(std::int64_t l, Fraction c) : l_(static_cast<std::size_t>(l)), c_(c) {}

    double excess(std::span<const Code> codes) const override {
        std::vector<std::int64_t> counts;
        for_each_value(codes, [&](Code, std::int64_t count) { counts.push_back(count); });
        std::sort(counts.begin(), counts.end(), std::greater<>());
        std::int64_t tail = 0;
        for (std::size_t i = l_ - 1; i < counts.size(); ++i) tail += counts[i];
        const Wide missing = static_cast<Wide>(counts[0]) * c_.under - static_cast<Wide>(tail) * c_.over;
        if (missing < 0) return 0;
        return static_cast<double>(missing + 1) / (static_cast<double>(c_.under) * static_cast<double>(codes.size()));
    }

  private:
    std::size_t l_;
    Fraction c_;
};

// delta-disclosure: the share of every value of the table is, in every cell, between low and high times its share.
class DeltaDisclosure final : public Guarantee {
  public:
    DeltaDisclosure(std::span<const std::int64_t> counts, double low, double high) : low_(low), high_(high) {
        double n = 0;
        for (const std::int64_t count : counts) n += static_cast<double>(count);
        for (const std::int64_t count : counts) shares_.push_back(static_cast<double>(count) / n);
    }

    double excess(std::span<const Code> codes) const override {
        double sum = 0;
        std::size_t next = 0;
        const auto size = static_cast<double>(codes.size());
        for_each_value(codes, [&](Code code, std::int64_t count) {
            for (; next < code; ++next) sum += low_ * shares_[next];
            const double share = static_cast<double>(count) / size;
            sum += off(share, shares_[next++]);
        });
        for (; next < shares_.size(); ++next) sum += low_ * shares_[next];
        return sum;
    }

  private:
    // Strictly between the limits, with a margin for rounding.
    double off(double share, double expected) const {
        if (share <= low_ * expected * (1 + 1e-12)) return low_ * expected - share + 1e-12;
        if (share >= high_ * expected * (1 - 1e-12)) return share - high_ * expected + 1e-12;
        return 0;
    }

    double low_;
    double high_;
    std::vector<double> shares_;
};

// Limits of shares: in every cell, each value has at most its own share of the records.
class ShareLimits final : public Guarantee {
  public:
    explicit ShareLimits(std::vector<Fraction> limits) : limits_(std::move(limits)) {}

    double excess(std::span<const Code> codes) const override {
        double sum = 0;
        for_each_value(codes, [&](Code code, std::int64_t count) {
            const Fraction most = limits_[code];
            const Wide size = static_cast<Wide>(codes.size());
            const Wide more = static_cast<Wide>(count) * most.under - most.over * size;
            if (more > 0) sum += static_cast<double>(more) / static_cast<double>(most.under * size);
        });
        return sum;
    }

  private:
    std::vector<Fraction> limits_;
};

// A guarantee for which the records of a person with the same value count once. Here codes number pairs of a value and
// a person, ascending by value.
class PersonsOnce final : public Guarantee {
  public:
    // `values`: the value of each pair.
    PersonsOnce(std::shared_ptr<const Guarantee> counted, std::span<const std::int64_t> values)
        : counted_(std::move(counted)), values_(values.begin(), values.end()) {}

    double excess(std::span<const Code> pairs) const override {
        std::vector<Code> once;
        once.reserve(pairs.size());
        for (std::size_t i = 0; i < pairs.size(); ++i)
            if (i == 0 || pairs[i] != pairs[i - 1]) once.push_back(values_[pairs[i]]);
        return counted_->excess(once);
    }

  private:
    std::shared_ptr<const Guarantee> counted_;
    std::vector<Code> values_;
};

// A guarantee and the code of every record.
struct Guarded {
    std::vector<Code> codes;
    std::shared_ptr<const Guarantee> guarantee;  // the same for parts of the records
};

}  // namespace shoal
