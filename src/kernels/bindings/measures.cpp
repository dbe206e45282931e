// Kernels that measure: sums of cells, distances, moments, ranks, classes.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/call.hpp"
#include "bindings/checks.hpp"
#include "measures/agreeing_records.hpp"
#include "measures/co_moments.hpp"
#include "measures/inside_intervals.hpp"
#include "measures/linkage.hpp"
#include "numeric/distance.hpp"
#include "partition/cells.hpp"

namespace shoal {
namespace {

using Ranks = std::pair<Numbers, Numbers>;                    // ahead, ties
using IntervalsIn = std::tuple<Point, Point, Point, double>;  // low, high, centre, reach

std::pair<Ranks, Ranks> linkage(const Matrix& X, const Matrix& points, const Labels& labels,
                                const Labels& asked_records, const Labels& asked_points) {
    const std::size_t n = X.shape(0);
    check_shape(rows(X));
    check_shape(rows(points));
    check_length(points.shape(1), X.shape(1));
    check_length(labels.shape(0), n);
    check_numbers(span(labels), points.shape(0));
    check_ascending(span(asked_records), n);
    check_ascending(span(asked_points), points.shape(0));
    std::vector<std::int64_t> originals_ahead(n), originals_tied(n), released_ahead(n), released_tied(n);
    Call call(2 * n);
    call.run([&](Pool& pool) {
        Linkage link(rows(X), rows(points), span(labels), pool, call.loops());
        link.rank_originals(span(asked_points), originals_ahead, originals_tied, call.poller());
        link.rank_released(span(asked_records), released_ahead, released_tied, call.poller());
    });
    return {{as_array(std::move(originals_ahead)), as_array(std::move(originals_tied))},
            {as_array(std::move(released_ahead)), as_array(std::move(released_tied))}};
}

Vector distances(const Matrix& X, const Point& point) {
    check_length(point.shape(0), X.shape(1));
    std::vector<double> out(X.shape(0));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = squared_distance(rows(X)[i], span(point));
    return as_array(std::move(out));
}

double scale_of(const Matrix& X) {
    return Call::silent().run([&](Pool& pool) { return unit_scale(rows(X).flat(), pool); });
}

MatrixOut sums(const Matrix& X, const Labels& labels, std::size_t n_cells) {
    check_matrix(rows(X));
    check_length(labels.shape(0), X.shape(0));
    check_numbers(span(labels), n_cells);
    std::vector<double> out(n_cells * X.shape(1));
    Call::silent().run([&](Pool& pool) {
        cell_sums(rows(X), Members(span(labels), n_cells, pool), {out.data(), n_cells, X.shape(1)}, pool);
    });
    return as_matrix(std::move(out), n_cells, X.shape(1));
}

Vector spread(const Matrix& X, const Labels& labels, std::size_t n_cells) {
    check_matrix(rows(X));
    check_length(labels.shape(0), X.shape(0));
    check_numbers(span(labels), n_cells);
    std::vector<double> out(n_cells);
    Call::silent().run([&](Pool& pool) { cell_spread(rows(X), Members(span(labels), n_cells, pool), out, pool); });
    return as_array(std::move(out));
}

std::pair<Vector, MatrixOut> co_moments(const std::vector<Point>& columns, const std::vector<int>& exponents,
                                        const std::vector<double>& origins, const std::optional<Point>& weights) {
    const std::size_t m = columns.size();
    check(m > 0 && columns[0].shape(0) > 0, "the matrix is empty");
    check_length(exponents.size(), m);
    check_length(origins.size(), m);
    const std::size_t n = columns[0].shape(0);
    std::vector<ScaledColumn> scaled;
    for (std::size_t a = 0; a < m; ++a) {
        check_length(columns[a].shape(0), n);
        scaled.emplace_back(columns[a].data(), exponents[a], origins[a]);
    }
    if (weights) check_length(weights->shape(0), n);
    std::vector<double> means(m);
    std::vector<double> covariance(m * m);
    Call::silent().run([&](Pool& pool) {
        CoMoments(std::move(scaled), weights ? weights->data() : nullptr, n, pool).write(means, covariance);
    });
    return {as_array(std::move(means)), as_matrix(std::move(covariance), m, m)};
}

std::pair<std::int64_t, std::int64_t> inside(const Point& numbers, int exponent, double origin, const Labels& own,
                                             const IntervalsIn& intervals) {
    const auto& [low, high, centre, reach] = intervals;
    check_length(own.shape(0), numbers.shape(0));
    check_length(high.shape(0), low.shape(0));
    check_length(centre.shape(0), low.shape(0));
    check_numbers(span(own), low.shape(0));
    const ScaledColumn scaled(numbers.data(), exponent, origin);
    const Intervals ends{span(low), span(high), span(centre), reach};
    const InsideIntervals found =
        Call::silent().run([&](Pool& pool) { return inside_intervals(span(numbers), scaled, span(own), ends, pool); });
    return {found.between, found.within_reach};
}

Numbers classes_of(const std::vector<Labels>& columns) {
    check(!columns.empty(), "there are no columns");
    const std::size_t n = columns[0].shape(0);
    check(n <= most_records, "more than 2^31 - 1 records");
    std::vector<const std::int64_t*> words;
    for (const Labels& column : columns) {
        check_length(column.shape(0), n);
        words.push_back(column.data());
    }
    std::vector<std::int64_t> classes(n);
    Call call = Call::silent();
    call.run([&](Pool&) { agreeing_records(words, classes, call.poller()); });
    return as_array(std::move(classes));
}

Numbers places_of(const Labels& codes, std::size_t n_codes) {
    check_numbers(span(codes), n_codes);
    std::vector<std::int64_t> first(n_codes);
    first_places(span(codes), first);
    return as_array(std::move(first));
}

}  // namespace

void bind_measures(nb::module_& module) {
    module.def("ranks", &linkage, "X"_a, "points"_a, "labels"_a, "asked_records"_a, "asked_points"_a,
               "Rank the originals around some released points, and the released records around some originals; see "
               "`linkage`.");
    module.def("distances", &distances, "X"_a, "point"_a,
               "Return the squared distances of the records from a point, shape (n_records,).");
    module.def("unit_scale", &scale_of, "X"_a,
               "Return the power of two that brings the largest magnitude into [1/2, 1).");
    module.def("cell_sums", &sums, "X"_a, "labels"_a, "n_cells"_a,
               "Return the sums of the records of each cell, correctly rounded, shape (n_cells, n_dims).");
    module.def("cell_spread", &spread, "X"_a, "labels"_a, "n_cells"_a,
               "Return the sum of squared distances of the records of each cell from their mean; shape (n_cells,).");
    module.def("co_moments", &co_moments, "columns"_a, "exponents"_a, "origins"_a, "weights"_a.none() = nb::none(),
               "Return means and covariances of the columns ``values * 2**exponent - origin``; the latter divide by "
               "the weight.\n\nThe same bits for any number of threads. The columns may hold NaN, and the results then "
               "do.");
    module.def("inside_intervals", &inside, "numbers"_a, "exponent"_a, "origin"_a, "own"_a, "intervals"_a,
               "Count the numbers inside the interval of their own value (`Intervals`): between its ends, and within "
               "reach of its centre.\n\nThe centre is compared with ``numbers * 2**exponent - origin``. An interval "
               "whose ends are NaN holds nothing.");
    module.def("agreeing_records", &classes_of, "columns"_a,
               "Return classes of records that agree in all columns of 64-bit words, numbered by their first records.");
    module.def("first_places", &places_of, "codes"_a, "n_codes"_a,
               "Return where each code first occurs, after the last record if it does not.");
}

}  // namespace shoal
