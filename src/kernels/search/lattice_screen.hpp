// The records inside the outermost ones, screened on a lattice so that only a few of them are measured in a query.
//
// What the lattice does not exclude is estimated in float32, and what the estimates leave over is measured in float64,
// and ordered by distance and then record number. A pass looks for the answers to several questions at once.
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
#include <tuple>
#include <vector>

#include "numeric/distance.hpp"
#include "numeric/principal_axes.hpp"
#include "numeric/rows.hpp"
#include "numeric/selection.hpp"
#include "numeric/simd.hpp"
#include "parallel/pool.hpp"
#include "search/lattice.hpp"
#include "search/question.hpp"
#include "search/screened_records.hpp"

namespace shoal {

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
          loops_(loops),
          pool_(pool),
          records_((turn.n_kept() + 3) / 4 * 4, pool),
          lattice_(records_, turn, loops, pool),
          looks_(pool.size()) {
        // Beforehand, since other threads wait for the one that begins a search: it should have nothing to fail at.
        for (Search& search : searches_) {
            search.query.turned.resize(records_.width());
            search.query.code.resize(records_.width());
            search.query.rotated.resize(records_.width());
        }
    }
    LatticeScreen(const LatticeScreen&) = delete;

    // Records are put there, and erased. The codes of one that is erased are cleared by the thread that looks through
    // its block next.
    ScreenedRecords& records() { return records_; }
    const ScreenedRecords& records() const { return records_; }

    // Codes what has been put there. None of the records has more in coordinates left out.
    void lay_out(double hidden) {
        records_.fill();
        lattice_.lay_out(hidden);
        make_room();
    }

    // Closes the gaps. Returns for each block the place its records now begin at.
    std::vector<std::uint32_t> close_gaps() {
        const std::vector<std::uint32_t> begins = records_.close_gaps();
        lattice_.lay_out();
        make_room();
        return begins;
    }

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
        const std::size_t n_blocks = records_.n_blocks();
        n_searches_ = questions.size();
        ++n_queries_;
        for (std::size_t i = 0; i < n_searches_; ++i)
            searches_[i].by_boxes = skips_[questions[i].wants_farthest].take();
        const auto look = [&](std::size_t thread, std::size_t from, std::size_t to) {
            lattice_.clear_leaving(from, to);
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
                for (std::size_t c = n_chunks * from / n_blocks; c < n_chunks * to / n_blocks; ++c) {
                    measure_others(c, number, [&](const Candidate& one) { look.findings.offer(one); });
                    share_limits(look);
                }
            }
            look_through({looks.data(), n_searches_}, from, to);
        };
        Pace& pace = pace_of_pass();
        pool_.split(n_blocks, pace, look, backwards_);
        work_per_question_ = pace.work(n_blocks) / static_cast<double>(n_searches_);
        records_.clear_leaving();
        backwards_ = !backwards_;
        for_each_search(end_pace_, [&](std::size_t i) {
            collect(searches_[i], i);
            answers[i] = decide(searches_[i]);
        });
        for (std::size_t i = 0; i < n_searches_; ++i)
            if (searches_[i].by_boxes)
                skips_[questions[i].wants_farthest].judge(are_too_many(searches_[i].n_visits, n_blocks));
    }

    // Number of questions that take less time in one pass than one after the other: many if threads share a pass, as
    // each then has more to do before it waits for others; some if a pass reads all blocks, and these are more than the
    // cache of a core holds.
    std::size_t n_at_once() const {
        if (work_per_question_ >= 2 * Pace::least_share && pool_.can_share()) return most_questions;
        const bool reads_all = skips_[false].n_left > 0 && skips_[true].n_left > 0;
        return reads_all && lattice_.n_bytes() > cache_of_a_core ? most_questions / 2 : 1;
    }

    // Says that a question will be asked with this block as its home.
    void expect(std::size_t home) const { records_.fetch_turned_block(std::min(home, records_.n_blocks() - 1)); }

    // The places of the records that are at least as far from a point as a squared radius, ascending.
    std::vector<std::uint32_t> beyond(std::span<const double> point, double radius2) {
        Query query;
        lattice_.pose(query, {point, 0, true});
        const Limits limits = lattice_.limits_of(query, infinity, radius2);
        std::vector<std::vector<std::uint32_t>> found(pool_.size());
        pool_.split(records_.n_blocks(), 100.0, [&](std::size_t thread, std::size_t from, std::size_t to) {
            Hits hits;
            for (std::size_t b = from; (b = lattice_.scan(b, to, limits.sieve, hits)) < to; ++b)
                for (std::uint64_t left = hits.far & records_.living(b); left; left &= left - 1) {
                    const std::size_t place = b * block_size + static_cast<std::size_t>(std::countr_zero(left));
                    if (measure(records_.record(place), point) >= radius2)
                        found[thread].push_back(static_cast<std::uint32_t>(place));
                }
        });
        std::vector<std::uint32_t> places;
        for (const auto& some : found) places.insert(places.end(), some.begin(), some.end());
        std::ranges::sort(places);
        return places;
    }

  private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();
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
        Viewpoint viewpoint;
    };

    using Looks = std::array<Look, most_questions>;

    // ------------------------------------------------------------------------------------------------ asking

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
        lattice_.pose(search.query, question);
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
        if (search.by_boxes) lattice_.look_out(search.query, look.viewpoint);
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
        if (k == 0 || records_.size() < k) return;
        const std::size_t home = std::min<std::size_t>(query.asked.home, records_.n_blocks() - 1);
        std::size_t from = home;
        std::size_t to = home + 1;
        for (std::size_t n = records_.n_living(home); n < k;) {
            if (from > 0) n += records_.n_living(--from);
            if (to < records_.n_blocks()) n += records_.n_living(to++);
        }
        std::vector<float>& around = search.around;
        around.clear();
        for (std::size_t b = from; b < to; ++b)
            records_.for_each_living(b, [&](std::size_t place) { around.push_back(lattice_.estimate(query, place)); });
        const auto last = around.begin() + static_cast<std::ptrdiff_t>(k - 1);
        select_nth(around.begin(), last, around.end());
        search.common.nearest.store(lattice_.at_most(query, *last), std::memory_order_relaxed);
    }

    // Says what this thread has found and takes over what others have.
    void share_limits(Look& look) const {
        Findings& findings = look.findings;
        const Query& query = look.search->query;
        if (findings.k > 0 && findings.near.size() >= findings.n_near) {
            const auto last = findings.near.begin() + static_cast<std::ptrdiff_t>(findings.k - 1);
            select_nth(findings.near.begin(), last, findings.near.end());
            look.search->common.offer_nearest(lattice_.at_most(query, last->distance));
        }
        if (query.asked.wants_farthest) look.search->common.offer_farthest(lattice_.at_least(query, findings.largest));
        take_limits(look);
        if (findings.near.size() >= findings.n_near) findings.drop_near();
        if (findings.far.size() >= findings.n_far) findings.drop_far();
    }

    void take_limits(Look& look) const {
        Limits& limits = look.findings.limits;
        const double nearest2 = look.search->common.nearest.load(std::memory_order_relaxed);
        const double farthest2 = look.search->common.farthest.load(std::memory_order_relaxed);
        if (nearest2 == limits.nearest2 && farthest2 == limits.farthest2) return;
        limits = lattice_.limits_of(look.search->query, nearest2, farthest2);
        ++look.findings.n_limits;
    }

    // Notes what the lattice cannot rule out in the blocks [from, to), and estimates it a few records at a time.
    void scan(Look& look, std::size_t from, std::size_t to) const {
        Findings& findings = look.findings;
        Hits hits;
        for (std::size_t b = from; (b = lattice_.scan(b, to, findings.limits.sieve, hits)) < to; ++b) {
            for (std::uint64_t left = (hits.near | hits.far) & records_.living(b); left; left &= left - 1) {
                const std::size_t place = b * block_size + static_cast<std::size_t>(std::countr_zero(left));
                records_.fetch_turned(place);
                findings.pending[findings.n_pending++] = static_cast<std::uint32_t>(place);
            }
            if (findings.n_pending >= Findings::max_pending) estimate_pending(look);
        }
    }

    void estimate_pending(Look& look) const {
        Findings& findings = look.findings;
        for (std::size_t i = 0; i < findings.n_pending; ++i) {
            const std::uint32_t place = findings.pending[i];
            findings.offer({lattice_.estimate(look.search->query, place), records_.record(place)});
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
        Limits limits = lattice_.limits_of(query, search.common.nearest.load(std::memory_order_relaxed), farthest2);
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
            limits = lattice_.limits_of(query, lattice_.at_most(query, last->distance), farthest2);
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
        float* least2 = least2_.data() + from;
        float* greatest2 = greatest2_.data() + from;
        lattice_.measure_boxes(look.viewpoint, from, to, least2, greatest2);
        float near2 = 0;
        float far2 = 0;
        std::size_t n_limits = 0;
        const auto take_limits = [&] {
            n_limits = findings.n_limits;
            std::tie(near2, far2) = lattice_.limits_of_boxes(look.viewpoint, findings.limits);
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
            if (--n_to_come >= n_ahead && within_reach(next[n_ahead])) lattice_.fetch_block(from + next[n_ahead]);
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

    static void fetch(std::span<const double> row) {
        for (std::size_t j = 0; j < row.size(); j += 8) __builtin_prefetch(&row[j]);
        __builtin_prefetch(&row.back());
    }

    void make_room() {
        const std::size_t n_blocks = records_.n_blocks();
        least2_.resize(n_blocks);
        greatest2_.resize(n_blocks);
        visit_.resize(n_blocks + group_size);
        skips_ = {};
    }

    Rows<const double> X_;
    double scale_;
    const Loops& loops_;
    Pool& pool_;
    ScreenedRecords records_;
    Lattice lattice_;

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
