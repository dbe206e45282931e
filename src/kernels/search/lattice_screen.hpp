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

#include "numeric/distance.hpp"
#include "numeric/large_array.hpp"
#include "numeric/principal_axes.hpp"
#include "numeric/rows.hpp"
#include "numeric/selection.hpp"
#include "numeric/simd.hpp"
#include "parallel/pool.hpp"

namespace shoal {

// The k records nearest to a scaled point, and the farthest one if it is wanted. `home` is a block to start at.
struct Question {
    std::span<const double> point;
    std::size_t k = 0;
    bool wants_farthest = false;
    std::uint32_t home = 0;
};

struct Answer {
    std::vector<Candidate> nearest;  // nearest first
    // The farthest one and, if they were found beside it, those that follow; the farthest first, and none left out.
    std::vector<Candidate> farthest;
};

// A question, and how its point lies to the lattice. All threads read it.
struct Query {
    Question asked;

    // The point in the coordinates of the lattice. All lengths are in steps.
    std::vector<double> turned;
    std::vector<std::int8_t> code;
    double norm = 0;        // |code|^2
    double offset = 0;      // what coding records as 128 + c adds to every score
    double outside2 = 0;    // squared distance from the point to the cube of the lattice
    double hidden2 = 0;     // the most that coordinates left out can add to a squared distance
    double near_error = 0;  // rounding errors of a record and of the point's projection onto the cube
    double far_error = 0;   // rounding errors of a record and of the point itself

    // The point in turned coordinates, not in steps, as a float like the records; how much distances between the two
    // are wrong by rounding, and how much coordinates left out can add to a squared one.
    std::vector<float> rotated;
    double estimate_error = 0;
    double left_out2 = 0;
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

// Which records matter, by what is known of the k nearest and of the farthest.
struct Limits {
    double nearest2 = 0;  // squared distances, as in CommonLimits
    double farthest2 = 0;
    double most = 0;        // the estimate of a record that may be among the nearest is no larger
    double least = 0;       // the estimate of a record that may be the farthest is no smaller
    double near_limit = 0;  // in steps: a record that may be among the nearest is no farther than this
    double far_limit = 0;   // a record that may be the farthest is no nearer than this
    Sieve sieve{};
};

// What one thread has found, and the limits that it looks within.
struct Findings {
    // Number of records estimated at a time, whose coordinates are fetched together.
    static constexpr std::size_t max_pending = 12;

    // Records that may be among the k nearest, or the farthest, with estimates of their squared distances.
    std::vector<Candidate> near, far;
    std::size_t k = 0;
    std::size_t n_near = 0;  // that many of them are enough to lower the limit, or to drop those beyond it
    std::size_t n_far = 0;
    double largest = 0;  // estimate
    Limits limits;
    std::size_t n_limits = 0;                                     // how often the limits have moved
    std::array<std::uint32_t, max_pending + block_size> pending;  // places
    std::size_t n_pending = 0;

    void restart(std::size_t n_nearest) {
        near.clear();
        far.clear();
        k = n_near = n_nearest;
        n_far = few;
        largest = 0;
        limits.nearest2 = -1;  // not known yet
    }
    void offer(const Candidate& estimated) {
        if (estimated.distance <= limits.most) near.push_back(estimated);
        if (estimated.distance < limits.least) return;
        far.push_back(estimated);
        largest = std::max(largest, estimated.distance);
    }
    // Drops what is beyond the limits.
    void drop_near() {
        std::erase_if(near, [this](const Candidate& one) { return one.distance > limits.most; });
        n_near = std::max(k, near.size() + std::max(near.size() / 2, few));
    }
    void drop_far() {
        std::erase_if(far, [this](const Candidate& one) { return one.distance < limits.least; });
        n_far = far.size() + std::max(far.size() / 2, few);
    }

  private:
    static constexpr std::size_t few = 8;
};

class LatticeScreen {
  public:
    LatticeScreen(Rows<const double> X, double scale, const PrincipalAxes& turn, const Loops& loops, Pool& pool)
        : X_(X),
          scale_(scale),
          turn_(turn),
          loops_(loops),
          pool_(pool),
          n_dims_(turn.n_kept()),
          quads_((n_dims_ + 3) / 4),
          width_(4 * quads_),
          rounding_(2.4e-7 * static_cast<double>(n_dims_ + 8)),
          looks_(pool.size()) {
        // Beforehand, since other threads wait for the one that begins a search: it should have nothing to fail at.
        for (Search& search : searches_) {
            search.query.turned.resize(width_);
            search.query.code.resize(width_);
            search.query.rotated.resize(width_);
        }
    }

    std::size_t size() const { return size_; }
    std::size_t size_when_laid_out() const { return size_laid_out_; }
    std::size_t width() const { return width_; }
    std::uint32_t block_of(std::size_t place) const { return static_cast<std::uint32_t>(place / block_size); }
    std::uint32_t record(std::size_t place) const { return records_[place]; }
    std::size_t n_places() const { return n_blocks_ * block_size; }
    bool holds(std::size_t place) const { return living_[block_of(place)] >> place % block_size & 1; }

    // Room for some records in spatial order. Threads put them there, with their turned coordinates, `width()` floats
    // each, the surplus ones zero.
    void make_room(std::size_t n) {
        size_ = n;
        turned_ = large_array<float>(whole_blocks(n) * width_);
        records_ = large_array<std::uint32_t>(whole_blocks(n));
        lines_ = large_array<Line>(whole_blocks(n) / block_size * lines_per_block(quads_));
    }
    void put(std::size_t place, std::uint32_t record, const float* turned) {
        records_[place] = record;
        std::copy_n(turned, width_, &turned_[place * width_]);
    }

    // Codes what has been put there. None of the records has more in coordinates left out.
    void lay_out(double hidden) {
        hidden_ = hidden;
        lay_out();
    }

    // Closes the gaps. Returns for each block the place its records now begin at.
    std::vector<std::uint32_t> close_gaps() {
        leaving_.clear();
        std::vector<std::uint32_t> begins(n_blocks_, 0);
        for (std::size_t b = 1; b < n_blocks_; ++b) begins[b] = begins[b - 1] + n_living(b - 1);
        // Both are kept: new ones would have to be mapped by the system page by page.
        if (!records_before_) {
            turned_before_ = large_array<float>(whole_blocks(size_) * width_);
            records_before_ = large_array<std::uint32_t>(whole_blocks(size_));
        }
        turned_before_.swap(turned_);
        records_before_.swap(records_);
        pool_.split(n_blocks_, static_cast<double>(block_size * width_),
                    [&](std::size_t, std::size_t from, std::size_t to) {
                        for (std::size_t b = from; b < to; ++b) {
                            std::size_t target = begins[b];
                            for_each_living(b, [&](std::size_t place) {
                                std::copy_n(&turned_before_[place * width_], width_, &turned_[target * width_]);
                                records_[target++] = records_before_[place];
                            });
                        }
                    });
        lay_out();
        return begins;
    }

    // The record at the place is no longer there for the queries that follow. Its codes are cleared by the thread that
    // looks through its block next.
    void erase(std::size_t place) {
        living_[block_of(place)] &= ~(std::uint64_t{1} << place % block_size);
        leaving_.push_back(static_cast<std::uint32_t>(place));
        --size_;
    }

    void expect_erasure(std::size_t place) const { __builtin_prefetch(&living_[block_of(place)], 1); }

    // Says that a record will be measured or read soon.
    void fetch_record(std::uint32_t record) const { fetch(X_[record]); }

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

    // Number of questions that can be asked at once.
    static constexpr std::size_t most_questions = 16;

    // Looks through all blocks once for all questions, on as many threads as pay; and through other records, in so many
    // chunks: measure_others(chunk, question's number, found) calls found(candidate) for each of them.
    template <class MeasureOthers>
    void search(std::span<const Question> questions, std::size_t n_chunks, const MeasureOthers& measure_others,
                std::span<Answer> answers) {
        n_searches_ = questions.size();
        ++n_queries_;
        for (std::size_t i = 0; i < n_searches_; ++i)
            searches_[i].by_boxes = skips_[questions[i].wants_farthest].take();
        const auto look = [&](std::size_t thread, std::size_t from, std::size_t to) {
            clear_leaving(from, to);
            std::array<Look*, most_questions> looks;
            for (std::size_t i = 0; i < n_searches_; ++i) {
                // Each thread begins with another question, so that it meets the limits that others have found.
                const std::size_t number = (i + thread * n_searches_ / pool_.size()) % n_searches_;
                Look& look = *(looks[i] = &looks_[thread][number]);
                if (look.number != n_queries_) {
                    ensure_begun(searches_[number], questions[number], [&](const auto& found) {
                        if (n_chunks > 0) measure_others(0, number, found);
                    });
                    begin(look, searches_[number]);
                }
                take_limits(look);
                for (std::size_t c = n_chunks * from / n_blocks_; c < n_chunks * to / n_blocks_; ++c) {
                    measure_others(c, number, [&](const Candidate& one) { look.findings.offer(one); });
                    share_limits(look);
                }
            }
            look_through({looks.data(), n_searches_}, from, to);
        };
        Pace& pace = pace_of_pass();
        pool_.split(n_blocks_, pace, look, backwards_);
        work_per_question_ = pace.work(n_blocks_) / static_cast<double>(n_searches_);
        leaving_.clear();
        backwards_ = !backwards_;
        for_each_search(end_pace_, [&](std::size_t i) {
            collect(searches_[i], i);
            answers[i] = decide(searches_[i]);
        });
        for (std::size_t i = 0; i < n_searches_; ++i)
            if (searches_[i].by_boxes)
                skips_[questions[i].wants_farthest].judge(are_too_many(searches_[i].n_visits, n_blocks_));
    }

    // Number of questions that take less time in one pass than one after the other: many if threads share a pass, as
    // each then has more to do before it waits for others; some if a pass reads all blocks, and these are more than the
    // cache of a core holds.
    std::size_t n_at_once() const {
        if (work_per_question_ >= 2 * Pace::least_share && pool_.can_share()) return most_questions;
        const bool reads_all = skips_[false].n_left > 0 && skips_[true].n_left > 0;
        const std::size_t n_bytes = n_blocks_ * lines_per_block(quads_) * sizeof(Line);
        return reads_all && n_bytes > cache_of_a_core ? most_questions / 2 : 1;
    }

    // Says that a question will be asked with this block as its home.
    void expect(std::size_t home) const {
        const float* rows = &turned_[std::min(home, n_blocks_ - 1) * block_size * width_];
        for (std::size_t i = 0; i < block_size * width_; i += 16) __builtin_prefetch(rows + i);
    }

    // The places of the records that are at least as far from a point as a squared radius, ascending.
    std::vector<std::uint32_t> beyond(std::span<const double> point, double radius2) {
        Query query;
        pose(query, {point, 0, true});
        const Limits limits = limits_of(query, infinity, radius2);
        std::vector<std::vector<std::uint32_t>> found(pool_.size());
        pool_.split(n_blocks_, 100.0, [&](std::size_t thread, std::size_t from, std::size_t to) {
            Hits hits;
            for (std::size_t b = from; (b = loops_.scan(lines_.get(), b, to, limits.sieve, hits)) < to; ++b)
                for (std::uint64_t left = hits.far & living_[b]; left; left &= left - 1) {
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
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    static std::size_t whole_blocks(std::size_t n) { return (n + block_size - 1) / block_size * block_size; }
    // Number of farthest records in an answer at most, where many are about as far.
    static constexpr std::size_t most_farthest = 16;
    static constexpr std::size_t cache_of_a_core = 2 << 20;
    // Number of records whose rows are fetched before they are measured.
    static constexpr std::size_t most_fetched = 32;
    // Number of blocks visited in order of their distance, and number of blocks prefetched.
    static constexpr std::ptrdiff_t n_first = 3;
    static constexpr std::size_t n_ahead = 4;
    // Number of blocks looked through for one question before the next: with many questions they stay in the first
    // cache.
    static constexpr std::size_t stride_of_one = 64;
    static constexpr std::size_t stride_of_many = 24;

    // Queries that boxes are not tested in, since they ruled out too little to be worth it; twice as many each time.
    struct Skips {
        std::size_t n_left = 0;
        std::size_t n_next = 16;
        // Says whether boxes are tested in the next query.
        bool take() {
            if (n_left == 0) return true;
            --n_left;
            return false;
        }
        void judge(bool in_vain) {
            n_left = in_vain ? n_next : 0;
            n_next = in_vain ? std::min<std::size_t>(2 * n_next, 256) : 16;
        }
    };

    // A question that threads look for the answer to.
    struct Search {
        // Twice the number of the queries it was begun for by some thread, and one more once that has been done.
        std::atomic<std::size_t> begun{0};
        Query query;
        CommonLimits common;
        bool by_boxes = false;
        std::vector<Candidate> near, far;  // what all threads have found
        std::size_t n_visits = 0;          // blocks that boxes have not ruled out
        std::vector<float> around;         // room to work in
    };

    // What one thread knows of a search. The calling thread reads the first line of it.
    struct alignas(128) Look {
        std::size_t number = 0;    // of the last queries that the thread took part in
        std::size_t n_visits = 0;  // blocks that boxes have not ruled out
        Findings findings;
        Search* search = nullptr;
        // The point as boxes see it.
        std::vector<float> low, high, outward;
        double radius = 0, shift = 0;
    };

    using Looks = std::array<Look, most_questions>;

    // ------------------------------------------------------------------------------------------------ asking

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

    // The first thread that looks for the answer begins the search, and others wait for it: where many questions are
    // asked at once, each begins with another thread.
    template <class MeasureSome>
    void ensure_begun(Search& search, const Question& question, const MeasureSome& measure_some) {
        const std::size_t ready = 2 * n_queries_ + 1;
        std::size_t seen = search.begun.load(std::memory_order_acquire);
        if (seen == ready) return;
        if (seen == ready - 1 || !search.begun.compare_exchange_strong(seen, ready - 1))
            return Pool::wait_until([&] { return search.begun.load(std::memory_order_acquire) == ready; });
        struct Ready {  // also after an exception, which ends the queries
            std::atomic<std::size_t>& begun;
            ~Ready() { begun.fetch_add(1, std::memory_order_release); }
        } const at_the_end{search.begun};
        expect(question.home);
        pose(search.query, question);
        search.common.nearest.store(infinity, std::memory_order_relaxed);
        search.common.farthest.store(-1.0, std::memory_order_relaxed);
        limit_by_home(search);
        if (question.wants_farthest)
            measure_some([&](const Candidate& one) { search.common.offer_farthest(one.distance); });
    }

    void begin(Look& look, Search& search) const {
        look.number = n_queries_;
        look.search = &search;
        look.n_visits = 0;
        look.findings.restart(search.query.asked.k);
        if (search.by_boxes) look_out(look);
    }

    // Passes for one question and for many are of different kinds, and those in which boxes are tested for most.
    Pace& pace_of_pass() {
        std::size_t n_by_boxes = 0;
        for (std::size_t i = 0; i < n_searches_; ++i) n_by_boxes += searches_[i].by_boxes;
        return paces_[n_searches_ > 1][2 * n_by_boxes > n_searches_];
    }

    // Several questions on several threads, if that pays.
    template <class Task>
    void for_each_search(Pace& pace, const Task& task) {
        if (n_searches_ == 1) return task(0);
        pool_.split(n_searches_, pace, [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i) task(i);
        });
    }

    // Sets a limit that the k nearest are surely within: as far as the k-th of the records around a block can be, by
    // their turned coordinates. These lie side by side, unlike the records themselves.
    void limit_by_home(Search& search) const {
        const Query& query = search.query;
        const std::size_t k = query.asked.k;
        if (k == 0 || size_ < k) return;
        const std::size_t home = std::min<std::size_t>(query.asked.home, n_blocks_ - 1);
        std::size_t from = home;
        std::size_t to = home + 1;
        for (std::size_t n = n_living(home); n < k;) {
            if (from > 0) n += n_living(--from);
            if (to < n_blocks_) n += n_living(to++);
        }
        std::vector<float>& around = search.around;
        around.clear();
        for (std::size_t b = from; b < to; ++b)
            for_each_living(b, [&](std::size_t place) { around.push_back(estimate(query, place)); });
        const auto last = around.begin() + static_cast<std::ptrdiff_t>(k - 1);
        select_nth(around.begin(), last, around.end());
        search.common.nearest.store(at_most(query, *last), std::memory_order_relaxed);
    }

    // Says what this thread has found and takes over what others have.
    void share_limits(Look& look) const {
        Findings& findings = look.findings;
        const Query& query = look.search->query;
        if (findings.k > 0 && findings.near.size() >= findings.n_near) {
            const auto last = findings.near.begin() + static_cast<std::ptrdiff_t>(findings.k - 1);
            select_nth(findings.near.begin(), last, findings.near.end());
            look.search->common.offer_nearest(at_most(query, last->distance));
        }
        if (query.asked.wants_farthest) look.search->common.offer_farthest(at_least(query, findings.largest));
        take_limits(look);
        if (findings.near.size() >= findings.n_near) findings.drop_near();
        if (findings.far.size() >= findings.n_far) findings.drop_far();
    }

    void take_limits(Look& look) const {
        Limits& limits = look.findings.limits;
        const double nearest2 = look.search->common.nearest.load(std::memory_order_relaxed);
        const double farthest2 = look.search->common.farthest.load(std::memory_order_relaxed);
        if (nearest2 == limits.nearest2 && farthest2 == limits.farthest2) return;
        limits = limits_of(look.search->query, nearest2, farthest2);
        ++look.findings.n_limits;
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

    // Notes what the lattice cannot rule out in the blocks [from, to), and estimates it a few records at a time.
    void scan(Look& look, std::size_t from, std::size_t to) const {
        Findings& findings = look.findings;
        Hits hits;
        for (std::size_t b = from; (b = loops_.scan(lines_.get(), b, to, findings.limits.sieve, hits)) < to; ++b) {
            for (std::uint64_t left = (hits.near | hits.far) & living_[b]; left; left &= left - 1) {
                const std::size_t place = b * block_size + static_cast<std::size_t>(std::countr_zero(left));
                for (std::size_t j = 0; j < width_; j += 16) __builtin_prefetch(&turned_[place * width_ + j]);
                findings.pending[findings.n_pending++] = static_cast<std::uint32_t>(place);
            }
            if (findings.n_pending >= Findings::max_pending) estimate_pending(look);
        }
    }

    void estimate_pending(Look& look) const {
        Findings& findings = look.findings;
        for (std::size_t i = 0; i < findings.n_pending; ++i) {
            const std::uint32_t place = findings.pending[i];
            findings.offer({estimate(look.search->query, place), records_[place]});
        }
        findings.n_pending = 0;
        share_limits(look);
    }

    // Leaves as little as possible for the calling thread to read.
    void end_piece(Look& look) const {
        Findings& findings = look.findings;
        if (findings.n_pending > 0) estimate_pending(look);
        findings.drop_near();
        findings.drop_far();
    }

    // Gathers what all threads have found.
    void collect(Search& search, std::size_t number) const {
        const Query& query = search.query;
        const std::size_t k = query.asked.k;
        const double farthest2 = search.common.farthest.load(std::memory_order_relaxed);
        Limits limits = limits_of(query, search.common.nearest.load(std::memory_order_relaxed), farthest2);
        search.near.clear();
        search.far.clear();
        search.n_visits = 0;
        // What other threads have found is in lines that their cores hold.
        for (const Looks& looks : looks_) __builtin_prefetch(&looks[number]);
        for (const Looks& looks : looks_) __builtin_prefetch(looks[number].findings.near.data());
        for (const Looks& looks : looks_) {
            const Look& look = looks[number];
            if (look.number != n_queries_) continue;
            for (const Candidate& one : look.findings.near)
                if (one.distance <= limits.most) search.near.push_back(one);
            for (const Candidate& one : look.findings.far)
                if (one.distance >= limits.least) search.far.push_back(one);
            search.n_visits += look.n_visits;
        }
        if (k > 0 && search.near.size() > k) {
            const auto last = search.near.begin() + static_cast<std::ptrdiff_t>(k - 1);
            select_nth(search.near.begin(), last, search.near.end());
            limits = limits_of(query, at_most(query, last->distance), farthest2);
            std::erase_if(search.near, [&](const Candidate& one) { return one.distance > limits.most; });
        }
        for (const auto* found : {&search.near, &search.far})
            for (std::size_t i = 0; i < std::min(found->size(), most_fetched); ++i) fetch(X_[(*found)[i].record]);
    }

    // Decides in float64.
    Answer decide(Search& search) {
        const Question& asked = search.query.asked;
        measure(search.near, asked.point);
        measure(search.far, asked.point);
        // Others may be farther than a record below the common limit.
        const double farthest2 = search.common.farthest.load(std::memory_order_relaxed);
        std::erase_if(search.far, [&](const Candidate& one) { return one.distance < farthest2; });
        return {first_of(search.near, asked.k, std::less<>()), first_of(search.far, most_farthest, is_farther)};
    }

    // In order; no more than n.
    template <class Order>
    static std::vector<Candidate> first_of(std::vector<Candidate>& candidates, std::size_t n, const Order& order) {
        const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(std::min(n, candidates.size()));
        std::partial_sort(candidates.begin(), end, candidates.end(), order);
        return {candidates.begin(), end};
    }

    // Replaces estimates by squared distances; on several threads, unless they are about other questions.
    void measure(std::vector<Candidate>& candidates, std::span<const double> point) {
        const auto measure_some = [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i) {
                if (i + n_ahead < to) fetch(X_[candidates[i + n_ahead].record]);
                candidates[i].distance = measure(candidates[i].record, point);
            }
        };
        if (n_searches_ == 1)
            pool_.split(candidates.size(), 50.0, measure_some);
        else
            measure_some(0, 0, candidates.size());
    }

    // By boxes, or all blocks, each stride of them for one question after the other while it is in the cache.
    void look_through(std::span<Look* const> looks, std::size_t from, std::size_t to) {
        std::array<Look*, most_questions> sweeping;
        std::size_t n_sweeping = 0;
        for (Look* look : looks)
            if (!look->search->by_boxes || !visit_within_reach(*look, from, to)) sweeping[n_sweeping++] = look;
        sweep({sweeping.data(), n_sweeping}, from, to);
    }

    // To and fro: what was read last is still in the cache when the next query begins there.
    void sweep(std::span<Look* const> looks, std::size_t from, std::size_t to) const {
        const std::size_t stride = looks.size() > 1 ? stride_of_many : stride_of_one;
        // What one thread has found is of use to the next that looks for the answer to the same question.
        const std::size_t most_pending = looks.size() > 1 && pool_.size() > 1 ? 0 : Findings::max_pending;
        const std::size_t n_strides = std::max<std::size_t>((to - from + stride / 2) / stride, 1);
        for (std::size_t i = 0; i < n_strides; ++i) {
            const std::size_t number = backwards_ ? n_strides - 1 - i : i;
            const std::size_t begin = from + (to - from) * number / n_strides;
            const std::size_t end = from + (to - from) * (number + 1) / n_strides;
            for (std::size_t l = 0; l < looks.size(); ++l) {
                // Other cores have written the limits.
                if (l + 1 < looks.size()) __builtin_prefetch(&looks[l + 1]->search->common);
                take_limits(*looks[l]);
                scan(*looks[l], begin, end);
                if (looks[l]->findings.n_pending > most_pending) estimate_pending(*looks[l]);
            }
        }
        for (Look* look : looks) end_piece(*look);
    }

    // A block that is visited costs more than one that is swept, and so does testing its box.
    static bool are_too_many(std::size_t n_visits, std::size_t n_blocks) { return n_visits > n_blocks / 4; }

    // Of some blocks those whose boxes come near enough, nearest first, or reach far enough; says no if they are many.
    bool visit_within_reach(Look& look, std::size_t from, std::size_t to) {
        Findings& findings = look.findings;
        const float* least2 = least2_.data() + from;
        const float* greatest2 = greatest2_.data() + from;
        measure_boxes(look, from, to);
        // Sums of products of floats, of a magnitude that the norms bound.
        const double rounding = 1.2e-7 * static_cast<double>(n_dims_ + 8);
        const double largest2 = look.radius * look.radius + 4 * n_steps_ * n_steps_ * static_cast<double>(n_dims_);
        float near2 = 0;
        float far2 = 0;
        std::size_t n_limits = 0;
        const auto take_limits = [&] {
            n_limits = findings.n_limits;
            const Limits& limits = findings.limits;
            near2 = limits.near_limit < 0 ? -1.0f : above(limits.near_limit * limits.near_limit * (1 + rounding));
            far2 = below(limits.far_limit * limits.far_limit - 8 * rounding * largest2);
        };
        take_limits();
        const auto begin = visit_.begin() + static_cast<std::ptrdiff_t>(from);
        const std::size_t n_visits = loops_.select(least2, greatest2, to - from, near2, far2, &*begin);
        look.n_visits += n_visits;
        if (are_too_many(n_visits, to - from)) return false;
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
            scan(look, from + *next, from + *next + 1);
            if (early) estimate_pending(look);
            if (findings.n_limits != n_limits) take_limits();
        }
        end_piece(look);
        return true;
    }

    // The point as boxes see it.
    void look_out(Look& look) const {
        const std::vector<double>& turned = look.search->query.turned;
        for (auto* floats : {&look.low, &look.high, &look.outward}) floats->resize(n_dims_);
        double radius2 = 0;
        look.shift = 0;
        for (std::size_t j = 0; j < n_dims_; ++j) {
            look.low[j] = below(turned[j]);
            look.high[j] = above(turned[j]);
            const double outward = turned[j] - middle_[j];
            look.outward[j] = static_cast<float>(outward);
            radius2 += outward * outward;
            look.shift += middle_[j] * outward;
        }
        look.radius = std::sqrt(radius2);
    }

    // Of the squared distance from the point, by turned coordinates: these lie side by side, unlike the records
    // themselves.
    float estimate(const Query& query, std::size_t place) const {
        const float* source = &turned_[place * width_];
        const float* point = query.rotated.data();
        std::array<float, 4> sums{};
        for (std::size_t j = 0; j < width_; j += 4)
            for (std::size_t lane = 0; lane < 4; ++lane) {
                const float difference = source[j + lane] - point[j + lane];
                sums[lane] += difference * difference;
            }
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }

    // Between what squared distances from the point the records of some blocks lie.
    void measure_boxes(const Look& look, std::size_t from, std::size_t to) {
        loops_.reach({to - from, n_blocks_, lower_.data() + from, upper_.data() + from, outer_.data() + from},
                     {look.low, look.high, look.outward, above(look.radius), static_cast<float>(look.shift)},
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

    std::uint32_t n_living(std::size_t block) const {
        return static_cast<std::uint32_t>(std::popcount(living_[block]));
    }
    template <class Visit>
    void for_each_living(std::size_t block, const Visit& visit) const {
        for (std::uint64_t left = living_[block]; left; left &= left - 1)
            visit(block * block_size + static_cast<std::size_t>(std::countr_zero(left)));
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
    // Of the records that have left since the last query, clears those of the blocks [from, to): what is left reads as
    // the centre of the lattice, which is never the farthest.
    void clear_leaving(std::size_t from, std::size_t to) {
        for (const std::uint32_t place : leaving_)
            if (from <= block_of(place) && block_of(place) < to) clear_codes(place);
    }
    void clear_codes(std::size_t place) {
        half_norm(place) = 0;
        for (std::size_t q = 0; q < quads_; ++q) std::fill_n(quad(place, q), 4, zero_code);
    }

    // Codes and boxes for what is in the first size_ places.
    void lay_out() {
        size_laid_out_ = size_;
        n_blocks_ = (size_ + block_size - 1) / block_size;
        living_.assign(n_blocks_, ~std::uint64_t{0});
        if (size_ % block_size) living_.back() = (std::uint64_t{1} << size_ % block_size) - 1;
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
        for (std::size_t place = first; place < first + n_living(b); ++place) {
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
        for (std::size_t place = first + n_living(b); place < first + block_size; ++place) clear_codes(place);
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
    std::size_t n_dims_;  // kept coordinates
    std::size_t quads_;
    std::size_t width_;

    // Records in blocks of 64 places.
    std::size_t size_ = 0;
    std::size_t size_laid_out_ = 0;
    std::size_t n_blocks_ = 0;
    LargeArray<float> turned_, turned_before_;  // before gaps were closed
    LargeArray<std::uint32_t> records_, records_before_;
    std::vector<std::uint64_t> living_;   // of each block, a bit for each record that is there
    std::vector<std::uint32_t> leaving_;  // places of records that are no longer there, but whose codes are

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

    // Boxes of the blocks, column by column, and the largest distances of their records from the middle.
    std::vector<float> lower_, upper_, outer_;

    // Room to work in.
    std::vector<float> least2_, greatest2_;
    std::vector<std::uint32_t> visit_;
    std::array<Skips, 2> skips_{};
    bool backwards_ = false;
    std::size_t n_queries_ = 0;
    std::array<Search, most_questions> searches_;
    std::size_t n_searches_ = 0;
    std::vector<Looks> looks_;      // of each thread
    double work_per_question_ = 0;  // of the last pass, in nanoseconds of one thread
    // By whether there are many questions, and whether boxes are tested for most of them.
    std::array<std::array<Pace, 2>, 2> paces_{{{Pace(500.0), Pace(100.0)}, {Pace(5'000.0), Pace(1'000.0)}}};
    Pace end_pace_{3'000.0};
};

}  // namespace shoal
