// The records not yet in a cell, and the queries that MDAV and its kin ask of them, answered exactly.
//
// The outermost records form the *rim*: kept in float64, column by column, and measured exactly in every query. The
// others form the *core*: each coordinate is rounded to a lattice of 255 steps, whose squared distances are integers
// that come at 64 multiplications an instruction. The lattice, and the boxes around blocks of 64 neighbouring records,
// only ever rule out: by the triangle inequality the true distance differs from the lattice distance by no more than
// the two rounding errors. What is left is measured in float64, and there distance and then record number decide.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "distance.hpp"
#include "exact_sum.hpp"
#include "pool.hpp"
#include "rows.hpp"
#include "simd.hpp"
#include "spatial_order.hpp"

namespace shoal {

// Slack for the rounding of the float64 arithmetic itself, which is of the order of 1e-16 a column.
inline constexpr double slack = 1e-9;
// Squares below this may have lost digits, or vanished: distances that small rule nothing out.
inline constexpr double vanishing = 1e-290;

class Remaining {
  public:
    Remaining(Rows<const double> X, Pool& pool, const Loops& loops)
        : X_(X),
          scale_(unit_scale(X.flat())),
          pool_(pool),
          loops_(loops),
          n_dims_(X.dims()),
          quads_((X.dims() + 3) / 4),
          sums_(X.dims()),
          place_(X.size()),
          home_(X.size()),
          point_(X.dims()) {
        std::vector<double> row(n_dims_);
        for (std::size_t i = 0; i < X.size(); ++i) sums_.add(scaled(i, row));
        order_ = spatial_order(X, block_size);
        size_ = X.size();
        settle();
    }

    std::size_t size() const { return size_; }
    std::size_t n_dims() const { return n_dims_; }
    bool contains(std::uint32_t record) const { return place_[record] != gone; }
    double scale() const { return scale_; }

    // The centroid: sums correctly rounded, then divided.
    void centroid(std::span<double> out) const {
        for (std::size_t j = 0; j < n_dims_; ++j) out[j] = sums_[j] / static_cast<double>(size_);
    }

    // Coordinates of a record, times scale().
    std::span<const double> scaled(std::size_t record, std::vector<double>& row) const {
        const auto source = X_[record];
        for (std::size_t j = 0; j < n_dims_; ++j) row[j] = source[j] * scale_;
        return row;
    }

    void remove(std::uint32_t record) {
        sums_.subtract(scaled(record, point_));
        const std::uint32_t place = place_[record];
        place_[record] = gone;
        --size_;
        if (place & in_rim)
            rim_.erase(place & ~in_rim, place_);
        else
            erase_from_core(place);
    }

    // The record farthest from the centroid of those that remain.
    std::uint32_t farthest_from_centroid() {
        if (n_core_ < n_core_settled_ - n_core_settled_ / 4 || rim_.size() > 2 * rim_limit_) settle();
        centroid(point_);
        Farthest farthest = rim_.farthest(loops_, point_);
        // A core record was within core_radius_ of the anchor, so it is within that and the drift of the centroid.
        const double drift = std::sqrt(squared_distance(point_, anchor_)) + core_radius_;
        if (n_core_ == 0 || farthest.distance > drift * drift * (1 + slack) + vanishing) return farthest.record;
        extend_rim();
        return rim_.farthest(loops_, point_).record;
    }

    struct Answer {
        std::vector<Candidate> nearest;  // nearest first
        Farthest farthest;
    };

    // The k records nearest to a point (scaled), and the farthest one if asked for. `home` is a block to start at.
    Answer search(std::span<const double> point, std::size_t k, bool wants_farthest, std::uint32_t home) {
        Query query = pose(point, k, wants_farthest);
        measure_rim(query);
        if (n_core_ > 0) {
            home = std::min<std::uint32_t>(home, n_blocks_ - 1);
            scan(query, home, home + 1);
            if (boxes_pay_off())
                scan_within_reach(query, home);
            else
                scan_all(query, home);
        }
        return {query.nearest.sorted(), query.farthest};
    }

    std::uint32_t home(std::uint32_t record) const { return home_[record]; }

  private:
    static constexpr std::uint32_t gone = 0xffffffff;
    static constexpr std::uint32_t in_rim = 0x80000000;
    static constexpr std::uint8_t zero_code = 128;

    // The rim: records held column by column.
    class Rim {
      public:
        void reset(std::size_t n_dims, std::size_t capacity) {
            // Loops run over whole chunks of 64.
            stride_ = (capacity + 63) / 64 * 64;
            columns_.assign(n_dims * stride_, 0.0);
            distances_.resize(stride_);
            records_.clear();
            n_dims_ = n_dims;
        }
        std::size_t size() const { return records_.size(); }
        std::span<const std::uint32_t> records() const { return records_; }

        void insert(std::uint32_t record, std::span<const double> row, std::vector<std::uint32_t>& place) {
            if (records_.size() == stride_) grow();
            for (std::size_t j = 0; j < n_dims_; ++j) columns_[j * stride_ + records_.size()] = row[j];
            place[record] = static_cast<std::uint32_t>(records_.size()) | in_rim;
            records_.push_back(record);
        }

        void erase(std::size_t slot, std::vector<std::uint32_t>& place) {
            const std::size_t last = records_.size() - 1;
            if (slot != last) {
                for (std::size_t j = 0; j < n_dims_; ++j) columns_[j * stride_ + slot] = columns_[j * stride_ + last];
                records_[slot] = records_[last];
                place[records_[slot]] = static_cast<std::uint32_t>(slot) | in_rim;
            }
            records_.pop_back();
        }

        // Squared distances of all its records from a point.
        std::span<const double> distances(const Loops& loops, std::span<const double> point) {
            loops.distances(columns_.data(), stride_, records_.size(), point, distances_.data());
            return {distances_.data(), records_.size()};
        }

        Farthest farthest(const Loops& loops, std::span<const double> point) {
            Farthest farthest;
            const auto distance = distances(loops, point);
            for (std::size_t i = 0; i < distance.size(); ++i) farthest.offer({distance[i], records_[i]});
            return farthest;
        }

      private:
        void grow() {
            const std::size_t stride = 2 * stride_ + 64;
            std::vector<double> columns(n_dims_ * stride, 0.0);
            for (std::size_t j = 0; j < n_dims_; ++j)
                std::copy_n(&columns_[j * stride_], records_.size(), &columns[j * stride]);
            columns_ = std::move(columns);
            distances_.resize(stride);
            stride_ = stride;
        }

        std::size_t n_dims_ = 0;
        std::size_t stride_ = 0;
        std::vector<double> columns_;
        std::vector<double> distances_;
        std::vector<std::uint32_t> records_;
    };

    // A question and what has been found so far.
    struct Query {
        std::span<const double> point;
        Nearest nearest;
        bool wants_farthest;
        Farthest farthest;
        // The point on the lattice. All lengths below are in lattice steps.
        std::vector<std::int8_t> code;
        double norm = 0;       // |code|^2
        double offset = 0;     // what coding records as 128 + c adds to every score
        double outside2 = 0;   // squared distance from the point to the cube of the core
        double near_error = 0;  // rounding errors of a record and of the point's projection onto the cube
        double far_error = 0;   // rounding errors of a record and of the point itself

        // How far from the point a record can be that is among the k nearest, squared.
        double near_limit2(double step) const {
            const double limit = std::sqrt(nearest.limit().distance * (1 + slack) + vanishing) / step;
            return limit * limit * (1 + slack);
        }
        // How near to the point a record can be that is at least as far as the farthest so far, squared.
        double far_limit2(double step) const {
            const double limit = std::sqrt(std::max(farthest.distance * (1 - slack) - vanishing, 0.0)) / step;
            return limit * limit * (1 - slack);
        }
    };

    // ------------------------------------------------------------------------------------------------ asking

    Query pose(std::span<const double> point, std::size_t k, bool wants_farthest) const {
        Query query{point, Nearest(k), wants_farthest, {}, std::vector<std::int8_t>(4 * quads_, 0)};
        double near2 = 0;
        double far2 = 0;
        for (std::size_t j = 0; j < n_dims_; ++j) {
            const double exact = (point[j] - centre_[j]) / step_;
            const double inside = std::clamp(exact, -n_steps_, n_steps_);
            const double code = std::nearbyint(inside);
            query.code[j] = static_cast<std::int8_t>(code);
            query.norm += code * code;
            query.offset += zero_code * code;
            query.outside2 += (exact - inside) * (exact - inside);
            near2 += (inside - code) * (inside - code);
            far2 += (exact - code) * (exact - code);
        }
        query.near_error = std::sqrt(near2) * (1 + slack) + core_error_;
        query.far_error = std::sqrt(far2) * (1 + slack) + core_error_;
        return query;
    }

    // Scores are code . point - norm / 2, so the squared lattice distance is |point|^2 - 2 (score - offset), and at most
    // one more where half a norm was rounded.
    void tighten(Sieve& sieve, const Query& query) const {
        const auto bounded = [](double score) {
            return static_cast<std::int32_t>(std::clamp(score, -2147483647.0, 2147483646.0));
        };
        sieve.near_at_least = std::numeric_limits<std::int32_t>::max();
        sieve.far_at_most = std::numeric_limits<std::int32_t>::min();
        // A record in the cube is at least as far from the point as from its projection, by Pythagoras.
        const double inside2 = query.near_limit2(step_) - query.outside2 * (1 - slack);
        if (query.nearest.k() > 0 && inside2 >= 0) {
            const double reach = std::sqrt(inside2) + query.near_error;
            sieve.near_at_least = bounded(std::floor(query.offset + (query.norm - reach * reach * (1 + slack)) / 2) - 1);
        }
        if (query.wants_farthest) {
            const double reach = std::max(std::sqrt(query.far_limit2(step_)) - query.far_error, 0.0);
            sieve.far_at_most = bounded(std::ceil(query.offset + (query.norm + 1 - reach * reach * (1 - slack)) / 2) + 1);
        }
    }

    void measure_rim(Query& query) {
        const auto distance = rim_.distances(loops_, query.point);
        const auto records = rim_.records();
        for (std::size_t i = 0; i < distance.size(); ++i) {
            const Candidate candidate{distance[i], records[i]};
            query.nearest.offer(candidate);
            if (query.wants_farthest) query.farthest.offer(candidate);
        }
    }

    // Measures what the lattice cannot rule out in the blocks [from, to).
    void scan(Query& query, std::size_t from, std::size_t to) const {
        Sieve sieve{query.code.data(), quads_};
        tighten(sieve, query);
        Hits hits;
        for (std::size_t b = from; (b = loops_.scan(lines_.data(), b, to, sieve, hits)) < to; ++b) {
            bool moved = false;
            const std::uint64_t living = live(b);
            for (std::uint64_t left = (hits.near | hits.far) & living; left; left &= left - 1) {
                const std::size_t place = b * block_size + std::countr_zero(left);
                const Candidate candidate{squared_distance(row(place), query.point), records_[place]};
                moved |= query.nearest.offer(candidate);
                if (query.wants_farthest && (hits.far >> std::countr_zero(left) & 1)) {
                    query.farthest.offer(candidate);
                    moved = true;
                }
            }
            if (moved) tighten(sieve, query);
        }
    }

    // All blocks but the home block, which has been scanned, shared among the threads.
    void scan_all(Query& query, std::size_t home) {
        if (pool_.size() == 1 || n_blocks_ * lines_per_block(quads_) < min_lines_to_share) {
            scan(query, 0, home);
            scan(query, home + 1, n_blocks_);
            return;
        }
        std::vector<Query> part(pool_.size(), query);
        pool_.split(n_blocks_, [&](std::size_t t, std::size_t from, std::size_t to) {
            part[t].nearest = Nearest(query.nearest.k(), query.nearest.limit());
            scan(part[t], from, std::clamp(home, from, to));
            scan(part[t], std::clamp(home + 1, from, to), to);
        });
        for (const Query& other : part) {
            for (const Candidate& candidate : other.nearest.found()) query.nearest.offer(candidate);
            if (query.wants_farthest) query.farthest.offer({other.farthest.distance, other.farthest.record});
        }
    }

    // The blocks whose boxes come near enough, nearest first, or reach far enough.
    void scan_within_reach(Query& query, std::size_t home) {
        measure_boxes(query);
        // Sums of n_dims_ squares of floats.
        const double rounding = 1 + 1.2e-7 * static_cast<double>(n_dims_ + 8);
        const auto within_reach = [&](std::size_t b) {
            return least_[b] <= query.near_limit2(step_) * rounding ||
                   (query.wants_farthest && greatest_[b] * rounding >= query.far_limit2(step_));
        };
        visit_.clear();
        for (std::uint32_t b = 0; b < n_blocks_; ++b)
            if (within_reach(b) && b != home) visit_.push_back(b);
        if (visit_.size() * 2 > n_blocks_) skip_boxes_ = 32;
        if (visit_.size() * 4 > n_blocks_) return scan_all(query, home);
        std::sort(visit_.begin(), visit_.end(), [&](std::uint32_t a, std::uint32_t b) { return least_[a] < least_[b]; });
        for (const std::uint32_t b : visit_)
            if (within_reach(b)) scan(query, b, b + 1);
    }

    void measure_boxes(const Query& query) {
        for (std::size_t j = 0; j < n_dims_; ++j) {
            const double exact = (query.point[j] - centre_[j]) / step_;
            low_[j] = below(exact);
            high_[j] = above(exact);
        }
        const Boxes boxes{lower_.data(), upper_.data(), box_stride_};
        loops_.reach(boxes, 0, n_blocks_, low_, high_, least_.data(), greatest_.data());
    }

    // Whether testing boxes has ruled out enough lately to be worth it; asked again from time to time.
    bool boxes_pay_off() {
        if (skip_boxes_ == 0) return true;
        --skip_boxes_;
        return false;
    }

    // ------------------------------------------------------------------------------------------------ keeping

    std::span<const double> row(std::size_t place) const { return {&rows_[place * n_dims_], n_dims_}; }
    std::uint64_t live(std::size_t block) const {
        return n_live_[block] == block_size ? ~std::uint64_t{0} : (std::uint64_t{1} << n_live_[block]) - 1;
    }
    std::int32_t& half_norm(std::size_t place) {
        Line* block = &lines_[place / block_size * lines_per_block(quads_)];
        return reinterpret_cast<std::int32_t*>(block->bytes)[place % block_size];
    }
    std::uint8_t* quad(std::size_t place, std::size_t q) {
        Line* block = &lines_[place / block_size * lines_per_block(quads_)];
        const std::size_t slot = place % block_size;
        return block[n_groups + slot / group_size * quads_ + q].bytes + slot % group_size * 4;
    }

    // The last record of the block takes the place; what it leaves reads as the centre of the lattice, which is far
    // from nobody.
    void erase_from_core(std::uint32_t place) {
        const std::size_t block = place / block_size;
        const std::size_t last = block * block_size + --n_live_[block];
        if (place != last) {
            std::copy_n(&rows_[last * n_dims_], n_dims_, &rows_[place * n_dims_]);
            records_[place] = records_[last];
            place_[records_[place]] = place;
            half_norm(place) = half_norm(last);
            for (std::size_t q = 0; q < quads_; ++q) std::copy_n(quad(last, q), 4, quad(place, q));
        }
        clear_codes(last);
        --n_core_;
    }

    void clear_codes(std::size_t place) {
        half_norm(place) = 0;
        for (std::size_t q = 0; q < quads_; ++q) std::fill_n(quad(place, q), 4, zero_code);
    }

    // Moves the records that are now the outermost of the core into the rim, about rim_limit_ of them.
    void extend_rim() {
        anchor_ = point_;
        const double radius2 = outer_radius2();
        Query query = pose(anchor_, 0, true);
        query.farthest = {radius2, 0};
        Sieve sieve{query.code.data(), quads_};
        tighten(sieve, query);
        Hits hits;
        for (std::size_t b = 0; (b = loops_.scan(lines_.data(), b, n_blocks_, sieve, hits)) < n_blocks_; ++b) {
            // From the last slot down: erasing moves a later record, already looked at, into the gap.
            for (std::uint64_t left = hits.far & live(b); left;) {
                const int slot = 63 - std::countl_zero(left);
                left &= ~(std::uint64_t{1} << slot);
                const auto place = static_cast<std::uint32_t>(b * block_size + slot);
                if (squared_distance(row(place), anchor_) < radius2) continue;
                rim_.insert(records_[place], row(place), place_);
                erase_from_core(place);
            }
        }
        core_radius_ = std::sqrt(radius2) * (1 + slack);
    }

    // A squared radius around the anchor that about rim_limit_ core records exceed or meet, and at least one does.
    double outer_radius2() {
        constexpr std::size_t n_samples = 1024;
        sample_.clear();
        const std::size_t every = std::max<std::size_t>(n_blocks_ * block_size / n_samples, 1);
        for (std::size_t place = every / 2; place < n_blocks_ * block_size; place += every)
            if (place % block_size < n_live_[place / block_size])
                sample_.push_back(squared_distance(row(place), anchor_));
        if (sample_.empty())
            for (std::size_t b = 0; b < n_blocks_; ++b)
                for (std::size_t s = 0; s < n_live_[b]; ++s)
                    sample_.push_back(squared_distance(row(b * block_size + s), anchor_));
        const std::size_t rank = std::min(sample_.size() * rim_limit_ / std::max<std::size_t>(n_core_, 1), sample_.size() - 1);
        std::nth_element(sample_.begin(), sample_.begin() + rank, sample_.end(), std::greater<>());
        return sample_[rank];
    }

    // Lays out anew what remains: the outermost records as the rim, the others in blocks in spatial order.
    void settle() {
        std::erase_if(order_, [&](std::uint32_t record) { return place_[record] == gone; });
        rim_limit_ = std::clamp<std::size_t>(size_ / 32, 64, 1024);
        anchor_.resize(n_dims_);
        centroid(anchor_);
        radius2_.resize(size_);
        pool_.split(size_, [&](std::size_t, std::size_t from, std::size_t to) {
            std::vector<double> row(n_dims_);
            for (std::size_t i = from; i < to; ++i) radius2_[i] = squared_distance(scaled(order_[i], row), anchor_);
        });
        sample_ = radius2_;
        const std::size_t rank = std::min(rim_limit_, size_ - 1);
        std::nth_element(sample_.begin(), sample_.begin() + rank, sample_.end(), std::greater<>());
        double limit = sample_[rank];
        // Records beyond the limit, or, where none is, all that tie at it.
        if (*std::max_element(sample_.begin(), sample_.begin() + rank + 1) == limit)
            limit = std::nextafter(limit, -1.0);
        core_radius_ = std::sqrt(sample_[rank]) * (1 + slack);

        rim_.reset(n_dims_, 2 * rim_limit_);
        core_.clear();
        std::vector<double> row(n_dims_);
        for (std::size_t i = 0; i < size_; ++i) {
            home_[order_[i]] = static_cast<std::uint32_t>(core_.size() / block_size);
            if (radius2_[i] > limit)
                rim_.insert(order_[i], scaled(order_[i], row), place_);
            else
                core_.push_back(order_[i]);
        }
        n_core_ = n_core_settled_ = core_.size();
        n_blocks_ = (n_core_ + block_size - 1) / block_size;
        skip_boxes_ = 0;
        fill_blocks();
    }

    void fill_blocks() {
        const std::size_t n_places = n_blocks_ * block_size;
        rows_.resize(n_places * n_dims_);
        records_.resize(n_places);
        n_live_.assign(n_blocks_, block_size);
        if (n_core_ % block_size) n_live_.back() = n_core_ % block_size;
        lines_.resize(n_blocks_ * lines_per_block(quads_));
        box_stride_ = n_blocks_;
        lower_.resize(n_dims_ * box_stride_);
        upper_.resize(n_dims_ * box_stride_);
        least_.resize(n_blocks_);
        greatest_.resize(n_blocks_);
        low_.resize(n_dims_);
        high_.resize(n_dims_);

        const std::size_t n_threads = pool_.size();
        std::vector<std::vector<double>> least(n_threads, std::vector<double>(n_dims_, 2.0));
        std::vector<std::vector<double>> greatest(n_threads, std::vector<double>(n_dims_, -2.0));
        pool_.split(n_blocks_, [&](std::size_t t, std::size_t from, std::size_t to) {
            for (std::size_t place = from * block_size; place < std::min(to * block_size, n_core_); ++place) {
                const std::uint32_t record = core_[place];
                records_[place] = record;
                place_[record] = static_cast<std::uint32_t>(place);
                const auto source = X_[record];
                for (std::size_t j = 0; j < n_dims_; ++j) {
                    const double value = source[j] * scale_;
                    rows_[place * n_dims_ + j] = value;
                    least[t][j] = std::min(least[t][j], value);
                    greatest[t][j] = std::max(greatest[t][j], value);
                }
            }
        });
        for (std::size_t t = 1; t < n_threads; ++t)
            for (std::size_t j = 0; j < n_dims_; ++j) {
                least[0][j] = std::min(least[0][j], least[t][j]);
                greatest[0][j] = std::max(greatest[0][j], greatest[t][j]);
            }
        lay_lattice(least[0], greatest[0]);

        std::vector<double> error2(n_threads, 0.0);
        pool_.split(n_blocks_, [&](std::size_t t, std::size_t from, std::size_t to) {
            for (std::size_t b = from; b < to; ++b) error2[t] = std::max(error2[t], code_block(b));
        });
        core_error_ = std::sqrt(*std::max_element(error2.begin(), error2.end())) * (1 + slack) + slack;
    }

    // A cube around the core, in steps that the sums of products of codes stay far from overflowing with.
    void lay_lattice(std::span<const double> least, std::span<const double> greatest) {
        n_steps_ = 127;
        while (n_steps_ > 1 && static_cast<double>(n_dims_) * (zero_code + n_steps_) * n_steps_ > 1e9)
            n_steps_ = std::floor(n_steps_ / 2);
        double half_range = 0;
        centre_.assign(n_dims_, 0.0);
        for (std::size_t j = 0; j < n_dims_ && n_core_ > 0; ++j) {
            centre_[j] = least[j] + (greatest[j] - least[j]) / 2;
            half_range = std::max({half_range, greatest[j] - centre_[j], centre_[j] - least[j]});
        }
        // A little coarser than fits, so that the core is inside the cube whatever was rounded; and not so fine that a
        // length in steps, squared, overflows.
        step_ = std::max(half_range / n_steps_ * (1 + slack), 1e-100);
    }

    // Codes the records of a block, boxes them, and returns the largest squared rounding error among them.
    double code_block(std::size_t b) {
        double largest = 0;
        std::vector<double> least(n_dims_, std::numeric_limits<double>::infinity());
        std::vector<double> greatest(n_dims_, -std::numeric_limits<double>::infinity());
        for (std::size_t s = 0; s < block_size; ++s) {
            const std::size_t place = b * block_size + s;
            clear_codes(place);
            if (s >= n_live_[b]) continue;
            double error2 = 0;
            double norm = 0;
            for (std::size_t j = 0; j < n_dims_; ++j) {
                const double exact = (rows_[place * n_dims_ + j] - centre_[j]) / step_;
                const double code = std::clamp(std::nearbyint(exact), -n_steps_, n_steps_);
                quad(place, j / 4)[j % 4] = static_cast<std::uint8_t>(zero_code + static_cast<int>(code));
                norm += code * code;
                error2 += (exact - code) * (exact - code);
                least[j] = std::min(least[j], exact);
                greatest[j] = std::max(greatest[j], exact);
            }
            half_norm(place) = -static_cast<std::int32_t>(norm / 2);
            largest = std::max(largest, error2);
        }
        for (std::size_t j = 0; j < n_dims_; ++j) {
            lower_[j * box_stride_ + b] = below(least[j]);
            upper_[j * box_stride_ + b] = above(greatest[j]);
        }
        return largest;
    }

    // A float that is surely below, or above. Beyond 1e15 steps squares of floats come near their end.
    static float below(double steps) {
        constexpr float infinity = std::numeric_limits<float>::infinity();
        return steps < -1e15 ? -infinity : std::nextafter(static_cast<float>(std::min(steps, 1e15)), -infinity);
    }
    static float above(double steps) { return -below(-steps); }

    // Sharing fewer lines than this costs more than it saves.
    static constexpr std::size_t min_lines_to_share = 1 << 13;

    Rows<const double> X_;
    double scale_;
    Pool& pool_;
    const Loops& loops_;
    std::size_t n_dims_;
    std::size_t quads_;
    ExactSums sums_;
    std::size_t size_ = 0;
    std::vector<std::uint32_t> order_;  // what remains, in spatial order
    std::vector<std::uint32_t> place_;  // of each record: in the core, in the rim, or gone
    std::vector<std::uint32_t> home_;   // of each record: the block its neighbours are in

    Rim rim_;
    std::size_t rim_limit_ = 0;
    std::vector<double> anchor_;  // every core record is within core_radius_ of it
    double core_radius_ = 0;

    std::size_t n_core_ = 0;
    std::size_t n_core_settled_ = 0;
    std::size_t n_blocks_ = 0;
    std::vector<double> rows_;
    std::vector<std::uint32_t> records_;
    std::vector<std::uint8_t> n_live_;
    std::vector<Line> lines_;
    std::vector<double> centre_;
    double step_ = 1;
    double n_steps_ = 127;
    double core_error_ = 0;
    std::size_t box_stride_ = 0;
    std::vector<float> lower_, upper_;

    // Room to work in.
    std::vector<double> point_, radius2_, sample_;
    std::vector<float> low_, high_, least_, greatest_;
    std::vector<std::uint32_t> core_, visit_;
    std::size_t skip_boxes_ = 0;
};

}  // namespace shoal
