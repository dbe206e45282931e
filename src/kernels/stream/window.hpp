// A window on a stream: tuples wait until the oldest is due, and are released in cells.
//
// The oldest tuple that is due is released with its k-1 nearest in the window (Algorithm 2 of Domingo-Ferrer and
// Soria-Comas, with the position as one more coordinate, Algorithm 3), and with the nearest that add what a cell needs:
// different subjects, different values. Tuples that could not form a cell later join now.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "numeric/distance.hpp"
#include "numeric/rows.hpp"
#include "numeric/selection.hpp"
#include "numeric/simd.hpp"

namespace shoal {

// Conditions on cells, and when a tuple is due.
struct StreamRules {
    std::size_t k;
    std::int64_t delay;              // a tuple is due after this number of later tuples; the largest number: never
    double max_age;                  // or at this age in seconds; infinity: never
    double order_weight;             // weight of one position in distances
    std::size_t max_cell;            // maximum size when close tuples are added; 0 for k
    std::vector<double> codes;       // squared distance of two different codes, for each column of codes
    std::vector<std::size_t> least;  // minimum number of different tags in a cell, for each column of tags
};

// Tuples in order of arrival: coordinates, codes compared for equality, tags that have to differ within a cell.
struct Tuples {
    Rows<const double> X;
    Rows<const std::uint64_t> codes;
    Rows<const std::uint64_t> tags;
    std::span<const double> times;
};

// Measured on all released tuples.
struct StreamTally {
    std::int64_t n_in = 0;
    std::int64_t n_released = 0;
    std::int64_t n_side = 0;
    std::int64_t n_cells = 0;
    std::int64_t n_clock_held = 0;  // how often the clock went backwards
    double clock = -std::numeric_limits<double>::infinity();
    double sse = 0;               // squared distances from the centroid of the cell, positions left out
    double sae = 0;               // the same distances, not squared
    std::int64_t spread_sum = 0;  // last position minus first, over cells
    std::int64_t spread_max = 0;
    std::int64_t moved_sum = 0;  // |rank on release - rank on arrival|
    std::int64_t moved_max = 0;
    std::int64_t waited_sum = 0;  // tuples that arrived during the wait
    std::int64_t waited_max = 0;
    double seconds_sum = 0;
    double seconds_max = 0;
    // Tuples by the number of binary digits of their wait: none, 1, 2 to 3, 4 to 7, ...
    std::array<std::int64_t, 64> waited{};
    // For the coordinates only: squared distances from the centroids, and for each the mean over all released
    // tuples and the squared distances from it.
    double sse_x = 0;
    std::vector<double> mean_x;
    std::vector<double> sst_x;
};

template <class F>
void for_each_figure(StreamTally& tally, F&& f) {
    f("n_in", tally.n_in);
    f("n_released", tally.n_released);
    f("n_side", tally.n_side);
    f("n_cells", tally.n_cells);
    f("n_clock_held", tally.n_clock_held);
    f("clock", tally.clock);
    f("sse", tally.sse);
    f("sae", tally.sae);
    f("spread_sum", tally.spread_sum);
    f("spread_max", tally.spread_max);
    f("moved_sum", tally.moved_sum);
    f("moved_max", tally.moved_max);
    f("waited_sum", tally.waited_sum);
    f("waited_max", tally.waited_max);
    f("seconds_sum", tally.seconds_sum);
    f("seconds_max", tally.seconds_max);
    f("waited", tally.waited);
    f("sse_x", tally.sse_x);
    f("mean_x", tally.mean_x);
    f("sst_x", tally.sst_x);
}

// Rows number first the tuples that waited when the push began, in order of arrival, then those pushed.
struct Departures {
    std::vector<std::int64_t> rows;   // cell after cell, in order of arrival within each
    std::vector<std::int64_t> sizes;  // of the cells
    std::vector<std::int64_t> side;
    std::vector<std::int64_t> reasons;  // 0: too few tuples; 1 + j: too few different tags in column j
    std::vector<std::int64_t> kept;     // rows that still wait
};

class Stream {
  public:
    Stream(StreamRules rules, std::size_t n_dims, const Loops& loops)
        : rules_(std::move(rules)),
          n_dims_(n_dims),
          n_codes_(rules_.codes.size()),
          n_tags_(rules_.least.size()),
          loops_(loops),
          ring_(64, gone),
          point_(n_dims) {
        tally_.mean_x.assign(n_dims, 0.0);
        tally_.sst_x.assign(n_dims, 0.0);
    }

    std::size_t size() const { return size_; }
    const StreamTally& tally() const { return tally_; }

    Departures push(const Tuples& batch) {
        begin();
        for (std::size_t i = 0; i < batch.X.size(); ++i) {
            move_clock(batch.times[i]);
            insert(batch, i, tally_.n_in++, tally_.clock);
            let_go();
        }
        return finish();
    }

    // Advances the time.
    Departures advance(double now) {
        begin();
        move_clock(now);
        let_go();
        return finish();
    }

    // The end of the stream.
    Departures flush() {
        begin();
        ended_ = true;
        while (size_ > 0) close();
        ended_ = false;
        return finish();
    }

    // Replaces the coordinates of the waiting tuples, row by row in order of arrival.
    void recode(Rows<const double> X) {
        std::size_t row = 0;
        for (std::int64_t position = oldest_; position < next_; ++position) {
            const std::uint32_t slot = slot_of(position);
            if (slot == gone) continue;
            for (std::size_t j = 0; j < n_dims_; ++j) columns_[j * capacity_ + slot] = X[row][j];
            ++row;
        }
    }

    // The waiting tuples in order of arrival: their numbers and arrival times.
    void waiting(std::vector<std::int64_t>& positions, std::vector<double>& times) const {
        for (std::int64_t position = oldest_; position < next_; ++position) {
            const std::uint32_t slot = slot_of(position);
            if (slot == gone) continue;
            positions.push_back(position);
            times.push_back(times_[slot]);
        }
    }

    // Resumes where another window stopped.
    void restore(const Tuples& tuples, std::span<const std::int64_t> positions, const StreamTally& tally) {
        tally_ = tally;
        oldest_ = next_ = positions.empty() ? tally.n_in : positions[0];
        for (std::size_t i = 0; i < tuples.X.size(); ++i) {
            while (next_ < positions[i]) note(next_++, gone);
            insert(tuples, i, positions[i], tuples.times[i]);
        }
        while (next_ < tally.n_in) note(next_++, gone);
    }

  private:
    static constexpr std::uint32_t gone = 0xffffffff;
    static constexpr std::size_t chunk = 64;  // number of values that the loops process at a time

    struct Near {
        double distance;
        double position;
        std::uint32_t slot;

        friend bool operator<(const Near& a, const Near& b) {
            return a.distance < b.distance || (a.distance == b.distance && a.position < b.position);
        }
    };

    std::uint32_t& entry(std::int64_t position) {
        return ring_[static_cast<std::size_t>(position) & (ring_.size() - 1)];
    }
    std::uint32_t slot_of(std::int64_t position) const {
        return ring_[static_cast<std::size_t>(position) & (ring_.size() - 1)];
    }

    void begin() {
        std::int64_t row = 0;
        for (std::int64_t position = oldest_; position < next_; ++position)
            if (const std::uint32_t slot = slot_of(position); slot != gone) rows_[slot] = row++;
        next_row_ = row;
        out_ = {};
    }

    Departures finish() {
        out_.kept.reserve(size_);
        for (std::int64_t position = oldest_; position < next_; ++position)
            if (const std::uint32_t slot = slot_of(position); slot != gone) out_.kept.push_back(rows_[slot]);
        return std::move(out_);
    }

    void move_clock(double now) {
        if (now < tally_.clock) ++tally_.n_clock_held;
        tally_.clock = std::max(tally_.clock, now);
    }

    void insert(const Tuples& batch, std::size_t i, std::int64_t position, double time) {
        if (size_ == capacity_) grow();
        const auto slot = static_cast<std::uint32_t>(size_++);
        for (std::size_t j = 0; j < n_dims_; ++j) columns_[j * capacity_ + slot] = batch.X[i][j];
        for (std::size_t j = 0; j < n_codes_; ++j) codes_[j * capacity_ + slot] = batch.codes[i][j];
        for (std::size_t j = 0; j < n_tags_; ++j) tags_[slot * n_tags_ + j] = batch.tags[i][j];
        positions_[slot] = static_cast<double>(position);
        times_[slot] = time;
        rows_[slot] = next_row_++;
        note(position, slot);
        next_ = position + 1;
    }

    // Stores the slot of a tuple, growing the ring if needed.
    void note(std::int64_t position, std::uint32_t slot) {
        if (static_cast<std::size_t>(position - oldest_) >= ring_.size()) {
            std::vector<std::uint32_t> wider(2 * ring_.size(), gone);
            for (std::int64_t p = oldest_; p < position; ++p)
                wider[static_cast<std::size_t>(p) & (wider.size() - 1)] = slot_of(p);
            ring_.swap(wider);
        }
        entry(position) = slot;
    }

    void grow() {
        const std::size_t capacity = std::max<std::size_t>(2 * capacity_, 2 * chunk);
        const auto widen = [&](auto& columns, std::size_t n_columns) {
            std::remove_reference_t<decltype(columns)> wider(n_columns * capacity);
            for (std::size_t j = 0; j < n_columns; ++j)
                std::copy_n(columns.begin() + static_cast<std::ptrdiff_t>(j * capacity_), size_,
                            wider.begin() + static_cast<std::ptrdiff_t>(j * capacity));
            columns.swap(wider);
        };
        widen(columns_, n_dims_);
        widen(codes_, n_codes_);
        widen(positions_, 1);
        widen(times_, 1);
        widen(rows_, 1);
        widen(distance_, 1);
        tags_.resize(capacity * n_tags_);
        capacity_ = capacity;
    }

    // The last slot moves into the gap, so that scans see no gaps.
    void remove(std::uint32_t slot) {
        entry(static_cast<std::int64_t>(positions_[slot])) = gone;
        const auto last = static_cast<std::uint32_t>(--size_);
        if (slot != last) {
            for (std::size_t j = 0; j < n_dims_; ++j) columns_[j * capacity_ + slot] = columns_[j * capacity_ + last];
            for (std::size_t j = 0; j < n_codes_; ++j) codes_[j * capacity_ + slot] = codes_[j * capacity_ + last];
            for (std::size_t j = 0; j < n_tags_; ++j) tags_[slot * n_tags_ + j] = tags_[last * n_tags_ + j];
            positions_[slot] = positions_[last];
            times_[slot] = times_[last];
            rows_[slot] = rows_[last];
            entry(static_cast<std::int64_t>(positions_[slot])) = slot;
        }
        while (oldest_ < next_ && slot_of(oldest_) == gone) ++oldest_;
    }

    void let_go() {
        while (size_ > 0 && is_due()) close();
    }

    bool is_due() const {
        return newest() - oldest_ >= rules_.delay || times_[slot_of(oldest_)] + rules_.max_age <= tally_.clock;
    }
    std::int64_t newest() const { return next_ - 1; }

    // Removes the oldest tuple: in a cell, if one can be formed.
    void close() {
        const std::uint32_t due = slot_of(oldest_);
        measure(due);
        cell_.clear();
        if (const std::optional<std::int64_t> reason = gather()) {
            out_.side.push_back(rows_[due]);
            out_.reasons.push_back(*reason);
            ++tally_.n_side;
            remove(due);
            return;
        }
        members_.clear();
        // From the back, so that removing a slot does not move one that is still to be removed.
        std::sort(cell_.begin(), cell_.end(), std::greater<>());
        for (const std::uint32_t slot : cell_) leave(slot);
        while (size_ > 0 && oldest_is_lost()) leave(slot_of(oldest_));
        release();
    }

    void measure(std::uint32_t due) {
        for (std::size_t j = 0; j < n_dims_; ++j) point_[j] = columns_[j * capacity_ + due];
        loops_.distances(columns_.data(), capacity_, size_, point_, distance_.data());
        for (std::size_t j = 0; j < n_codes_; ++j) {
            const std::uint64_t* column = &codes_[j * capacity_];
            loops_.add_differing(column, size_, column[due], rules_.codes[j], distance_.data());
        }
        if (rules_.order_weight != 0)
            loops_.add_steps(positions_.data(), size_, positions_[due], rules_.order_weight, distance_.data());
    }

    // Fills cell_ with slots, or returns why it cannot.
    std::optional<std::int64_t> gather() {
        std::size_t wanted = std::max(rules_.k, rules_.max_cell);
        while (true) {
            wanted = std::min(wanted, size_);
            nearest(wanted);
            const std::optional<std::int64_t> reason = choose();
            if (!reason || wanted == size_) return reason;
            wanted *= 4;
        }
    }

    // Writes the `wanted` nearest to near_; in order, unless only the k nearest are needed.
    void nearest(std::size_t wanted) {
        const double limit = enough_within(wanted);
        // Written unconditionally, so one element more than can be found.
        if (found_.size() < size_ + 1) found_.resize(2 * size_ + 1);
        std::size_t n_found = 0;
        for (std::size_t start = 0; start < size_; start += minima_block) {
            if (!any_within(start, limit)) continue;
            const std::size_t end = std::min(start + minima_block, size_);
            for (std::size_t slot = start; slot < end; ++slot) {
                found_[n_found] = static_cast<std::uint32_t>(slot);
                n_found += distance_[slot] <= limit;
            }
        }
        near_.clear();
        for (std::size_t i = 0; i < n_found; ++i)
            near_.push_back({distance_[found_[i]], positions_[found_[i]], found_[i]});
        const auto end = near_.begin() + static_cast<std::ptrdiff_t>(wanted);
        if (wanted < near_.size()) select_nth(near_.begin(), end, near_.end());
        near_.erase(end, near_.end());
        if (n_tags_ > 0 || rules_.max_cell > rules_.k) std::sort(near_.begin(), near_.end());
    }

    // A distance within which there are at least `wanted` tuples, and hardly more: the `wanted`-th of the minima of
    // four, sixteen or sixty-four values, as long as there are enough.
    double enough_within(std::size_t wanted) {
        std::size_t n = (size_ + minima_block - 1) / minima_block * minima_block;
        std::fill(distance_.begin() + static_cast<std::ptrdiff_t>(size_),
                  distance_.begin() + static_cast<std::ptrdiff_t>(n), std::numeric_limits<double>::infinity());
        minima_.resize(n / 4);
        loops_.minima(distance_.data(), n / minima_block, minima_.data());
        n /= 4;
        if (n < wanted) return std::numeric_limits<double>::infinity();
        ranked_.assign(minima_.begin(), minima_.end());
        while (n > minima_block && n / 4 >= 2 * wanted) {
            const std::size_t n_blocks = (n + minima_block - 1) / minima_block;
            ranked_.resize(n_blocks * minima_block, std::numeric_limits<double>::infinity());
            fewer_.resize(n_blocks * minima_block / 4);
            loops_.minima(ranked_.data(), n_blocks, fewer_.data());
            ranked_.swap(fewer_);
            n = ranked_.size();
        }
        const auto last = ranked_.begin() + static_cast<std::ptrdiff_t>(wanted - 1);
        select_nth(ranked_.begin(), last, ranked_.begin() + static_cast<std::ptrdiff_t>(n));
        return *last;
    }

    bool any_within(std::size_t start, double limit) const {
        int any = 0;
        for (std::size_t i = 0; i < minima_block / 4; ++i) any |= minima_[start / 4 + i] <= limit;
        return any;
    }

    // The k nearest, then the nearest that add what is missing, then those that are close to the cell.
    std::optional<std::int64_t> choose() {
        cell_.clear();
        seen_.resize(n_tags_);
        for (auto& tags : seen_) tags.clear();
        for (const Near& near : near_) {
            if (cell_.size() >= rules_.k && missing() == 0) break;
            if (cell_.size() < rules_.k || adds_something(near.slot)) take(near.slot);
        }
        if (cell_.size() < rules_.k) return 0;
        for (std::size_t j = 0; j < n_tags_; ++j)
            if (seen_[j].size() < rules_.least[j]) return 1 + static_cast<std::int64_t>(j);
        extend();
        return std::nullopt;
    }

    // Adds every tuple that is not much nearer to one that stays than to the tuple that is due.
    void extend() {
        constexpr double allowance = 1.5;  // in squared distance; see docs/streams.md
        for (const Near& near : near_) {
            if (cell_.size() >= rules_.max_cell || cell_.size() + 1 >= size_) return;
            if (std::find(cell_.begin(), cell_.end(), near.slot) != cell_.end()) continue;
            measure(near.slot);
            for (const std::uint32_t slot : cell_) distance_[slot] = std::numeric_limits<double>::infinity();
            distance_[near.slot] = std::numeric_limits<double>::infinity();
            const double nearest =
                *std::min_element(distance_.begin(), distance_.begin() + static_cast<std::ptrdiff_t>(size_));
            if (!(near.distance < allowance * nearest)) return;
            cell_.push_back(near.slot);
        }
    }

    // The largest number of different tags that a column still lacks.
    std::size_t missing() const {
        std::size_t most = 0;
        for (std::size_t j = 0; j < n_tags_; ++j)
            most = std::max(most, rules_.least[j] - std::min(rules_.least[j], seen_[j].size()));
        return most;
    }

    bool adds_something(std::uint32_t slot) const {
        for (std::size_t j = 0; j < n_tags_; ++j)
            if (seen_[j].size() < rules_.least[j] && !has_seen(j, tags_[slot * n_tags_ + j])) return true;
        return false;
    }
    bool has_seen(std::size_t j, std::uint64_t tag) const {
        return std::find(seen_[j].begin(), seen_[j].end(), tag) != seen_[j].end();
    }

    void take(std::uint32_t slot) {
        cell_.push_back(slot);
        for (std::size_t j = 0; j < n_tags_; ++j)
            if (!has_seen(j, tags_[slot * n_tags_ + j])) seen_[j].push_back(tags_[slot * n_tags_ + j]);
    }

    // Whether the oldest can no longer form a cell, whatever arrives before it is due.
    bool oldest_is_lost() {
        const std::int64_t after = newest() - oldest_;
        // Without a limit in tuples any number may still arrive.
        const std::size_t comes = ended_ || is_due() ? 0 : static_cast<std::size_t>(rules_.delay - after);
        if (comes < rules_.k && size_ + comes < rules_.k) return true;
        for (std::size_t j = 0; j < n_tags_; ++j)
            if (comes < rules_.least[j] && !differ(j, rules_.least[j] - comes)) return true;
        return false;
    }

    // Whether at least this number of different tags wait.
    bool differ(std::size_t j, std::size_t least) {
        different_.clear();
        for (std::size_t slot = 0; slot < size_ && different_.size() < least; ++slot) {
            const std::uint64_t tag = tags_[slot * n_tags_ + j];
            if (std::find(different_.begin(), different_.end(), tag) == different_.end()) different_.push_back(tag);
        }
        return different_.size() >= least;
    }

    // A tuple of the cell, copied from the window.
    struct Member {
        std::int64_t position;
        std::int64_t row;
        double time;
        std::size_t place;  // of its coordinates and codes
    };

    void leave(std::uint32_t slot) {
        const std::size_t place = members_.size();
        left_.resize((place + 1) * n_dims_);
        left_codes_.resize((place + 1) * n_codes_);
        for (std::size_t j = 0; j < n_dims_; ++j) left_[place * n_dims_ + j] = columns_[j * capacity_ + slot];
        for (std::size_t j = 0; j < n_codes_; ++j) left_codes_[place * n_codes_ + j] = codes_[j * capacity_ + slot];
        members_.push_back({static_cast<std::int64_t>(positions_[slot]), rows_[slot], times_[slot], place});
        remove(slot);
    }

    void release() {
        std::sort(members_.begin(), members_.end(),
                  [](const Member& a, const Member& b) { return a.position < b.position; });
        measure_loss();
        for (const Member& member : members_) {
            const std::int64_t rank = tally_.n_released + tally_.n_side;
            note_largest(std::abs(rank - member.position), tally_.moved_sum, tally_.moved_max);
            const std::int64_t waited = newest() - member.position;
            note_largest(waited, tally_.waited_sum, tally_.waited_max);
            ++tally_.waited[static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(waited)))];
            note_largest(tally_.clock - member.time, tally_.seconds_sum, tally_.seconds_max);
            out_.rows.push_back(member.row);
            ++tally_.n_released;
        }
        note_largest(members_.back().position - members_.front().position, tally_.spread_sum, tally_.spread_max);
        out_.sizes.push_back(static_cast<std::int64_t>(members_.size()));
        ++tally_.n_cells;
    }

    template <class T>
    static void note_largest(T value, T& sum, T& largest) {
        sum += value;
        largest = std::max(largest, value);
    }

    // Distances from the centroid. For codes it is the vector of their shares f: the distance of a tuple is
    // (1 - 2 f_v + sum f^2) / 2.
    void measure_loss() {
        const auto size = static_cast<double>(members_.size());
        loss_.assign(members_.size(), 0.0);
        for (std::size_t j = 0; j < n_dims_; ++j) {
            double sum = 0;
            for (const Member& member : members_) sum += left_[member.place * n_dims_ + j];
            const double mean = sum / size;
            double within = 0;
            for (std::size_t i = 0; i < members_.size(); ++i) {
                const double off = left_[members_[i].place * n_dims_ + j] - mean;
                loss_[i] += off * off;
                within += off * off;
            }
            measure_all(j, size, mean, within);
        }
        for (std::size_t j = 0; j < n_codes_; ++j) measure_codes(j, size);
        for (const double squared : loss_) {
            tally_.sse += squared;
            tally_.sae += std::sqrt(squared);
        }
    }

    // Merges the cell into the mean and squared distances of a column.
    void measure_all(std::size_t j, double size, double mean, double within) {
        const auto before = static_cast<double>(tally_.n_released);
        const double apart = mean - tally_.mean_x[j];
        tally_.sse_x += within;
        tally_.mean_x[j] += apart * size / (before + size);
        tally_.sst_x[j] += within + apart * apart * before * size / (before + size);
    }

    void measure_codes(std::size_t j, double size) {
        const auto code = [&](std::size_t i) { return left_codes_[members_[i].place * n_codes_ + j]; };
        alike_.assign(members_.size(), 0.0);
        double squares = 0;
        for (std::size_t i = 0; i < members_.size(); ++i) {
            for (std::size_t other = 0; other < members_.size(); ++other) alike_[i] += code(i) == code(other);
            squares += alike_[i] / size / size;
        }
        for (std::size_t i = 0; i < members_.size(); ++i)
            loss_[i] += rules_.codes[j] * std::max(0.0, 1 - 2 * alike_[i] / size + squares) / 2;
    }

    StreamRules rules_;
    std::size_t n_dims_;
    std::size_t n_codes_;
    std::size_t n_tags_;
    const Loops& loops_;
    // The tuples that wait, in slots without gaps and in no order; columns of `capacity_`.
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
    std::vector<double> columns_;
    std::vector<std::uint64_t> codes_;
    std::vector<std::uint64_t> tags_;
    std::vector<double> positions_;
    std::vector<double> times_;
    std::vector<std::int64_t> rows_;
    // The slot of each position from the oldest on, in a ring whose size is a power of two.
    std::vector<std::uint32_t> ring_;
    std::int64_t oldest_ = 0;  // the oldest waiting; next_ if there is none
    std::int64_t next_ = 0;
    std::int64_t next_row_ = 0;
    bool ended_ = false;
    StreamTally tally_;
    Departures out_;
    // Work space for one cell.
    std::vector<double> point_;
    std::vector<double> distance_;
    std::vector<std::uint32_t> found_;
    std::vector<double> minima_;
    std::vector<double> ranked_;
    std::vector<double> fewer_;
    std::vector<Near> near_;
    std::vector<std::uint32_t> cell_;
    std::vector<std::vector<std::uint64_t>> seen_;
    std::vector<std::uint64_t> different_;
    std::vector<Member> members_;
    std::vector<double> left_;
    std::vector<std::uint64_t> left_codes_;
    std::vector<double> loss_;
    std::vector<double> alike_;
};

}  // namespace shoal
