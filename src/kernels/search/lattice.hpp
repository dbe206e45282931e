// The lattice: the turned coordinates of the screened records rounded to 255 steps, and boxes around their blocks.
//
// Squared distances on the lattice are integers, computed at 64 multiplications per instruction. By the triangle
// inequality a true distance differs from the lattice distance by at most the rounding errors of the two points. So the
// lattice and the boxes only exclude records. docs/kernels.md has the proofs.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "numeric/distance.hpp"
#include "numeric/large_array.hpp"
#include "numeric/principal_axes.hpp"
#include "numeric/simd.hpp"
#include "parallel/pool.hpp"
#include "search/question.hpp"
#include "search/screened_records.hpp"

namespace shoal {

// A point as boxes see it.
struct Viewpoint {
    std::vector<float> low, high, outward;
    double radius = 0, shift = 0;
};

class Lattice {
  public:
    Lattice(const ScreenedRecords& records, const PrincipalAxes& turn, const Loops& loops, Pool& pool)
        : records_(records),
          turn_(turn),
          loops_(loops),
          pool_(pool),
          n_dims_(turn.n_kept()),
          quads_(records.width() / 4),
          width_(records.width()),
          rounding_(2.4e-7 * static_cast<double>(n_dims_ + 8)) {}

    // Codes and boxes for the records. None of them has more than `hidden` in coordinates left out.
    void lay_out(double hidden) {
        hidden_ = hidden;
        const std::size_t n_blocks = records_.n_blocks();
        // Gaps are closed in the same array: another would have to be mapped by the system page by page.
        if (n_blocks > n_blocks_with_room_) {
            n_blocks_with_room_ = n_blocks;
            lines_ = large_array<Line>(n_blocks * lines_per_block(quads_));
        }
        lower_.resize(n_dims_ * n_blocks);
        upper_.resize(n_dims_ * n_blocks);
        outer_.resize(n_blocks);
        lay_lattice();
        std::vector<double> error2(pool_.size(), 0.0);
        const double time = 2.0 * static_cast<double>(block_size * width_);
        pool_.split(n_blocks, time, [&](std::size_t t, std::size_t from, std::size_t to) {
            for (std::size_t b = from; b < to; ++b) error2[t] = std::max(error2[t], code_block(b));
        });
        lattice_error_ = std::sqrt(*std::max_element(error2.begin(), error2.end())) * (1 + slack) + slack;
    }
    void lay_out() { lay_out(hidden_); }

    std::size_t n_bytes() const { return records_.n_blocks() * lines_per_block(quads_) * sizeof(Line); }

    // How the point of a question lies to the lattice.
    void pose(Query& query, const Question& question) const {
        query.asked = question;
        query.turned.assign(width_, 0.0);
        query.code.assign(width_, 0);
        query.norm = query.offset = query.outside2 = 0;
        const double hidden = std::sqrt(turn_.apply(question.point, query.turned)) + hidden_;
        query.left_out2 = hidden * hidden * (1 + slack);
        query.hidden2 = query.left_out2 * per_step_ * per_step_;
        query.rotated.assign(query.turned.begin(), query.turned.end());
        double largest = 0;
        for (const double value : query.turned) largest = std::max(largest, std::abs(value));
        query.estimate_error = turn_error_ * step_ + largest * 1.2e-7 * std::sqrt(static_cast<double>(n_dims_));
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

    // Between which squared distances a record lies, by its estimate. Floats round each of the sums, squares below
    // 1e-38 lose digits, and sums above 1e38 overflow.
    double at_most(const Query& query, double estimate) const {
        const double length = std::sqrt(estimate * (1 + rounding_) + 1e-36 + query.left_out2) + query.estimate_error;
        return length * length * (1 + slack) + vanishing;
    }
    double at_least(const Query& query, double estimate) const {
        const double least2 = std::min(estimate, 1e37) * (1 - rounding_) - 1e-36;
        const double length = std::sqrt(std::max(least2, 0.0)) - query.estimate_error;
        return length > 0 ? length * length * (1 - slack) - vanishing : 0.0;
    }

    // Turns what has been found into limits on estimates and on true distances, and these into limits on scores. A
    // score is code . point - norm / 2, so the squared lattice distance is |point|^2 - 2 (score - offset), and at most
    // one more where half a norm was rounded.
    Limits limits_of(const Query& query, double nearest2, double farthest2) const {
        Limits limits{.nearest2 = nearest2, .farthest2 = farthest2, .sieve = {query.code.data(), quads_}};
        const auto bounded = [](double score) {
            return static_cast<std::int32_t>(std::clamp(score, -2147483647.0, 2147483646.0));
        };
        limits.most = limits.near_limit = -1;
        if (query.asked.k > 0) {
            const double length = std::sqrt(nearest2 * (1 + slack) + vanishing);
            const double most = length + query.estimate_error;
            limits.most = nearest2 < 1e37 ? (most * most * (1 + slack) + 1e-36) * (1 + 2 * rounding_) : infinity;
            limits.near_limit = length * per_step_ + turn_error_;
            // A record in the cube is nearer to the point's projection than to the point, by Pythagoras.
            const double inside2 = limits.near_limit * limits.near_limit * (1 + slack) - query.outside2 * (1 - slack);
            if (inside2 >= 0) {
                const double reach = std::sqrt(inside2) + query.near_error;
                limits.sieve.near_at_least =
                    bounded(std::floor(query.offset + (query.norm - reach * reach * (1 + slack)) / 2) - 1);
            }
        }
        limits.least = limits.far_limit = infinity;
        if (query.asked.wants_farthest) {
            const double length = std::sqrt(std::max(farthest2 * (1 - slack) - vanishing, 0.0));
            const double least = std::max(length - query.estimate_error, 0.0);
            limits.least = (least * least * (1 - slack) - query.left_out2 - 1e-36) * (1 - 2 * rounding_);
            const double limit = length * per_step_ - turn_error_;
            limits.far_limit = std::sqrt(std::max(std::max(limit, 0.0) * limit * (1 - slack) - query.hidden2, 0.0));
            const double reach = std::max(limits.far_limit - query.far_error, 0.0);
            limits.sieve.far_at_most =
                bounded(std::ceil(query.offset + (query.norm + 1 - reach * reach * (1 - slack)) / 2) + 1);
        }
        return limits;
    }

    // The next block of [from, to) that the sieve leaves something of, with what it leaves; `to` if there is none.
    std::size_t scan(std::size_t from, std::size_t to, const Sieve& sieve, Hits& hits) const {
        return loops_.scan(lines_.get(), from, to, sieve, hits);
    }

    // Of the squared distance from the point, by turned coordinates: these lie side by side, unlike the records
    // themselves.
    float estimate(const Query& query, std::size_t place) const {
        const float* source = records_.turned(place);
        const float* point = query.rotated.data();
        std::array<float, 4> sums{};
        for (std::size_t j = 0; j < width_; j += 4)
            for (std::size_t lane = 0; lane < 4; ++lane) {
                const float difference = source[j + lane] - point[j + lane];
                sums[lane] += difference * difference;
            }
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }

    void look_out(const Query& query, Viewpoint& out) const {
        const std::vector<double>& turned = query.turned;
        for (auto* floats : {&out.low, &out.high, &out.outward}) floats->resize(n_dims_);
        double radius2 = 0;
        out.shift = 0;
        for (std::size_t j = 0; j < n_dims_; ++j) {
            out.low[j] = below(turned[j]);
            out.high[j] = above(turned[j]);
            const double outward = turned[j] - middle_[j];
            out.outward[j] = static_cast<float>(outward);
            radius2 += outward * outward;
            out.shift += middle_[j] * outward;
        }
        out.radius = std::sqrt(radius2);
    }

    // Between what squared distances from the point the records of some blocks lie.
    void measure_boxes(const Viewpoint& out, std::size_t from, std::size_t to, float* least2, float* greatest2) const {
        loops_.reach({to - from, records_.n_blocks(), lower_.data() + from, upper_.data() + from, outer_.data() + from},
                     {out.low, out.high, out.outward, above(out.radius), static_cast<float>(out.shift)}, least2,
                     greatest2);
    }

    // Which boxes are within the limits: those with a least squared distance up to the first number, or a greatest one
    // from the second on. These are sums of products of floats, of a magnitude that the norms bound.
    std::pair<float, float> limits_of_boxes(const Viewpoint& out, const Limits& limits) const {
        const double rounding = 1.2e-7 * static_cast<double>(n_dims_ + 8);
        const double largest2 = out.radius * out.radius + 4 * n_steps_ * n_steps_ * static_cast<double>(n_dims_);
        return {limits.near_limit < 0 ? -1.0f : above(limits.near_limit * limits.near_limit * (1 + rounding)),
                below(limits.far_limit * limits.far_limit - 8 * rounding * largest2)};
    }

    void fetch_block(std::size_t b) const {
        const Line* block = &lines_[b * lines_per_block(quads_)];
        for (std::size_t line = 0; line < lines_per_block(quads_); ++line) __builtin_prefetch(block + line);
    }

    // Of the records that have left since the last query, clears those of the blocks [from, to): what is left reads as
    // the centre of the lattice, which is never the farthest.
    void clear_leaving(std::size_t from, std::size_t to) {
        for (const std::uint32_t place : records_.leaving())
            if (from <= records_.block_of(place) && records_.block_of(place) < to) clear_codes(place);
    }

  private:
    static constexpr std::uint8_t zero_code = 128;
    static constexpr double infinity = std::numeric_limits<double>::infinity();

    std::int32_t& half_norm(std::size_t place) {
        Line* block = &lines_[place / block_size * lines_per_block(quads_)];
        return reinterpret_cast<std::int32_t*>(block->bytes)[place % block_size];
    }
    std::uint8_t* quad(std::size_t place, std::size_t q) {
        Line* block = &lines_[place / block_size * lines_per_block(quads_)];
        const std::size_t slot = place % block_size;
        return block[n_groups + slot / group_size * quads_ + q].bytes + slot % group_size * 4;
    }
    void clear_codes(std::size_t place) {
        half_norm(place) = 0;
        for (std::size_t q = 0; q < quads_; ++q) std::fill_n(quad(place, q), 4, zero_code);
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
        pool_.split(records_.size(), static_cast<double>(width_),
                    [&](std::size_t thread, std::size_t from, std::size_t to) {
                        Ranges& part = parts[thread];
                        for (std::size_t place = from; place < to; ++place)
                            for (std::size_t j = 0; j < width_; ++j) {
                                const float value = records_.turned(place)[j];
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
        for (std::size_t j = 0; j < n_dims_ && records_.size() > 0; ++j) {
            const double low = ranges.least[j];
            const double high = ranges.greatest[j];
            centre_[j] = (low + high) / 2;
            middle_[j] = ranges.sum[j] / static_cast<double>(records_.size()) - centre_[j];
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
        for (std::size_t place = first; place < first + records_.n_living(b); ++place) {
            const float* source = records_.turned(place);
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
        for (std::size_t place = first + records_.n_living(b); place < first + block_size; ++place) clear_codes(place);
        for (std::size_t j = 0; j < n_dims_; ++j) {
            lower_[j * records_.n_blocks() + b] = below((least[j] - centre_[j]) * per_step_);
            upper_[j * records_.n_blocks() + b] = above((greatest[j] - centre_[j]) * per_step_);
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

    const ScreenedRecords& records_;
    const PrincipalAxes& turn_;
    const Loops& loops_;
    Pool& pool_;
    std::size_t n_dims_;  // kept coordinates
    std::size_t quads_;
    std::size_t width_;

    // The lattice and the codes on it; lengths in steps.
    std::vector<double> centre_;
    std::vector<double> middle_;  // mean of the records, relative to the centre
    double step_ = 1;
    double per_step_ = 1;
    double n_steps_ = 127;
    double lattice_error_ = 0;
    double turn_error_ = 0;
    double rounding_ = 0;  // of the estimate of a squared distance, relative
    double hidden_ = 0;    // the most a record has in coordinates left out; not in steps
    LargeArray<Line> lines_;
    std::size_t n_blocks_with_room_ = 0;

    // Boxes of the blocks, column by column, and the largest distances of their records from the middle.
    std::vector<float> lower_, upper_, outer_;
};

}  // namespace shoal
