// Python's view of the kernels, and nothing else.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/checks.hpp"
#include "bindings/guarantees.hpp"
#include "bindings/ncp.hpp"
#include "guarded/model_vetoes.hpp"
#include "guarded/search.hpp"
#include "measures/agreeing_records.hpp"
#include "measures/co_moments.hpp"
#include "measures/inside_intervals.hpp"
#include "measures/linkage.hpp"
#include "numeric/keys.hpp"
#include "parallel/pace.hpp"
#include "partition/anneal.hpp"
#include "partition/arrivals.hpp"
#include "partition/balanced_cells.hpp"
#include "partition/cells.hpp"
#include "partition/dissolve_cells.hpp"
#include "partition/halves.hpp"
#include "partition/mdav.hpp"
#include "partition/refine.hpp"
#include "partition/split.hpp"
#include "partition/univariate.hpp"
#include "search/assign.hpp"
#include "search/cell_around_record.hpp"
#include "stream/lines.hpp"
#include "stream/values.hpp"
#include "stream/window.hpp"

using namespace shoal;
using namespace nb::literals;

namespace {

Vector<std::int64_t> mdav(const Matrix& X, std::size_t k, std::size_t threads, nb::object progress,
                          const std::string& simd) {
    std::vector<std::int64_t> labels;
    const Loops& chosen = chosen_loops(simd);
    Poller poller = python_poller(std::move(progress), X.shape(0));
    {
        nb::gil_scoped_release released;
        Pool pool(threads);
        check_matrix(rows(X), pool);
        check_cell_size(k, X.shape(0));
        labels.resize(X.shape(0));
        Mdav(rows(X), k, pool, chosen, labels).run(poller);
    }
    return as_array(std::move(labels));
}

Vector<std::int64_t> mdav_part(const Matrix& X, const Labels& records, std::size_t k, std::size_t threads,
                               nb::object progress, const std::string& simd) {
    std::vector<std::int64_t> labels(records.shape(0));
    const Loops& chosen = chosen_loops(simd);
    Poller poller = python_poller(std::move(progress), records.shape(0));
    {
        nb::gil_scoped_release released;
        Pool pool(threads);
        check_numbers(span(records), X.shape(0));
        check_cell_size(k, records.shape(0));
        const std::size_t n_dims = X.shape(1);
        const auto copy = large_array<double>(records.shape(0) * n_dims);
        const Rows<const double> part(copy.get(), records.shape(0), n_dims);
        pool.split(part.size(), 2.0 * static_cast<double>(n_dims), [&](std::size_t, std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i)
                std::ranges::copy(rows(X)[static_cast<std::size_t>(span(records)[i])], &copy[i * n_dims]);
        });
        check_matrix(part, pool);
        Mdav(part, k, pool, chosen, labels).run(poller);
    }
    return as_array(std::move(labels));
}

// The labels are changed in place, so that an interrupt leaves the best so far.
void refine(const Matrix& X, const Changing& labels, std::size_t k, std::size_t rounds, std::size_t neighbours,
            double least_gain, bool thorough, std::size_t threads, nb::object progress, const std::string& simd) {
    const Loops& chosen = chosen_loops(simd);
    Poller poller = python_poller(std::move(progress), X.shape(0) * rounds);
    nb::gil_scoped_release released;
    Pool pool(threads);
    check_matrix(rows(X), pool);
    check_partition(span(labels), X.shape(0), k);
    Refiner(rows(X), k, pool, chosen, span(labels)).run({rounds, neighbours, least_gain, thorough}, poller);
}

std::vector<std::uint32_t> numbers(const Labels& some) {
    return {span(some).begin(), span(some).end()};
}

Vector<std::int64_t> refine_around(const Matrix& X, const Labels& start, const Labels& touched,
                                   const Labels& neighbour_lists, const Labels& origins, std::size_t k,
                                   std::size_t rounds, std::size_t neighbours, double least_gain, std::size_t threads,
                                   nb::object progress, const std::string& simd) {
    check_matrix(rows(X));
    const std::size_t n_cells = check_partition(span(start), X.shape(0), k);
    check_numbers(span(touched), n_cells);
    check_neighbours(span(neighbour_lists), span(origins), n_cells);
    check(neighbours >= 1, "at least one neighbour is needed");
    std::vector<std::int64_t> labels(span(start).begin(), span(start).end());
    const Refiner::Before before{numbers(touched), numbers(neighbour_lists), numbers(origins)};
    const Loops& chosen = chosen_loops(simd);
    Poller poller = python_poller(std::move(progress), X.shape(0) * rounds);
    {
        nb::gil_scoped_release released;
        // All cells of exactly k would be so many.
        const std::size_t n_most = X.shape(0) / k;
        Pool pool(threads);
        Refiner(rows(X), k, pool, chosen, labels, n_most - n_cells)
            .run_around(before, {rounds, neighbours, least_gain}, poller);
    }
    return as_array(std::move(labels));
}

// Numbers of cells, one list after the other; 0xffffffff where there are no more.
Vector<std::int64_t> cell_neighbours(const Matrix& X, const Labels& labels, std::size_t k, std::size_t neighbours,
                                     std::size_t threads, const std::string& simd) {
    check_matrix(rows(X));
    check_partition(span(labels), X.shape(0), 1);
    check_cell_size(k, X.shape(0));
    check(neighbours >= 1, "at least one neighbour is needed");
    std::vector<std::int64_t> copy(span(labels).begin(), span(labels).end());
    const Loops& chosen = chosen_loops(simd);
    std::vector<std::uint32_t> lists;
    Poller poller = python_poller(nb::none(), X.shape(0));
    {
        nb::gil_scoped_release released;
        Pool pool(threads);
        lists = nearest_neighbours(CellTiles(rows(X), k, copy, pool).centroids(), neighbours, chosen, pool, poller);
    }
    return as_array(std::vector<std::int64_t>(lists.begin(), lists.end()));
}

Vector<std::int64_t> arrive(const Matrix& X, const Labels& base, std::size_t k, bool inertial, bool split_mid,
                            std::size_t threads, nb::object progress, const std::string& simd) {
    check_matrix(rows(X));
    check(base.shape(0) <= X.shape(0), "there are more labels than records");
    check_cell_size(k, base.shape(0));
    check_partition(span(base), base.shape(0), 1);
    std::vector<std::int64_t> labels(X.shape(0));
    std::copy(span(base).begin(), span(base).end(), labels.begin());
    const Loops& chosen = chosen_loops(simd);
    Poller poller = python_poller(std::move(progress), X.shape(0) - base.shape(0));
    {
        nb::gil_scoped_release released;
        Pool pool(threads);
        Arrivals(rows(X), base.shape(0), k, {inertial, split_mid}, pool, chosen, labels).run(poller);
    }
    return as_array(std::move(labels));
}

// As with refine, the labels are changed in place.
void anneal(const Matrix& X, const Changing& labels, std::size_t k, std::uint64_t steps, double hot, double fall,
            std::uint64_t seed, nb::object progress) {
    check_matrix(rows(X));
    check_partition(span(labels), X.shape(0), k);
    Poller poller = python_poller(std::move(progress), steps);
    nb::gil_scoped_release released;
    Annealer(rows(X), k, seed, span(labels), poller).run(steps, hot, fall);
}

Vector<std::int64_t> univariate(const Point& values, std::size_t k, nb::object progress) {
    check_matrix({values.data(), values.shape(0), 1});
    check_cell_size(k, values.shape(0));
    check(std::ranges::is_sorted(span(values)), "the values do not ascend");
    Poller poller = python_poller(std::move(progress), values.shape(0));
    std::vector<std::int64_t> sizes;
    {
        nb::gil_scoped_release released;
        sizes = Univariate(span(values), k).run(poller);
    }
    return as_array(std::move(sizes));
}

Vector<std::int64_t> split(const Matrix& X, const Labels& parts, std::size_t n_parts, std::size_t k,
                           std::size_t threads, nb::object progress, const std::string& simd) {
    check_matrix(rows(X));
    check(check_partition(span(parts), X.shape(0), k) == n_parts, "the number of parts is another");
    std::vector<std::int64_t> labels(X.shape(0));
    const Loops& chosen = chosen_loops(simd);
    Poller poller = python_poller(std::move(progress), X.shape(0));
    {
        nb::gil_scoped_release released;
        Pool pool(threads);
        Splits(rows(X), k, pool, chosen, labels).run(Members(span(parts), n_parts), poller);
    }
    return as_array(std::move(labels));
}

Vector<std::int64_t> nearest_points(const Matrix& X, const Matrix& points, std::size_t threads,
                                    const std::string& simd) {
    check_matrix(rows(X));
    check_matrix(rows(points));
    check_length(points.shape(1), X.shape(1));
    std::vector<std::int64_t> nearest(X.shape(0));
    const Loops& chosen = chosen_loops(simd);
    Poller poller = python_poller(nb::none(), X.shape(0));
    {
        nb::gil_scoped_release released;
        Pool pool(threads);
        assign(rows(X), rows(points), pool, chosen, nearest, poller);
    }
    return as_array(std::move(nearest));
}

Vector<std::int64_t> dissolve_cells(const Matrix& X, const Labels& start, std::size_t k, std::size_t threads,
                                    const std::string& simd) {
    check_matrix(rows(X));
    check_partition(span(start), X.shape(0), 1);
    check_cell_size(k, X.shape(0));
    check(unit_scale(rows(X).flat()) >= 0.5, "a number exceeds 1 in magnitude");
    std::vector<std::int64_t> labels(span(start).begin(), span(start).end());
    const Loops& chosen = chosen_loops(simd);
    Poller poller = python_poller(nb::none(), X.shape(0));
    {
        nb::gil_scoped_release released;
        Pool pool(threads);
        CellDissolver(rows(X), k, pool, chosen, labels).run(poller);
    }
    return as_array(std::move(labels));
}

using Ranks = std::pair<Vector<std::int64_t>, Vector<std::int64_t>>;

std::pair<Ranks, Ranks> linkage(const Matrix& X, const Matrix& points, const Labels& labels,
                                const Labels& asked_records, const Labels& asked_points, std::size_t threads,
                                nb::object progress, const std::string& simd) {
    const std::size_t n = X.shape(0);
    check_shape(rows(X));
    check_shape(rows(points));
    check_length(points.shape(1), X.shape(1));
    check_length(labels.shape(0), n);
    check_numbers(span(labels), points.shape(0));
    check_ascending(span(asked_records), n);
    check_ascending(span(asked_points), points.shape(0));
    std::vector<std::int64_t> originals_ahead(n), originals_tied(n), released_ahead(n), released_tied(n);
    const Loops& chosen = chosen_loops(simd);
    Poller poller = python_poller(std::move(progress), 2 * n);
    {
        nb::gil_scoped_release released;
        Pool pool(threads);
        Linkage link(rows(X), rows(points), span(labels), pool, chosen);
        link.rank_originals(span(asked_points), originals_ahead, originals_tied, poller);
        link.rank_released(span(asked_records), released_ahead, released_tied, poller);
    }
    return {{as_array(std::move(originals_ahead)), as_array(std::move(originals_tied))},
            {as_array(std::move(released_ahead)), as_array(std::move(released_tied))}};
}

Vector<double> distances(const Matrix& X, const Point& point) {
    check_length(point.shape(0), X.shape(1));
    std::vector<double> out(X.shape(0));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = squared_distance(rows(X)[i], span(point));
    return as_array(std::move(out));
}

double scale_of(const Matrix& X, std::size_t threads) {
    nb::gil_scoped_release released;
    Pool pool(threads);
    return unit_scale(rows(X).flat(), pool);
}

Vector<std::int64_t> half(Half half) {
    std::int64_t* records = half.records.release();
    const nb::capsule owner(records, [](void* kept) noexcept { delete[] static_cast<std::int64_t*>(kept); });
    return Vector<std::int64_t>(records, {half.size}, owner);
}

auto halves(const Matrix& X, const Labels& records, const Point& direction, double scale, std::size_t threads) {
    check_length(direction.shape(0), X.shape(1));
    check(records.shape(0) > 0 && X.shape(0) <= most_records, "there are no records, or more than 2^31 - 1");
    std::pair<Half, Half> found;
    {
        nb::gil_scoped_release released;
        Pool pool(threads);
        check_ascending(span(records), X.shape(0));
        found = Halving(rows(X), scale, span(records), span(direction), pool).halves();
    }
    return std::pair(half(std::move(found.first)), half(std::move(found.second)));
}

MatrixOut sums(const Matrix& X, const Labels& labels, std::size_t n_cells, std::size_t threads) {
    check_matrix(rows(X));
    check_length(labels.shape(0), X.shape(0));
    check_numbers(span(labels), n_cells);
    auto kept = std::make_unique<std::vector<double>>(n_cells * X.shape(1));
    double* data = kept->data();
    {
        nb::gil_scoped_release released;
        Pool pool(threads);
        cell_sums(rows(X), Members(span(labels), n_cells, pool), {data, n_cells, X.shape(1)}, pool);
    }
    return MatrixOut(data, {n_cells, X.shape(1)}, owner_of(std::move(kept)));
}

Vector<double> spread(const Matrix& X, const Labels& labels, std::size_t n_cells, std::size_t threads) {
    check_matrix(rows(X));
    check_length(labels.shape(0), X.shape(0));
    check_numbers(span(labels), n_cells);
    std::vector<double> out(n_cells);
    {
        nb::gil_scoped_release released;
        Pool pool(threads);
        cell_spread(rows(X), Members(span(labels), n_cells, pool), out, pool);
    }
    return as_array(std::move(out));
}

std::pair<Vector<double>, MatrixOut> co_moments(const std::vector<Point>& columns, const std::vector<int>& exponents,
                                                const Point& origins, const std::vector<Point>& weights,
                                                std::size_t threads) {
    const std::size_t m = columns.size();
    check(m > 0 && columns[0].shape(0) > 0, "the matrix is empty");
    check(weights.size() <= 1, "more than one array of weights");
    check_length(exponents.size(), m);
    check_length(origins.shape(0), m);
    const std::size_t n = columns[0].shape(0);
    std::vector<ScaledColumn> scaled;
    for (std::size_t a = 0; a < m; ++a) {
        check_length(columns[a].shape(0), n);
        scaled.emplace_back(columns[a].data(), exponents[a], origins.data()[a]);
    }
    for (const Point& weight : weights) check_length(weight.shape(0), n);
    std::vector<double> means(m);
    auto kept = std::make_unique<std::vector<double>>(m * m);
    double* data = kept->data();
    {
        nb::gil_scoped_release released;
        Pool pool(threads);
        CoMoments(std::move(scaled), weights.empty() ? nullptr : weights[0].data(), n, pool).write(means, *kept);
    }
    return std::pair(as_array(std::move(means)), MatrixOut(data, {m, m}, owner_of(std::move(kept))));
}

std::pair<std::int64_t, std::int64_t> inside(const Point& numbers, int exponent, double origin, const Labels& own,
                                             const Point& low, const Point& high, const Point& centre, double reach,
                                             std::size_t threads) {
    check_length(own.shape(0), numbers.shape(0));
    check_length(high.shape(0), low.shape(0));
    check_length(centre.shape(0), low.shape(0));
    check_numbers(span(own), low.shape(0));
    const ScaledColumn scaled(numbers.data(), exponent, origin);
    const Intervals intervals{span(low), span(high), span(centre), reach};
    nb::gil_scoped_release released;
    Pool pool(threads);
    const InsideIntervals found = inside_intervals(span(numbers), scaled, span(own), intervals, pool);
    return {found.between, found.within_reach};
}

Vector<std::int64_t> classes_of(const std::vector<Labels>& columns) {
    check(!columns.empty(), "there are no columns");
    const std::size_t n = columns[0].shape(0);
    check(n <= most_records, "more than 2^31 - 1 records");
    std::vector<const std::int64_t*> words;
    for (const Labels& column : columns) {
        check_length(column.shape(0), n);
        words.push_back(column.data());
    }
    std::vector<std::int64_t> classes(n);
    Poller poller = python_poller(nb::none(), n);
    {
        nb::gil_scoped_release released;
        agreeing_records(words, classes, poller);
    }
    return as_array(std::move(classes));
}

Vector<std::int64_t> places_of(const Labels& codes, std::size_t n_codes) {
    check_numbers(span(codes), n_codes);
    std::vector<std::int64_t> first(n_codes);
    first_places(span(codes), first);
    return as_array(std::move(first));
}

Vector<std::int64_t> guarded_search(const Matrix& X, const Labels& start, std::size_t k, const Guarantees& guarantees,
                                    std::size_t rounds, std::size_t neighbours, double least_gain, bool at_any_cost,
                                    std::size_t threads, nb::object progress, const std::string& simd) {
    const std::vector<Guarded> guarded = guarantees.all();
    std::vector<std::int64_t> labels(span(start).begin(), span(start).end());
    const Loops& chosen = chosen_loops(simd);
    Poller poller = python_poller(std::move(progress), X.shape(0) * rounds);
    {
        nb::gil_scoped_release released;
        Pool pool(threads);
        check_matrix(rows(X), pool);
        check_partition(span(start), X.shape(0), 1);
        check_cell_size(k, X.shape(0));
        for (const Guarded& each : guarded) check_length(each.codes.size(), X.shape(0));
        GuardedSearch(rows(X), k, guarded, pool, chosen, labels, poller)
            .run({rounds, neighbours, least_gain, at_any_cost});
    }
    return as_array(std::move(labels));
}

Vector<std::int64_t> balanced_cells(const Matrix& X, const Labels& codes, std::size_t size, std::size_t parts) {
    check_matrix(rows(X));
    check_cell_size(size, X.shape(0));
    check_cell_size(parts, size);
    check_length(codes.shape(0), X.shape(0));
    std::vector<std::int64_t> labels(X.shape(0));
    Poller poller = python_poller(nb::none(), X.shape(0));
    {
        nb::gil_scoped_release released;
        BalancedCells(rows(X), span(codes), size, parts).run(labels, poller);
    }
    return as_array(std::move(labels));
}

// One thread at a time works on an object; the others wait without the GIL, so that the one can have it.
class OneAtATime {
  protected:
    template <class Work>
    auto alone(const Work& work) const {
        nb::gil_scoped_release released;
        const std::lock_guard lock(mutex_);
        return work();
    }

  private:
    mutable std::mutex mutex_;
};

// Remaining, with what it needs to live: the matrix, the threads, and room for points.
class RemainingRecords : OneAtATime {
  public:
    RemainingRecords(Matrix X, std::size_t threads, const std::string& simd)
        : X_(checked(std::move(X))),
          pool_(threads),
          remaining_(rows(X_), pool_, chosen_loops(simd)),
          point_(X_.shape(1)) {}

    std::size_t size() const {
        return alone([&] { return remaining_.size(); });
    }
    bool contains(std::int64_t record) const {
        return alone([&] { return remains(record); });
    }

    Vector<double> centroid() {
        return as_array(alone([&] {
            check(remaining_.size() > 0, "no record remains");
            std::vector<double> out(X_.shape(1));
            remaining_.centroid(out);
            for (double& value : out) value /= remaining_.scale();
            return out;
        }));
    }

    std::pair<Vector<std::int64_t>, Vector<double>> nearest(const Point& point, std::size_t k) {
        std::vector<std::int64_t> records;
        std::vector<double> squared;
        alone([&] {
            check(k <= remaining_.size(), "fewer than k records remain");
            const auto found = search(point, k, false).nearest;
            // The next question is often about a point nearby.
            if (!found.empty()) home_ = remaining_.home(found.front().record);
            for (const Candidate& candidate : found) {
                records.push_back(candidate.record);
                squared.push_back(unscaled(candidate.distance));
            }
        });
        return {as_array(std::move(records)), as_array(std::move(squared))};
    }

    std::int64_t farthest(const Point& point) {
        return alone([&]() -> std::int64_t {
            check(remaining_.size() > 0, "no record remains");
            return search(point, 0, true).farthest.front().record;
        });
    }
    std::int64_t farthest_from_centroid() {
        return alone([&]() -> std::int64_t {
            check(remaining_.size() > 0, "no record remains");
            return remaining_.farthest_from_centroid();
        });
    }

    void remove(const Labels& records) {
        alone([&] {
            for (const std::int64_t record : span(records)) {
                check(remains(record), "a record to take out does not remain");
                remaining_.remove(static_cast<std::uint32_t>(record));
            }
            remaining_.tidy();
        });
    }

    Vector<std::int64_t> gather(std::int64_t record, std::size_t k) {
        return as_array(alone([&] {
            check_around(record, k);
            return shoal::gather(remaining_, static_cast<std::uint32_t>(record), k, point_);
        }));
    }

    Vector<std::int64_t> grow(std::int64_t record, std::size_t k) {
        Poller poller = python_poller(nb::none(), k);
        return as_array(alone([&] {
            check_around(record, k);
            return shoal::grow(remaining_, static_cast<std::uint32_t>(record), k, point_, poller);
        }));
    }

  private:
    static Matrix checked(Matrix X) {
        check_matrix(rows(X));
        return X;
    }
    bool remains(std::int64_t record) const {
        return record >= 0 && static_cast<std::size_t>(record) < X_.shape(0) &&
               remaining_.contains(static_cast<std::uint32_t>(record));
    }
    void check_around(std::int64_t record, std::size_t k) const {
        check(remains(record), "the record does not remain");
        check_cell_size(k, remaining_.size());
    }
    Answer search(const Point& point, std::size_t k, bool wants_farthest) {
        check_length(point.shape(0), point_.size());
        check_finite(span(point));
        for (std::size_t j = 0; j < point_.size(); ++j) point_[j] = point.data()[j] * remaining_.scale();
        return remaining_.search({point_, k, wants_farthest, home_});
    }
    double unscaled(double squared) const { return squared / remaining_.scale() / remaining_.scale(); }

    Matrix X_;
    Pool pool_;
    Remaining remaining_;
    std::vector<double> point_;
    std::uint32_t home_ = 0;
};

using Keys = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using KeyMatrix = nb::ndarray<const std::uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A window on a stream. What it has measured travels as a dictionary, so that it can be written down and read back.
class StreamWindow : OneAtATime {
  public:
    using Gone = std::tuple<Vector<std::int64_t>, Vector<std::int64_t>, Vector<std::int64_t>, Vector<std::int64_t>,
                            Vector<std::int64_t>>;

    StreamWindow(std::size_t n_dims, std::size_t k, std::int64_t delay, double max_age, double order_weight,
                 std::size_t max_cell, std::vector<double> code_weights, std::vector<std::size_t> least,
                 const std::string& simd)
        : n_dims_(n_dims),
          n_codes_(code_weights.size()),
          n_tags_(least.size()),
          stream_(checked({k, delay, max_age, order_weight, max_cell, std::move(code_weights), std::move(least)}),
                  n_dims, chosen_loops(simd)) {}

    std::size_t size() const {
        return alone([&] { return stream_.size(); });
    }

    Gone push(const Matrix& X, const KeyMatrix& codes, const KeyMatrix& tags, const Point& times) {
        const Tuples batch = tuples(X, codes, tags, times);
        return as_arrays(alone([&] { return stream_.push(batch); }));
    }
    Gone advance(double now) {
        check_finite({&now, 1});
        return as_arrays(alone([&] { return stream_.advance(now); }));
    }
    Gone flush() {
        return as_arrays(alone([&] { return stream_.flush(); }));
    }
    void recode(const Matrix& X) {
        check_length(X.shape(1), n_dims_);
        check_finite(rows(X).flat());
        alone([&] {
            check_length(X.shape(0), stream_.size());
            stream_.recode(rows(X));
        });
    }

    std::pair<Vector<std::int64_t>, Vector<double>> waiting() const {
        std::vector<std::int64_t> positions;
        std::vector<double> times;
        alone([&] { stream_.waiting(positions, times); });
        return {as_array(std::move(positions)), as_array(std::move(times))};
    }

    nb::dict tally() const {
        nb::dict out;
        StreamTally tally = alone([&] { return stream_.tally(); });
        for_each_figure(tally, [&](const char* name, auto& value) { out[name] = value; });
        return out;
    }
    void restore(const Matrix& X, const KeyMatrix& codes, const KeyMatrix& tags, const Point& times,
                 const Labels& positions, const nb::dict& figures) {
        StreamTally tally;
        for_each_figure(tally, [&](const char* name, auto& value) {
            value = nb::cast<std::remove_reference_t<decltype(value)>>(figures[name]);
        });
        const Tuples waited = tuples(X, codes, tags, times);
        check_length(positions.shape(0), X.shape(0));
        check(tally.n_in >= 0, "a count is negative");
        check_ascending(span(positions), static_cast<std::size_t>(tally.n_in));
        check_length(tally.mean_x.size(), n_dims_);
        check_length(tally.sst_x.size(), n_dims_);
        alone([&] {
            check(stream_.size() == 0 && stream_.tally().n_in == 0, "the window is in use");
            stream_.restore(waited, span(positions), tally);
        });
    }

  private:
    static StreamRules checked(StreamRules rules) {
        check(rules.k >= 1, "k is below 1");
        check(rules.delay >= 0 && rules.max_age >= 0, "a delay is negative");
        check_finite({&rules.order_weight, 1});
        check_finite(rules.codes);
        return rules;
    }
    // The tuples, if they fit together and into the window.
    Tuples tuples(const Matrix& X, const KeyMatrix& codes, const KeyMatrix& tags, const Point& times) const {
        check(X.shape(0) <= most_records, "more than 2^31 - 1 records");
        for (const std::size_t n : {codes.shape(0), tags.shape(0), times.shape(0)}) check_length(n, X.shape(0));
        check_length(X.shape(1), n_dims_);
        check_length(codes.shape(1), n_codes_);
        check_length(tags.shape(1), n_tags_);
        check_finite(rows(X).flat());
        check_finite(span(times));
        return {rows(X),
                {codes.data(), codes.shape(0), codes.shape(1)},
                {tags.data(), tags.shape(0), tags.shape(1)},
                span(times)};
    }
    static Gone as_arrays(Departures gone) {
        return {as_array(std::move(gone.rows)), as_array(std::move(gone.sizes)), as_array(std::move(gone.side)),
                as_array(std::move(gone.reasons)), as_array(std::move(gone.kept))};
    }

    std::size_t n_dims_;
    std::size_t n_codes_;
    std::size_t n_tags_;
    Stream stream_;
};

template <class Offset>
Vector<std::uint64_t> keys_of_texts(
    const nb::ndarray<const Offset, nb::ndim<1>, nb::c_contig, nb::device::cpu>& offsets, const Bytes& bytes) {
    check_offsets<Offset>({offsets.data(), offsets.shape(0)}, bytes.shape(0));
    std::vector<std::uint64_t> keys(offsets.shape(0) - 1);
    text_keys<Offset>({offsets.data(), offsets.shape(0)}, bytes.data(), keys);
    return as_array(std::move(keys));
}

std::pair<Vector<double>, bool> means_of_cells(const Point& values, const Labels& sizes) {
    check_sizes(span(sizes), values.shape(0));
    std::vector<double> means(values.shape(0));
    const bool any_missing = cell_means(span(values), span(sizes), means.data());
    return {as_array(std::move(means)), any_missing};
}

template <class T>
bool any_differ(const nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>& values, const Labels& sizes) {
    check_sizes(span(sizes), values.shape(0));
    return differ_within_cells<T>({values.data(), values.shape(0)}, span(sizes));
}

bool are_finite(const std::vector<Point>& columns) {
    return std::all_of(columns.begin(), columns.end(), [](const Point& column) { return all_finite(span(column)); });
}

std::pair<MatrixOut, Vector<std::int64_t>> places(const std::vector<Point>& columns, std::size_t n, const Point& low,
                                                  const Point& high, const Point& weight) {
    for (const Point& column : columns) check_length(column.shape(0), n);
    for (const Point* ends : {&low, &high, &weight}) {
        check_length(ends->shape(0), columns.size());
        // Ranges may still be unknown as long as there is no value.
        if (n > 0) check_finite(span(*ends));
    }
    auto kept = std::make_unique<std::vector<double>>(n * columns.size());
    double* data = kept->data();
    std::vector<std::int64_t> outside(columns.size());
    for (std::size_t j = 0; j < columns.size(); ++j)
        place(span(columns[j]), span(low)[j], span(high)[j], span(weight)[j], {data, n, columns.size()}, j, outside[j]);
    return {MatrixOut(data, {n, columns.size()}, owner_of(std::move(kept))), as_array(std::move(outside))};
}

std::size_t different_keys(const Keys& keys, const Labels& sizes) {
    check_sizes(span(sizes), keys.shape(0));
    return least_different({keys.data(), keys.shape(0)}, span(sizes));
}

Vector<std::int64_t> winners_of_cells(const Keys& keys, const Labels& ranks, const Labels& sizes) {
    check_sizes(span(sizes), keys.shape(0));
    check_length(ranks.shape(0), keys.shape(0));
    std::vector<std::int64_t> winners(sizes.shape(0));
    most_frequent({keys.data(), keys.shape(0)}, span(ranks), span(sizes), winners);
    return as_array(std::move(winners));
}

// One byte that can stand between fields.
char separator_of(const std::string& separator) {
    check(separator.size() == 1 && std::string("\"\r\n").find(separator) == std::string::npos,
          "the separator is not one byte other than a quote or a line break");
    return separator[0];
}

// Lines of text as columns: numbers as arrays, texts as offsets, bytes and whether they are there.
class TextReader : OneAtATime {
  public:
    TextReader(std::vector<std::string> names, std::vector<std::int64_t> reads, bool is_csv,
               const std::string& separator)
        : reads_(checked(reads, names.size())),
          reader_(std::move(names), std::move(reads), is_csv, separator_of(separator)) {}

    nb::tuple read(nb::bytes text, bool is_end) {
        const std::string_view content(text.c_str(), text.size());
        Parsed parsed = alone([&] { return reader_.read(content, is_end); });
        nb::list columns;
        for (std::size_t j = 0; j < reads_.size(); ++j) {
            if (reads_[j] == 0)
                columns.append(as_array(std::move(parsed.numbers[j])));
            else
                columns.append(nb::make_tuple(as_array(std::move(parsed.texts[j].offsets)),
                                              as_array(std::move(parsed.texts[j].bytes)),
                                              as_array(std::move(parsed.texts[j].there))));
        }
        nb::list bad;
        for (const BadLine& line : parsed.bad)
            bad.append(nb::make_tuple(line.number, static_cast<std::int64_t>(line.fault), line.begin, line.end));
        return nb::make_tuple(parsed.n_bytes, parsed.n_lines, as_array(std::move(parsed.lines)), columns, bad,
                              as_array(std::move(parsed.begins)));
    }

  private:
    static std::vector<std::int64_t> checked(const std::vector<std::int64_t>& reads, std::size_t n_names) {
        check_length(reads.size(), n_names);
        check_numbers(reads, 4);
        return reads;
    }

    std::vector<std::int64_t> reads_;
    LineReader reader_;
};

// Columns as lines of text.
class TextWriter {
  public:
    TextWriter(const std::vector<std::string>& names, bool is_csv, const std::string& separator)
        : n_names_(names.size()), writer_(names, is_csv, separator_of(separator)) {}

    nb::bytes write(const nb::list& columns, std::size_t n_rows) {
        check_length(columns.size(), n_names_);
        std::vector<Column> kept;
        for (const nb::handle column : columns) kept.emplace_back(column, n_rows);
        std::vector<Written> written;
        for (const Column& column : kept) written.push_back(column.written());
        std::string out;
        {
            nb::gil_scoped_release released;
            out = writer_.write(written, n_rows);
        }
        return nb::bytes(out.data(), out.size());
    }

  private:
    // Numbers, or texts with offsets and whether they are there. Holds the arrays: a conversion may have made them.
    struct Column {
        Column(nb::handle column, std::size_t n_rows) {
            if (!nb::isinstance<nb::tuple>(column)) {
                numbers = nb::cast<Point>(column);
                check_length(numbers.shape(0), n_rows);
                return;
            }
            const auto parts = nb::cast<nb::tuple>(column);
            check(parts.size() == 3, "a column of texts has offsets, bytes and whether they are there");
            offsets = nb::cast<Labels>(parts[0]);
            bytes = nb::cast<Bytes>(parts[1]);
            there = nb::cast<Bytes>(parts[2]);
            check_length(offsets.shape(0), n_rows + 1);
            check_length(there.shape(0), n_rows);
            check_offsets(span(offsets), bytes.shape(0));
        }

        Written written() const {
            if (numbers.is_valid()) return {numbers.data()};
            return {nullptr, offsets.data(), bytes.data(), there.data()};
        }

        Point numbers;
        Labels offsets;
        Bytes bytes;
        Bytes there;
    };

    std::size_t n_names_;
    LineWriter writer_;
};

}  // namespace

NB_MODULE(_kernels, module) {
    // An interpreter that ends while somebody still holds an object is no leak of ours, and pages of lines help nobody.
    nb::set_leak_warnings(false);
    module.doc() = "The compiled loops of shoal. What does not fit together is a ValueError.";
    module.def("simd", [] { return std::string(loops()->name); }, "The instruction set the loops run with.");
    module.def(
        "least_share", [](double nanoseconds) { return Pace::least_share.exchange(nanoseconds); }, "nanoseconds"_a,
        "Set the work that is worth a thread, and return what it was. For tests: with 0 everything is shared.");
    nb::class_<LostCores>(module, "LostCores", "Cores that other programs have taken; for tests.")
        .def(nb::init<>())
        .def("lose", &LostCores::lose, "now"_a)
        .def("are_lost", &LostCores::are_lost, "now"_a)
        .def("use", &LostCores::use, "now"_a)
        .def_static("left_of", &LostCores::left_of, "n_threads"_a);
    nb::class_<Pace>(module, "Pace", "How many threads pay for rounds of one kind of work; for tests.")
        .def(nb::init<double>(), "time_per_item"_a)
        .def("threads", &Pace::threads, "n_items"_a, "most"_a)
        .def(
            "note",
            [](Pace& pace, std::size_t n_items, std::size_t n_threads, std::size_t n_present, double time,
               std::size_t own_items,
               double own_time) { return pace.note({n_items, n_threads, n_present, time, own_items, own_time}); },
            "n_items"_a, "n_threads"_a, "n_present"_a, "time"_a, "own_items"_a, "own_time"_a);
    module.def("mdav", &mdav, "X"_a, "k"_a, "threads"_a, "progress"_a.none(), "simd"_a = "",
               "Partition by MDAV: labels of shape (n_records,).");
    module.def("mdav_part", &mdav_part, "X"_a, "records"_a, "k"_a, "threads"_a, "progress"_a.none(), "simd"_a = "",
               "Partition some of the records by MDAV: labels of shape (n_part,).");
    module.def("refine", &refine, "X"_a, "labels"_a, "k"_a, "rounds"_a, "neighbours"_a, "least_gain"_a, "thorough"_a,
               "threads"_a, "progress"_a.none(), "simd"_a = "",
               "Lower the loss of a partition, in place, by moves and swaps.");
    module.def("cell_neighbours", &cell_neighbours, "X"_a, "labels"_a, "k"_a, "neighbours"_a, "threads"_a,
               "simd"_a = "", "Numbers of the cells around each cell, one list after the other.");
    module.def("refine_around", &refine_around, "X"_a, "labels"_a, "touched"_a, "lists"_a, "origins"_a, "k"_a,
               "rounds"_a, "neighbours"_a, "least_gain"_a, "threads"_a, "progress"_a.none(), "simd"_a = "",
               "Lower the loss around the cells that were touched, and open new ones.");
    module.def("arrive", &arrive, "X"_a, "labels"_a, "k"_a, "inertial"_a, "split_mid"_a, "threads"_a,
               "progress"_a.none(), "simd"_a = "", "Let the records behind those with labels join their cells.");
    module.def("anneal", &anneal, "X"_a, "labels"_a, "k"_a, "steps"_a, "hot"_a, "fall"_a, "seed"_a, "progress"_a.none(),
               "Lower the loss of a partition, in place, by simulated annealing.");
    module.def("univariate", &univariate, "values"_a, "k"_a, "progress"_a.none(),
               "Sizes of the cheapest cells of ascending values, from the lowest to the highest.");
    module.def("split", &split, "X"_a, "parts"_a, "n_parts"_a, "k"_a, "threads"_a, "progress"_a.none(), "simd"_a = "",
               "Split parts around their farthest pairs: labels of shape (n_records,).");
    module.def("assign", &nearest_points, "X"_a, "points"_a, "threads"_a, "simd"_a = "",
               "Number of the nearest point of each record, shape (n_records,).");
    module.def("dissolve_cells", &dissolve_cells, "X"_a, "labels"_a, "k"_a, "threads"_a, "simd"_a = "",
               "Scatter cells by phase II of TFRP: labels with gaps. No number of X exceeds 1 in magnitude.");
    module.def(
        "linkage", &linkage, "X"_a, "points"_a, "labels"_a, "asked_records"_a, "asked_points"_a, "threads"_a,
        "progress"_a.none(), "simd"_a = "",
        "Ranks by distance, (ahead, tied) of shape (n_records,) each: of the own original seen from the released "
        "point, ahead being at most 2, and of the own released record seen from the original.");
    module.def("distances", &distances, "X"_a, "point"_a, "Squared distances from a point, shape (n_records,).");
    module.def("unit_scale", &scale_of, "X"_a, "threads"_a,
               "The power of two that brings the largest magnitude into [1/2, 1).");
    module.def("halves", &halves, "X"_a, "records"_a, "direction"_a, "scale"_a, "threads"_a,
               "The numbers of the lower half of some records along a direction, then of the upper.");
    module.def("cell_sums", &sums, "X"_a, "labels"_a, "n_cells"_a, "threads"_a = 1,
               "Sums over cells, shape (n_cells, n_dims).");
    module.def("cell_spread", &spread, "X"_a, "labels"_a, "n_cells"_a, "threads"_a = 1,
               "Squared distances from the mean of the cell, summed over each cell, shape (n_cells,).");
    module.def("co_moments", &co_moments, "columns"_a, "exponents"_a, "origins"_a, "weights"_a, "threads"_a = 1,
               "Means and covariances of ``columns * 2**exponents - origins``; `weights` holds one array or none.");
    module.def(
        "inside_intervals", &inside, "numbers"_a, "exponent"_a, "origin"_a, "own"_a, "low"_a, "high"_a, "centre"_a,
        "reach"_a, "threads"_a = 1,
        "How many numbers are between the ends of the interval of their own value, and within reach of its centre.");
    module.def("agreeing_records", &classes_of, "columns"_a,
               "Classes of records that agree in all columns of words, numbered by their first records.");
    module.def("first_places", &places_of, "codes"_a, "n_codes"_a,
               "Where each code first occurs; after the last record if it does not.");
    module.def("balanced_cells", &balanced_cells, "X"_a, "codes"_a, "size"_a, "parts"_a,
               "Cells of about `size` records that each hold the same share of every part of the codes.");
    module.def("guarded_search", &guarded_search, "X"_a, "labels"_a, "k"_a, "guarantees"_a, "rounds"_a, "neighbours"_a,
               "least_gain"_a, "at_any_cost"_a, "threads"_a, "progress"_a.none(), "simd"_a = "",
               "Repair the cells that violate a model, then lower the loss under the veto of all models.");
    nb::class_<Guarantees>(module, "Guarantees", "The models that every cell must satisfy.")
        .def(nb::init<>())
        .def("ordered_closeness", &Guarantees::ordered_closeness, "codes"_a, "counts"_a, "over"_a, "under"_a)
        .def("nominal_closeness", &Guarantees::nominal_closeness, "codes"_a, "counts"_a, "over"_a, "under"_a)
        .def("distinct", &Guarantees::distinct, "codes"_a, "l"_a)
        .def("entropy", &Guarantees::entropy, "codes"_a, "l"_a)
        .def("recursive", &Guarantees::recursive, "codes"_a, "l"_a, "over"_a, "under"_a)
        .def("delta", &Guarantees::delta, "codes"_a, "counts"_a, "low"_a, "high"_a)
        .def("persons_once", &Guarantees::persons_once, "pairs"_a, "values"_a,
             "Count the records of a person with the same value once, for the guarantee added last.")
        .def("part", &Guarantees::part, "records"_a, "The same about some of the records.")
        .def("one", &Guarantees::one, "place"_a, "Only the guarantee at one place.")
        .def("excess", &Guarantees::excess, "labels"_a, "n_cells"_a, "threads"_a = 1,
             "What each cell is off, summed, shape (n_cells,).");
    bind_ncp(module);
    nb::class_<RemainingRecords>(module, "Remaining", "Records not yet in a cell.")
        .def(nb::init<Matrix, std::size_t, const std::string&>(), "X"_a, "threads"_a, "simd"_a = "")
        .def("__len__", &RemainingRecords::size)
        .def("__contains__", &RemainingRecords::contains, "record"_a)
        .def("centroid", &RemainingRecords::centroid, "Mean of the records that remain, shape (n_dims,).")
        .def("nearest", &RemainingRecords::nearest, "point"_a, "k"_a,
             "The k records nearest to a point, nearest first, and their squared distances.")
        .def("farthest", &RemainingRecords::farthest, "point"_a, "The record farthest from a point.")
        .def("farthest_from_centroid", &RemainingRecords::farthest_from_centroid, "The record farthest from the mean.")
        .def("remove", &RemainingRecords::remove, "records"_a, "Take records out; each must remain.")
        .def("gather", &RemainingRecords::gather, "record"_a, "k"_a,
             "Take out a record and its k - 1 nearest; return them, the record first.")
        .def("grow", &RemainingRecords::grow, "record"_a, "k"_a,
             "Take out a record and, k - 1 times, the one nearest to the mean of those taken out; return them.");
    nb::class_<StreamWindow>(module, "StreamWindow", "Tuples of a stream that wait for company.")
        .def(nb::init<std::size_t, std::size_t, std::int64_t, double, double, std::size_t, std::vector<double>,
                      std::vector<std::size_t>, const std::string&>(),
             "n_dims"_a, "k"_a, "delay"_a, "max_age"_a, "order_weight"_a, "max_cell"_a, "code_weights"_a, "least"_a,
             "simd"_a = "")
        .def("__len__", &StreamWindow::size)
        .def("push", &StreamWindow::push, "X"_a, "codes"_a, "tags"_a, "times"_a,
             "Take tuples in: rows of cells, sizes of cells, rows refused, reasons, rows that wait.")
        .def("advance", &StreamWindow::advance, "now"_a, "Let time go by.")
        .def("flush", &StreamWindow::flush, "End the stream.")
        .def("recode", &StreamWindow::recode, "X"_a, "Give the tuples that wait other coordinates.")
        .def("waiting", &StreamWindow::waiting, "Numbers and times of the tuples that wait.")
        .def("tally", &StreamWindow::tally, nb::sig("def tally(self) -> dict[str, object]"),
             "What was measured so far.")
        .def("restore", &StreamWindow::restore, "X"_a, "codes"_a, "tags"_a, "times"_a, "positions"_a, "tally"_a,
             nb::sig("def restore(self, X: object, codes: object, tags: object, times: object, positions: object, "
                     "tally: dict[str, object]) -> None"),
             "Go on where another window stopped.");
    module.def("text_keys", &keys_of_texts<std::int32_t>, "offsets"_a, "bytes"_a, "Keys of texts, shape (n,).");
    module.def("text_keys", &keys_of_texts<std::int64_t>, "offsets"_a, "bytes"_a);
    module.def("all_finite", &are_finite, "columns"_a, "Whether no value is NaN or infinite.");
    module.def("cell_means", &means_of_cells, "values"_a, "sizes"_a,
               "For each value the mean of those present in its cell, and whether any is NaN.");
    module.def("differ_within_cells", &any_differ<double>, "values"_a, "sizes"_a,
               "Whether any cell has different values.");
    module.def("differ_within_cells", &any_differ<std::uint64_t>, "values"_a, "sizes"_a);
    module.def("place", &places, "columns"_a, "n"_a, "low"_a, "high"_a, "weight"_a,
               "Columns on their ranges, weighted, as a matrix, and how many values lay outside.");
    module.def("least_different", &different_keys, "keys"_a, "sizes"_a,
               "The smallest number of different keys in a cell.");
    module.def(
        "most_frequent", &winners_of_cells, "keys"_a, "ranks"_a, "sizes"_a,
        "For each cell, a row that holds its most frequent key; of equally frequent ones that of the lowest rank.");
    nb::class_<TextReader>(module, "TextReader", "Lines of text as columns.")
        .def(nb::init<std::vector<std::string>, std::vector<std::int64_t>, bool, const std::string&>(), "names"_a,
             "reads"_a, "is_csv"_a, "separator"_a)
        .def("read", &TextReader::read, "text"_a, "is_end"_a,
             nb::sig("def read(self, text: bytes, is_end: bool) -> tuple[int, int, object, list[object], "
                     "list[tuple[int, int, int, int]], object]"),
             "Bytes used, lines read, numbers of the good ones, their columns, the bad ones, and where the good ones "
             "begin.");
    nb::class_<TextWriter>(module, "TextWriter", "Columns as lines of text.")
        .def(nb::init<const std::vector<std::string>&, bool, const std::string&>(), "names"_a, "is_csv"_a,
             "separator"_a)
        .def("write", &TextWriter::write, "columns"_a, "n_rows"_a,
             nb::sig("def write(self, columns: list[object], n_rows: int) -> bytes"), "The lines, as bytes.");
}
