// The records inside the outermost ones, screened on a lattice so that only a few of them are measured in a query.
//
// Each rotated coordinate is rounded to a lattice of 255 steps, whose squared distances are integers computed at 64
// multiplications per instruction. The lattice, and the boxes around blocks of 64 neighbouring records, only exclude
// records: by the triangle inequality a true distance differs from the lattice distance by at most the rounding errors
// of the two points. The remaining records are measured in float64, and ordered by distance and then record number.
// docs/kernels.md has the proofs.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "distance.hpp"
#include "pool.hpp"
#include "principal_axes.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace shoal {

// A question: the point, and how it lies to the lattice. All threads read it.
struct Query {
    std::span<const double> point;
    std::size_t k = 0;
    bool wants_farthest = false;

    // The point in the coordinates of the lattice. All lengths are in steps.
    std::vector<double> turned;
    std::vector<std::int8_t> code;
    double norm = 0;        // |code|^2
    double offset = 0;      // what coding records as 128 + c adds to every score
    double outside2 = 0;    // squared distance from the point to the cube of the lattice
    double hidden2 = 0;     // the most that coordinates left out can add to a squared distance
    double near_error = 0;  // rounding errors of a record and of the point's projection onto the cube
    double far_error = 0;   // rounding errors of a record and of the point itself
    // The point as a float in turned coordinates, not in steps, and what rounding it is at most; as the records are
    // kept.
    std::vector<float> rotated;
    double rotated_error = 0;
};

// What all threads know: squared distances that the k nearest do not exceed, and that the farthest does not fall below.
struct alignas(128) CommonLimits {
    std::atomic<double> nearest{0};
    std::atomic<double> farthest{0};

    void offer_nearest(double distance) {
        double known = nearest.load(std::memory_order_relaxed);
        while (distance < known && !nearest.compare_exchange_weak(known, distance, std::memory_order_relaxed)) {
        }
    }
    void offer_farthest(double distance) {
        double known = farthest.load(std::memory_order_relaxed);
        while (distance > known && !farthest.compare_exchange_weak(known, distance, std::memory_order_relaxed)) {
        }
    }
};

// What one thread has found, and the limits that it looks within.
struct Findings {
    // Number of records measured at a time, whose rows are fetched together.
    static constexpr std::size_t max_pending = 12;

    Nearest nearest{0};
    Farthest farthest;
    double nearest2 = 0;  // the common limits that the following ones were computed from
    double farthest2 = 0;
    double near_limit = 0;  // in steps: a record that may be among the nearest is no farther than this
    double far_limit = 0;   // a record that may be the farthest is no nearer than this
    Sieve sieve{};
    std::size_t n_limits = 0;  // how often the limits have moved
    std::array<std::uint32_t, max_pending + block_size> pending;
    std::size_t n_pending = 0;

    void offer(const Candidate& candidate) {
        nearest.offer(candidate);
        farthest.offer(candidate);
    }
};

class LatticeScreen {
  public:
    // `places` is where each record is; it is kept up to date for the records that move to another place.
    LatticeScreen(Rows<const double> X, double scale, const PrincipalAxes& turn, const Loops& loops, Pool& pool,
                  std::span<std::uint32_t> places)
        : X_(X),
          scale_(scale),
          turn_(turn),
          loops_(loops),
          pool_(pool),
          places_(places),
          n_dims_(turn.n_kept()),
          quads_((n_dims_ + 3) / 4),
          width_(4 * quads_),
          parts_(pool.size()) {}

    std::size_t size() const { return size_; }
    std::size_t size_when_laid_out() const { return size_laid_out_; }
    std::size_t width() const { return width_; }
    std::uint32_t block_of(std::size_t place) const { return static_cast<std::uint32_t>(place / block_size); }
    std::uint32_t record(std::size_t place) const { return records_[place]; }
    std::size_t n_places() const { return n_blocks_ * block_size; }
    bool holds(std::size_t place) const { return place % block_size < n_live_[place / block_size]; }

    // Takes records in spatial order with their turned coordinates, `width()` floats each, the surplus ones zero, and
    // the most that one of them has in coordinates left out.
    void lay_out(std::vector<float> turned, std::vector<std::uint32_t> records, double hidden) {
        hidden_ = hidden;
        turned_ = std::move(turned);
        records_ = std::move(records);
        size_ = records_.size();
        lay_out();
    }

    // Closes the gaps. Returns for each block the place its records now begin at.
    std::vector<std::uint32_t> close_gaps() {
        erase_leaving();
        std::vector<std::uint32_t> begins(n_blocks_, 0);
        for (std::size_t b = 1; b < n_blocks_; ++b) begins[b] = begins[b - 1] + n_live_[b - 1];
        std::vector<float> turned(whole_blocks(size_) * width_, 0.0f);
        std::vector<std::uint32_t> records(whole_blocks(size_));
        pool_.split(n_blocks_, static_cast<double>(block_size * width_),
                    [&](std::size_t, std::size_t from, std::size_t to) {
                        for (std::size_t b = from; b < to; ++b) {
                            std::copy_n(turned_.data() + b * block_size * width_, n_live_[b] * width_,
                                        turned.data() + begins[b] * width_);
                            std::copy_n(records_.data() + b * block_size, n_live_[b], records.data() + begins[b]);
                        }
                    });
        turned_ = std::move(turned);
        records_ = std::move(records);
        lay_out();
        return begins;
    }

    // The record at the place is no longer there for the queries that follow. Its codes are removed by the thread that
    // looks through its block next.
    void erase(std::size_t place) {
        leaving_.push_back(static_cast<std::uint32_t>(place));
        --size_;
    }

    // Removes now what is to be removed.
    void erase_leaving() {
        std::ranges::sort(leaving_, std::greater<>());
        erase_leaving(0, n_blocks_);
        leaving_.clear();
    }

    // Squared distance, as it decides.
    double measure(std::uint32_t record, std::span<const double> point) const {
        const auto row = X_[record];
        double sum = 0;
        for (std::size_t j = 0; j < row.size(); ++j) {
            const double difference = row[j] * scale_ - point[j];
            sum += difference * difference;
        }
        return sum;
    }

    // Asks for the k records nearest to a point, and for the farthest one if it is wanted.
    void pose(std::span<const double> point, std::size_t k, bool wants_farthest) {
        pose(asked_, point, k, wants_farthest);
        common_.nearest.store(std::numeric_limits<double>::infinity(), std::memory_order_relaxed);
        common_.farthest.store(-1.0, std::memory_order_relaxed);
    }

    // Looks through all blocks, on as many threads as pay. Each calls first(thread, findings) before it looks at
    // its first block. Returns what all have found; valid until the next query.
    template <class First>
    Findings& search(const First& first) {
        Skips& skips = skips_[asked_.wants_farthest];
        const bool by_boxes = skips.n_left == 0;
        if (!by_boxes) --skips.n_left;
        ++n_queries_;
        std::ranges::sort(leaving_, std::greater<>());
        const auto look = [&](std::size_t thread, std::size_t from, std::size_t to) {
            Part& part = parts_[thread];
            erase_leaving(from, to);
            if (std::exchange(part.number, n_queries_) != n_queries_) begin(thread, first, by_boxes);
            if (!by_boxes || !visit_within_reach(part, from, to)) sweep(part.findings, from, to);
        };
        pool_.split(n_blocks_, paces_[by_boxes], look, backwards_);
        leaving_.clear();
        std::size_t n_visits = 0;
        Part* all = nullptr;
        for (Part& part : parts_) {
            if (part.number != n_queries_) continue;
            n_visits += part.n_visits;
            if (all != nullptr)
                gather(all->findings, part.findings);
            else
                all = &part;
        }
        if (by_boxes) skips.judge(is_most(n_visits, n_blocks_));
        backwards_ = !backwards_;
        return all->findings;
    }

    // Says that limit_by() will be called for a block.
    void expect(std::size_t home) const {
        const float* rows = &turned_[std::min(home, n_blocks_ - 1) * block_size * width_];
        for (std::size_t i = 0; i < block_size * width_; i += 16) __builtin_prefetch(rows + i);
    }

    // Sets a limit that the k nearest are surely within: as far as the k-th of the records around a block can be, by
    // their turned coordinates. These lie side by side, unlike the records themselves.
    void limit_by(std::size_t home) {
        const std::size_t k = asked_.k;
        if (k == 0 || size_ < k) return;
        home = std::min(home, n_blocks_ - 1);
        std::size_t from = home;
        std::size_t to = home + 1;
        for (std::size_t n = n_staying(home); n < k;) {
            if (from > 0) n += n_staying(--from);
            if (to < n_blocks_) n += n_staying(to++);
        }
        around_.clear();
        for (std::size_t b = from; b < to; ++b) {
            const bool all_stay = n_staying(b) == n_live_[b];
            for (std::size_t place = b * block_size; place < b * block_size + n_live_[b]; ++place)
                if (all_stay || places_[records_[place]] == place) around_.push_back(rotated_distance2(place));
        }
        const auto last = around_.begin() + static_cast<std::ptrdiff_t>(k - 1);
        std::nth_element(around_.begin(), last, around_.end());
        // Floats round each of the sums, and squares below 1e-38 lose digits.
        const double rounding = 2.4e-7 * static_cast<double>(n_dims_ + 8);
        const double last2 = (static_cast<double>(*last) * (1 + rounding) + 1e-36) * per_step_ * per_step_;
        const double steps = std::sqrt(last2 + asked_.hidden2) + turn_error_ + asked_.rotated_error;
        common_.nearest.store(steps * steps * (1 + slack) * step_ * step_ + vanishing, std::memory_order_relaxed);
    }

    // The places of the records that are at least as far from a point as a squared radius, ascending.
    std::vector<std::uint32_t> beyond(std::span<const double> point, double radius2) {
        erase_leaving();
        Query query;
        pose(query, point, 0, true);
        Findings limits;
        limits.farthest2 = radius2;
        set_limits(query, limits);
        std::vector<std::vector<std::uint32_t>> found(pool_.size());
        pool_.split(n_blocks_, 100.0, [&](std::size_t thread, std::size_t from, std::size_t to) {
            Hits hits;
            for (std::size_t b = from; (b = loops_.scan(lines_.data(), b, to, limits.sieve, hits)) < to; ++b)
                for (std::uint64_t left = hits.far & live(b); left; left &= left - 1) {
                    const std::size_t place = b * block_size + static_cast<std::size_t>(std::countr_zero(left));
                    if (measure(records_[place], point) >= radius2)
                        found[thread].push_back(static_cast<std::uint32_t>(place));
                }
        });
        std::vector<std::uint32_t> places;
        for (const auto& some : found) places.insert(places.end(), some.begin(), some.end());
        std::ranges::sort(places);
        return places;
    }

  private:
    static constexpr std::uint8_t zero_code = 128;
    static std::size_t whole_blocks(std::size_t n) { return (n + block_size - 1) / block_size * block_size; }
    // Number of blocks visited in order of their distance, and number of blocks prefetched.
    static constexpr std::ptrdiff_t n_first = 3;
    static constexpr std::size_t n_ahead = 4;
    static constexpr std::size_t stride_blocks = 64;

    // Queries that boxes are not tested in, since they ruled out too little to be worth it; twice as many each time.
    struct Skips {
        std::size_t n_left = 0;
        std::size_t n_next = 16;
        void judge(bool in_vain) {
            n_left = in_vain ? n_next : 0;
            n_next = in_vain ? std::min<std::size_t>(2 * n_next, 256) : 16;
        }
    };

    // The state of one thread in a shared query.
    struct alignas(128) Part {
        std::size_t number = 0;    // of the last query it took part in
        std::size_t n_visits = 0;  // blocks that boxes have not ruled out
        Findings findings;
        // The point as boxes see it.
        std::vector<float> low, high, outward;
        double radius = 0, shift = 0;
    };

    // ------------------------------------------------------------------------------------------------ asking

    void pose(Query& query, std::span<const double> point, std::size_t k, bool wants_farthest) const {
        query.point = point;
        query.k = k;
        query.wants_farthest = wants_farthest;
        query.turned.assign(width_, 0.0);
        query.code.assign(width_, 0);
        query.norm = query.offset = query.outside2 = 0;
        const double hidden = std::sqrt(turn_.apply(point, query.turned)) + hidden_;
        query.hidden2 = hidden * hidden * per_step_ * per_step_ * (1 + slack);
        query.rotated.assign(query.turned.begin(), query.turned.end());
        double largest = 0;
        for (const double value : query.turned) largest = std::max(largest, std::abs(value));
        query.rotated_error = largest * 1.2e-7 * std::sqrt(static_cast<double>(n_dims_)) * per_step_;
        double near2 = 0;
        double far2 = 0;
        for (std::size_t j = 0; j < n_dims_; ++j) {
            const double exact = (query.turned[j] - centre_[j]) * per_step_;
            const double inside = std::clamp(exact, -n_steps_, n_steps_);
            const double code = std::nearbyint(inside);
            query.turned[j] = exact;
            query.code[j] = static_cast<std::int8_t>(code);
            query.norm += code * code;
            query.offset += zero_code * code;
            query.outside2 += (exact - inside) * (exact - inside);
            near2 += (inside - code) * (inside - code);
            far2 += (exact - code) * (exact - code);
        }
        query.near_error = std::sqrt(near2) * (1 + slack) + lattice_error_;
        query.far_error = std::sqrt(far2) * (1 + slack) + lattice_error_;
    }

    template <class First>
    void begin(std::size_t thread, const First& first, bool by_boxes) {
        Part& part = parts_[thread];
        Findings& findings = part.findings;
        findings.nearest.restart(asked_.k);
        findings.farthest = {};
        findings.nearest2 = -1;  // not known yet
        first(thread, findings);
        share_limits(findings);
        part.n_visits = 0;
        if (by_boxes) look_out(part);
    }

    // Says what this thread has found and takes over what others have.
    void share_limits(Findings& findings) {
        common_.offer_nearest(findings.nearest.limit().distance);
        if (asked_.wants_farthest) common_.offer_farthest(findings.farthest.distance);
        const double nearest2 = common_.nearest.load(std::memory_order_relaxed);
        const double farthest2 = common_.farthest.load(std::memory_order_relaxed);
        if (nearest2 == findings.nearest2 && farthest2 == findings.farthest2) return;
        findings.nearest2 = nearest2;
        findings.farthest2 = farthest2;
        findings.nearest.limit_to(nearest2);
        set_limits(asked_, findings);
    }

    // Turns what has been found into limits on true distances, and these into limits on scores. A score is
    // code . point - norm / 2, so the squared lattice distance is |point|^2 - 2 (score - offset), and at most one more
    // where half a norm was rounded.
    void set_limits(const Query& query, Findings& findings) const {
        ++findings.n_limits;
        Sieve& sieve = findings.sieve;
        sieve = {query.code.data(), quads_};
        const auto bounded = [](double score) {
            return static_cast<std::int32_t>(std::clamp(score, -2147483647.0, 2147483646.0));
        };
        findings.near_limit = -1;
        if (query.k > 0) {
            findings.near_limit = std::sqrt(findings.nearest2 * (1 + slack) + vanishing) * per_step_ + turn_error_;
            // A record in the cube is nearer to the point's projection than to the point, by Pythagoras.
            const double inside2 =
                findings.near_limit * findings.near_limit * (1 + slack) - query.outside2 * (1 - slack);
            if (inside2 >= 0) {
                const double reach = std::sqrt(inside2) + query.near_error;
                sieve.near_at_least =
                    bounded(std::floor(query.offset + (query.norm - reach * reach * (1 + slack)) / 2) - 1);
            }
        }
        findings.far_limit = std::numeric_limits<double>::infinity();
        if (query.wants_farthest) {
            const double limit =
                std::sqrt(std::max(findings.farthest2 * (1 - slack) - vanishing, 0.0)) * per_step_ - turn_error_;
            findings.far_limit = std::sqrt(std::max(std::max(limit, 0.0) * limit * (1 - slack) - query.hidden2, 0.0));
            const double reach = std::max(findings.far_limit - query.far_error, 0.0);
            sieve.far_at_most =
                bounded(std::ceil(query.offset + (query.norm + 1 - reach * reach * (1 - slack)) / 2) + 1);
        }
    }

    // Notes what the lattice cannot rule out in the blocks [from, to), and measures it a few records at a time.
    void scan(Findings& findings, std::size_t from, std::size_t to) {
        Hits hits;
        for (std::size_t b = from; (b = loops_.scan(lines_.data(), b, to, findings.sieve, hits)) < to; ++b) {
            for (std::uint64_t left = (hits.near | hits.far) & live(b); left; left &= left - 1) {
                const std::uint32_t record =
                    records_[b * block_size + static_cast<std::size_t>(std::countr_zero(left))];
                fetch(X_[record]);
                findings.pending[findings.n_pending++] = record;
            }
            if (findings.n_pending >= Findings::max_pending) measure_pending(findings);
        }
    }

    void measure_pending(Findings& findings) {
        for (std::size_t i = 0; i < findings.n_pending; ++i)
            findings.offer({measure(findings.pending[i], asked_.point), findings.pending[i]});
        findings.n_pending = 0;
        share_limits(findings);
    }

    static void gather(Findings& all, const Findings& part) {
        for (const Candidate& candidate : part.nearest.found()) all.nearest.offer(candidate);
        all.farthest.offer({part.farthest.distance, part.farthest.record});
    }

    // To and fro: what was read last is still in the cache when the next query begins there.
    void sweep(Findings& findings, std::size_t from, std::size_t to) {
        const std::size_t n_strides = (to - from + stride_blocks - 1) / stride_blocks;
        for (std::size_t i = 0; i < n_strides; ++i) {
            const std::size_t start = from + (backwards_ ? n_strides - 1 - i : i) * stride_blocks;
            scan(findings, start, std::min(start + stride_blocks, to));
        }
        measure_pending(findings);
    }

    static bool is_most(std::size_t n, std::size_t n_all) { return n * 8 > n_all * 7; }

    // Of some blocks those whose boxes come near enough, nearest first, or reach far enough; says no if they are most.
    bool visit_within_reach(Part& part, std::size_t from, std::size_t to) {
        Findings& findings = part.findings;
        const float* least2 = least2_.data() + from;
        const float* greatest2 = greatest2_.data() + from;
        measure_boxes(part, from, to);
        // Sums of products of floats, of a magnitude that the norms bound.
        const double rounding = 1.2e-7 * static_cast<double>(n_dims_ + 8);
        const double largest2 = part.radius * part.radius + 4 * n_steps_ * n_steps_ * static_cast<double>(n_dims_);
        float near2 = 0;
        float far2 = 0;
        std::size_t n_limits = 0;
        const auto take_limits = [&] {
            n_limits = findings.n_limits;
            near2 = findings.near_limit < 0 ? -1.0f : above(findings.near_limit * findings.near_limit * (1 + rounding));
            far2 = below(findings.far_limit * findings.far_limit - 8 * rounding * largest2);
        };
        take_limits();
        const auto begin = visit_.begin() + static_cast<std::ptrdiff_t>(from);
        const std::size_t n_visits = loops_.select(least2, greatest2, to - from, near2, far2, &*begin);
        part.n_visits += n_visits;
        if (is_most(n_visits, to - from)) return false;
        const auto end = begin + static_cast<std::ptrdiff_t>(n_visits);
        const auto within_reach = [&](std::uint32_t b) { return least2[b] <= near2 || !(greatest2[b] < far2); };
        const auto nearer = [&](std::uint32_t a, std::uint32_t b) { return least2[a] < least2[b]; };
        std::size_t n_to_come = n_visits;
        for (auto next = begin; next != end; ++next) {
            if (--n_to_come >= n_ahead && within_reach(next[n_ahead])) fetch_block(from + next[n_ahead]);
            // The most promising ones first, then what is still within reach.
            const bool early = next - begin < n_first;
            if (early) std::iter_swap(next, std::min_element(next, end, nearer));
            if (!within_reach(*next)) continue;
            scan(findings, from + *next, from + *next + 1);
            if (early) measure_pending(findings);
            if (findings.n_limits != n_limits) take_limits();
        }
        measure_pending(findings);
        return true;
    }

    // The point as boxes see it.
    void look_out(Part& part) const {
        for (auto* floats : {&part.low, &part.high, &part.outward}) floats->resize(n_dims_);
        double radius2 = 0;
        part.shift = 0;
        for (std::size_t j = 0; j < n_dims_; ++j) {
            part.low[j] = below(asked_.turned[j]);
            part.high[j] = above(asked_.turned[j]);
            const double outward = asked_.turned[j] - middle_[j];
            part.outward[j] = static_cast<float>(outward);
            radius2 += outward * outward;
            part.shift += middle_[j] * outward;
        }
        part.radius = std::sqrt(radius2);
    }

    // Squared, but for what is hidden.
    float rotated_distance2(std::size_t place) const {
        const float* source = &turned_[place * width_];
        const float* point = asked_.rotated.data();
        std::array<float, 4> sums{};
        for (std::size_t j = 0; j < width_; j += 4)
            for (std::size_t lane = 0; lane < 4; ++lane) {
                const float difference = source[j + lane] - point[j + lane];
                sums[lane] += difference * difference;
            }
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }

    // Between what squared distances from the point the records of some blocks lie.
    void measure_boxes(const Part& part, std::size_t from, std::size_t to) {
        loops_.reach({to - from, n_blocks_, lower_.data() + from, upper_.data() + from, outer_.data() + from},
                     {part.low, part.high, part.outward, above(part.radius), static_cast<float>(part.shift)},
                     least2_.data() + from, greatest2_.data() + from);
    }

    static void fetch(std::span<const double> row) {
        for (std::size_t j = 0; j < row.size(); j += 8) __builtin_prefetch(&row[j]);
        __builtin_prefetch(&row.back());
    }
    void fetch_block(std::size_t b) const {
        const Line* block = &lines_[b * lines_per_block(quads_)];
        for (std::size_t line = 0; line < lines_per_block(quads_); ++line) __builtin_prefetch(block + line);
    }

    // ------------------------------------------------------------------------------------------------ keeping

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
    // Records of a block that are not about to leave.
    std::size_t n_staying(std::size_t block) const {
        const auto in_block = [&](std::uint32_t place) { return block_of(place) == block; };
        return n_live_[block] - static_cast<std::size_t>(std::ranges::count_if(leaving_, in_block));
    }

    // Of the records that leave, those of the blocks [from, to). The last record of a block takes the place. What it
    // leaves reads as the centre of the lattice, which is never the farthest.
    void erase_leaving(std::size_t from, std::size_t to) {
        // From the last place down, so that no record is moved that is about to leave.
        const auto begin = std::ranges::lower_bound(leaving_, to * block_size - 1, std::greater<>());
        for (auto place = begin; place != leaving_.end() && *place >= from * block_size; ++place) close_place(*place);
    }
    void close_place(std::size_t place) {
        const std::size_t block = place / block_size;
        const std::size_t last = block * block_size + --n_live_[block];
        if (place != last) {
            std::copy_n(&turned_[last * width_], width_, &turned_[place * width_]);
            records_[place] = records_[last];
            places_[records_[place]] = static_cast<std::uint32_t>(place);
            half_norm(place) = half_norm(last);
            for (std::size_t q = 0; q < quads_; ++q) std::copy_n(quad(last, q), 4, quad(place, q));
        }
        clear_codes(last);
    }
    void clear_codes(std::size_t place) {
        half_norm(place) = 0;
        for (std::size_t q = 0; q < quads_; ++q) std::fill_n(quad(place, q), 4, zero_code);
    }

    // Codes and boxes for what is in the first size_ places.
    void lay_out() {
        size_laid_out_ = size_;
        n_blocks_ = (size_ + block_size - 1) / block_size;
        turned_.resize(n_blocks_ * block_size * width_, 0.0f);
        records_.resize(n_blocks_ * block_size);
        n_live_.assign(n_blocks_, block_size);
        if (size_ % block_size) n_live_.back() = size_ % block_size;
        lines_.resize(n_blocks_ * lines_per_block(quads_));
        lower_.resize(n_dims_ * n_blocks_);
        upper_.resize(n_dims_ * n_blocks_);
        for (auto* floats : {&outer_, &least2_, &greatest2_}) floats->resize(n_blocks_);
        visit_.resize(n_blocks_ + group_size);
        skips_ = {};
        lay_lattice();
        std::vector<double> error2(pool_.size(), 0.0);
        const double time = 2.0 * static_cast<double>(block_size * width_);
        pool_.split(n_blocks_, time, [&](std::size_t t, std::size_t from, std::size_t to) {
            for (std::size_t b = from; b < to; ++b) error2[t] = std::max(error2[t], code_block(b));
        });
        lattice_error_ = std::sqrt(*std::max_element(error2.begin(), error2.end())) * (1 + slack) + slack;
    }

    struct Ranges {
        std::vector<float> least, greatest;
        std::vector<double> sum;
    };

    // Of each turned coordinate of the core. How sums are rounded depends on the threads; they only ever rule out.
    Ranges ranges_of_coordinates() {
        constexpr float infinity = std::numeric_limits<float>::infinity();
        const Ranges none{std::vector<float>(width_, infinity), std::vector<float>(width_, -infinity),
                          std::vector<double>(width_, 0.0)};
        std::vector<Ranges> parts(pool_.size(), none);
        pool_.split(size_, static_cast<double>(width_), [&](std::size_t thread, std::size_t from, std::size_t to) {
            Ranges& part = parts[thread];
            for (std::size_t place = from; place < to; ++place)
                for (std::size_t j = 0; j < width_; ++j) {
                    const float value = turned_[place * width_ + j];
                    part.least[j] = std::min(part.least[j], value);
                    part.greatest[j] = std::max(part.greatest[j], value);
                    part.sum[j] += value;
                }
        });
        Ranges all = none;
        for (const Ranges& part : parts)
            for (std::size_t j = 0; j < width_; ++j) {
                all.least[j] = std::min(all.least[j], part.least[j]);
                all.greatest[j] = std::max(all.greatest[j], part.greatest[j]);
                all.sum[j] += part.sum[j];
            }
        return all;
    }

    // A cube around the records, with steps for which sums of products of codes cannot overflow.
    void lay_lattice() {
        n_steps_ = 127;
        while (n_steps_ > 1 && static_cast<double>(n_dims_) * (zero_code + n_steps_) * n_steps_ > 1e9)
            n_steps_ = std::floor(n_steps_ / 2);
        const Ranges ranges = ranges_of_coordinates();
        double half_range = 0;
        double magnitude = 0;
        centre_.assign(n_dims_, 0.0);
        middle_.assign(n_dims_, 0.0);
        for (std::size_t j = 0; j < n_dims_ && size_ > 0; ++j) {
            const double low = ranges.least[j];
            const double high = ranges.greatest[j];
            centre_[j] = (low + high) / 2;
            middle_[j] = ranges.sum[j] / static_cast<double>(size_) - centre_[j];
            half_range = std::max(half_range, (high - low) / 2);
            magnitude = std::max({magnitude, std::abs(low), std::abs(high)});
        }
        // Slightly coarser than necessary, so that all records are inside the cube despite rounding; and not so fine
        // that the square of a length in steps overflows.
        step_ = std::max(half_range / n_steps_ * (1 + slack), 1e-100);
        per_step_ = 1 / step_;
        for (double& value : middle_) value *= per_step_;
        // Turned coordinates are floats, and floats below 1e-38 lose digits.
        turn_error_ =
            (magnitude * 1.2e-7 + hidden_ * 1e-12 + 1e-40) * std::sqrt(static_cast<double>(n_dims_)) * per_step_;
    }

    // Codes the records of a block and boxes them; returns the largest squared rounding error.
    double code_block(std::size_t b) {
        // Adding this to a small number leaves its nearest integer in the last bits.
        constexpr double rounder = 6755399441055744.0;
        const std::size_t first = b * block_size;
        std::vector<std::uint8_t> codes(width_, zero_code);
        std::vector<float> least(width_, std::numeric_limits<float>::infinity());
        std::vector<float> greatest(width_, -std::numeric_limits<float>::infinity());
        double outer2 = 0;
        double largest_error2 = 0;
        for (std::size_t place = first; place < first + n_live_[b]; ++place) {
            const float* source = &turned_[place * width_];
            double error2 = 0;
            double norm = 0;
            double outward2 = 0;
            for (std::size_t j = 0; j < n_dims_; ++j) {
                const double exact = (source[j] - centre_[j]) * per_step_;
                const double code = (exact + rounder) - rounder;
                const double outward = exact - middle_[j];
                codes[j] = static_cast<std::uint8_t>(zero_code + static_cast<int>(code));
                norm += code * code;
                outward2 += outward * outward;
                error2 += (exact - code) * (exact - code);
            }
            for (std::size_t j = 0; j < width_; ++j) {
                least[j] = std::min(least[j], source[j]);
                greatest[j] = std::max(greatest[j], source[j]);
            }
            half_norm(place) = -static_cast<std::int32_t>(norm / 2);
            for (std::size_t q = 0; q < quads_; ++q) std::copy_n(&codes[4 * q], 4, quad(place, q));
            outer2 = std::max(outer2, outward2);
            largest_error2 = std::max(largest_error2, error2);
        }
        for (std::size_t place = first + n_live_[b]; place < first + block_size; ++place) clear_codes(place);
        for (std::size_t j = 0; j < n_dims_; ++j) {
            lower_[j * n_blocks_ + b] = below((least[j] - centre_[j]) * per_step_);
            upper_[j * n_blocks_ + b] = above((greatest[j] - centre_[j]) * per_step_);
        }
        outer_[b] = above(std::sqrt(outer2));
        return largest_error2;
    }

    // A float that is surely below, or above. Beyond 1e15 steps squares of floats come near their end.
    static float below(double steps) {
        constexpr float infinity = std::numeric_limits<float>::infinity();
        return steps < -1e15 ? -infinity : std::nextafter(static_cast<float>(std::min(steps, 1e15)), -infinity);
    }
    static float above(double steps) { return -below(-steps); }

    Rows<const double> X_;
    double scale_;
    const PrincipalAxes& turn_;
    const Loops& loops_;
    Pool& pool_;
    std::span<std::uint32_t> places_;
    std::size_t n_dims_;  // kept coordinates
    std::size_t quads_;
    std::size_t width_;

    // Records in blocks of 64 places; the living ones of a block come first.
    std::size_t size_ = 0;
    std::size_t size_laid_out_ = 0;
    std::size_t n_blocks_ = 0;
    std::vector<float> turned_;
    std::vector<std::uint32_t> records_;
    std::vector<std::uint8_t> n_live_;
    std::vector<std::uint32_t> leaving_;  // places of records that are no longer there, but still in their blocks

    // The lattice and the codes on it; lengths in steps.
    std::vector<double> centre_;
    std::vector<double> middle_;  // mean of the records, relative to the centre
    double step_ = 1;
    double per_step_ = 1;
    double n_steps_ = 127;
    double lattice_error_ = 0;
    double turn_error_ = 0;
    double hidden_ = 0;  // the most a record has in coordinates left out; not in steps
    std::vector<Line> lines_;

    // Boxes of the blocks, column by column, and the largest distances of their records from the middle.
    std::vector<float> lower_, upper_, outer_;

    // Room to work in.
    std::vector<float> least2_, greatest2_;
    std::vector<float> around_;
    std::vector<std::uint32_t> visit_;
    std::array<Skips, 2> skips_{};
    bool backwards_ = false;
    std::size_t n_queries_ = 0;
    Query asked_;
    CommonLimits common_;
    std::vector<Part> parts_;                              // one for each thread
    std::array<Pace, 2> paces_{Pace(500.0), Pace(100.0)};  // of a block that is swept, or tested by its box
};

}  // namespace shoal
