// Python's view of the search that lowers the certainty penalty.
#include "bindings/ncp.hpp"

#include <nanobind/stl/string.h>

#include <cmath>
#include <string>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/checks.hpp"
#include "bindings/guarantees.hpp"
#include "ncp/recoding.hpp"
#include "ncp/search.hpp"
#include "ncp/specialise.hpp"
#include "ncp/table.hpp"

using namespace shoal;
using namespace nb::literals;

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

Vector<std::int64_t> specialise(const NcpTable& table, std::size_t k, nb::object progress) {
    check_cell_size(k, table.size());
    check(table.n_ordered() + table.n_categories() > 0, "the table has no columns");
    const NcpTable kept = table;  // a column added by another thread does not disturb it
    std::vector<std::int64_t> labels(table.size());
    Poller poller = python_poller(std::move(progress), table.size());
    {
        nb::gil_scoped_release released;
        NcpSpecialise(kept, k, poller).run(labels);
    }
    return as_array(std::move(labels));
}

// The labels are changed in place, so that an interrupt leaves the best so far.
void recode(const NcpTable& table, const Changing& labels, std::size_t k, const Guarantees& guarantees,
            std::uint64_t steps, std::uint64_t seed, std::size_t threads, nb::object progress) {
    check_length(labels.shape(0), table.size());
    check_partition(span(labels), table.size(), k);
    check(table.n_ordered() + table.n_categories() > 0, "the table has no columns");
    const NcpTable kept = table;
    const std::vector<Guarded> guarded = guarantees.all();
    for (const Guarded& each : guarded) check_length(each.codes.size(), table.size());
    Poller poller = python_poller(std::move(progress), table.size());
    nb::gil_scoped_release released;
    Pool pool(threads);
    NcpRecodingOfBlocks(kept, k, guarded, pool, span(labels), poller).run(steps, seed);
}

// The same.
void search(const NcpTable& table, const Matrix& X, const Changing& labels, std::size_t k, const Guarantees& guarantees,
            std::uint64_t steps, std::size_t rounds, std::size_t neighbours, double hot, double fall,
            std::uint64_t seed, std::size_t threads, nb::object progress, const std::string& simd) {
    check_matrix(rows(X));
    check_length(X.shape(0), table.size());
    check_partition(span(labels), table.size(), k);
    check(rounds >= 1 && neighbours >= 1, "at least one round and one neighbour are needed");
    check(hot >= 0 && fall >= 0 && fall <= 20, "the temperature is out of range");
    const NcpTable kept = table;  // a column added by another thread does not disturb the search
    const std::vector<Guarded> guarded = guarantees.all();
    for (const Guarded& each : guarded) check_length(each.codes.size(), table.size());
    const Loops& chosen = chosen_loops(simd);
    Poller poller = python_poller(std::move(progress), X.shape(0) * rounds);
    nb::gil_scoped_release released;
    Pool pool(threads);
    NcpSearch(kept, rows(X), k, guarded, pool, chosen, span(labels), poller)
        .run({steps, rounds, neighbours, hot, fall, seed});
}

}  // namespace

void bind_ncp(nb::module_& module) {
    nb::class_<NcpTable>(module, "NcpTable", "Columns as the certainty penalty sees them.")
        .def(nb::init<std::size_t>(), "n_records"_a)
        .def("numbers", &add_numbers, "values"_a, "width"_a, "weight"_a,
             "Add numbers, missing where they are not a number: penalty range / width.")
        .def("categories", &add_categories, "codes"_a, "n_values"_a, "weight"_a,
             "Add categories: penalty (different values - 1) / (n_values - 1).")
        .def("tree", &add_tree, "leaves"_a, "nodes"_a, "n_below"_a, "weight"_a,
             "Add leaves of a hierarchy: penalty (leaves below the common ancestor - 1) / (all leaves - 1).")
        .def("loss", &loss_of, "labels"_a, "Penalty of each cell times its records, summed.");
    module.def("ncp_specialise", &specialise, "table"_a, "k"_a, "progress"_a.none(),
               "Cells of at least k records, cut from the whole table column by column.");
    module.def("ncp_recode", &recode, "table"_a, "labels"_a, "k"_a, "guarantees"_a, "steps"_a, "seed"_a, "threads"_a,
               "progress"_a.none(),
               "Lower the certainty penalty of a partition, in place, by steps that change whole groups of records.");
    module.def("ncp_search", &search, "table"_a, "X"_a, "labels"_a, "k"_a, "guarantees"_a, "steps"_a, "rounds"_a,
               "neighbours"_a, "hot"_a, "fall"_a, "seed"_a, "threads"_a, "progress"_a.none(), "simd"_a = "",
               "Lower the certainty penalty of a partition, in place, under the veto of all models.");
}
