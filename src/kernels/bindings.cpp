// Python's view of the kernels, and nothing else.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <vector>

#include "anneal.hpp"
#include "assign.hpp"
#include "cells.hpp"
#include "gather.hpp"
#include "guarantees.hpp"
#include "guarded.hpp"
#include "mdav.hpp"
#include "refine.hpp"
#include "scatter.hpp"
#include "split.hpp"
#include "spread.hpp"
#include "univariate.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace shoal;

namespace {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Point = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Labels = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
using MatrixOut = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

Rows<const double> rows(const Matrix& X) {
    return {X.data(), X.shape(0), X.shape(1)};
}
std::span<const double> span(const Point& point) {
    return {point.data(), point.shape(0)};
}
std::span<const std::int64_t> span(const Labels& labels) {
    return {labels.data(), labels.shape(0)};
}

template <class T>
nb::capsule owner_of(std::unique_ptr<std::vector<T>> values) {
    return nb::capsule(values.release(), [](void* kept) noexcept { delete static_cast<std::vector<T>*>(kept); });
}

template <class T>
Vector<T> as_array(std::vector<T> values) {
    auto kept = std::make_unique<std::vector<T>>(std::move(values));
    T* data = kept->data();
    const std::size_t size = kept->size();
    return Vector<T>(data, {size}, owner_of(std::move(kept)));
}

const Loops& chosen_loops(const std::string& name) {
    const Loops* chosen = loops(name.empty() ? nullptr : name.c_str());
    if (!chosen) throw nb::value_error("this machine cannot run the loops asked for");
    return *chosen;
}

// Looks for Ctrl-C and tells Python how far the work is, with the GIL for that moment only.
Watch python_watch(nb::object progress, std::size_t n_records) {
    return Watch([progress = std::move(progress), n_records](std::size_t done) {
        nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!progress.is_none()) progress(done, n_records);
    });
}

Vector<std::int64_t> mdav(const Matrix& X, std::size_t k, std::size_t threads, nb::object progress,
                          const std::string& simd) {
    std::vector<std::int64_t> labels(X.shape(0));
    const Loops& chosen = chosen_loops(simd);
    Watch watch = python_watch(std::move(progress), X.shape(0));
    {
        nb::gil_scoped_release released;
        Pool pool(threads);
        Mdav(rows(X), k, pool, chosen, labels).run(watch);
    }
    return as_array(std::move(labels));
}

Vector<std::int64_t> refine(const Matrix& X, const Labels& start, std::size_t k, std::size_t rounds,
                            std::size_t neighbours, double least_gain, nb::object progress, const std::string& simd) {
    std::vector<std::int64_t> labels(span(start).begin(), span(start).end());
    const Loops& chosen = chosen_loops(simd);
    Watch watch = python_watch(std::move(progress), X.shape(0) * rounds);
    {
        nb::gil_scoped_release released;
        Refiner(rows(X), k, chosen, labels).run({rounds, neighbours, least_gain}, watch);
    }
    return as_array(std::move(labels));
}

Vector<std::int64_t> anneal(const Matrix& X, const Labels& start, std::size_t k, std::uint64_t steps, double hot,
                            double fall, std::uint64_t seed, nb::object progress) {
    std::vector<std::int64_t> labels(span(start).begin(), span(start).end());
    Watch watch = python_watch(std::move(progress), steps);
    {
        nb::gil_scoped_release released;
        Annealer(rows(X), k, seed, labels).run(steps, hot, fall, watch);
    }
    return as_array(std::move(labels));
}

Vector<std::int64_t> univariate(const Point& values, std::size_t k, nb::object progress) {
    Watch watch = python_watch(std::move(progress), values.shape(0));
    std::vector<std::int64_t> sizes;
    {
        nb::gil_scoped_release released;
        sizes = Univariate(span(values), k).run(watch);
    }
    return as_array(std::move(sizes));
}

Vector<std::int64_t> split(const Matrix& X, const Labels& parts, std::size_t n_parts, std::size_t k,
                           std::size_t threads, nb::object progress, const std::string& simd) {
    std::vector<std::int64_t> labels(X.shape(0));
    const Loops& chosen = chosen_loops(simd);
    Watch watch = python_watch(std::move(progress), X.shape(0));
    {
        nb::gil_scoped_release released;
        Pool pool(threads);
        Splits(rows(X), k, pool, chosen, labels).run(Members(span(parts), n_parts), watch);
    }
    return as_array(std::move(labels));
}

Vector<std::int64_t> nearest_points(const Matrix& X, const Matrix& points, std::size_t threads,
                                    const std::string& simd) {
    std::vector<std::int64_t> nearest(X.shape(0));
    const Loops& chosen = chosen_loops(simd);
    {
        nb::gil_scoped_release released;
        Pool pool(threads);
        assign(rows(X), rows(points), pool, chosen, nearest);
    }
    return as_array(std::move(nearest));
}

Vector<std::int64_t> scatter(const Matrix& X, const Labels& start, std::size_t k, std::size_t threads,
                             const std::string& simd) {
    std::vector<std::int64_t> labels(span(start).begin(), span(start).end());
    const Loops& chosen = chosen_loops(simd);
    Watch watch = python_watch(nb::none(), X.shape(0));
    {
        nb::gil_scoped_release released;
        Pool pool(threads);
        Scattering(rows(X), k, pool, chosen, labels).run(watch);
    }
    return as_array(std::move(labels));
}

Vector<double> distances(const Matrix& X, const Point& point) {
    std::vector<double> out(X.shape(0));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = squared_distance(rows(X)[i], span(point));
    return as_array(std::move(out));
}

MatrixOut sums(const Matrix& X, const Labels& labels, std::size_t n_cells) {
    auto kept = std::make_unique<std::vector<double>>(n_cells * X.shape(1));
    double* data = kept->data();
    {
        nb::gil_scoped_release released;
        cell_sums(rows(X), Members(span(labels), n_cells), {data, n_cells, X.shape(1)});
    }
    return MatrixOut(data, {n_cells, X.shape(1)}, owner_of(std::move(kept)));
}

Vector<double> spread(const Matrix& X, const Labels& labels, std::size_t n_cells) {
    std::vector<double> out(n_cells);
    {
        nb::gil_scoped_release released;
        cell_spread(rows(X), Members(span(labels), n_cells), out);
    }
    return as_array(std::move(out));
}

// Guarantees with the codes they are about, one after another.
class Guarantees {
  public:
    Guarantees() = default;
    Guarantees(const Guarantees&) = delete;
    Guarantees& operator=(const Guarantees&) = delete;

    void ordered_closeness(const Labels& codes, const Labels& counts, std::int64_t over, std::int64_t under) {
        add(codes, std::make_unique<OrderedCloseness>(span(counts), Fraction{over, under}));
    }
    void nominal_closeness(const Labels& codes, const Labels& counts, std::int64_t over, std::int64_t under) {
        add(codes, std::make_unique<NominalCloseness>(span(counts), Fraction{over, under}));
    }
    void distinct(const Labels& codes, std::int64_t l) { add(codes, std::make_unique<DistinctDiversity>(l)); }
    void entropy(const Labels& codes, std::int64_t l) { add(codes, std::make_unique<EntropyDiversity>(l)); }
    void recursive(const Labels& codes, std::int64_t l, std::int64_t over, std::int64_t under) {
        add(codes, std::make_unique<RecursiveDiversity>(l, Fraction{over, under}));
    }
    void delta(const Labels& codes, const Labels& counts, double low, double high) {
        add(codes, std::make_unique<DeltaDisclosure>(span(counts), low, high));
    }

    std::span<const Guarded> all() const { return guarded_; }

    // Of each cell, the sum of what it is off.
    Vector<double> excess(const Labels& labels, std::size_t n_cells) const {
        std::vector<double> out(n_cells, 0.0);
        const Members members(span(labels), n_cells);
        std::vector<Code> codes;
        for (const Guarded& guarded : guarded_)
            for (std::size_t c = 0; c < n_cells; ++c) {
                codes.clear();
                for (const std::size_t i : members[c]) codes.push_back(guarded.codes[i]);
                std::ranges::sort(codes);
                out[c] += guarded.guarantee->excess(codes);
            }
        return as_array(std::move(out));
    }

  private:
    void add(const Labels& codes, std::unique_ptr<const Guarantee> guarantee) {
        guarded_.push_back({{span(codes).begin(), span(codes).end()}, std::move(guarantee)});
    }

    std::vector<Guarded> guarded_;
};

Vector<std::int64_t> guarded_search(const Matrix& X, const Labels& start, std::size_t k, const Guarantees& guarantees,
                                    std::size_t rounds, std::size_t neighbours, double least_gain, bool at_any_cost,
                                    nb::object progress, const std::string& simd) {
    std::vector<std::int64_t> labels(span(start).begin(), span(start).end());
    const Loops& chosen = chosen_loops(simd);
    Watch watch = python_watch(std::move(progress), X.shape(0) * rounds);
    {
        nb::gil_scoped_release released;
        GuardedSearch(rows(X), k, guarantees.all(), chosen, labels)
            .run({rounds, neighbours, least_gain, at_any_cost}, watch);
    }
    return as_array(std::move(labels));
}

Vector<std::int64_t> spread_cells(const Matrix& X, const Labels& codes, std::size_t size, std::size_t parts) {
    std::vector<std::int64_t> labels(X.shape(0));
    {
        nb::gil_scoped_release released;
        Spread(rows(X), span(codes), size, parts).run(labels);
    }
    return as_array(std::move(labels));
}

// Remaining, with what it needs to live: the matrix, the threads, and room for points.
class RemainingRecords {
  public:
    RemainingRecords(Matrix X, std::size_t threads, const std::string& simd)
        : X_(std::move(X)), pool_(threads), remaining_(rows(X_), pool_, chosen_loops(simd)), point_(X_.shape(1)) {}

    std::size_t size() const { return remaining_.size(); }
    bool contains(std::uint32_t record) const { return record < X_.shape(0) && remaining_.contains(record); }

    Vector<double> centroid() const {
        std::vector<double> out(X_.shape(1));
        remaining_.centroid(out);
        for (double& value : out) value /= remaining_.scale();
        return as_array(std::move(out));
    }

    std::pair<Vector<std::int64_t>, Vector<double>> nearest(const Point& point, std::size_t k) {
        const auto found = search(point, k, false).nearest;
        // The next question is often about a point nearby.
        if (!found.empty()) home_ = remaining_.home(found.front().record);
        std::vector<std::int64_t> records;
        std::vector<double> squared;
        for (const Candidate& candidate : found) {
            records.push_back(candidate.record);
            squared.push_back(unscaled(candidate.distance));
        }
        return {as_array(std::move(records)), as_array(std::move(squared))};
    }

    std::int64_t farthest(const Point& point) { return search(point, 0, true).farthest.record; }
    std::int64_t farthest_from_centroid() { return remaining_.farthest_from_centroid(); }

    void remove(const Labels& records) {
        for (const std::int64_t record : span(records)) remaining_.remove(static_cast<std::uint32_t>(record));
        remaining_.tidy();
    }

    Vector<std::int64_t> gather(std::uint32_t record, std::size_t k) {
        std::vector<std::int64_t> members;
        {
            nb::gil_scoped_release released;
            members = shoal::gather(remaining_, record, k, point_);
        }
        return as_array(std::move(members));
    }

    Vector<std::int64_t> grow(std::uint32_t record, std::size_t k) {
        std::vector<std::int64_t> members;
        {
            nb::gil_scoped_release released;
            members = shoal::grow(remaining_, record, k, point_);
        }
        return as_array(std::move(members));
    }

  private:
    Remaining::Answer search(const Point& point, std::size_t k, bool wants_farthest) {
        for (std::size_t j = 0; j < point_.size(); ++j) point_[j] = point.data()[j] * remaining_.scale();
        nb::gil_scoped_release released;
        return remaining_.search(point_, k, wants_farthest, home_);
    }
    double unscaled(double squared) const { return squared / remaining_.scale() / remaining_.scale(); }

    Matrix X_;
    Pool pool_;
    Remaining remaining_;
    std::vector<double> point_;
    std::uint32_t home_ = 0;
};

}  // namespace

NB_MODULE(_kernels, module) {
    module.doc() = "The compiled loops of shoal. Callers have checked everything.";
    module.def("simd", [] { return std::string(loops()->name); }, "The instruction set the loops run with.");
    module.def("mdav", &mdav, "X"_a, "k"_a, "threads"_a, "progress"_a.none(), "simd"_a = "",
               "Partition by MDAV: labels of shape (n_records,).");
    module.def("refine", &refine, "X"_a, "labels"_a, "k"_a, "rounds"_a, "neighbours"_a, "least_gain"_a,
               "progress"_a.none(), "simd"_a = "", "Lower the loss of a partition by moves and swaps.");
    module.def("anneal", &anneal, "X"_a, "labels"_a, "k"_a, "steps"_a, "hot"_a, "fall"_a, "seed"_a, "progress"_a.none(),
               "Search for a partition with a lower loss by simulated annealing.");
    module.def("univariate", &univariate, "values"_a, "k"_a, "progress"_a.none(),
               "Sizes of the cheapest cells of ascending values, from the lowest to the highest.");
    module.def("split", &split, "X"_a, "parts"_a, "n_parts"_a, "k"_a, "threads"_a, "progress"_a.none(), "simd"_a = "",
               "Split parts around their farthest pairs: labels of shape (n_records,).");
    module.def("assign", &nearest_points, "X"_a, "points"_a, "threads"_a, "simd"_a = "",
               "Number of the nearest point of each record, shape (n_records,).");
    module.def("scatter", &scatter, "X"_a, "labels"_a, "k"_a, "threads"_a, "simd"_a = "",
               "Scatter cells by phase II of TFRP: labels with gaps. No number of X exceeds 1 in magnitude.");
    module.def("distances", &distances, "X"_a, "point"_a, "Squared distances from a point, shape (n_records,).");
    module.def("cell_sums", &sums, "X"_a, "labels"_a, "n_cells"_a, "Sums over cells, shape (n_cells, n_dims).");
    module.def("cell_spread", &spread, "X"_a, "labels"_a, "n_cells"_a,
               "Squared distances from the mean of the cell, summed over each cell, shape (n_cells,).");
    module.def("spread", &spread_cells, "X"_a, "codes"_a, "size"_a, "parts"_a,
               "Cells of about `size` records that each hold the same share of every part of the codes.");
    module.def("guarded_search", &guarded_search, "X"_a, "labels"_a, "k"_a, "guarantees"_a, "rounds"_a, "neighbours"_a,
               "least_gain"_a, "at_any_cost"_a, "progress"_a.none(), "simd"_a = "",
               "Mend the cells that break a guarantee, then lower the loss under the veto of all.");
    nb::class_<Guarantees>(module, "Guarantees", "What every cell must keep.")
        .def(nb::init<>())
        .def("ordered_closeness", &Guarantees::ordered_closeness, "codes"_a, "counts"_a, "over"_a, "under"_a)
        .def("nominal_closeness", &Guarantees::nominal_closeness, "codes"_a, "counts"_a, "over"_a, "under"_a)
        .def("distinct", &Guarantees::distinct, "codes"_a, "l"_a)
        .def("entropy", &Guarantees::entropy, "codes"_a, "l"_a)
        .def("recursive", &Guarantees::recursive, "codes"_a, "l"_a, "over"_a, "under"_a)
        .def("delta", &Guarantees::delta, "codes"_a, "counts"_a, "low"_a, "high"_a)
        .def("excess", &Guarantees::excess, "labels"_a, "n_cells"_a,
             "What each cell is off, summed, shape (n_cells,).");
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
}
