// The threads of the kernels under the thread sanitizer, without Python; tools/sanitize.py builds and runs it.
//
// The pool by itself (every item once, errors that reach the caller, pools that begin and end), then the kernels that
// divide their work among its threads: the answers of four threads are those of one.
#include "parallel/pool.hpp"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "guarded/model_vetoes.hpp"
#include "guarded/search.hpp"
#include "measures/linkage.hpp"
#include "numeric/rows.hpp"
#include "numeric/simd.hpp"
#include "parallel/pace.hpp"
#include "parallel/polling.hpp"
#include "partition/mdav.hpp"
#include "partition/refine.hpp"
#include "partition/split.hpp"

namespace {

using namespace shoal;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "failed: %s\n", what);
    std::exit(1);
}

// Items that take a microsecond each, or so the pool is told.
void split(Pool& pool, std::size_t n, const Pool::Task& task) {
    pool.split(n, 1000.0, task);
}

void check_every_item_once(std::size_t n_threads) {
    Pool pool(n_threads);
    for (std::size_t n = 0; n < 300; ++n) {
        // Not atomic: an item that two threads get is a race.
        std::vector<int> taken(n, 0);
        split(pool, n, [&](std::size_t thread, std::size_t from, std::size_t to) {
            require(thread < pool.size(), "a thread has a number below the size of the pool");
            for (std::size_t i = from; i < to; ++i) ++taken[i];
        });
        pool.each(n, 1000.0, [&](std::size_t, std::size_t i) { ++taken[i]; });
        // In halves, from either end.
        Pace pace(1000.0);
        for (const bool backwards : {false, true})
            pool.split(
                n, pace,
                [&](std::size_t, std::size_t from, std::size_t to) {
                    for (std::size_t i = from; i < to; ++i) ++taken[i];
                },
                backwards);
        for (const int times : taken) require(times == 4, "every item is worked on once in each round");
    }
}

void check_errors_reach_the_caller(std::size_t n_threads) {
    Pool pool(n_threads);
    for (std::size_t bad = 0; bad < 100; ++bad) {
        bool caught = false;
        try {
            split(pool, 100, [&](std::size_t, std::size_t from, std::size_t to) {
                if (from <= bad && bad < to) throw std::runtime_error("as asked");
            });
        } catch (const std::runtime_error&) {
            caught = true;
        }
        require(caught, "an error reaches the caller");
    }
    std::atomic<int> done{0};
    split(pool, 10, [&](std::size_t, std::size_t from, std::size_t to) { done += static_cast<int>(to - from); });
    require(done == 10, "a pool works on after an error");
}

void check_pools_begin_and_end() {
    for (std::size_t round = 0; round < 100; ++round) {
        Pool idle(1 + round % 5);
        Pool pool(1 + round % 4);
        std::vector<std::size_t> sums(pool.size(), 0);
        if (round % 3) split(pool, 50, [&](std::size_t t, std::size_t from, std::size_t to) { sums[t] += to - from; });
    }
}

struct Problem {
    std::vector<double> values;
    std::size_t n;
    Rows<const double> X() const { return {values.data(), n, values.size() / n}; }
};

Problem draw(std::size_t n, std::size_t n_dims) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    Problem problem{std::vector<double>(n * n_dims), n};
    for (double& value : problem.values) value = normal(random);
    return problem;
}

// Three of eight values in every cell: the first column has some say in which.
Guarded diversity(const Problem& problem) {
    std::vector<Code> codes(problem.n);
    for (std::size_t i = 0; i < codes.size(); ++i)
        codes[i] = static_cast<Code>(i % 4 + (problem.X()[i][0] > 0 ? 4 : 0));
    return {codes, std::make_shared<DistinctDiversity>(3)};
}

std::vector<std::int64_t> all_kernels(const Problem& problem, std::size_t n_threads) {
    constexpr std::size_t k = 5;
    Pool pool(n_threads);
    Poller watch([](std::size_t) {});
    std::vector<std::int64_t> out;
    std::vector<std::int64_t> labels(problem.n);
    const auto keep = [&](const std::vector<std::int64_t>& more) { out.insert(out.end(), more.begin(), more.end()); };
    Mdav(problem.X(), k, pool, *loops(), labels).run(watch);
    keep(labels);
    const std::size_t n_cells = static_cast<std::size_t>(*std::max_element(labels.begin(), labels.end())) + 1;
    std::vector<double> means(n_cells * problem.X().dims());
    cell_sums(problem.X(), Members(labels, n_cells), {means.data(), n_cells, problem.X().dims()}, pool);
    for (double& value : means) value /= k;
    std::vector<std::int64_t> records(problem.n), cells(n_cells), ahead(problem.n), ties(problem.n);
    for (std::size_t i = 0; i < records.size(); ++i) records[i] = static_cast<std::int64_t>(i);
    for (std::size_t c = 0; c < cells.size(); ++c) cells[c] = static_cast<std::int64_t>(c);
    const Rows<const double> points(means.data(), n_cells, problem.X().dims());
    Linkage link(problem.X(), points, labels, pool, *loops());
    link.rank_originals(cells, ahead, ties, watch);
    keep(ahead);
    link.rank_released(records, ahead, ties, watch);
    keep(ties);
    std::vector<std::int64_t> guarded_labels = labels;
    const std::vector<Guarded> guarded{diversity(problem)};
    GuardedSearch(problem.X(), k, guarded, pool, *loops(), guarded_labels, watch).run({3, 10, 0.0, true});
    keep(guarded_labels);
    Refiner(problem.X(), k, pool, *loops(), labels).run({3, 10, 0.0, true}, watch);
    keep(labels);
    Splits(problem.X(), k, pool, *loops(), labels).run(Members(std::vector<std::int64_t>(problem.n, 0), 1), watch);
    keep(labels);
    return out;
}

// A caller without items left stops those of the others.
void check_polling_while_others_work(std::size_t n_threads) {
    Pool pool(n_threads);
    std::atomic<bool> stopped{false};
    std::atomic<std::size_t> n_working{0};
    bool caught = false;
    try {
        pool.each(
            2 * n_threads, 1e9,
            [&](std::size_t thread, std::size_t) {
                if (thread == 0) return;
                for (++n_working; !stopped;) std::this_thread::yield();
            },
            [&] {
                stopped = true;
                throw std::runtime_error("as asked");
            });
    } catch (const std::runtime_error&) {
        caught = true;
    }
    require(caught || n_working == 0, "an error of the poll reaches the caller");
}

}  // namespace

int main() {
    // Every round is shared, however little there is to do.
    Pace::least_share = 0;
    for (std::size_t n_threads = 1; n_threads <= 4; ++n_threads) {
        check_every_item_once(n_threads);
        check_errors_reach_the_caller(n_threads);
        check_polling_while_others_work(n_threads);
    }
    check_pools_begin_and_end();
    const Problem problem = draw(2000, 4);
    const auto expected = all_kernels(problem, 1);
    for (const std::size_t n_threads : {2, 4})
        require(all_kernels(problem, n_threads) == expected, "the answers do not depend on the threads");
    std::puts("threads: every check passed");
}
