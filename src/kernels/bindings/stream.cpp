// The window of a stream, and kernels on columns of values whose cells are contiguous.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/call.hpp"
#include "bindings/checks.hpp"
#include "numeric/keys.hpp"
#include "stream/values.hpp"
#include "stream/window.hpp"

namespace shoal {
namespace {

using KeyMatrix = nb::ndarray<const std::uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using TuplesIn = std::tuple<Matrix, KeyMatrix, KeyMatrix, Point>;  // X, codes, tags, times

struct Gone {
    Numbers rows, sizes, side, reasons, kept;
};

// A window on a stream. What it has measured travels as a dictionary, so that it can be written down and read back.
class StreamWindow : OneAtATime {
  public:
    StreamWindow(std::size_t n_dims, std::size_t k, std::optional<std::int64_t> delay, std::optional<double> max_age,
                 double order_weight, std::size_t max_cell, std::vector<double> code_weights,
                 std::vector<std::size_t> least)
        : n_dims_(n_dims),
          n_codes_(code_weights.size()),
          n_tags_(least.size()),
          stream_(checked({k, delay.value_or(std::numeric_limits<std::int64_t>::max()),
                           max_age.value_or(std::numeric_limits<double>::infinity()), order_weight, max_cell,
                           std::move(code_weights), std::move(least)}),
                  n_dims, Call::silent().loops()) {}

    std::size_t size() const {
        return alone([&] { return stream_.size(); });
    }

    Gone push(const TuplesIn& arrived) {
        const Tuples batch = tuples(arrived);
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

    std::pair<Numbers, Vector> waiting() const {
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
    void restore(const TuplesIn& waiting, const Labels& positions,
                 const nb::typed<nb::dict, nb::str, nb::object>& figures) {
        StreamTally tally;
        for_each_figure(tally, [&](const char* name, auto& value) {
            value = nb::cast<std::remove_reference_t<decltype(value)>>(figures[name]);
        });
        const Tuples waited = tuples(waiting);
        check_length(positions.shape(0), waited.X.size());
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
    Tuples tuples(const TuplesIn& given) const {
        const auto& [X, codes, tags, times] = given;
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
Array<std::uint64_t> keys_of_texts(const Column<Offset>& offsets, const Column<std::uint8_t>& bytes) {
    check_offsets(span(offsets), bytes.shape(0));
    std::vector<std::uint64_t> keys(offsets.shape(0) - 1);
    text_keys(span(offsets), bytes.data(), keys);
    return as_array(std::move(keys));
}

std::pair<Vector, bool> means_of_cells(const Point& values, const Labels& sizes) {
    check_sizes(span(sizes), values.shape(0));
    std::vector<double> means(values.shape(0));
    const bool any_missing = cell_means(span(values), span(sizes), means.data());
    return {as_array(std::move(means)), any_missing};
}

template <class T>
bool any_differ(const Column<T>& values, const Labels& sizes) {
    check_sizes(span(sizes), values.shape(0));
    return differ_within_cells(span(values), span(sizes));
}

bool are_finite(const std::vector<Point>& columns) {
    return std::all_of(columns.begin(), columns.end(), [](const Point& column) { return all_finite(span(column)); });
}

std::pair<MatrixOut, Numbers> places(const std::vector<Point>& columns, std::size_t n, const Point& low,
                                     const Point& high, const Point& weight) {
    for (const Point& column : columns) check_length(column.shape(0), n);
    for (const Point* ends : {&low, &high, &weight}) {
        check_length(ends->shape(0), columns.size());
        // Ranges may still be unknown as long as there is no value.
        if (n > 0) check_finite(span(*ends));
    }
    std::vector<double> X(n * columns.size());
    std::vector<std::int64_t> outside(columns.size());
    for (std::size_t j = 0; j < columns.size(); ++j)
        place(span(columns[j]), span(low)[j], span(high)[j], span(weight)[j], {X.data(), n, columns.size()}, j,
              outside[j]);
    return {as_matrix(std::move(X), n, columns.size()), as_array(std::move(outside))};
}

std::size_t different_keys(const Keys& keys, const Labels& sizes) {
    check_sizes(span(sizes), keys.shape(0));
    return least_different(span(keys), span(sizes));
}

Numbers winners_of_cells(const Keys& keys, const Labels& ranks, const Labels& sizes) {
    check_sizes(span(sizes), keys.shape(0));
    check_length(ranks.shape(0), keys.shape(0));
    std::vector<std::int64_t> winners(sizes.shape(0));
    most_frequent(span(keys), span(ranks), span(sizes), winners);
    return as_array(std::move(winners));
}

}  // namespace

void bind_stream(nb::module_& module) {
    nb::class_<Gone>(module, "Departures",
                     "Rows released by a window; rows are numbered through the tuples that were waiting and then those "
                     "pushed.")
        .def_ro("rows", &Gone::rows, "Cell by cell, in order of arrival within each.")
        .def_ro("sizes", &Gone::sizes, "Number of rows of each cell.")
        .def_ro("side", &Gone::side, "Rows for which no cell was found.")
        .def_ro("reasons", &Gone::reasons,
                "The reason for each of those: 0 for too few tuples, 1 + j for too few different tags in column j.")
        .def_ro("kept", &Gone::kept, "Rows that are still waiting.");
    nb::class_<StreamWindow>(
        module, "Window",
        "Waiting tuples of a stream; when the oldest is due, it is released with its nearest. See `shoal.stream`.\n\n"
        "Parameters\n----------\nn_dims, k : int\n    Number of coordinates of a tuple, and smallest cell size.\n"
        "delay : int or None\n    A tuple is due after this number of later tuples,\n"
        "max_age : float or None\n    or at this age in seconds.\n"
        "order_weight : float\n    Weight of one position in the distance.\n"
        "max_cell : int\n    Maximum size to which a cell may be extended by close tuples; 0 for k.\n"
        "code_weights : sequence of float\n    Squared distance between different codes, for each column.\n"
        "least : sequence of int\n    Minimum number of different tags in a cell, for each column.")
        .def(nb::init<std::size_t, std::size_t, std::optional<std::int64_t>, std::optional<double>, double, std::size_t,
                      std::vector<double>, std::vector<std::size_t>>(),
             "n_dims"_a, "k"_a, nb::kw_only(), "delay"_a.none() = nb::none(), "max_age"_a.none() = nb::none(),
             "order_weight"_a = 0.0, "max_cell"_a = 0, "code_weights"_a = nb::make_tuple(),
             "least"_a = nb::make_tuple())
        .def("__len__", &StreamWindow::size)
        .def("push", &StreamWindow::push, "tuples"_a, "Add tuples one by one, and release what is due after each.")
        .def("advance", &StreamWindow::advance, "now"_a, "Advance the clock, and release what is due.")
        .def("flush", &StreamWindow::flush,
             "Release everything: the last cell also takes the tuples that would be too few for a cell.")
        .def("recode", &StreamWindow::recode, "X"_a,
             "Replace the coordinates of the waiting tuples, in order of arrival.")
        .def("waiting", &StreamWindow::waiting, "Return the arrival numbers and times of the waiting tuples.")
        .def("tally", &StreamWindow::tally, nb::sig("def tally(self) -> dict[str, typing.Any]"),
             "Return the statistics of all released tuples.")
        .def("restore", &StreamWindow::restore, "tuples"_a, "positions"_a, "tally"_a,
             "Restore the state of another window; this one must be empty.");
    module.def("text_keys", &keys_of_texts<std::int32_t>, "offsets"_a, "data"_a,
               "Return 64-bit keys of concatenated strings; equal strings have equal keys on every machine.");
    module.def("text_keys", &keys_of_texts<std::int64_t>, "offsets"_a, "data"_a);
    module.def(
        "place", &places, "columns"_a, "n"_a, "low"_a, "high"_a, "weights"_a,
        "Return columns of n values, scaled from their ranges to 0 to `weights`, and the number of values "
        "outside.\n\nValues outside a range are clipped, missing ones (NaN) go to its middle, and all are 0 if a "
        "range has no width.");
    module.def("all_finite", &are_finite, "columns"_a, "Return whether no value is NaN or infinite.");
    module.def("cell_means", &means_of_cells, "values"_a, "sizes"_a,
               "Return for each value the mean of those present in its cell, and whether any is NaN; cells are "
               "contiguous.\n\nA missing value is NaN. A mean is missing where more than half of its cell is.");
    module.def("differ_within_cells", &any_differ<double>, "values"_a, "sizes"_a,
               "Return whether any cell has different values; cells are contiguous.");
    module.def("differ_within_cells", &any_differ<std::uint64_t>, "values"_a, "sizes"_a);
    module.def("least_different", &different_keys, "keys"_a, "sizes"_a,
               "Return the smallest number of different keys in a cell; cells are contiguous, and there is at least "
               "one.");
    module.def("most_frequent", &winners_of_cells, "keys"_a, "ranks"_a, "sizes"_a,
               "Return, for each cell, a row that holds its most frequent key; ties go to the lowest rank.");
}

}  // namespace shoal
