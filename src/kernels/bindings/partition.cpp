// Kernels that make cells from a matrix, or make them better.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/call.hpp"
#include "bindings/checks.hpp"
#include "numeric/large_array.hpp"
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

namespace shoal {
namespace {

using Schedule = std::tuple<std::uint64_t, double, double>;  // steps, hot, fall
using RefineHints = std::tuple<Labels, Labels, Labels>;      // cells, neighbours, origins

Numbers mdav(const Matrix& X, std::size_t k, const std::optional<Labels>& records) {
    const std::size_t n = records ? records->shape(0) : X.shape(0);
    const std::size_t n_dims = X.shape(1);
    check_shape(rows(X));
    check_cell_size(k, n);
    std::vector<std::int64_t> labels(n);
    Call call(n);
    call.run([&](Pool& pool) {
        LargeArray<double> copy;
        Rows<const double> part = rows(X);
        if (records) {
            check_numbers(span(*records), X.shape(0));
            copy = large_array<double>(n * n_dims);
            part = {copy.get(), n, n_dims};
            pool.split(n, 2.0 * static_cast<double>(n_dims), [&](std::size_t, std::size_t from, std::size_t to) {
                for (std::size_t i = from; i < to; ++i)
                    std::ranges::copy(rows(X)[static_cast<std::size_t>(span(*records)[i])], &copy[i * n_dims]);
            });
        }
        check_matrix(part, pool);
        Mdav(part, k, pool, call.loops(), labels).run(call.poller());
    });
    return as_array(std::move(labels));
}

Numbers refine(const Matrix& X, const Labels& start, std::size_t k, std::size_t rounds, std::size_t neighbours,
               double least_gain, bool thorough) {
    Call call(X.shape(0) * rounds);
    return improved(start, [&](std::span<std::int64_t> labels) {
        call.run([&](Pool& pool) {
            check_matrix(rows(X), pool);
            check_partition(labels, X.shape(0), k);
            Refiner(rows(X), k, pool, call.loops(), labels)
                .run({rounds, neighbours, least_gain, thorough}, call.poller());
        });
    });
}

std::vector<std::uint32_t> numbers(const Labels& some) {
    return {span(some).begin(), span(some).end()};
}

Numbers refine_around(const Matrix& X, const Labels& start, const RefineHints& hints, std::size_t k, std::size_t rounds,
                      std::size_t neighbours, double least_gain) {
    const auto& [touched, neighbour_lists, origins] = hints;
    check_matrix(rows(X));
    const std::size_t n_cells = check_partition(span(start), X.shape(0), k);
    check_numbers(span(touched), n_cells);
    check_neighbours(span(neighbour_lists), span(origins), n_cells);
    check(neighbours >= 1, "at least one neighbour is needed");
    std::vector<std::int64_t> labels(span(start).begin(), span(start).end());
    const Refiner::Before before{numbers(touched), numbers(neighbour_lists), numbers(origins)};
    // All cells of exactly k would be so many.
    const std::size_t n_most = X.shape(0) / k;
    Call call(X.shape(0) * rounds);
    call.run([&](Pool& pool) {
        Refiner(rows(X), k, pool, call.loops(), labels, n_most - n_cells)
            .run_around(before, {rounds, neighbours, least_gain}, call.poller());
    });
    return as_array(std::move(labels));
}

Numbers cell_neighbours(const Matrix& X, const Labels& labels, std::size_t k, std::size_t n_neighbours) {
    check_matrix(rows(X));
    check_partition(span(labels), X.shape(0), 1);
    check_cell_size(k, X.shape(0));
    check(n_neighbours >= 1, "at least one neighbour is needed");
    std::vector<std::int64_t> copy(span(labels).begin(), span(labels).end());
    std::vector<std::uint32_t> lists;
    Call call = Call::silent();
    call.run([&](Pool& pool) {
        const CellTiles cells(rows(X), k, copy, pool);
        lists = nearest_neighbours(cells.centroids(), n_neighbours, call.loops(), pool, call.poller());
    });
    return as_array(std::vector<std::int64_t>(lists.begin(), lists.end()));
}

Numbers arrive(const Matrix& X, const Labels& base, std::size_t k, bool inertial, bool split_mid) {
    check_matrix(rows(X));
    check(base.shape(0) <= X.shape(0), "there are more labels than records");
    check_cell_size(k, base.shape(0));
    check_partition(span(base), base.shape(0), 1);
    std::vector<std::int64_t> labels(X.shape(0));
    std::ranges::copy(span(base), labels.begin());
    Call call(X.shape(0) - base.shape(0));
    call.run([&](Pool& pool) {
        Arrivals(rows(X), base.shape(0), k, {inertial, split_mid}, pool, call.loops(), labels).run(call.poller());
    });
    return as_array(std::move(labels));
}

Numbers anneal(const Matrix& X, const Labels& start, std::size_t k, const Schedule& schedule, std::uint64_t seed) {
    const auto [steps, hot, fall] = schedule;
    check_matrix(rows(X));
    check_partition(span(start), X.shape(0), k);
    Call call(steps);
    return improved(start, [&, steps = steps, hot = hot, fall = fall](std::span<std::int64_t> labels) {
        call.run([&](Pool&) { Annealer(rows(X), k, seed, labels, call.poller()).run(steps, hot, fall); });
    });
}

Numbers univariate(const Point& values, std::size_t k) {
    check_matrix({values.data(), values.shape(0), 1});
    check_cell_size(k, values.shape(0));
    check(std::ranges::is_sorted(span(values)), "the values do not ascend");
    Call call(values.shape(0));
    return as_array(call.run([&](Pool&) { return Univariate(span(values), k).run(call.poller()); }));
}

Numbers split(const Matrix& X, const Labels& parts, std::size_t k) {
    check_matrix(rows(X));
    const std::size_t n_parts = check_partition(span(parts), X.shape(0), k);
    std::vector<std::int64_t> labels(X.shape(0));
    Call call(X.shape(0));
    call.run([&](Pool& pool) {
        Splits(rows(X), k, pool, call.loops(), labels).run(Members(span(parts), n_parts), call.poller());
    });
    return as_array(std::move(labels));
}

Numbers assign_to_points(const Matrix& X, const Matrix& points) {
    check_matrix(rows(X));
    check_matrix(rows(points));
    check_length(points.shape(1), X.shape(1));
    std::vector<std::int64_t> nearest(X.shape(0));
    Call call = Call::silent();
    call.run([&](Pool& pool) { assign(rows(X), rows(points), pool, call.loops(), nearest, call.poller()); });
    return as_array(std::move(nearest));
}

Numbers dissolve_cells(const Matrix& X, const Labels& start, std::size_t k) {
    check_matrix(rows(X));
    check_partition(span(start), X.shape(0), 1);
    check_cell_size(k, X.shape(0));
    check(unit_scale(rows(X).flat()) >= 0.5, "a number exceeds 1 in magnitude");
    std::vector<std::int64_t> labels(span(start).begin(), span(start).end());
    Call call = Call::silent();
    call.run([&](Pool& pool) { CellDissolver(rows(X), k, pool, call.loops(), labels).run(call.poller()); });
    return as_array(std::move(labels));
}

std::pair<Numbers, Numbers> halves(const Matrix& X, const Labels& records, const Point& direction, double scale) {
    check_length(direction.shape(0), X.shape(1));
    check(records.shape(0) > 0 && X.shape(0) <= most_records, "there are no records, or more than 2^31 - 1");
    auto [low, high] = Call::silent().run([&](Pool& pool) {
        check_ascending(span(records), X.shape(0));
        return Halving(rows(X), scale, span(records), span(direction), pool).halves();
    });
    return {as_array(std::move(low.records), low.size), as_array(std::move(high.records), high.size)};
}

Numbers balanced_cells(const Matrix& X, const Labels& codes, std::size_t size, std::size_t parts) {
    check_matrix(rows(X));
    check_cell_size(size, X.shape(0));
    check_cell_size(parts, size);
    check_length(codes.shape(0), X.shape(0));
    std::vector<std::int64_t> labels(X.shape(0));
    Call call = Call::silent();
    call.run([&](Pool&) { BalancedCells(rows(X), span(codes), size, parts).run(labels, call.poller()); });
    return as_array(std::move(labels));
}

}  // namespace

void bind_partition(nb::module_& module) {
    module.def("mdav", &mdav, "X"_a, "k"_a, "records"_a.none() = nb::none(),
               "Partition the records, or some of them, by MDAV; see `shoal.methods.mdav`.");
    module.def("refine", &refine, "X"_a, "labels"_a, "k"_a, "rounds"_a, "neighbours"_a, "least_gain"_a, "thorough"_a,
               "Lower the loss of a partition by moves and swaps; see `shoal.methods.refine`.");
    module.def("refine_around", &refine_around, "X"_a, "labels"_a, "touched"_a, "k"_a, "rounds"_a, "neighbours"_a,
               "least_gain"_a,
               "Lower the loss around the cells that have changed (`RefineHints`), and form new cells from surplus "
               "records of others.\n\nNo cell has 2k records or more. See `shoal.incremental`.");
    module.def("cell_neighbours", &cell_neighbours, "X"_a, "labels"_a, "k"_a, "n_neighbours"_a,
               "Return the neighbouring cells of each cell, nearest first, as concatenated lists.\n\nLists of cells "
               "with fewer neighbours are padded with 2**32 - 1. No cell has many more than 2k records.");
    module.def("arrive", &arrive, "X"_a, "labels"_a, "k"_a, nb::kw_only(), "inertial"_a, "split_mid"_a,
               "Assign the records after the first ``len(labels)`` in order to the nearest cells.\n\nWith `inertial` "
               "the squared distance to a cell of n records is multiplied by n / (n + 1); with `split_mid` a cell of "
               "2k records is split by MDAV at once. See `shoal.incremental`.");
    module.def("anneal", &anneal, "X"_a, "labels"_a, "k"_a, "schedule"_a, "seed"_a,
               "Search for a partition with a lower loss by random steps (`Schedule`); see `shoal.methods.auto`.");
    module.def("univariate", &univariate, "values"_a, "k"_a,
               "Return the sizes of the cells of minimum SSE of ascending values, in ascending order of values.");
    module.def("split", &split, "X"_a, "parts"_a, "k"_a,
               "Split parts of at least k records around their farthest pairs into cells of k to 2k-1; return the "
               "cells.");
    module.def(
        "assign", &assign_to_points, "X"_a, "points"_a,
        "Return the index of the point nearest to each record, shape (n_records,); ties go to the lowest index.");
    module.def("dissolve_cells", &dissolve_cells, "X"_a, "labels"_a, "k"_a,
               "Dissolve cells where that lowers the SSE; their numbers are then unused.\n\nNo number of `X` exceeds 1 "
               "in magnitude. See `shoal.methods.dissolve`.");
    module.def("halves", &halves, "X"_a, "records"_a, "direction"_a, "scale"_a,
               "Cut some records in two across a direction: the lower half of them, ties by index, and the "
               "rest.\n\n`records` are ascending indices, and so are the results. `scale` is that of `unit_scale`.");
    module.def("balanced_cells", &balanced_cells, "X"_a, "codes"_a, "size"_a, "parts"_a,
               "Return cells of about `size` near records that each hold the same share of each of `parts` parts of "
               "the codes.\n\nThe size is at most the number of records and at least the number of parts.");
}

}  // namespace shoal
