// The search that lowers the certainty penalty.
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/call.hpp"
#include "bindings/checks.hpp"
#include "bindings/guarantees.hpp"
#include "ncp/recoding.hpp"
#include "ncp/search.hpp"
#include "ncp/specialise.hpp"
#include "ncp/table.hpp"

namespace shoal {
namespace {

using Nodes = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void check_weight(double weight) {
    check(weight >= 0 && std::isfinite(weight), "a weight is no number of at least 0");
}

void add_numbers(NcpTable& table, const Point& values, double width, double weight) {
    check_length(values.shape(0), table.size());
    check(std::ranges::none_of(span(values), [](double value) { return std::isinf(value); }), "a value is infinite");
    check(width >= 0 && std::isfinite(width), "the range of a column is no number of at least 0");
    check_weight(weight);
    table.add_numbers(span(values), width, weight);
}

void add_categories(NcpTable& table, const Labels& codes, std::size_t n_values, double weight) {
    check_length(codes.shape(0), table.size());
    check(n_values <= most_records, "there are too many categories");
    check_numbers(span(codes), n_values);
    check_weight(weight);
    table.add_categories(span(codes), n_values, weight);
}

void add_tree(NcpTable& table, const Labels& leaves, const Nodes& nodes, const Labels& n_below, double weight) {
    check_length(leaves.shape(0), table.size());
    check_numbers(span(leaves), nodes.shape(0));
    check(nodes.shape(0) > 0 && nodes.shape(1) > 0, "the hierarchy is empty");
    const Rows<const std::int32_t> rows(nodes.data(), nodes.shape(0), nodes.shape(1));
    for (const std::int32_t node : rows.flat())
        check(node >= 0 && static_cast<std::size_t>(node) < n_below.shape(0), "a node is out of range");
    for (std::size_t leaf = 0; leaf < rows.size(); ++leaf)
        check(rows[leaf].back() == rows[0].back(), "the hierarchy has several roots");
    check_weight(weight);
    table.add_tree(span(leaves), LeafOrder(rows, span(n_below)), weight);
}

double loss_of(const NcpTable& table, const Labels& labels) {
    check_length(labels.shape(0), table.size());
    check_numbers(span(labels), table.size());
    return ncp_loss(table, Members(span(labels), table.size()));
}

using Schedule = std::tuple<std::uint64_t, double, double>;  // steps, hot, fall

// Number of records around each record whose cells a search tries for it.
constexpr std::size_t n_near = 16;

// A copy, so that a column added by another thread does not disturb a search.
NcpTable with_columns(const NcpTable& table) {
    check(table.n_ordered() + table.n_categories() > 0, "the table has no columns");
    return table;
}

Numbers specialise(const NcpTable& table, std::size_t k) {
    check_cell_size(k, table.size());
    const NcpTable kept = with_columns(table);
    std::vector<std::int64_t> labels(table.size());
    Call call(table.size());
    call.run([&](Pool&) { NcpSpecialise(kept, k, call.poller()).run(labels); });
    return as_array(std::move(labels));
}

Numbers recode(const NcpTable& table, const Labels& start, std::size_t k, const Guarantees& guarantees,
               std::uint64_t steps, std::uint64_t seed) {
    check_length(start.shape(0), table.size());
    check_partition(span(start), table.size(), k);
    const NcpTable kept = with_columns(table);
    const std::vector<Guarded> guarded = guarantees.about(table.size());
    Call call(table.size());
    return improved(start, [&](std::span<std::int64_t> labels) {
        call.run(
            [&](Pool& pool) { NcpRecodingOfBlocks(kept, k, guarded, pool, labels, call.poller()).run(steps, seed); });
    });
}

Numbers search(const NcpTable& table, const Matrix& X, const Labels& start, std::size_t k, const Guarantees& guarantees,
               std::size_t rounds, const Schedule& schedule, std::uint64_t seed) {
    const auto [steps, hot, fall] = schedule;
    check_matrix(rows(X));
    check_length(X.shape(0), table.size());
    check_partition(span(start), X.shape(0), k);
    check(rounds >= 1, "at least one round is needed");
    check(hot >= 0 && fall >= 0 && fall <= 20, "the temperature is out of range");
    const NcpTable kept = table;
    const std::vector<Guarded> guarded = guarantees.about(table.size());
    const NcpSearch::Plan plan{steps, rounds, n_near, hot, fall, seed};
    Call call(X.shape(0) * rounds);
    return improved(start, [&](std::span<std::int64_t> labels) {
        call.run([&](Pool& pool) {
            NcpSearch(kept, rows(X), k, guarded, pool, call.loops(), labels, call.poller()).run(plan);
        });
    });
}

}  // namespace

void bind_ncp(nb::module_& module) {
    nb::class_<NcpTable>(module, "NcpTable",
                         "Columns of numbers, categories and hierarchies, as the certainty penalty sees them; see "
                         "`shoal.space.ncp_weights`.")
        .def(nb::init<std::size_t>(), "n_records"_a)
        .def("numbers", &add_numbers, "values"_a, "width"_a, "weight"_a,
             "Add numbers, missing where they are not a number: penalty range / width.")
        .def("categories", &add_categories, "codes"_a, "n_values"_a, "weight"_a,
             "Add categories: penalty (different values - 1) / (n_values - 1).")
        .def("tree", &add_tree, "leaves"_a, "nodes"_a, "n_below"_a, "weight"_a,
             "Add leaves of a hierarchy: penalty (leaves below the common ancestor - 1) / (all leaves - 1).")
        .def("loss", &loss_of, "labels"_a, "Return the penalty of each cell times its records, summed.");
    module.def("ncp_specialise", &specialise, "table"_a, "k"_a,
               "Return cells of at least `k` records, cut from the whole table column by column; see ``docs/ncp.md``.");
    module.def("ncp_recode", &recode, "table"_a, "labels"_a, "k"_a, "guarantees"_a, "steps"_a, "seed"_a,
               "Lower the certainty penalty by steps that change whole groups of records and violate no model.");
    module.def("ncp_search", &search, "table"_a, "X"_a, "labels"_a, "k"_a, "guarantees"_a, "rounds"_a, "schedule"_a,
               "seed"_a,
               "Lower the certainty penalty by random moves and swaps that violate no model; see "
               "`shoal.constraints.ncp_cells`.\n\nRecords that are near each other in `X` are tried in one cell. The "
               "temperature of the schedule is in units of the mean penalty of a record.");
}

}  // namespace shoal
